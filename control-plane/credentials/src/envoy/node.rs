//! Values of a configuration with their places, and notes on what is not understood.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use kit::token;
use serde_json::{Map, Value};

use super::ImportWarning;

/// A value and its place.
#[derive(Clone)]
pub(super) struct Node<'a> {
    value: &'a Value,
    place: Option<Rc<Step<'a>>>,
}

/// The last step to a place, and those before it.
struct Step<'a> {
    before: Option<Rc<Step<'a>>>,
    key: Key<'a>,
}

enum Key<'a> {
    Field(&'a str),
    Index(usize),
}

/// What is noted while a configuration is read.
#[derive(Default)]
pub(super) struct Notes {
    warnings: RefCell<BTreeSet<ImportWarning>>,
    more: Cell<usize>,
    faults: Cell<usize>,
}

/// Warnings that are kept, at most.
const MAX_KEPT: usize = 2_000;

// === impl Node ===

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Node<'a> {
        Node { value, place: None }
    }

    fn step(&self, value: &'a Value, key: Key<'a>) -> Node<'a> {
        Node { value, place: Some(Rc::new(Step { before: self.place.clone(), key })) }
    }

    pub(super) fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut at = self.place.as_ref();
        while let Some(step) = at {
            steps.push(match &step.key {
                Key::Field(name) => token(&short(name)),
                Key::Index(index) => index.to_string(),
            });
            at = step.before.as_ref();
        }
        steps.iter().rev().map(|step| format!("/{step}")).collect()
    }

    pub(super) fn fields(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// Each field of an object of any names.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let fields = self.fields().into_iter().flatten();
        let node = self.clone();
        fields.map(move |(name, value)| (name.as_str(), node.step(value, Key::Field(name))))
    }

    /// A field by its name in Envoy, or as JSON has it (`camelCase`). Null is as if it were absent.
    pub(super) fn get(&self, name: &str) -> Option<Node<'a>> {
        let fields = self.fields()?;
        let found = fields.get_key_value(name).or_else(|| fields.get_key_value(&camel(name)));
        found.filter(|(_, value)| !value.is_null()).map(|(name, value)| self.step(value, Key::Field(name)))
    }

    /// A field, field by field.
    pub(super) fn at(&self, names: &[&str]) -> Option<Node<'a>> {
        names.iter().try_fold(self.clone(), |node, name| node.get(name))
    }

    /// An object; a fault where it is something else.
    pub(super) fn object(&self, name: &str, notes: &Notes) -> Option<Node<'a>> {
        let node = self.get(name)?;
        if node.fields().is_none() {
            notes.fault(&node, "an object is expected");
            return None;
        }
        Some(node)
    }

    /// The entries of a list; a fault where it is something else.
    pub(super) fn list(&self, name: &str, notes: &Notes) -> Vec<Node<'a>> {
        let Some(node) = self.get(name) else { return Vec::new() };
        let Some(list) = node.value.as_array() else {
            notes.fault(&node, "a list is expected");
            return Vec::new();
        };
        list.iter().enumerate().map(|(index, value)| node.step(value, Key::Index(index))).collect()
    }

    /// The objects of a list; a fault for what is something else.
    pub(super) fn objects(&self, name: &str, notes: &Notes) -> Vec<Node<'a>> {
        let (objects, others): (Vec<_>, Vec<_>) =
            self.list(name, notes).into_iter().partition(|node| node.fields().is_some());
        others.iter().for_each(|node| notes.fault(node, "an object is expected"));
        objects
    }

    /// A text; a fault where it is something else.
    pub(super) fn text(&self, name: &str, notes: &Notes) -> Option<&'a str> {
        let node = self.get(name)?;
        node.own_text(notes)
    }

    /// The text that it is; a fault where it is something else.
    pub(super) fn own_text(&self, notes: &Notes) -> Option<&'a str> {
        let text = self.value.as_str();
        if text.is_none() {
            notes.fault(self, "a text is expected");
        }
        text
    }

    /// A switch; a fault where it is something else.
    pub(super) fn flag(&self, name: &str, notes: &Notes) -> Option<bool> {
        let node = self.get(name)?;
        let flag = node.value.as_bool();
        if flag.is_none() {
            notes.fault(&node, "true or false is expected");
        }
        flag
    }

    /// A number that is not negative; protobuf's JSON has large ones as texts.
    pub(super) fn number(&self, name: &str, notes: &Notes) -> Option<u64> {
        let node = self.get(name)?;
        let number = node.value.as_u64().or_else(|| node.value.as_str()?.parse().ok());
        if number.is_none() {
            notes.fault(&node, "a number is expected");
        }
        number
    }

    /// A word of an enumeration, by its name or its number; a fault where it is none of them.
    pub(super) fn word(&self, name: &str, words: &[&'static str], notes: &Notes) -> Option<&'static str> {
        let node = self.get(name)?;
        let index = node.value.as_u64().and_then(|number| usize::try_from(number).ok());
        let found = match (node.value.as_str(), index) {
            (Some(text), _) => words.iter().find(|word| **word == text),
            (None, Some(index)) => words.get(index),
            (None, None) => None,
        };
        if found.is_none() {
            notes.fault(&node, format!("one of {} is expected", words.join(", ")));
        }
        found.copied()
    }

    /// A fault for each field that is none of `known`: what it means for the check is not known.
    pub(super) fn only(&self, known: &[&str], notes: &Notes) {
        if self.fields().is_none() {
            notes.fault(self, "an object is expected");
        }
        for (name, node) in self.each() {
            if name != "@type"
                && !node.value.is_null()
                && !known.iter().any(|known| *known == name || camel(known) == name)
            {
                notes.fault(&node, "the field is not known to this release");
            }
        }
    }

    /// Whether it is a list, an object or a text without content.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Array(list) => list.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => false,
        }
    }

    /// Whether it is an object or a list and not empty.
    pub(super) fn is_filled(&self) -> bool {
        (self.value.is_object() || self.value.is_array()) && !self.is_empty()
    }

    /// An `Any`: the name of its type and its content. Typed structs are opened.
    pub(super) fn any(&self, notes: &Notes) -> Option<(&'a str, Node<'a>)> {
        let mut node = self.clone();
        let mut name = type_name(node.text("@type", notes)?);
        for _ in 0..4 {
            if !matches!(name, "xds.type.v3.TypedStruct" | "udpa.type.v1.TypedStruct") {
                break;
            }
            name = type_name(node.text("type_url", notes)?);
            node = node.object("value", notes)?;
        }
        Some((name, node))
    }
}

