//! Control planes whose clocks differ by some seconds: what one of them says of times holds at the others, but for that difference.

use store::alerts::{AlertNotes, Claim, Told, WaitingAlert};
use store::fabric::{Allowance, Issued, Note};
use store::{AlertStore as _, FabricStore as _, SqliteStore};

use crate::conformance::{NOW, ban};
use crate::server::RedisServer;

/// By how much the clock of one is ahead of that of the other, in milliseconds.
const SKEW: u64 = 5000;

async fn keys(store: &SqliteStore, now: u64) -> Vec<String> {
    store.bans(now).await.unwrap().into_iter().map(|ban| ban.key).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_ends_at_its_time_by_each_clock() {
    let Some(server) = RedisServer::start().await else { return };
    let (ahead, behind) = (server.open().await, server.open().await);
    // At one moment, by both clocks.
    let (by_ahead, by_behind) = (NOW + SKEW, NOW);
    let until = NOW + 60_000;
    let issue = async |store: &SqliteStore, key: &str, issued_at: u64, by_hand: bool, now: u64| {
        let ban = ban(key, issued_at, until, by_hand);
        store.bans_issue(vec![ban], now, Note::none()).await.unwrap().pop().unwrap()
    };
    for (store, key, now) in [(&ahead, "ip:192.0.2.1", by_ahead), (&behind, "ip:192.0.2.2", by_behind)] {
        assert!(matches!(issue(store, key, now, false, now).await, Issued::Live(ban) if ban.until == until));
    }
    // Its end is the same moment for both, and each reaches it by its own clock: at most the difference apart.
    for store in [&ahead, &behind] {
        assert_eq!(keys(store, until - 1).await, ["ip:192.0.2.1", "ip:192.0.2.2"]);
        assert_eq!(keys(store, until).await, Vec::<String>::new());
    }
    // What the one that is ahead sweeps is missed by the other for the difference at most.
    ahead.fabric_sweep(until - 1, 0).await.unwrap();
    assert_eq!(keys(&behind, until - 1 - SKEW).await.len(), 2);
    ahead.fabric_sweep(until, 0).await.unwrap();
    assert_eq!(keys(&behind, until - SKEW).await.len(), 0);
    // A sweep by the one that is behind ends nothing before its time.
    assert!(matches!(issue(&ahead, "ip:192.0.2.3", by_ahead, false, by_ahead).await, Issued::Live(_)));
    behind.fabric_sweep(until - SKEW, 0).await.unwrap();
    assert_eq!(keys(&ahead, until - 1).await, ["ip:192.0.2.3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lift_holds_for_the_difference_at_most_against_later_bans() {
    let Some(server) = RedisServer::start().await else { return };
    let (ahead, behind) = (server.open().await, server.open().await);
    let (key, until) = ("ip:192.0.2.1", NOW + 60_000);
    let issue = async |at: u64, by_hand: bool| {
        let bans = vec![ban(key, at, until, by_hand)];
        behind.bans_issue(bans, at, Note::none()).await.unwrap().pop().unwrap()
    };
    assert!(matches!(issue(NOW, false).await, Issued::Live(_)));
    assert_eq!(ahead.ban_lift(key, NOW + SKEW, Note::none()).await, Ok(true));
    assert_eq!(keys(&behind, NOW).await, Vec::<String>::new());
    // A gateway asks again after the lift, which seems to be before it.
    assert!(matches!(issue(NOW + 1, false).await, Issued::Lifted(_)));
    assert!(matches!(issue(NOW + SKEW + 1, false).await, Issued::Live(_)));
    // An operator's hand is not held up.
    assert_eq!(ahead.ban_lift(key, NOW + 3 * SKEW, Note::none()).await, Ok(true));
    assert!(matches!(issue(NOW + 2 * SKEW + 1, true).await, Issued::Live(_)));
    let entry = Allowance { key: key.into(), added_at: NOW + SKEW, until: Some(until), ..Allowance::default() };
    assert!(ahead.allow(entry, key, true, Note::none()).await.unwrap().is_some());
    assert!(matches!(issue(NOW + 2, true).await, Issued::Allowlisted(_)));
    assert_eq!(behind.allowlist(until).await, Ok(Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_claimed_once_within_its_cooldown() {
    let Some(server) = RedisServer::start().await else { return };
    let (ahead, behind) = (server.open().await, server.open().await);
    let claim = async |store: &SqliteStore, id: &str, at: u64| {
        let told = Told { rule: "r".into(), subject: "s".into(), at };
        let message = WaitingAlert { id: id.into(), at, json: "{}".into() };
        let claims = vec![Claim { told, cooldown: 60_000, message }];
        store.alerts_note(AlertNotes { forgotten: Vec::new(), claims }).await.unwrap().pop().unwrap()
    };
    // Both see the cause at one moment.
    assert_eq!(claim(&ahead, "1", NOW + SKEW).await, None);
    assert_eq!(claim(&behind, "2", NOW).await, Some(NOW + SKEW));
    // The cooldown lasts as long as it should, but for the difference.
    assert_eq!(claim(&behind, "3", NOW + 59_999).await, Some(NOW + SKEW));
    assert_eq!(claim(&behind, "4", NOW + 60_000 + SKEW).await, None);
    assert_eq!(claim(&ahead, "5", NOW + 60_000 + 2 * SKEW).await, Some(NOW + 60_000 + SKEW));
    assert_eq!(behind.alerts_waiting().await.unwrap().len(), 2);
}
