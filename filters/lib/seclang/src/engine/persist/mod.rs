//! Persistent collections: GLOBAL, IP, SESSION, USER and RESOURCE.
//!
//! `initcol`, `setsid`, `setuid` and `setrsc` only attach a record to a collection. The record is read when a rule
//! first reads the collection. Writes are collected and applied in one atomic update, when a rule reads again or the
//! phase ends: counters of many workers add up, and a rule that adds one for each of a thousand arguments costs one
//! update.

mod record;
#[cfg(test)]
mod tests;

use record::{Operation, Record};

use super::arena::Value;
use super::build::Engine;
use super::rules::{SetOperation, SetVariable};
use super::store::{Collection, Entry};
use super::transaction::Transaction;
use crate::operator::integer;
use crate::vocabulary::Variable;

/// The most operations that are collected before an update.
const GATHERED: usize = 64;

/// Names that every record has and no rule may write to.
pub(crate) const READ_ONLY: [&str; 6] =
    ["CREATE_TIME", "IS_NEW", "KEY", "LAST_UPDATE_TIME", "UPDATE_COUNTER", "UPDATE_RATE"];

/// The store of the records of persistent collections, shared by all workers of a node.
///
/// Keys come from requests and may be long: the store has to hash them.
pub trait Collections {
    /// The record of that name as it was stored last; `None` if it is absent or expired.
    fn load(&self, name: &RecordName<'_>, now_millis: u64) -> Option<Vec<u8>>;

    /// Replaces a record by what `change` makes of it, atomically: `change` is called again with the newer record if
    /// another worker wrote in between. `None` from `change` leaves the record as it is.
    ///
    /// # Errors
    /// [`UpdateLost`] if others won every one of a bounded number of tries.
    fn update(
        &self,
        name: &RecordName<'_>,
        now_millis: u64,
        change: &mut dyn FnMut(Option<&[u8]>) -> Option<StoredRecord>,
    ) -> Result<(), UpdateLost>;
}

/// The identity of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordName<'a> {
    /// Which collection.
    pub kind: CollectionKind,
    /// `SecWebAppId`: applications do not share records.
    pub application: &'a [u8],
    /// The key of `initcol` and the like; any bytes, up to [`super::limits::EXPANSION_LENGTH`].
    pub key: &'a [u8],
}

/// A persistent collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CollectionKind {
    /// `GLOBAL`.
    Global,
    /// `IP`.
    Ip,
    /// `SESSION`.
    Session,
    /// `USER`.
    User,
    /// `RESOURCE`.
    Resource,
}

/// An encoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// At most [`super::limits::RECORD_LENGTH`] bytes.
    pub bytes: Vec<u8>,
    /// When it ends, milliseconds since 1970.
    pub expires_at: u64,
}

/// The store gave up an update: its writes are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateLost;

impl CollectionKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Global, Self::Ip, Self::Session, Self::User, Self::Resource];

    /// The kind of a variable.
    pub(crate) fn of(variable: Variable) -> Option<Self> {
        Some(match variable {
            Variable::Global => Self::Global,
            Variable::Ip => Self::Ip,
            Variable::Session => Self::Session,
            Variable::User => Self::User,
            Variable::Resource => Self::Resource,
            _ => return None,
        })
    }
}

/// The persistent collections of a transaction.
#[derive(Default)]
pub(super) struct Persistence {
    store: Option<Box<dyn Collections>>,
    /// By the number of the kind.
    attached: [Option<Box<Attachment>>; CollectionKind::ALL.len()],
    lost: u32,
}

/// The record attached to a collection.
struct Attachment {
    key: Vec<u8>,
    /// The record at the last read.
    record: Option<Record>,
    /// The record was absent when this transaction first read it.
    is_new: Option<bool>,
    /// The collection shows the record.
    shown: bool,
    /// This transaction is in the record's counter.
    counted: bool,
    operations: Vec<Operation>,
}

impl Engine {
    /// Whether a rule attaches a record to a collection: only then [`Transaction::set_collections`] has an effect.
    pub fn uses_collections(&self) -> bool {
        let mut links = self.rules.iter().flat_map(|rule| &rule.links);
        links.any(|link| link.sets.iter().any(|set| set.operation == SetOperation::Attach))
    }
}

impl Transaction {
    /// Sets the store of persistent collections. Without it, collections last for the transaction.
    pub fn set_collections(&mut self, collections: Box<dyn Collections>) {
        self.persistence.store = Some(collections);
    }

    /// How many writes to persistent collections were lost: because other workers won every try, or because the record
    /// would have exceeded its limits.
    pub fn lost_writes(&self) -> u32 {
        self.persistence.lost
    }

