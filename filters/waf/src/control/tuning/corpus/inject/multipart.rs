//! Multipart bodies: the parts as the engine reads them, and written anew.

use seclang::body::multipart::{Limits, Reader, parse};

use super::super::Target;

/// A body whose parts can be changed.
pub(super) struct Multipart {
    boundary: Vec<u8>,
    parts: Vec<Part>,
}

struct Part {
    name: Vec<u8>,
    /// The name of a file.
    filename: Option<Vec<u8>>,
    /// The header lines but for `Content-Disposition`.
    headers: Vec<Vec<u8>>,
    content: Vec<u8>,
}

impl Multipart {
    /// `None` for a body that the engine cannot read to its end.
    pub(super) fn read(content_type: &[u8], body: &[u8]) -> Option<Multipart> {
        let read = parse(content_type, body, &Limits::default());
        if read.error.is_some() {
            return None;
        }
        let boundary = Reader::new(content_type, Limits::default(), false).boundary().to_vec();
        let is_disposition = |line: &[u8]| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            name.eq_ignore_ascii_case(b"content-disposition")
        };
        let parts = read.parts.into_iter().map(|part| Part {
            filename: part.filename.clone().filter(|_| part.is_file()),
            name: part.name,
            headers: part.headers.into_iter().filter(|line| !is_disposition(line)).collect(),
            content: part.value,
        });
        Some(Multipart { boundary, parts: parts.collect() })
    }

    /// The fields that the target covers get the payload, or the contents of files. Returns how many; `None` for a payload that would end
    /// the part.
    pub(super) fn fill(&mut self, target: &Target, payload: &[u8], files: bool) -> Option<usize> {
        self.holds(payload)?;
        Some(self.change(
            |part| part.filename.is_some() == files && target.covers(&part.name),
            |part| part.content = payload.to_vec(),
        ))
    }

    /// The files that the target covers get the payload as their names.
    pub(super) fn name_files(&mut self, target: &Target, payload: &[u8]) -> Option<usize> {
        self.holds(in_line(payload)?)?;
        Some(self.change(
            |part| part.filename.is_some() && target.covers(&part.name),
            |part| part.filename = Some(payload.to_vec()),
        ))
    }

    /// The fields of files get the payload as their names.
    pub(super) fn name_fields_of_files(&mut self, payload: &[u8]) -> Option<usize> {
        self.holds(in_line(payload)?)?;
        Some(self.change(|part| part.filename.is_some(), |part| part.name = payload.to_vec()))
    }

    /// The parts that the target covers get a header with the payload.
    pub(super) fn add_header(&mut self, target: &Target, payload: &[u8]) -> Option<usize> {
        self.holds(in_line(payload)?)?;
        let line = [b"X-Note: ".as_slice(), payload].concat();
        Some(self.change(|part| target.covers(&part.name), |part| part.headers.push(line.clone())))
    }

    /// Returns how many parts were changed.
    fn change(&mut self, which: impl Fn(&Part) -> bool, change: impl Fn(&mut Part)) -> usize {
        let mut count = 0;
        for part in self.parts.iter_mut().filter(|part| which(part)) {
            change(part);
            count += 1;
        }
        count
    }

    /// Adds a field.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        self.holds(in_line(name)?)?;
        self.holds(value)?;
        self.parts.push(Part { name: name.to_vec(), filename: None, headers: Vec::new(), content: value.to_vec() });
        Some(())
    }

    /// Whether the bytes can be in a part: the boundary cannot.
    fn holds(&self, bytes: &[u8]) -> Option<()> {
        let delimiter = [b"--".as_slice(), &self.boundary].concat();
        (!bytes.windows(delimiter.len()).any(|window| window == delimiter)).then_some(())
    }

    /// The body.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for part in &self.parts {
            body.extend_from_slice(b"--");
            body.extend_from_slice(&self.boundary);
            body.extend_from_slice(b"\r\nContent-Disposition: form-data; name=");
            body.extend_from_slice(&quoted(&part.name));
            if let Some(filename) = &part.filename {
                body.extend_from_slice(b"; filename=");
                body.extend_from_slice(&quoted(filename));
            }
            for line in &part.headers {
                body.extend_from_slice(b"\r\n");
                body.extend_from_slice(line);
            }
            body.extend_from_slice(b"\r\n\r\n");
            body.extend_from_slice(&part.content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--");
        body.extend_from_slice(&self.boundary);
        body.extend_from_slice(b"--\r\n");
        body
    }
}

/// What can be in one line of a part's head.
fn in_line(bytes: &[u8]) -> Option<&[u8]> {
    (!bytes.is_empty() && !bytes.iter().any(u8::is_ascii_control)).then_some(bytes)
}

fn quoted(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    quoted
}
