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
/// The most entities of one document that are told apart.
const MAX_ENTITIES: usize = 64;
/// The longest name of an entity.
const MAX_NAME: usize = 256;
/// Longer than the namespaces of pages.
const MAX_NAMESPACE: usize = 64;

/// What a document is to a browser that runs something of it; `None` if it runs nothing: it has elements of a page, and they are
/// scripts or frames, or have event handlers or URLs of scripts.
pub(super) fn active(text: &[u8]) -> Option<Format> {
    memmem::find(text, b"xmlns")?;
    let mut bound = Bound { entities: Entities::of(text), ..Bound::default() };
    for tag in (Tags { rest: text }) {
        tag.attributes().for_each(|(name, value)| bound.add(name, value));
    }
    let styled =
        memmem::find(text, b"<?xml-stylesheet").is_some() && memmem::find(text, b"1999/XSL/Transform").is_some();
    let names_page = [b"1999/xhtml".as_slice(), b"2000/svg"].iter().any(|name| memmem::find(text, name).is_some());
    // Attributes of the document type, and a style sheet that the document is itself, give elements another namespace.
    bound.all |= styled || names_page && memmem::find(text, b"<!ATTLIST").is_some();
    // So do those that write a namespace with references, and parameters of the document type that stand for declarations.
    bound.all |= Declarations::of(text, b"<!ATTLIST").any(|(_, value)| value.contains(&b'&') || is_page(&plain(value)));
    bound.all |= Declarations::of(text, b"<!ENTITY").any(|(name, value)| name == b"%" && is_markup(value));
    if !bound.all && !bound.any {
        return None;
    }
    let page = if bound.svg_only() { Format::ActiveSvg } else { Format::Html };
    // A document type alone (a DTD) has no element.
    (Tags { rest: text }).next()?;
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
        let own = tag.attributes().find(|(name, _)| *name == b"xmlns").map(|(_, value)| bound.is_page(value));
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
    entities: Entities<'a>,
}

impl<'a> Bound<'a> {
    fn add(&mut self, name: &'a [u8], value: &[u8]) {
        let Some(prefix) = name.strip_prefix(b"xmlns") else { return };
        let Some(value) = self.entities.expanded(value) else {
            self.all = true;
            return;
        };
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

    /// Whether the value of an attribute may be a namespace of pages.
    fn is_page(&self, value: &[u8]) -> bool {
        self.entities.expanded(value).is_none_or(|value| is_page(&value))
    }
}

/// The texts that the entities of a document stand for.
#[derive(Default)]
struct Entities<'a>(Vec<(&'a [u8], &'a [u8])>);

impl<'a> Entities<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self(Declarations::of(text, b"<!ENTITY").take(MAX_ENTITIES + 1).collect())
    }

    /// A namespace with its references undone, in lower case; `None` where it is not known what they stand for.
    fn expanded(&self, value: &[u8]) -> Option<Vec<u8>> {
        if !value.contains(&b'&') {
            return Some(plain(value));
        }
        let mut expanded = Vec::new();
        let mut parts = value.split(|byte| *byte == b'&');
        expanded.extend(plain(parts.next().unwrap_or_default()));
        for part in parts {
            // What is longer is no namespace of pages.
            if expanded.len() > MAX_NAMESPACE {
                break;
            }
            let end = memchr::memchr(b';', part)?;
            let (name, behind) = (part.get(..end)?, part.get(end + 1..)?);
            match name {
                [b'#', ..] => expanded.extend(plain(&[b"&", name, b";"].concat())),
                b"amp" | b"lt" | b"gt" | b"quot" | b"apos" => expanded.push(b'&'),
                name => expanded.extend(plain(self.text(name)?)),
            }
            expanded.extend(plain(behind));
        }
        Some(expanded)
    }

    /// The text of an entity; `None` if there are several or none, if it has references of its own, or if not all entities are known.
    fn text(&self, name: &[u8]) -> Option<&'a [u8]> {
        if self.0.len() > MAX_ENTITIES {
            return None;
        }
        let mut texts = self.0.iter().filter(|(own, _)| *own == name).map(|(_, text)| *text);
        let first = texts.next()?;
        let plain = !first.iter().any(|byte| matches!(byte, b'&' | b'%' | b'<'));
        (plain && texts.next().is_none()).then_some(first)
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
    Declarations::of(text, b"<!ENTITY").any(|(_, value)| is_markup(value))
}

fn is_markup(value: &[u8]) -> bool {
    value.contains(&b'<') || memmem::find(value, b"&#").is_some()
}

/// The values in quotes of declarations of one kind, each with the first word of its declaration (`%` of a parameter).
struct Declarations<'a> {
    rest: &'a [u8],
    kind: &'static [u8],
    /// The first word of the declaration that is open.
    open: Option<&'a [u8]>,
}

impl<'a> Declarations<'a> {
    fn of(text: &'a [u8], kind: &'static [u8]) -> Self {
        Self { rest: text, kind, open: None }
    }
}

impl<'a> Iterator for Declarations<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(name) = self.open else {
                let at = memmem::find(self.rest, self.kind)?;
                self.rest = self.rest.get(at + self.kind.len()..)?.trim_ascii_start();
                let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'"' | b'\'');
                let length = self.rest.iter().take(MAX_NAME).take_while(|byte| !ends(byte)).count();
                let first = self.rest.get(..length)?;
                self.open = Some(if first.starts_with(b"%") { b"%" } else { first });
                continue;
            };
            let at = memchr::memchr3(b'>', b'"', b'\'', self.rest)?;
            let (sign, behind) = self.rest.get(at..)?.split_first()?;
            self.rest = behind;
            if *sign == b'>' {
                self.open = None;
                continue;
            }
            // What is not closed goes on to the end.
            let end = memchr::memchr(*sign, behind).unwrap_or(behind.len());
            self.rest = behind.get(end + 1..).unwrap_or_default();
            return Some((name, behind.get(..end)?));
        }
    }
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
