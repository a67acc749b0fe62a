//! Requests of honest clients that differ from each other: what benchmarks send, so that no cache answers for the work.
//!
//! A seed gives the same requests everywhere. They come from a shop, its API and its forms: browsers with their own headers,
//! cookies and pages, and programs that send JSON. No attack is among them.

use std::fmt::Write as _;

use crate::random::Random;
use crate::traffic::{Exchange, Headers, Request, Response};

/// What a request is, for figures by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A page, a search or a file, without a body.
    Get,
    /// A form of 100 bytes to 2 KB.
    Form,
    /// A JSON document of 100 bytes to 3 KB.
    Json,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Get, Self::Form, Self::Json];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Form => "form",
            Self::Json => "json",
        }
    }
}

/// The request of this number in the sequence of a seed: of ten, six are GETs, two are forms and two are JSON. No two numbers
/// of a seed give the same request.
#[must_use]
pub fn exchange(seed: u64, number: u64) -> (Kind, Exchange) {
    let kind = match number % 10 {
        3 | 8 => Kind::Form,
        5 | 9 => Kind::Json,
        _ => Kind::Get,
    };
    (kind, of_kind(seed, number, kind))
}

/// As [`exchange`], of one kind.
#[must_use]
pub fn of_kind(seed: u64, number: u64, kind: Kind) -> Exchange {
    let mut random = Random::new(seed, number);
    let client = Client::new(&mut random, number);
    let (method, path, content_type, body) = match kind {
        Kind::Get => ("GET", page(&mut random, number), "", String::new()),
        Kind::Form => ("POST", form_path(&mut random), "application/x-www-form-urlencoded", form(&mut random, number)),
        Kind::Json => ("POST", api_path(&mut random), "application/json", document(&mut random, number)),
    };
    let mut headers: Headers = Vec::new();
    let mut add = |name: &str, value: &str| headers.push((name.into(), value.into()));
    add(":method", method);
    add(":path", &path);
    add(":authority", "shop.example.com");
    client.headers(kind, &mut random, &mut add);
    if !content_type.is_empty() {
        add("content-type", content_type);
        add("content-length", &body.len().to_string());
    }
    let request = Request { headers, body: body.into_bytes(), peer: client.address, ..Request::default() };
    Exchange { request, response: response(kind) }
}

fn response(kind: Kind) -> Response {
    let (content_type, body) = match kind {
        Kind::Json => ("application/json", "{\"status\":\"ok\"}"),
        Kind::Get | Kind::Form => ("text/html; charset=utf-8", "<!doctype html><p>Thank you for your visit.</p>"),
    };
    let headers = vec![(b"content-type".to_vec(), content_type.as_bytes().to_vec())];
    Response { status: 200, headers, body: body.as_bytes().to_vec(), ..Response::default() }
}

/// A visitor: its address, program and cookies.
struct Client {
    address: String,
    agent: String,
    language: &'static str,
    session: String,
    program: bool,
}

impl Client {
    fn new(random: &mut Random, number: u64) -> Self {
        let octet = |random: &mut Random| random.below(254) + 1;
        let address = format!("203.{}.{}.{}:{}", octet(random), octet(random), octet(random), 1024 + number % 60_000);
        let program = random.chance(15);
        let major = 90 + random.below(60);
        let agent = match (program, random.below(4)) {
            (true, 0 | 1) => {
                format!("shop-mobile/{}.{} (Android 1{})", random.below(9), random.below(40), random.below(6))
            }
            (true, _) => format!("okhttp/4.{}.{}", random.below(13), random.below(5)),
            (false, 0) => format!("Mozilla/5.0 (X11; Linux x86_64; rv:{major}.0) Gecko/20100101 Firefox/{major}.0"),
            (false, 1) => format!(
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.{}.{} Safari/537.36",
                random.below(6000),
                random.below(200)
            ),
            (false, 2) => format!(
                "Mozilla/5.0 (iPhone; CPU iPhone OS 1{}_{} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/1{}.0 Mobile/15E148 Safari/604.1",
                random.below(9),
                random.below(7),
                random.below(9)
            ),
            (false, _) => format!(
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_{}) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/1{}.{} Safari/605.1.15",
                random.below(8),
                random.below(9),
                random.below(6)
            ),
        };
        let language =
            random.pick(&["en-GB,en;q=0.9", "de-DE,de;q=0.8,en;q=0.5", "fr-FR,fr;q=0.9", "es-ES,es;q=0.7", "en-US"]);
        Self { address, agent, language, session: token(random, 24), program }
    }

    fn headers(&self, kind: Kind, random: &mut Random, add: &mut impl FnMut(&str, &str)) {
        add("user-agent", &self.agent);
        add("accept-language", self.language);
        if self.program || kind == Kind::Json {
            add("accept", "application/json");
            add("authorization", &format!("Bearer {}.{}.{}", token(random, 20), token(random, 60), token(random, 43)));
            add("x-request-id", &token(random, 22));
            return;
        }
        add("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
        add("accept-encoding", "gzip, deflate, br");
        add("referer", &format!("https://shop.example.com/{}?from={}", random.pick(SECTIONS), random.below(10_000)));
        let mut cookies = format!("session={}; theme={}", self.session, random.pick(&["light", "dark", "auto"]));
        if random.chance(60) {
            let _ = write!(cookies, "; _ga=GA1.2.{}.{}", random.below(2_000_000_000), random.below(2_000_000_000));
        }
        if random.chance(40) {
            let _ = write!(cookies, "; basket={}-{}; consent=necessary", token(random, 10), random.below(30));
        }
        add("cookie", &cookies);
    }
}

