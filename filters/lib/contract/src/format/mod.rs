//! Formats of texts and numbers (JSON Schema 2020-12 validation, section 7.3; the OpenAPI format registry).

mod net;
mod time;
mod uri;

use crate::number::Number;

/// A format that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Format {
    Date = 1,
    DateTime,
    Time,
    Duration,
    Email,
    IdnEmail,
    Hostname,
    IdnHostname,
    Ipv4,
    Ipv6,
    Uri,
    UriReference,
    Iri,
    IriReference,
    UriTemplate,
    Uuid,
    JsonPointer,
    RelativeJsonPointer,
    Regex,
    Byte,
    Int32,
    Int64,
    Float,
    Double,
    Int8,
    Int16,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Char,
}

impl Format {
    const ALL: [(&'static str, Self); 31] = [
        ("date", Self::Date),
        ("date-time", Self::DateTime),
        ("time", Self::Time),
        ("duration", Self::Duration),
        ("email", Self::Email),
        ("idn-email", Self::IdnEmail),
        ("hostname", Self::Hostname),
        ("idn-hostname", Self::IdnHostname),
        ("ipv4", Self::Ipv4),
        ("ipv6", Self::Ipv6),
        ("uri", Self::Uri),
        ("uri-reference", Self::UriReference),
        ("iri", Self::Iri),
        ("iri-reference", Self::IriReference),
        ("uri-template", Self::UriTemplate),
        ("uuid", Self::Uuid),
        ("json-pointer", Self::JsonPointer),
        ("relative-json-pointer", Self::RelativeJsonPointer),
        ("regex", Self::Regex),
        ("byte", Self::Byte),
        ("int32", Self::Int32),
        ("int64", Self::Int64),
        ("float", Self::Float),
        ("double", Self::Double),
        ("int8", Self::Int8),
        ("int16", Self::Int16),
        ("uint8", Self::Uint8),
        ("uint16", Self::Uint16),
        ("uint32", Self::Uint32),
        ("uint64", Self::Uint64),
        ("char", Self::Char),
    ];

    /// The format of a name; `None` for one that checks nothing.
    #[cfg(feature = "compile")]
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// The format of a number of a record.
    pub(crate) fn numbered(number: u32) -> Option<Self> {
        Self::ALL.iter().map(|(_, format)| *format).find(|format| *format as u32 == number)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| *name)
    }

    /// Whether a text has it. Formats of numbers take every text.
    pub(crate) fn takes_text(self, text: &[u8]) -> bool {
        match self {
            Self::Date => time::is_date(text),
            Self::DateTime => time::is_date_time(text),
            Self::Time => time::is_time(text),
            Self::Duration => time::is_duration(text),
            Self::Email => net::is_email(text, false),
            Self::IdnEmail => net::is_email(text, true),
            Self::Hostname => net::is_hostname(text),
            Self::IdnHostname => net::is_idn_hostname(text),
            Self::Ipv4 => net::is_ipv4(text),
            Self::Ipv6 => net::is_ipv6(text),
            Self::Uri => uri::is_uri(text, false),
            Self::UriReference => uri::is_reference(text, false),
            Self::Iri => uri::is_uri(text, true),
            Self::IriReference => uri::is_reference(text, true),
            Self::UriTemplate => uri::is_template(text),
            Self::Uuid => is_uuid(text),
            Self::JsonPointer => is_pointer(text),
            Self::RelativeJsonPointer => is_relative_pointer(text),
            Self::Regex => crate::pattern::is_pattern(text),
            Self::Byte => is_base64(text),
            Self::Char => std::str::from_utf8(text).is_ok_and(|text| text.chars().count() == 1),
            _ => true,
        }
    }

    /// Whether a number has it. Formats of texts take every number.
    pub(crate) fn takes_number(self, number: Number) -> bool {
        let whole = |low, high| number.is_integer() && number.is_within(low, high);
        match self {
            Self::Int32 => whole(i64::from(i32::MIN), i64::from(i32::MAX)),
            Self::Int64 => whole(i64::MIN, i64::MAX),
            Self::Int8 => whole(-128, 127),
            Self::Int16 => whole(-32768, 32767),
            Self::Uint8 => whole(0, 255),
            Self::Uint16 => whole(0, 65535),
            Self::Uint32 => whole(0, i64::from(u32::MAX)),
            Self::Uint64 => {
                let top = Number::read(b"18446744073709551615");
                let zero = Number::read(b"0");
                number.is_integer()
                    && top.is_none_or(|top| number.compare(top).is_le())
                    && zero.is_none_or(|zero| number.compare(zero).is_ge())
            }
            Self::Float => within_magnitude(number, b"3.4028235677973366e38"),
            Self::Double => within_magnitude(number, b"1.7976931348623158e308"),
            _ => true,
        }
    }
}

fn within_magnitude(number: Number, limit: &[u8]) -> bool {
    let negative = [b"-", limit].concat();
    Number::read(limit).is_none_or(|high| number.compare(high).is_le())
        && Number::read(&negative).is_none_or(|low| number.compare(low).is_ge())
}

/// RFC 9562, section 4.
fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// RFC 6901, section 3.
fn is_pointer(text: &[u8]) -> bool {
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        if *byte == b'~' && !matches!(bytes.peek(), Some(b'0' | b'1')) {
            return false;
        }
    }
    text.is_empty() || text.starts_with(b"/")
}

/// draft-bhutton-relative-json-pointer.
fn is_relative_pointer(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = text.get(digits..).unwrap_or_default();
    digits > 0 && (digits == 1 || !text.starts_with(b"0")) && (rest == b"#" || is_pointer(rest))
}

/// RFC 4648, section 4; padding may be left out.
fn is_base64(text: &[u8]) -> bool {
    let body = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let padding = text.len() - body;
    let plain = text.iter().take(body).all(|byte| byte.is_ascii_alphanumeric() || *byte == b'+' || *byte == b'/');
    plain && padding <= 2 && body % 4 != 1 && (padding == 0 || text.len().is_multiple_of(4))
}
