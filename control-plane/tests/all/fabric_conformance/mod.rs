//! What every store owes the decision fabric. Each function takes an empty store and says by its name what holds; a store
//! passes when none panics. `reopened` closes the store and opens it again, as a new process would.

use std::sync::Arc;

use palisade::store::Store;
use palisade::store::alerts::{AlertNotes, MAX_TOLD, MAX_WAITING, Told, WaitingAlert};
use palisade::store::fabric::{
    Allowance, Ban, BanPage, BanQuery, Charge, IncidentRow, Issued, LAST_MOMENT, LIFT_KEPT_MILLIS, LedgerRules,
    MAX_ALLOWED_RANGES, MAX_BANS, MAX_BANS_PER_ADDRESS, MAX_BANS_PER_NETWORK, MAX_BANS_UNPLACED, MAX_RANGES, MAX_STEPS,
    NEIGHBOURS_48, NEIGHBOURS_56, Note, Step, Workflow,
};

/// A moment; nothing reads a clock.
const NOW: u64 = 1_800_000_000_000;
const RULES: LedgerRules = LedgerRules { window_millis: 3_600_000, threshold: 100.0, ban_millis: 3_600_000 };

fn ban(key: &str, issued_at: u64, until: u64, by_hand: bool) -> Ban {
    let step = Step { at: issued_at, action: "ban".into(), by: "n1".into(), detail: String::new() };
    Ban {
        key: key.into(),
        reason: format!("until {until}"),
        tags: vec!["waf:match".into()],
        score: 95.0,
        issued_at,
        until,
        issued_by: if by_hand { "alice" } else { "n1" }.into(),
        by_hand,
        signals: vec![serde_json::json!({ "tag": "waf:match", "weight": 95 })],
        timeline: vec![step],
        ..Ban::default()
    }
}

/// One that a node has asked for.
fn by(node: &str, ban: Ban) -> Ban {
    Ban { node: node.into(), ..ban }
}

/// One that was not made by hand and came from an address.
fn from(address: &str, key: &str, until: u64) -> Ban {
    Ban { address: address.into(), ..ban(key, NOW, until, false) }
}

fn live(issued: Issued) -> Ban {
    match issued {
        Issued::Live(ban) => ban,
        other => panic!("not live: {other:?}"),
    }
}

fn entry(key: &str, until: Option<u64>) -> Allowance {
    Allowance { key: key.into(), reason: "office".into(), added_by: "alice".into(), added_at: NOW, until }
}

fn charge(key: &str, points: f64, at: u64) -> Vec<Charge> {
    vec![Charge { key: key.into(), points, at, ..Charge::default() }]
}

async fn keys(store: &dyn Store, now: u64) -> Vec<String> {
    store.bans(now).await.unwrap().into_iter().map(|ban| ban.key).collect()
}

pub(crate) async fn a_ban_comes_back_whole_and_ends_by_itself(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let asked = ban("ip:192.0.2.1", NOW, NOW + 10, false);
    assert_eq!(live(store.ban_issue(asked.clone(), NOW).await.unwrap()), asked);
    let forever = live(store.ban_issue(ban("user:ada", NOW, u64::MAX, true), NOW).await.unwrap());
    assert_eq!((forever.until, forever.hand_until), (LAST_MOMENT, LAST_MOMENT));
    assert_eq!(store.ban("user:ada", NOW).await.unwrap(), Some(forever));
    assert_eq!(store.ban("ip:192.0.2.1", NOW + 10).await.unwrap(), None);
    let store = reopened(store).await;
    assert_eq!(store.bans(NOW + 9).await.unwrap()[0], asked);
    assert_eq!(keys(&*store, NOW + 10).await, ["user:ada"]);
    store.fabric_sweep(NOW + 10, 0).await.unwrap();
    assert_eq!(keys(&*store, NOW).await, ["user:ada"], "what has ended is forgotten");
}

