//! Incidents and what operators make of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::{Answer, Body, Caller, charged, charged_key, done, not_done, read, text};
use super::paging::Paging;
use super::{describe, shapes};
use crate::error::ApiError;
use crate::openapi::Routes;
use crate::query::Parameters;
use base::identity::Identity;
use base::networks::Networks;
use base::search::Search;
use events::{EventHub, Incident, IncidentState};
use fabric::Fabric;
use store::fabric::{Allowance, Ban};

/// An incident and its new state.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct IncidentStateBody {
    /// The incident's key, such as `ip:192.0.2.1`.
    key: Option<String>,
    /// `open`, `acknowledged` or `resolved`.
    state: Option<String>,
    /// A note, at most 2000 characters.
    note: Option<String>,
}

pub(super) fn routes() -> Routes<Fabric> {
    Routes::new()
        .on(describe::incidents(), incidents)
        .on(describe::incident_state(), incident_state)
        .schema::<IncidentStateBody>()
}

/// What was done with the requests of an incident.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// At least one was refused.
    Enforced,
    /// None was.
    Observed,
    /// The caller is banned now.
    Banned,
}

impl Outcome {
    fn read(word: &str) -> Result<Outcome, ApiError> {
        match word {
            "enforced" => Ok(Outcome::Enforced),
            "observed" => Ok(Outcome::Observed),
            "banned" => Ok(Outcome::Banned),
            _ => {
                let shown = word.chars().take(64).collect::<String>();
                let message = format!(
                    "`filter.outcome` is `{}`; expected `enforced`, `observed` or `banned`",
                    shown.escape_debug()
                );
                Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message))
            }
        }
    }
}

/// Which incidents are asked for.
struct Wanted {
    key: Option<String>,
    state: Option<String>,
    search: Option<Search>,
    outcome: Option<Outcome>,
    /// Where it matters who is banned: the keys of all bans.
    banned: Option<Vec<String>>,
    /// Incidents without an event since then are not listed.
    oldest: u64,
}

impl Wanted {
    async fn read(fabric: &Fabric, paging: &Paging, now: u64) -> Result<Wanted, ApiError> {
        let outcome = paging.filter("outcome").map(Outcome::read).transpose()?;
        let banned = match outcome {
            Some(Outcome::Banned) => Some(fabric.store().bans_keys(now).await?),
            Some(Outcome::Enforced | Outcome::Observed) | None => None,
        };
        Ok(Wanted {
            key: paging.filter("ref").map(|wanted| charged_key(fabric, wanted)),
            state: paging.filter("state").map(ToOwned::to_owned),
            search: paging.search(|typed| charged(fabric, Some(typed))),
            outcome,
            banned,
            oldest: now.saturating_sub(fabric.incident_limits().window),
        })
    }

    fn is(&self, incident: &Incident, state: IncidentState) -> bool {
        state != IncidentState::Resolved
            && self.key.as_deref().is_none_or(|wanted| incident.key == *wanted)
            && self.state.as_deref().is_none_or(|wanted| state.word() == wanted)
            && match self.outcome {
                Some(Outcome::Enforced) => incident.enforced_count > 0,
                Some(Outcome::Observed) => incident.enforced_count == 0,
                Some(Outcome::Banned) | None => true,
            }
            && self.search.as_ref().is_none_or(|search| {
                let lists = [&incident.tags, &incident.routes, &incident.categories, &incident.actions];
                search.is_of(&incident.key)
                    || search.is_in_any([&*incident.last_message, &*incident.node])
                    || search.is_in_any(lists.into_iter().flatten().map(|text| &**text))
            })
    }

    /// Those of the page, and how many there are on all pages.
    fn page(&mut self, events: &EventHub, paging: &Paging) -> (Vec<Listed>, usize) {
        let banned = self.banned.take().map(|keys| keys.into_iter().map(|key| (key, ())).collect::<Covered<()>>());
        let is_banned = |key: &str| banned.as_ref().is_none_or(|banned| banned.over(key).is_some());
        let mut all = events.incidents_since(self.oldest);
        all.retain(|(incident, state)| self.is(incident, *state) && is_banned(&incident.key));
        let total = all.len();
        (paging.cut(all).collect(), total)
    }
}

