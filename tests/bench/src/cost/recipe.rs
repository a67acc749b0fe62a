//! A request that scales to any size.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use proxy_host::traffic::{Exchange, Headers, Request};

/// What a piece writes in place of the number of its repetition.
const NUMBER: &str = "{n}";

/// Where the text of a recipe goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A body of `application/x-www-form-urlencoded`.
    Form,
    /// A body of `application/json`.
    Json,
    /// A body of `application/xml`.
    Xml,
    /// A body of `text/plain`.
    Text,
    /// A body of `multipart/form-data` with boundary `b`.
    Multipart,
    /// The query of a GET.
    Query,
    /// The path of a GET.
    Path,
    /// The header `cookie`.
    Cookie,
    /// The header `x-note`.
    Header,
    /// Headers, `name: value`, a line each.
    Headers,
}

impl Place {
    /// All places.
    pub const ALL: [Self; 10] = [
        Self::Form,
        Self::Json,
        Self::Xml,
        Self::Text,
        Self::Multipart,
        Self::Query,
        Self::Path,
        Self::Cookie,
        Self::Header,
        Self::Headers,
    ];

    /// The most bytes that a gateway takes there: Envoy refuses 60 KiB of headers or more.
    #[must_use]
    pub fn limit(self) -> usize {
        match self {
            Self::Form | Self::Json | Self::Xml | Self::Text | Self::Multipart => usize::MAX,
            Self::Query | Self::Path | Self::Cookie | Self::Header | Self::Headers => 58 << 10,
        }
    }

    fn content_type(self) -> Option<&'static str> {
        Some(match self {
            Self::Form => "application/x-www-form-urlencoded",
            Self::Json => "application/json",
            Self::Xml => "application/xml",
            Self::Text => "text/plain",
            Self::Multipart => "multipart/form-data; boundary=b",
            _ => return None,
        })
    }
}

/// A text that is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Piece {
    /// The text; each character is a byte (U+0000 to U+00FF). `{n}` stands for the number of the repetition.
    pub text: String,
    /// How often it comes; where it grows, in relation to the other pieces that do.
    #[serde(default = "one")]
    pub times: usize,
    /// It is repeated more often until the request has its size.
    #[serde(default)]
    pub grows: bool,
}

fn one() -> usize {
    1
}

/// A request that scales to any size.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Recipe {
    /// What it is, for people.
    pub what: String,
    /// Where the pieces go.
    pub place: Place,
    /// In place of the content type that the place has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The header `content-encoding`; the text is sent as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    /// A body is compressed by gzip at this level, 0 to 9, and says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gzip: Option<u32>,
    /// The text, from its beginning to its end.
    pub pieces: Vec<Piece>,
}

impl Recipe {
    /// The text, cut at `size` bytes where what does not grow has more.
    #[must_use]
    pub fn text(&self, size: usize) -> Vec<u8> {
        let size = size.min(self.place.limit());
        let length = |piece: &Piece, factor: usize| {
            let times = if piece.grows { piece.times.saturating_mul(factor) } else { piece.times };
            piece_length(piece, times)
        };
        let total =
            |factor: usize| self.pieces.iter().map(|piece| length(piece, factor)).fold(0, usize::saturating_add);
        let grows = self.pieces.iter().any(|piece| piece.grows && piece.times > 0 && !piece.text.is_empty());
        let mut factor = 1;
        if grows {
            // The largest factor that fits, by bisection.
            let (mut low, mut high) = (1, size.max(2));
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                if total(middle) <= size { low = middle } else { high = middle - 1 }
            }
            factor = low;
        }
        let mut out = Vec::with_capacity(total(factor).min(size << 1));
        for piece in &self.pieces {
            let times = if piece.grows { piece.times.saturating_mul(factor) } else { piece.times };
            let numbered = piece.text.contains(NUMBER);
            for number in 0..times {
                match numbered {
                    true => out.extend(bytes(&piece.text.replace(NUMBER, &number.to_string()))),
                    false => out.extend(bytes(&piece.text)),
                }
                if out.len() >= size {
                    out.truncate(size);
                    return out;
                }
            }
        }
        out
    }

    /// The request, with a text of at most `size` bytes.
    #[must_use]
    pub fn exchange(&self, size: usize) -> Exchange {
        let text = self.text(size);
        let mut path = b"/shop/items".to_vec();
        let mut headers: Headers = vec![
            (
                b"user-agent".to_vec(),
                b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".to_vec(),
            ),
            (b"accept".to_vec(), b"*/*".to_vec()),
        ];
        let mut body = Vec::new();
        match self.place {
            Place::Query => {
                path.push(b'?');
                path.extend(text);
            }
            Place::Path => {
                path.push(b'/');
                path.extend(text);
            }
            Place::Cookie => headers.push((b"cookie".to_vec(), text)),
            Place::Header => headers.push((b"x-note".to_vec(), text)),
            Place::Headers => headers.extend(text.split(|byte| *byte == b'\n').filter_map(|line| {
                let colon = line.iter().position(|byte| *byte == b':')?;
                let (name, value) = line.split_at(colon);
                Some((name.to_ascii_lowercase(), value[1..].trim_ascii().to_vec()))
            })),
            _ => body = text,
        }
        let mut content_encoding = self.content_encoding.as_deref();
        if let Some(level) = self.gzip.filter(|_| !body.is_empty()) {
            body = gzipped(&body, level);
            content_encoding = Some("gzip");
        }
        if let Some(encoding) = content_encoding {
            headers.push((b"content-encoding".to_vec(), encoding.as_bytes().to_vec()));
        }
        let content_type = self.content_type.as_deref().or(self.place.content_type());
        let method: &[u8] = match content_type {
            Some(content_type) => {
                headers.push((b"content-type".to_vec(), bytes(content_type).collect()));
                headers.push((b"content-length".to_vec(), body.len().to_string().into_bytes()));
                b"POST"
            }
            None => b"GET",
        };
        let mut all: Headers = vec![
            (b":method".to_vec(), method.to_vec()),
            (b":path".to_vec(), path),
            (b":authority".to_vec(), b"shop.example".to_vec()),
        ];
        all.extend(headers);
        Exchange { request: Request { headers: all, body, ..Request::default() }, ..Exchange::default() }
    }
}