pub(crate) async fn the_later_end_holds_and_the_history_is_kept(store: Arc<dyn Store>) {
    let issue = async |ban: Ban| live(store.ban_issue(ban, NOW).await.unwrap());
    issue(ban("ip:192.0.2.1", NOW, NOW + 100, false)).await;
    let held = issue(ban("ip:192.0.2.1", NOW + 1, NOW + 50, false)).await;
    assert_eq!((held.until, held.timeline.len()), (NOW + 100, 1), "a shorter one of a node changes nothing");
    let held = issue(ban("ip:192.0.2.1", NOW + 1, NOW + 50, true)).await;
    assert_eq!((held.until, held.issued_by.as_str(), held.timeline.len()), (NOW + 100, "alice", 2));
    let held = issue(ban("ip:192.0.2.1", NOW + 2, NOW + 200, false)).await;
    assert_eq!((held.until, held.issued_at, held.issued_by.as_str()), (NOW + 200, NOW, "n1"));
    assert_eq!((held.by_hand, held.hand_until), (true, NOW + 50), "the operator's is within it still");
    let step = |at| Step { at, action: "extend".into(), by: "bob".into(), detail: String::new() };
    let extended = store.ban_extend("ip:192.0.2.1", 60, step(NOW + 3), Note::none()).await.unwrap().unwrap();
    assert_eq!((extended.until, extended.hand_until), (NOW + 260, NOW + 260), "an extension is by hand");
    issue(ban("ip:192.0.2.2", NOW, NOW + 100, false)).await;
    let tier = store.ban_extend("ip:192.0.2.2", 60, step(NOW), Note::none()).await.unwrap().unwrap();
    assert_eq!((tier.until, tier.hand_until, tier.by_hand), (NOW + 160, NOW + 160, true), "of a tier's ban as well");
    assert!(store.ban_lift("ip:192.0.2.2", NOW, Note::none()).await.unwrap());
    assert_eq!(extended.timeline.last().unwrap(), &step(NOW + 3));
    assert_eq!(store.ban_extend("ip:192.0.2.9", 60, step(NOW), Note::none()).await.unwrap(), None);
    assert_eq!(
        store.ban_extend("ip:192.0.2.1", 60, step(NOW + 260), Note::none()).await.unwrap(),
        None,
        "it has ended"
    );
    for _ in 0..30 {
        store.ban_extend("ip:192.0.2.1", 1, step(NOW + 4), Note::none()).await.unwrap().unwrap();
    }
    assert_eq!(store.bans(NOW).await.unwrap()[0].timeline.len(), MAX_STEPS);
}

pub(crate) async fn a_lift_holds_against_what_was_asked_before_it(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    store.ban_issue(ban("ip:192.0.2.1", NOW, NOW + 100_000, false), NOW).await.unwrap();
    assert!(store.ban_lift("ip:192.0.2.1", NOW + 5, Note::none()).await.unwrap());
    assert!(!store.ban_lift("ip:192.0.2.1", NOW + 5, Note::none()).await.unwrap());
    let store = reopened(store).await;
    let late = store.ban_issue(ban("ip:192.0.2.1", NOW + 5, NOW + 100_000, false), NOW + 9).await.unwrap();
    assert_eq!(late, Issued::Lifted(NOW + 5));
    assert_eq!(store.lifted(true).await.unwrap(), ["ip:192.0.2.1"], "gateways that were away are told");
    live(store.ban_issue(ban("ip:192.0.2.1", NOW + 6, NOW + 100_000, false), NOW + 9).await.unwrap());
    assert!(store.lifted(true).await.unwrap().is_empty());
    store.ban_issue(ban("user:ada", NOW, NOW + 100, true), NOW).await.unwrap();
    assert_eq!(store.bans_lift_all(NOW + 10, Note::none()).await.unwrap(), ["ip:192.0.2.1", "user:ada"]);
    assert!(keys(&*store, NOW).await.is_empty());
    store.fabric_sweep(NOW + LIFT_KEPT_MILLIS, 0).await.unwrap();
    assert_eq!(store.lifted(true).await.unwrap().len(), 2);
    store.fabric_sweep(NOW + 10 + LIFT_KEPT_MILLIS, 0).await.unwrap();
    assert!(store.lifted(true).await.unwrap().is_empty());
}

