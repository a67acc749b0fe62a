//! A test message to the channel of an alert rule.

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Answer, Body, Caller, done, not_done, read};
use super::describe;
use crate::openapi::Routes;
use alerts::Alerts;
use entities::{AlertRule, Entity as _, Item, unsaved};
use events::{Audit, AuditAction};

/// Which rule's channel is tried.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AlertTestBody {
    /// The id of an alert rule.
    id: Option<String>,
    /// An alert rule with its secrets; it need not be stored.
    rule: Option<Value>,
}

pub(super) fn routes() -> Routes<Alerts> {
    Routes::new().on(describe::alert_test(), alert_test).schema_as("AlertTestBody", describe::alert_test_body())
}

async fn alert_test(State(alerts): State<Alerts>, Caller(actor): Caller, body: Body) -> Answer {
    let rule = match read(body).and_then(|body: AlertTestBody| find(&alerts, body)) {
        Ok(rule) => rule,
        Err(error) => return not_done(&error),
    };
    let channel = rule.channel.kind.word();
    let outcome = alerts.test(&rule).await;
    let told = match &outcome {
        Ok(delivered) => delivered.status.map_or("as an event".to_owned(), |status| format!("answered {status}")),
        Err(error) => error.to_string(),
    };
    let audit = Audit::new(AuditAction::AlertTest).operator(&actor.name, &actor.email).from(actor.source);
    let stored = (!rule.head.id.is_empty()).then(|| format!("{}/{}", AlertRule::COLLECTION, rule.head.id));
    let audit = stored.into_iter().fold(audit, Audit::of);
    alerts.events().audit(audit.detail(format!("{channel}: {told}")));
    match outcome {
        Ok(delivered) => done(json!({
            "channel": channel,
            "delivery": {
                "status": delivered.status.map(|status| status.as_u16()),
                "ok": delivered.ok,
                "body": delivered.body,
            },
        })),
        Err(error) => not_done(&error.to_string()),
    }
}

fn find(alerts: &Alerts, body: AlertTestBody) -> Result<Item<AlertRule>, String> {
    let entities = alerts.entities().current();
    match (body.id, body.rule) {
        (Some(_), Some(_)) => Err("`id` and `rule` exclude each other".to_owned()),
        (Some(id), None) => entities.get::<AlertRule>(&id).cloned().ok_or_else(|| {
            let shown: String = id.chars().take(128).collect();
            format!("there is no alert rule `{}`", shown.escape_debug())
        }),
        (None, Some(rule)) => unsaved(rule, entities.as_ref()).map_err(|problem| format!("invalid rule: {problem}")),
        (None, None) => Err("no alert rule provided: `rule` or `id` is expected".to_owned()),
    }
}
