//! What commands write to standard output.

use std::fmt;
use std::io::Write as _;
use std::path::Path;

use super::error::CliError;

/// Writes to standard output.
pub(super) fn say(text: fmt::Arguments<'_>) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").map_err(|error| CliError::Io("write to standard output".to_owned(), error))
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
