//! Contents in the store: files and texts, cut into chunks.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use store::replays::{MAX_CHUNK, chunks};
use store::{Store, StoreError};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::ReplayError;
use crate::error::io;

/// How long a recording may take to the store, however small it is.
const WRITING: Duration = Duration::from_secs(300);
/// How long each of its chunks may take beside that.
const CHUNK_WRITING: Duration = Duration::from_secs(1);

/// How long a recording of so many bytes may take to the store. Another control plane takes it for abandoned after a multiple of that
/// ([`watch`](crate::watch)).
pub(crate) fn time_of(bytes: u64) -> Duration {
    WRITING + CHUNK_WRITING * chunks(bytes)
}

/// Writes a file to the store.
pub(crate) async fn write_file(store: &dyn Store, owner: &str, path: &Path) -> Result<(), ReplayError> {
    let read = io("read the recording");
    let mut file = File::open(path).await.map_err(&read)?;
    let mut number = 0;
    loop {
        let mut chunk = Vec::with_capacity(MAX_CHUNK);
        (&mut file).take(MAX_CHUNK as u64).read_to_end(&mut chunk).await.map_err(&read)?;
        if chunk.is_empty() {
            return Ok(());
        }
        put(store, owner, number, chunk).await?;
        number += 1;
    }
}

async fn put(store: &dyn Store, owner: &str, number: u32, chunk: Vec<u8>) -> Result<(), ReplayError> {
    let written = match store.content_put(owner, number, chunk.clone()).await {
        // Written twice, it is the same.
        Err(StoreError::Unanswered { .. }) => store.content_put(owner, number, chunk).await,
        written => written,
    };
    match written? {
        true => Ok(()),
        false => Err(ReplayError::TooLarge(u64::from(number) * MAX_CHUNK as u64)),
    }
}

/// The first chunks of contents of so many bytes, at most `most` bytes of them.
pub(crate) async fn beginning(store: &dyn Store, owner: &str, bytes: u64, most: usize) -> Result<Vec<u8>, ReplayError> {
    let mut read = Vec::new();
    for number in 0..chunks(bytes) {
        let Some(chunk) = store.content(owner, number).await? else { break };
        read.extend(chunk);
        if read.len() >= most {
            read.truncate(most);
            break;
        }
    }
    Ok(read)
}

/// Writes contents of so many bytes to a file, which is made.
///
/// # Errors
/// They are not all there; what is wrong, for people.
pub(crate) async fn read_file(store: &dyn Store, owner: &str, bytes: u64, path: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("the recording could not be copied from the store: {error}");
    let mut options = File::options();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).await.map_err(failed)?;
    let mut read = 0;
    for number in 0..chunks(bytes) {
        let chunk = store.content(owner, number).await.map_err(|error| error.to_string())?;
        let Some(chunk) = chunk else { break };
        read += chunk.len() as u64;
        file.write_all(&chunk).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    match read == bytes {
        true => Ok(()),
        false => Err(format!(
            "the store has {read} of the {bytes} bytes of the recording: a backup has no recordings; delete it, and upload it again"
        )),
    }
}

/// Writes a text to the store, compressed; its bytes there.
pub(crate) async fn write_text(store: &dyn Store, owner: &str, text: Vec<u8>) -> Result<u64, ReplayError> {
    let packing = tokio::task::spawn_blocking(move || {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&text).and_then(|()| packer.finish())
    });
    let packed = packing.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    let packed = packed.map_err(io("compress the result"))?;
    for (number, chunk) in (0..).zip(packed.chunks(MAX_CHUNK)) {
        put(store, owner, number, chunk.to_vec()).await?;
    }
    Ok(packed.len() as u64)
}

/// Reads [`write_text`] of so many bytes, which hold at most `most` bytes of text; `None` where they are not all there.
pub(crate) async fn read_text(
    store: &dyn Store,
    owner: &str,
    bytes: u64,
    most: u64,
) -> Result<Option<String>, ReplayError> {
    let mut packed = Vec::new();
    for number in 0..chunks(bytes) {
        let Some(chunk) = store.content(owner, number).await? else { return Ok(None) };
        packed.extend(chunk);
    }
    let unpacking = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        let read = GzDecoder::new(packed.as_slice()).take(most + 1).read_to_string(&mut text)?;
        match read as u64 > most {
            true => Err(std::io::Error::other("it is longer than a result may be")),
            false => Ok(text),
        }
    });
    let text = unpacking.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    text.map(Some).map_err(io("read the result"))
}

#[cfg(test)]
mod tests {
    use store::{SqliteOptions, SqliteStore};

    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read_and_what_is_missing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap();
        for length in [0, 1, MAX_CHUNK, MAX_CHUNK + 1, 3 * MAX_CHUNK] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
            let (from, to) = (folder.path().join("from"), folder.path().join(format!("to{length}")));
            std::fs::write(&from, &bytes).unwrap();
            let owner = format!("r{length}");
            write_file(&store, &owner, &from).await.unwrap();
            read_file(&store, &owner, length as u64, &to).await.unwrap();
            assert!(std::fs::read(&to).unwrap() == bytes, "{length}");
        }
        let missing = read_file(&store, "r1", 1 + MAX_CHUNK as u64, &folder.path().join("half")).await.unwrap_err();
        assert!(missing.contains("has 1 of the 524289 bytes"), "{missing}");
        let text = "{}".repeat(1 << 20);
        let bytes = write_text(&store, "t", text.clone().into_bytes()).await.unwrap();
        assert!(bytes < 64 << 10, "{bytes}");
        assert_eq!(read_text(&store, "t", bytes, 2 << 20).await.unwrap(), Some(text));
        assert!(read_text(&store, "t", bytes, (2 << 20) - 1).await.is_err(), "it is not cut off");
        assert_eq!(read_text(&store, "u", 1, 100).await.unwrap(), None);
    }

    #[test]
    fn a_large_recording_has_more_time() {
        assert_eq!(time_of(0), WRITING);
        assert_eq!(time_of(256 << 20), WRITING + Duration::from_secs(512));
    }
}