pub(crate) async fn nobody_on_the_allowlist_is_banned(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let issue = async |store: &Arc<dyn Store>, key: &str, now| {
        store.ban_issue(ban(key, now, now + 1000, true), now).await.unwrap()
    };
    for key in ["ip:10.1.0.0/16", "ip:10.1.2.3", "ip:11.0.0.1", "user:ada"] {
        live(issue(&store, key, NOW).await);
    }
    let range = entry("ip:10.0.0.0/8", Some(NOW + 500));
    let released = store.allow(range.clone(), "", true, Note::none()).await.unwrap().unwrap();
    assert_eq!(released, ["ip:10.1.0.0/16", "ip:10.1.2.3"]);
    assert_eq!(
        store.allow(entry("user:ada", None), "", false, Note::none()).await.unwrap(),
        Some(vec![]),
        "its ban was to stay"
    );
    assert_eq!(keys(&*store, NOW).await, ["ip:11.0.0.1", "user:ada"]);
    let store = reopened(store).await;
    assert_eq!(issue(&store, "ip:10.9.9.9", NOW + 1).await, Issued::Allowlisted(range.clone()));
    assert_eq!(issue(&store, "ip:10.9.0.0/16", NOW + 1).await, Issued::Allowlisted(range.clone()));
    assert!(matches!(issue(&store, "user:ada", NOW + 1).await, Issued::Allowlisted(_)));
    assert_eq!(store.allowlist(NOW).await.unwrap(), [range, entry("user:ada", None)]);
    live(issue(&store, "ip:10.9.9.9", NOW + 500).await);
    assert!(store.disallow("user:ada", NOW + 500, Note::none()).await.unwrap());
    assert!(!store.disallow("user:ada", NOW + 500, Note::none()).await.unwrap());
    assert_eq!(store.lifted(false).await.unwrap(), ["user:ada"]);
    live(issue(&store, "user:ada", NOW + 501).await);
    store.fabric_sweep(NOW + 500, 0).await.unwrap();
    assert!(store.allowlist(NOW).await.unwrap().is_empty(), "what has ended is forgotten");
}

pub(crate) async fn ranges_have_a_bound(store: Arc<dyn Store>) {
    let range = |number: u32| format!("ip:10.{}.{}.0/24", number / 256, number % 256);
    let many = |numbers: std::ops::Range<u32>, until| numbers.map(move |number| ban(&range(number), NOW, until, true));
    let issued = store.bans_issue(many(0..MAX_RANGES, NOW + 1000).collect(), NOW, Note::none()).await.unwrap();
    assert!(issued.len() == MAX_RANGES as usize && issued.iter().all(|issued| matches!(issued, Issued::Live(_))));
    let one_more = ban(&range(MAX_RANGES), NOW, NOW + 1000, true);
    assert_eq!(store.ban_issue(one_more.clone(), NOW).await.unwrap(), Issued::Full);
    live(store.ban_issue(ban(&range(0), NOW, NOW + 2000, true), NOW).await.unwrap());
    // All but one have ended.
    let later = NOW + 1000;
    let issued =
        store.bans_issue(many(MAX_RANGES..2 * MAX_RANGES, NOW + 9000).collect(), later, Note::none()).await.unwrap();
    let full = issued.iter().position(|issued| *issued == Issued::Full);
    assert_eq!(full, Some(MAX_RANGES as usize - 1), "one of the first stands still");
    for number in 0..MAX_ALLOWED_RANGES {
        assert!(store.allow(entry(&range(number + 10_000), None), "", false, Note::none()).await.unwrap().is_some());
    }
    assert_eq!(store.allow(entry(&range(20_000), None), "", false, Note::none()).await.unwrap(), None);
    assert!(
        store.allow(entry(&range(10_000), None), "", false, Note::none()).await.unwrap().is_some(),
        "one that is there may change"
    );
}

