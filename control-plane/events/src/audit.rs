//! `SvcWafSecurityAudit`: who did what to the control plane.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use base::clock;
use telemetry::request_id;

/// What was done, or was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditAction {
    /// An operator has logged in.
    Login,
    /// A login was refused: no such operator, or a wrong password.
    LoginRefused,
    /// An address or a name has had too many refused logins and has to wait. Once for each minute of waiting.
    LoginThrottled,
    /// An operator has logged out.
    Logout,
    /// An operator asked for something that their role does not include.
    RoleRefused,
    /// An admin key was refused: not known, wrong, expired, revoked, or without the scope that the call needs.
    KeyRefused,
    /// An address has had too many refused keys. Once for each minute of waiting, in which single refusals are not told.
    KeyThrottled,
    /// An admin key was made.
    KeyCreate,
    /// An admin key was revoked.
    KeyRevoke,
    /// The end of an admin key was set.
    KeyExpire,
    /// An admin key was made in the place of another one.
    KeyRotate,
    /// An operator was added.
    OperatorAdd,
    /// An operator was removed.
    OperatorRemove,
    /// The password of an operator was set or removed.
    OperatorPassword,
    /// An operator was given another role.
    OperatorRole,
    /// The login provider gave the last admin another role, and the control plane has kept theirs.
    OperatorRoleKept,
    /// A login link of an operator was made.
    OperatorLoginLink,
    /// Sessions of an operator were ended by themselves or by an admin.
    SessionRevoke,
    /// The second factor of an operator was confirmed.
    SecondFactorAdd,
    /// The second factor of an operator was removed.
    SecondFactorRemove,
    /// An operator was linked to an identity at the login provider.
    IdentityLink,
    /// The link of an operator to the login provider was removed.
    IdentityUnlink,
    /// A passkey was added to an operator.
    PasskeyAdd,
    /// A passkey of an operator, or all of them, was removed.
    PasskeyRemove,
    /// A passkey was refused: not known, a wrong answer, or a signature counter that went back.
    PasskeyRefused,
    /// An entity was created.
    Create,
    /// An entity was replaced or patched.
    Update,
    /// An entity was deleted.
    Delete,
    /// A version of an entity was written again.
    Revert,
    /// What the control plane logs was changed.
    LogLevel,
    /// An identity was banned, by an operator or by the ledger.
    Ban,
    /// A ban was refused: the identity is on the allowlist.
    BanRefused,
    /// The end of a ban was moved.
    Extend,
    /// A ban was lifted.
    Unban,
    /// Every ban was lifted.
    UnbanAll,
    /// An identity was put on the allowlist.
    Allowlist,
    /// An identity was taken off the allowlist.
    AllowlistRemove,
    /// An incident was acknowledged.
    IncidentAcknowledged,
    /// An incident was resolved.
    IncidentResolved,
    /// An incident's state was cleared.
    IncidentOpen,
    /// An identity was forgotten in the ledger.
    LedgerForget,
    /// A test message was sent to the channel of an alert rule, or could not be.
    AlertTest,
    /// A recording of traffic was added.
    RecordingAdd,
    /// A recording of traffic was deleted.
    RecordingDelete,
    /// What an endpoint of a plugin does, by the plugin's own word.
    Operation(&'static str),
}

/// One event before it has an id and a time. Made with [`Audit::new`] and the methods that add to it; what is not added
/// is null. Nothing in it may be a secret: what was typed in place of a name may be one unless the store knows the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    action: AuditAction,
    name: Option<String>,
    email: Option<String>,
    reference: Option<String>,
    detail: Option<String>,
    source: Source,
    request_id: Option<Arc<str>>,
}

/// Where it came from, as in the events of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Source {
    ip: Option<IpAddr>,
    apikey: Option<String>,
    user: Option<String>,
}

