//! Who has access.

use std::sync::Arc;

use accounts::{AdminKey, Operator, Proof, Role, Scope, Session, SessionOrigin, Ticket, TicketKind, Via};
use store::{AccessChange, Store};

pub(super) fn operator(name: &str, hash: &str) -> Operator {
    Operator {
        name: name.into(),
        email: format!("{name}@example.com"),
        role: Role::Admin,
        password_hash: hash.into(),
        created_at_millis: 5,
        changed_at_millis: 5,
        second_factor: false,
        has_identity: false,
        passkeys: 0,
    }
}

pub(super) fn session(token: u8, operator: &str, seen: u64) -> Session {
    let origin = SessionOrigin::new("192.0.2.1".parse().ok(), "browser", Via::Link);
    Session {
        token_sha256: [token; 32],
        operator: operator.into(),
        created_at_millis: 10,
        seen_at_millis: seen,
        origin,
    }
}

pub(crate) async fn admin_keys_come_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let issued = AdminKey::issue("ci", &[Scope::Read, Scope::Report], 5, Some(9)).unwrap();
    let older = AdminKey::issue("old", &[Scope::Write], 4, None).unwrap();
    store.admin_key_put(issued.key.clone()).await.unwrap();
    store.admin_key_put(older.key.clone()).await.unwrap();
    let store = reopened(store).await;
    assert_eq!(store.admin_key(&issued.key.id).await.unwrap(), Some(issued.key.clone()));
    assert_eq!(store.admin_key("other").await.unwrap(), None);
    assert_eq!(store.admin_keys().await.unwrap(), [older.key.clone(), issued.key.clone()]);
    assert!(store.admin_key_revoke(&issued.key.id, 7).await.unwrap());
    assert!(store.admin_key_revoke(&issued.key.id, 8).await.unwrap());
    assert!(!store.admin_key_revoke("other", 8).await.unwrap());
    assert_eq!(store.admin_keys().await.unwrap()[1].revoked_at_millis, Some(7), "the first revocation stands");
    let renamed = AdminKey { name: "renamed".into(), ..older.key };
    store.admin_key_put(renamed.clone()).await.unwrap();
    assert_eq!(store.admin_key(&renamed.id).await.unwrap(), Some(renamed));
}

pub(crate) async fn operators_and_their_sessions_come_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    assert_eq!(store.operator_add(operator("bob", "h1")).await, Ok(true));
    assert_eq!(store.operator_add(operator("ada", "h1")).await, Ok(true));
    assert_eq!(store.operator_add(operator("ada", "h2")).await, Ok(false), "the name is taken");
    assert_eq!(store.session_begin(session(1, "ada", 10), "h2", false, 2).await, Ok(false), "another password");
    assert_eq!(store.session_begin(session(1, "eve", 10), "h1", false, 2).await, Ok(false), "no such operator");
    for token in 1..=3 {
        assert_eq!(store.session_begin(session(token, "ada", 10 + u64::from(token)), "h1", false, 2).await, Ok(true));
    }
    assert_eq!(store.session_begin(session(9, "bob", 90), "h1", false, 2).await, Ok(true));
    let store = reopened(store).await;
    assert_eq!(store.session([1; 32]).await, Ok(None), "those used last are kept");
    assert_eq!(store.session([2; 32]).await, Ok(Some((session(2, "ada", 12), operator("ada", "h1")))));
    store.session_touch([2; 32], 50).await.unwrap();
    store.session_touch([2; 32], 40).await.unwrap();
    assert_eq!(store.session([2; 32]).await.unwrap().unwrap().0.seen_at_millis, 50);
    assert_eq!((store.session_end([3; 32]).await, store.session_end([3; 32]).await), (Ok(true), Ok(false)));
    assert_eq!(store.sessions_sweep(50, 9).await, Ok(1));
    assert_eq!(store.session([2; 32]).await, Ok(None));
    assert_eq!(store.operator_set_password("bob", "h3", 70).await, Ok(true));
    assert_eq!(store.operator_set_password("eve", "h3", 70).await, Ok(false));
    assert_eq!(store.session([9; 32]).await, Ok(None), "a new password ends sessions");
    let bob = Operator { password_hash: "h3".into(), changed_at_millis: 70, ..operator("bob", "") };
    assert_eq!(store.operators().await, Ok(vec![operator("ada", "h1"), bob.clone()]));
    assert_eq!(store.session_begin(session(9, "bob", 90), "h3", false, 2).await, Ok(true));
    assert_eq!((store.operator_remove("bob").await, store.operator_remove("bob").await), (Ok(true), Ok(false)));
    assert_eq!((store.operator("bob").await, store.session([9; 32]).await), (Ok(None), Ok(None)));
}

