//! The one place where headers of answers, and headers that plugins change, are made fit to be sent.

use crate::Reply;

/// Headers that say where a message ends, or are for one connection: the gateway's own.
const FRAMING: [&str; 8] =
    ["connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

impl Reply {
    /// Makes every header one that ends where it should: a value with a line end in it would begin a header, or a
    /// response, of the caller's choosing. Returns the names of headers that were left out.
    ///
    /// A `location` is percent-encoded where it has bytes that no URI has (RFC 3986), and so still leads somewhere. Another
    /// header whose name is no token or whose value has a control byte (RFC 9110, section 5.5) is left out: half of a
    /// cookie is worth nothing. So is one that says where the message ends: the gateway writes those.
    #[must_use]
    pub fn make_safe(&mut self) -> Vec<String> {
        let mut refused = Vec::new();
        self.headers.retain_mut(|(name, value)| {
            let safe = make_header_safe(name, value);
            if !safe {
                refused.push(name.escape_default().to_string());
            }
            safe
        });
        refused
    }
}

/// Makes one header safe as [`Reply::make_safe`] says; `false` where it is to be left out. Spaces around the value are no part of
/// it (RFC 9110, section 5.5), and HTTP/2 does not allow them.
pub(crate) fn make_header_safe(name: &str, value: &mut Vec<u8>) -> bool {
    let trimmed = value.trim_ascii();
    if trimmed.len() < value.len() && value.iter().all(|byte| is_field_byte(*byte)) {
        *value = trimmed.to_vec();
    }
    if name.eq_ignore_ascii_case("location") {
        encode(value);
    }
    let framing = FRAMING.iter().any(|known| name.eq_ignore_ascii_case(known));
    !framing && is_token(name.as_bytes()) && value.iter().all(|byte| is_field_byte(*byte))
}

/// Percent-encodes what no URI has. An escape that is there stays one.
fn encode(location: &mut Vec<u8>) {
    if location.iter().all(|byte| is_uri_byte(*byte)) {
        return;
    }
    let mut encoded = Vec::with_capacity(location.len() + 16);
    for byte in location.iter() {
        match is_uri_byte(*byte) {
            true => encoded.push(*byte),
            false => encoded.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    *location = encoded;
}

/// Unreserved, reserved, and the percent sign (RFC 3986, section 2).
fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}

/// `field-vchar`, a space or a tab.
fn is_field_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safe(name: &str, value: &[u8]) -> Option<Vec<u8>> {
        let mut reply = Reply { status: 302, headers: vec![(name.to_owned(), value.to_vec())], body: Vec::new() };
        let refused = reply.make_safe();
        assert_eq!(refused.len() + reply.headers.len(), 1);
        reply.headers.pop().map(|(_, value)| value)
    }

    #[test]
    fn a_location_is_encoded() {
        for same in ["https://shop.test/a?b=%20c&d#e", "/x/%0d%0a", "http://[::1]:80/"] {
            assert_eq!(safe("location", same.as_bytes()).unwrap(), same.as_bytes());
        }
        let split = safe("Location", b"/a\r\nset-cookie: x=1\r\n\r\n<b>\0\x7f\xff\"").unwrap();
        assert_eq!(split, b"/a%0D%0Aset-cookie:%20x=1%0D%0A%0D%0A%3Cb%3E%00%7F%FF%22");
    }

    #[test]
    fn another_header_with_a_control_byte_is_left_out() {
        assert_eq!(safe("set-cookie", b"a=b\tc; Path=/ \xff").unwrap(), b"a=b\tc; Path=/ \xff");
        for byte in (0..0x20_u8).chain([0x7f]).filter(|byte| *byte != b'\t') {
            assert_eq!(safe("set-cookie", &[b'a', byte, b'b']), None, "{byte}");
        }
        for name in ["Content-Length", "transfer-encoding", "connection", "upgrade"] {
            assert_eq!(safe(name, b"7"), None, "{name}");
        }
        for name in ["", "a b", "a:b", "a\r\nb", "\u{e9}"] {
            assert_eq!(safe(name, b"x"), None, "{name:?}");
        }
    }
}
