//! Zones and servers that are not to be believed.

use super::*;

fn one() -> Value {
    json!({ "zones": [{ "zone": "one.test" }], "timeout_millis": 100 })
}

#[tokio::test]
async fn a_zone_that_cannot_be_believed_lists_nobody() {
    let everything = DnsServer::start();
    lists(&everything, "one.test", "127.0.0.1", &["127.0.0.2"]);
    lists(&everything, "one.test", "192.0.2.7", &["127.0.0.2"]);
    let world = World::with(everything, one());
    world.checked().await;
    assert_eq!(world.error("one.test").unwrap(), "it lists 127.0.0.1, as no list does: it lists everything");
    let unknown = format!("?{}", key_of("one.test")).into_bytes();
    assert_eq!(world.ask("192.0.2.7", 2_000).await, Some(unknown));
    assert_eq!(world.asked("one.test", "192.0.2.7"), 0, "it is not asked");
    assert_eq!(world.found("192.0.2.7").await.until, NOW + 30_000, "and soon again");
    let told = world.told();
    assert!(told[0].starts_with("DNS blocklist `one.test` fails: it lists 127.0.0.1"), "{told:?}");
    assert_eq!(world.runtime.blocklists.shown().zones["one.test"].checked_at, Some(NOW));
}

#[tokio::test]
async fn answers_that_are_no_listings_are_errors() {
    for (answer, why) in [
        (Says::Code(Rcode::NXDOMAIN), "it does not list 127.0.0.2, as every list does"),
        (Says::Code(Rcode::NOERROR), "it does not list 127.0.0.2, as every list does"),
        (Says::Code(Rcode::SERVFAIL), "the resolver answers SERVFAIL"),
        (Says::Code(Rcode::REFUSED), "the resolver answers REFUSED"),
        (Says::Silence, "no answer within 100 ms"),
        (Says::Garbage, "cannot be read"),
        (Says::DeadAlias("elsewhere.test".into()), "an alias that leads nowhere"),
        (addresses(&["127.255.255.252"]), "the name of the zone is misspelt"),
        (addresses(&["127.255.255.254"]), "it refuses questions of public resolvers"),
        (addresses(&["127.255.255.255"]), "it is asked too much"),
        (addresses(&["127.0.0.2", "127.255.255.255"]), "it is asked too much"),
        (addresses(&["127.0.0.1"]), "no list answers that"),
        (addresses(&["127.0.0.0"]), "no list answers that"),
        (addresses(&["203.0.113.5"]), "no list answers that"),
    ] {
        let dns = DnsServer::start();
        let world = World::with(dns.clone(), one());
        dns.says("2.0.0.127.one.test", Rtype::A, answer.clone());
        world.checked().await;
        let error = world.error("one.test").unwrap_or_default();
        assert!(error.contains(why), "{answer:?}: {error}");
        assert!(error.len() <= 300 * 4);
    }
}

fn addresses(all: &[&str]) -> Says {
    Says::Addresses(all.iter().map(|address| address.parse().unwrap()).collect())
}

#[tokio::test]
async fn lies_about_an_address_list_nobody_and_hold_briefly() {
    let world = World::start(json!({
        "zones": [{ "zone": "one.test" }, { "zone": "two.test" }], "timeout_millis": 100, "failed_ttl_seconds": 5,
    }));
    world.checked().await;
    let says = |last: u8, says: Says| world.dns.says(&format!("{last}.2.0.192.one.test"), Rtype::A, says);
    let lies = [
        Says::Code(Rcode::SERVFAIL),
        Says::Silence,
        Says::Garbage,
        addresses(&["127.255.255.254"]),
        addresses(&["127.0.0.1"]),
        addresses(&["203.0.113.5"]),
        addresses(&["127.0.0.2", "203.0.113.5"]),
        Says::Truncated(Box::new(Says::Half)),
    ];
    for (last, lie) in (1..).zip(&lies) {
        says(last, lie.clone());
        lists(&world.dns, "two.test", &format!("192.0.2.{last}"), &["127.0.0.4"]);
        // A zone that fails in a row is checked, and works.
        let verdict = {
            world.report(&[&format!("192.0.2.{last}")]);
            world.found(&format!("192.0.2.{last}")).await
        };
        let two = format!("{},?{}", key_of("two.test"), key_of("one.test")).into_bytes();
        assert_eq!((verdict.keys, verdict.until), (two, NOW + 5_000), "{lie:?}");
    }
    let shown = world.runtime.blocklists.shown();
    assert_eq!((shown.zones["one.test"].failed, shown.zones["two.test"].listed), (8, 8));
    assert_eq!(shown.zones["one.test"].error, None);
    // What is no lie: another id, another question and nonsense before the answer; over TCP; the records of another name beside it.
    says(101, Says::AfterStrays(Box::new(addresses(&["127.0.0.2"]))));
    says(102, Says::Truncated(Box::new(addresses(&["127.0.0.2"]))));
    says(103, Says::OfAnother("7.2.0.192.one.test".into(), Box::new(addresses(&["127.0.0.2"]))));
    world.report(&["192.0.2.101", "192.0.2.102", "192.0.2.103"]);
    assert_eq!(world.found("192.0.2.101").await.keys, key_of("one.test").into_bytes());
    assert_eq!(world.found("192.0.2.102").await.keys, key_of("one.test").into_bytes());
    assert_eq!(world.found("192.0.2.103").await.keys, b"", "records of other names are none of the question's");
}

