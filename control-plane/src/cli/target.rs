//! The control plane that a command works on: one that runs, or the store of one that does not.

use std::path::PathBuf;
use std::sync::Arc;

use axum::http::{HeaderValue, Method, header};
use serde_json::{Value, json};

use super::admin_key::open_existing_with;
use super::client::Client;
use super::error::CliError;
use super::told;
use api::error::ApiError;
use compiler::{Compiler, Settings};
use entities::{
    BatchEntry, BatchOptions, BatchWrite, EntityService, FieldProblem, Kind, Replacement, WriteError, exactly,
};
use kit::ChallengeRoot;
use store::{Author, AuthorKind, SqliteOptions, Store};

/// Which control plane is meant.
#[derive(Debug, clap::Args)]
pub(super) struct TargetArgs {
    /// The admin API of a running control plane: http://HOST:PORT or https://HOST:PORT.
    #[arg(long, env = "PALISADE_URL", value_name = "URL", default_value = "http://127.0.0.1:8900")]
    url: String,

    /// A file with the certificate authorities (PEM) that are trusted for an https --url. Without it, those of the system
    /// are trusted.
    #[arg(long, env = "PALISADE_CA", value_name = "FILE")]
    ca: Option<PathBuf>,

    /// The admin key, as ID:SECRET. Command lines are visible to other users: prefer the environment or --key-file.
    #[arg(long, env = "PALISADE_ADMIN_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,

    /// A file with the admin key, as `palisade admin-key create --json` prints it and the first start writes it.
    #[arg(long, env = "PALISADE_ADMIN_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    key_file: Option<PathBuf>,

    /// The segment after `/apis/` in the paths of the entity collections.
    #[arg(long, env = "PALISADE_ENTITY_GROUP", value_name = "NAME", default_value = "palisade.svc")]
    entity_group: String,

    /// Use the store in this directory instead of --url, while no control plane uses it.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// A control plane.
pub(super) enum Target {
    /// One that runs.
    Running(Client),
    /// One that does not.
    Stopped(EntityService, Arc<dyn Store>),
}

/// One change that is to be made.
pub(super) struct Planned {
    pub(super) kind: &'static Kind,
    pub(super) id: String,
    pub(super) change: PlannedChange,
}

/// What is to be done to an entity; the number is the revision that it was read at.
pub(super) enum PlannedChange {
    Create(Value),
    /// A JSON patch and not the document: what the API does not show, or shows masked, stays as it is.
    Patch(json_patch::Patch, u64),
    Delete(u64),
}

/// The outcome of a change: nothing, or its fault.
pub(super) type Written = Result<(), Vec<FieldProblem>>;

/// The outcome of several changes.
pub(super) struct Outcome {
    /// That of each, in their order.
    pub(super) results: Vec<Written>,
    /// What is allowed and probably not meant.
    pub(super) warnings: Vec<String>,
}

impl TargetArgs {
    pub(super) async fn open(self) -> Result<Target, CliError> {
        if let Some(data) = &self.data {
            let options = SqliteOptions { exclusive: true, ..SqliteOptions::default() };
            let store: Arc<dyn Store> = Arc::new(open_existing_with(data, options)?);
            let entities = EntityService::open(Arc::clone(&store)).await?;
            entities.add_admission(Arc::new(Compiler::new(Settings {
                link: true,
                challenge_root: ChallengeRoot::for_checks(),
                ..Settings::default()
            })));
            let entities = entities.by(Author::nameless(AuthorKind::CommandLine), &told::user());
            return Ok(Target::Stopped(entities, store));
        }
        let needs = "; or --data DIR for the store of a stopped control plane";
        Ok(Target::Running(self.client(needs)?))
    }

    /// A control plane that runs, where no other will do.
    pub(super) fn running(self) -> Result<Client, CliError> {
        if self.data.is_some() {
            let message = "--data is the store of a control plane that does not run; this needs one that does (--url)";
            return Err(CliError::Other(message.to_owned()));
        }
        self.client("")
    }

    /// A client; `else_` says what else there is to give than a key.
    fn client(self, else_: &str) -> Result<Client, CliError> {
        let key = match (self.key, self.key_file) {
            (Some(key), _) => key,
            (None, Some(file)) => {
                let text = std::fs::read_to_string(&file)
                    .map_err(|error| CliError::Io(format!("read {}", file.display()), error))?;
                let key: Value = serde_json::from_str(&text).unwrap_or_default();
                match (key.get("id").and_then(Value::as_str), key.get("secret").and_then(Value::as_str)) {
                    (Some(id), Some(secret)) => format!("{id}:{secret}"),
                    _ => {
                        return Err(CliError::Other(format!(
                            "{} holds no key: JSON with `id` and `secret` is expected",
                            file.display()
                        )));
                    }
                }
            }
            (None, None) => {
                let message = format!("an admin key is needed: PALISADE_ADMIN_KEY=ID:SECRET or --key-file FILE{else_}");
                return Err(CliError::Other(message));
            }
        };
        Client::new(&self.url, &self.entity_group, &key, self.ca.as_deref())
    }
}

impl Target {
    /// The documents of a collection.
    pub(super) async fn list(&self, kind: &Kind) -> Result<Vec<Value>, CliError> {
        match self {
            Target::Running(client) => {
                let path = format!("/{}", kind.collection);
                match client.get(&path).await?.0 {
                    Value::Array(list) => Ok(list),
                    other => Err(CliError::Other(format!("{path} is not a list but {other}"))),
                }
            }
            Target::Stopped(entities, _) => {
                Ok(entities.current().slots(kind.collection).map(|slot| slot.entity.shown()).collect())
            }
        }
    }

