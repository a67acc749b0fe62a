//! Parts of a multipart body that are messages of their own, and fields in the content of files.
//!
//! Browsers send `new Blob([json], {type: "application/json"})` as a file, and frameworks read a part by its type. So a
//! part with the type of a message is parsed, field or file. But honest files have such types as well: one that does
//! not parse is inspected as it is and not refused, plain words and numbers in it are skipped, and values beyond the
//! limit on arguments are inspected as one text.

use super::transaction::{ArgumentSource, Transaction};
use crate::body::multipart::{self, Declared};
use crate::body::{json, urlencoded, xml};
use crate::transform::Transform;

/// The name of the texts of a file among the arguments, if they have no names of their own.
const NAME: &[u8] = b"file_content";

/// A part to be parsed by its type after all fields were added.
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
        let (mut room, mut rest) = (self.room_of_file(), Vec::new());
        let parsed = self.odd_values(content, &mut room, &mut rest);
        self.file_text(&rest);
        if parsed.is_err() {
            // A lenient parser undoes escapes as well.
            self.file_text(content);
            if memchr::memchr(b'\\', content).is_some() {
                self.file_text(&Transform::JsDecode.apply(content));
            }
        }
    }

    /// How much JSON may nest, whatever number of values it has.
    pub(super) fn json_limits_of_file(&self) -> json::Limits {
        let depth = self.engine.settings.json_depth_limit as usize;
        json::Limits { depth, arguments: usize::MAX, ..json::Limits::default() }
    }

    /// Adds the values of a JSON document to the arguments up to the limit, and to the lines of `rest` beyond. Skips
    /// plain words and numbers.
    pub(super) fn odd_values(
        &mut self,
        document: &[u8],
        room: &mut usize,
        rest: &mut Vec<u8>,
    ) -> Result<json::Outcome, json::JsonError> {
        let limits = self.json_limits_of_file();
        let mut arguments = self.arguments_to_add();
        json::parse(document, &limits, |argument| {
            let names = argument.new.unwrap_or_default();
            if is_plain(names) && is_plain(argument.value) {
                return;
            }
            if *room > 0 {
                *room -= 1;
                arguments.add_json(argument);
            } else {
                push_lines(rest, [names, argument.value]);
            }
        })
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
        self.xml_texts(found);
        // The unparsed field is an argument, too.
        if file && error.is_some() {
            self.file_text(content);
        }
    }

    /// Adds the texts of a document to `XML:/*`.
    pub(super) fn xml_texts(&mut self, found: xml::Xml) {
        for text in [found.text].into_iter().chain(found.attributes).chain(found.literals) {
            let value = self.arena.push_once(&text);
            self.arena.budget.keep(size_of_val(&value));
            self.xml_literals.push(value);
        }
    }

    /// The number of arguments a file may add. Rules refuse a request with as many as the limit.
    fn room_of_file(&self) -> usize {
        self.room() / 2
    }

    /// Adds a text of a file, which does not count as an argument.
    fn file_text(&mut self, text: &[u8]) {
        if !text.is_empty() {
            self.arguments_to_add().add_named(ArgumentSource::Form, NAME, text);
        }
    }

    /// Inspects the fields that another parser may find in the content of a file, from the first one on.
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