const SECTIONS: &[&str] = &["catalogue", "garden", "kitchen", "books", "offers", "new", "account", "help"];
const WORDS: &[&str] = &[
    "chair", "table", "lamp", "garden", "north", "summer", "oak", "linen", "blue", "green", "delivery", "gift",
    "morning", "street", "window", "paper", "coffee", "evening", "bicycle", "small", "large", "bottle", "ceramic",
    "wool", "river", "cotton", "kettle", "market", "orange", "winter", "drawer", "pillow", "mirror", "basket",
    "silver", "quiet",
];
const NAMES: &[&str] =
    &["Ada", "Müller", "Tom", "O'Neill", "Sofia", "Ren", "Núñez", "Kim", "Anna-Maria", "Ivan", "Léa", "Grace"];
const CITIES: &[&str] = &["London", "Köln", "Paris", "São Paulo", "Oslo", "Wien", "Porto", "Kraków", "Dublin", "Malmö"];

fn page(random: &mut Random, number: u64) -> String {
    match random.below(6) {
        0 => format!("/static/{}/{}.{}.js", random.pick(SECTIONS), token(random, 8), number),
        1 => format!("/products/{number}/{}-{}", random.pick(WORDS), random.pick(WORDS)),
        2 => format!("/search?q={}&page={}&n={number}", phrase(random, 3).replace(' ', "+"), random.below(40) + 1),
        3 => format!("/api/v2/orders/{number}?fields=id,total,items&limit={}", random.below(100)),
        _ => format!(
            "/{}/{}?category={}&sort={}&page={}&colour={}%20{}&v={number}",
            random.pick(SECTIONS),
            random.pick(WORDS),
            random.pick(WORDS),
            random.pick(&["price", "name", "newest"]),
            random.below(50) + 1,
            random.pick(&["dark", "light"]),
            random.pick(&["red", "blue", "green"]),
        ),
    }
}

fn form_path(random: &mut Random) -> String {
    format!("/{}/{}", random.pick(&["reviews", "checkout", "account", "contact"]), random.pick(WORDS))
}

fn form(random: &mut Random, number: u64) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("csrf", &token(random, 32));
    form.append_pair("number", &number.to_string());
    form.append_pair("name", &format!("{} {}", random.pick(NAMES), random.pick(NAMES)));
    form.append_pair("city", random.pick(CITIES));
    form.append_pair("email", &format!("{}.{}@example.com", random.pick(WORDS), random.below(1000)));
    for field in 0..random.below(8) {
        form.append_pair(&format!("{}_{field}", random.pick(WORDS)), &phrase(random, 4));
    }
    if random.chance(50) {
        let words = 10 + random.below(240);
        form.append_pair("message", &phrase(random, words));
    }
    form.finish()
}

fn api_path(random: &mut Random) -> String {
    format!("/api/v2/{}/{}", random.pick(&["orders", "baskets", "addresses", "events"]), random.below(100_000))
}

fn document(random: &mut Random, number: u64) -> String {
    let items: Vec<serde_json::Value> = (0..=random.below(12))
        .map(|_| {
            serde_json::json!({
                "sku": token(random, 9),
                "quantity": random.below(9) + 1,
                "price": f64::from(random.below(100_000) as u32) / 100.0,
                "gift": random.chance(10),
                "note": if random.chance(30) { phrase(random, 8).into() } else { serde_json::Value::Null },
            })
        })
        .collect();
    let document = serde_json::json!({
        "id": number,
        "customer": {"name": format!("{} {}", random.pick(NAMES), random.pick(NAMES)), "city": random.pick(CITIES)},
        "items": items,
        "comment": phrase(random, 12),
        "tags": [random.pick(WORDS), random.pick(WORDS)],
    });
    document.to_string()
}

fn token(random: &mut Random, length: usize) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    (0..length).map(|_| char::from(LETTERS[random.below(LETTERS.len())])).collect()
}

fn phrase(random: &mut Random, words: usize) -> String {
    let words: Vec<&str> = (0..words).map(|_| random.pick(WORDS)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_request_comes_twice_and_a_seed_gives_the_same_ones() {
        let mut seen = HashSet::new();
        for number in 0..10_000 {
            let (_, exchange) = exchange(1, number);
            let Request { headers, body, .. } = exchange.request;
            let path = headers.iter().find(|(name, _)| name == b":path").map(|(_, value)| value.clone()).unwrap();
            assert!(seen.insert((path, body)), "request {number} is another one again");
        }
        assert_eq!(exchange(1, 17), exchange(1, 17));
        assert_ne!(exchange(1, 17), exchange(2, 17));
    }

    #[test]
    fn every_kind_comes_with_its_body() {
        for kind in Kind::ALL {
            let lengths: Vec<usize> = (0..1000).map(|number| of_kind(7, number, kind).request.body.len()).collect();
            let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
            match kind {
                Kind::Get => assert_eq!(*most, 0),
                Kind::Form | Kind::Json => assert!(*least > 100 && (1000..4096).contains(most), "{least} to {most}"),
            }
        }
    }
}