pub(crate) async fn a_change_of_access_is_kept_with_its_event(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let key = AdminKey::issue("ci", &[Scope::Read], 5, None).unwrap().key;
    let id = || key.id.clone();
    let name = || "ada".to_owned();
    let steps = [
        (AccessChange::KeyPut(key.clone()), true),
        (AccessChange::KeyExpire { id: id(), at_millis: Some(8) }, true),
        (AccessChange::KeyExpire { id: "other".into(), at_millis: None }, false),
        (AccessChange::KeyRevoke { id: id(), at_millis: 7 }, true),
        (AccessChange::KeyRevoke { id: "other".into(), at_millis: 7 }, false),
        (AccessChange::OperatorAdd(operator("ada", "h1")), true),
        (AccessChange::OperatorAdd(operator("ada", "h2")), false),
        (AccessChange::OperatorPassword { name: name(), hash: "h3".into(), at_millis: 9 }, true),
        (AccessChange::OperatorRemove { name: name(), keep_admin: false }, true),
        (AccessChange::OperatorRemove { name: name(), keep_admin: false }, false),
    ];
    let mut expected = Vec::new();
    for (number, (change, changes)) in steps.into_iter().enumerate() {
        assert_eq!(store.access_change(change, number.to_string()).await, Ok(changes), "{number}");
        expected.extend(changes.then(|| number.to_string()));
    }
    let store = reopened(store).await;
    let kept = store.kept_events(0).await.unwrap();
    assert_eq!(kept.iter().map(|kept| kept.event.clone()).collect::<Vec<_>>(), expected);
    let changed = AdminKey { expires_at_millis: Some(8), revoked_at_millis: Some(7), ..key };
    assert_eq!(store.admin_keys().await, Ok(vec![changed]));
    // Numbers grow, also past events that are gone.
    let last = kept.last().unwrap().clone();
    store.kept_events_told(last.clone()).await.unwrap();
    let store_again = Arc::clone(&store);
    assert_eq!(store_again.access_change(AccessChange::OperatorAdd(operator("eve", "h")), "e".into()).await, Ok(true));
    let kept = store.kept_events(0).await.unwrap();
    assert_eq!((kept.len(), kept[0].number > last.number), (1, true));
}

/// A ticket of ada's.
fn ticket(secret: u8, kind: TicketKind, until_millis: u64) -> Ticket {
    Ticket { sha256: [secret; 32], operator: "ada".into(), kind, until_millis, failures: 0 }
}