#[tokio::test]
async fn a_zone_that_fails_is_left_alone_and_what_it_has_said_stays() {
    let world = World::start(json!({
        "zones": [{ "zone": "one.test" }, { "zone": "two.test" }], "timeout_millis": 100, "failed_ttl_seconds": 5,
    }));
    world.checked().await;
    lists(&world.dns, "one.test", "192.0.2.7", &["127.0.0.2"]);
    lists(&world.dns, "two.test", "192.0.2.7", &["127.0.0.2"]);
    world.report(&["192.0.2.7"]);
    let before = world.found("192.0.2.7").await;
    AHEAD.set(850_000);
    // It answers nothing any more.
    for name in ["2.0.0.127.one.test", "7.2.0.192.one.test", "1.2.0.192.one.test", "2.2.0.192.one.test"] {
        world.dns.says(name, Rtype::A, Says::Code(Rcode::SERVFAIL));
    }
    world.report(&["192.0.2.7"]);
    let renewed = world.until("the renewal", || world.verdict("192.0.2.7").filter(|verdict| *verdict != before)).await;
    assert_eq!(renewed.keys, before.keys, "what it has said before holds");
    world.report(&["192.0.2.1", "192.0.2.2"]);
    world.until("the failure", || world.error("one.test")).await;
    let asked = world.asked("one.test", "192.0.2.3");
    world.report(&["192.0.2.3"]);
    let left_alone = world.found("192.0.2.3").await;
    assert_eq!(left_alone.until, NOW + 850_000 + 300_000, "the other zone has answered");
    assert_eq!(left_alone.keys, format!("?{}", key_of("one.test")).into_bytes(), "rules know that this one has not");
    assert_eq!((asked, world.asked("one.test", "192.0.2.3")), (0, 0));
    // It works again after a while: seen when the resolvers change, which has zones checked at once.
    lists(&world.dns, "one.test", "127.0.0.2", &["127.0.0.2"]);
    let again = json!({
        "zones": [{ "zone": "one.test" }, { "zone": "two.test" }], "timeout_millis": 100,
        "resolvers": [world.dns.address.to_string(), world.dns.address.to_string()],
    });
    world.set(again);
    world.until("it works", || world.error("one.test").is_none().then_some(())).await;
    let told = world.told();
    assert!(told.iter().any(|told| told == "DNS blocklist `one.test` works"), "{told:?}");
    assert!(!told.iter().any(|told| told.starts_with("DNS blocklist `two.test` fails")), "{told:?}");
}

/// Two zones that list 192.0.2.7, and what is known of it.
async fn listed_by_two() -> (World, AddressVerdict) {
    let world = World::start(json!({
        "zones": [{ "zone": "one.test" }, { "zone": "two.test" }], "timeout_millis": 100, "failed_ttl_seconds": 30,
    }));
    world.checked().await;
    lists(&world.dns, "one.test", "192.0.2.7", &["127.0.0.2"]);
    lists(&world.dns, "two.test", "192.0.2.7", &["127.0.0.2"]);
    world.report(&["192.0.2.7"]);
    let verdict = world.found("192.0.2.7").await;
    (world, verdict)
}

fn fails(world: &World, names: &[&str]) {
    names.iter().for_each(|name| world.dns.says(name, Rtype::A, Says::Code(Rcode::SERVFAIL)));
}

/// Has a caller met at a time; the verdict of gateways then.
async fn meets(world: &World, ahead: u64) -> AddressVerdict {
    AHEAD.set(ahead);
    let before = world.verdict("192.0.2.7");
    world.report(&["192.0.2.7"]);
    match before {
        Some(before) if before.until > NOW + ahead && before.renew > NOW + ahead => before,
        before => {
            world
                .until("another verdict", || world.verdict("192.0.2.7").filter(|now| Some(now) != before.as_ref()))
                .await
        }
    }
}

