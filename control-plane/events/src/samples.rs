//! Events of every kind, for tests.

use crate::queue::Line;
use crate::{Audit, AuditAction, dependency};

/// Recorded events: those of gateways from the tests of their plugins, one of each category, action, outcome and set of fields; those of the
/// ledger and of alerts as their code makes them.
const RECORDED: &str = include_str!("samples.jsonl");

const AUDITED: [AuditAction; 32] = [
    AuditAction::Login,
    AuditAction::LoginRefused,
    AuditAction::LoginThrottled,
    AuditAction::Logout,
    AuditAction::KeyRefused,
    AuditAction::KeyThrottled,
    AuditAction::KeyCreate,
    AuditAction::KeyRevoke,
    AuditAction::KeyExpire,
    AuditAction::OperatorAdd,
    AuditAction::OperatorRemove,
    AuditAction::OperatorPassword,
    AuditAction::Create,
    AuditAction::Update,
    AuditAction::Delete,
    AuditAction::Revert,
    AuditAction::LogLevel,
    AuditAction::Ban,
    AuditAction::BanRefused,
    AuditAction::Extend,
    AuditAction::Unban,
    AuditAction::UnbanAll,
    AuditAction::Allowlist,
    AuditAction::AllowlistRemove,
    AuditAction::IncidentAcknowledged,
    AuditAction::IncidentResolved,
    AuditAction::IncidentOpen,
    AuditAction::LedgerForget,
    AuditAction::AlertTest,
    AuditAction::RecordingAdd,
    AuditAction::RecordingDelete,
    AuditAction::Operation("tuning-apply"),
];

/// All of them.
pub(crate) fn all() -> Vec<Line> {
    let mut events: Vec<String> = RECORDED.lines().map(str::to_owned).collect();
    let source = "2001:db8::7".parse().ok();
    for (at, action) in AUDITED.into_iter().enumerate() {
        let audit = Audit::new(action).from(source).of("waf-configs/shop".to_owned()).detail("revision 7");
        let time = 1_795_687_200_000 + at as u64;
        events.push(Audit::new(action).note(time));
        events.push(audit.clone().operator("alice", "alice@example.com").note(time));
        events.push(audit.admin_key("admin-key_1", "ci").note(time));
    }
    events.push(dependency(1_795_687_200_000, "store", None, "store fails: the disk is full").to_string());
    events.push(dependency(1_795_687_200_000, "node-link", Some("edge-1"), "edge-1 refuses a snapshot").to_string());
    events.iter().map(|event| event.as_bytes().into()).collect()
}