/// An incident and its state.
type Listed = (Arc<Incident>, IncidentState);

/// Bans, or entries of the allowlist, by the identities that they are on.
struct Covered<T> {
    exact: HashMap<String, T>,
    /// The keys of those that are ranges.
    ranges: Networks<String>,
}

impl<T> Covered<T> {
    /// What is on this identity, or on a range that it is in.
    fn over(&self, key: &str) -> Option<&T> {
        let by_range = || {
            let range = if self.ranges.is_empty() { None } else { self.ranges.over(&Identity::parse(key).ok()?) };
            self.exact.get(range?)
        };
        self.exact.get(key).or_else(by_range)
    }
}

impl<T> FromIterator<(String, T)> for Covered<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(all: I) -> Covered<T> {
        let exact: HashMap<_, _> = all.into_iter().collect();
        // Only what has a width is a range: most keys need not be read.
        let ranges = exact.keys().filter(|key| key.contains('/')).filter_map(|key| {
            let range = Identity::parse(key).ok().filter(Identity::is_range)?;
            Some((range.network()?, key.clone()))
        });
        let ranges = ranges.collect();
        Covered { exact, ranges }
    }
}

async fn incidents(State(fabric): State<Fabric>, parameters: Parameters) -> Answer {
    let paging = Paging::read(parameters, &["ref", "state", "text", "outcome"])?;
    let now = fabric.now();
    let mut wanted = Wanted::read(&fabric, &paging, now).await?;
    let events = fabric.events().clone();
    // There may be many: other calls do not wait for this one.
    let (paging, (page, total)) = blocking(move || {
        let page = wanted.page(&events, &paging);
        (paging, page)
    })
    .await?;
    let keys = page.iter().map(|(incident, _)| incident.key.to_string()).collect();
    let bans = fabric.store().bans_on(now, keys).await?;
    let entries = fabric.store().allowlist(now).await?;
    let events = fabric.events().clone();
    blocking(move || {
        let bans: Covered<Ban> = bans.into_iter().map(|ban| (ban.key.clone(), ban)).collect();
        let entries: Covered<Allowance> = entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        let workflow = |incident: &Incident, state| match state {
            IncidentState::Open => None,
            IncidentState::Acknowledged | IncidentState::Resolved => {
                events.workflow(&incident.key).as_ref().map(shapes::workflow)
            }
        };
        let items = page.iter().map(|(incident, state)| {
            let (ban, entry) = (bans.over(&incident.key), entries.over(&incident.key));
            Item {
                incident: incident.in_state(*state),
                workflow: workflow(incident, *state),
                banned: ban.is_some(),
                ban: ban.map(shapes::ban),
                allowlisted: entry.is_some(),
                allowlist_entry: entry.map(shapes::allowance),
            }
        });
        paging.answer("incidents", items, total)
    })
    .await
}

/// Does what takes long apart from the threads that answer calls.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        let message = format!("the work broke off: {error}");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "failed", message)
    })
}

/// An incident as the console shows it.
#[derive(Serialize)]
struct Item<'a> {
    #[serde(flatten)]
    incident: Cow<'a, Incident>,
    workflow: Option<Value>,
    banned: bool,
    ban: Option<Value>,
    allowlisted: bool,
    allowlist_entry: Option<Value>,
}

async fn incident_state(State(fabric): State<Fabric>, Caller(actor): Caller, body: Body) -> Answer {
    let parse = |body: IncidentStateBody| {
        let state = body.state.unwrap_or_default();
        if !["open", "acknowledged", "resolved"].contains(&state.as_str()) {
            let shown: String = state.chars().take(64).collect();
            let error =
                format!("`{}` is not a state; expected `open`, `acknowledged` or `resolved`", shown.escape_debug());
            return Err(error);
        }
        Ok((charged(&fabric, body.key.as_deref())?, state, text(body.note)?))
    };
    let (identity, state, note): (Identity, String, String) = match read(body).and_then(parse) {
        Ok(asked) => asked,
        Err(error) => return not_done(&error),
    };
    let workflow = fabric.set_state(&actor, &identity.key(), &state, &note).await?;
    done(json!({ "workflow": shapes::workflow(&workflow) }))
}
