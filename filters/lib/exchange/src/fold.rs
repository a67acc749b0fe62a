//! Paths with their identifiers folded: `/legacy/42/export` is `/legacy/{id}/export`.
//!
//! A path is judged segment by segment and linearly. What looks like a value (a number, a key, a date, a token, an address of mail) is
//! `{id}`, so that paths in reports hold names of resources and no data of callers.

/// What stands for an identifier.
pub const ID: &str = "{id}";
/// What stands for names of which there are many at one place.
pub const SLUG: &str = "{slug}";
/// The longest path that is folded, in bytes as sent; longer ones are other paths.
const MAX_PATH: usize = 2048;
/// The longest folded path, in bytes.
pub const MAX_FOLDED: usize = 512;
/// The most segments of a folded path.
const MAX_SEGMENTS: usize = 16;
/// The longest segment that is a name, in bytes.
const MAX_NAME: usize = 64;

/// A path without its query, folded; `None` for one that is too long or has too many segments.
#[must_use]
pub fn fold(path: &[u8]) -> Option<String> {
    if path.len() > MAX_PATH {
        return None;
    }
    let mut folded = String::new();
    let segments = path.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty());
    for (number, segment) in segments.enumerate() {
        if number >= MAX_SEGMENTS {
            return None;
        }
        let segment = fold_segment(segment);
        // Of `;session=1` nothing is left.
        if !segment.is_empty() {
            folded.push('/');
            folded.push_str(&segment);
        }
    }
    if folded.is_empty() {
        folded.push('/');
    }
    (folded.len() <= MAX_FOLDED).then_some(folded)
}

/// A segment, or a name of a field: what is an identifier is [`ID`].
#[must_use]
pub fn fold_segment(segment: &[u8]) -> String {
    // What follows a semicolon is a parameter, such as the id of a session.
    let segment = segment.split(|byte| *byte == b';').next().unwrap_or_default();
    let text = readable(segment);
    if text.len() > MAX_NAME || text.contains(['@', ',']) {
        return ID.to_owned();
    }
    if let Some((stem, ending)) = text.rsplit_once('.')
        && (1..=5).contains(&ending.len())
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
        && is_identifier(stem.as_bytes())
    {
        return format!("{ID}.{ending}");
    }
    if is_identifier(text.as_bytes()) { ID.to_owned() } else { text }
}

/// Whether a segment looks like a name that was made for one thing: `how-to-bake-bread`, `news_2024_07`.
#[must_use]
pub fn is_slug(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    let separators = bytes.iter().filter(|byte| b"-_.~%+".contains(byte)).count();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    separators > 1 || bytes.len() > 24 || (digits > 1 && letters > 0)
}

/// The bytes of a segment as text: escapes of unreserved characters are the characters, other bytes are escapes.
fn readable(segment: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = segment;
    while let Some((first, behind)) = rest.split_first() {
        let escape = (*first == b'%').then(|| behind.split_at_checked(2)).flatten();
        if let Some((digits, behind)) = escape
            && let Some(byte) = std::str::from_utf8(digits).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
        {
            push(&mut text, byte, byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte));
            rest = behind;
        } else {
            // Braces are kept for what is folded.
            push(&mut text, *first, first.is_ascii_graphic() && !b"{}%\"<>\\^`|".contains(first));
            rest = behind;
        }
        // Long enough to be an identifier: the rest does not matter.
        if text.len() > 4 * MAX_NAME {
            break;
        }
    }
    text
}

fn push(text: &mut String, byte: u8, plain: bool) {
    if plain {
        text.push(char::from(byte));
    } else {
        text.push_str(&format!("%{byte:02X}"));
    }
}

