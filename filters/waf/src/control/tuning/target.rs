//! The inputs that exclusions are written against.

/// The collections of inputs: what a client sends.
const INPUTS: [&str; 20] = [
    "ARGS",
    "ARGS_GET",
    "ARGS_GET_NAMES",
    "ARGS_NAMES",
    "ARGS_POST",
    "ARGS_POST_NAMES",
    "FILES",
    "FILES_NAMES",
    "QUERY_STRING",
    "REQUEST_BASENAME",
    "REQUEST_BODY",
    "REQUEST_COOKIES",
    "REQUEST_COOKIES_NAMES",
    "REQUEST_FILENAME",
    "REQUEST_HEADERS",
    "REQUEST_HEADERS_NAMES",
    "REQUEST_LINE",
    "REQUEST_URI",
    "REQUEST_URI_RAW",
    "XML",
];

/// An input of a rule: `ARGS:content`, `REQUEST_BODY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// `ARGS`.
    pub(super) collection: String,
    /// `content`; `None` for all members, or where there are none.
    pub(super) member: Option<String>,
}

impl Target {
    /// Reads the full name of a variable; `None` for an empty one.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (collection, member) = match name.split_once(':') {
            Some((collection, member)) => (collection, Some(member.to_owned())),
            None => (name, None),
        };
        (!collection.is_empty()).then(|| Self { collection: collection.to_owned(), member })
    }

    /// Whether it is what a client sends, so that an exclusion can be written against it.
    pub(super) fn is_input(&self) -> bool {
        INPUTS.binary_search(&self.collection.as_str()).is_ok()
    }

    /// The full name.
    pub(super) fn full(&self) -> String {
        match &self.member {
            Some(member) => format!("{}:{member}", self.collection),
            None => self.collection.clone(),
        }
    }

    /// The full name as rules write it; `None` for a member with characters that have a meaning there.
    pub(super) fn written(&self) -> Option<String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.[]$@".contains(&byte);
        let is_writable = self.member.as_ref().is_none_or(|member| !member.is_empty() && member.bytes().all(is_plain));
        is_writable.then(|| self.full())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_inputs_are_read_and_written() {
        assert!(INPUTS.is_sorted());
        for name in ["ARGS:content", "REQUEST_BODY", "REQUEST_COOKIES:a:b", "ARGS:"] {
            let target = Target::parse(name).unwrap();
            assert_eq!((target.full().as_str(), target.is_input()), (name, true));
        }
        assert_eq!(Target::parse(""), None);
        assert!(
            ["TX:score", "RESPONSE_BODY", "MATCHED_VAR", "args:a"]
                .iter()
                .all(|name| !Target::parse(name).unwrap().is_input())
        );
        let written = |name| Target::parse(name).unwrap().written();
        assert_eq!(written("ARGS:json.items.0[]"), Some("ARGS:json.items.0[]".to_owned()));
        assert!(
            ["ARGS:a b", "ARGS:a|b", "ARGS:a,b", "ARGS:a\"", "ARGS:/x/", "ARGS:", "ARGS:ä"]
                .iter()
                .all(|name| written(name).is_none())
        );
    }
}
