//! Answers the questions of gateways about passwords: from a file, or from an address, whose answers are kept for a day.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use kit::{EntitySource, Sources};
use outbound::{Call, Outbound};
use prost::Message as _;
use snapshot::Topic as _;
use tokio::sync::Semaphore;

use super::{LoginSettings, corpus};
use crate::{BreachedPasswords, BreachedRange};

/// How long an answer is kept, in milliseconds.
const KEEP: u64 = 86_400_000;
/// The most answers that are kept; each has about 8 KiB.
const MAX_KEPT: usize = 2_048;
/// The most lookups at a time.
const AT_ONCE: usize = 8;
/// The longest answer of an address, in bytes.
const MAX_ANSWER: usize = 1 << 20;
/// The name of the source for operators.
const SUBJECT: &str = "breached passwords";

/// What answers questions.
struct Answerer {
    sources: Sources,
    settings: Mutex<LoginSettings>,
    /// By prefix, until when and the suffixes.
    kept: Mutex<HashMap<u32, (u64, Vec<u8>)>>,
    turns: Semaphore,
}

/// Answers questions as long as the control plane runs.
pub(super) async fn gather(sources: Sources) {
    let mut entities = sources.entities.clone();
    let first = settings(&**entities.borrow_and_update());
    let answerer = Arc::new(Answerer {
        sources: sources.clone(),
        settings: Mutex::new(first),
        kept: Mutex::default(),
        turns: Semaphore::new(AT_ONCE),
    });
    let own = Arc::clone(&answerer);
    sources.answer(
        BreachedRange::TOPIC,
        Arc::new(move |data| {
            let answerer = Arc::clone(&own);
            Box::pin(async move {
                let BreachedRange { prefix } = BreachedRange::decode(data.as_slice()).ok()?;
                let suffixes = answerer.range(prefix).await?;
                Some(BreachedPasswords { suffixes }.encode_to_vec())
            })
        }),
    );
    while entities.changed().await.is_ok() {
        answerer.reconfigure(settings(&**entities.borrow_and_update()));
    }
}

fn settings(entities: &dyn EntitySource) -> LoginSettings {
    let global = entities.slot("global-config", "global-config").map(|slot| slot.entity.shown());
    let settings = global.and_then(|global| global.pointer("/security/login").cloned());
    settings.and_then(|settings| serde_json::from_value(settings).ok()).unwrap_or_default()
}

impl Answerer {
    fn reconfigure(&self, settings: LoginSettings) {
        let mut known = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == settings {
            return;
        }
        if !settings.has_source() {
            self.sources.health.ends(SUBJECT);
        }
        *known = settings;
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The suffixes of a prefix; `None` if they could not be found out. A gateway may ask for anything.
    async fn range(&self, prefix: u32) -> Option<Vec<u8>> {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if prefix >> 20 != 0 || !settings.has_source() {
            return None;
        }
        if let Some(kept) = self.kept(prefix) {
            return Some(kept);
        }
        let _turn = self.turns.acquire().await.ok()?;
        // Another question for it may have been answered meanwhile.
        if let Some(kept) = self.kept(prefix) {
            return Some(kept);
        }
        let found = match settings.breached_file.is_empty() {
            true => fetched(&self.sources.outbound, prefix, &settings).await,
            false => {
                let file = PathBuf::from(&settings.breached_file);
                let reading = tokio::task::spawn_blocking(move || corpus::of_file(&file, prefix));
                reading.await.unwrap_or_else(|error| Err(error.to_string()))
            }
        };
        match found {
            Ok(suffixes) => {
                self.sources.health.works(SUBJECT);
                self.keep(prefix, &suffixes);
                Some(suffixes)
            }
            Err(why) => {
                self.sources.health.fails(SUBJECT, &why);
                None
            }
        }
    }

    fn kept(&self, prefix: u32) -> Option<Vec<u8>> {
        let now = (self.sources.clock)();
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&prefix).filter(|(until, _)| *until > now).map(|(_, suffixes)| suffixes.clone())
    }

    fn keep(&self, prefix: u32, suffixes: &[u8]) {
        let now = (self.sources.clock)();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.retain(|_, (until, _)| *until > now);
        }
        if kept.len() >= MAX_KEPT
            && let Some(first) = kept.iter().min_by_key(|(_, (until, _))| *until).map(|(prefix, _)| *prefix)
        {
            kept.remove(&first);
        }
        kept.insert(prefix, (now.saturating_add(KEEP), suffixes.to_vec()));
    }
}

/// The suffixes that an address knows of a prefix; the reason if it gives none within the time of the settings.
async fn fetched(outbound: &Outbound, prefix: u32, settings: &LoginSettings) -> Result<Vec<u8>, String> {
    let padding = (header::HeaderName::from_static("add-padding"), HeaderValue::from_static("true"));
    let agent = (header::USER_AGENT, HeaderValue::from_static("palisade"));
    let call = Call {
        method: Method::GET,
        url: format!("{}{prefix:05X}", settings.breached_url),
        headers: HeaderMap::from_iter([padding, agent]),
        body: Bytes::new(),
        timeout: Duration::from_millis(settings.timeout_millis.into()),
        max_answer_bytes: MAX_ANSWER,
        redirects: 0,
    };
    let outbound = if settings.allow_private { outbound.reaching_private() } else { outbound.clone() };
    let answer = outbound.call(call).await.map_err(|error| error.to_string())?;
    match answer.status {
        StatusCode::OK => Ok(corpus::of_answer(&answer.body, prefix)),
        other => Err(format!("the server answers {}", other.as_u16())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_does_not_answer_is_given_up_after_the_time_of_the_settings() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let settings = |timeout_millis| LoginSettings {
            breached_url: format!("http://{}/range/", silent.local_addr().unwrap()),
            allow_private: true,
            timeout_millis,
            ..LoginSettings::default()
        };
        let outbound = Outbound::new(Vec::new());
        // The longer one of two that begin together is still waiting when the shorter one ends.
        let (short, long) = (settings(100), settings(30_000));
        let began = tokio::time::Instant::now();
        let ended = tokio::select! {
            ended = fetched(&outbound, 0xabcde, &short) => ended,
            _ = fetched(&outbound, 0xabcde, &long) => Ok(Vec::new()),
        };
        assert!(ended.is_err() && began.elapsed() >= Duration::from_millis(100), "{ended:?}");
    }
}
