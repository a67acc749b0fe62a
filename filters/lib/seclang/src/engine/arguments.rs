//! Arguments, and names of theirs that are too long.
//!
//! A name is kept with each of its values, and rules ask for both again and again. So at most [`NAME_LENGTH`] bytes of it
//! are: a longer name becomes its beginning and [`CUT`], the same for all names that begin alike. All of the name is
//! among the values of ARGS_NAMES instead, once, so that nothing of it goes uninspected. What a name that was cut is in
//! full is not known any more: exclusions by name never cover it.

use super::arena::{Arena, Value};
use super::collect::Item;
use super::familiar::hash;
use super::limits::NAME_LENGTH;
use super::store::Entry;
use super::transaction::{ArgumentSource, Transaction};
use crate::body;

/// What stands at the end of a name that was cut. No name that is kept whole is that long.
const CUT: &[u8] = b"~";

/// How much memory an argument takes besides its name and its value, in bytes: its place here, and in the two lists of what
/// rules look at. Lists that grow take twice as much as they hold.
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
}

impl Transaction {
    pub(super) fn arguments_to_add(&mut self) -> Arguments<'_> {
        Arguments { arena: &mut self.arena, list: &mut self.arguments, long_names: &mut self.long_names }
    }
}

impl Arguments<'_> {
    /// Adds an argument with a name as it was sent.
    pub(super) fn add_named(&mut self, source: ArgumentSource, name: &[u8], value: &[u8]) {
        self.add(source, body::Argument { name, unseen: is_cut(name).then_some(name), new: Some(name), value });
    }

    /// Adds an argument. Once the budget has come to its end, nothing is.
    pub(super) fn add(&mut self, source: ArgumentSource, argument: body::Argument<'_>) {
        if self.arena.budget.is_spent() {
            return;
        }
        let value = self.arena.push_once(argument.value);
        self.add_value(source, argument.name, argument.unseen, value);
    }

    /// Adds an argument with a value that is there already.
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

    /// Adds what a name holds beyond what is kept of it.
    fn add_long_name(&mut self, source: ArgumentSource, head: &[u8], name: &[u8]) {
        let value = self.arena.push_shared(name);
        self.arena.budget.charge_copy(self.long_names.len());
        // The names that begin alike are told apart where rules count them.
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
