//! Many changes as one: checked and admitted together, committed at once, then visible in one step.

mod commit;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::admission::{Change, EntityRef, Refusal, Warning};
use super::change::{BatchEntry, BatchOptions, BatchOutcome, BatchWrite, WriteError};
use super::document::{apply, demand, keep_id, stamp};
use super::history::Signature;
use super::service::Shared;
use super::{EntityService, EntitySet, FieldProblem, Slot, unused};
use kit::References;

/// What all patches of a batch may copy within their documents, in bytes of memory: each has a bound of its own, and all of their results
/// are kept until the end.
const MAX_COPIED: usize = 8 * super::patch::MAX_COPIED;

/// How often a batch is divided to find the change that a judge refuses without a name. A judgement compiles everything, and finding one
/// of ten thousand takes fourteen divisions.
const MAX_DIVISIONS: usize = 200;

impl EntityService {
    /// Makes all changes with one commit and one notice. Either everything that was not refused is durable and visible,
    /// or nothing is.
    pub async fn write_all(&self, mut entries: Vec<BatchEntry>, options: BatchOptions) -> BatchOutcome {
        for entry in &mut entries {
            if let BatchWrite::Create(document) = &mut entry.write {
                entry.kind.give_id(document);
            }
        }
        let count = entries.len();
        let entries = entries.into_iter().map(|entry| (entry, self.signature.clone())).collect();
        let written = self.detached(move |shared| async move {
            // What is only tried must keep nothing from being written; one at a time, because judging takes a processor.
            let turn = if options.dry_run { &shared.trying } else { &shared.writing };
            let _turn = turn.lock().await;
            let set = shared.current.borrow().clone();
            Ok(Batch::new(&shared, set, entries, options).run().await)
        });
        written.await.unwrap_or_else(|error| BatchOutcome { results: vec![Err(error); count], warnings: Vec::new() })
    }
}

/// The entities as they are, and as they would be after changes that could be made.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// As they are.
    pub before: Arc<EntitySet>,
    /// As they would be.
    pub after: EntitySet,
    /// What is allowed and probably not meant; those about one change come first, with its index.
    pub warnings: Vec<Warning>,
}

impl EntityService {
    /// Judges changes as [`EntityService::write_all`] does with [`BatchOptions::atomic`], and writes nothing.
    ///
    /// # Errors
    /// What is wrong, for each change; [`WriteError::NotApplied`] for those that are right.
    pub async fn propose(&self, mut entries: Vec<BatchEntry>) -> Result<Proposal, Vec<WriteError>> {
        for entry in &mut entries {
            if let BatchWrite::Create(document) = &mut entry.write {
                entry.kind.give_id(document);
            }
        }
        let count = entries.len();
        let entries = entries.into_iter().map(|entry| (entry, self.signature.clone())).collect();
        let judged = self.detached(move |shared| async move {
            let before = shared.current.borrow().clone();
            let options = BatchOptions { atomic: true, dry_run: true };
            let mut batch = Batch::new(&shared, Arc::clone(&before), entries, options);
            let after = batch.together().await;
            let Batch { results, mut warnings, .. } = batch;
            warnings.sort_by_key(|(about, _)| about.is_none());
            let refused = || results.into_iter().map(|result| result.err().unwrap_or(WriteError::NotApplied)).collect();
            Ok(after.map(|after| Proposal { before, after, warnings }).ok_or_else(refused))
        });
        judged.await.unwrap_or_else(|error| Err(vec![error; count]))
    }
}

/// A change, and in whose name it is made.
pub(super) type Signed = (BatchEntry, Signature);

/// A batch at work.
pub(super) struct Batch<'a> {
    shared: &'a Shared,
    set: Arc<EntitySet>,
    entries: Vec<Signed>,
    options: BatchOptions,
    results: Vec<Result<Slot, WriteError>>,
    /// What the patch of each entry has copied, in bytes of memory.
    copied: Vec<usize>,
    warnings: Vec<Warning>,
}

// === impl Batch ===

