//! `operators/…`: the operators, for admins.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::account::{SessionName, list_of_sessions};
use super::body::{self, Body};
use super::describe::{self, Common as _};
use super::enter::no_randomness;
use super::second_factor::not_enrolled;
use super::state::Console;
use super::who::Who;
use crate::error::ApiError;
use crate::openapi::{Group, JSON, Operation, Routes, reference};
use accounts::{LOGIN_LINK_MILLIS, Operator, Role, TicketKind, TicketSecret, login_link, normal_name};
use base::clock;
use events::AuditAction;
use store::AccessChange;

/// The bytes of a body, at most.
const MAX_BODY: usize = 16 * 1024;

/// A new operator.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewOperator {
    /// The name to log in with: 1 to 64 of `a-z 0-9 . _ @ -`, case ignored.
    name: String,
    /// The email address; shown in the audit.
    email: String,
    /// What they may do.
    role: Role,
}

/// Another role.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewRole {
    /// The operator's name.
    name: String,
    /// What they may do from now on.
    role: Role,
}

/// An operator.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OperatorName {
    /// The operator's name.
    pub(super) name: String,
}

/// How many live sessions an operator has, and when the last one was used.
type Activity = BTreeMap<String, (u64, u64)>;

pub(super) fn router() -> Routes<Console> {
    Routes::new()
        .on(describe_list(), list)
        .on(describe_add(), add)
        .on(describe_role(), role)
        .on(describe_remove(), remove)
        .on(describe_login_link(), make_login_link)
        .on(describe_reset_password(), reset_password)
        .on(describe_reset_second_factor(), reset_second_factor)
        .on(describe_sessions(), sessions)
        .on(describe_revoke_session(), revoke_session)
        .on(describe_revoke_sessions(), revoke_sessions)
        .schema::<NewOperator>()
        .schema::<NewRole>()
        .schema::<OperatorName>()
        .schema_as("OperatorAccount", schema())
        .schema_as("LoginLink", link_schema())
        .layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

async fn list(State(console): State<Console>, who: Who) -> Result<Json<Value>, ApiError> {
    let (operators, activity) = (console.inner.store.operators().await?, console.activity().await?);
    let shown = operators.iter().map(|operator| shown(operator, &activity, &who));
    Ok(Json(json!({ "operators": shown.collect::<Vec<_>>() })))
}

async fn add(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let NewOperator { name, email, role } = body::read(&headers, body)?;
    let now = console.now();
    let operator = Operator::new(&name, &email, role, String::new(), now)
        .map_err(|invalid| ApiError::new(StatusCode::BAD_REQUEST, "invalid_operator", invalid.to_string()))?;
    let note = who.note(AuditAction::OperatorAdd, &operator.name, &format!("{email}; role {role}"), now);
    console
        .change_access(AccessChange::OperatorAdd(operator.clone()), note, || {
            ApiError::new(StatusCode::CONFLICT, "taken", "there is an operator of this name already")
        })
        .await?;
    let link = console.link(&operator.name, &who, now).await?;
    Ok(Json(json!({ "done": true, "operator": shown(&operator, &Activity::new(), &who), "link": link })))
}

async fn role(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let NewRole { name, role } = body::read(&headers, body)?;
    let (now, operator) = (console.now(), console.named(&name).await?);
    let name = operator.name.clone();
    let note = who.note(AuditAction::OperatorRole, &name, &format!("{} to {role}", operator.role), now);
    let change = AccessChange::OperatorRole { name: name.clone(), role, keep_admin: true };
    let changed = console.inner.store.access_change(change, note).await?;
    let operator = console.named(&name).await?;
    if !changed && operator.role != role {
        return Err(last_admin());
    }
    Ok(Json(json!({ "done": true, "operator": shown(&operator, &console.activity().await?, &who) })))
}

async fn remove(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let OperatorName { name } = body::read(&headers, body)?;
    let name = console.named(&name).await?.name;
    let note = who.note(AuditAction::OperatorRemove, &name, "", console.now());
    let change = AccessChange::OperatorRemove { name: name.clone(), keep_admin: true };
    if !console.inner.store.access_change(change, note).await? {
        console.named(&name).await?;
        return Err(last_admin());
    }
    Ok(Json(json!({ "done": true })))
}

async fn make_login_link(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let OperatorName { name } = body::read(&headers, body)?;
    let name = console.named(&name).await?.name;
    Ok(Json(json!({ "done": true, "link": console.link(&name, &who, console.now()).await? })))
}

async fn reset_password(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let OperatorName { name } = body::read(&headers, body)?;
    let (now, name) = (console.now(), console.named(&name).await?.name);
    let note = who.note(AuditAction::OperatorPassword, &name, "removed", now);
    let change = AccessChange::OperatorPassword { name: name.clone(), hash: String::new(), at_millis: now };
    console.change_access(change, note, unknown).await?;
    Ok(Json(json!({ "done": true, "link": console.link(&name, &who, now).await? })))
}

async fn reset_second_factor(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let OperatorName { name } = body::read(&headers, body)?;
    let name = console.named(&name).await?.name;
    let note = who.note(AuditAction::SecondFactorRemove, &name, "", console.now());
    let change = AccessChange::SecondFactorRemove { name, end_sessions: true };
    console.change_access(change, note, not_enrolled).await?;
    Ok(Json(json!({ "done": true })))
}

async fn sessions(State(console): State<Console>, who: Who) -> Result<Json<Value>, ApiError> {
    console.show_sessions(None, &who).await
}

async fn revoke_session(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let SessionName { id } = body::read(&headers, body)?;
    console.revoke_session(None, &id, &who).await
}

async fn revoke_sessions(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let OperatorName { name } = body::read(&headers, body)?;
    let name = console.named(&name).await?.name;
    let ended = console.inner.store.sessions_end(&name, None).await?;
    if ended > 0 {
        console.tell_of_revocation(&who, &name, ended);
    }
    Ok(Json(json!({ "done": true, "ended": ended })))
}

impl Console {
    pub(super) async fn named(&self, name: &str) -> Result<Operator, ApiError> {
        let name = normal_name(name).ok_or_else(unknown)?;
        self.inner.store.operator(&name).await?.ok_or_else(unknown)
    }

    async fn activity(&self) -> Result<Activity, ApiError> {
        let (now, mut activity) = (self.now(), Activity::new());
        for session in self.inner.store.sessions(None).await? {
            if session.holds(&self.inner.limits, now) {
                let (count, seen) = activity.entry(session.operator).or_default();
                (*count, *seen) = (*count + 1, (*seen).max(session.seen_at_millis));
            }
        }
        Ok(activity)
    }

    /// Makes a login link for an operator.
    async fn link(&self, name: &str, who: &Who, now: u64) -> Result<Value, ApiError> {
        let secret = TicketSecret::random().map_err(no_randomness)?;
        let until = now.saturating_add(LOGIN_LINK_MILLIS);
        let note = who.note(AuditAction::OperatorLoginLink, name, &format!("until {}", clock::rfc3339(until)), now);
        let ticket = secret.ticket(name, TicketKind::Link, until);
        self.change_access(AccessChange::LoginLink(ticket), note, unknown).await?;
        Ok(json!({ "token": secret.reveal(), "path": login_link(&secret), "expires_at": clock::rfc3339(until) }))
    }
}

fn shown(operator: &Operator, activity: &Activity, who: &Who) -> Value {
    let active = activity.get(&operator.name);
    let password_set = operator.password().map(|_| clock::rfc3339(operator.changed_at_millis));
    json!({
        "name": operator.name, "email": operator.email, "role": operator.role,
        "created_at": clock::rfc3339(operator.created_at_millis),
        "password_set_at": password_set, "has_password": password_set.is_some(),
        "second_factor": operator.second_factor, "provider": operator.has_identity, "passkeys": operator.passkeys,
        "sessions": active.map_or(0, |(count, _)| *count),
        "seen_at": active.map(|(_, seen)| clock::rfc3339(*seen)),
        "you": operator.name == who.operator.name,
    })
}

fn unknown() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "unknown_operator", "there is no such operator")
}

