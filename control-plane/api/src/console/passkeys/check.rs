//! Challenges for passkeys, and the check of their answers.

use std::net::IpAddr;

use axum::http::StatusCode;
use serde_json::Value;

use super::shapes::{NewPasskeyCredential, PasskeyCredential};
use crate::console::enter::{code_key, no_randomness, told, wrong_code};
use crate::console::state::Console;
use crate::error::ApiError;
use accounts::{
    Assertion, Ceremony, CeremonyKind, NewCredential, Operator, PASSKEY_MILLIS, Passkey, Registration, RelyingParty,
    TicketSecret, challenge_of, user_handle,
};
use events::AuditAction;

/// What shows that an operator with a session is still there.
pub(in crate::console) struct Proofs {
    pub(in crate::console) password: Option<String>,
    pub(in crate::console) code: Option<String>,
    pub(in crate::console) credential: Option<PasskeyCredential>,
}

/// Why a passkey is refused, and whose it is.
pub(super) struct Refusal {
    pub(super) operator: Option<Operator>,
    pub(super) why: String,
}

impl Console {
    /// The site of passkeys.
    ///
    /// # Errors
    /// 409 `no_passkeys` where there is none.
    pub(super) fn site(&self) -> Result<&RelyingParty, ApiError> {
        self.inner.login.site.as_ref().ok_or_else(|| {
            let message = "passkeys need a host name: set --console-url to the https address of the console";
            ApiError::new(StatusCode::CONFLICT, "no_passkeys", message)
        })
    }

    /// A new challenge of this kind for an operator; for any one if `operator` is empty.
    pub(super) async fn challenge(&self, kind: CeremonyKind, operator: &str, now: u64) -> Result<String, ApiError> {
        let secret = TicketSecret::random().map_err(no_randomness)?;
        let ceremony = Ceremony {
            sha256: secret.sha256(),
            kind,
            operator: operator.to_owned(),
            data: String::new(),
            until_millis: now.saturating_add(PASSKEY_MILLIS),
        };
        self.inner.store.ceremony_put(ceremony).await?;
        Ok(secret.reveal().to_owned())
    }

    /// Ends the challenge that an answer names; false where it was not given for this, or has ended.
    async fn answers(
        &self,
        kind: CeremonyKind,
        operator: &str,
        client_data: &[u8],
        now: u64,
    ) -> Result<bool, ApiError> {
        let Some(secret) = challenge_of(client_data).and_then(|challenge| TicketSecret::read(&challenge)) else {
            return Ok(false);
        };
        let ceremony = self.inner.store.ceremony_take(secret.sha256(), kind, now).await?;
        Ok(ceremony.is_some_and(|ceremony| ceremony.operator == operator))
    }

    /// Checks the answer with a new credential for an operator.
    pub(super) async fn check_new(
        &self,
        operator: &Operator,
        credential: &NewPasskeyCredential,
        now: u64,
    ) -> Result<NewCredential, ApiError> {
        let refused = |why: &str| ApiError::new(StatusCode::FORBIDDEN, "passkey_refused", why);
        let response = &credential.response;
        let (client, data) = (response.client_data.read(), response.authenticator_data.read());
        if !self.answers(CeremonyKind::PasskeyAdd, &operator.name, &client, now).await? {
            return Err(refused("the challenge was not given for this, was used, or has expired; begin again"));
        }
        let registration = Registration { client_data: &client, authenticator_data: &data };
        self.site()?.check_registration(registration).map_err(|problem| refused(&problem.to_string()))
    }