/// Whether a verdict says that a zone lists the caller.
fn says(verdict: &AddressVerdict, zone: &str) -> bool {
    verdict.keys.split(|byte| *byte == b',').any(|key| key == key_of(zone).as_bytes())
}

#[tokio::test]
async fn a_listing_ends_in_its_time_while_its_zone_fails() {
    let (world, first) = listed_by_two().await;
    assert_eq!(first.until, NOW + 900_000);
    fails(&world, &["2.0.0.127.one.test", "7.2.0.192.one.test"]);
    let mut ahead = 812_000;
    while ahead < 900_000 {
        let verdict = meets(&world, ahead).await;
        assert!(says(&verdict, "one.test") && verdict.until <= NOW + 900_000, "at {ahead}: {verdict:?}");
        ahead += 28_000;
    }
    let verdict = meets(&world, ahead).await;
    assert!(!says(&verdict, "one.test") && says(&verdict, "two.test"), "{verdict:?}");
    let unknown = format!("?{}", key_of("one.test"));
    assert!(verdict.keys.split(|byte| *byte == b',').any(|key| key == unknown.as_bytes()), "{verdict:?}");
    // The other one fails as well: what it has said since ends in a time of its own.
    let said = ahead;
    fails(&world, &["2.0.0.127.two.test", "7.2.0.192.two.test"]);
    let mut held = 0;
    loop {
        ahead += 28_000;
        let verdict = meets(&world, ahead).await;
        assert!(!says(&verdict, "one.test"), "at {ahead}: {verdict:?}");
        if !says(&verdict, "two.test") {
            break;
        }
        held = ahead;
        assert!(verdict.until <= NOW + said + 900_000, "at {ahead}: {verdict:?}");
    }
    assert!(held > said && ahead <= said + 930_000, "held until {held}, gone at {ahead}, said at {said}");
}

#[tokio::test]
async fn a_caller_who_is_met_seldom_stays_listed_until_the_end() {
    let (world, _) = listed_by_two().await;
    fails(&world, &["2.0.0.127.one.test", "7.2.0.192.one.test"]);
    let renewed = meets(&world, 812_000).await;
    assert_eq!((says(&renewed, "one.test"), renewed.until), (true, NOW + 842_000));
    // The verdict has ended, and what the zone has said has not.
    let later = meets(&world, 860_000).await;
    assert_eq!((says(&later, "one.test"), says(&later, "two.test"), later.until), (true, true, NOW + 890_000));
}

#[tokio::test]
async fn a_zone_that_answers_delists_at_once_while_another_one_fails() {
    let (world, _) = listed_by_two().await;
    fails(&world, &["7.2.0.192.one.test"]);
    world.dns.says("7.2.0.192.two.test", Rtype::A, Says::Code(Rcode::NXDOMAIN));
    let verdict = meets(&world, 812_000).await;
    assert_eq!((says(&verdict, "one.test"), says(&verdict, "two.test")), (true, false), "{verdict:?}");
    assert_eq!(verdict.until, NOW + 842_000);
    // And lists again, for as long as a listing holds.
    lists(&world.dns, "two.test", "192.0.2.7", &["127.0.0.2"]);
    let verdict = meets(&world, 840_000).await;
    assert_eq!((says(&verdict, "one.test"), says(&verdict, "two.test")), (true, true), "{verdict:?}");
    // It answers again, and delists: nothing is taken over.
    world.dns.says("7.2.0.192.one.test", Rtype::A, Says::Code(Rcode::NXDOMAIN));
    let verdict = meets(&world, 868_000).await;
    assert_eq!(verdict.keys, key_of("two.test").into_bytes());
    assert_eq!(verdict.until, NOW + 868_000 + 900_000);
}

#[tokio::test]
async fn what_a_zone_that_lists_everything_has_said_ends_in_its_time() {
    let (world, _) = listed_by_two().await;
    for zone in ["one.test", "two.test"] {
        lists(&world.dns, zone, "127.0.0.1", &["127.0.0.2"]);
    }
    // Resolvers that change have zones checked at once.
    world.set(json!({
        "zones": [{ "zone": "one.test" }, { "zone": "two.test" }], "timeout_millis": 100, "failed_ttl_seconds": 30,
        "resolvers": [world.dns.address.to_string(), world.dns.address.to_string()],
    }));
    world.until("the lie", || world.error("one.test").and(world.error("two.test"))).await;
    let mut ahead = 812_000;
    while ahead < 900_000 {
        let verdict = meets(&world, ahead).await;
        assert!(verdict.until <= NOW + 900_000, "at {ahead}: {verdict:?}");
        ahead += 28_000;
    }
    let verdict = meets(&world, 900_000).await;
    assert!(!says(&verdict, "one.test") && !says(&verdict, "two.test"), "{verdict:?}");
}
