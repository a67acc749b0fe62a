//! The transactions that are measured.

use std::fmt::Write as _;

use proxy_host::traffic::{Exchange, Request, Response};

/// A transaction.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its word in the report; also what others refer to it by.
    pub name: String,
    /// What it is, for people.
    pub what: String,
    /// Attack rules have to match; otherwise none may.
    pub attack: bool,
    /// The request and its response.
    pub exchange: Exchange,
}

/// Lengths of the long bodies in bytes, and how they are called.
const LENGTHS: [(usize, &str); 3] = [(10 << 10, "10k"), (100 << 10, "100k"), (1 << 20, "1m")];

/// Words that harmless values are made of.
const WORDS: [&str; 16] = [
    "garden", "Anna", "delivery", "42", "north", "street", "quantity", "blue", "Meyer", "note", "morning", "noon",
    "1999", "gift", "ring", "bell",
];

/// All of them, the short ones first.
#[must_use]
pub fn all() -> Vec<Case> {
    let form = "application/x-www-form-urlencoded";
    let mut cases = vec![
        get("get", "GET of a browser: 3 parameters, cookies", "/shop/items/list?page=2&sort=price&colour=dark+red"),
        post("form-1k", "form of 1 KB", form, fields(1 << 10)),
        post("json-3k", "JSON of 3 KB: 160 values", "application/json", values(160)),
        Case {
            attack: true,
            ..get(
                "sqli",
                "SQL injection in a parameter",
                "/shop/items?id=1%27%20UNION%20SELECT%20name,password%20FROM%20users--%20-",
            )
        },
    ];
    for (length, label) in LENGTHS {
        cases.push(post(&format!("form-{label}"), &format!("form of {label}: one field of text"), form, text(length)));
    }
    for (length, label) in LENGTHS {
        let what = format!("JSON of {label}: 100 values of text");
        cases.push(post(&format!("json-{label}"), &what, "application/json", long_values(length)));
    }
    for count in [10, 100, 1000] {
        let what = format!("GET with {count} arguments");
        cases.push(get(&format!("args-{count}"), &what, &arguments(count)));
    }
    cases
}

fn get(name: &str, what: &str, path: &str) -> Case {
    let response = Response {
        headers: headers(&[("content-type", "text/html; charset=utf-8"), ("server", "shop")]),
        body: b"<!doctype html><title>Shop</title><p>Everything for the garden.</p>".to_vec(),
        ..Response::default()
    };
    let request = Request {
        headers: headers(&[
            (":method", "GET"),
            (":path", path),
            (":authority", "shop.example"),
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
            ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
            ("accept-language", "en-US,en;q=0.5"),
            ("accept-encoding", "gzip, deflate, br"),
            ("referer", "https://shop.example/shop/items"),
            ("cookie", "session=5f2d8a90c4e14b7f; theme=dark; consent=1"),
            ("sec-fetch-dest", "document"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-site", "same-origin"),
            ("upgrade-insecure-requests", "1"),
        ]),
        peer: "192.0.2.7:40000".to_owned(),
        ..Request::default()
    };
    Case { name: name.to_owned(), what: what.to_owned(), attack: false, exchange: Exchange { request, response } }
}

fn post(name: &str, what: &str, content_type: &str, body: Vec<u8>) -> Case {
    let mut case = get(name, what, "/api/orders");
    let request = &mut case.exchange.request;
    if let Some((_, method)) = request.headers.first_mut() {
        *method = b"POST".to_vec();
    }
    let length = body.len().to_string();
    request.headers.extend(headers(&[("content-type", content_type), ("content-length", &length)]));
    request.body = body;
    case
}

fn headers(pairs: &[(&str, &str)]) -> proxy_host::traffic::Headers {
    pairs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn word(at: usize) -> &'static str {
    WORDS[at * 7 % WORDS.len()]
}

/// A form of many short fields.
fn fields(length: usize) -> Vec<u8> {
    let mut out = String::new();
    for number in 0.. {
        let field = format!("field{number}={}+{}+{}", word(number), word(number + 5), word(number + 10));
        if out.len() + field.len() >= length {
            break;
        }
        let _ = write!(out, "{}{field}", if number == 0 { "" } else { "&" });
    }
    out.into_bytes()
}

/// A form of one long field.
fn text(length: usize) -> Vec<u8> {
    let mut out = String::from("text=");
    for number in 0.. {
        if out.len() >= length {
            break;
        }
        out += word(number);
        out += if number % 12 == 11 { ".%0A" } else { "+" };
    }
    // Never within an escape.
    out.truncate(out[..length].rfind('+').unwrap_or(length));
    out.into_bytes()
}

/// An object of short values of all types.
fn values(count: usize) -> Vec<u8> {
    let value = |at: usize| match at % 4 {
        0 => format!("\"k{at}\":{}", at * 37),
        1 => format!("\"k{at}\":\"{} {}\"", word(at), word(at * 3)),
        2 => format!("\"k{at}\":\"{}\"", word(at * 11)),
        _ => format!("\"k{at}\":true"),
    };
    object((0..count).map(value))
}

/// An object of a hundred long values.
fn long_values(length: usize) -> Vec<u8> {
    // Less the name, the quotes and the comma around each.
    let each = length / 100 - 12;
    let value = |at: usize| {
        let mut text = String::new();
        for number in 0.. {
            if text.len() >= each {
                break;
            }
            text += word(at + number);
            text.push(' ');
        }
        text.truncate(each);
        format!("\"note{at}\":\"{}\"", text.trim_end())
    };
    object((0..100).map(value))
}

fn object(members: impl Iterator<Item = String>) -> Vec<u8> {
    format!("{{{}}}", members.collect::<Vec<_>>().join(",")).into_bytes()
}

fn arguments(count: usize) -> String {
    let pairs: Vec<String> = (0..count).map(|at| format!("arg{at}={}+{}", word(at), word(at + 3))).collect();
    format!("/shop/items/list?{}", pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_length_they_are_called_by() {
        for case in all() {
            let length = case.exchange.request.body.len();
            for (wanted, label) in LENGTHS {
                if case.name.ends_with(&format!("-{label}")) {
                    assert!(length <= wanted && length * 100 > wanted * 95, "{}: {length}", case.name);
                }
            }
            let said = case.exchange.request.header("content-length").map(|said| said == length.to_string().as_bytes());
            assert_eq!(said, (length > 0).then_some(true), "{}", case.name);
        }
    }

    #[test]
    fn json_is_json() {
        let parse = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
        assert_eq!(parse(&values(160)).as_object().unwrap().len(), 160);
        assert_eq!(parse(&long_values(10 << 10)).as_object().unwrap().len(), 100);
    }
}
