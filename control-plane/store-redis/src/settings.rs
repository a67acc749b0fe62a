//! Settings of the server by which acknowledged writes are durable: what is not set so is logged, with what to set.

use redis::{FromRedisValue as _, Value};

use crate::link::Link;

/// Each with the value that it should have, and what another one means.
const WANTED: [(&str, &[&str], &str); 3] = [
    ("appendonly", &["yes"], "acknowledged changes are lost when the server stops"),
    ("appendfsync", &["always"], "the changes of the last second are lost with the server's power"),
    ("maxmemory-policy", &["noeviction"], "the server may drop what must not be forgotten"),
];

/// Reads the settings, if the server permits it; what is not as it should be, in sentences.
pub(crate) async fn look(link: &Link) -> Vec<String> {
    let mut cautions = Vec::new();
    for (name, wanted, otherwise) in WANTED {
        let mut command = redis::cmd("CONFIG");
        command.arg("GET").arg(name);
        let answer = link.call(None, async |mut connection| command.query_async::<Value>(&mut connection).await).await;
        let found =
            answer.ok().and_then(|answer| Vec::<String>::from_redis_value(answer).ok()).and_then(|mut pair| pair.pop());
        match found {
            Some(found) if wanted.contains(&found.as_str()) => {}
            Some(found) => {
                let wanted = wanted.join(" or ");
                tracing::warn!(server = %link.server, setting = name, found, wanted, "{otherwise}: change the setting");
                cautions.push(format!("{name} of the server is {found}, not {wanted}: {otherwise}"));
            }
            None => tracing::info!(
                server = %link.server, setting = name, wanted = wanted.join(" or "), "the setting cannot be read here: see to it"
            ),
        }
    }
    cautions
}
