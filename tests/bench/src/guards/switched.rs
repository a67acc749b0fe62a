//! What switching a guard on costs the requests of one kind.

use proxy_host::Module;
use proxy_host::traffic::Exchange;
use recording::varied;

use super::{LOGIN, Worker};
use crate::waf::{median, nanos};

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// GETs of images: nothing for any guard to read.
    Image,
    /// GETs of short pages.
    Page,
    /// Logins that succeed.
    Login,
    /// Logins that fail.
    FailedLogin,
    /// Uploads of a picture of 64 KiB.
    Upload,
    /// GETs answered with JSON of 200 KiB.
    Json,
}

impl Kind {
    /// The request of a number. No two are the same; there are 500 callers.
    #[must_use]
    pub fn exchange(self, number: u64) -> Exchange {
        let mut exchange = varied::of_kind(1, number, varied::Kind::Get);
        let request = &mut exchange.request;
        request.route = "shop".to_owned();
        request.peer = format!("198.51.{}.{}:40000", number % 500 / 250, number % 250 + 1);
        let mut post = |path: &str, kind: &str, body: Vec<u8>| {
            for (name, value) in &mut request.headers {
                match name.as_slice() {
                    b":method" => *value = b"POST".to_vec(),
                    b":path" => *value = path.into(),
                    _ => {}
                }
            }
            request.headers.push((b"content-type".to_vec(), kind.into()));
            request.headers.push((b"content-length".to_vec(), body.len().to_string().into()));
            request.body = body;
        };
        let form = format!("username=user{number}&password=pass-{:x}&next=%2F", number.wrapping_mul(0x9e37_79b9));
        let mut answer = |status, kind: &str, body: Vec<u8>| {
            exchange.response.status = status;
            exchange.response.headers = vec![(b"content-type".to_vec(), kind.into())];
            exchange.response.body = body;
        };
        match self {
            Self::Image => answer(200, "image/webp", vec![7; 64]),
            Self::Page => {}
            Self::Login => {
                post(LOGIN, "application/x-www-form-urlencoded", form.into_bytes());
                answer(302, "text/html", Vec::new());
            }
            Self::FailedLogin => {
                post(LOGIN, "application/x-www-form-urlencoded", form.into_bytes());
                answer(401, "text/html", b"<p>Wrong user or password".to_vec());
            }
            Self::Upload => post("/pictures", "multipart/form-data; boundary=b", upload(number)),
            Self::Json => answer(200, "application/json", document(number, 200 << 10)),
        }
        exchange
    }
}

fn upload(number: u64) -> Vec<u8> {
    let head =
        "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.png\"\r\ncontent-type: image/png\r\n\r\n";
    let mut body = head.as_bytes().to_vec();
    body.extend_from_slice(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0");
    let mut state = number;
    while body.len() < 64 << 10 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        body.extend_from_slice(&state.to_le_bytes());
    }
    body.extend_from_slice(b"\0\0\0\0IEND\xaeB`\x82\r\n--b--\r\n");
    body
}

fn document(number: u64, length: usize) -> Vec<u8> {
    let mut text = String::from("[");
    let mut state = number;
    while text.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let n = state >> 16;
        text.push_str(&format!(
            "{{\"id\":{},\"name\":\"Desk lamp, black\",\"price\":{}.{:02},\"created_at\":\"2024-05-1{}T10:00:00Z\"}},",
            n % 100_000,
            n % 900,
            n % 100,
            n % 10
        ));
    }
    text.push_str("{}]");
    text.into_bytes()
}

/// What a chain costs a request, without and with a guard.
#[derive(Debug, Clone, Copy, Default)]
pub struct Row {
    /// The mean instructions of a request.
    pub instructions: f64,
    /// The median processor time of a request, in nanoseconds.
    pub nanos: f64,
}

/// What each of several chains costs requests of a kind: `snapshots` in their order. Each sees the same requests, so many, of which the
/// first tenth is not counted. Processor time is measured in `rounds` more, the chains in turns.
///
/// # Errors
///
/// A VM does not start, or dies; for people.
pub fn switched_on(
    (metered, module): (&Module, &Module),
    snapshots: &[Vec<u8>],
    kind: Kind,
    requests: u64,
    rounds: u64,
) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for snapshot in snapshots {
        let mut worker = Worker::start(metered, snapshot)?;
        let mut instructions = 0;
        for number in 0..requests {
            let spent = worker.run(&kind.exchange(number), 1)?;
            if number >= requests / 10 {
                instructions += spent.instructions;
            }
        }
        rows.push(Row { instructions: instructions as f64 / (requests - requests / 10).max(1) as f64, nanos: 0.0 });
    }
    let mut workers =
        snapshots.iter().map(|snapshot| Worker::start(module, snapshot)).collect::<Result<Vec<_>, _>>()?;
    let mut times = vec![Vec::new(); workers.len()];
    for round in 0..=rounds {
        for number in round * requests..(round + 1) * requests {
            let exchange = kind.exchange(number);
            // Each comes first as often as last: the one behind another finds other things in the processor's caches.
            for place in 0..workers.len() {
                let at = (usize::try_from(number).unwrap_or(0) + place) % workers.len();
                let spent = workers[at].run(&exchange, 1)?;
                if round > 0 {
                    times[at].push(nanos(spent.cpu));
                }
            }
        }
    }
    rows.iter_mut().zip(&times).for_each(|(row, times)| row.nanos = median(times) as f64);
    Ok(rows)
}
