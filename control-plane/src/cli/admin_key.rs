//! `palisade admin-key`: the keys of the admin API. Works beside a running `palisade serve`.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::error::CliError;
use super::migrate_store::open_shared;
use super::output::say;
use super::told::note;
use accounts::{AdminKey, Scope};
use base::clock;
use events::AuditAction;
use store::{AccessChange, SqliteOptions, SqliteStore, Store};

/// `palisade admin-key`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum AdminKeyCommand {
    /// Create a key; its secret is shown once.
    Create {
        #[command(flatten)]
        common: Common,
        /// Its name, for people.
        #[arg(long, default_value = "")]
        name: String,
        /// Its scopes: read, write, report; separated by commas.
        #[arg(long, alias = "scope", value_delimiter = ',', default_value = "read,write,report")]
        scopes: Vec<Scope>,
        /// Its lifetime, such as 90d, 12h, 30m; without this option it does not expire.
        #[arg(long, alias = "expires", value_name = "TIME", value_parser = duration_millis)]
        expires_in: Option<u64>,
    },
    /// List the keys, without their secrets.
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Set when a key expires, from the next request on. Without an option it expires now.
    Expire {
        #[command(flatten)]
        common: Common,
        /// The id of the key.
        id: String,
        /// Its remaining lifetime, such as 7d, 12h, 30m.
        #[arg(long = "in", value_name = "TIME", value_parser = duration_millis, conflicts_with = "never")]
        after: Option<u64>,
        /// It does not expire.
        #[arg(long)]
        never: bool,
    },
    /// Revoke a key permanently, from the next request on.
    Revoke {
        #[command(flatten)]
        common: Common,
        /// The id of the key.
        id: String,
    },
}

/// Options of every subcommand.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// The directory of the store.
    #[arg(long, env = "PALISADE_DATA", value_name = "DIR", default_value = "palisade-data")]
    pub(super) data: PathBuf,
    /// The URL of a shared store, as for `palisade serve`, instead of a directory.
    #[arg(long, env = "PALISADE_STORE", hide_env_values = true, value_name = "URL")]
    store: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl AdminKeyCommand {
    pub(super) async fn run(self) -> Result<(), CliError> {
        match self {
            AdminKeyCommand::Create { common, name, scopes, expires_in } => {
                let store = open(&common).await?;
                let now = clock::now_millis();
                let expires = expires_in.map(|millis| now.saturating_add(millis));
                let issued = AdminKey::issue(&name, &scopes, now, expires)
                    .map_err(|error| CliError::Io("make a secret".to_owned(), error))?;
                let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
                let detail = format!("scopes {}; {}", scopes.join(","), end(expires));
                let note = note(AuditAction::KeyCreate, reference(&issued.key.id), &detail);
                store.access_change(AccessChange::KeyPut(issued.key.clone()), note).await?;
                store.close().await?;
                if common.json {
                    return say(format_args!("{}", json!({ "id": issued.key.id, "secret": issued.secret })));
                }
                say(format_args!(
                    "id:     {}\nsecret: {}\nThe secret is not shown again.",
                    issued.key.id, issued.secret
                ))
            }
            AdminKeyCommand::List { common } => {
                let store = open_existing(&common).await?;
                let keys = store.admin_keys().await?;
                store.close().await?;
                list(&keys, common.json)
            }
            AdminKeyCommand::Expire { common, id, after, never } => {
                let store = open_existing(&common).await?;
                let now = clock::now_millis();
                let at_millis = if never { None } else { Some(now.saturating_add(after.unwrap_or(0))) };
                let note = note(AuditAction::KeyExpire, reference(&id), &end(at_millis));
                let change = AccessChange::KeyExpire { id: id.clone(), at_millis };
                let found = store.access_change(change, note).await?;
                store.close().await?;
                match found {
                    true if common.json => {
                        say(format_args!("{}", json!({ "id": id, "expires_at": at_millis.map(clock::rfc3339) })))
                    }
                    true => say(format_args!("{id} {}", end(at_millis))),
                    false => Err(unknown(&id)),
                }
            }
            AdminKeyCommand::Revoke { common, id } => {
                let store = open_existing(&common).await?;
                let note = note(AuditAction::KeyRevoke, reference(&id), "");
                let change = AccessChange::KeyRevoke { id: id.clone(), at_millis: clock::now_millis() };
                let found = store.access_change(change, note).await?;
                store.close().await?;
                match found {
                    true if common.json => say(format_args!("{}", json!({ "id": id, "revoked": true }))),
                    true => say(format_args!("revoked {id}")),
                    false => Err(unknown(&id)),
                }
            }
        }
    }
}

