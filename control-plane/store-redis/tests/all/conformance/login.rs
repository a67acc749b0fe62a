//! Ceremonies of logins, identities at providers, and passkeys.

use std::sync::Arc;

use accounts::{Ceremony, CeremonyKind, Identity, Passkey};
use store::{AccessChange, Store};

use super::access::{operator, session};

pub(crate) async fn a_ceremony_ends_once(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let ceremony = |id: u8, until_millis| Ceremony {
        sha256: [id; 32],
        kind: CeremonyKind::Oidc,
        operator: "ada".into(),
        data: "{\"a\": 1}".into(),
        until_millis,
    };
    for (id, until) in [(1, 100), (2, 100), (3, 200)] {
        store.ceremony_put(ceremony(id, until)).await.unwrap();
    }
    let store = reopened(store).await;
    let take = async |id: u8, now| store.ceremony_take([id; 32], CeremonyKind::Oidc, now).await.unwrap();
    assert_eq!(take(1, 99).await, Some(ceremony(1, 100)));
    assert_eq!(take(1, 99).await, None, "it has ended");
    assert_eq!((take(2, 100).await, take(9, 0).await), (None, None), "too late, and never begun");
    let (one, two) = tokio::join!(take(3, 0), take(3, 0));
    assert_eq!([one, two].iter().flatten().count(), 1, "of two at once one");
    store.ceremony_put(ceremony(4, 200)).await.unwrap();
    assert_eq!(store.tickets_sweep(199).await, Ok(1), "the one that is left");
    assert!(take(4, 199).await.is_some());
}

pub(crate) async fn an_identity_is_that_of_one_operator(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let identity =
        |issuer: &str, subject: &str| Identity { issuer: issuer.into(), subject: subject.into(), linked_at_millis: 7 };
    let link = |name: &str, issuer, subject| AccessChange::IdentityLink {
        name: name.into(),
        identity: identity(issuer, subject),
    };
    let add = |name: &str, subject| AccessChange::OperatorAddLinked {
        operator: operator(name, ""),
        identity: identity("i", subject),
    };
    let change = async |store: &Arc<dyn Store>, change| store.access_change(change, "e".into()).await.unwrap();
    let of = async |store: &Arc<dyn Store>, issuer: &str, subject: &str| {
        store.operator_of_identity(issuer, subject).await.unwrap().map(|operator| operator.name)
    };
    assert!(!change(&store, link("ada", "i", "1")).await, "no such operator");
    assert!(store.operator_add(operator("ada", "h1")).await.unwrap());
    assert!(change(&store, link("ada", "i", "1")).await);
    assert!(change(&store, link("ada", "j", "1")).await, "of another issuer");
    assert!(!change(&store, link("ada", "i", "2")).await, "one of each issuer");
    assert!(!change(&store, add("bob", "1")).await, "the identity is taken");
    assert_eq!(store.operator("bob").await, Ok(None), "nothing of a change that fails");
    assert!(!change(&store, add("ada", "2")).await, "the name is taken");
    assert_eq!(of(&store, "i", "2").await, None);
    assert!(change(&store, add("bob", "2")).await);
    assert!(!change(&store, link("bob", "j", "1")).await, "the identity is taken");
    let store = reopened(store).await;
    assert_eq!((of(&store, "i", "1").await, of(&store, "j", "1").await), (Some("ada".into()), Some("ada".into())));
    assert_eq!((of(&store, "i", "2").await, of(&store, "j", "2").await), (Some("bob".into()), None));
    let ada = store.operator("ada").await.unwrap().unwrap();
    assert!(ada.has_identity && !ada.second_factor);
    assert!(store.session_begin(session(1, "ada", 10), "h1", false, 9).await.unwrap());
    let unlink = || AccessChange::IdentityUnlink { name: "ada".into() };
    assert!(change(&store, unlink()).await && !change(&store, unlink()).await);
    assert_eq!((store.sessions(Some("ada")).await, of(&store, "j", "1").await), (Ok(vec![]), None));
    assert!(!store.operator("ada").await.unwrap().unwrap().has_identity);
    assert!(store.operator_remove("bob").await.unwrap());
    assert_eq!(of(&store, "i", "2").await, None, "an operator of the same name later is not them");
}

