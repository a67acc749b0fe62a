//! Parts that only another parser sees: heads of fields in the content of a file.
//!
//! A parser that reads the boundary in another way finds its own parts in what is a file here. Whatever it takes for a
//! boundary, a field begins with `Content-Disposition`. So where a line of a file begins that way and names a field, the
//! file's content is kept from there on, and the values that it may be read as are inspected. The file itself may be in
//! order: recorded requests have such lines.

use memchr::{memchr, memchr2};

use super::disposition::Disposition;

const HEAD: &[u8] = b"content-disposition";

/// Finds the head of a field in the content of a file, piece by piece. A carriage return alone ends a line as well.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The line so far, as long as it may be such a head, and the lines that it is folded over.
    line: Vec<u8>,
    /// The current line is something else.
    skip: bool,
    /// The line in `line` has ended; it may be folded.
    ended: bool,
    /// The last byte was a carriage return.
    after_return: bool,
}

impl Search {
    /// Takes a piece. Once there is a head, gives it and what follows it in the piece.
    pub(super) fn find<'a>(&mut self, piece: &'a [u8], longest: usize) -> Option<(Vec<u8>, &'a [u8])> {
        let mut rest = piece;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            if std::mem::take(&mut self.ended) {
                if matches!(first, b' ' | b'\t') {
                    if self.line.len() < longest {
                        self.line.push(b' ');
                    }
                } else if names_field(&self.line) {
                    self.line.extend_from_slice(b"\r\n");
                    return Some((std::mem::take(&mut self.line), rest));
                } else {
                    self.line.clear();
                }
            }
            let end = memchr2(b'\r', b'\n', rest);
            let (text, after) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, &[]));
            if !self.skip {
                let room = longest.saturating_sub(self.line.len());
                self.line.extend_from_slice(text.get(..room).unwrap_or(text));
                let known = self.line.len().min(HEAD.len());
                self.skip = !self
                    .line
                    .get(..known)
                    .unwrap_or_default()
                    .eq_ignore_ascii_case(HEAD.get(..known).unwrap_or_default());
            }
            rest = after;
            if let Some((&byte, after)) = after.split_first() {
                self.after_return = byte == b'\r';
                self.ended = !self.skip && !self.line.is_empty();
                if self.skip {
                    self.line.clear();
                }
                self.skip = false;
                rest = after;
            }
        }
        None
    }
}

/// Whether a header is the head of a field for any parser: some ask for `form-data`, some for a `name` alone.
fn names_field(line: &[u8]) -> bool {
    let Some(value) = line.get(HEAD.len()..).map(<[u8]>::trim_ascii_start).and_then(|rest| rest.strip_prefix(b":"))
    else {
        return false;
    };
    let value = value.to_ascii_lowercase();
    let names = memchr::memmem::find_iter(&value, b"name").any(|at| {
        let before = at.checked_sub(1).and_then(|before| value.get(before));
        let after = value.get(at + 4..).unwrap_or_default().trim_ascii_start();
        !before.is_some_and(u8::is_ascii_alphanumeric) && matches!(after.first(), Some(b'=' | b'*'))
    });
    names || memchr::memmem::find(&value, b"form-data").is_some()
}

/// A field within the content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nested<'a> {
    /// Its `Content-Disposition`, whole.
    pub head: &'a [u8],
    /// Its value up to a line that begins with `--`.
    pub value: &'a [u8],
    /// Its value up to the next head or the end, where that is more.
    pub whole: Option<&'a [u8]>,
}

impl Nested<'_> {
    /// The name of the field; `None` where the head has none that can be read.
    #[must_use]
    pub fn name(&self) -> Option<Vec<u8>> {
        let value = self.head.get(memchr(b':', self.head)? + 1..)?;
        let line: Vec<u8> = value.iter().map(|byte| if byte.is_ascii_whitespace() { b' ' } else { *byte }).collect();
        Disposition::parse(line.trim_ascii(), &mut false).ok()?.name
    }
}

/// The fields in [`Part::nested`](super::Part::nested), in order.
pub fn nested(text: &[u8]) -> impl Iterator<Item = Nested<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = heads(rest).next()?;
        let from = rest.get(start..).unwrap_or_default();
        let (head, body) = split_head(from);
        let end = heads(body).next().unwrap_or(body.len());
        let (whole, after) = body.split_at_checked(end).unwrap_or((body, &[]));
        rest = after;
        let cut = lines(whole).find(|(_, line)| line.starts_with(b"--")).map_or(whole.len(), |(at, _)| at);
        let value = without_line_end(whole.get(..cut).unwrap_or_default());
        let whole = without_line_end(whole);
        Some(Nested { head, value, whole: (whole.len() > value.len()).then_some(whole) })
    })
}

