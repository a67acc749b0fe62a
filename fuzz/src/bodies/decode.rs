//! Compressed bodies: a byte that chooses the encodings, and the body.

use seclang::body::decode::decode;

use super::split_byte;

const ENCODINGS: &[&str] = &["gzip", "deflate", "br", "x-gzip, identity", "deflate, gzip", "gzip, br", "br,br,br"];
const MAX_OUT: usize = 1 << 20;
const MAX_RATIO: u32 = 100;
/// Below this a ratio is never refused.
const RATIO_FREE: usize = 64 * 1024;

pub fn run(data: &[u8]) {
    let Some((choice, body)) = split_byte(data) else { return };
    let encoding = ENCODINGS[usize::from(choice) % ENCODINGS.len()];
    if let Ok(decoded) = decode(encoding.as_bytes(), body, MAX_OUT, MAX_RATIO) {
        assert!(decoded.len() <= MAX_OUT, "{} bytes out", decoded.len());
        let steps = u32::try_from(encoding.split(',').filter(|name| !name.contains("identity")).count()).unwrap();
        let most = body.len().saturating_mul((MAX_RATIO as usize).saturating_pow(steps)).max(RATIO_FREE * 100);
        assert!(decoded.len() <= most, "{} bytes of {}", decoded.len(), body.len());
    }
}