    /// Checks the answer of a passkey to a challenge of this kind for `operator` (empty: of anyone), and notes its use.
    pub(super) async fn check_passkey(
        &self,
        kind: CeremonyKind,
        operator: &str,
        credential: &PasskeyCredential,
        now: u64,
    ) -> Result<Result<Operator, Refusal>, ApiError> {
        let refuse = |operator: Option<Operator>, why: &str| Ok(Err(Refusal { operator, why: why.to_owned() }));
        let response = &credential.response;
        let (client, data) = (response.client_data.read(), response.authenticator_data.read());
        if !self.answers(kind, operator, &client, now).await? {
            return refuse(None, "the challenge was not given for this, was used, or has expired");
        }
        let Some((passkey, owner)) = self.inner.store.passkey(&credential.id.read()).await? else {
            return refuse(None, "the passkey is not known or was removed");
        };
        let handle = user_handle(&owner.name, owner.created_at_millis);
        let is_other = response.user_handle.as_ref().is_some_and(|sent| sent.read() != handle);
        if is_other || (!operator.is_empty() && owner.name != operator) {
            return refuse(Some(owner), "the passkey is of another operator");
        }
        let signature = response.signature.read();
        let assertion = Assertion { client_data: &client, authenticator_data: &data, signature: &signature };
        let count = match self.site()?.check_assertion(&passkey, assertion, operator.is_empty()) {
            Ok(count) => count,
            Err(problem) => return refuse(Some(owner), &problem.to_string()),
        };
        if !self.inner.store.passkey_use(&passkey.credential, count, now).await? {
            return refuse(Some(owner), &self.cloned(&passkey, count));
        }
        Ok(Ok(owner))
    }

    /// The reason for a count that does not go up.
    fn cloned(&self, passkey: &Passkey, count: u32) -> String {
        tracing::warn!(operator = %passkey.operator, passkey = %passkey.name, count, "the signature counter of a passkey went back");
        format!(
            "the signature counter of the passkey `{}` went back ({count} after {}): there may be a copy of it",
            passkey.name, passkey.sign_count
        )
    }

    /// Asks an operator with a session for the password, if there is one, and for a second factor, if there is one: before what a session
    /// alone must not do.
    ///
    /// # Errors
    /// 403 `wrong_password`, `wrong_code`, `passkey_refused` or `second_factor_needed`, 429, 503 `busy`.
    pub(in crate::console) async fn demand_proofs(
        &self,
        operator: &Operator,
        proofs: Proofs,
        source: Option<IpAddr>,
        now: u64,
    ) -> Result<(), ApiError> {
        self.demand_password(operator, proofs.password, source, now).await?;
        match (proofs.code, proofs.credential) {
            _ if !operator.has_second_factor() => Ok(()),
            (Some(code), _) if operator.second_factor => self.demand_code(&operator.name, &code, source, now).await,
            (Some(_), _) => Err(wrong_code()),
            (None, Some(credential)) => {
                let key = code_key(&operator.name);
                self.throttle(source, Some((&operator.name, &key)), now).await?;
                match self.check_passkey(CeremonyKind::PasskeyConfirm, &operator.name, &credential, now).await? {
                    Ok(_) => {
                        self.forgive(source, Some(&key));
                        Ok(())
                    }
                    Err(refusal) => Err(self.passkey_refused(&refusal, StatusCode::FORBIDDEN, source)),
                }
            }
            (None, None) => {
                let message = "a code of the app or the answer of a passkey is needed as well";
                Err(ApiError::new(StatusCode::FORBIDDEN, "second_factor_needed", message))
            }
        }
    }

    /// Notes a passkey that was refused. The client is not told why: it could learn whose passkey it has.
    pub(super) fn passkey_refused(&self, refusal: &Refusal, status: StatusCode, source: Option<IpAddr>) -> ApiError {
        let audit = told(AuditAction::PasskeyRefused, refusal.operator.as_ref(), source);
        self.inner.events.audit(audit.detail(refusal.why.as_str()));
        ApiError::new(
            status,
            "passkey_refused",
            "the passkey is not known, or its answer is not the one that was asked for",
        )
    }
}

/// What a client gets for a challenge.
pub(super) fn options(options: Value) -> Value {
    serde_json::json!({ "done": true, "options": options })
}