impl<'a> Batch<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        set: Arc<EntitySet>,
        entries: Vec<Signed>,
        options: BatchOptions,
    ) -> Batch<'a> {
        let results = vec![Err(WriteError::NotApplied); entries.len()];
        let copied = vec![0; entries.len()];
        Batch { shared, set, entries, options, results, copied, warnings: Vec::new() }
    }

    /// All entries or none: nothing to commit comes back where one is refused.
    async fn together(&mut self) -> Option<EntitySet> {
        let before = Arc::clone(&self.set);
        let mut candidate = EntitySet::clone(&before);
        let all: Vec<usize> = (0..self.entries.len()).collect();
        let taken = self.take(&all, &mut candidate, false);
        // Only now, so that an entry may name one that comes after it.
        let mut problems: BTreeMap<usize, Vec<FieldProblem>> = BTreeMap::new();
        for &index in &taken {
            let found = self.reference(index).and_then(|changed| candidate.slot(changed.collection, &changed.id));
            let found = found.map(|slot| slot.entity.check(&candidate)).unwrap_or_default();
            if !found.is_empty() {
                problems.insert(index, found);
            }
        }
        let refused = taken.len() < all.len() || !problems.is_empty();
        if refused {
            self.refuse(problems.into_iter().flat_map(|(index, found)| found.into_iter().map(move |one| (index, one))));
            self.take_back(&WriteError::NotApplied);
            return None;
        }
        match self.judge(&before, candidate, &taken).await {
            Ok(candidate) => Some(candidate),
            Err(refusals) => {
                let everywhere = |problem: FieldProblem| taken.iter().map(move |index| (*index, problem.clone()));
                let named: Vec<_> = refusals
                    .into_iter()
                    .flat_map(|(index, problem)| match index {
                        Some(index) => vec![(index, problem)],
                        None => everywhere(problem).collect(),
                    })
                    .collect();
                self.refuse(named.into_iter());
                self.take_back(&WriteError::NotApplied);
                None
            }
        }
    }

    /// Each entry by itself, in their order. They are judged together as long as that goes well, because judging means to
    /// compile everything: refused entries are left out and the others judged again; where it cannot be said which one
    /// is at fault, the half of them. After [`MAX_DIVISIONS`] all that are left of such a part are refused.
    async fn each(&mut self) -> EntitySet {
        let mut accepted = EntitySet::clone(&self.set);
        let mut parts: Vec<Vec<usize>> = vec![(0..self.entries.len()).collect()];
        let mut divisions = 0;
        while let Some(part) = parts.pop() {
            let mut candidate = accepted.clone();
            let mut taken = self.take(&part, &mut candidate, true);
            if taken.is_empty() {
                continue;
            }
            let refusals = match self.judge(&accepted, candidate, &taken).await {
                Ok(candidate) => {
                    accepted = candidate;
                    continue;
                }
                Err(refusals) => refusals,
            };
            let (mut named, mut unnamed) = (Vec::new(), Vec::new());
            for (index, problem) in refusals {
                match index {
                    Some(index) => named.push((index, problem)),
                    None => unnamed.push(problem),
                }
            }
            let is_last = taken.len() == 1 || (named.is_empty() && divisions == MAX_DIVISIONS);
            if is_last {
                named.extend(taken.iter().flat_map(|index| unnamed.iter().map(|problem| (*index, problem.clone()))));
            }
            if named.is_empty() {
                divisions += 1;
                let rest = taken.split_off(taken.len().div_ceil(2));
                parts.extend([rest, taken]);
            } else {
                let out: BTreeSet<usize> = named.iter().map(|(index, _)| *index).collect();
                self.refuse(named.into_iter());
                taken.retain(|index| !out.contains(index));
                parts.push(taken);
            }
        }
        accepted
    }

    /// Makes these changes in the candidate, notes how each went, and returns those that went well.
    fn take(&mut self, indexes: &[usize], candidate: &mut EntitySet, check: bool) -> Vec<usize> {
        let next = self.set.revision() + 1;
        let mut taken = Vec::new();
        let mut left = MAX_COPIED.saturating_sub(self.copied.iter().sum());
        for &index in indexes {
            let (Some((entry, _)), Some(copied)) = (self.entries.get(index), self.copied.get_mut(index)) else {
                continue;
            };
            // What it copied in an earlier attempt is not there any more.
            left += std::mem::take(copied);
            let outcome = change(entry, candidate, (next, check), left, copied);
            left -= *copied;
            if outcome.is_ok() {
                taken.push(index);
            }
            self.note(index, outcome);
        }
        taken
    }

    /// What the candidate leaves dangling, then what the judges say. Refusals name the entry they are about, where that
    /// can be said.
    async fn judge(
        &mut self,
        before: &EntitySet,
        candidate: EntitySet,
        taken: &[usize],
    ) -> Result<EntitySet, Vec<Refusal>> {
        let changed: Vec<EntityRef> = taken.iter().filter_map(|index| self.reference(*index)).collect();
        let anyway = |index: usize| {
            let entry = taken.get(index).and_then(|index| self.entries.get(*index));
            entry.is_some_and(|(entry, _)| matches!(entry.write, BatchWrite::DeleteAnyway(_)))
        };
        let (told, dangling): (Vec<_>, Vec<_>) =
            dangling(before, &candidate, &changed).into_iter().partition(|(index, _)| anyway(*index));
        let (candidate, warnings) = if dangling.is_empty() {
            self.shared.admit_all(candidate, changed.clone()).await
        } else {
            Err(dangling.into_iter().map(|(index, problem)| (Some(index), problem)).collect())
        }
        .map_err(|refusals| {
            let entry = |index: Option<usize>| index.and_then(|index| taken.get(index).copied());
            let mut refusals: Vec<Refusal> =
                refusals.into_iter().map(|(index, problem)| (entry(index), problem)).collect();
            if refusals.is_empty() {
                refusals.push((None, FieldProblem::new("", "this was refused, and no reason was given")));
            }
            refusals
        })?;
        // What was said of earlier entries holds; what was said of all entities is said again.
        self.warnings.retain(|(about, _)| about.is_some());
        let told = told.into_iter().map(|(index, problem)| (Some(index), problem.to_string()));
        let unused = changed.iter().enumerate().flat_map(|(index, changed)| {
            let slot = candidate.slot(changed.collection, &changed.id);
            let unused = slot.map(|slot| unused::of_entity(changed.collection, &*slot.entity)).unwrap_or_default();
            let place = format!("{}/{}", changed.collection, changed.id);
            unused.into_iter().map(move |problem| (Some(index), format!("{place}: {problem}")))
        });
        let entry = |about: Option<usize>| about.and_then(|index| taken.get(index).copied());
        self.warnings.extend(unused.chain(told).chain(warnings).map(|(about, text)| (entry(about), text)));
        Ok(candidate)
    }

    /// The entity that an entry is about.
    fn reference(&self, index: usize) -> Option<EntityRef> {
        let (entry, _) = self.entries.get(index)?;
        let (collection, id) = entry.place()?;
        let change = match &entry.write {
            BatchWrite::Create(_) => Change::Created,
            BatchWrite::Restore(..) if self.set.slot(collection, &id).is_none() => Change::Created,
            BatchWrite::Update(..) | BatchWrite::Restore(..) => Change::Updated,
            BatchWrite::Delete(_) | BatchWrite::DeleteAnyway(_) => Change::Deleted,
        };
        Some(EntityRef { collection, id, change })
    }

    /// Refuses entries, each with all of its problems.
    fn refuse(&mut self, problems: impl Iterator<Item = (usize, FieldProblem)>) {
        let mut of: BTreeMap<usize, Vec<FieldProblem>> = BTreeMap::new();
        for (index, problem) in problems {
            of.entry(index).or_default().push(problem);
        }
        for (index, problems) in of {
            let deletes = self.reference(index).is_some_and(|changed| changed.change == Change::Deleted);
            let error = if deletes { WriteError::InUse(problems) } else { WriteError::Invalid(problems) };
            self.note(index, Err(error));
        }
    }

    /// Gives what went well this error: something else did not, or the store failed, and nothing was made.
    fn take_back(&mut self, why: &WriteError) {
        for result in self.results.iter_mut().filter(|result| result.is_ok()) {
            *result = Err(why.clone());
        }
    }

    fn note(&mut self, index: usize, result: Result<Slot, WriteError>) {
        if let Some(place) = self.results.get_mut(index) {
            *place = result;
        }
    }
}

