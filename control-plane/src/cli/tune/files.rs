//! Changed entities as files for review: one in each, as `COLLECTION/ID.yaml`, with all that they name, so that the folder can be checked and
//! applied by itself.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::atomic_file::{self, Readers};
use entities::registry;
use entities::{EntitySet, FileEntity, References};
use kit::{Edit, EntityEdit};
use serde_json::Value;

use crate::cli::error::CliError;
use crate::cli::export::without_times;

/// The first line of each file. One that begins otherwise was made by someone else.
const MARK: &str = "# Written by `palisade tune`, which replaces this file when it runs again.\n";

/// A file.
pub(super) struct Written {
    pub(super) file: PathBuf,
    pub(super) outcome: Outcome,
}

/// The outcome for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was written.
    Written,
    /// It had the same content.
    Unchanged,
    /// It is not one of ours, and has the same entity.
    Given,
}

/// Refuses a folder within that of the entities: its files would be read as entities, which are there twice then.
pub(super) fn outside(folder: &Path, entities: &Path) -> Result<(), CliError> {
    let real = |path: &Path| {
        path.ancestors().find_map(|above| match above.as_os_str().is_empty() {
            true => std::fs::canonicalize(".").ok(),
            false => std::fs::canonicalize(above).ok(),
        })
    };
    match (real(folder), std::fs::canonicalize(entities)) {
        (Some(within), Ok(entities)) if within.starts_with(&entities) => Err(CliError::Other(format!(
            "--write {}: this is within the entities, which would be there twice; write into another folder, and copy from there what you take",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// The document of an entity as it was written the last time; `None` where it was not.
pub(super) fn earlier(folder: &Path, collection: &str, id: &str) -> Option<Value> {
    let text = std::fs::read_to_string(file_of(folder, collection, id)).ok()?;
    serde_saphyr::from_str(text.strip_prefix(MARK)?).ok()
}

/// Writes what edits make of entities, the entity `root`, and all that these name.
///
/// # Errors
/// The edits cannot be made, a file is not one of ours, or the error of the system. Nothing was written in the first two cases.
pub(super) fn write(
    folder: &Path,
    set: &EntitySet,
    edits: Vec<EntityEdit>,
    root: (&'static str, &str),
) -> Result<Vec<Written>, CliError> {
    let mut changed = set.clone();
    let mut names = BTreeSet::from([(root.0.to_owned(), root.1.to_owned())]);
    for edit in edits {
        names.insert((edit.collection.to_owned(), edit.id.clone()));
        make(&mut changed, edit)?;
    }
    let mut files = Vec::new();
    for (collection, id) in with_named(&changed, names) {
        let Some(slot) = changed.slot(&collection, &id) else { continue };
        let document = without_times(slot.entity.stored());
        let file = file_of(folder, &collection, &id);
        let (text, outcome) = planned(&file, &document)?;
        files.push((Written { file, outcome }, text));
    }
    elsewhere(folder, &files)?;
    for (Written { file, outcome }, text) in &files {
        if *outcome != Outcome::Written {
            continue;
        }
        let fail = |what: &str, path: &Path, error| CliError::Io(format!("{what} {}", path.display()), error);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent).map_err(|error| fail("make", parent, error))?;
        }
        atomic_file::replace(file, text.as_bytes(), Readers::Umask).map_err(|error| fail("write", file, error))?;
    }
    Ok(files.into_iter().map(|(written, _)| written).collect())
}

fn make(set: &mut EntitySet, EntityEdit { collection, id, edit }: EntityEdit) -> Result<(), CliError> {
    let wrong = |why: String| CliError::Other(format!("{collection}/{id}: {why}"));
    let kind = registry::by_collection(collection).ok_or_else(|| wrong("there is no such collection".to_owned()))?;
    let document = match edit {
        Edit::Create(document) => document,
        Edit::Merge { patch, .. } => {
            let slot = set.slot(collection, &id).ok_or_else(|| wrong("there is no such entity".to_owned()))?;
            let mut document = slot.entity.stored();
            json_patch::merge(&mut document, &patch);
            document
        }
    };
    let entity = kit::with_masks(|| kind.read(document));
    let entity = entity.map_err(|problems| wrong(problems.first().map(ToString::to_string).unwrap_or_default()))?;
    set.insert(kind, entity, 0);
    Ok(())
}

/// Entities with all that they name, and what that names.
fn with_named(set: &EntitySet, names: BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    let (mut all, mut open) = (BTreeSet::new(), names);
    while let Some((collection, id)) = open.pop_first() {
        if let Some(slot) = set.slot(&collection, &id) {
            let asking = Asking { set, asked: RefCell::default() };
            // What is wrong with it was said when it was read.
            let _ = slot.entity.check(&asking);
            open.extend(asking.asked.into_inner().into_iter().filter(|name| !all.contains(name)));
        }
        all.insert((collection, id));
    }
    all
}

/// Entities, and which of them were asked for.
struct Asking<'a> {
    set: &'a EntitySet,
    asked: RefCell<Vec<(String, String)>>,
}

impl References for Asking<'_> {
    fn exists(&self, collection: &str, id: &str) -> Option<bool> {
        let exists = self.set.exists(collection, id);
        if exists == Some(true) {
            self.asked.borrow_mut().push((collection.to_owned(), id.to_owned()));
        }
        exists
    }

    fn groups(&self) -> Option<Vec<String>> {
        self.set.groups()
    }
}

/// A folder that is called like its collection says what is in it; names that begin with a dot are not read.
fn file_of(folder: &Path, collection: &str, id: &str) -> PathBuf {
    let dotted = if id.starts_with('.') { "_" } else { "" };
    folder.join(collection).join(format!("{dotted}{id}.yaml"))
}

/// The text of a file, and what is to become of the file.
fn planned(file: &Path, document: &Value) -> Result<(String, Outcome), CliError> {
    let text = format!("{MARK}{}", body(document)?);
    let known = match std::fs::read_to_string(file) {
        Ok(known) => known,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((text, Outcome::Written)),
        Err(error) => return Err(CliError::Io(format!("read {}", file.display()), error)),
    };
    if known == text {
        return Ok((text, Outcome::Unchanged));
    }
    if known.starts_with(MARK) {
        return Ok((text, Outcome::Written));
    }
    if serde_saphyr::from_str::<Value>(&known).is_ok_and(|known| known == *document) {
        return Ok((text, Outcome::Given));
    }
    Err(foreign(file))
}

/// Refuses a folder in which another file has one of the entities.
fn elsewhere(folder: &Path, files: &[(Written, String)]) -> Result<(), CliError> {
    // What cannot be read there is no entity, and the check of the folder says so.
    let there = if folder.is_dir() { FileEntity::read_dir(folder).unwrap_or_default() } else { Vec::new() };
    let twice = there.iter().find(|there| {
        let own = file_of(folder, there.kind.collection, &there.entity.head().id);
        there.file != own && files.iter().any(|(written, _)| written.file == own)
    });
    twice.map_or(Ok(()), |twice| Err(foreign(&twice.file)))
}

fn foreign(file: &Path) -> CliError {
    CliError::Other(format!(
        "{} was not written by `palisade tune` and is not replaced, nor was anything else written; choose another folder",
        file.display()
    ))
}

/// YAML; where that would not come back as it is, JSON, which YAML has in it.
fn body(document: &Value) -> Result<String, CliError> {
    let is_same = |text: &String| serde_saphyr::from_str::<Value>(text).is_ok_and(|back| back == *document);
    let yaml = serde_saphyr::to_string(document).ok();
    let json = || Some(format!("{document:#}\n"));
    let text = yaml.filter(is_same).or_else(|| json().filter(is_same));
    text.ok_or_else(|| CliError::Other("an exclusion cannot be written as YAML".to_owned()))
}
