//! What an exclusion takes from a rule: `ARGS:content`.

use std::fmt;

use seclang::vocabulary::{Shape, Variable};

use crate::samples;

/// The variable that has a member, the method, in targets alone.
const METHOD: &str = "REQUEST_METHOD";

/// A collection, or one member of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    /// In capitals: `ARGS`.
    pub(crate) collection: String,
    /// The member; `None` for all of them.
    pub(crate) member: Option<Vec<u8>>,
}

impl Target {
    /// Reads a target as matches and exclusions write it: `ARGS:content`, `ARGS:'a b'`, `XML:/*`, `REQUEST_BODY`, and `REQUEST_METHOD:PUT`, which
    /// rules have no form for. `None` if there is no such collection, or if the target names members by a pattern, which has no input of its own.
    pub(crate) fn parse(text: &[u8]) -> Option<Target> {
        let (name, member) = match text.iter().position(|byte| *byte == b':') {
            Some(at) => (text.get(..at)?, Some(text.get(at + 1..)?.trim_ascii())),
            None => (text, None),
        };
        let variable = Variable::from_name(std::str::from_utf8(name.trim_ascii()).ok()?)?;
        let quoted = member.and_then(|member| member.strip_prefix(b"'")?.strip_suffix(b"'"));
        let member = quoted.or(member);
        let is_pattern = |member: &[u8]| member.len() > 1 && member.starts_with(b"/") && member.ends_with(b"/");
        let is_none = |member: &[u8]| member.is_empty() || variable != Variable::Xml && is_pattern(member);
        let is_method =
            |member: &[u8]| variable == Variable::RequestMethod && samples::target::Target::of_method(member).is_some();
        // Only a collection has members.
        let has_none = |member: &[u8]| variable.shape() == Shape::Scalar && !is_method(member);
        if member.is_some_and(|member| is_none(member) || has_none(member)) {
            return None;
        }
        Some(Target { collection: variable.name().to_owned(), member: member.map(<[u8]>::to_vec) })
    }

    /// The method, of a target that is one: rules name all methods alone, so an exclusion has to ask for it.
    pub(crate) fn method(&self) -> Option<&str> {
        let method = self.member.as_deref().filter(|_| self.collection == METHOD)?;
        std::str::from_utf8(method).ok()
    }

    /// The name that the engine reports where a rule has matched at it.
    pub(crate) fn reported(&self) -> String {
        if self.method().is_some() { self.collection.clone() } else { self.to_string() }
    }

    /// As rules write it; `None` for a member with characters that have a meaning there.
    pub(crate) fn written(&self) -> Option<String> {
        if self.method().is_some() {
            return Some(self.collection.clone());
        }
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.[]$@".contains(byte);
        // The two that rules have for all texts and all attributes.
        if self.collection == "XML" && matches!(self.member.as_deref(), Some(b"/*" | b"//@*")) {
            return Some(self.to_string());
        }
        self.member.as_ref().is_none_or(|member| member.iter().all(is_plain)).then(|| self.to_string())
    }

    /// Whether a member of that name is meant, which all members are where none is named. The case of names does not count in rules.
    pub(crate) fn covers(&self, name: &[u8]) -> bool {
        self.member.as_deref().is_none_or(|member| member.eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.collection)?;
        self.member.as_deref().map_or(Ok(()), |member| write!(f, ":{}", String::from_utf8_lossy(member)))
    }
}

/// Whether the full name of a variable is an input of clients that gateways sample, so that an exclusion can be written against it.
pub(crate) fn is_input(name: &str) -> bool {
    samples::target::Target::read(name.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_with_a_meaning_in_rules_are_not_written() {
        let written = |name: &str| Target::parse(name.as_bytes()).unwrap().written();
        assert_eq!(written("ARGS:json.items.0[]"), Some("ARGS:json.items.0[]".to_owned()));
        assert_eq!(written("XML:/*").zip(written("XML://@*")), Some(("XML:/*".to_owned(), "XML://@*".to_owned())));
        assert_eq!(written("REQUEST_BODY"), Some("REQUEST_BODY".to_owned()));
        for name in ["ARGS:a b", "ARGS:a|b", "ARGS:a,b", "ARGS:a\"", "ARGS:\u{e4}", "XML:/a/b"] {
            assert_eq!(written(name), None, "{name}");
        }
        assert!(is_input("ARGS:content") && !is_input("TX:score"));
        let method = Target::parse(b"REQUEST_METHOD:PUT").unwrap();
        assert_eq!((method.written(), method.method()), (Some("REQUEST_METHOD".to_owned()), Some("PUT")));
        assert_eq!(
            (method.to_string(), method.reported()),
            ("REQUEST_METHOD:PUT".to_owned(), "REQUEST_METHOD".to_owned())
        );
    }

    fn read(text: &str) -> Option<(String, Option<String>)> {
        let target = Target::parse(text.as_bytes())?;
        let member = target.member.map(|member| String::from_utf8(member).unwrap());
        Some((target.collection, member))
    }

    #[test]
    fn collections_and_members_are_read() {
        let some = |collection: &str, member: Option<&str>| Some((collection.to_owned(), member.map(str::to_owned)));
        for (text, expected) in [
            ("ARGS", some("ARGS", None)),
            ("args:content", some("ARGS", Some("content"))),
            ("ARGS:json.items.array_0.name", some("ARGS", Some("json.items.array_0.name"))),
            ("ARGS:a:b", some("ARGS", Some("a:b"))),
            ("ARGS:'a b'", some("ARGS", Some("a b"))),
            ("ARGS:/", some("ARGS", Some("/"))),
            ("REQUEST_HEADERS:User-Agent", some("REQUEST_HEADERS", Some("User-Agent"))),
            ("XML:/*", some("XML", Some("/*"))),
            ("XML://@*", some("XML", Some("//@*"))),
            ("REQUEST_BODY", some("REQUEST_BODY", None)),
            ("REQUEST_PATH", some("REQUEST_FILENAME", None)),
            ("REQUEST_METHOD", some("REQUEST_METHOD", None)),
            ("REQUEST_METHOD:PUT", some("REQUEST_METHOD", Some("PUT"))),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for text in [
            "REQUEST_METHOD:GET",
            "REQUEST_METHOD:",
            "REQUEST_LINE:PUT",
            "",
            "ARG",
            "ARGS:",
            "ARGS:''",
            "ARGS:/^a/",
            "ARGS:'/^a/'",
            "REQUEST_BODY:a",
            "!ARGS:a",
            "&ARGS",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(Target::parse(b"ARGS:\xff\x00").unwrap().member.unwrap(), b"\xff\x00");
    }

    #[test]
    fn members_are_covered_in_any_case() {
        let covers = |target: &str, name: &str| Target::parse(target.as_bytes()).unwrap().covers(name.as_bytes());
        assert!(covers("ARGS:Content", "content") && covers("ARGS", "content"));
        assert!(!covers("ARGS:content", "contents"));
        assert_eq!(Target::parse(b"args:a b").unwrap().to_string(), "ARGS:a b");
    }
}