fn last_admin() -> ApiError {
    let message = "this is the last admin; make another operator admin first";
    ApiError::new(StatusCode::CONFLICT, "last_admin", message)
}

pub(super) fn group() -> Group {
    let about = "Who may log in to the console, and what they may do.";
    Group { name: "console: operators".to_owned(), about: about.to_owned() }
}

fn schema() -> Value {
    let time = || json!({ "type": "string", "format": "date-time" });
    let time_or_null = || json!({ "type": ["string", "null"], "format": "date-time" });
    describe::object(json!({
        "name": { "type": "string" }, "email": { "type": "string" }, "role": describe::role(), "created_at": time(),
        "password_set_at": time_or_null(), "has_password": { "type": "boolean" }, "second_factor": { "type": "boolean" },
        "provider": { "type": "boolean", "description": "They are linked to a person at the login provider." },
        "passkeys": { "type": "integer", "minimum": 0 },
        "sessions": { "type": "integer", "minimum": 0 }, "seen_at": time_or_null(),
        "you": { "type": "boolean", "description": "The operator who asks." },
    }))
}

fn link_schema() -> Value {
    describe::object(json!({
        "token": { "type": "string", "description": "For `session/_redeem`. It is not shown again." },
        "path": { "type": "string", "description": "`/console/#login=…`: what follows the address of the control plane." },
        "expires_at": { "type": "string", "format": "date-time" },
    }))
}

