//! The input that a match names, where an exclusion can be written against it.

use seclang::vocabulary::Variable;
use seclang::{REST_OF_BODY, Transaction};

use super::messages::MAX_TEXT;
use super::names::is_secret;

/// Names of arguments that the engine gives to text that has no name. What they hold may be any part of the body.
const UNNAMED: [&[u8]; 3] = [REST_OF_BODY, b"body_as_sent", b"file_content"];
/// The longest name of an argument, in bytes; no exclusion covers a longer one.
pub(super) const MAX_ARGUMENT: usize = 256;
/// Methods by which programs use an application, as targets (the registry of RFC 9110, section 16.1, without those of a browser, and without
/// `TRACE` and `CONNECT`, which no application takes). Names that callers make up are no targets: each would be a key of its own.
const METHODS: [&str; 16] = [
    "REQUEST_METHOD:ACL",
    "REQUEST_METHOD:COPY",
    "REQUEST_METHOD:DELETE",
    "REQUEST_METHOD:LOCK",
    "REQUEST_METHOD:MKCALENDAR",
    "REQUEST_METHOD:MKCOL",
    "REQUEST_METHOD:MOVE",
    "REQUEST_METHOD:PATCH",
    "REQUEST_METHOD:PROPFIND",
    "REQUEST_METHOD:PROPPATCH",
    "REQUEST_METHOD:PUT",
    "REQUEST_METHOD:QUERY",
    "REQUEST_METHOD:REPORT",
    "REQUEST_METHOD:SEARCH",
    "REQUEST_METHOD:UNLOCK",
    "REQUEST_METHOD:VERSION-CONTROL",
];