pub(crate) async fn a_ticket_is_used_once(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let (link, code) = (TicketKind::Link, TicketKind::Code(Via::Link));
    assert_eq!(store.ticket_put(ticket(1, link, 100), "h1").await, Ok(false), "no such operator");
    assert_eq!(store.operator_add(operator("ada", "h1")).await, Ok(true));
    assert_eq!(store.ticket_put(ticket(1, code, 100), "h2").await, Ok(false), "another password");
    for secret in 1..=12 {
        assert_eq!(store.ticket_put(ticket(secret, code, 100 + u64::from(secret)), "h1").await, Ok(true));
    }
    assert_eq!(store.ticket_put(ticket(21, link, 100), "h1").await, Ok(true));
    let note = "link".to_owned();
    assert_eq!(store.access_change(AccessChange::LoginLink(ticket(22, link, 90)), note).await, Ok(true));
    let store = reopened(store).await;
    assert_eq!(store.ticket([2; 32], 50).await, Ok(None), "ten are kept");
    assert_eq!(store.ticket([3; 32], 50).await, Ok(Some((ticket(3, code, 103), operator("ada", "h1")))));
    assert_eq!(store.ticket([21; 32], 50).await, Ok(None), "one link is kept");
    assert_eq!(store.ticket_take([22; 32], code, 50).await, Ok(None), "it is of another kind");
    assert_eq!(store.ticket_take([22; 32], link, 90).await, Ok(None), "it has ended");
    let (first, second) = tokio::join!(store.ticket_take([22; 32], link, 50), store.ticket_take([22; 32], link, 50));
    let taken = [first.unwrap(), second.unwrap()];
    assert_eq!(taken.iter().flatten().count(), 1);
    for _ in 0..2 {
        store.ticket_failed([3; 32], 3).await.unwrap();
    }
    assert_eq!(store.ticket([3; 32], 50).await.unwrap().unwrap().0.failures, 2);
    store.ticket_failed([3; 32], 3).await.unwrap();
    assert_eq!(store.ticket([3; 32], 50).await, Ok(None));
    assert_eq!(store.tickets_sweep(110).await, Ok(7));
    assert_eq!(store.operator_set_password("ada", "h2", 60).await, Ok(true));
    assert_eq!(store.ticket([12; 32], 50).await, Ok(None), "a new password ends tickets");
}

pub(crate) async fn a_code_is_used_once(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    assert_eq!(store.second_factor_begin("ada", vec![7]).await, Ok(false), "no such operator");
    assert_eq!(store.operator_add(operator("ada", "h1")).await, Ok(true));
    assert_eq!(store.session_begin(session(1, "ada", 10), "h1", false, 9).await, Ok(true));
    assert_eq!(store.session_begin(session(2, "ada", 11), "h1", false, 9).await, Ok(true));
    assert_eq!(store.second_factor_begin("ada", vec![7]).await, Ok(true));
    assert_eq!(store.second_factor_begin("ada", vec![8]).await, Ok(true), "it was not confirmed");
    assert_eq!(store.second_factor_use("ada", Proof::Step(5)).await, Ok(false), "it is not confirmed");
    assert!(!store.operator("ada").await.unwrap().unwrap().second_factor);
    let confirm = || AccessChange::SecondFactorConfirm {
        name: "ada".into(),
        step: 5,
        at_millis: 20,
        recovery_codes: vec![[1; 32], [2; 32]],
        keep_session: [1; 32],
    };
    assert_eq!(store.access_change(confirm(), "e".into()).await, Ok(true));
    assert_eq!(store.access_change(confirm(), "e".into()).await, Ok(false), "it is confirmed already");
    assert_eq!(store.second_factor_begin("ada", vec![9]).await, Ok(false));
    let store = reopened(store).await;
    assert!(store.operator("ada").await.unwrap().unwrap().second_factor);
    assert_eq!(store.sessions(None).await.unwrap(), [session(1, "ada", 10)], "the others have ended");
    assert_eq!(store.session_begin(session(3, "ada", 12), "h1", false, 9).await, Ok(false), "a code is needed");
    assert_eq!(store.session_begin(session(3, "ada", 12), "h1", true, 9).await, Ok(true));
    assert_eq!(store.second_factor_rewrite("ada", vec![9], vec![10]).await, Ok(false), "it was changed meanwhile");
    assert_eq!(store.second_factor_rewrite("eve", vec![8], vec![10]).await, Ok(false));
    assert_eq!(store.second_factor_rewrite("ada", vec![8], vec![10, 11]).await, Ok(true));
    store.second_factor_failed("ada", 30).await.unwrap();
    let factor = store.second_factor("ada").await.unwrap().unwrap();
    assert_eq!((factor.secret, factor.confirmed_at_millis, factor.last_step), (vec![10, 11], Some(20), 5));
    assert_eq!((factor.failures, factor.failed_at_millis, factor.recovery_codes), (1, 30, 2));
    let accepts = async |proof| store.second_factor_use("ada", proof).await.unwrap();
    assert!(!accepts(Proof::Step(5)).await && !accepts(Proof::Step(4)).await);
    let (first, second) = tokio::join!(accepts(Proof::Step(6)), accepts(Proof::Step(6)));
    assert!(first != second, "of two at once one");
    assert!(accepts(Proof::Recovery([1; 32])).await && !accepts(Proof::Recovery([1; 32])).await);
    let factor = store.second_factor("ada").await.unwrap().unwrap();
    assert_eq!((factor.failures, factor.recovery_codes, factor.last_step), (0, 1, 6));
    let remove = || AccessChange::SecondFactorRemove { name: "ada".into(), end_sessions: true };
    assert_eq!(store.access_change(remove(), "e".into()).await, Ok(true));
    assert_eq!(store.access_change(remove(), "e".into()).await, Ok(false));
    assert_eq!((store.second_factor("ada").await, store.sessions(Some("ada")).await), (Ok(None), Ok(vec![])));
    assert!(!accepts(Proof::Recovery([2; 32])).await);
}