    /// One document and its revision.
    pub(super) async fn get(&self, kind: &Kind, id: &str) -> Result<(Value, u64), CliError> {
        let gone = || CliError::Other(format!("{}/{id} has gone while it was read; try again", kind.collection));
        match self {
            Target::Running(client) => {
                let (document, answer) = client.get(&format!("/{}/{id}", kind.collection)).await?;
                let tag = answer.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default();
                let revision = tag.trim_matches('"').parse().map_err(|_| gone())?;
                Ok((document, revision))
            }
            Target::Stopped(entities, _) => {
                let set = entities.current();
                let slot = set.slot(kind.collection, id).ok_or_else(gone)?;
                Ok((slot.entity.shown(), slot.revision))
            }
        }
    }

    /// Makes all changes, or none; with `dry_run` none in any case. The results are in the order of the changes.
    pub(super) async fn write(&self, changes: &[&Planned], dry_run: bool) -> Result<Outcome, CliError> {
        match self {
            Target::Running(client) => {
                let path = if dry_run { "/_bulk?atomic=true&dry_run=true" } else { "/_bulk?atomic=true" };
                let lines: String = changes.iter().map(|change| format!("{}\n", change.line())).collect();
                let answer = client.call(Method::POST, path, "application/x-ndjson", lines).await?;
                let results: Vec<Value> =
                    answer.text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
                let whole =
                    results.len() == changes.len() && results.iter().all(|result| result.get("status").is_some());
                if !whole {
                    return Err(client.refused(path, answer.status, results.first().unwrap_or(&Value::Null)));
                }
                let warnings = answer.headers.get("x-palisade-warnings").map(HeaderValue::as_bytes).unwrap_or_default();
                let warnings = serde_json::from_slice(warnings).unwrap_or_default();
                Ok(Outcome { results: results.iter().map(result).collect(), warnings })
            }
            Target::Stopped(entities, _) => {
                let entries = changes.iter().map(|change| change.entry()).collect();
                let outcome = entities.write_all(entries, BatchOptions { atomic: true, dry_run }).await;
                let results = outcome.results.into_iter().map(|result| match result {
                    Ok(_) => Ok(()),
                    Err(WriteError::NotApplied) => Err(Vec::new()),
                    Err(error) => result_of(&Value::Object(ApiError::from(error).line())),
                });
                let warnings = outcome.warnings.into_iter().map(|(_, warning)| warning).collect();
                Ok(Outcome { results: results.collect(), warnings })
            }
        }
    }

    /// Lets go of the store.
    pub(super) async fn close(self) -> Result<(), CliError> {
        if let Target::Stopped(_, store) = self {
            store.close().await?;
        }
        Ok(())
    }
}

impl Planned {
    fn line(&self) -> Value {
        let (collection, id) = (self.kind.collection, &self.id);
        let tag = |revision: &u64| format!("\"{revision}\"");
        match &self.change {
            PlannedChange::Create(entity) => json!({ "op": "create", "collection": collection, "entity": entity }),
            PlannedChange::Patch(patch, revision) => {
                json!({ "op": "patch", "collection": collection, "id": id, "patch": patch, "if_match": tag(revision) })
            }
            PlannedChange::Delete(revision) => {
                json!({ "op": "delete", "collection": collection, "id": id, "if_match": tag(revision) })
            }
        }
    }

    fn entry(&self) -> BatchEntry {
        let (write, expected) = match &self.change {
            PlannedChange::Create(entity) => (BatchWrite::Create(entity.clone()), None),
            PlannedChange::Patch(patch, revision) => {
                (BatchWrite::Update(self.id.clone(), Replacement::Patch(patch.clone())), Some(*revision))
            }
            PlannedChange::Delete(revision) => (BatchWrite::Delete(self.id.clone()), Some(*revision)),
        };
        BatchEntry { kind: self.kind, write, precondition: expected.map(exactly) }
    }
}

fn result(line: &Value) -> Written {
    match line.get("status").and_then(Value::as_u64) {
        Some(200..=299) => Ok(()),
        // Another line is at fault.
        Some(424) => Err(Vec::new()),
        _ => result_of(line),
    }
}

/// What an error line says is wrong.
fn result_of(line: &Value) -> Written {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let problem = |error: &Value| FieldProblem {
        pointer: text(error, "pointer"),
        message: text(error, "message"),
        expected: error.get("expected").and_then(Value::as_str).map(ToOwned::to_owned),
    };
    Err(match line.get("errors").and_then(Value::as_array) {
        Some(errors) => errors.iter().map(problem).collect(),
        None => vec![FieldProblem::new("", text(line, "error_description"))],
    })
}
