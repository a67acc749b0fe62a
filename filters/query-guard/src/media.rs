//! The media type of a body, where every server reads the same one.

use exchange::Headers;

pub(crate) const GRAPHQL: &[u8] = b"application/graphql";
pub(crate) const FORM: &[u8] = b"application/x-www-form-urlencoded";
pub(crate) const MULTIPART: &[u8] = b"multipart/form-data";
const JSON: &[u8] = b"application/json";

/// Names, without `-` and `_`, of character sets in which JSON and forms are what their bytes look like. In others a byte of ASCII may be
/// something else (UTF-7, UTF-16), or the second byte of a character (Shift_JIS, GBK), so that a `\` is none.
const READABLE: &[&[u8]] = &[b"utf8", b"usascii", b"ascii", b"iso88591", b"latin1"];

/// The media type in lower case, without its parameters; empty where there is none.
///
/// # Errors
/// Servers may read the header as different types, or the body in a character set other than UTF-8.
pub(crate) fn of(headers: &Headers) -> Result<Vec<u8>, &'static str> {
    let kind = headers.all("content-type").collect::<Vec<_>>().join(b",".as_slice()).to_ascii_lowercase();
    let end = kind.iter().position(|byte| *byte == b';').unwrap_or(kind.len());
    let (media, parameters) = kind.split_at_checked(end).unwrap_or_default();
    let media = media.trim_ascii();
    // Servers cut a type at different bytes.
    if media.iter().any(|byte| *byte == b',' || !byte.is_ascii_graphic()) {
        return Err("the content type is more than one type");
    }
    // Some look for a type anywhere in the header. `application/json-rpc` and the like are types of JSON.
    let other = |known: &[u8]| media != known && contains(parameters, known);
    let within = |known: &[u8]| media != known && contains(media, known);
    if [JSON, GRAPHQL, FORM, MULTIPART].into_iter().any(other) || [FORM, MULTIPART].into_iter().any(within) {
        return Err("the content type has another type in it");
    }
    if !is_readable(parameters) {
        return Err("expected the character set UTF-8");
    }
    Ok(media.to_vec())
}

/// Whether a form begins as JSON does. A byte order mark may be before it.
pub(crate) fn begins_as_json(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    matches!(body.iter().find(|byte| **byte > b' '), Some(b'{' | b'['))
}

/// Whether each character set that some parser finds in the parameters is a readable one; all in lower case.
fn is_readable(parameters: &[u8]) -> bool {
    const NAME: &[u8] = b"charset";
    let is_padding = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    let places = parameters.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    let mut values = places.map(|(at, _)| parameters.get(at + NAME.len()..).unwrap_or_default());
    values.all(|after| {
        let padding = after.iter().take_while(|byte| is_padding(byte)).count();
        match after.get(padding..).unwrap_or_default() {
            // An extended or a continued parameter (RFC 2231).
            [b'*', ..] => false,
            [b'=', value @ ..] => {
                let value = value.split(|byte| matches!(byte, b';' | b',')).next().unwrap_or_default();
                let first = value.iter().position(|byte| !is_padding(byte)).unwrap_or(value.len());
                let last = value.iter().rposition(|byte| !is_padding(byte)).map_or(first, |last| last + 1);
                let value = value.get(first..last).unwrap_or_default();
                let plain: Vec<u8> = value.iter().filter(|byte| !matches!(byte, b'-' | b'_')).copied().collect();
                value.is_empty() || READABLE.contains(&plain.as_slice())
            }
            _ => true,
        }
    })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kinds: &[&str]) -> Option<String> {
        let pairs: Vec<(&str, &str)> = kinds.iter().map(|kind| ("content-type", *kind)).collect();
        of(&Headers::new(&pairs)).ok().map(|media| String::from_utf8(media).unwrap())
    }

    #[test]
    fn usual_types_are_read() {
        for (kind, media) in [
            ("application/json", "application/json"),
            ("Application/JSON; Charset=UTF-8", "application/json"),
            ("application/json;charset=\"utf-8\"", "application/json"),
            (" application/json ; charset = 'utf8' ; x=y", "application/json"),
            ("application/json; charset=US-ASCII", "application/json"),
            ("application/json; charset=ISO-8859-1", "application/json"),
            ("application/json; charset=utf-8; charset=utf-8", "application/json"),
            ("application/json; charset=utf-8, application/json; charset=utf-8", "application/json"),
            ("application/json; charset=", "application/json"),
            ("application/json; x=\"charset\"", "application/json"),
            ("application/json;", "application/json"),
            ("application/json-rpc", "application/json-rpc"),
            ("application/graphql+json; v=1", "application/graphql+json"),
            ("multipart/form-data; boundary=\"a, b\"", "multipart/form-data"),
            ("multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxk", "multipart/form-data"),
            ("application/x-www-form-urlencoded; charset=UTF-8", "application/x-www-form-urlencoded"),
            ("text/plain;charset=UTF-8", "text/plain"),
            ("", ""),
        ] {
            assert_eq!(read(&[kind]).as_deref(), Some(media), "{kind}");
        }
        assert_eq!(read(&[]).as_deref(), Some(""));
    }

    #[test]
    fn types_that_servers_read_differently_are_refused() {
        for kind in [
            "application/json, application/x-www-form-urlencoded",
            "application/x-www-form-urlencoded,application/json",
            "application/json x",
            "application/ json",
            "application/x-www-form-urlencoded application/json",
            "application/x-www-form-urlencoded\u{a0}",
            "application/x-www-form-urlencoded; x=application/json",
            "application/x-www-form-urlencoded; x=\"Application/JSON\"",
            "application/json; application/graphql",
            "application/json;multipart/form-data",
            "text/plain; x=application/x-www-form-urlencoded",
            "application/x-www-form-urlencodedx",
            "xmultipart/form-data",
        ] {
            assert_eq!(read(&[kind]), None, "{kind}");
        }
        assert_eq!(read(&["application/json", "application/x-www-form-urlencoded"]), None);
        assert_eq!(read(&["application/json; a=b", "application/x-www-form-urlencoded"]), None);
    }

    #[test]
    fn character_sets_other_than_utf_8_are_refused() {
        for name in ["utf-7", "UTF-16", "utf-16le", "utf-32", "ibm037", "shift_jis", "gbk", "utf-8 utf-7", "\\utf-7"] {
            for parameter in [
                format!("charset={name}"),
                format!("Charset = \"{name}\""),
                format!("charset='{name}'"),
                format!("charset=utf-8; charset={name}"),
                format!("a=b, charset={name}"),
                format!("a=\"; charset={name}"),
            ] {
                let kind = format!("application/json; {parameter}");
                assert_eq!(read(&[&kind]), None, "{kind}");
            }
        }
        assert_eq!(read(&["application/json; charset*=utf-8''utf-7"]), None);
    }

    #[test]
    fn forms_do_not_begin_as_json() {
        for body in ["{", " \r\n\t[1]", "\u{feff} {}", "\u{b}\0{"] {
            assert!(begins_as_json(body.as_bytes()), "{body:?}");
        }
        for body in ["", " ", "query={a}", "a[]=1", "%7B=1"] {
            assert!(!begins_as_json(body.as_bytes()), "{body:?}");
        }
    }
}
