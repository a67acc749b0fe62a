//! `palisade operator`: who may log in to the console. Works beside a running `palisade serve`.

use serde_json::json;

use super::admin_key::{Common, open, open_existing};
use super::error::CliError;
use super::output::say;
use super::secret::read_password;
use super::told::note;
use accounts::{
    LOGIN_LINK_MILLIS, Operator, Role, TicketKind, TicketSecret, hash_password, normal_name, password_problem,
};
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
        /// The operator's role: viewer, analyst or admin.
        #[arg(long, default_value_t = Role::Admin)]
        role: Role,
        /// Ask for no password: the operator logs in by a login link and can set one then.
        #[arg(long)]
        no_password: bool,
    },
    /// Print a link that logs an operator in once, within ten minutes, in the place of the password. Earlier ones end.
    LoginLink {
        #[command(flatten)]
        common: Common,
        /// The operator's name.
        name: String,
        /// What the link begins with: the address of the control plane as the operator's browser reaches it.
        #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8900")]
        base: String,
    },
    /// Remove the second factor of an operator who has lost it, the app and all passkeys, and end their sessions.
    ResetSecondFactor {
        #[command(flatten)]
        common: Common,
        /// The operator's name.
        name: String,
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
    /// Give an operator another role and end their sessions.
    Role {
        #[command(flatten)]
        common: Common,
        /// The operator's name.
        name: String,
        /// The new role: viewer, analyst or admin.
        role: Role,
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
            OperatorCommand::Add { common, name, email, role, no_password } => {
                let now = clock::now_millis();
                // What is wrong with the rest is said before a password is typed.
                let mut operator = Operator::new(&name, &email, role, String::new(), now)
                    .map_err(|invalid| CliError::Other(invalid.to_string()))?;
                let store = open(&common).await?;
                if store.operator(&operator.name).await?.is_some() {
                    return Err(taken(&operator.name));
                }
                if !no_password {
                    operator.password_hash = new_password(&operator.name).await?;
                }
                let (name, email) = (operator.name.clone(), operator.email.clone());
                let note = note(AuditAction::OperatorAdd, reference(&name), &format!("{email}; role {role}"));
                let added = store.access_change(AccessChange::OperatorAdd(operator), note).await?;
                store.close().await?;
                match added {
                    true if common.json => {
                        say(format_args!("{}", json!({ "name": name, "email": email, "role": role })))
                    }
                    true => say(format_args!("added {name}")),
                    false => Err(taken(&name)),
                }
            }
            OperatorCommand::LoginLink { common, name, base } => login_link(&common, name, &base).await,
            OperatorCommand::ResetSecondFactor { common, name } => {
                let store = open_existing(&common).await?;
                let name = normal_name(&name).unwrap_or(name);
                if store.operator(&name).await?.is_none() {
                    return Err(unknown(&name));
                }
                let note = note(AuditAction::SecondFactorRemove, reference(&name), "");
                let change = AccessChange::SecondFactorRemove { name: name.clone(), end_sessions: true };
                let app = store.access_change(change, note).await?;
                let note = super::told::note(AuditAction::PasskeyRemove, reference(&name), "all");
                let change = AccessChange::PasskeyRemove { name: name.clone(), credential: None, end_sessions: true };
                let found = store.access_change(change, note).await? || app;
                store.close().await?;
                match found {
                    _ if common.json => say(format_args!("{}", json!({ "name": name, "removed": found }))),
                    true => say(format_args!("{name} has no second factor now; their sessions have ended")),
                    false => Err(CliError::Other(format!("{name} has no second factor"))),
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
                let change = AccessChange::OperatorRemove { name: name.clone(), keep_admin: false };
                let found = store.access_change(change, note).await?;
                store.close().await?;
                match found {
                    true if common.json => say(format_args!("{}", json!({ "name": name, "removed": true }))),
                    true => say(format_args!("removed {name}")),
                    false => Err(unknown(&name)),
                }
            }
            OperatorCommand::Role { common, name, role } => {
                let store = open_existing(&common).await?;
                let name = normal_name(&name).unwrap_or(name);
                if store.operator(&name).await?.is_none() {
                    return Err(unknown(&name));
                }
                let note = note(AuditAction::OperatorRole, reference(&name), &format!("role {role}"));
                let change = AccessChange::OperatorRole { name: name.clone(), role, keep_admin: false };
                let changed = store.access_change(change, note).await?;
                store.close().await?;
                match changed {
                    _ if common.json => {
                        say(format_args!("{}", json!({ "name": name, "role": role, "changed": changed })))
                    }
                    true => say(format_args!("{name} is {role}; their sessions have ended")),
                    false => say(format_args!("{name} is {role} already")),
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

/// Makes a login link and prints it. It is a secret: the first browser that opens it is logged in.
async fn login_link(common: &Common, name: String, base: &str) -> Result<(), CliError> {
    let store = open_existing(common).await?;
    let name = normal_name(&name).unwrap_or(name);
    let secret = TicketSecret::random().map_err(|error| CliError::Io("make a secret".to_owned(), error))?;
    let until = clock::now_millis().saturating_add(LOGIN_LINK_MILLIS);
    let note = note(AuditAction::OperatorLoginLink, reference(&name), &format!("until {}", clock::rfc3339(until)));
    let ticket = secret.ticket(&name, TicketKind::Link, until);
    let made = store.access_change(AccessChange::LoginLink(ticket), note).await?;
    store.close().await?;
    let url = format!("{}{}", base.trim_end_matches('/'), accounts::login_link(&secret));
    match made {
        true if common.json => {
            say(format_args!("{}", json!({ "name": name, "url": url, "expires_at": clock::rfc3339(until) })))
        }
        true => say(format_args!("{url}")),
        false => Err(unknown(&name)),
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
                    "name": operator.name, "email": operator.email, "role": operator.role,
                    "has_password": operator.password().is_some(), "second_factor": operator.second_factor,
                    "created_at": clock::rfc3339(operator.created_at_millis),
                    "password_set_at": clock::rfc3339(operator.changed_at_millis)
                })
            })
            .collect();
        return say(format_args!("{}", serde_json::Value::from(operators)));
    }
    for operator in operators {
        say(format_args!(
            "{:20} {:7} {:30} added {}  {}",
            operator.name,
            operator.role.as_str(),
            operator.email,
            clock::rfc3339(operator.created_at_millis),
            match operator.password() {
                Some(_) => format!("password set {}", clock::rfc3339(operator.changed_at_millis)),
                None => "no password".to_owned(),
            }
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
