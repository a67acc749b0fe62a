//! The last question before a write is committed: can what it leads to be served?

use super::{EntitySet, FieldProblem};

/// What a write does to an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Created,
    /// It was there before.
    Updated,
    /// It is gone (from the candidate set as well).
    Deleted,
}

/// The entity that a write changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityRef {
    /// Its collection, such as `waf-configs`.
    pub collection: &'static str,
    /// Its id.
    pub id: String,
    /// What happens to it.
    pub change: Change,
}

/// Why a candidate is refused, and which of the changes (by its index) is at fault, where that can be said.
pub type Refusal = (Option<usize>, FieldProblem);

/// Something that is allowed and probably not meant, and which of the changes (by its index) it is about, where it is about
/// one alone.
pub type Warning = (Option<usize>, String);

/// Judges the entities as they would be after a write, before it is committed. Runs on a thread that may block, one
/// write at a time.
pub trait Admission: Send + Sync {
    /// Admits the candidate, with warnings for the caller, or refuses it.
    ///
    /// # Errors
    /// Why the candidate cannot be served; pointers are relative to the changed entity's document. The write is then
    /// refused (400, or 409 for a deletion) and the store is left as it is.
    fn admit(&self, candidate: &EntitySet, changed: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>>;

    /// The same question about several changes that are made as one. Asks about one after the other unless a judge knows
    /// better; each is asked about the same candidate.
    ///
    /// # Errors
    /// As of [`Admission::admit`].
    fn admit_all(&self, candidate: &EntitySet, changed: &[EntityRef]) -> Result<Vec<Warning>, Vec<Refusal>> {
        let (mut warnings, mut refusals): (Vec<Warning>, Vec<_>) = (Vec::new(), Vec::new());
        for (index, one) in changed.iter().enumerate() {
            match self.admit(candidate, one) {
                Ok(new) => {
                    for warning in new {
                        if !warnings.iter().any(|(_, known)| *known == warning) {
                            warnings.push((None, warning));
                        }
                    }
                }
                Err(problems) => refusals.extend(problems.into_iter().map(|problem| (Some(index), problem))),
            }
        }
        if refusals.is_empty() { Ok(warnings) } else { Err(refusals) }
    }
}
