//! What is kept of a database in the store, and read again when the control plane starts: the file, compressed, and a document about it.

use axum::body::Bytes;
use lists::Validators;
use serde::{Deserialize, Serialize};
use store::{Store, StoreError};

use super::download::{Format, read};
use super::state::{DatabaseState, Fetched};
use super::{DatabaseKey, DatabaseKind};

/// The largest file that is kept, compressed, in bytes. A larger one is fetched again after a restart.
pub(super) const MAX_KEPT: usize = 256 << 20;

const ABOUT: &str = "/about";
const FILE: &str = "/file";

/// What is kept beside the file.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Kept {
    source: String,
    etag: Option<String>,
    last_modified: Option<String>,
    fetched_at: u64,
    error: Option<String>,
    not_modified: bool,
    failures: u32,
    retry_at: u64,
    file: Option<KeptFile>,
}

#[derive(Serialize, Deserialize)]
struct KeptFile {
    /// In hexadecimal.
    hash: String,
    format: Format,
    source: String,
}

/// The ids of the databases of a kind that something is kept of.
pub(super) async fn ids(store: &dyn Store, kind: DatabaseKind) -> Result<Vec<String>, StoreError> {
    let prefix = format!("{}/", kind.collection());
    let names = store.document_names(&prefix).await?;
    let ids = names.iter().filter_map(|name| name.strip_prefix(&prefix)?.strip_suffix(ABOUT));
    Ok(ids.map(str::to_owned).collect())
}

/// What is known of a database by what was kept of it. A file that is not as it was written is left out.
pub(super) async fn restored(store: &dyn Store, key: &DatabaseKey) -> Result<DatabaseState, StoreError> {
    let Some(about) = store.document(&name(key, ABOUT)).await? else { return Ok(DatabaseState::default()) };
    let Kept { source, etag, last_modified, fetched_at, error, not_modified, failures, retry_at, file } =
        serde_json::from_slice(&about).unwrap_or_default();
    let mut current = None;
    if let Some(about) = file
        && let Some(file) = store.document(&name(key, FILE)).await?
    {
        let hash = snapshot::content_hash(&file);
        let whole = snapshot::hex(&hash) == about.hash && about.format.kind() == key.0;
        let reading = tokio::task::spawn_blocking(move || read(about.format, Bytes::from(file)).ok());
        let content = if whole { reading.await.ok().flatten() } else { None };
        current = content.map(|read| Fetched {
            content: read.content,
            format: about.format,
            hash,
            entries: u64::try_from(read.entries).unwrap_or(u64::MAX),
            rejected: u64::try_from(read.rejected).unwrap_or(u64::MAX),
            source: about.source,
        });
    }
    // Without the file, the publisher must send it again.
    let validators = current.as_ref().map(|_| Validators { etag, last_modified }).unwrap_or_default();
    Ok(DatabaseState {
        source,
        validators,
        current,
        fetched_at,
        error,
        not_modified,
        failures,
        retry_at,
        ..DatabaseState::default()
    })
}

/// Keeps the file of a database, before what is known of it.
pub(super) async fn put_file(store: &dyn Store, key: &DatabaseKey, file: Bytes) -> Result<(), StoreError> {
    store.document_put(&name(key, FILE), file.to_vec()).await
}

/// Keeps what is known of a database beside its file.
pub(super) async fn put_about(store: &dyn Store, key: &DatabaseKey, state: &DatabaseState) -> Result<(), StoreError> {
    let file = state.current.as_ref().map(|fetched| KeptFile {
        hash: snapshot::hex(&fetched.hash),
        format: fetched.format,
        source: fetched.source.clone(),
    });
    let kept = Kept {
        source: state.source.clone(),
        etag: state.validators.etag.clone(),
        last_modified: state.validators.last_modified.clone(),
        fetched_at: state.fetched_at,
        error: state.error.clone(),
        not_modified: state.not_modified,
        failures: state.failures,
        retry_at: state.retry_at,
        file,
    };
    // Plain data: writing it has no way to fail.
    store.document_put(&name(key, ABOUT), serde_json::to_vec(&kept).unwrap_or_default()).await
}

/// Forgets a database.
pub(super) async fn remove(store: &dyn Store, key: &DatabaseKey) -> Result<(), StoreError> {
    store.document_remove(&name(key, ABOUT)).await?;
    store.document_remove(&name(key, FILE)).await.map(drop)
}

fn name((kind, id): &DatabaseKey, part: &str) -> String {
    format!("{}/{id}{part}", kind.collection())
}
