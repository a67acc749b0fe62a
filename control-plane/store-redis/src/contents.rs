//! The contents of recordings and replays at the server: one hash for each owner, whose fields are the numbers of chunks.

use std::sync::Arc;

use redis::{FromRedisValue as _, Value};
use store::{Contents, Pending, StoreError};
use tokio::runtime::Handle;

use crate::link::Link;
use crate::options::RedisOptions;

/// [`Contents`] on a server.
#[derive(Clone)]
pub(crate) struct RedisContents {
    /// A connection of its own: no recording makes a ban wait.
    link: Arc<Link>,
    /// Drives the connection: callers may have a runtime of another kind.
    handle: Handle,
    /// What keys begin with.
    prefix: Arc<str>,
}

impl RedisContents {
    /// Those beside the rows of this prefix. `head` is a key by which a cluster's node is found.
    pub(crate) fn new(options: &RedisOptions, head: String, handle: Handle) -> RedisContents {
        let prefix = format!("{{{}}}:contents:", options.prefix).into();
        RedisContents { link: Arc::new(Link::new(options.clone(), head)), handle, prefix }
    }

    fn key(&self, owner: &str) -> String {
        format!("{}{owner}", self.prefix)
    }

    /// One command. `change`: it makes a change of so many bytes.
    fn ask(&self, command: redis::Cmd, change: Option<usize>) -> Pending<'static, Value> {
        let link = Arc::clone(&self.link);
        let asking = self.handle.spawn(async move {
            link.call(change, async |mut connection| command.query_async::<Value>(&mut connection).await).await
        });
        Box::pin(async { asking.await.unwrap_or(Err(StoreError::Closed)) })
    }

    pub(crate) async fn close(&self) {
        self.link.close().await;
    }
}

impl Contents for RedisContents {
    fn put(&self, owner: &str, number: u32, bytes: Vec<u8>) -> Pending<'_, ()> {
        let length = bytes.len();
        let mut put = redis::cmd("HSET");
        put.arg(self.key(owner)).arg(number).arg(bytes);
        let asked = self.ask(put, Some(length));
        Box::pin(async { asked.await.map(drop) })
    }

    fn get(&self, owner: &str, number: u32) -> Pending<'_, Option<Vec<u8>>> {
        let mut get = redis::cmd("HGET");
        get.arg(self.key(owner)).arg(number);
        let asked = self.ask(get, None);
        Box::pin(async move {
            Option::<Vec<u8>>::from_redis_value(asked.await?).map_err(|error| StoreError::Server {
                server: self.link.server.to_string(),
                detail: format!("it has something else where contents of a recording should be: {error}"),
            })
        })
    }

    fn remove(&self, owner: &str) -> Pending<'_, ()> {
        let mut remove = redis::cmd("DEL");
        remove.arg(self.key(owner));
        // Made twice, it is the same.
        let asked = self.ask(remove, None);
        Box::pin(async { asked.await.map(drop) })
    }
}
