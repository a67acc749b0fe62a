//! How many bans there may be, and which give way.

use std::sync::Arc;

use store::Store;
use store::fabric::{
    Ban, Issued, MAX_ALLOWED_RANGES, MAX_BANS, MAX_BANS_PER_ADDRESS, MAX_BANS_PER_NETWORK, MAX_BANS_UNPLACED,
    MAX_RANGES, Note,
};

use super::{NOW, ban, by, entry, from, keys, live};

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

pub(crate) async fn a_range_by_hand_has_room_among_those_of_nobodys_hand(store: Arc<dyn Store>) {
    let range = |number: u32| format!("ip:10.{}.{}.0/24", number / 256, number % 256);
    let ranges = (0..MAX_RANGES).map(|number| ban(&range(number), NOW, NOW + 1000, false));
    store.bans_issue(ranges.collect(), NOW, Note::none()).await.unwrap();
    let one_more = |by_hand| ban(&range(MAX_RANGES), NOW, NOW + 1000, by_hand);
    assert_eq!(store.ban_issue(one_more(false), NOW).await.unwrap(), Issued::Full);
    live(store.ban_issue(one_more(true), NOW).await.unwrap());
    assert_eq!(store.bans(NOW).await.unwrap().len(), MAX_RANGES as usize);
}

pub(crate) async fn networks_of_ipv6_are_as_many_as_addresses(store: Arc<dyn Store>) {
    let net = |number: u32| format!("ip:2001:{:x}:{:x}::/48", number / 256, number % 256);
    let many = (0..MAX_RANGES + 10).map(|number| ban(&net(number), NOW, NOW + 10, true));
    let issued = store.bans_issue(many.collect(), NOW, Note::none()).await.unwrap();
    assert!(issued.iter().all(|issued| matches!(issued, Issued::Live(_))));
}
