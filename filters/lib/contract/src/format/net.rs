//! Addresses: of hosts, of networks, of people.

/// `hostname` (RFC 1123, section 2.1). Labels that begin with `xn--` are taken as they are.
pub(super) fn is_hostname(text: &[u8]) -> bool {
    let label = |label: &[u8]| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        let prefix = label.get(..4).unwrap_or_default();
        let hyphens = label.get(2..4) == Some(b"--") && !prefix.eq_ignore_ascii_case(b"xn--");
        let bare = prefix.eq_ignore_ascii_case(b"xn--") && label.len() == 4;
        (1..=63).contains(&label.len())
            && label.iter().all(plain)
            && !label.starts_with(b"-")
            && !label.ends_with(b"-")
            && !hyphens
            && !bare
    };
    text.len() <= 253 && text.split(|byte| *byte == b'.').all(label)
}

/// `idn-hostname` (RFC 5890), without the tables of characters of RFC 5892: letters of all scripts are taken.
pub(super) fn is_idn_hostname(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let dots = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];
    text.chars().count() <= 253
        && text.split(dots).all(|label| {
            let plain = |character: char| {
                character.is_ascii_alphanumeric()
                    || character == '-'
                    || (!character.is_ascii() && !character.is_whitespace())
            };
            let units: Vec<char> = label.chars().collect();
            let hyphens = units.get(2..4) == Some(&['-', '-']) && !label.to_ascii_lowercase().starts_with("xn--");
            (1..=63).contains(&units.len())
                && units.iter().copied().all(plain)
                && !label.starts_with('-')
                && !label.ends_with('-')
                && !hyphens
        })
}

/// `ipv4` (RFC 2673, section 3.2).
pub(super) fn is_ipv4(text: &[u8]) -> bool {
    let part = |part: &[u8]| {
        let value = std::str::from_utf8(part).ok().and_then(|part| part.parse::<u8>().ok());
        part.iter().all(u8::is_ascii_digit) && value.is_some() && (part.len() == 1 || !part.starts_with(b"0"))
    };
    text.split(|byte| *byte == b'.').count() == 4 && text.split(|byte| *byte == b'.').all(part)
}

/// `ipv6` (RFC 4291, section 2.2), without a zone.
pub(super) fn is_ipv6(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
}

/// `email` (RFC 5321, section 4.1.2), `idn-email` (RFC 6531).
pub(super) fn is_email(text: &[u8], international: bool) -> bool {
    let Some(at) = text.iter().rposition(|byte| *byte == b'@') else { return false };
    let (local, host) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
    let letter = |byte: &u8| {
        byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(byte) || (international && !byte.is_ascii())
    };
    let quoted = |text: &[u8]| {
        let mut bytes = text.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' if bytes.next().is_none() => return false,
                b'\\' => {}
                b'"' => return false,
                byte if byte.is_ascii_control() || (!byte.is_ascii() && !international) => return false,
                _ => {}
            }
        }
        true
    };
    let inner = local.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let local_right = match inner {
        Some(inner) => quoted(inner),
        None => local.split(|byte| *byte == b'.').all(|atom| !atom.is_empty() && atom.iter().all(letter)),
    };
    let address = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    let host_right = match address {
        Some(address) => address.strip_prefix(b"IPv6:").map_or_else(|| is_ipv4(address), is_ipv6),
        None if international => is_idn_hostname(host),
        None => is_hostname(host),
    };
    local_right && host_right
}