/// The name of a type without the address in front of it.
fn type_name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

/// The name of a field in protobuf's JSON.
fn camel(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut upper = false;
    for character in name.chars() {
        match character {
            '_' => upper = true,
            _ if upper => {
                text.extend(character.to_uppercase());
                upper = false;
            }
            _ => text.push(character),
        }
    }
    text
}

/// A name that is shown: cut, and without characters that terminals act on.
pub(super) fn short(text: &str) -> String {
    let mut shown: String = text.chars().take(100).collect::<String>().escape_debug().to_string();
    if text.chars().nth(100).is_some() {
        shown.push('…');
    }
    shown
}

// === impl Notes ===

impl Notes {
    /// Notes something to know.
    pub(super) fn warn(&self, node: &Node<'_>, message: impl Into<String>) {
        let mut warnings = self.warnings.borrow_mut();
        let warning = ImportWarning { pointer: node.pointer(), message: message.into() };
        if warnings.len() >= MAX_KEPT && !warnings.contains(&warning) {
            self.more.set(self.more.get() + 1);
        } else {
            warnings.insert(warning);
        }
    }

    /// Notes something that is not understood: what it belongs to is no check.
    pub(super) fn fault(&self, node: &Node<'_>, message: impl std::fmt::Display) {
        self.faults.set(self.faults.get() + 1);
        self.warn(node, format!("{message}; what it belongs to does not count as a check"));
    }

    /// How many faults there are, to compare with later.
    pub(super) fn faults(&self) -> usize {
        self.faults.get()
    }

    pub(super) fn finish(self, max: usize) -> (Vec<ImportWarning>, usize) {
        let all = self.warnings.into_inner();
        let more = self.more.get() + all.len().saturating_sub(max);
        (all.into_iter().take(max).collect(), more)
    }
}
