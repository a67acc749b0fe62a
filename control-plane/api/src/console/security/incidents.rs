//! Incidents and what operators make of them.

use std::collections::HashMap;

use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Answer, Body, Caller, charged, charged_key, done, not_done, read, text};
use super::paging::Paging;
use super::{describe, shapes};
use crate::error::ApiError;
use crate::openapi::Routes;
use crate::query::Parameters;
use base::identity::Identity;
use base::search::Search;
use events::{Incident, IncidentState};
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

/// Which incidents are asked for, but for bans.
struct Wanted<'a> {
    key: Option<String>,
    state: Option<&'a str>,
    search: Option<Search>,
    outcome: Option<Outcome>,
    window: u64,
}

impl<'a> Wanted<'a> {
    fn of(fabric: &Fabric, paging: &'a Paging, outcome: Option<Outcome>) -> Wanted<'a> {
        Wanted {
            key: paging.filter("ref").map(|wanted| charged_key(fabric, wanted)),
            state: paging.filter("state"),
            search: paging.search(|typed| charged(fabric, Some(typed))),
            outcome,
            window: fabric.incident_limits().window,
        }
    }

    fn is(&self, incident: &Incident, state: IncidentState, now: u64) -> bool {
        state != IncidentState::Resolved
            && now.saturating_sub(incident.last_seen) <= self.window
            && self.key.as_ref().is_none_or(|wanted| incident.key == *wanted)
            && self.state.is_none_or(|wanted| state.word() == wanted)
            && match self.outcome {
                Some(Outcome::Enforced) => incident.enforced_count > 0,
                Some(Outcome::Observed) => incident.enforced_count == 0,
                Some(Outcome::Banned) | None => true,
            }
            && self.search.as_ref().is_none_or(|search| {
                let lists = [&incident.tags, &incident.routes, &incident.categories, &incident.actions];
                search.is_of(&incident.key)
                    || search.is_in_any([&*incident.last_message, &*incident.node])
                    || search.is_in_any(lists.into_iter().flatten().map(String::as_str))
            })
    }
}

/// The bans over some incidents.
struct Bans {
    by_key: HashMap<String, Ban>,
    ranges: Vec<(Identity, String)>,
}

impl Bans {
    async fn on(fabric: &Fabric, incidents: &[Incident]) -> Result<Bans, ApiError> {
        let keys = incidents.iter().map(|incident| incident.key.clone()).collect();
        let bans = fabric.store().bans_on(fabric.now(), keys).await?;
        let range = |ban: &Ban| Some((Identity::parse(&ban.key).ok().filter(Identity::is_range)?, ban.key.clone()));
        let ranges = bans.iter().filter_map(range).collect();
        Ok(Bans { by_key: bans.into_iter().map(|ban| (ban.key.clone(), ban)).collect(), ranges })
    }

    /// The ban of this identity, or of a range that it is in.
    fn over(&self, key: &str) -> Option<&Ban> {
        if let Some(ban) = self.by_key.get(key) {
            return Some(ban);
        }
        let identity = Identity::parse(key).ok()?;
        let (_, range) = self.ranges.iter().find(|(range, _)| range.covers(&identity))?;
        self.by_key.get(range)
    }
}

async fn incidents(State(fabric): State<Fabric>, parameters: Parameters) -> Answer {
    let paging = Paging::read(parameters, &["ref", "state", "text", "outcome"])?;
    let now = fabric.now();
    let outcome = paging.filter("outcome").map(Outcome::read).transpose()?;
    let wanted = Wanted::of(&fabric, &paging, outcome);
    let mut shown = fabric.events().incidents_where(|incident, state| wanted.is(incident, state, now));
    if outcome == Some(Outcome::Banned) {
        let bans = Bans::on(&fabric, &shown).await?;
        shown.retain(|incident| bans.over(&incident.key).is_some());
    }
    let total = shown.len();
    let shown: Vec<Incident> = paging.cut(shown).collect();
    let bans = Bans::on(&fabric, &shown).await?;
    let mut ranges = Vec::new();
    let mut entries = HashMap::new();
    for entry in fabric.store().allowlist(now).await? {
        match Identity::parse(&entry.key) {
            Ok(range) if range.is_range() => ranges.push((range, entry)),
            _ => drop(entries.insert(entry.key.clone(), entry)),
        }
    }
    let items = shown.iter().map(|incident| {
        let within = Identity::parse(&incident.key).ok();
        let over = |range: &Identity| within.as_ref().is_some_and(|identity| range.covers(identity));
        let by_range = || ranges.iter().find(|(range, _)| over(range)).map(|(_, entry)| entry);
        let entry = entries.get(&incident.key).or_else(by_range);
        item(&fabric, incident, bans.over(&incident.key), entry)
    });
    Ok(paging.answer("incidents", items, total))
}

fn item(fabric: &Fabric, incident: &Incident, ban: Option<&Ban>, entry: Option<&Allowance>) -> Value {
    let mut item = json!(incident);
    if let Some(fields) = item.as_object_mut() {
        fields.insert(
            "workflow".to_owned(),
            json!(fabric.events().workflow(&incident.key).as_ref().map(shapes::workflow)),
        );
        fields.insert("banned".to_owned(), ban.is_some().into());
        fields.insert("ban".to_owned(), json!(ban.map(shapes::ban)));
        fields.insert("allowlisted".to_owned(), entry.is_some().into());
        fields.insert("allowlist_entry".to_owned(), json!(entry.map(shapes::allowance)));
    }
    item
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