/// Makes one change in the candidate, or leaves it as it is. `check` looks at the entity by itself and at what it names. A patch may copy
/// `most` bytes of memory; `copied` is what it has copied.
fn change(
    entry: &BatchEntry,
    candidate: &mut EntitySet,
    (next, check): (u64, bool),
    most: usize,
    copied: &mut usize,
) -> Result<Slot, WriteError> {
    let kind = entry.kind;
    let current = |candidate: &EntitySet, id: &str| -> Result<Slot, WriteError> {
        let slot = candidate.slot(kind.collection, id).ok_or(WriteError::NotFound)?;
        demand(entry.precondition.as_ref(), Some(slot.revision))?;
        Ok(slot.clone())
    };
    let (mut document, before) = match &entry.write {
        BatchWrite::Create(document) => {
            let id = document.get("id").and_then(Value::as_str).unwrap_or_default();
            if kind.singleton.is_some() || candidate.slot(kind.collection, id).is_some() {
                return Err(WriteError::Exists);
            }
            (document.clone(), None)
        }
        BatchWrite::Update(id, replacement) => {
            let before = current(candidate, id)?;
            let (mut document, bytes) = apply(&before, replacement.clone(), most)?;
            *copied = bytes;
            keep_id(&mut document, id)?;
            (document, Some(before))
        }
        BatchWrite::Restore(id, document) => {
            let before = candidate.slot(kind.collection, id).cloned();
            demand(entry.precondition.as_ref(), before.as_ref().map(|slot| slot.revision))?;
            let mut document = document.clone();
            keep_id(&mut document, id)?;
            (document, before)
        }
        BatchWrite::Delete(id) | BatchWrite::DeleteAnyway(id) => {
            let slot = current(candidate, id)?;
            if let Some(problem) = kind.undeletable() {
                return Err(WriteError::InUse(vec![problem]));
            }
            candidate.remove(kind.collection, id);
            return Ok(slot);
        }
    };
    stamp(&mut document, before.as_ref());
    let entity = kind.read(document).map_err(WriteError::Invalid)?;
    candidate.insert(kind, Arc::clone(&entity), next);
    let problems = if check { entity.check(candidate) } else { Vec::new() };
    if problems.is_empty() {
        return Ok(Slot { revision: next, entity });
    }
    match before {
        Some(before) => candidate.insert(kind, before.entity, before.revision),
        None => candidate.remove(kind.collection, &entity.head().id),
    }
    Err(WriteError::Invalid(problems))
}

