//! Declared paths.

use std::borrow::Cow;

use crate::shape::Identifier;
use crate::spelling::decoded;

/// The longest template, in bytes.
pub(crate) const MAX_TEMPLATE: usize = 512;
/// The most segments of a template.
const MAX_PARTS: usize = 32;

/// A template such as `/api/orders/{id}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
    /// Anything may follow behind a segment that begins so; `None` where nothing may follow.
    open: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Without escapes; its case does not matter.
    Literal(Vec<u8>),
    Parameter,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_TEMPLATE {
            return Err(format!("a template has at most {MAX_TEMPLATE} bytes"));
        }
        let Some(path) = text.strip_prefix('/') else { return Err("a template begins with a slash".to_owned()) };
        let closed = path.strip_suffix('*');
        if closed.unwrap_or(path).contains('*') {
            return Err("a `*` stands at the end alone".to_owned());
        }
        let mut segments: Vec<&str> = closed.unwrap_or(path).split('/').collect();
        // What stands in front of the `*` is the beginning of a segment, unless it is a whole parameter.
        let open = match closed {
            Some(_) if segments.last().is_some_and(|last| !last.contains(['{', '}'])) => segments.pop().map(literal),
            Some(_) => Some(Vec::new()),
            None => None,
        };
        let parts = segments.into_iter().filter(|segment| !segment.is_empty()).map(part);
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        if parts.len() > MAX_PARTS {
            return Err(format!("a template has at most {MAX_PARTS} segments"));
        }
        if open.is_none() && !parts.contains(&Part::Parameter) {
            return Err("no part of the path names an object".to_owned());
        }
        Ok(Self { parts, open })
    }

    /// The identifiers of the object, if a path matches.
    pub(crate) fn find<'p>(&self, segments: &'p [Cow<'_, [u8]>]) -> Option<Vec<Identifier<'p>>> {
        let (own, rest) = segments.split_at_checked(self.parts.len())?;
        let fits = |(part, segment): (&Part, &Cow<'_, [u8]>)| match part {
            Part::Literal(literal) => literal.eq_ignore_ascii_case(segment),
            Part::Parameter => true,
        };
        if !self.parts.iter().zip(own).all(fits) {
            return None;
        }
        match &self.open {
            None if rest.is_empty() => {}
            None => return None,
            Some(prefix) => {
                let begins = rest.first().map_or(&b""[..], AsRef::as_ref);
                if !begins.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix)) {
                    return None;
                }
            }
        }
        let named = self.parts.iter().zip(own).filter(|(part, _)| **part == Part::Parameter);
        let mut identifiers: Vec<Identifier<'p>> = named.map(|(_, segment)| Identifier::any(segment)).collect();
        if identifiers.is_empty() {
            // What the `*` stands for names the object then.
            identifiers = rest.iter().map(|segment| Identifier::any(segment)).collect();
        }
        (!identifiers.is_empty()).then_some(identifiers)
    }

    /// The kind in the form in which detected paths have it.
    pub(crate) fn kind(&self) -> Vec<u8> {
        let mut kind = Vec::new();
        for part in &self.parts {
            kind.push(b'/');
            match part {
                Part::Literal(literal) => kind.extend(literal.to_ascii_lowercase()),
                Part::Parameter => kind.extend(b"{id}"),
            }
        }
        if let Some(prefix) = &self.open {
            kind.push(b'/');
            kind.extend(prefix.to_ascii_lowercase());
            kind.push(b'*');
        }
        kind
    }
}

fn part(segment: &str) -> Result<Part, String> {
    match segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}')) {
        Some(name) if !name.is_empty() && !name.contains(['{', '}']) => Ok(Part::Parameter),
        _ if segment.contains(['{', '}']) => Err("a `{name}` is a whole segment".to_owned()),
        _ => Ok(Part::Literal(literal(segment))),
    }
}

fn literal(text: &str) -> Vec<u8> {
    decoded(text.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spelling::Spelling;

    fn find(template: &str, path: &str) -> Option<String> {
        let template = Template::parse(template).unwrap();
        let spelling = Spelling::of(path.as_bytes()).unwrap();
        let found = template.find(spelling.strict())?;
        Some(found.iter().map(|id| String::from_utf8_lossy(&id.bytes).into_owned()).collect::<Vec<_>>().join("/"))
    }

    #[test]
    fn each_name_is_one_segment_and_a_star_is_anything() {
        for (template, path, expected) in [
            ("/api/orders/{id}", "/api/orders/42", Some("42")),
            ("/api/orders/{id}", "/API/Orders/042/", Some("42")),
            ("/api/orders/{id}", "/api/orders/x-1", Some("x-1")),
            ("/api/orders/{id}", "/api/orders", None),
            ("/api/orders/{id}", "/api/orders/42/lines", None),
            ("/api/orders/{id}", "/v1/api/orders/42", None),
            ("/api/orders/{id}*", "/api/orders/42", Some("42")),
            ("/api/orders/{id}*", "/api/orders/42/lines/7", Some("42")),
            ("/api/orders/{id}/*", "/api/orders/42/lines", Some("42")),
            ("/api/orders/{id}/*", "/api/orders/42", Some("42")),
            ("/u/{user}/o/{order}", "/u/7/o/9", Some("7/9")),
            ("/files/*", "/files/a/b", Some("a/b")),
            ("/files/*", "/files/", None),
            ("/files/inv*", "/files/INV-7", Some("INV-7")),
            ("/files/inv*", "/files/other", None),
            ("/caf%C3%A9/{id}", "/caf%c3%a9/1", Some("1")),
            ("/{id}", "/1", Some("1")),
            ("/*", "/1/2", Some("1/2")),
        ] {
            assert_eq!(find(template, path).as_deref(), expected, "{template} {path}");
        }
    }

    #[test]
    fn a_template_that_names_nothing_is_refused() {
        let long = ["/", &"x".repeat(MAX_TEMPLATE), "/{id}"].concat();
        let deep = ["/a".repeat(MAX_PARTS), "/{id}".to_owned()].concat();
        for wrong in [
            "",
            "orders/{id}",
            "/orders",
            "/",
            "/a*b/{id}",
            "/a/{id",
            "/a/{}",
            "/a/x{id}",
            "/a/{id}.json",
            "/a/{a{b}}",
            &long,
            &deep,
        ] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn kinds_have_the_form_of_detected_ones() {
        let kind = |text| String::from_utf8(Template::parse(text).unwrap().kind()).unwrap();
        assert_eq!(kind("/API/orders/{order}/"), "/api/orders/{id}");
        assert_eq!((kind("/a/{x}*"), kind("/a/b*")), ("/a/{id}/*".to_owned(), "/a/b*".to_owned()));
    }
}
