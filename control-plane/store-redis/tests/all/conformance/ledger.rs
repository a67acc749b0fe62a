//! Charges and the bans that they lead to.

use std::sync::Arc;

use store::Store;
use store::fabric::{Charge, Issued, MAX_BANS_PER_ADDRESS, Note};

use super::{NOW, RULES, charge, entry, keys, live};

pub(crate) async fn a_ban_of_the_ledger_counts_to_its_place(store: Arc<dyn Store>) {
    let charge =
        |key: String, address: &str| Charge { key, points: 100.0, at: NOW, address: address.into(), node: "n1".into() };
    let made_up = (0..300).map(|number| charge(format!("user:made-up-{number}"), "192.0.2.1")).collect();
    let promoted = store.ledger_charge(made_up, RULES, NOW, Note::none()).await.unwrap();
    assert_eq!(promoted.len(), 300);
    let there = store.bans(NOW).await.unwrap();
    assert_eq!(there.len(), MAX_BANS_PER_ADDRESS as usize);
    assert!(there.iter().all(|ban| ban.address == "192.0.2.1" && ban.node == "n1"));
    // Who is on the allowlist is banned under no name.
    store.allow(entry("ip:198.51.100.0/24", None), "", false, Note::none()).await.unwrap();
    let ours = vec![charge("user:ada".into(), "198.51.100.7")];
    let promoted = store.ledger_charge(ours, RULES, NOW, Note::none()).await.unwrap();
    assert!(matches!(promoted[0].issued, Issued::Allowlisted(_)), "{promoted:?}");
}

pub(crate) async fn who_reaches_the_threshold_within_the_window_is_banned_and_begins_anew(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let add = async |store: &Arc<dyn Store>, key: &str, points: f64, at: u64| {
        store.ledger_charge(charge(key, points, at), RULES, at, Note::none()).await.unwrap()
    };
    let window = RULES.window_millis;
    assert!(add(&store, "ip:192.0.2.1", 60.0, NOW).await.is_empty());
    assert!(add(&store, "ip:192.0.2.1", 39.0, NOW + window - 1).await.is_empty());
    // The first charge has left the window by now.
    assert!(add(&store, "ip:192.0.2.1", 1.0, NOW + window).await.is_empty());
    let store = reopened(store).await;
    assert_eq!(store.ledger_score("ip:192.0.2.1", NOW).await.unwrap(), 40.0);
    add(&store, "user:ada", 7.0, NOW + window).await;
    let top = store.ledger_top(NOW, 1).await.unwrap();
    assert_eq!(top, [("ip:192.0.2.1".to_owned(), 40.0)]);
    let promoted = add(&store, "ip:192.0.2.1", 60.0, NOW + window + 1).await;
    assert_eq!((promoted.len(), promoted[0].total), (1, 100.0));
    let banned = live(promoted[0].issued.clone());
    assert_eq!((banned.until, banned.issued_by.as_str()), (NOW + 2 * window + 1, "ledger"));
    assert_eq!(keys(&*store, NOW).await, ["ip:192.0.2.1"]);
    assert_eq!(store.ledger_score("ip:192.0.2.1", 0).await.unwrap(), 0.0, "the total is consumed");

    store.allow(entry("user:ada", None), "", true, Note::none()).await.unwrap();
    assert_eq!(store.ledger_score("user:ada", 0).await.unwrap(), 0.0, "the ledger forgets whom the allowlist has");
    let promoted = add(&store, "user:ada", 150.0, NOW + window).await;
    assert!(matches!(promoted[0].issued, Issued::Allowlisted(_)));
    assert_eq!(store.ledger_score("user:ada", 0).await.unwrap(), 0.0, "consumed, refused or not");

    add(&store, "apikey:k", 5.0, NOW).await;
    assert!(store.ledger_forget("apikey:k", Note::none()).await.unwrap());
    assert!(!store.ledger_forget("apikey:k", Note::none()).await.unwrap());
    add(&store, "apikey:k", 5.0, NOW).await;
    store.ledger_sweep(NOW).await.unwrap();
    assert!(store.ledger_top(0, 10).await.unwrap().is_empty());
}

pub(crate) async fn one_batch_of_charges_is_one_after_the_other(store: Arc<dyn Store>) {
    let charges = [60.0, 60.0, 60.0].iter().flat_map(|points| charge("ip:192.0.2.1", *points, NOW)).collect();
    let promoted = store.ledger_charge(charges, RULES, NOW, Note::none()).await.unwrap();
    assert_eq!(promoted.iter().map(|one| one.total).collect::<Vec<_>>(), [120.0]);
    assert_eq!(store.ledger_score("ip:192.0.2.1", 0).await.unwrap(), 60.0);
}