/// What still names an entity that the change at an index has deleted.
fn dangling(before: &EntitySet, after: &EntitySet, changed: &[EntityRef]) -> Vec<(usize, FieldProblem)> {
    let gone: BTreeMap<(&str, &str), usize> = changed
        .iter()
        .enumerate()
        .filter(|(_, changed)| {
            changed.change == Change::Deleted && after.slot(changed.collection, &changed.id).is_none()
        })
        .map(|(index, changed)| ((changed.collection, changed.id.as_str()), index))
        .collect();
    if gone.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (collection, id, slot) in after.iter() {
        let missing = Missing { set: after, names: RefCell::default() };
        let problems = slot.entity.check(&missing);
        for (named, name) in missing.names.into_inner() {
            let Some(index) = gone.get(&(named.as_str(), name.as_str())) else { continue };
            let known = before.slot(collection, id).map(|slot| slot.entity.check(before)).unwrap_or_default();
            let new = problems.iter().filter(|problem| !known.contains(problem));
            let places: Vec<&str> = new.map(|problem| problem.pointer.as_str()).collect();
            found.push((*index, FieldProblem::new("", format!("{collection}/{id} names it at {}", places.join(", ")))));
        }
    }
    found
}

/// Notes what is asked for and does not exist.
struct Missing<'a> {
    set: &'a EntitySet,
    names: RefCell<BTreeSet<(String, String)>>,
}

impl References for Missing<'_> {
    fn exists(&self, collection: &str, id: &str) -> Option<bool> {
        let exists = self.set.exists(collection, id);
        if exists == Some(false) {
            self.names.borrow_mut().insert((collection.to_owned(), id.to_owned()));
        }
        exists
    }
}
