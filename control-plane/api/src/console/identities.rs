//! Which operator a person at the provider is; `operators/_link_identity`, `_unlink_identity`.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use oidc::{Person, Provider, ProviderRole};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{self, Body};
use super::describe::{self, Common as _};
use super::enter::{Caller, told};
use super::operators::{self, ForOperators as _, OperatorName};
use super::state::Console;
use super::who::Who;
use crate::error::ApiError;
use crate::openapi::{JSON, Operation, Routes, reference};
use accounts::{Identity, Operator, Role};
use events::AuditAction;
use store::AccessChange;

/// The bytes of a body, at most.
const MAX_BODY: usize = 16 * 1024;
/// The bytes of a subject, at most (OpenID Connect Core, section 2).
const MAX_SUBJECT: usize = 255;

/// A link of an operator to a person at the provider.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewIdentity {
    /// The operator's name.
    name: String,
    /// The person's id at the provider (`sub`).
    subject: String,
}

pub(super) fn router() -> Routes<Console> {
    Routes::new()
        .on(describe_link(), link)
        .on(describe_unlink(), unlink)
        .schema::<NewIdentity>()
        .layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

async fn link(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let NewIdentity { name, subject } = body::read(&headers, body)?;
    let (now, provider) = (console.now(), console.provider()?);
    if subject.is_empty() || subject.len() > MAX_SUBJECT || subject.chars().any(char::is_control) {
        let message = "a subject has 1 to 255 bytes without control characters";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_subject", message));
    }
    let name = console.named(&name).await?.name;
    let note = who.note(AuditAction::IdentityLink, &name, &format!("subject {subject}"), now);
    let change = AccessChange::IdentityLink { name, identity: identity(provider, &subject, now) };
    console
        .change_access(change, note, || {
            let message = "the operator has an identity at the provider already, or this one is another operator's";
            ApiError::new(StatusCode::CONFLICT, "linked", message)
        })
        .await?;
    Ok(Json(json!({ "done": true })))
}

async fn unlink(
    State(console): State<Console>,
    who: Who,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let OperatorName { name } = body::read(&headers, body)?;
    let name = console.named(&name).await?.name;
    let note = who.note(AuditAction::IdentityUnlink, &name, "", console.now());
    console
        .change_access(AccessChange::IdentityUnlink { name }, note, || {
            ApiError::new(StatusCode::CONFLICT, "not_linked", "the operator has no identity at the provider")
        })
        .await?;
    Ok(Json(json!({ "done": true })))
}

impl Console {
    /// The operator that a person is, with the role that the provider gives: found by the identity alone, never by the name. Linked by a
    /// verified address, or added, where that is configured.
    pub(super) async fn operator_of(
        &self,
        provider: &Provider,
        person: &Person,
        caller: Caller<'_>,
        now: u64,
    ) -> Result<Operator, ApiError> {
        let issuer = &provider.settings().issuer;
        let known = self.inner.store.operator_of_identity(issuer, &person.subject).await?;
        if person.role == ProviderRole::Denied {
            return Err(self.not_allowed(known.as_ref(), person, "no value of the role claim gives a role", caller));
        }
        let operator = match known {
            Some(operator) => operator,
            None => match self.link_by_email(provider, person, caller, now).await? {
                Some(operator) => operator,
                None => return self.add_person(provider, person, caller, now).await,
            },
        };
        match person.role {
            ProviderRole::Given(role) if role != operator.role => {
                self.give_role(operator, role, person, caller, now).await
            }
            _ => Ok(operator),
        }
    }

    /// Links the one operator with the person's verified address, if that is configured.
    async fn link_by_email(
        &self,
        provider: &Provider,
        person: &Person,
        caller: Caller<'_>,
        now: u64,
    ) -> Result<Option<Operator>, ApiError> {
        let Some(email) = person.email.as_ref().filter(|_| provider.settings().links_by_email && person.email_verified)
        else {
            return Ok(None);
        };
        let operators = self.inner.store.operators().await?;
        let mut same = operators.into_iter().filter(|operator| operator.email.eq_ignore_ascii_case(email));
        // Of two with one address neither is taken.
        let (Some(operator), None) = (same.next(), same.next()) else { return Ok(None) };
        let detail = format!("via: oidc: by the verified email address; subject {}", person.subject);
        let audit = told(AuditAction::IdentityLink, Some(&operator), caller.source);
        let note = audit.of(format!("operators/{}", operator.name)).detail(detail).note(now);
        let identity = identity(provider, &person.subject, now);
        let change = AccessChange::IdentityLink { name: operator.name.clone(), identity };
        Ok(self.inner.store.access_change(change, note).await?.then_some(operator))
    }

    /// Adds an operator for a person, if that is configured and the name is free.
    async fn add_person(
        &self,
        provider: &Provider,
        person: &Person,
        caller: Caller<'_>,
        now: u64,
    ) -> Result<Operator, ApiError> {
        let refused = |why: &str| self.not_allowed(None, person, why, caller);
        if !provider.settings().creates {
            return Err(refused("no operator is linked to the person, and --oidc-create is not set"));
        }
        let (ProviderRole::Given(role) | ProviderRole::Local(Some(role))) = person.role else {
            return Err(refused("there is no role for a new operator"));
        };
        let name = person.name.as_deref().ok_or_else(|| refused("no claim has a name that an operator can have"))?;
        let email = person.email.as_deref().ok_or_else(|| refused("there is no claim `email`"))?;
        let operator = Operator::new(name, email, role, String::new(), now)
            .map_err(|invalid| refused(&format!("the claims do not make an operator: {invalid}")))?;
        let audit = told(AuditAction::OperatorAdd, Some(&operator), caller.source);
        let detail = format!("via: oidc: {email}; role {role}; subject {}", person.subject);
        let note = audit.of(format!("operators/{name}")).detail(detail).note(now);
        let identity = identity(provider, &person.subject, now);
        let change = AccessChange::OperatorAddLinked { operator: operator.clone(), identity };
        self.change_access(change, note, || {
            // Not linked by the name: names at the provider are changed, and given to others.
            refused(&format!("another operator has the name `{name}`; an admin can link them"))
        })
        .await?;
        Ok(operator)
    }

    /// Gives an operator the role of the provider; the last admin keeps theirs, or no one could administer any more.
    async fn give_role(
        &self,
        operator: Operator,
        role: Role,
        person: &Person,
        caller: Caller<'_>,
        now: u64,
    ) -> Result<Operator, ApiError> {
        let audit = told(AuditAction::OperatorRole, Some(&operator), caller.source);
        let detail = format!("via: oidc: {} to {role}", operator.role);
        let note = audit.of(format!("operators/{}", operator.name)).detail(detail).note(now);
        let change = AccessChange::OperatorRole { name: operator.name.clone(), role, keep_admin: true };
        let is_changed = self.inner.store.access_change(change, note).await?;
        let gone = || self.not_allowed(Some(&operator), person, "the operator was removed meanwhile", caller);
        let now_is = self.inner.store.operator(&operator.name).await?.ok_or_else(gone)?;
        if !is_changed && now_is.role == Role::Admin && role != Role::Admin {
            self.last_admin_kept(&now_is, role, caller);
        }
        Ok(now_is)
    }

    /// Reports a role of the provider that the last admin was not given.
    fn last_admin_kept(&self, operator: &Operator, role: Role, caller: Caller<'_>) {
        let why = "this is the last admin; make another operator admin, and the role follows at the next login";
        tracing::warn!(operator = %operator.name, %role, "the provider's role was not given: {why}");
        let audit = told(AuditAction::OperatorRoleKept, Some(operator), caller.source);
        let audit = audit.of(format!("operators/{}", operator.name));
        self.inner.events.audit(audit.detail(format!("via: oidc: admin stays, not {role}: {why}")));
    }

    fn not_allowed(&self, operator: Option<&Operator>, person: &Person, why: &str, caller: Caller<'_>) -> ApiError {
        self.oidc_refused(operator, &format!("{why}; subject {}", person.subject), caller);
        let message =
            "you have logged in at the provider, and have no access here; an admin finds the reason in the audit log";
        ApiError::new(StatusCode::FORBIDDEN, "not_allowed", message)
    }
}

fn identity(provider: &Provider, subject: &str, now: u64) -> Identity {
    let issuer = provider.settings().issuer.clone();
    Identity { issuer, subject: subject.to_owned(), linked_at_millis: now }
}

fn describe_link() -> Operation {
    describe::post(
        "/operators/_link_identity",
        "operatorLinkIdentity",
        operators::group(),
        "Link an operator to a person at the provider",
    )
    .describe("The person logs in as this operator from then on. The subject of a refused login is in the audit log.")
    .takes("The operator and the subject.", [(JSON, reference("NewIdentity"))])
    .example(json!({ "name": "carol", "subject": "248289761001" }))
    .answers(StatusCode::OK, "They are linked.", describe::done(json!({})))
    .fails(StatusCode::BAD_REQUEST, "invalid_subject", "the subject cannot be one.")
    .fails(StatusCode::CONFLICT, "linked", "the operator or the person is linked already.")
    .fails(StatusCode::NOT_FOUND, "no_provider", "no provider is configured.")
    .names_an_operator()
    .reads_a_body()
}

fn describe_unlink() -> Operation {
    let summary = "Remove the link of an operator to the provider";
    operators::by_name("/operators/_unlink_identity", "operatorUnlinkIdentity", summary, json!({}))
        .describe("Their sessions end.")
        .fails(StatusCode::CONFLICT, "not_linked", "they have none.")
}
