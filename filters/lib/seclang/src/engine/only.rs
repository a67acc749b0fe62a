//! Arguments, and values of names that a request has once.

use super::store::Entry;
use super::transaction::Transaction;
use crate::vocabulary::Variable;

impl Transaction {
    /// The names and values of `ARGS`, as they were read and not transformed, in their order.
    pub fn arguments(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.arguments.iter().map(|(_, entry)| (self.arena.get(entry.name), self.arena.get(entry.value)))
    }

    /// The value of a name in `ARGS`, `REQUEST_HEADERS` or `REQUEST_COOKIES`, as it was read and not transformed; the case of the name
    /// does not count. `None` where there is no such name, where it stands there more than once, and for any other collection.
    pub fn only_value(&self, collection: Variable, name: &[u8]) -> Option<&[u8]> {
        let same = |entry: &&Entry| self.arena.get(entry.name).eq_ignore_ascii_case(name);
        let (first, second) = match collection {
            Variable::Args => {
                let mut all = self.arguments.iter().map(|(_, entry)| entry).filter(same);
                (all.next(), all.next())
            }
            Variable::RequestHeaders => {
                let mut all = self.request_headers.entries.iter().filter(same);
                (all.next(), all.next())
            }
            Variable::RequestCookies => {
                let mut all = self.cookies.entries.iter().filter(same);
                (all.next(), all.next())
            }
            _ => return None,
        };
        first.filter(|_| second.is_none()).map(|entry| self.arena.get(entry.value))
    }
}
