//! Checks the actions that work on persistent collections: `initcol`, `expirevar`, `deprecatevar` and their like.

use super::actions::{Complaint, checked_template, split};
use crate::engine::{CollectionKind, READ_ONLY};
use crate::expansion::Template;
use crate::program::wire::{self, SetVariable};
use crate::vocabulary::Variable;

const COLLECTIONS: &str = "the persistent collections are GLOBAL, IP, SESSION, USER and RESOURCE";

/// A collection from now on stands for the record of this key.
pub(super) fn attach(variable: Variable, key: &[u8]) -> Result<SetVariable, Complaint> {
    checked_template(key)?;
    Ok(assignment(variable, b"", wire::SET_ATTACH, key))
}

/// `initcol:ip=%{REMOTE_ADDR}`.
pub(super) fn initialise(text: &[u8]) -> Result<SetVariable, Complaint> {
    let help = || Some("write initcol:ip=%{REMOTE_ADDR}".to_owned());
    let Some((name, key)) = split(text, b'=') else {
        return Err(("initcol needs a collection and a key".to_owned(), help()));
    };
    let key = key.trim_ascii();
    if key.is_empty() {
        return Err(("the key of initcol is missing".to_owned(), help()));
    }
    attach(collection(name)?, key)
}

/// `expirevar:ip.logins=60`.
pub(super) fn expire(text: &[u8]) -> Result<SetVariable, Complaint> {
    let (variable, name, value) = variable(text, "expirevar:ip.logins=60")?;
    number(value).ok_or_else(|| {
        let shown = String::from_utf8_lossy(value);
        (format!("'{shown}' is no number of seconds"), Some("write expirevar:ip.logins=60".to_owned()))
    })?;
    Ok(assignment(variable, name, wire::SET_EXPIRE, value))
}

/// `deprecatevar:session.score=60/300`: 60 less every 300 seconds.
pub(super) fn deprecate(text: &[u8]) -> Result<SetVariable, Complaint> {
    let example = "deprecatevar:session.score=60/300";
    let (variable, name, value) = variable(text, example)?;
    let parts = split(value, b'/').and_then(|(amount, period)| Some((number(amount)?, number(period)?)));
    if parts.is_none() || parts.is_some_and(|(_, period)| period == Some(0)) {
        let message = "deprecatevar needs an amount and a period in seconds, with a slash between them";
        return Err((message.to_owned(), Some(format!("write {example}"))));
    }
    Ok(assignment(variable, name, wire::SET_DEPRECATE, value))
}

/// Refuses to write to what every record has.
pub(super) fn check_name(variable: Variable, name: &[u8]) -> Result<(), Complaint> {
    let known = READ_ONLY.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(name));
    match known.filter(|_| CollectionKind::of(variable).is_some()) {
        Some(known) => Err((
            format!("{}.{known} cannot be written to", variable.name()),
            Some("every persistent collection has it; choose another name".to_owned()),
        )),
        None => Ok(()),
    }
}

fn assignment(variable: Variable, key: &[u8], operation: u32, value: &[u8]) -> SetVariable {
    SetVariable { variable: u32::from(variable.code()), key: key.to_vec(), operation, value: value.to_vec() }
}

fn collection(name: &[u8]) -> Result<Variable, Complaint> {
    let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
    let variable = Variable::from_name(&name).filter(|variable| CollectionKind::of(*variable).is_some());
    variable.ok_or_else(|| (format!("'{name}' is no persistent collection"), Some(COLLECTIONS.to_owned())))
}

/// `ip.name=value`, with macros that are known to be good.
fn variable<'t>(text: &'t [u8], example: &str) -> Result<(Variable, &'t [u8], &'t [u8]), Complaint> {
    let parts = split(text, b'=').and_then(|(name, value)| Some((split(name, b'.')?, value)));
    let Some(((name, key), value)) = parts else {
        return Err(("a collection, a name and a value were expected".to_owned(), Some(format!("write {example}"))));
    };
    let (key, value) = (key.trim_ascii(), value.trim_ascii());
    checked_template(key)?;
    checked_template(value)?;
    Ok((collection(name)?, key, value))
}

/// The number of a text; `Some(None)` where a macro decides.
fn number(text: &[u8]) -> Option<Option<u64>> {
    if Template::parse(text).is_ok_and(|template| template.as_text().is_none()) {
        return Some(None);
    }
    std::str::from_utf8(text).ok()?.trim().parse().ok().map(Some)
}
