//! What the client reports, in the store's words: what is wrong, and what to do about it.

use redis::{ErrorKind, RedisError, ServerErrorKind};
use store::StoreError;

/// Whether the connection is of no use any more, or is one to the wrong server.
pub(crate) fn is_lost(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_connection_dropped()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            ErrorKind::Server(
                ServerErrorKind::ReadOnly
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::Moved
                    | ServerErrorKind::ClusterDown
                    | ServerErrorKind::BusyLoading
            )
        )
}

/// The error for the caller. `is_change`: a change was on its way, and may have been made.
pub(crate) fn explain(server: &str, error: &RedisError, is_change: bool) -> StoreError {
    let server = server.to_owned();
    // Several commands at once have their errors apart.
    let apart = error.clone().into_server_errors();
    let is_apart = apart.is_some_and(|errors| errors.iter().any(|(_, error)| error.code() == "OOM"));
    if is_apart || error.code() == Some("OOM") || error.to_string().contains("OOM command not allowed") {
        return StoreError::ServerFull { server };
    }
    let may_be_made =
        is_change && (error.is_io_error() || error.is_connection_dropped()) && !error.is_connection_refusal();
    if may_be_made {
        return StoreError::Unanswered { server, detail: plain(error) };
    }
    StoreError::Server { server, detail: format!("{}{}", plain(error), advice(error)) }
}

/// The connection's state is not known: no answer within the time.
pub(crate) fn timed_out(server: &str, is_change: bool) -> StoreError {
    let (server, detail) = (server.to_owned(), "no answer within the time allowed".to_owned());
    if is_change { StoreError::Unanswered { server, detail } } else { StoreError::Server { server, detail } }
}

/// The server has nothing any more. To take that over would take the configuration from every gateway.
pub(crate) fn emptied(server: &str) -> StoreError {
    let detail = "it has lost everything that it held: restore its data, or that of a control plane that runs (`palisade backup` of its \
                  replica); one that is started anew begins an empty store there"
        .to_owned();
    StoreError::Server { server: server.to_owned(), detail }
}

fn plain(error: &RedisError) -> String {
    if error.is_timeout() { "no answer within the time allowed".to_owned() } else { error.to_string() }
}

fn advice(error: &RedisError) -> &'static str {
    let code = error.code().unwrap_or_default();
    let text = error.to_string();
    let has = |word: &str| code == word || text.contains(word);
    if error.kind() == ErrorKind::AuthenticationFailed || has("WRONGPASS") || has("NOAUTH") {
        "; the user or the password of the store's URL is wrong"
    } else if has("NOPERM") {
        "; the user's access control list must allow the keys of the prefix and the commands evalsha, eval, script, hmget, hget, \
         hscan, xread, xrevrange, xtrim, ping and select"
    } else if has("READONLY") {
        "; it is a replica: name the primary, or its sentinels"
    } else if has("NOREPLICAS") {
        "; too few of its replicas are connected for its min-replicas-to-write"
    } else if has("MISCONF") || has("MASTERDOWN") || has("CLUSTERDOWN") {
        "; it takes no writes as long as that lasts"
    } else if has("LOADING") {
        "; it is reading its data after a start, this ends by itself"
    } else {
        ""
    }
}
