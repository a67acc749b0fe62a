//! What the server's scripts and commands answer.

use redis::{FromRedisValue as _, Value};
use store::StoreError;
use store::replica::{Behind, Position, RowChange};

use crate::explain::emptied;

/// The answer to a begin.
pub(crate) enum Begun {
    /// Another control plane has the lease.
    Busy,
    /// The server holds nothing, and the replica something.
    Emptied,
    /// What the replica lacks.
    Behind(Behind),
}

/// The answer to a publication.
pub(crate) enum Published {
    /// The change was made.
    Taken {
        /// The server's version with it.
        version: u64,
        /// Another control plane waits for the lease.
        awaited: bool,
    },
    /// It was not: another control plane has the lease, or has made a change.
    Refused,
}

pub(crate) fn begun(server: &str, answer: Value) -> Result<Begun, StoreError> {
    let mut parts = array(server, answer)?.into_iter();
    let mut text = || parts.next().and_then(|part| String::from_redis_value(part).ok());
    let kind = text().unwrap_or_default();
    let behind = match kind.as_str() {
        "busy" => return Ok(Begun::Busy),
        "emptied" => return Ok(Begun::Emptied),
        "schema" => return Err(other_schema(server, &text().unwrap_or_default())),
        "current" => Behind::Current,
        "reload" => Behind::Reload,
        "diverged" => Behind::Diverged,
        "changes" => {
            let version = text().and_then(|version| version.parse().ok());
            let position = version.zip(text()).map(|(version, token)| Position { version, token });
            let rows = parts.next().and_then(rows);
            let (position, rows) = position.zip(rows).ok_or_else(|| strange(server))?;
            Behind::Changes(position, rows)
        }
        _ => return Err(strange(server)),
    };
    Ok(Begun::Behind(behind))
}

fn rows(answer: Value) -> Option<Vec<RowChange>> {
    let Value::Array(parts) = answer else { return None };
    let mut parts = parts.into_iter();
    let mut rows = Vec::new();
    while let Some(table) = parts.next() {
        let table = usize::from_redis_value(table).ok()?;
        let key = bytes(parts.next()?)?;
        let row = match parts.next()? {
            Value::Nil => None,
            value => Some(bytes(value)?),
        };
        rows.push(RowChange { table, key, row });
    }
    Some(rows)
}

pub(crate) fn published(server: &str, answer: Value) -> Result<Published, StoreError> {
    let mut parts = array(server, answer)?.into_iter();
    let mut text = || parts.next().and_then(|part| String::from_redis_value(part).ok()).unwrap_or_default();
    match text().as_str() {
        "ok" => {
            let version = text().parse().map_err(|_| strange(server))?;
            Ok(Published::Taken { version, awaited: text() == "1" })
        }
        "busy" | "moved" => Ok(Published::Refused),
        "emptied" => Err(emptied(server)),
        "schema" => Err(other_schema(server, &text())),
        _ => Err(strange(server)),
    }
}

pub(crate) fn position(server: &str, answer: Value) -> Result<Position, StoreError> {
    let mut parts = array(server, answer)?.into_iter();
    let mut text = || parts.next().and_then(|part| Option::<String>::from_redis_value(part).ok()).flatten();
    let (version, token, schema) = (text(), text(), text());
    check_schema(server, &schema.unwrap_or_default())?;
    match version {
        None => Ok(Position::default()),
        Some(version) => {
            let version = version.parse().map_err(|_| strange(server))?;
            Ok(Position { version, token: token.unwrap_or_default() })
        }
    }
}

/// The next cursor, and keys with their columns, one after the other.
pub(crate) fn scanned(server: &str, answer: Value) -> Result<(Vec<u8>, Vec<Vec<u8>>), StoreError> {
    let mut parts = array(server, answer)?.into_iter();
    let cursor = parts.next().and_then(bytes).ok_or_else(|| strange(server))?;
    let found = array(server, parts.next().unwrap_or_default())?;
    let found: Option<Vec<_>> = found.into_iter().map(bytes).collect();
    Ok((cursor, found.ok_or_else(|| strange(server))?))
}

/// A store of other tables than this release has is left alone.
fn check_schema(server: &str, schema: &str) -> Result<(), StoreError> {
    match schema.parse::<u32>() {
        _ if schema.is_empty() => Ok(()),
        Ok(found) if found == store::replica::schema_version() => Ok(()),
        _ => Err(other_schema(server, schema)),
    }
}

/// The error for such a store.
fn other_schema(server: &str, schema: &str) -> StoreError {
    let known = store::replica::schema_version();
    match schema.parse::<u32>() {
        Ok(found) if found > known => StoreError::TooNew { path: server.into(), found, known },
        _ => StoreError::Server {
            server: server.to_owned(),
            detail: format!(
                "an older release has written it (schema version {schema}, this one has {known}): with that release, copy it to a \
                 file with `palisade migrate-store`; with this one, copy the file to an empty store"
            ),
        },
    }
}

fn array(server: &str, answer: Value) -> Result<Vec<Value>, StoreError> {
    match answer {
        Value::Array(parts) => Ok(parts),
        _ => Err(strange(server)),
    }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        _ => None,
    }
}

fn strange(server: &str) -> StoreError {
    let detail = "it answers in an unknown way: is it Redis 6.2 or newer, or Valkey?".to_owned();
    StoreError::Server { server: server.to_owned(), detail }
}
