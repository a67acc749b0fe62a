//! URIs (RFC 3986), IRIs (RFC 3987), templates (RFC 6570).

/// Whether all of a text are bytes of a set or percent escapes.
fn all(text: &[u8], extra: &[u8], international: bool) -> bool {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let right = match byte {
            b'%' => {
                matches!((bytes.next(), bytes.next()), (Some(one), Some(two)) if one.is_ascii_hexdigit() && two.is_ascii_hexdigit())
            }
            byte if byte.is_ascii() => {
                byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte) || extra.contains(byte)
            }
            _ => international,
        };
        if !right {
            return false;
        }
    }
    true
}

fn is_scheme(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// A URI with a scheme.
pub(super) fn is_uri(text: &[u8], international: bool) -> bool {
    let Some(colon) = text.iter().position(|byte| *byte == b':') else { return false };
    is_scheme(text.get(..colon).unwrap_or_default())
        && is_relative(text.get(colon + 1..).unwrap_or_default(), international)
}

/// A URI, or a reference relative to one.
pub(super) fn is_reference(text: &[u8], international: bool) -> bool {
    if is_uri(text, international) {
        return true;
    }
    // The first segment of a relative path has no colon (section 4.2).
    let first = text.split(|byte| b"/?#".contains(byte)).next().unwrap_or_default();
    !first.contains(&b':') && is_relative(text, international)
}

fn is_relative(text: &[u8], international: bool) -> bool {
    let (rest, fragment) = split(text, b'#');
    let (path, query) = split(rest, b'?');
    let tail = |part: Option<&[u8]>| part.is_none_or(|part| all(part, b":@/?", international));
    if !tail(fragment) || !tail(query) {
        return false;
    }
    match path.strip_prefix(b"//") {
        Some(rest) => {
            let (authority, path) = match rest.iter().position(|byte| *byte == b'/') {
                Some(at) => rest.split_at_checked(at).unwrap_or((rest, b"")),
                None => (rest, b"".as_slice()),
            };
            is_authority(authority, international) && all(path, b":@/", international)
        }
        None => all(path, b":@/", international),
    }
}

fn split(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == at) {
        Some(place) => (text.get(..place).unwrap_or_default(), text.get(place + 1..)),
        None => (text, None),
    }
}

fn is_authority(text: &[u8], international: bool) -> bool {
    let (user, host) = match text.iter().rposition(|byte| *byte == b'@') {
        Some(at) => (text.get(..at), text.get(at + 1..).unwrap_or_default()),
        None => (None, text),
    };
    let (host, port) = match host.strip_prefix(b"[") {
        Some(rest) => {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else { return false };
            let address = rest.get(..end).unwrap_or_default();
            let future = address.strip_prefix(b"v").or_else(|| address.strip_prefix(b"V"));
            let future = future.is_some_and(|future| future.contains(&b'.') && all(future, b":", false));
            if !super::net::is_ipv6(address) && !future {
                return false;
            }
            let behind = rest.get(end + 1..).unwrap_or_default();
            if !behind.is_empty() && !behind.starts_with(b":") {
                return false;
            }
            (b"".as_slice(), behind.get(1..))
        }
        None => split(host, b':'),
    };
    user.is_none_or(|user| all(user, b":", international))
        && all(host, b"", international)
        && port.is_none_or(|port| port.iter().all(u8::is_ascii_digit))
}

/// A template.
pub(super) fn is_template(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'{' => {
                let Some(end) = rest.iter().position(|byte| *byte == b'}') else { return false };
                if !is_expression(rest.get(..end).unwrap_or_default()) {
                    return false;
                }
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            b'}' | b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'|' => return false,
            b'%' if !rest.get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) => return false,
            byte if byte.is_ascii_control() => return false,
            _ => {}
        }
    }
    true
}

fn is_expression(text: &[u8]) -> bool {
    let names = match text.split_first() {
        Some((byte, rest)) if b"+#./;?&=,!@|".contains(byte) => rest,
        _ => text,
    };
    names.split(|byte| *byte == b',').all(|spec| {
        let spec = spec.strip_suffix(b"*").unwrap_or(spec);
        let (name, prefix) = split(spec, b':');
        let prefix_right = prefix.is_none_or(|prefix| {
            (1..=4).contains(&prefix.len()) && !prefix.starts_with(b"0") && prefix.iter().all(u8::is_ascii_digit)
        });
        let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.%".contains(byte);
        let parts = name.split(|byte| *byte == b'.').all(|part| !part.is_empty());
        prefix_right && parts && name.iter().all(letter)
    })
}
