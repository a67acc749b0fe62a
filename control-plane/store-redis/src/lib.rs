//! The shared store: Redis or Valkey behind [`store::Store`], for several control planes.
//!
//! The server has the rows of each table, a version that grows with each change, and a log of which rows each change had. What a
//! change is, the statements of the embedded store say, on a replica: see [`store::replica`]. All keys have one prefix in
//! braces, so that a cluster keeps them on one node.

mod answers;
mod bus;
mod contents;
mod events;
mod explain;
mod lead;
mod link;
mod notices;
mod options;
mod pack;
mod settings;
mod stream;
mod upstream;

use std::path::Path;
use std::sync::Arc;

use store::replica::Upstream;
use store::{SqliteStore, StoreError};

pub use events::SharedEvents;
pub use options::{DEFAULT_PREFIX, DEFAULT_TIMEOUT, Kind, RedisOptions, UrlError};

/// Opens the store at a server, with a replica within `directory`, which is made where it does not exist. `serves`: it is that of a
/// control plane, which may lead; commands beside them do not.
///
/// # Errors
/// [`StoreError::Server`] where the server does not answer in time or refuses, [`StoreError::TooNew`] where a newer release has
/// written the store, [`StoreError::Failed`] about the replica.
pub async fn open(options: RedisOptions, directory: &Path, serves: bool) -> Result<SqliteStore, StoreError> {
    let directory = directory.to_owned();
    let opening = tokio::task::spawn_blocking(move || {
        let upstream = upstream::RedisUpstream::connect(&options)?;
        SqliteStore::follow(Arc::new(upstream), &directory, serves)
    });
    opening.await.unwrap_or(Err(StoreError::Closed))
}

/// Connects to a server without a replica, as for [`store::migrate::to_server`].
///
/// # Errors
/// [`StoreError::Server`], [`StoreError::TooNew`].
pub async fn connect(options: RedisOptions) -> Result<Arc<dyn Upstream>, StoreError> {
    let connecting = tokio::task::spawn_blocking(move || upstream::RedisUpstream::connect(&options));
    Ok(Arc::new(connecting.await.unwrap_or(Err(StoreError::Closed))?))
}
