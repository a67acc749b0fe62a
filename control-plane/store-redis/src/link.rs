//! The connection to the server: made when it is needed, made anew when it was lost, and never waited for without limit.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Stopwatch;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo,
    RedisError, TlsCertificates, Value,
};
use store::StoreError;
use tokio::sync::Mutex;

use crate::explain::{explain, is_lost, timed_out};
use crate::options::{Kind, RedisOptions};

/// How long no connection is tried after one has failed: the first time, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How much longer an answer may take for each MiB of a change.
const PER_MEBIBYTE: Duration = Duration::from_millis(200);
/// How many nodes of a cluster are asked, one after the other, where the keys are.
const MAX_REDIRECTS: usize = 5;

/// The connection that all calls share.
pub(crate) struct Link {
    options: RedisOptions,
    /// The server's name in errors.
    pub(crate) server: Arc<str>,
    /// The key by which a cluster's node is found.
    head: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Grows with each connection, so that an error of an old one does not end a new one.
    number: u64,
    failed: Option<(Stopwatch, Duration, StoreError)>,
}

impl Link {
    pub(crate) fn new(options: RedisOptions, head: String) -> Link {
        Link { server: options.to_string().into(), head, options, state: Mutex::default() }
    }

    /// Makes a call on the shared connection. `change`: it makes a change of so many bytes, which takes longer where they are many, and
    /// whose outcome is unknown where no answer comes.
    pub(crate) async fn call<F: Future<Output = Result<Value, RedisError>>>(
        &self,
        change: Option<usize>,
        command: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<Value, StoreError> {
        let (connection, number) = self.connection().await?;
        let mebibytes = u32::try_from(change.unwrap_or(0) >> 20).unwrap_or(u32::MAX);
        let (is_change, limit) = (change.is_some(), self.options.timeout + PER_MEBIBYTE * mebibytes);
        let (error, is_lost) = match tokio::time::timeout(limit, command(connection)).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => (explain(&self.server, &error, is_change), is_lost(&error)),
            Err(_) => (timed_out(&self.server, is_change), true),
        };
        if is_lost {
            let mut state = self.state.lock().await;
            if state.number == number {
                state.connection = None;
            }
        }
        Err(error)
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), StoreError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.number));
        }
        let mut backoff = BACKOFF.0;
        if let Some((since, wait, error)) = &state.failed {
            if since.seconds() < wait.as_secs_f64() {
                return Err(error.clone());
            }
            backoff = (*wait * 2).min(BACKOFF.1);
        }
        match self.connect().await {
            Ok(connection) => {
                state.number += 1;
                state.failed = None;
                state.connection = Some(connection.clone());
                Ok((connection, state.number))
            }
            Err(error) => {
                state.failed = Some((Stopwatch::start(), backoff, error.clone()));
                Err(error)
            }
        }
    }

    /// A connection that the caller does not share, for commands that wait at the server.
    pub(crate) async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        let connecting = async {
            match &self.options.kind {
                Kind::Single => self.first_of(&self.options.hosts, false).await,
                Kind::Cluster => self.node_of_keys().await,
                Kind::Sentinel(name) => {
                    let mut sentinel = self.first_of(&self.options.hosts, true).await?;
                    let mut ask = redis::cmd("SENTINEL");
                    ask.arg("get-master-addr-by-name").arg(name);
                    let primary: Option<(String, u16)> = ask.query_async(&mut sentinel).await?;
                    let unknown =
                        || RedisError::from((redis::ErrorKind::MasterNameNotFoundBySentinel, "no such server"));
                    self.open(&primary.ok_or_else(unknown)?, false).await
                }
            }
        };
        match tokio::time::timeout(self.options.timeout, connecting).await {
            Ok(connected) => connected.map_err(|error| explain(&self.server, &error, false)),
            Err(_) => Err(timed_out(&self.server, false)),
        }
    }

    /// All keys are on one node of a cluster, and every other one names it.
    async fn node_of_keys(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut connection = self.first_of(&self.options.hosts, false).await?;
        for _ in 0..MAX_REDIRECTS {
            let mut ask = redis::cmd("HLEN");
            let asked: Result<u64, RedisError> = ask.arg(&*self.head).query_async(&mut connection).await;
            let Err(error) = asked else { return Ok(connection) };
            if error.kind() != redis::ErrorKind::Server(redis::ServerErrorKind::Moved) {
                return Err(error);
            }
            let place = error.redirect_node().and_then(|(place, _)| {
                let (host, port) = place.rsplit_once(':')?;
                Some((host.to_owned(), port.parse().ok()?))
            });
            connection = self.open(&place.ok_or(error)?, false).await?;
        }
        Err(RedisError::from((redis::ErrorKind::ClusterConnectionNotFound, "the nodes name one another")))
    }

    async fn first_of(&self, places: &[(String, u16)], sentinel: bool) -> Result<MultiplexedConnection, RedisError> {
        let mut last = RedisError::from((redis::ErrorKind::InvalidClientConfig, "there is no host"));
        for place in places {
            match self.open(place, sentinel).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn open(&self, (host, port): &(String, u16), sentinel: bool) -> Result<MultiplexedConnection, RedisError> {
        let options = &self.options;
        let (host, port) = (host.clone(), *port);
        let address = if options.tls {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let mut settings = RedisConnectionInfo::default();
        if !sentinel {
            settings = settings.set_db(options.database).set_lib_name("palisade", env!("CARGO_PKG_VERSION"));
            if let Some(user) = &options.user {
                settings = settings.set_username(user);
            }
            if let Some(password) = &options.password {
                settings = settings.set_password(password);
            }
        }
        let info: ConnectionInfo = address
            .into_connection_info()?
            .set_redis_settings(settings)
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let client = match &options.ca_file {
            Some(file) if options.tls => {
                let root_cert = Some(tokio::fs::read(file).await?);
                Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })?
            }
            _ => Client::open(info)?,
        };
        // One address of several gets its share of the time, so that the next ones are tried.
        let share = u32::try_from(options.hosts.len()).unwrap_or(1).max(1);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.timeout / share))
            .set_response_timeout(None);
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    pub(crate) async fn close(&self) {
        let mut state = self.state.lock().await;
        state.connection = None;
        state.failed = Some((Stopwatch::start(), Duration::MAX, StoreError::Closed));
    }
}