fn unknown(id: &str) -> CliError {
    CliError::Other(format!("there is no admin key `{}`; `palisade admin-key list` shows them", id.escape_debug()))
}

/// What events call a key.
fn reference(id: &str) -> String {
    format!("admin-keys/{id}")
}

/// The end of a key in words.
fn end(at_millis: Option<u64>) -> String {
    at_millis.map_or("never expires".to_owned(), |at| format!("expires {}", clock::rfc3339(at)))
}

/// Opens the store, which is made where there is none.
pub(super) async fn open(common: &Common) -> Result<SqliteStore, CliError> {
    match &common.store {
        Some(url) => open_shared(url, &common.data, false).await,
        None => Ok(SqliteStore::open(&common.data, SqliteOptions::default())?),
    }
}

/// Opens a store that must be there: a slip in `--data` must not leave an empty store behind.
pub(super) async fn open_existing(common: &Common) -> Result<SqliteStore, CliError> {
    match &common.store {
        Some(url) => open_shared(url, &common.data, false).await,
        None => open_existing_with(&common.data, SqliteOptions::default()),
    }
}

/// [`open_existing`] of a directory, with options.
pub(super) fn open_existing_with(data: &Path, options: SqliteOptions) -> Result<SqliteStore, CliError> {
    if !SqliteStore::exists(data) {
        return Err(CliError::Other(format!("there is no store in {}; is --data right?", data.display())));
    }
    Ok(SqliteStore::open(data, options)?)
}

fn list(keys: &[AdminKey], as_json: bool) -> Result<(), CliError> {
    let now = clock::now_millis();
    let time = |millis: Option<u64>| millis.map(clock::rfc3339);
    if as_json {
        let keys: Vec<_> = keys
            .iter()
            .map(|key| {
                json!({
                    "id": key.id, "name": key.name, "scopes": key.scopes, "state": state(key, now),
                    "created_at": clock::rfc3339(key.created_at_millis), "expires_at": time(key.expires_at_millis),
                    "revoked_at": time(key.revoked_at_millis)
                })
            })
            .collect();
        return say(format_args!("{}", serde_json::Value::from(keys)));
    }
    for key in keys {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        let expires = time(key.expires_at_millis).unwrap_or_else(|| "never".to_owned());
        say(format_args!(
            "{}  {:8} {:18} created {}  expires {expires}  {}",
            key.id,
            state(key, now),
            scopes.join(","),
            clock::rfc3339(key.created_at_millis),
            key.name.escape_debug()
        ))?;
    }
    Ok(())
}

fn state(key: &AdminKey, now: u64) -> &'static str {
    if key.revoked_at_millis.is_some() {
        "revoked"
    } else if key.expires_at_millis.is_some_and(|expiry| expiry <= now) {
        "expired"
    } else {
        "active"
    }
}

/// Reads a length of time such as `90d`.
fn duration_millis(text: &str) -> Result<u64, String> {
    let wrong = || "a number with s, m, h or d is expected, such as 90d".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.strip_prefix(digits) {
        Some("s") => 1000,
        Some("m") => 60_000,
        Some("h") => 3_600_000,
        Some("d") => 86_400_000,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|millis| *millis > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        assert_eq!(duration_millis("90d"), Ok(7_776_000_000));
        assert_eq!(duration_millis("30m"), Ok(1_800_000));
        for bad in ["", "d", "10", "0s", "-1d", "1w", "99999999999999999d"] {
            assert!(duration_millis(bad).is_err(), "{bad}");
        }
    }
}
