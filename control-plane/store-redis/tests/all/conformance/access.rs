//! Who has access.

use std::sync::Arc;

use accounts::{AdminKey, Operator, Scope, Session};
use store::{AccessChange, Store};

fn operator(name: &str, hash: &str) -> Operator {
    Operator {
        name: name.into(),
        email: format!("{name}@example.com"),
        password_hash: hash.into(),
        created_at_millis: 5,
        changed_at_millis: 5,
    }
}

fn session(token: u8, operator: &str, seen: u64) -> Session {
    Session { token_sha256: [token; 32], operator: operator.into(), created_at_millis: 10, seen_at_millis: seen }
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
    assert_eq!(store.session_begin(session(1, "ada", 10), "h2", 2).await, Ok(false), "another password");
    assert_eq!(store.session_begin(session(1, "eve", 10), "h1", 2).await, Ok(false), "no such operator");
    for token in 1..=3 {
        assert_eq!(store.session_begin(session(token, "ada", 10 + u64::from(token)), "h1", 2).await, Ok(true));
    }
    assert_eq!(store.session_begin(session(9, "bob", 90), "h1", 2).await, Ok(true));
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
    assert_eq!(store.session_begin(session(9, "bob", 90), "h3", 2).await, Ok(true));
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
        (AccessChange::OperatorRemove { name: name() }, true),
        (AccessChange::OperatorRemove { name: name() }, false),
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
    let last = kept.last().unwrap().number;
    store.kept_events_told(last).await.unwrap();
    let store_again = Arc::clone(&store);
    assert_eq!(store_again.access_change(AccessChange::OperatorAdd(operator("eve", "h")), "e".into()).await, Ok(true));
    let kept = store.kept_events(0).await.unwrap();
    assert_eq!((kept.len(), kept[0].number > last), (1, true));
}
