//! Bans, lifts and the allowlist.

use std::sync::Arc;

use base::identity::Identity;
use base::search::Search;
use store::Store;
use store::fabric::{
    Ban, BanPage, BanQuery, Issued, LAST_MOMENT, LIFT_KEPT_MILLIS, MAX_STEPS, NEIGHBOURS_48, NEIGHBOURS_56, Note, Step,
};

use super::{NOW, ban, entry, from, keys, live};

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
    let quoted = Ban {
        reason: "a \"quoted\" \\ word, ÄRGER".into(),
        tags: vec!["waf:sqli".into()],
        ..ban("user:zoe", NOW, NOW + 90, true)
    };
    store.ban_issue(quoted, NOW).await.unwrap();
    let search = async |text: &str, skip: u64| {
        let search = Search::of(text, Identity::parse);
        page(NOW, BanQuery { search, skip, take: 2, ..BanQuery::default() }).await
    };
    assert_eq!(search("R1", 0).await, (3, "user:u1 user:u3".into()), "in the reason, in either case");
    assert_eq!(search("r1", 2).await, (3, "user:u5".into()));
    assert_eq!(search("U4", 0).await, (1, "user:u4".into()), "in the key");
    assert_eq!(search("n1", 0).await, (1, "ip:10.0.0.0/8".into()), "in the issuer");
    assert_eq!(search("F:SQL", 0).await, (1, "user:zoe".into()), "in a tag");
    for text in ["\"quoted\"", "\\ word", "ärger", "D\" \\ W"] {
        assert_eq!(search(text, 0).await, (1, "user:zoe".into()), "{text}");
    }
    for text in ["timeline", "issued_at", "null", "\\\"", "{"] {
        assert_eq!(search(text, 0).await, (0, String::new()), "{text} is none of the texts");
    }
    assert_eq!(search("10.0.0.9/8", 0).await, (1, "ip:10.0.0.0/8".into()), "the identity that it is");
    let both = BanQuery {
        reason: Some("r0".into()),
        search: Search::of("user:u2", Identity::parse),
        take: 9,
        ..BanQuery::default()
    };
    assert_eq!(page(NOW, both).await, (1, "user:u2".into()));
    let keys = ["user:u6", "user:u0", "user:none", "ip:10.0.0.0/8"].map(ToOwned::to_owned).to_vec();
    let on: Vec<String> = store.bans_on(NOW + 10, keys).await.unwrap().into_iter().map(|ban| ban.key).collect();
    assert_eq!(on, ["ip:10.0.0.0/8", "user:u6"]);
    for (keys, expected) in [
        (vec!["user:u6", "user:u0", "user:none"], vec!["user:u6"]),
        (vec!["user:u6", "ip:10.0.0.0/8"], vec!["user:u6", "ip:10.0.0.0/8"]),
        (vec!["ip:10.0.0.9"], vec![]),
        (vec![], vec![]),
    ] {
        let keys = keys.into_iter().map(ToOwned::to_owned).collect();
        let named = store.bans_named(NOW + 10, keys).await.unwrap();
        assert_eq!(named.into_iter().map(|ban| ban.key).collect::<Vec<_>>(), expected, "and no range around them");
    }
    let mut keys = store.bans_keys(NOW + 10).await.unwrap();
    keys.sort();
    let standing: Vec<String> = store.bans(NOW + 10).await.unwrap().into_iter().map(|ban| ban.key).collect();
    assert_eq!(keys, standing);
}