pub(crate) async fn an_admin_stays_and_a_key_is_replaced(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let eve = Operator { role: Role::Viewer, ..operator("eve", "h1") };
    for operator in [operator("ada", "h1"), operator("bob", "h1"), eve] {
        assert_eq!(store.operator_add(operator).await, Ok(true));
    }
    let role = |name: &str, role| AccessChange::OperatorRole { name: name.into(), role, keep_admin: true };
    let remove = |name: &str, keep_admin| AccessChange::OperatorRemove { name: name.into(), keep_admin };
    assert_eq!(store.session_begin(session(1, "ada", 10), "h1", false, 9).await, Ok(true));
    assert_eq!(store.access_change(role("ada", Role::Admin), "e".into()).await, Ok(false), "the same role");
    assert_eq!(store.sessions_end("ada", Some([1; 32])).await, Ok(0));
    let (first, second) = (role("ada", Role::Analyst), role("bob", Role::Analyst));
    let (first, second) = tokio::join!(store.access_change(first, "e".into()), store.access_change(second, "e".into()));
    assert_eq!([first, second].iter().filter(|changed| **changed == Ok(true)).count(), 1);
    let store = reopened(store).await;
    let admins = async || {
        let operators = store.operators().await.unwrap();
        operators
            .into_iter()
            .filter(|operator| operator.role == Role::Admin)
            .map(|operator| operator.name)
            .collect::<Vec<_>>()
    };
    let last = admins().await;
    assert_eq!(last.len(), 1);
    assert_eq!(store.access_change(remove(&last[0], true), "e".into()).await, Ok(false));
    assert_eq!(store.access_change(remove("eve", true), "e".into()).await, Ok(true));
    assert_eq!(store.access_change(remove("eve", true), "e".into()).await, Ok(false));
    assert_eq!(store.access_change(remove(&last[0], false), "e".into()).await, Ok(true), "a command may");
    let key = |id: &str, expires_at_millis| AdminKey {
        id: id.into(),
        expires_at_millis,
        ..AdminKey::issue("ci", &[Scope::Read], 5, None).unwrap().key
    };
    for (id, end) in [("a", None), ("b", Some(40)), ("c", Some(10))] {
        store.admin_key_put(key(id, end)).await.unwrap();
    }
    let rotate = |id: &str, to: &str| AccessChange::KeyRotate {
        id: id.into(),
        until_millis: 50,
        now_millis: 10,
        key: key(to, None),
    };
    for (id, to, rotated) in [("a", "a2", true), ("b", "b2", true), ("c", "c2", false), ("d", "d2", false)] {
        assert_eq!(store.access_change(rotate(id, to), "e".into()).await, Ok(rotated), "{id}");
        assert_eq!(store.admin_key(to).await.unwrap().is_some(), rotated, "{id}");
    }
    let end = async |id: &str| store.admin_key(id).await.unwrap().unwrap().expires_at_millis;
    assert_eq!((end("a").await, end("b").await, end("c").await), (Some(50), Some(40), Some(10)));
    assert!(store.admin_key_revoke("a", 7).await.unwrap());
    assert_eq!(store.access_change(rotate("a", "a3"), "e".into()).await, Ok(false), "it is revoked");
}