impl AuditAction {
    /// As the event has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::LoginRefused => "login-refused",
            Self::LoginThrottled => "login-throttled",
            Self::Logout => "logout",
            Self::RoleRefused => "role-refused",
            Self::KeyRefused => "key-refused",
            Self::KeyThrottled => "key-throttled",
            Self::KeyCreate => "key-create",
            Self::KeyRevoke => "key-revoke",
            Self::KeyExpire => "key-expire",
            Self::KeyRotate => "key-rotate",
            Self::OperatorAdd => "operator-add",
            Self::OperatorRemove => "operator-remove",
            Self::OperatorPassword => "operator-password",
            Self::OperatorRole => "operator-role",
            Self::OperatorRoleKept => "operator-role-kept",
            Self::OperatorLoginLink => "operator-login-link",
            Self::SessionRevoke => "session-revoke",
            Self::SecondFactorAdd => "second-factor-add",
            Self::SecondFactorRemove => "second-factor-remove",
            Self::IdentityLink => "identity-link",
            Self::IdentityUnlink => "identity-unlink",
            Self::PasskeyAdd => "passkey-add",
            Self::PasskeyRemove => "passkey-remove",
            Self::PasskeyRefused => "passkey-refused",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Revert => "revert",
            Self::LogLevel => "log-level",
            Self::Ban => "ban",
            Self::BanRefused => "ban-refused",
            Self::Extend => "extend",
            Self::Unban => "unban",
            Self::UnbanAll => "unban-all",
            Self::Allowlist => "allowlist",
            Self::AllowlistRemove => "allowlist-remove",
            Self::IncidentAcknowledged => "incident-acknowledged",
            Self::IncidentResolved => "incident-resolved",
            Self::IncidentOpen => "incident-open",
            Self::LedgerForget => "ledger-forget",
            Self::AlertTest => "alert-test",
            Self::RecordingAdd => "recording-add",
            Self::RecordingDelete => "recording-delete",
            Self::Operation(word) => word,
        }
    }
}

impl Audit {
    /// An action without an actor yet, in the request that the task works for.
    #[must_use]
    pub fn new(action: AuditAction) -> Audit {
        let (source, request_id) = (Source::default(), request_id());
        Audit { action, name: None, email: None, reference: None, detail: None, source, request_id }
    }

    /// By this operator, or in their name.
    #[must_use]
    pub fn operator(mut self, name: &str, email: &str) -> Audit {
        self.name = Some(name.to_owned());
        self.email = Some(email.to_owned());
        self.source.user = Some(name.to_owned());
        self
    }

    /// With this admin key, or in its name: its id, and what its owner called it.
    #[must_use]
    pub fn admin_key(mut self, id: &str, name: &str) -> Audit {
        self.name = Some(name.to_owned());
        self.source.apikey = Some(id.to_owned());
        self
    }

    /// From this address; unknown where the API is not served over a network.
    #[must_use]
    pub fn from(mut self, source: Option<IpAddr>) -> Audit {
        self.source.ip = source.map(|ip| ip.to_canonical());
        self
    }

    /// To this: an entity as `collection/id`; `admin-keys/id`, `operators/name`.
    #[must_use]
    pub fn of(mut self, reference: String) -> Audit {
        self.reference = Some(reference);
        self
    }

    /// What else there is to say, for people.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Audit {
        self.detail = Some(detail.into());
        self
    }

    /// The event of what was done at `now_millis`, as JSON, for a process that tells it later.
    #[must_use]
    pub fn note(self, now_millis: u64) -> String {
        let (id, _) = uuid::Uuid::new_v4().as_u64_pair();
        self.event(id, now_millis).to_string()
    }

    /// The event. `id` is any number that no other event has.
    pub(super) fn event(self, id: u64, now_millis: u64) -> Value {
        let Source { ip, apikey, user } = self.source;
        json!({
            "@type": "SvcWafSecurityAudit",
            "@id": format!("event_{id:016x}"),
            "@timestamp": clock::rfc3339(now_millis),
            "user": { "name": self.name, "email": self.email },
            "action": self.action.as_str(),
            "ref": self.reference,
            "detail": self.detail,
            "source": { "ip": ip, "apikey": apikey, "user": user },
            "request_id": self.request_id.as_deref(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_who_did_what_to_what_from_where() {
        let audit = Audit::new(AuditAction::Update)
            .admin_key("admin-key_1", "ci")
            .from("::ffff:192.0.2.1".parse().ok())
            .of("waf-configs/shop".to_owned())
            .detail("revision 7");
        let expected = json!({
            "@type": "SvcWafSecurityAudit",
            "@id": "event_00000000000000ff",
            "@timestamp": "1970-01-01T00:00:01.000Z",
            "user": { "name": "ci", "email": null },
            "action": "update",
            "ref": "waf-configs/shop",
            "detail": "revision 7",
            "source": { "ip": "192.0.2.1", "apikey": "admin-key_1", "user": null },
            "request_id": null,
        });
        assert_eq!(audit.event(255, 1000), expected);
        let nobody = Audit::new(AuditAction::LoginRefused).event(1, 0);
        assert_eq!((&nobody["user"], &nobody["ref"]), (&json!({ "name": null, "email": null }), &Value::Null));
    }
}
