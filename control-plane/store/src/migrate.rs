//! Everything of one store copied to another, empty one, and read back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::contents::{is_owner, shown};
use super::replays::chunks;
use super::replica::{Behind, Position, RowChange, Upstream};
use super::replica_rows::Tables;
use super::{Contents, SqliteOptions, SqliteStore, Store as _, StoreError};

/// The rows, and the bytes, that are given to a server at once, at most (a larger row goes alone).
const PART: (usize, usize) = (2000, 4 << 20);

/// How many rows of each table were copied, and how many chunks of recordings and results as [`CONTENTS`].
pub type Copied = BTreeMap<String, u64>;

/// The name of the contents of recordings and replays in [`Copied`], where there are any.
pub const CONTENTS: &str = "contents";

/// Copies everything of a store to a server that holds nothing, tells `progress` how many rows of how many are there, and compares
/// what the server has then with the store. No control plane may use either store meanwhile. Blocks nothing but its own thread.
///
/// # Errors
/// [`StoreError::NotEmpty`]; [`StoreError::Server`] also where what is read back differs; [`StoreError::Failed`] where a row of the store
/// names contents by what is no name of any. What was copied until then stays there.
pub async fn to_server(
    source: &SqliteStore,
    target: Arc<dyn Upstream>,
    name: &str,
    progress: impl Fn(usize, usize) + Send + 'static,
) -> Result<Copied, StoreError> {
    if target.position().await?.version != 0 {
        return Err(StoreError::NotEmpty { store: name.to_owned() });
    }
    // Before the rows that show them.
    let differs = |owner: &str| StoreError::Server {
        server: name.to_owned(),
        detail: format!("what was read back of {owner} is not what was written; empty it and copy again"),
    };
    let copied_chunks = copy_contents(source, target.contents().as_ref(), differs).await?;
    let (rows, name) = (rows(source).await?, name.to_owned());
    let copying = tokio::task::spawn_blocking(move || {
        let (mut at, mut done) = (Position::default(), 0);
        for part in parts(&rows) {
            if target.begin(&at)? != Behind::Current {
                return Err(StoreError::ServerBusy { server: name });
            }
            at = target.publish(&at, part)?;
            done += part.len();
            progress(done, rows.len());
        }
        let mut found = Vec::new();
        let read = target.load(&mut |rows| {
            found.extend(rows);
            Ok(())
        })?;
        target.close();
        if read.as_ref() != Some(&at) || !are_same(&rows, &found) {
            let detail = "what was read back is not what was written; empty it and copy again".to_owned();
            return Err(StoreError::Server { server: name, detail });
        }
        counted(&rows, copied_chunks)
    });
    copying.await.unwrap_or(Err(StoreError::Closed))
}

/// Copies everything of a store to a new file in `directory`, and compares what the file has then with the store. No control plane
/// may use either store meanwhile.
///
/// # Errors
/// [`StoreError::NotEmpty`] where the directory has a store; those of [`SqliteStore::open`]; [`StoreError::Failed`] also where what
/// is read back differs.
pub async fn to_file(source: &SqliteStore, directory: &Path) -> Result<Copied, StoreError> {
    if SqliteStore::exists(directory) {
        return Err(StoreError::NotEmpty { store: directory.display().to_string() });
    }
    let written = rows(source).await?;
    let (target, copied) = (directory.to_owned(), Arc::new(written));
    let options = SqliteOptions { exclusive: true, ..SqliteOptions::default() };
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(&target, options));
    let target = opening.await.unwrap_or(Err(StoreError::Closed))?;
    let differs = |owner: &str| StoreError::Failed {
        path: target.path().to_owned(),
        detail: format!(
            "what was read back of {owner} is not what was written; remove {} and copy again",
            directory.display()
        ),
    };
    let copied_chunks = copy_contents(source, target.contents().as_ref(), differs).await?;
    let changes = Arc::clone(&copied);
    target
        .write(move |db| {
            let tables = Tables::of(db)?;
            tables.empty(db)?;
            tables.apply(db, &changes)
        })
        .await?;
    let found = rows(&target).await?;
    let path = target.path().to_owned();
    target.close().await?;
    if !are_same(&copied, &found) {
        let detail = "what was read back is not what was written; remove it and copy again".to_owned();
        return Err(StoreError::Failed { path, detail });
    }
    counted(&copied, copied_chunks)
}

/// Copies the contents of recordings and replays, chunk by chunk, and reads each one back; `differs` says what it means that one is another
/// one then. How many there were. Contents that are not there (rows that came from a backup, which has none) are left out; a replay of
/// them says so.
async fn copy_contents(
    source: &SqliteStore,
    target: &dyn Contents,
    differs: impl Fn(&str) -> StoreError,
) -> Result<u64, StoreError> {
    let owners = source.content_owners().await?;
    if let Some((owner, _)) = owners.iter().find(|(owner, _)| !is_owner(owner)) {
        let detail = format!(
            "it has a recording or a replay {}, which is no name of contents: another program has written it. Delete it in the console, \
             or restore another backup, and copy again",
            shown(owner)
        );
        return Err(StoreError::Failed { path: source.path().to_owned(), detail });
    }
    let mut copied = 0;
    for (owner, bytes) in owners {
        for number in 0..chunks(bytes) {
            let Some(bytes) = source.contents().get(&owner, number).await? else {
                tracing::warn!(%owner, number, "contents of a recording or a replay are missing and are not copied");
                break;
            };
            target.put(&owner, number, bytes.clone()).await?;
            if target.get(&owner, number).await?.as_ref() != Some(&bytes) {
                return Err(differs(&owner));
            }
            copied += 1;
        }
    }
    Ok(copied)
}

async fn rows(store: &SqliteStore) -> Result<Vec<RowChange>, StoreError> {
    store
        .read(|db| {
            let view = db.transaction()?;
            Tables::of(&view)?.all(&view)
        })
        .await
}

/// Cuts rows into parts.
fn parts(rows: &[RowChange]) -> impl Iterator<Item = &[RowChange]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |row: &&RowChange| {
            bytes += row.key.len() + row.row.as_ref().map_or(0, Vec::len);
            bytes <= PART.1
        };
        let count = rest.iter().take(PART.0).take_while(fits).count().max(1).min(rest.len());
        let (part, after) = rest.split_at(count);
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

fn are_same(written: &[RowChange], found: &[RowChange]) -> bool {
    let by_key = |rows: &[RowChange]| -> BTreeMap<(usize, Vec<u8>), Option<Vec<u8>>> {
        rows.iter().map(|row| ((row.table, row.key.clone()), row.row.clone())).collect()
    };
    by_key(written) == by_key(found)
}

fn counted(rows: &[RowChange], chunks: u64) -> Result<Copied, StoreError> {
    let names = super::replica::tables()?;
    let mut counted = Copied::new();
    for row in rows {
        if let Some(name) = names.get(row.table) {
            *counted.entry(name.clone()).or_default() += 1;
        }
    }
    if chunks > 0 {
        counted.insert(CONTENTS.to_owned(), chunks);
    }
    Ok(counted)
}