pub(crate) async fn one_place_cannot_fill_the_store(store: Arc<dyn Store>) {
    let hand = Ban { address: "192.0.2.9".into(), ..ban("user:by-hand", NOW, NOW + 1, true) };
    live(store.ban_issue(hand, NOW).await.unwrap());
    live(store.ban_issue(from("192.0.2.10", "user:neighbour", NOW + 2), NOW).await.unwrap());
    let made_up = |place: String, of: u64| {
        (0..of)
            .map(move |number| from(&place, &format!("user:{place}-{number}"), NOW + 10 + number))
            .collect::<Vec<_>>()
    };
    store.bans_issue(made_up("192.0.2.9".into(), 250), NOW, Note::none()).await.unwrap();
    let held = |keys: &[String], of: &str| keys.iter().filter(|key| key.starts_with(of)).count();
    let there = keys(&*store, NOW).await;
    assert_eq!(held(&there, "user:192.0.2.9-"), MAX_BANS_PER_ADDRESS as usize);
    assert!(there.contains(&"user:192.0.2.9-249".to_owned()), "those that end first have gone");
    assert!(there.contains(&"user:by-hand".to_owned()) && there.contains(&"user:neighbour".to_owned()));
    for address in 0..40 {
        store.bans_issue(made_up(format!("192.0.2.{address}"), 100), NOW, Note::none()).await.unwrap();
    }
    live(store.ban_issue(from("192.0.3.1", "ip:192.0.3.1", NOW + 2), NOW).await.unwrap());
    let there = keys(&*store, NOW).await;
    assert_eq!(held(&there, "user:192.0.2."), MAX_BANS_PER_NETWORK as usize);
    assert!(there.contains(&"user:by-hand".to_owned()) && there.contains(&"ip:192.0.3.1".to_owned()));
    // Of IPv6 a /64 is one place, whichever address of it.
    for number in 0..300_u64 {
        let address = format!("2001:db8:1:2::{number:x}");
        store.ban_issue(from(&address, &format!("user:six-{number}"), NOW + 10 + number), NOW).await.unwrap();
    }
    assert_eq!(held(&keys(&*store, NOW).await, "user:six-"), MAX_BANS_PER_ADDRESS as usize);
}

pub(crate) async fn a_full_store_gives_up_no_ban_by_hand(store: Arc<dyn Store>) {
    live(store.ban_issue(ban("user:by-hand", NOW, NOW + 1, true), NOW).await.unwrap());
    live(store.ban_issue(ban("user:first", NOW, NOW + 2, false), NOW).await.unwrap());
    let address = |number: u32| std::net::Ipv4Addr::from(0x0a00_0000 + number).to_string();
    let more = (2..MAX_BANS).map(|number| ban(&format!("ip:{}", address(number)), NOW, NOW + 10, false));
    store.bans_issue(more.collect(), NOW, Note::none()).await.unwrap();
    assert_eq!(store.bans_standing(NOW).await.unwrap().len(), MAX_BANS as usize);
    live(store.ban_issue(ban("user:one-more", NOW, NOW + 10, false), NOW).await.unwrap());
    live(store.ban_issue(ban("user:another-by-hand", NOW, NOW + 1, true), NOW).await.unwrap());
    let there: Vec<String> = store.bans_standing(NOW).await.unwrap().into_iter().map(|ban| ban.key).collect();
    let has = |key: &str| there.iter().any(|known| known == key);
    assert!(there.len() == MAX_BANS as usize && has("user:by-hand") && has("user:another-by-hand"));
    assert!(has("user:one-more") && !has("user:first"), "what ends first has gone");
}

pub(crate) async fn no_node_evicts_the_bans_of_others(store: Arc<dyn Store>) {
    let asked = |node: &'static str, numbers: std::ops::Range<u64>, address: &'static str| {
        let one = move |number: u64| by(node, from(address, &format!("user:{node}-{number}"), NOW + 1000 + number));
        numbers.map(one).collect::<Vec<_>>()
    };
    let issue = async |bans| drop(store.bans_issue(bans, NOW, Note::none()).await.unwrap());
    let held = async |of: &str| keys(&*store, NOW).await.iter().filter(|key| key.starts_with(of)).count();
    // Of no known address: the node that floods loses its own.
    issue(asked("honest", 0..50, "")).await;
    issue(asked("flood", 0..2 * u64::from(MAX_BANS_UNPLACED), "")).await;
    assert_eq!((held("user:honest-").await, held("user:flood-").await), (50, MAX_BANS_UNPLACED as usize - 50));
    issue(asked("late", 0..50, "")).await;
    assert_eq!((held("user:honest-").await, held("user:late-").await), (50, 50), "who comes later has a share too");
    // The same at one address, where a ban on the address itself gives way to no made-up user, of its own node neither.
    issue(vec![by("liar", ban("ip:192.0.2.1", NOW, NOW + 1, false))]).await;
    issue(vec![by("honest", from("192.0.2.1", "user:ada", NOW + 1))]).await;
    issue(asked("liar", 0..500, "192.0.2.1")).await;
    let there = keys(&*store, NOW).await;
    assert!(there.contains(&"ip:192.0.2.1".to_owned()) && there.contains(&"user:ada".to_owned()));
    assert_eq!(held("user:liar-").await, MAX_BANS_PER_ADDRESS as usize - 2);
    // To ask for the ban of another node again moves it nowhere.
    issue(vec![by("liar", from("198.51.100.1", "user:ada", NOW + 2))]).await;
    issue(asked("liar", 500..1000, "198.51.100.1")).await;
    let ada = store.ban("user:ada", NOW).await.unwrap().unwrap();
    assert_eq!((ada.address.as_str(), ada.node.as_str(), ada.until), ("192.0.2.1", "honest", NOW + 2));
}

