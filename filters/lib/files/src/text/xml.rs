//! XML documents that run something in a browser: elements of XHTML, SVG and MathML in a document of any type.

use memchr::memmem;

use crate::Format;

/// The namespaces whose elements browsers show and run.
const XHTML: &[u8] = b"http://www.w3.org/1999/xhtml";
const SVG: &[u8] = b"http://www.w3.org/2000/svg";
const MATHML: &[u8] = b"http://www.w3.org/1998/math/mathml";
/// The elements that run or load something.
const ACTIVE: [&[u8]; 5] = [b"script", b"iframe", b"embed", b"object", b"handler"];
/// The most prefixes of one document that are told apart.
const MAX_PREFIXES: usize = 64;

/// What a document is to a browser that runs something of it; `None` if it runs nothing: it has elements of a page, and they are
/// scripts or frames, or have event handlers or URLs of scripts.
pub(super) fn active(text: &[u8]) -> Option<Format> {
    memmem::find(text, b"xmlns")?;
    let mut bound = Bound::default();
    for tag in (Tags { rest: text }) {
        tag.attributes().for_each(|(name, value)| bound.add(name, value));
    }
    let styled =
        memmem::find(text, b"<?xml-stylesheet").is_some() && memmem::find(text, b"1999/XSL/Transform").is_some();
    let names_page = [b"1999/xhtml".as_slice(), b"2000/svg"].iter().any(|name| memmem::find(text, name).is_some());
    // Attributes of the document type, and a style sheet that the document is itself, give elements another namespace.
    bound.all |= styled || names_page && memmem::find(text, b"<!ATTLIST").is_some();
    if !bound.all && !bound.any {
        return None;
    }
    let page = if bound.svg_only() { Format::ActiveSvg } else { Format::Html };
    if defines_markup(text) {
        return Some(page);
    }
    // Whether elements without a prefix are those of a page, for each element that is open.
    let mut open: Vec<bool> = Vec::new();
    for tag in (Tags { rest: text }) {
        if tag.closes() {
            open.pop();
            continue;
        }
        let outer = open.last().copied().unwrap_or(false);
        let own = tag.attributes().find(|(name, _)| *name == b"xmlns").map(|(_, value)| is_page(&plain(value)));
        let default = own.unwrap_or(outer);
        let (prefix, local) = parts(tag.name());
        let of_page = bound.all || if prefix.is_empty() { default } else { bound.prefixes.contains(&prefix) };
        if of_page && (ACTIVE.iter().any(|name| name.eq_ignore_ascii_case(local)) || tag.attributes().any(runs)) {
            return Some(page);
        }
        if !tag.is_empty() {
            open.push(default);
        }
    }
    None
}

/// Whether an attribute of any element is a URL of a script.
pub(super) fn has_script_url(text: &[u8]) -> bool {
    (Tags { rest: text }).any(|tag| tag.attributes().any(|(_, value)| is_script_url(value)))
}

/// The prefixes of a document that stand for a namespace of pages.
#[derive(Default)]
struct Bound<'a> {
    prefixes: Vec<&'a [u8]>,
    any: bool,
    other_than_svg: bool,
    /// Elements of any prefix may be those of a page.
    all: bool,
}

impl<'a> Bound<'a> {
    fn add(&mut self, name: &'a [u8], value: &[u8]) {
        let Some(prefix) = name.strip_prefix(b"xmlns") else { return };
        let value = plain(value);
        if !is_page(&value) {
            return;
        }
        self.any = true;
        self.other_than_svg |= value != SVG;
        let Some(prefix) = prefix.strip_prefix(b":") else { return };
        match self.prefixes.len() {
            _ if self.prefixes.contains(&prefix) => {}
            0..MAX_PREFIXES => self.prefixes.push(prefix),
            _ => self.all = true,
        }
    }

    fn svg_only(&self) -> bool {
        self.any && !self.other_than_svg
    }
}

fn is_page(namespace: &[u8]) -> bool {
    [XHTML, SVG, MATHML].contains(&namespace)
}

fn parts(name: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', name) {
        Some(at) => (name.get(..at).unwrap_or_default(), name.get(at + 1..).unwrap_or_default()),
        None => (b"", name),
    }
}

/// Whether an attribute of an element of a page runs something: an event handler, or a URL of a script.
fn runs((name, value): (&[u8], &[u8])) -> bool {
    let event = name.get(2..).filter(|_| name.get(..2).is_some_and(|on| on.eq_ignore_ascii_case(b"on")));
    event.is_some_and(|event| event.len() >= 3 && event.iter().all(u8::is_ascii_alphabetic)) || is_script_url(value)
}

