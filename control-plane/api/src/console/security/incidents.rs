//! Incidents and what operators make of them.

use std::collections::HashMap;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Answer, Body, Caller, charged, charged_key, done, not_done, read, text};
use super::paging::Paging;
use super::{describe, shapes};
use crate::openapi::Routes;
use crate::query::Parameters;
use base::identity::Identity;
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

async fn incidents(State(fabric): State<Fabric>, parameters: Parameters) -> Answer {
    let paging = Paging::read(parameters, &["ref", "state"])?;
    let (now, window) = (fabric.now(), fabric.incident_limits().window);
    let (wanted, state) = (paging.filter("ref").map(|wanted| charged_key(&fabric, wanted)), paging.filter("state"));
    let mut shown = fabric.events().incidents();
    shown.retain(|incident| {
        incident.state != IncidentState::Resolved
            && now.saturating_sub(incident.last_seen) <= window
            && wanted.as_ref().is_none_or(|wanted| incident.key == *wanted)
            && state.is_none_or(|wanted| incident.state.word() == wanted)
    });
    let total = shown.len();
    let shown: Vec<Incident> = paging.cut(shown).collect();
    let keys = shown.iter().map(|incident| incident.key.clone()).collect();
    let bans: HashMap<String, Ban> =
        fabric.store().bans_on(now, keys).await?.into_iter().map(|ban| (ban.key.clone(), ban)).collect();
    let mut ranges = Vec::new();
    let mut entries = HashMap::new();
    for entry in fabric.store().allowlist(now).await? {
        match Identity::parse(&entry.key) {
            Ok(range) if range.is_range() => ranges.push((range, entry)),
            _ => drop(entries.insert(entry.key.clone(), entry)),
        }
    }
    let banned_ranges: Vec<(Identity, &Ban)> = bans
        .values()
        .filter_map(|ban| Some((Identity::parse(&ban.key).ok().filter(Identity::is_range)?, ban)))
        .collect();
    let items = shown.iter().map(|incident| {
        let within = Identity::parse(&incident.key).ok();
        let over = |range: &Identity| within.as_ref().is_some_and(|identity| range.covers(identity));
        let by_range = || banned_ranges.iter().find(|(range, _)| over(range)).map(|(_, ban)| *ban);
        let ban = bans.get(&incident.key).or_else(by_range);
        let by_range = || ranges.iter().find(|(range, _)| over(range)).map(|(_, entry)| entry);
        let entry = entries.get(&incident.key).or_else(by_range);
        item(&fabric, incident, ban, entry)
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