/// Where the value of a match comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input<'t> {
    /// An argument of this name.
    Argument(&'t [u8]),
    /// A cookie.
    Cookie(&'t [u8]),
    /// A header.
    Header(&'t [u8]),
    /// A name itself, the name of a file, or the number of values in a collection.
    Name(&'t [u8]),
    /// The target of the request, or a part of it.
    Uri,
    /// The body.
    Body,
    /// Any part of the body.
    Unnamed,
    /// The method.
    Method,
}

/// The input of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'t> {
    /// As it stands in exclusions: `ARGS:content`.
    pub(super) text: &'t str,
    pub(super) input: Input<'t>,
}

impl<'t> Target<'t> {
    /// The target of the full name of a variable. `None` if no exclusion can be written against it, or if the name is no text to
    /// be stored: too long, not printable, or text that holds more than a name.
    pub(crate) fn read(variable: &'t [u8]) -> Option<Self> {
        let text = std::str::from_utf8(variable).ok().filter(|text| text.len() <= MAX_TEXT)?;
        let (collection, name) = match text.split_once(':') {
            Some((collection, name)) => (collection, Some(name.as_bytes())),
            None => (text, None),
        };
        let key = name.unwrap_or_default();
        let input = match (collection, name) {
            ("ARGS" | "ARGS_GET" | "ARGS_POST", Some(_)) if UNNAMED.contains(&key) => Input::Unnamed,
            ("ARGS" | "ARGS_GET" | "ARGS_POST", Some(_)) if key.len() <= MAX_ARGUMENT => Input::Argument(key),
            ("ARGS" | "ARGS_GET" | "ARGS_POST", Some(_)) => return None,
            ("REQUEST_COOKIES", Some(_)) => Input::Cookie(key),
            ("REQUEST_HEADERS", Some(_)) => Input::Header(key),
            ("ARGS" | "ARGS_GET" | "ARGS_POST" | "REQUEST_COOKIES" | "REQUEST_HEADERS", None) => Input::Name(key),
            ("ARGS_NAMES" | "ARGS_GET_NAMES" | "ARGS_POST_NAMES", _) => Input::Name(key),
            ("REQUEST_COOKIES_NAMES" | "REQUEST_HEADERS_NAMES" | "FILES" | "FILES_NAMES", _) => Input::Name(key),
            ("QUERY_STRING" | "REQUEST_URI" | "REQUEST_URI_RAW" | "REQUEST_LINE", None) => Input::Uri,
            ("REQUEST_FILENAME" | "REQUEST_BASENAME", None) => Input::Uri,
            ("REQUEST_BODY", None) | ("XML", _) => Input::Body,
            ("REQUEST_METHOD", None) => Input::Method,
            ("REQUEST_METHOD", Some(_)) if METHODS.contains(&text) => Input::Method,
            _ => return None,
        };
        // Text that an application does not read as a name may hold a secret itself: `{"password":"..."}` as a form.
        let odd: &[u8] = if is_secret(key) { b"\"'`{}<>&;=\\ :/,|" } else { b"\"'`{}<>&;=\\" };
        let is_name = !key.iter().any(|byte| odd.contains(byte));
        (is_name && !text.chars().any(is_unseen)).then_some(Self { text, input })
    }

    /// The target of a method, `REQUEST_METHOD:PUT`: a rule against methods is excluded for one of them. `None` for others than [`METHODS`].
    pub(crate) fn of_method(method: &[u8]) -> Option<Target<'static>> {
        let of_method = |text: &&&str| text.strip_prefix("REQUEST_METHOD:").map(str::as_bytes) == Some(method);
        METHODS.iter().find(of_method).map(|text| Target { text, input: Input::Method })
    }

    pub(crate) fn input(&self) -> Input<'t> {
        self.input
    }

    /// As it stands in exclusions: `ARGS:content`.
    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    /// The value of the input as it was read, where the request has it once; `None` for what is not a value with a name.
    pub(super) fn value<'v>(&self, transaction: &'v Transaction) -> Option<&'v [u8]> {
        match self.input {
            Input::Argument(name) => transaction.only_value(Variable::Args, name),
            Input::Cookie(name) => transaction.only_value(Variable::RequestCookies, name),
            Input::Header(name) => transaction.only_value(Variable::RequestHeaders, name),
            Input::Name(_) | Input::Uri | Input::Body | Input::Unnamed | Input::Method => None,
        }
    }

    /// Whether what matched is a secret by its name. `sanitised` are the further names of secrets.
    pub(super) fn is_secret(&self, sanitised: &[Vec<u8>]) -> bool {
        let named = |name: &[u8]| is_secret(name) || sanitised.iter().any(|other| other.eq_ignore_ascii_case(name));
        match self.input {
            Input::Argument(name) | Input::Cookie(name) => named(name),
            Input::Header(name) => named(name) || name.eq_ignore_ascii_case(b"cookie"),
            Input::Unnamed => true,
            Input::Name(_) | Input::Method => false,
            Input::Uri | Input::Body => sanitised.iter().any(|name| name.eq_ignore_ascii_case(self.text.as_bytes())),
        }
    }

    /// Whether a parameter of this name, its escapes undone, is the input.
    pub(super) fn is_argument(&self, name: &[u8]) -> bool {
        matches!(self.input, Input::Argument(argument) if argument.eq_ignore_ascii_case(name))
    }

    /// Whether a member of a JSON document of this name is the input or around it.
    pub(super) fn is_member(&self, name: &[u8]) -> bool {
        let is = |part: &[u8]| part.eq_ignore_ascii_case(name);
        matches!(self.input, Input::Argument(argument) if argument.split(|byte| *byte == b'.').any(is))
    }
}