pub(crate) async fn a_full_store_is_shared_by_the_nodes(store: Arc<dyn Store>) {
    let address = |number: u32| format!("ip:{}", std::net::Ipv4Addr::from(0x0a00_0000 + number));
    let many = |node: &'static str, numbers: std::ops::Range<u32>, until: u64| {
        numbers.map(move |number| by(node, ban(&address(number), NOW, until, false))).collect::<Vec<_>>()
    };
    store.bans_issue(many("honest", 0..1000, NOW + 10), NOW, Note::none()).await.unwrap();
    let issued = store.bans_issue(many("flood", 1000..MAX_BANS + 500, NOW + 20), NOW, Note::none()).await.unwrap();
    assert!(issued.iter().all(|issued| matches!(issued, Issued::Live(_))));
    store.bans_issue(many("late", MAX_BANS + 500..MAX_BANS + 600, NOW + 5), NOW, Note::none()).await.unwrap();
    let there = store.bans(NOW).await.unwrap();
    let held = |node: &str| there.iter().filter(|ban| ban.node == node).count();
    assert_eq!((there.len(), held("honest"), held("late")), (MAX_BANS as usize, 1000, 100));
}

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

pub(crate) async fn a_range_by_hand_has_room_among_those_of_nobodys_hand(store: Arc<dyn Store>) {
    let range = |number: u32| format!("ip:10.{}.{}.0/24", number / 256, number % 256);
    let ranges = (0..MAX_RANGES).map(|number| ban(&range(number), NOW, NOW + 1000, false));
    store.bans_issue(ranges.collect(), NOW, Note::none()).await.unwrap();
    let one_more = |by_hand| ban(&range(MAX_RANGES), NOW, NOW + 1000, by_hand);
    assert_eq!(store.ban_issue(one_more(false), NOW).await.unwrap(), Issued::Full);
    live(store.ban_issue(one_more(true), NOW).await.unwrap());
    assert_eq!(store.bans(NOW).await.unwrap().len(), MAX_RANGES as usize);
}

pub(crate) async fn a_run_of_neighbours_is_banned_as_one(store: Arc<dyn Store>) {
    let net = |number: u32| format!("ip:2001:db8:1:{number:x}::/64");
    let issue = async |number: u32, until| {
        live(store.ban_issue(ban(&net(number), NOW + 1, until, false), NOW + 1).await.unwrap());
        let wider = store.bans_widen(vec![net(number)], NOW + 2, Note::none()).await.unwrap();
        wider.into_iter().map(|ban| (ban.key, ban.until)).collect::<Vec<_>>()
    };
    live(store.ban_issue(ban(&net(200), NOW, NOW + 900, true), NOW).await.unwrap());
    live(store.ban_issue(ban("user:ada", NOW, NOW + 900, false), NOW).await.unwrap());
    for number in 1..NEIGHBOURS_56 {
        assert_eq!(issue(number, NOW + 100 + u64::from(number)).await, []);
    }
    let wide = ("ip:2001:db8:1::/56".to_owned(), NOW + 107);
    assert_eq!(issue(0, NOW + 50).await, std::slice::from_ref(&wide), "for as long as the longest of them");
    assert_eq!(issue(99, NOW + 50).await, [], "it is banned already");
    // Once it is lifted it takes another run.
    assert!(store.ban_lift(&wide.0, NOW + 3, Note::none()).await.unwrap());
    assert_eq!(issue(98, NOW + 50).await, []);
    // Spread over the whole /48.
    let mut widest = Vec::new();
    for number in 0..NEIGHBOURS_48 {
        widest.extend(issue(0x1000 + number * 0x100, NOW + 60).await);
    }
    assert_eq!(widest.len(), 1, "{widest:?}");
    assert_eq!(widest[0].0, "ip:2001:db8:1::/48");
    for other in ["ip:192.0.2.1", "user:ada", "ip:2001:db8:1::/48", "nonsense"] {
        assert_eq!(store.bans_widen(vec![other.into()], NOW + 2, Note::none()).await.unwrap(), []);
    }
    // Whom the allowlist has is not banned so either.
    store.allow(entry("ip:2001:db8:2::/48", None), "", false, Note::none()).await.unwrap();
    let allowed = store.ban_issue(ban("ip:2001:db8:2:1::/64", NOW, NOW + 9, false), NOW).await.unwrap();
    assert!(matches!(allowed, Issued::Allowlisted(_)));
    store.allow(entry("ip:2001:db8:3:1::7", None), "", false, Note::none()).await.unwrap();
    let ours = store.ban_issue(from("2001:db8:3:1::7", "ip:2001:db8:3:1::/64", NOW + 9), NOW).await.unwrap();
    assert!(matches!(ours, Issued::Allowlisted(_)), "the address itself is on it");
    live(store.ban_issue(from("2001:db8:3:1::8", "ip:2001:db8:3:1::/64", NOW + 9), NOW).await.unwrap());
}