/// The beginning of a head, and what follows its blank line.
fn split_head(text: &[u8]) -> (&[u8], &[u8]) {
    let blank = lines(text).find(|(_, line)| line.is_empty());
    let end = blank.map_or(text.len(), |(at, _)| at);
    let (head, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
    let rest = rest.strip_prefix(b"\r\n").unwrap_or_else(|| rest.get(1..).unwrap_or_default());
    let first = lines(head).skip(1).find(|(_, line)| !line.starts_with(b" ") && !line.starts_with(b"\t"));
    (first.and_then(|(at, _)| head.get(..at)).unwrap_or(head), rest)
}

/// Where lines begin that are heads of fields.
fn heads(text: &[u8]) -> impl Iterator<Item = usize> {
    let is_head = |line: &[u8]| line.get(..HEAD.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEAD));
    lines(text).filter(move |(_, line)| is_head(line)).map(|(at, _)| at)
}

/// The lines of a text without their ends, each with its place.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let length = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let line = rest.get(..length).unwrap_or_default();
        let end = rest.get(length..).unwrap_or_default();
        let found = (at, line);
        at += length + if end.starts_with(b"\r\n") { 2 } else { 1 };
        Some(found)
    })
}

fn without_line_end(text: &[u8]) -> &[u8] {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.strip_suffix(b"\r").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(content: &str, piece: usize) -> Option<String> {
        let (mut search, mut text) = (Search::default(), None);
        for piece in content.as_bytes().chunks(piece) {
            match &mut text {
                None => text = search.find(piece, 8192).map(|(head, rest)| [head.as_slice(), rest].concat()),
                Some(text) => text.extend_from_slice(piece),
            }
        }
        text.map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn heads_of_fields_are_found_in_any_lines() {
        for end in ["\r\n", "\n", "\r"] {
            let content =
                ["x", "--a", "Content-Disposition: form-data; name=\"q\"", "", "1' or 1=1", "--a--", ""].join(end);
            for piece in [1, 3, 1000] {
                let text = found(&content, piece).unwrap();
                let fields: Vec<_> = nested(text.as_bytes()).collect();
                let [field] = fields.as_slice() else { panic!("{end:?} {piece} {text:?}") };
                assert_eq!(
                    (field.name().as_deref(), field.value),
                    (Some(&b"q"[..]), &b"1' or 1=1"[..]),
                    "{end:?} {piece}"
                );
            }
        }
        for head in [
            "CONTENT-DISPOSITION :x;name=q",
            "content-disposition:\r\n x;\r\n name = q",
            "content-disposition: a; name*=q",
        ] {
            assert!(found(&format!("x\r\n{head}\r\n\r\n1"), 2).is_some(), "{head}");
        }
    }

    #[test]
    fn honest_files_have_none() {
        let mail = "Content-Type: image/png; name=\"a.png\"\r\nContent-Disposition: attachment; filename=\"a.png\"\r\n\r\nYQ==\r\n";
        let folded = "Content-Disposition: attachment;\r\n filename=\"name.png\"\r\n\r\n";
        for content in [mail, folded, "see Content-Disposition: form-data; name=q\n\n", "", "\r\r\n\n"] {
            for piece in [1, 5, 1000] {
                assert_eq!(found(content, piece), None, "{content}");
            }
        }
    }

    #[test]
    fn values_are_read_to_each_possible_end() {
        let text = b"Content-Disposition: form-data; name=a\r\nX: y\r\n\r\n1\n--\n2\r\n--a\r\ncontent-disposition: form-data;\n name=b\n\n3\n";
        let fields: Vec<_> = nested(text).collect();
        let [first, second] = fields.as_slice() else { panic!("{fields:?}") };
        assert_eq!((first.name().as_deref(), first.value), (Some(&b"a"[..]), &b"1"[..]));
        assert_eq!(first.whole, Some(&b"1\n--\n2\r\n--a"[..]));
        assert_eq!((second.value, second.whole), (&b"3"[..], None));
        assert_eq!(second.name().as_deref(), Some(&b"b"[..]));
    }
}