/// Whether a character does not show, or changes the order in which others do: a name with it reads as another one.
pub(crate) fn is_unseen(letter: char) -> bool {
    let is_format = matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
    let is_mark = matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    letter.is_control() || is_format || is_mark || ('\u{e0000}'..='\u{e007f}').contains(&letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(variable: &str) -> Option<Input<'_>> {
        Target::read(variable.as_bytes()).map(|target| target.input)
    }

    #[test]
    fn inputs_that_an_exclusion_can_name_are_targets() {
        for (variable, expected) in [
            ("ARGS:content", Input::Argument(b"content")),
            ("ARGS_GET:a[0]", Input::Argument(b"a[0]")),
            ("ARGS_POST:json.user.name", Input::Argument(b"json.user.name")),
            ("ARGS_NAMES:password", Input::Name(b"password")),
            ("ARGS", Input::Name(b"")),
            ("REQUEST_COOKIES:sid", Input::Cookie(b"sid")),
            ("REQUEST_HEADERS:User-Agent", Input::Header(b"User-Agent")),
            ("FILES:upload", Input::Name(b"upload")),
            ("QUERY_STRING", Input::Uri),
            ("REQUEST_LINE", Input::Uri),
            ("REQUEST_BODY", Input::Body),
            ("XML:/*", Input::Body),
            ("ARGS:rest_of_body", Input::Unnamed),
            ("ARGS:über", Input::Argument("über".as_bytes())),
            ("ARGS_NAMES:ctl00$Main$txt, a|b", Input::Name(b"ctl00$Main$txt, a|b")),
            ("REQUEST_METHOD", Input::Method),
            ("REQUEST_METHOD:PUT", Input::Method),
        ] {
            assert_eq!(input(variable), Some(expected), "{variable}");
        }
    }

    #[test]
    fn methods_that_programs_use_are_targets() {
        let of = |method: &str| Target::of_method(method.as_bytes()).map(|target| target.text);
        assert_eq!(
            (of("PUT"), of("VERSION-CONTROL")),
            (Some("REQUEST_METHOD:PUT"), Some("REQUEST_METHOD:VERSION-CONTROL"))
        );
        for method in ["", "GET", "POST", "TRACE", "CONNECT", "put", "PUTT", "XYZ"] {
            assert_eq!(of(method), None, "{method}");
        }
        assert!(METHODS.iter().all(|text| Target::read(text.as_bytes()).is_some_and(|one| one.input == Input::Method)));
    }

    #[test]
    fn everything_else_is_none() {
        let long = format!("ARGS:{}", "a".repeat(257));
        for variable in [
            "",
            "TX:anomaly_score",
            "RESPONSE_BODY",
            "RESPONSE_HEADERS:server",
            "MATCHED_VAR",
            "IP:logins",
            "REQUEST_METHOD:GET",
            "REQUEST_METHOD:XYZ",
            "REQUEST_METHOD:",
            "ARGS:{\"password\":\"hunter2\"}",
            "ARGS_NAMES:password: hunter2",
            "ARGS:a\nb",
            "ARGS:\u{202e}egap",
            "ARGS:pa\u{200b}ge",
            "ARGS:page\u{2028}",
            &long,
        ] {
            assert_eq!(input(variable), None, "{variable}");
        }
        assert_eq!(Target::read(b"ARGS:\xff"), None);
        assert_eq!(input(&format!("REQUEST_HEADERS:{}", "a".repeat(512))), None);
    }

    #[test]
    fn a_target_is_a_secret_by_its_name() {
        let secret = |variable: &str, sanitised: &[&str]| {
            let sanitised: Vec<Vec<u8>> = sanitised.iter().map(|name| name.as_bytes().to_vec()).collect();
            Target::read(variable.as_bytes()).unwrap().is_secret(&sanitised)
        };
        for variable in ["ARGS:password[]", "REQUEST_HEADERS:Cookie", "REQUEST_COOKIES:sid", "ARGS:body_as_sent"] {
            assert!(secret(variable, &[]), "{variable}");
        }
        for variable in ["ARGS_NAMES:password", "ARGS:q", "REQUEST_BODY", "QUERY_STRING", "REQUEST_HEADERS:referer"] {
            assert!(!secret(variable, &["other"]), "{variable}");
        }
        assert!(secret("ARGS:Note", &["note"]) && secret("REQUEST_BODY", &["request_body"]));
    }
}
