//! What commands write to standard output.

use std::fmt;
use std::io::Write as _;
use std::path::Path;

use super::error::CliError;
use entities::FileEntity;

/// Writes to standard output.
pub(super) fn say(text: fmt::Arguments<'_>) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").map_err(|error| CliError::Io("write to standard output".to_owned(), error))
}

/// Says which files of a folder of entities are not read although they look as if they were meant to be, and that there are none.
pub(super) fn warn_of_files(folder: &Path, has_entities: bool) -> Result<(), CliError> {
    for file in FileEntity::passed_over(folder) {
        say(format_args!(
            "warning: {}: not read: names of files of entities end in .yaml, .yml or .json, in small letters",
            file.display()
        ))?;
    }
    if !has_entities {
        say(format_args!(
            "warning: {} has no entities: they are files that end in .yaml, .yml or .json",
            folder.display()
        ))?;
    }
    Ok(())
}

/// Says what is allowed and probably not meant. A warning that begins with the name of an entity, `collection/id`, begins
/// with its file instead, where `file` knows one.
pub(super) fn warn<'a>(warnings: &[String], file: impl Fn(&str) -> Option<&'a Path>) -> Result<(), CliError> {
    for warning in warnings {
        match warning.split_once(": ").and_then(|(name, rest)| Some((file(name)?, rest))) {
            Some((file, rest)) => say(format_args!("warning: {}: {rest}", file.display()))?,
            None => say(format_args!("warning: {warning}"))?,
        }
    }
    Ok(())
}
