//! What must hold when entities, publishers and the control plane change under a fetch.

use lists::{Failure, Fetched, Snapshot, Validators};

use super::super::super::state::FeedState;
use super::super::tracked::{Ended, TrackedFeeds};
use super::*;

/// Some list of an address.
fn list(address: &str) -> Snapshot {
    let bytes = feeds::parse(&feeds::Format::CidrLines, address.as_bytes(), 10).unwrap().addresses.to_bytes();
    Snapshot {
        list: store::feeds::FeedList { hash: snapshot::content_hash(&bytes), bytes: bytes.into() },
        entries: 1,
        ranges: 1,
        rejected: 0,
        fetched_at: 0,
        validators: Validators { etag: Some("\"one\"".into()), last_modified: None },
        source: String::new(),
    }
}

fn item(id: &str) -> Item<ThreatFeed> {
    let body = ThreatFeed { url: "http://a/".into(), ..ThreatFeed::default() };
    Item { head: Head { id: id.into(), ..Head::default() }, body }
}

/// A feed `a` that is used and planned at `now`, every hour.
fn tracked(now: u64) -> TrackedFeeds {
    let mut feeds = TrackedFeeds::default();
    take_up(&mut feeds, now);
    feeds
}

fn take_up(feeds: &mut TrackedFeeds, now: u64) {
    let item = item("a");
    feeds.take_up(&item, true);
    feeds.plan("a", plan(&item.body).unwrap(), 3600, now);
}

#[tokio::test]
async fn lists_of_a_feed_that_this_release_cannot_read_are_kept() {
    let folder = folder();
    let (world, publisher) = world(folder.path(), "192.0.2.1").await;
    let other = Publisher::start().await;
    other.lists("192.0.2.7");
    world.set("b", Some(feed(&other)));
    world.until("the second list", |world| world.finds("192.0.2.7") == Some(vec!["b".into()])).await;
    // A restart with an earlier release: `a` has a field that it does not know.
    let without = BTreeMap::from([("b".to_owned(), feed(&other))]);
    let Some(slots) = shown(&without).collection("threat-feeds").cloned() else { panic!() };
    world.entities.send_replace(Arc::new(Entities(Arc::clone(&slots), vec!["a".into()])));
    world.until("the list leaves the table", |world| world.finds("192.0.2.1") == Some(vec![])).await;
    let kept = || async { world.store.feeds().await.unwrap().into_iter().map(|feed| feed.id).collect::<Vec<_>>() };
    assert_eq!(kept().await, ["a", "b"]);
    // And back.
    let fetched = publisher.seen().len();
    world.set("b", Some(feed(&other)));
    world.until("it is back", |world| world.finds("192.0.2.1") == Some(vec!["a".into()])).await;
    assert_eq!(publisher.seen().len(), fetched, "from what was kept");
    world.entities.send_replace(Arc::new(Entities(slots, Vec::new())));
    world.until("it is deleted", |world| world.rows() == (1, 0)).await;
    assert_eq!(kept().await, ["b"]);
}

#[tokio::test]
async fn the_state_of_a_feed_survives_a_restart() {
    let folder = folder();
    let (first, publisher) = world(folder.path(), "192.0.2.1").await;
    publisher.gives("500 Oops", "", b"");
    first.refresh("a").await;
    let before = first.refresh("a").await;
    assert_eq!(before["error"], "the server answers 500");
    let failures = first.runtime.feed("a").failures;
    assert_eq!(failures, 2);
    first.store.close().await.unwrap();
    drop(first);
    let fetched = publisher.seen().len();
    let world = World::start(folder.path(), &[("a", feed(&publisher))]);
    world.until("the list from the store", |world| world.finds("192.0.2.1") == Some(vec!["a".into()])).await;
    assert_eq!((world.snapshot("a"), world.runtime.feed("a").failures), (before, 2));
    assert_eq!(publisher.seen().len(), fetched, "it waits as after any failure");
    assert!(world.told().iter().any(|told| told.starts_with("threat feed `a` fails")), "operators are told again");
    publisher.lists("192.0.2.2");
    assert_eq!(world.refresh("a").await["error"], Value::Null);
    assert!(world.told().contains(&"threat feed `a` works".to_owned()));
}

#[tokio::test]
async fn a_feed_that_is_disabled_or_deleted_answers_those_who_wait_and_breaks_off() {
    let folder = folder();
    let (world, publisher) = world(folder.path(), "192.0.2.1").await;
    let gone = [
        (Some(ThreatFeed { enabled: false, ..feed(&publisher) }), "the feed `a` was not fetched: it is not used"),
        (None, "the feed is gone, or no feeds are gathered at the moment"),
    ];
    for (next, says) in gone {
        publisher.lists("192.0.2.1");
        world.set("a", Some(feed(&publisher)));
        world.until("it is used", |world| world.finds("192.0.2.1") == Some(vec!["a".into()])).await;
        publisher.is_silent();
        let seen = publisher.seen().len();
        let refreshing = world.order(Want::Refresh { feed: "a".into(), force: false });
        let stop = async {
            world.until("the fetch", |_| publisher.seen().len() > seen).await;
            world.set("a", next);
        };
        let (answered, ()) = tokio::join!(refreshing, stop);
        assert_eq!(answered, Ordered::Refused(says.into()));
        world.until("the call breaks off", |_| publisher.seen().last().unwrap() == "given up").await;
    }
}