    fn attachment(&mut self, variable: Variable) -> Option<&mut Attachment> {
        let kind = CollectionKind::of(variable)?;
        self.persistence.attached.get_mut(kind as usize)?.as_deref_mut()
    }

    /// Attaches the record of a key to a collection. An empty key attaches none: all clients without a session would
    /// share it.
    pub(super) fn attach_collection(&mut self, variable: Variable, key: Vec<u8>) {
        let Some(kind) = CollectionKind::of(variable) else { return };
        if key.is_empty() || self.attachment(variable).is_some_and(|known| known.key == key) {
            return;
        }
        self.flush_collection(variable);
        let fresh =
            Attachment { key, record: None, is_new: None, shown: false, counted: false, operations: Vec::new() };
        if let Some(place) = self.persistence.attached.get_mut(kind as usize) {
            *place = Some(Box::new(fresh));
        }
    }

    /// Applies an assignment to a record; `false` if it is not one for a record.
    pub(super) fn assign_persistent(&mut self, set: &SetVariable, key: &[u8], operand: Value) -> bool {
        if set.operation == SetOperation::Attach {
            let record_key = self.arena.get(operand).to_vec();
            self.attach_collection(set.variable, record_key);
            return true;
        }
        let value = self.arena.get(operand).to_vec();
        let Some(attachment) = self.attachment(set.variable) else {
            // Nothing expires within a transaction.
            return matches!(set.operation, SetOperation::Expire | SetOperation::Deprecate);
        };
        if READ_ONLY.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(key)) {
            return true;
        }
        let name = key.to_vec();
        let seconds = |text: &[u8]| u64::try_from(integer(text)).unwrap_or(0);
        let operation = match set.operation {
            SetOperation::To => Operation::Set(name, value),
            SetOperation::Nothing => Operation::Remove(name),
            SetOperation::Add => Operation::Add(name, integer(&value)),
            SetOperation::Subtract => Operation::Add(name, integer(&value).saturating_neg()),
            SetOperation::Expire => Operation::Expire(name, seconds(&value)),
            SetOperation::Deprecate => {
                let slash = value.iter().position(|&byte| byte == b'/').unwrap_or(value.len());
                let period = seconds(value.get(slash + 1..).unwrap_or_default());
                Operation::Deprecate(name, integer(value.get(..slash).unwrap_or_default()).max(0), period)
            }
            SetOperation::Attach | SetOperation::Sanitise => return false,
        };
        attachment.gather(operation);
        if attachment.operations.len() >= GATHERED {
            self.flush_collection(set.variable);
        }
        true
    }

    /// Loads the record of a collection before a rule reads it.
    pub(super) fn show_collection(&mut self, variable: Variable) {
        let Some(attachment) = self.attachment(variable) else { return };
        if !attachment.operations.is_empty() {
            self.flush_collection(variable);
        } else if attachment.record.is_none() {
            self.load_collection(variable);
        }
        let now = self.now_millis;
        let Some(attachment) = self.attachment(variable) else { return };
        if std::mem::replace(&mut attachment.shown, true) {
            return;
        }
        let Some(record) = attachment.record.clone() else { return };
        let is_new = u64::from(attachment.is_new == Some(true));
        let key = self.arena.push(attachment_key(&self.persistence, variable));
        let mut entries = Vec::with_capacity(record.variables.len() + READ_ONLY.len() + 1);
        for kept in &record.variables {
            entries.push(Entry { name: self.arena.push(&kept.name), value: self.arena.push(&kept.value) });
        }
        entries.push(Entry { name: self.arena.push(b"KEY"), value: key });
        for (name, number) in [
            ("CREATE_TIME", record.created / 1000),
            ("IS_NEW", is_new),
            ("LAST_UPDATE_TIME", record.updated / 1000),
            ("TIMEOUT", u64::from(record.timeout)),
            ("UPDATE_COUNTER", u64::from(record.counter)),
            ("UPDATE_RATE", record.rate(now)),
        ] {
            let value = self.arena.number(i64::try_from(number).unwrap_or(i64::MAX));
            entries.push(Entry { name: self.arena.push(name.as_bytes()), value });
        }
        if let Some(collection) = self.collection_mut(variable) {
            collection.entries = entries;
        }
    }

    fn collection_mut(&mut self, variable: Variable) -> Option<&mut Collection> {
        Some(match CollectionKind::of(variable)? {
            CollectionKind::Global => &mut self.global,
            CollectionKind::Ip => &mut self.ip,
            CollectionKind::Session => &mut self.session,
            CollectionKind::User => &mut self.user,
            CollectionKind::Resource => &mut self.resource,
        })
    }

    fn load_collection(&mut self, variable: Variable) {
        let engine = std::sync::Arc::clone(&self.engine);
        let (now, timeout) = (self.now_millis, engine.settings.collection_timeout);
        let Persistence { store, attached, .. } = &mut self.persistence;
        let Some(kind) = CollectionKind::of(variable) else { return };
        let Some(attachment) = attached.get_mut(kind as usize).and_then(Option::as_deref_mut) else { return };
        let name = RecordName { kind, application: &engine.settings.web_app_id, key: &attachment.key };
        let stored = store.as_ref().and_then(|store| store.load(&name, now));
        let found = stored.and_then(|bytes| Record::decode(&bytes, now));
        attachment.is_new.get_or_insert(found.is_none());
        attachment.record = Some(found.unwrap_or_else(|| Record::new(now, timeout)));
        attachment.shown = false;
    }

    /// Applies the collected writes of a collection.
    fn flush_collection(&mut self, variable: Variable) {
        let engine = std::sync::Arc::clone(&self.engine);
        let (now, timeout) = (self.now_millis, engine.settings.collection_timeout);
        let Persistence { store, attached, lost } = &mut self.persistence;
        let Some(kind) = CollectionKind::of(variable) else { return };
        let Some(attachment) = attached.get_mut(kind as usize).and_then(Option::as_deref_mut) else { return };
        if attachment.operations.is_empty() {
            return;
        }
        let operations = std::mem::take(&mut attachment.operations);
        let counted = attachment.counted;
        // The record after the update, whether it existed, and how many operations exceeded its limits.
        let changed = |record: Option<Record>| {
            let is_new = record.is_none();
            let mut record = record.unwrap_or_else(|| Record::new(now, timeout));
            let refused = operations.iter().filter(|operation| !record.apply(operation, now)).count();
            record.updated = record.updated.max(now);
            record.counter = record.counter.saturating_add(u32::from(!counted));
            (record, is_new, refused)
        };
        let name = RecordName { kind, application: &engine.settings.web_app_id, key: &attachment.key };
        let mut outcome = None;
        if let Some(store) = store {
            let updated = store.update(&name, now, &mut |bytes| {
                let done = changed(bytes.and_then(|bytes| Record::decode(bytes, now)));
                let stored = StoredRecord { bytes: done.0.encode(), expires_at: done.0.expires_at() };
                outcome = Some(done);
                Some(stored)
            });
            if updated.is_err() {
                *lost = lost.saturating_add(u32::try_from(operations.len()).unwrap_or(u32::MAX));
                outcome = None;
            }
        }
        let (record, is_new, refused) = outcome.unwrap_or_else(|| {
            // The rest of this transaction sees what it wrote, even if no other does.
            let stored = store.as_ref().and_then(|store| store.load(&name, now));
            let before = match store {
                Some(_) => stored.and_then(|bytes| Record::decode(&bytes, now)),
                None => attachment.record.take(),
            };
            changed(before)
        });
        *lost = lost.saturating_add(u32::try_from(refused).unwrap_or(u32::MAX));
        attachment.is_new.get_or_insert(is_new);
        attachment.record = Some(record);
        attachment.counted = true;
        attachment.shown = false;
    }

    /// Applies the collected writes at the end of a phase.
    pub(super) fn flush_collections(&mut self) {
        for variable in [Variable::Global, Variable::Ip, Variable::Session, Variable::User, Variable::Resource] {
            self.flush_collection(variable);
        }
    }
}

impl Attachment {
    /// Collects an operation. Repetitions for several values are merged.
    fn gather(&mut self, operation: Operation) {
        let is_repeated = match &operation {
            Operation::Add(name, by) => {
                let mut before =
                    self.operations.iter_mut().rev().filter(|known| !matches!(known, Operation::Expire(..)));
                match before.find(|known| known.name() == name) {
                    Some(Operation::Add(_, sum)) => {
                        *sum = sum.saturating_add(*by);
                        true
                    }
                    _ => false,
                }
            }
            Operation::Expire(name, _) => {
                let mut before = self.operations.iter().rev();
                let last = before.find(|known| known.name() == name && !matches!(known, Operation::Add(..)));
                last == Some(&operation)
            }
            operation => self.operations.last() == Some(operation),
        };
        if !is_repeated {
            self.operations.push(operation);
        }
    }
}

fn attachment_key(persistence: &Persistence, variable: Variable) -> Vec<u8> {
    let kind = CollectionKind::of(variable);
    let attached = kind.and_then(|kind| persistence.attached.get(kind as usize)?.as_deref());
    attached.map(|attached| attached.key.clone()).unwrap_or_default()
}