fn is_identifier(text: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| text.iter().filter(|byte| is(byte)).count();
    let (digits, letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    let hex = count(u8::is_ascii_hexdigit);
    let number = text.strip_prefix(b"-").unwrap_or(text);
    if !number.is_empty() && number.iter().all(u8::is_ascii_digit) {
        return true;
    }
    if is_uuid(text) || is_date(text) || is_ulid(text, digits) {
        return true;
    }
    // Hashes, keys of MongoDB, short commits.
    if hex == text.len() && digits > 0 && (text.len() >= 16 || (text.len() >= 8 && letters > 0)) {
        return true;
    }
    // `INV-2024-0001`, `order12345`.
    if digits >= 4 && digits * 5 >= text.len() * 2 && !text.contains(&b'%') {
        return true;
    }
    text.split(|byte| b"-_.~:%".contains(byte)).any(is_token)
}

/// A run of letters and digits that no one has named: long, and of changing classes.
fn is_token(part: &[u8]) -> bool {
    if part.len() < 12 {
        return false;
    }
    let class = |byte: &u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let changes = part.iter().zip(part.iter().skip(1)).filter(|(one, two)| class(one) != class(two)).count();
    let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
    // Words in camel case change twice for each word; those have five letters or so.
    (digits >= 2 && changes >= 4) || (part.len() >= 16 && changes * 20 >= part.len() * 9)
}

fn is_uuid(text: &[u8]) -> bool {
    let mut parts = text.split(|byte| *byte == b'-');
    let is = |part: Option<&[u8]>, length: usize| {
        part.is_some_and(|part| part.len() == length && part.iter().all(u8::is_ascii_hexdigit))
    };
    [8, 4, 4, 4, 12].into_iter().all(|length| is(parts.next(), length)) && parts.next().is_none()
}

/// `2024-07-01`, `2024-07`, `2024-07-01T10:00:00Z`.
fn is_date(text: &[u8]) -> bool {
    let mut parts = text.splitn(3, |byte| *byte == b'-');
    let (year, month, rest) = (parts.next(), parts.next(), parts.next());
    let digits = |part: Option<&[u8]>, length: usize| {
        part.is_some_and(|part| part.len() == length && part.iter().all(u8::is_ascii_digit))
    };
    digits(year, 4) && digits(month, 2) && rest.is_none_or(|rest| digits(rest.get(..2), 2))
}

/// 26 characters of Crockford's alphabet.
fn is_ulid(text: &[u8], digits: usize) -> bool {
    let is = |byte: &u8| byte.is_ascii_alphanumeric() && !b"ILOUilou".contains(byte);
    text.len() == 26 && digits > 0 && text.iter().all(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_folded_and_names_are_not() {
        for (path, folded) in [
            ("/legacy/42/export", "/legacy/{id}/export"),
            ("/users/6f9619ff-8b86-d011-b42d-00c04fc964ff", "/users/{id}"),
            ("/users/507f1f77bcf86cd799439011/cart", "/users/{id}/cart"),
            ("/events/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/events/{id}"),
            ("/blobs/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "/blobs/{id}"),
            ("/commits/9fceb02", "/commits/9fceb02"),
            ("/commits/9fceb02d", "/commits/{id}"),
            ("/reports/2024-07-01/daily", "/reports/{id}/daily"),
            ("/reports/2024-07-01T10:00:00Z", "/reports/{id}"),
            ("/reset/xK9dQ2mVb7Lp4TzR", "/reset/{id}"),
            ("/mail/ann%40example.com", "/mail/{id}"),
            ("/mail/ann@example.com/", "/mail/{id}"),
            ("/orders/INV-2024-0001", "/orders/{id}"),
            ("/orders/1,2,3", "/orders/{id}"),
            ("/files/12345.pdf", "/files/{id}.pdf"),
            ("/v2/user-profiles/me", "/v2/user-profiles/me"),
            ("/api/v1.1/getAllOrdersForUser", "/api/v1.1/getAllOrdersForUser"),
            ("/api/OAuth2/token", "/api/OAuth2/token"),
            ("/blog/how-to-bake-bread", "/blog/how-to-bake-bread"),
            ("/shop;jsessionid=ABC/cart", "/shop/cart"),
            ("/shop/;a=b/cart", "/shop/cart"),
            ("//a///b/", "/a/b"),
            ("/%61dmin", "/admin"),
            ("/a%2fb/{id}", "/a%2Fb/%7Bid%7D"),
            ("/", "/"),
            ("", "/"),
        ] {
            assert_eq!(fold(path.as_bytes()).as_deref(), Some(folded), "{path}");
        }
    }

    #[test]
    fn any_bytes_give_a_short_printable_path_or_none() {
        assert_eq!(fold(b"/a\xff\x00%zz").as_deref(), Some("/a%FF%00%25zz"));
        assert_eq!(fold(&[b'/'; 2048]).as_deref(), Some("/"));
        assert_eq!(fold(&b"/a".repeat(17)), None);
        assert_eq!(fold(&vec![b'a'; 60_000]), None);
        assert_eq!(fold(&[b"/".as_slice(), &[b'a'; 65]].concat()).as_deref(), Some("/{id}"));
        for seed in 0_u32..2_000 {
            let bytes: Vec<u8> =
                (0..seed % 97).map(|at| (seed.wrapping_mul(2_654_435_761) >> (at % 25)) as u8 ^ at as u8).collect();
            if let Some(folded) = fold(&bytes) {
                assert!(folded.bytes().all(|byte| byte.is_ascii_graphic()) && folded.len() <= MAX_FOLDED, "{folded}");
            }
        }
    }
}