fn gzipped(text: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level.min(9)));
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

fn bytes(text: &str) -> impl Iterator<Item = u8> + '_ {
    text.chars().map(|character| u8::try_from(u32::from(character)).unwrap_or(b'?'))
}

fn piece_length(piece: &Piece, times: usize) -> usize {
    let plain = piece.text.chars().count();
    let numbers = piece.text.matches(NUMBER).count();
    // A number has as many digits as the largest: a little more than is needed.
    let digits = times.max(1).ilog10() as usize + 1;
    (plain - numbers * NUMBER.len() + numbers * digits).saturating_mul(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str, times: usize, grows: bool) -> Piece {
        Piece { text: text.into(), times, grows }
    }

    #[test]
    fn pieces_that_grow_fill_the_size_and_closing_ones_stay() {
        let pieces = vec![piece("[", 1, false), piece("\"a{n}\",", 1, true), piece("1]", 1, false)];
        let recipe = Recipe {
            what: String::new(),
            place: Place::Json,
            content_type: None,
            content_encoding: None,
            gzip: None,
            pieces,
        };
        let text = String::from_utf8(recipe.text(200)).unwrap();
        assert!(text.starts_with("[\"a0\",\"a1\",") && text.ends_with(",1]"), "{text}");
        assert!((180..=200).contains(&text.len()), "{}", text.len());
        let exchange = recipe.exchange(200);
        assert_eq!(exchange.request.body, text.as_bytes());
    }

    #[test]
    fn pieces_grow_in_step() {
        let pieces = vec![piece("{\"k\":", 1, true), piece("1", 1, false), piece("}", 1, true)];
        let recipe = Recipe {
            what: String::new(),
            place: Place::Json,
            content_type: None,
            content_encoding: None,
            gzip: None,
            pieces,
        };
        assert!(serde_json::from_slice::<serde_json::Value>(&recipe.text(100)).is_ok());
    }

    #[test]
    fn a_body_can_be_compressed() {
        let pieces = vec![piece("a=b&", 1, true)];
        let (content_encoding, gzip) = (None, Some(9));
        let recipe =
            Recipe { what: String::new(), place: Place::Form, content_type: None, content_encoding, gzip, pieces };
        let request = recipe.exchange(10_000).request;
        assert!(
            request.body.len() < 200 && request.headers.contains(&(b"content-encoding".to_vec(), b"gzip".to_vec()))
        );
        assert_eq!(seclang::body::decode::decode(b"gzip", &request.body, 10_000, 1000), Ok(recipe.text(10_000)));
    }

    #[test]
    fn headers_stay_below_what_a_gateway_takes() {
        let recipe = Recipe {
            what: String::new(),
            place: Place::Headers,
            content_type: None,
            content_encoding: None,
            gzip: None,
            pieces: vec![piece("X-{n}: v\n", 1, true)],
        };
        let exchange = recipe.exchange(1 << 20);
        let size: usize = exchange.request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(size < 60 << 10, "{size}");
        assert!(exchange.request.headers.contains(&(b"x-0".to_vec(), b"v".to_vec())));
    }
}