fn is_script_url(value: &[u8]) -> bool {
    if value.len() < 10 || memchr::memchr2(b':', b'&', value).is_none() {
        return false;
    }
    let value = plain(value);
    value.starts_with(b"javascript:")
        || value.starts_with(b"vbscript:")
        || memmem::find(&value, b";javascript:").is_some()
}

/// Whether the document type defines an entity that holds markup.
fn defines_markup(text: &[u8]) -> bool {
    memmem::find_iter(text, b"<!ENTITY").any(|at| {
        let rest = text.get(at + 8..).unwrap_or_default();
        let end = memchr::memchr2_iter(b'<', b']', rest)
            .find(|at| rest.get(*at) == Some(&b']') || rest.get(at + 1) == Some(&b'!'));
        let value = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        value.contains(&b'<') || memmem::find(value, b"&#").is_some()
    })
}

/// A value in lower case with its references to characters undone, without white space, control characters and other references:
/// parsers of URLs skip them.
fn plain(value: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        let mut letter = Some(*byte);
        if *byte == b'&' {
            let name = rest.iter().take(12).position(|byte| *byte == b';');
            letter = name.and_then(|end| rest.get(..end)).and_then(character);
            rest = name.and_then(|end| rest.get(end + 1..)).unwrap_or(rest);
        }
        plain.extend(letter.filter(|letter| *letter > b' ').map(|letter| letter.to_ascii_lowercase()));
    }
    plain
}

/// The character of a reference, if it is one of ASCII.
fn character(reference: &[u8]) -> Option<u8> {
    let number = reference.strip_prefix(b"#")?;
    let (digits, radix) = match number {
        [b'x' | b'X', digits @ ..] => (digits, 16),
        digits => (digits, 10),
    };
    u8::from_str_radix(std::str::from_utf8(digits).ok()?.trim_start_matches('0'), radix).ok().filter(u8::is_ascii)
}

/// The tags of elements: not those in comments, in CDATA sections and in the document type.
struct Tags<'a> {
    rest: &'a [u8],
}

/// What is between `<` and `>`.
struct Tag<'a>(&'a [u8]);

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let at = memchr::memchr(b'<', self.rest)?;
            let inner = self.rest.get(at + 1..)?;
            let behind = |end: &[u8]| memmem::find(inner, end).and_then(|at| inner.get(at + end.len()..));
            let skipped = match inner {
                [b'!', b'-', b'-', rest @ ..] => memmem::find(rest, b"-->").and_then(|at| rest.get(at + 3..)),
                [b'!', b'[', ..] => behind(b"]]>"),
                [b'?', ..] => behind(b"?>"),
                [b'!', ..] => super::behind_doctype(self.rest.get(at..)?),
                _ => {
                    let length = tag_length(inner);
                    self.rest = inner.get(length + 1..).unwrap_or_default();
                    return Some(Tag(inner.get(..length).unwrap_or(inner)));
                }
            };
            self.rest = skipped.unwrap_or_default();
        }
    }
}

/// How long a tag is: to the `>` that is in no quotes.
fn tag_length(inner: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next) = memchr::memchr3(b'>', b'"', b'\'', inner.get(at..).unwrap_or_default()) {
        at += next;
        let Some(quote) = inner.get(at).filter(|byte| **byte != b'>') else { return at };
        at += 1;
        let Some(close) = memchr::memchr(*quote, inner.get(at..).unwrap_or_default()) else { break };
        at += close + 1;
    }
    inner.len()
}

impl<'a> Tag<'a> {
    fn closes(&self) -> bool {
        self.0.starts_with(b"/")
    }

    fn is_empty(&self) -> bool {
        self.0.ends_with(b"/")
    }

    fn name(&self) -> &'a [u8] {
        let length = self.0.iter().take_while(|byte| !byte.is_ascii_whitespace() && **byte != b'/').count();
        self.0.get(..length).unwrap_or_default()
    }

    /// Names and values of the attributes.
    fn attributes(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut rest = self.0.get(self.name().len()..).unwrap_or_default();
        std::iter::from_fn(move || {
            loop {
                let equals = memchr::memchr(b'=', rest)?;
                let name = rest.get(..equals)?.trim_ascii();
                let name = name.rsplit(|byte| byte.is_ascii_whitespace() || *byte == b'/').next().unwrap_or_default();
                let behind = rest.get(equals + 1..)?.trim_ascii_start();
                let quote = match behind.first()? {
                    quote @ (b'"' | b'\'') => *quote,
                    _ => {
                        rest = behind;
                        continue;
                    }
                };
                let value = behind.get(1..)?;
                let end = memchr::memchr(quote, value).unwrap_or(value.len());
                rest = value.get(end + 1..).unwrap_or_default();
                return Some((name, value.get(..end)?));
            }
        })
    }
}