fn describe_list() -> Operation {
    let answer = json!({ "operators": { "type": "array", "items": reference("OperatorAccount") } });
    describe::operation(Method::GET, "/operators/_list", "operators", group(), "List the operators").answers(
        StatusCode::OK,
        "By name.",
        describe::object(answer),
    )
}

fn describe_add() -> Operation {
    let answer = json!({ "operator": reference("OperatorAccount"), "link": reference("LoginLink") });
    describe::post("/operators/_add", "operatorAdd", group(), "Add an operator")
        .describe("They have no password: they log in by the link, which works once within ten minutes, and can set one then.")
        .takes("The operator.", [(JSON, reference("NewOperator"))])
        .example(json!({ "name": "carol", "email": "carol@example.com", "role": "analyst" }))
        .answers(StatusCode::OK, "The operator and a login link.", describe::done(answer))
        .fails(StatusCode::BAD_REQUEST, "invalid_operator", "the name or the address cannot be one.")
        .fails(StatusCode::CONFLICT, "taken", "there is an operator of this name.")
        .makes_a_link()
        .reads_a_body()
}

fn describe_role() -> Operation {
    describe::post("/operators/_role", "operatorRole", group(), "Give an operator another role")
        .describe("If the role changes, the operator's sessions and login links end.")
        .takes("The operator and the role.", [(JSON, reference("NewRole"))])
        .example(json!({ "name": "carol", "role": "viewer" }))
        .answers(StatusCode::OK, "The operator.", describe::done(json!({ "operator": reference("OperatorAccount") })))
        .fails(StatusCode::CONFLICT, "last_admin", "there is no other admin.")
        .names_an_operator()
        .reads_a_body()
}

/// An operation that takes a name.
pub(super) fn by_name(below: &str, id: &str, summary: &str, answer: Value) -> Operation {
    describe::post(below, id, group(), summary)
        .takes("The operator.", [(JSON, reference("OperatorName"))])
        .example(json!({ "name": "carol" }))
        .answers(StatusCode::OK, "It is done.", describe::done(answer))
        .names_an_operator()
        .reads_a_body()
}

fn describe_remove() -> Operation {
    by_name("/operators/_remove", "operatorRemove", "Remove an operator", json!({}))
        .describe("Their sessions and login links end.")
        .fails(StatusCode::CONFLICT, "last_admin", "there is no other admin.")
}

fn describe_login_link() -> Operation {
    let link = json!({ "link": reference("LoginLink") });
    by_name("/operators/_login_link", "operatorLoginLink", "Make a login link for an operator", link)
        .describe("It takes the place of the password once, within ten minutes. Earlier ones end.")
        .makes_a_link()
}

fn describe_reset_password() -> Operation {
    let link = json!({ "link": reference("LoginLink") });
    by_name("/operators/_reset_password", "operatorResetPassword", "Remove the password of an operator", link)
        .describe("Their sessions end. They log in by the link.")
        .makes_a_link()
}

fn describe_reset_second_factor() -> Operation {
    let summary = "Remove the second factor of an operator";
    by_name("/operators/_reset_second_factor", "operatorResetSecondFactor", summary, json!({}))
        .describe("Their sessions end.")
        .fails(StatusCode::CONFLICT, "not_enrolled", "they have none.")
}

fn describe_sessions() -> Operation {
    describe::operation(
        Method::GET,
        "/operators/_sessions",
        "operatorSessions",
        group(),
        "List the sessions of all operators",
    )
    .answers(StatusCode::OK, "Those last used first.", list_of_sessions())
}

fn describe_revoke_session() -> Operation {
    describe::post("/operators/_revoke_session", "operatorRevokeSession", group(), "End a session of any operator")
        .takes("The session.", [(JSON, reference("SessionName"))])
        .example(json!({ "id": "0f1e2d3c4b5a69788796a5b4c3d2e1f0" }))
        .answers(StatusCode::OK, "It has ended.", describe::done(json!({})))
        .fails(StatusCode::NOT_FOUND, "unknown_session", "there is no such session.")
        .reads_a_body()
}

fn describe_revoke_sessions() -> Operation {
    let ended = json!({ "ended": { "type": "integer", "minimum": 0 } });
    by_name("/operators/_revoke_sessions", "operatorRevokeSessions", "End the sessions of an operator", ended)
}

/// What several of these operations have.
pub(super) trait ForOperators {
    fn names_an_operator(self) -> Self;
    fn makes_a_link(self) -> Self;
}

impl ForOperators for Operation {
    fn names_an_operator(self) -> Operation {
        self.fails(StatusCode::NOT_FOUND, "unknown_operator", "there is no such operator.")
    }

    fn makes_a_link(self) -> Operation {
        self.names_an_operator().fails(
            StatusCode::INTERNAL_SERVER_ERROR,
            "no_randomness",
            "the operating system gives no random bytes.",
        )
    }
}
