//! Parts of a multipart body that are messages of their own, and fields in the content of files.
//!
//! Browsers send `new Blob([json], {type: "application/json"})` as a file, and frameworks read a part by its type. So such
//! a part is parsed, field or file. But files are honest as well: one that does not parse is inspected as it is and refused
//! for nothing, plain words and numbers in it are passed over, and what is beyond the limit on arguments is inspected as one
//! text.

use super::transaction::{ArgumentSource, Transaction};
use crate::body::multipart::{self, Declared};
use crate::body::{json, urlencoded, xml};
use crate::transform::Transform;

/// What the texts of a file are called among the arguments, where they have no names of their own.
const NAME: &[u8] = b"file_content";

/// A part to be read by its type, when all fields are there.
pub(super) struct Message {
    pub(super) kind: Declared,
    pub(super) content: Vec<u8>,
    pub(super) file: bool,
}

impl Transaction {
    pub(super) fn messages(&mut self, messages: Vec<Message>) {
        for Message { kind, content, file } in messages {
            if self.arena.budget.is_spent() {
                return;
            }
            self.arena.budget.charge_parsing(content.len());
            match (kind, file) {
                (Declared::Json, false) => self.parse_json(&content, true),
                (Declared::Form, false) => self.form_arguments(&content, ArgumentSource::Form),
                (Declared::Xml, _) => self.xml_part(&content, file),
                (Declared::Json, true) => self.json_file(&content),
                (Declared::Form, true) => self.form_file(&content),
            }
        }
    }

    fn json_file(&mut self, content: &[u8]) {
        let depth = self.engine.settings.json_depth_limit as usize;
        let limits = json::Limits { depth, arguments: usize::MAX, ..json::Limits::default() };
        let (mut room, mut rest) = (self.room_of_file(), Vec::new());
        let mut arguments = self.arguments_to_add();
        let parsed = json::parse(content, &limits, |argument| {
            let names = argument.new.unwrap_or_default();
            if is_plain(names) && is_plain(argument.value) {
                return;
            }
            if room > 0 {
                room -= 1;
                arguments.add(ArgumentSource::Json, argument);
            } else {
                push_lines(&mut rest, [names, argument.value]);
            }
        });
        self.file_text(&rest);
        if parsed.is_err() {
            // A lenient parser undoes the escapes as well.
            self.file_text(content);
            if memchr::memchr(b'\\', content).is_some() {
                self.file_text(&Transform::JsDecode.apply(content));
            }
        }
    }

    fn form_file(&mut self, content: &[u8]) {
        let separator = self.engine.settings.argument_separator;
        let (mut room, mut rest) = (self.room_of_file(), Vec::new());
        let mut arguments = self.arguments_to_add();
        urlencoded::parse(content, separator, &urlencoded::Limits { arguments: usize::MAX }, |name, value| {
            if is_plain(&name) && is_plain(&value) {
                return;
            }
            if room > 0 {
                room -= 1;
                arguments.add_named(ArgumentSource::Form, &name, &value);
            } else {
                push_lines(&mut rest, [&name, &value]);
            }
        });
        self.file_text(&rest);
    }

    fn xml_part(&mut self, content: &[u8], file: bool) {
        let (found, error) = xml::parse(content, &xml::Limits { doctype: true, ..xml::Limits::default() });
        for text in [found.text].into_iter().chain(found.attributes).chain(found.literals) {
            let value = self.arena.push_once(&text);
            self.arena.budget.keep(size_of_val(&value));
            self.xml_literals.push(value);
        }
        // A field is an argument as it is, too.
        if file && error.is_some() {
            self.file_text(content);
        }
    }

    /// How many arguments a file may bring. Rules refuse a request that has as many as there may be.
    fn room_of_file(&self) -> usize {
        self.room() / 2
    }

    /// A text of a file, which is no argument that counts.
    fn file_text(&mut self, text: &[u8]) {
        if !text.is_empty() {
            self.arguments_to_add().add_named(ArgumentSource::Form, NAME, text);
        }
    }

    /// The fields that another parser may find in the content of a file, from the first one on.
    pub(super) fn nested_fields(&mut self, text: &[u8]) {
        self.arena.budget.charge_parsing(text.len());
        let mut left = self.room_of_file();
        for field in multipart::nested(text) {
            if left == 0 || self.arena.budget.is_spent() {
                self.file_text(text);
                return;
            }
            left -= 1;
            let name = field.name().unwrap_or_else(|| NAME.to_vec());
            let key = self.arena.push(&name);
            let head = self.arena.push(field.head);
            self.part_headers.push(key, head);
            self.field(&name, field.value);
            if let Some(whole) = field.whole {
                self.file_text(whole);
            }
        }
    }
}

/// Whether a text is a word or a number, which no rule looks for.
pub(super) fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.' | b':'))
}

pub(super) fn push_lines(text: &mut Vec<u8>, lines: [&[u8]; 2]) {
    for line in lines.into_iter().filter(|line| !is_plain(line)) {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
}
