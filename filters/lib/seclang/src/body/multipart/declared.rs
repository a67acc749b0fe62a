//! What a part says that it is.

/// A type of a part that applications read as a message of its own, whether or not the part has a filename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// `application/json` or any other `+json`.
    Json,
    /// `application/xml`, `text/xml` or any other `+xml`, but for images: those are shown.
    Xml,
    /// `application/x-www-form-urlencoded`.
    Form,
}

impl Declared {
    /// What the value of a part's `Content-Type` declares.
    pub(crate) fn of(content_type: &[u8]) -> Option<Self> {
        let end = content_type.iter().position(|byte| matches!(byte, b';' | b','));
        let kind = content_type.get(..end.unwrap_or(content_type.len())).unwrap_or_default();
        let kind = kind.trim_ascii().to_ascii_lowercase();
        match kind.as_slice() {
            b"application/x-www-form-urlencoded" => Some(Self::Form),
            kind if kind.ends_with(b"/json") || kind.ends_with(b"+json") => Some(Self::Json),
            kind if kind.starts_with(b"image/") => None,
            kind if kind.ends_with(b"/xml") || kind.ends_with(b"+xml") => Some(Self::Xml),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_messages_are_known() {
        let cases: [(&[u8], _); 9] = [
            (b"application/json", Some(Declared::Json)),
            (b"Application/JSON;charset=utf-8", Some(Declared::Json)),
            (b"application/vnd.api+json ", Some(Declared::Json)),
            (b"text/xml", Some(Declared::Xml)),
            (b"application/soap+xml; a=b", Some(Declared::Xml)),
            (b"application/x-www-form-urlencoded", Some(Declared::Form)),
            (b"image/svg+xml", None),
            (b"application/octet-stream", None),
            (b"", None),
        ];
        for (content_type, expected) in cases {
            assert_eq!(Declared::of(content_type), expected, "{}", content_type.escape_ascii());
        }
    }
}