pub(crate) async fn a_passkey_is_one_operators_and_counts_up(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let passkey = |id: u8, operator: &str| Passkey {
        credential: vec![id; 16],
        operator: operator.into(),
        name: format!("key {id}"),
        public_key: vec![1, 2, id],
        sign_count: 5,
        created_at_millis: 100 + u64::from(id),
        used_at_millis: None,
    };
    let add = |passkey| AccessChange::PasskeyAdd { passkey, keep_session: [1; 32] };
    let remove = |credential: Option<u8>, end_sessions| AccessChange::PasskeyRemove {
        name: "ada".into(),
        credential: credential.map(|id| vec![id; 16]),
        end_sessions,
    };
    let change = async |store: &Arc<dyn Store>, change| store.access_change(change, "e".into()).await.unwrap();
    assert!(!change(&store, add(passkey(1, "ada"))).await, "no such operator");
    for name in ["ada", "bob"] {
        assert!(store.operator_add(operator(name, "h1")).await.unwrap());
    }
    for token in [1, 2] {
        assert!(store.session_begin(session(token, "ada", 10), "h1", false, 9).await.unwrap());
    }
    assert!(change(&store, add(passkey(2, "ada"))).await && change(&store, add(passkey(1, "ada"))).await);
    assert!(!change(&store, add(passkey(1, "bob"))).await, "the credential is there");
    let store = reopened(store).await;
    assert_eq!(store.passkeys("ada").await.unwrap(), [passkey(1, "ada"), passkey(2, "ada")]);
    assert_eq!(store.sessions(None).await.unwrap(), [session(1, "ada", 10)], "the others have ended");
    assert_eq!(store.session_begin(session(3, "ada", 12), "h1", false, 9).await, Ok(false), "it is needed");
    assert_eq!(store.session_begin(session(3, "ada", 12), "h1", true, 9).await, Ok(true));
    let (found, owner) = store.passkey(&[1; 16]).await.unwrap().unwrap();
    assert_eq!((found, owner.name.as_str(), owner.passkeys), (passkey(1, "ada"), "ada", 2));
    assert!(owner.has_second_factor() && !owner.second_factor);
    assert_eq!(store.passkey(&[9; 16]).await, Ok(None));
    let used = async |count, now| store.passkey_use(&[1; 16], count, now).await.unwrap();
    assert!(!used(5, 200).await && !used(0, 200).await, "it does not go up");
    let (one, two) = tokio::join!(used(6, 201), used(6, 201));
    assert!(one != two, "of two at once one");
    let found = store.passkey(&[1; 16]).await.unwrap().unwrap().0;
    assert_eq!((found.sign_count, found.used_at_millis), (6, Some(201)));
    assert!(!store.passkey_use(&[9; 16], 1, 1).await.unwrap());
    for id in 3..=10 {
        assert!(change(&store, add(passkey(id, "ada"))).await, "{id}");
    }
    assert!(!change(&store, add(passkey(11, "ada"))).await, "ten are the most");
    assert!(change(&store, remove(Some(1), false)).await && !change(&store, remove(Some(1), false)).await);
    assert_eq!(store.sessions(Some("ada")).await.unwrap().len(), 1, "it goes on");
    assert!(change(&store, remove(None, true)).await && !change(&store, remove(None, true)).await);
    assert_eq!((store.sessions(Some("ada")).await, store.passkeys("ada").await), (Ok(vec![]), Ok(vec![])));
    assert!(change(&store, add(passkey(1, "bob"))).await);
    assert!(store.operator_remove("bob").await.unwrap());
    assert_eq!(store.passkey(&[1; 16]).await, Ok(None));
}
