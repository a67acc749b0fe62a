//! The files of a recording.

use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::OpenError;
use crate::{BadEntry, Place};

/// The most files of a recording.
const FILES: usize = 1 << 20;

/// A file, by the name under which it was found.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// In bytes, on disk.
    pub(super) length: u64,
    /// It can be read twice. A pipe cannot.
    pub(super) is_regular: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) files: Vec<File>,
    /// What is in the folders and cannot be looked at.
    pub(super) unreadable: Vec<BadEntry>,
}

/// All files of the paths, in the order of the paths, those of a folder by name.
pub(super) fn list(paths: &[PathBuf]) -> Result<Listed, OpenError> {
    let mut listed = Listed::default();
    for path in paths {
        let error = |why: String| OpenError { path: path.clone(), why };
        let data = std::fs::metadata(path).map_err(|fault| error(format!("cannot be read: {fault}")))?;
        if !data.is_dir() {
            listed.files.push(File { path: path.clone(), length: data.len(), is_regular: data.is_file() });
        } else if !folder(path, &mut listed) {
            return Err(error("there are no files in this folder (hidden ones do not count)".to_owned()));
        }
        if listed.files.len() > FILES {
            return Err(error(format!("there are more than {FILES} files: replay them in parts, or join them")));
        }
    }
    Ok(listed)
}

/// Adds what is in a folder; `false` where that is nothing.
fn folder(root: &Path, listed: &mut Listed) -> bool {
    let before = listed.files.len() + listed.unreadable.len();
    let visible = |entry: &DirEntry| entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".");
    let mut walk = WalkDir::new(root).follow_links(true).sort_by_file_name().into_iter().filter_entry(visible);
    while let Some(found) = walk.next().filter(|_| listed.files.len() <= FILES) {
        let found = found.and_then(|entry| Ok((entry.metadata()?, entry.into_path())));
        match found {
            Ok((data, _)) if data.is_dir() => {}
            Ok((data, path)) => listed.files.push(File { path, length: data.len(), is_regular: data.is_file() }),
            Err(error) => {
                let file = error.path().unwrap_or(root).to_string_lossy().into();
                let why = format!("cannot be looked at: {error}");
                listed.unreadable.push(BadEntry { place: Place { file, number: 0 }, why });
            }
        }
    }
    listed.files.len() + listed.unreadable.len() > before
}