pub(crate) async fn networks_of_ipv6_are_as_many_as_addresses(store: Arc<dyn Store>) {
    let net = |number: u32| format!("ip:2001:{:x}:{:x}::/48", number / 256, number % 256);
    let many = (0..MAX_RANGES + 10).map(|number| ban(&net(number), NOW, NOW + 10, true));
    let issued = store.bans_issue(many.collect(), NOW, Note::none()).await.unwrap();
    assert!(issued.iter().all(|issued| matches!(issued, Issued::Live(_))));
}

pub(crate) async fn bans_of_one_batch_are_judged_each_by_itself(store: Arc<dyn Store>) {
    store.allow(entry("ip:10.0.0.0/8", None), "", false, Note::none()).await.unwrap();
    store.ban_lift("user:bob", NOW + 5, Note::none()).await.unwrap();
    let batch = vec![
        ban("user:ada", NOW, NOW + 100, false),
        ban("ip:10.1.2.3", NOW, NOW + 100, false),
        ban("user:ada", NOW + 1, NOW + 300, false),
        ban("user:bob", NOW, NOW + 100, false),
        ban("ip:192.0.2.0/24", NOW, NOW + 200, false),
    ];
    let issued = store.bans_issue(batch, NOW + 6, Note::none()).await.unwrap();
    let words: Vec<&str> = issued
        .iter()
        .map(|issued| match issued {
            Issued::Live(_) => "live",
            Issued::Allowlisted(_) => "allowlisted",
            Issued::Lifted(_) => "lifted",
            Issued::Full => "full",
        })
        .collect();
    assert_eq!(words, ["live", "allowlisted", "live", "lifted", "live"]);
    assert_eq!(live(issued[2].clone()).timeline.len(), 2, "the second is about a ban that stands by then");
    let mut standing = store.bans_standing(NOW + 150).await.unwrap();
    standing.sort_by(|one, other| one.key.cmp(&other.key));
    let told: Vec<_> = standing.iter().map(|ban| (ban.key.as_str(), ban.until, ban.reason.clone())).collect();
    let reason = |until: u64| format!("until {until}");
    let range = ("ip:192.0.2.0/24", NOW + 200, reason(NOW + 200));
    assert_eq!(told, [range, ("user:ada", NOW + 300, reason(NOW + 300))]);
    assert_eq!(store.bans_standing(NOW + 200).await.unwrap().len(), 1, "what has ended is not told");
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

pub(crate) async fn incidents_and_their_states_come_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let row = |key: &str, json: &str| IncidentRow { key: key.into(), json: json.into() };
    store.incidents_write(vec![row("ip:a", "1"), row("ip:b", "1")], vec![]).await.unwrap();
    store.incidents_write(vec![row("ip:a", "2")], vec!["ip:b".into()]).await.unwrap();
    let state = |key: &str, at| Workflow {
        key: key.into(),
        state: "resolved".into(),
        by: "alice".into(),
        at,
        note: "n".into(),
    };
    for workflow in [state("ip:a", NOW), state("ip:b", NOW + 5), state("ip:c", NOW + 9)] {
        store.workflow_put(workflow, Note::none()).await.unwrap();
    }
    store.workflows_clear(vec![("ip:a".into(), NOW), ("ip:b".into(), NOW + 4)], Note::none()).await.unwrap();
    let store = reopened(store).await;
    assert_eq!(store.incidents().await.unwrap(), [row("ip:a", "2")]);
    assert_eq!(store.workflows().await.unwrap(), [state("ip:b", NOW + 5), state("ip:c", NOW + 9)]);
    store.fabric_sweep(NOW, NOW + 5).await.unwrap();
    assert_eq!(store.workflows().await.unwrap(), [state("ip:c", NOW + 9)]);
}