#[tokio::test]
async fn the_outcome_of_a_fetch_is_for_the_feed_that_began_it() {
    let folder = folder();
    let publisher = Publisher::start().await;
    publisher.has_version("one", "192.0.2.1");
    let world = World::start(folder.path(), &[("a", feed(&publisher))]);
    world.until("the list", |world| world.finds("192.0.2.1") == Some(vec!["a".into()])).await;
    world.set("a", None);
    world.until("it is gone", |world| world.rows() == (0, 0)).await;
    world.set("a", Some(feed(&publisher)));
    world.until("it is back", |world| world.finds("192.0.2.1") == Some(vec!["a".into()])).await;
    assert!(!publisher.seen().last().unwrap().contains("if-none-match"), "the one before is forgotten");

    let mut feeds = tracked(7);
    assert!(feeds.get_mut("a").unwrap().start(1).is_some());
    feeds.remove("a");
    take_up(&mut feeds, 7);
    let again = feeds.get_mut("a").unwrap();
    assert!(again.start(2).is_some());
    assert!(matches!(again.ended(1, Ok(Fetched::List(list("192.0.2.9"))), 8, 0), Ended::Ignored));
    assert_eq!((&again.state.current, again.state.failures), (&None, 0));
    assert!(matches!(again.ended(1, Err(Failure::new("late".into())), 8, 0), Ended::Ignored));
    assert!(matches!(again.ended(2, Ok(Fetched::List(list("192.0.2.1"))), 9, 0), Ended::Works));
    assert!(matches!(again.ended(2, Ok(Fetched::Unchanged), 9, 0), Ended::Ignored), "once");
}

#[test]
fn unchanged_is_no_answer_where_there_is_no_list() {
    let mut feeds = tracked(7);
    let feed = feeds.get_mut("a").unwrap();
    feed.state.validators = Validators { etag: Some("\"one\"".into()), last_modified: None };
    assert!(feed.start(1).is_some());
    let Ended::Fails(why) = feed.ended(1, Ok(Fetched::Unchanged), 8, 0) else { panic!("it is no failure") };
    assert!(why.contains("and there is none"), "{why}");
    assert_eq!((feed.state.failures, &feed.state.validators), (1, &Validators::default()), "the list is asked for");
}

#[test]
fn a_clock_that_is_set_back_delays_no_fetch() {
    let (hour, now) = (3_600_000, 1_800_000_000_000);
    let mut feeds = tracked(now);
    let feed = feeds.due(now, true).unwrap().1;
    assert!(feed.start(1).is_some());
    assert!(matches!(feed.ended(1, Ok(Fetched::List(list("192.0.2.1"))), now, u32::MAX), Ended::Works));
    assert!(feeds.due(now + hour, true).is_none(), "a tenth more than an hour");
    let back = now - 1000 * hour;
    assert!(feeds.due(back, true).is_none());
    assert!(feeds.due(back + hour + hour / 10, true).is_some(), "and not a thousand hours");
    // It failed, and the control plane was started with another clock.
    let mut feeds = TrackedFeeds::default();
    let state = FeedState {
        failures: 1,
        retry_at: now + 1000 * hour,
        current: Some(list("192.0.2.1")),
        ..FeedState::default()
    };
    let source = plan(&item("a").body).unwrap().source;
    feeds.restore("a", FeedState { source, ..state });
    take_up(&mut feeds, now);
    assert!(feeds.due(now + 12 * hour, true).is_none() && feeds.due(now + 24 * hour, true).is_some(), "at most a day");
}

#[test]
fn all_lists_together_take_no_more_than_their_room() {
    let mut feeds = tracked(7);
    let item = item("b");
    feeds.take_up(&item, true);
    let (one, two) = (list("192.0.2.1"), list("192.0.2.2"));
    let bytes = one.list.bytes.len();
    assert!(feeds.have_room_for("a", &one, bytes) && !feeds.have_room_for("a", &one, bytes - 1));
    let a = feeds.get_mut("a").unwrap();
    (a.state.previous, a.state.current) = (Some(one.clone()), Some(two));
    // Of `a` the list in force stays, as the previous one.
    assert!(feeds.have_room_for("a", &one, 2 * bytes) && !feeds.have_room_for("a", &one, 2 * bytes - 1));
    assert!(feeds.have_room_for("b", &one, 3 * bytes) && !feeds.have_room_for("b", &one, 3 * bytes - 1));
}
