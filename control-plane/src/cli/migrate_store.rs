//! `palisade migrate-store`: everything of one store in another, empty one; and how a shared store is opened.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use store::{SqliteOptions, SqliteStore, Store as _, migrate};
use store_redis::RedisOptions;

use super::admin_key::open_existing_with;
use super::error::CliError;
use super::output::say;

/// `palisade migrate-store`.
#[derive(Debug, clap::Args)]
pub(super) struct MigrateStoreCommand {
    /// The store to copy: the directory of an embedded one, or the URL of a shared one.
    #[arg(long, value_name = "DIR|URL")]
    from: String,

    /// The empty store to copy to: a directory without a store, or a URL.
    #[arg(long, value_name = "DIR|URL")]
    to: String,

    /// The directory for the replica of a shared store.
    #[arg(long, env = "PALISADE_DATA", value_name = "DIR", default_value = "palisade-data")]
    data: PathBuf,
}

impl MigrateStoreCommand {
    pub(super) async fn run(self) -> Result<(), CliError> {
        let source = if RedisOptions::is_url(&self.from) {
            open_shared(&self.from, &self.data, false).await?
        } else {
            let options = SqliteOptions { exclusive: true, ..SqliteOptions::default() };
            open_existing_with(Path::new(&self.from), options)?
        };
        let copied = copy(&source, &self.to).await;
        source.close().await?;
        let copied = copied?;
        for (table, rows) in &copied {
            say(format_args!("{table}: {rows}"))?;
        }
        say(format_args!("copied {} rows, and read them back", copied.values().sum::<u64>()))
    }
}

async fn copy(source: &SqliteStore, to: &str) -> Result<migrate::Copied, CliError> {
    if !RedisOptions::is_url(to) {
        return Ok(migrate::to_file(source, Path::new(to)).await?);
    }
    let options = parse(to)?;
    let name = options.to_string();
    let progress = |done, all| {
        let _ = writeln!(std::io::stderr(), "{done} of {all} rows");
    };
    Ok(migrate::to_server(source, store_redis::connect(options).await?, &name, progress).await?)
}

/// Opens the shared store of a URL, with a replica in `data`; `serves` for a control plane.
pub(super) async fn open_shared(url: &str, data: &Path, serves: bool) -> Result<SqliteStore, CliError> {
    Ok(store_redis::open(parse(url)?, data, serves).await?)
}

fn parse(url: &str) -> Result<RedisOptions, CliError> {
    RedisOptions::parse(url).map_err(|error| CliError::Other(format!("the URL of the store: {error}")))
}