/// Every change with a note; each is kept with the change and with no other outcome than the real one.
pub(crate) async fn what_is_to_be_sent_of_a_change_is_kept_with_it(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    fn note<T: std::fmt::Debug>(what: &'static str) -> Note<T> {
        Note::new(move |outcome: &T| vec![format!("{what} {outcome:?}")])
    }
    let key = "user:ada";
    #[allow(clippy::ptr_arg, reason = "a note is given the outcome as it is")]
    fn issued(all: &Vec<Issued>) -> Vec<String> {
        all.iter().map(|one| format!("ban {}", matches!(one, Issued::Live(_)))).collect()
    }
    let bans = |key: &str| vec![ban(key, NOW, NOW + 100, true), ban("user:bob", NOW, NOW + 100, true)];
    store.bans_issue(bans(key), NOW, Note::new(issued)).await.unwrap();
    let step = Step { at: NOW, action: "extend".into(), ..Step::default() };
    let extended = Note::new(|ban: &Option<Ban>| vec![format!("extend {:?}", ban.as_ref().map(|ban| ban.until))]);
    store.ban_extend(key, 5, step, extended).await.unwrap();
    store.ban_lift(key, NOW, note("lift")).await.unwrap();
    store.ban_lift(key, NOW, note("lift")).await.unwrap();
    store.bans_lift_all(NOW, note("all")).await.unwrap();
    store.allow(entry(key, None), "", true, note("allow")).await.unwrap();
    store.bans_issue(bans(key), NOW + 1, Note::new(issued)).await.unwrap();
    store.disallow(key, NOW, note("disallow")).await.unwrap();
    let promoted = |all: &Vec<_>| vec![format!("promoted {}", all.len())];
    store.ledger_charge(charge(key, 50.0, NOW), RULES, NOW, Note::new(promoted)).await.unwrap();
    store.ledger_forget(key, note("forget")).await.unwrap();
    let workflow = Workflow { key: key.into(), state: "resolved".into(), at: NOW, ..Workflow::default() };
    store.workflow_put(workflow, note("state")).await.unwrap();
    store.workflows_clear(vec![(key.into(), NOW)], note("clear")).await.unwrap();
    store.ban_lift("user:nobody", NOW, Note::new(|_| Vec::new())).await.unwrap();

    let store = reopened(store).await;
    let kept = store.kept_events(0).await.unwrap();
    let texts: Vec<&str> = kept.iter().map(|kept| kept.event.as_str()).collect();
    let until = format!("extend Some({})", NOW + 105);
    let expected = [
        "ban true",
        "ban true",
        &until,
        "lift true",
        "lift false",
        "all [\"user:bob\"]",
        "allow Some([])",
        "ban false",
        "ban true",
        "disallow true",
        "promoted 0",
        "forget true",
        "state ()",
        "clear ()",
    ];
    assert_eq!(texts, expected);
    let third = kept[2].number;
    assert_eq!(store.kept_events(third).await.unwrap(), kept[3..], "those with a higher number");
    store.kept_events_told(third).await.unwrap();
    assert_eq!(store.kept_events(0).await.unwrap(), kept[3..]);
}

