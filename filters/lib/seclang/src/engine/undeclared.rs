//! Bodies of a type that no processor reads: plain text, a vendor's type, none at all.
//!
//! Applications that do not look at `Content-Type` read a form or a document there all the same. What is one as a whole is
//! inspected as one, beside REQUEST_BODY. Nothing of it is an error: the body is what it says, and says nothing.

use super::transaction::{ArgumentSource, Transaction};
use crate::body::{json, multipart, xml};

/// How long the first name of a form may be, in bytes.
const LONGEST_NAME: usize = 128;

/// How long the first line of a multipart body may be, in bytes: its boundary, and the hyphens in front.
const LONGEST_BOUNDARY: usize = 72;

impl Transaction {
    /// Inspects the body as what it looks like.
    pub(super) fn parse_undeclared(&mut self, body: &[u8]) {
        let Ok(text) = std::str::from_utf8(body) else { return };
        if text.chars().any(|letter| letter.is_control() && !letter.is_ascii_whitespace()) {
            return;
        }
        let trimmed = text.trim_ascii();
        match trimmed.as_bytes() {
            [b'{' | b'[', ..] => self.json_undeclared(trimmed.as_bytes()),
            [b'<', ..] => self.xml_undeclared(trimmed.as_bytes()),
            [b'-', b'-', ..] => self.multipart_undeclared(body),
            _ if is_form(trimmed) => self.form_arguments(trimmed.as_bytes(), ArgumentSource::Form),
            _ => {}
        }
    }

    fn json_undeclared(&mut self, body: &[u8]) {
        let limits = json::Limits {
            depth: self.engine.settings.json_depth_limit as usize,
            arguments: self.room(),
            ..json::Limits::default()
        };
        // Arguments are added once it is known that all of it is JSON.
        let is_json = json::parse(body, &limits, |_| ()).is_ok();
        self.arena.budget.charge_parsing(body.len());
        if is_json {
            let mut arguments = self.arguments_to_add();
            let parsed = json::parse(body, &limits, |argument| arguments.add(ArgumentSource::Json, argument));
            if parsed.is_ok_and(|outcome| outcome.limit_exceeded) {
                self.too_many_arguments("ARGS");
            }
        }
    }

    fn xml_undeclared(&mut self, body: &[u8]) {
        let (found, error) = xml::parse(body, &xml::Limits { doctype: true, ..xml::Limits::default() });
        self.arena.budget.charge_parsing(body.len());
        if error.is_none() {
            for text in [found.text].into_iter().chain(found.attributes).chain(found.literals) {
                let value = self.arena.push(text);
                self.xml_literals.push(value);
            }
        }
    }

    fn multipart_undeclared(&mut self, body: &[u8]) {
        let line = body.get(..LONGEST_BOUNDARY.min(body.len())).unwrap_or_default();
        let line = line.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        let Some(boundary) = line.strip_prefix(b"--") else { return };
        let kind = [b"multipart/form-data; boundary=", boundary].concat();
        let found = multipart::parse(&kind, body, &multipart::Limits::default());
        self.arena.budget.charge_parsing(body.len());
        for part in found.parts.into_iter().filter(|part| !part.is_file()) {
            if self.room() == 0 {
                self.too_many_arguments("ARGS_POST");
                return;
            }
            self.arguments_to_add().add_named(ArgumentSource::Form, &part.name, &part.value);
        }
    }
}

/// Whether a text begins as a form does: with a name of letters, digits and what encodes others, and a `=`.
fn is_form(text: &str) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.[]%+$".contains(byte);
    let name = text.as_bytes().iter().take(LONGEST_NAME + 1).take_while(|byte| is_name(byte)).count();
    (1..=LONGEST_NAME).contains(&name) && text.as_bytes().get(name) == Some(&b'=')
}
