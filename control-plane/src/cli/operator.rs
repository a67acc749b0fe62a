//! `palisade operator`: who may log in to the console. Works beside a running `palisade serve`.

use serde_json::json;

use super::admin_key::{Common, open, open_existing};
use super::error::CliError;
use super::output::say;
use super::secret::read_password;
use super::told::note;
use accounts::{Operator, hash_password, normal_name, password_problem};
use base::clock;
use events::AuditAction;
use store::{AccessChange, Store as _};

/// `palisade operator`. Passwords are asked for on the terminal, or read as the first line of standard input; never
/// from the command line, where other users of the machine would see them.
#[derive(Debug, clap::Subcommand)]
pub(super) enum OperatorCommand {
    /// Add an operator; asks for the password, or reads it from standard input.
    Add {
        #[command(flatten)]
        common: Common,
        /// The name to log in with: 1 to 64 of a-z 0-9 . _ @ -
        name: String,
        /// The operator's email address; shown in the audit.
        #[arg(long)]
        email: String,
    },
    /// List the operators.
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Remove an operator and end their sessions, from the next request on.
    Remove {
        #[command(flatten)]
        common: Common,
        /// The operator's name.
        name: String,
    },
    /// Set an operator's password and end their sessions.
    Passwd {
        #[command(flatten)]
        common: Common,
        /// The operator's name.
        name: String,
    },
}

impl OperatorCommand {
    pub(super) async fn run(self) -> Result<(), CliError> {
        match self {
            OperatorCommand::Add { common, name, email } => {
                let now = clock::now_millis();
                // What is wrong with the rest is said before a password is typed.
                let mut operator = Operator::new(&name, &email, String::new(), now)
                    .map_err(|invalid| CliError::Other(invalid.to_string()))?;
                let store = open(&common).await?;
                if store.operator(&operator.name).await?.is_some() {
                    return Err(taken(&operator.name));
                }
                operator.password_hash = new_password(&operator.name).await?;
                let (name, email) = (operator.name.clone(), operator.email.clone());
                let note = note(AuditAction::OperatorAdd, reference(&name), &email);
                let added = store.access_change(AccessChange::OperatorAdd(operator), note).await?;
                store.close().await?;
                match added {
                    true if common.json => say(format_args!("{}", json!({ "name": name, "email": email }))),
                    true => say(format_args!("added {name}")),
                    false => Err(taken(&name)),
                }
            }
            OperatorCommand::List { common } => {
                let store = open_existing(&common).await?;
                let operators = store.operators().await?;
                store.close().await?;
                list(&operators, common.json)
            }
            OperatorCommand::Remove { common, name } => {
                let store = open_existing(&common).await?;
                let name = normal_name(&name).unwrap_or(name);
                let note = note(AuditAction::OperatorRemove, reference(&name), "");
                let change = AccessChange::OperatorRemove { name: name.clone() };
                let found = store.access_change(change, note).await?;
                store.close().await?;
                match found {
                    true if common.json => say(format_args!("{}", json!({ "name": name, "removed": true }))),
                    true => say(format_args!("removed {name}")),
                    false => Err(unknown(&name)),
                }
            }
            OperatorCommand::Passwd { common, name } => {
                let store = open_existing(&common).await?;
                let name = normal_name(&name).unwrap_or(name);
                if store.operator(&name).await?.is_none() {
                    return Err(unknown(&name));
                }
                let hash = new_password(&name).await?;
                let note = note(AuditAction::OperatorPassword, reference(&name), "");
                let change =
                    AccessChange::OperatorPassword { name: name.clone(), hash, at_millis: clock::now_millis() };
                let found = store.access_change(change, note).await?;
                store.close().await?;
                match found {
                    true if common.json => say(format_args!("{}", json!({ "name": name, "changed": true }))),
                    true => say(format_args!("changed the password of {name}; their sessions have ended")),
                    false => Err(unknown(&name)),
                }
            }
        }
    }
}

/// Asks for a password and hashes it; on a thread that may block.
async fn new_password(name: &str) -> Result<String, CliError> {
    let prompt = format!("Password for {name}: ");
    let asking = tokio::task::spawn_blocking(move || {
        let password = read_password(&prompt)?;
        if let Some(problem) = password_problem(&password) {
            return Err(CliError::Other(problem));
        }
        hash_password(&password).map_err(|error| CliError::Other(error.to_string()))
    });
    asking.await.map_err(|error| CliError::Other(format!("no password could be read: {error}")))?
}

fn list(operators: &[Operator], as_json: bool) -> Result<(), CliError> {
    if as_json {
        let operators: Vec<_> = operators
            .iter()
            .map(|operator| {
                json!({
                    "name": operator.name, "email": operator.email,
                    "created_at": clock::rfc3339(operator.created_at_millis),
                    "password_set_at": clock::rfc3339(operator.changed_at_millis)
                })
            })
            .collect();
        return say(format_args!("{}", serde_json::Value::from(operators)));
    }
    for operator in operators {
        say(format_args!(
            "{:20} {:30} added {}  password set {}",
            operator.name,
            operator.email,
            clock::rfc3339(operator.created_at_millis),
            clock::rfc3339(operator.changed_at_millis)
        ))?;
    }
    Ok(())
}

/// What events call an operator.
fn reference(name: &str) -> String {
    format!("operators/{name}")
}

fn taken(name: &str) -> CliError {
    CliError::Other(format!("there is an operator `{name}` already; `palisade operator passwd {name}` sets a password"))
}

fn unknown(name: &str) -> CliError {
    CliError::Other(format!("there is no operator `{}`; `palisade operator list` shows them", name.escape_debug()))
}
