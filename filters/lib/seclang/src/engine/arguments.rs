//! Arguments, and their names that are too long.
//!
//! A name is stored with each of its values, and rules often read both. At most [`NAME_LENGTH`] bytes of it are stored:
//! a longer name is replaced by its beginning and [`CUT`], which is the same for all names with this beginning. The
//! whole name is a value of ARGS_NAMES, once, so that all of it is inspected. Exclusions by name never cover a cut
//! name, as the full name is lost.

use super::arena::{Arena, Value};
use super::collect::Item;
use super::hot_cache::hash;
use super::limits::NAME_LENGTH;
use super::store::Entry;
use super::transaction::{ArgumentSource, Transaction};
use crate::body;

/// The end of a cut name. No uncut name is that long.
const CUT: &[u8] = b"~";

/// The memory of an argument besides its name and its value, in bytes: its entry here, and in the two lists of items
/// that rules read. Growing lists take twice their content.
const PLACE: usize = 2 * (size_of::<(ArgumentSource, Entry)>() + 2 * size_of::<Item>());

/// Whether a name of an argument is the beginning of a longer one.
pub(super) fn is_cut(name: &[u8]) -> bool {
    name.len() > NAME_LENGTH
}

/// Where arguments go.
pub(super) struct Arguments<'t> {
    arena: &'t mut Arena,
    list: &'t mut Vec<(ArgumentSource, Entry)>,
    long_names: &'t mut Vec<(ArgumentSource, Entry)>,
    /// No value is read in a second way.
    plain: bool,
}

impl Transaction {
    pub(super) fn arguments_to_add(&mut self) -> Arguments<'_> {
        let plain = self.declared_bodies_only;
        Arguments { arena: &mut self.arena, list: &mut self.arguments, long_names: &mut self.long_names, plain }
    }
}

impl Arguments<'_> {
    /// Adds an argument with a name as it was sent.
    pub(super) fn add_named(&mut self, source: ArgumentSource, name: &[u8], value: &[u8]) {
        self.add(source, body::Argument { name, unseen: is_cut(name).then_some(name), new: Some(name), value });
    }

    /// Adds an argument, unless the budget is spent.
    pub(super) fn add(&mut self, source: ArgumentSource, argument: body::Argument<'_>) {
        if self.arena.budget.is_spent() {
            return;
        }
        let value = self.arena.push_once(argument.value);
        self.add_value(source, argument.name, argument.unseen, value);
    }

    /// Adds an argument of a JSON document. A value that still has escapes after JSON's own were undone is added once more without
    /// them: it is text of a language within JSON (a GraphQL query, another document), which undoes them.
    pub(super) fn add_json(&mut self, argument: body::Argument<'_>) {
        let (name, value) = (argument.name, argument.value);
        self.add(ArgumentSource::Json, argument);
        if let Some(unescaped) = body::unescaped(value).filter(|_| !self.plain) {
            self.add(ArgumentSource::Json, body::Argument { name, unseen: None, new: None, value: &unescaped });
        }
    }

    /// Adds an argument with an existing value.
    pub(super) fn add_value(&mut self, source: ArgumentSource, name: &[u8], unseen: Option<&[u8]>, value: Value) {
        let head = name.get(..NAME_LENGTH).filter(|_| is_cut(name));
        let kept = match head {
            None => self.arena.push_name(name),
            Some(head) => self.arena.push_shared(&[head, CUT].concat()),
        };
        self.arena.budget.charge_argument(name.len().min(NAME_LENGTH), PLACE);
        self.list.push((source, Entry { name: kept, value }));
        if let (Some(head), Some(unseen)) = (head, unseen) {
            self.add_long_name(source, head, unseen);
        }
    }

    /// Adds the whole of a cut name to the names.
    fn add_long_name(&mut self, source: ArgumentSource, head: &[u8], name: &[u8]) {
        let value = self.arena.push_shared(name);
        self.arena.budget.charge_copy(self.long_names.len());
        // Rules that count names distinguish names with the same beginning.
        let shown = [head, CUT, format!("{:08x}", hash(name) as u32).as_bytes()].concat();
        if self.long_names.iter().any(|(from, known)| {
            known.value == value && *from == source && self.arena.get(known.name) == shown.as_slice()
        }) {
            return;
        }
        let name = self.arena.push_shared(&shown);
        self.arena.budget.charge_argument(shown.len(), PLACE);
        self.long_names.push((source, Entry { name, value }));
    }
}
