//! What browsers and the API exchange about passkeys: as `PublicKeyCredential` has it in JSON (WebAuthn, Level 3, section 5.1.8).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use accounts::{Operator, PASSKEY_ALGORITHMS, PASSKEY_MILLIS, Passkey, RelyingParty, user_handle};
use base::clock;

/// Bytes in base64url without padding.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Base64Bytes(String);

/// A new credential.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPasskeyCredential {
    /// What the authenticator has answered.
    pub(super) response: NewPasskeyResponse,
}

/// The answer of an authenticator with a new credential.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPasskeyResponse {
    /// `clientDataJSON`.
    #[serde(rename = "clientDataJSON")]
    pub(super) client_data: Base64Bytes,
    /// `authenticatorData`.
    #[serde(rename = "authenticatorData")]
    pub(super) authenticator_data: Base64Bytes,
}

/// A credential that signs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::console) struct PasskeyCredential {
    /// The id of the credential.
    pub(super) id: Base64Bytes,
    /// What the authenticator has answered.
    pub(super) response: PasskeyResponse,
}

/// The answer of an authenticator to a challenge.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PasskeyResponse {
    /// `clientDataJSON`.
    #[serde(rename = "clientDataJSON")]
    pub(super) client_data: Base64Bytes,
    /// `authenticatorData`.
    #[serde(rename = "authenticatorData")]
    pub(super) authenticator_data: Base64Bytes,
    /// The signature.
    pub(super) signature: Base64Bytes,
    /// The handle of the operator, if the authenticator keeps it.
    #[serde(rename = "userHandle")]
    pub(super) user_handle: Option<Base64Bytes>,
}

impl Base64Bytes {
    /// The bytes; empty for what is not base64url, which no check accepts.
    pub(super) fn read(&self) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(self.0.trim_end_matches('=')).unwrap_or_default()
    }
}

/// The options for `navigator.credentials.create`.
pub(super) fn creation(site: &RelyingParty, operator: &Operator, passkeys: &[Passkey], challenge: &str) -> Value {
    let handle = URL_SAFE_NO_PAD.encode(user_handle(&operator.name, operator.created_at_millis));
    let kinds: Vec<Value> =
        PASSKEY_ALGORITHMS.iter().map(|algorithm| json!({ "type": "public-key", "alg": algorithm })).collect();
    json!({
        "rp": { "id": site.id(), "name": "Palisade" },
        "user": { "id": handle, "name": operator.name, "displayName": operator.name },
        "challenge": challenge,
        "pubKeyCredParams": kinds,
        "timeout": PASSKEY_MILLIS,
        "excludeCredentials": listed(passkeys),
        // Without a key on the device, or a PIN for it, it can still be a second factor.
        "authenticatorSelection": { "residentKey": "preferred", "userVerification": "preferred" },
        "attestation": "none",
    })
}

/// The options for `navigator.credentials.get`; without passkeys for any of the site.
pub(super) fn request(site: &RelyingParty, passkeys: &[Passkey], challenge: &str) -> Value {
    let verification = if passkeys.is_empty() { "required" } else { "preferred" };
    json!({
        "challenge": challenge, "timeout": PASSKEY_MILLIS, "rpId": site.id(), "allowCredentials": listed(passkeys),
        "userVerification": verification,
    })
}

/// A passkey for its operator.
pub(super) fn shown(passkey: &Passkey) -> Value {
    json!({
        "id": passkey.id(), "name": passkey.name, "created_at": clock::rfc3339(passkey.created_at_millis),
        "used_at": passkey.used_at_millis.map(clock::rfc3339),
    })
}

fn listed(passkeys: &[Passkey]) -> Value {
    passkeys.iter().map(|passkey| json!({ "type": "public-key", "id": passkey.id() })).collect()
}