pub(crate) async fn what_alert_rules_have_told_and_what_waits_comes_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let told = |rule: &str, subject: &str, at| Told { rule: rule.into(), subject: subject.into(), at };
    let waiting = |id: &str, at| WaitingAlert { id: id.into(), at, json: format!("{{\"id\":\"{id}\"}}") };
    let first = AlertNotes {
        told: vec![told("r", "a", NOW), told("r", "b", NOW + 1), told("s", "a", NOW + 2)],
        waiting: vec![waiting("m2", NOW + 1), waiting("m1", NOW)],
        ..AlertNotes::default()
    };
    store.alerts_note(first).await.unwrap();
    let second = AlertNotes {
        // Told again within one look, after it was reopened.
        forgotten: vec![("r".into(), "b".into()), ("s".into(), "a".into())],
        told: vec![told("r", "a", NOW + 9), told("s", "a", NOW + 7)],
        waiting: vec![waiting("m3", NOW + 9)],
    };
    store.alerts_note(second).await.unwrap();
    store.alerts_settle(vec!["m1".into(), "never".into()]).await.unwrap();
    let store = reopened(store).await;
    assert_eq!(store.alerts_told().await.unwrap(), [told("s", "a", NOW + 7), told("r", "a", NOW + 9)]);
    assert_eq!(store.alerts_waiting().await.unwrap(), [waiting("m2", NOW + 1), waiting("m3", NOW + 9)]);
    store.alerts_sweep(NOW + 7).await.unwrap();
    assert_eq!(store.alerts_told().await.unwrap(), [told("r", "a", NOW + 9)]);

    let many = AlertNotes {
        told: (0..=MAX_TOLD).map(|at| told("r", &at.to_string(), at.into())).collect(),
        waiting: (0..=MAX_WAITING).map(|at| waiting(&at.to_string(), at.into())).collect(),
        ..AlertNotes::default()
    };
    store.alerts_note(many).await.unwrap();
    let (told, waiting) = (store.alerts_told().await.unwrap(), store.alerts_waiting().await.unwrap());
    assert_eq!((told.len(), waiting.len()), (MAX_TOLD as usize, MAX_WAITING as usize), "the oldest went");
    assert_eq!((told[0].at, waiting[0].at), (2, 3));
}

pub(crate) async fn bans_come_in_parts(store: Arc<dyn Store>) {
    for number in 0..7_u64 {
        let ban =
            Ban { reason: format!("r{}", number % 2), ..ban(&format!("user:u{number}"), NOW, NOW + 10 + number, true) };
        store.ban_issue(ban, NOW).await.unwrap();
    }
    store.ban_issue(ban("ip:10.0.0.0/8", NOW, NOW + 100, false), NOW).await.unwrap();
    let page = async |now: u64, query: BanQuery| {
        let BanPage { total, bans } = store.bans_page(now, query).await.unwrap();
        (total, bans.into_iter().map(|ban| ban.key).collect::<Vec<_>>().join(" "))
    };
    let all = BanQuery { take: 3, ..BanQuery::default() };
    assert_eq!(page(NOW, all.clone()).await, (8, "ip:10.0.0.0/8 user:u0 user:u1".into()));
    assert_eq!(page(NOW, BanQuery { skip: 6, ..all.clone() }).await, (8, "user:u5 user:u6".into()));
    assert_eq!(page(NOW, BanQuery { skip: u64::MAX, ..all.clone() }).await, (8, String::new()));
    assert_eq!(
        page(NOW + 15, BanQuery { skip: 1, ..all.clone() }).await,
        (2, "user:u6".into()),
        "what has ended is none"
    );
    let odd = BanQuery { reason: Some("r1".into()), ..all.clone() };
    assert_eq!(page(NOW, odd.clone()).await, (3, "user:u1 user:u3 user:u5".into()));
    assert_eq!(page(NOW, BanQuery { issued_by: Some("n1".into()), ..odd }).await, (0, String::new()));
    assert_eq!(page(NOW, BanQuery { issued_by: Some("n1".into()), ..all.clone() }).await, (1, "ip:10.0.0.0/8".into()));
    assert_eq!(page(NOW, BanQuery { key: Some("user:u4".into()), ..all }).await, (1, "user:u4".into()));
    assert_eq!((store.bans_count(NOW).await.unwrap(), store.bans_count(NOW + 15).await.unwrap()), (8, 2));
    let keys = ["user:u6", "user:u0", "user:none", "ip:10.0.0.0/8"].map(ToOwned::to_owned).to_vec();
    let on: Vec<String> = store.bans_on(NOW + 10, keys).await.unwrap().into_iter().map(|ban| ban.key).collect();
    assert_eq!(on, ["ip:10.0.0.0/8", "user:u6"]);
}
