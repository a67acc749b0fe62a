//! The gatherer as a whole.

use std::io::Write as _;

use super::*;

#[tokio::test]
async fn decisions_come_and_go() {
    let folder = folder();
    let all = [
        ban(1, "192.0.2.1"),
        decision(2, "Range", "198.51.100.77/24", "captcha", "1h"),
        decision(3, "Country", "CN", "ban", "1h"),
        decision(4, "AS", "64496", "captcha", "1h"),
        decision(5, "username", "bob", "ban", "1h"),
    ];
    let service = Service::start().await;
    service.has(&all);
    let scopes = serde_json::from_value(serde_json::json!(["as", "ip", "range", "country"])).unwrap();
    let own = SvcBouncer { scopes, origins_filter: vec!["cscli".into(), "a b&c".into()], ..bouncer(&service) };
    let world = World::start(folder.path(), &[("a", own)]);
    world.until("the list", |world| world.bans("192.0.2.1")).await;
    assert_eq!(world.finds("198.51.100.9"), Some((vec!["a".into()], false)), "no ban refuses nothing by itself");
    assert_eq!(world.finds("198.51.101.0"), Some((vec![], false)));
    let key = bouncer_key("a");
    assert_eq!((world.named("country:cn"), world.named("as:64496")), (Some(key.clone()), Some(format!("{key}~"))));
    let head = service.seen().remove(0);
    let query = "/v1/decisions/stream?scopes=ip,range,country,as&origins=cscli,a%20b%26c&startup=true";
    assert!(head.contains(query) && head.contains(&format!("x-api-key: {KEY}")), "{head}");
    assert!(world.log.lock().unwrap().iter().any(|line| line.contains("scope `username`")), "{:?}", world.log);

    service.changes(&[ban(6, "192.0.2.6")], &[ban(99, "192.0.2.1")]);
    world.until("the change", |world| world.bans("192.0.2.6")).await;
    assert!(!world.bans("192.0.2.1"));
    // Repeated, and deleted and decided again at once.
    service.changes(&[ban(7, "192.0.2.6")], &[ban(99, "192.0.2.1"), ban(6, "192.0.2.6")]);
    let seen = service.seen().len();
    world.until("one more call", |_| service.seen().len() > seen + 1).await;
    assert!(world.bans("192.0.2.6"));
    let shown = world.runtime.bouncer("a");
    assert_eq!((shown.exact, shown.ranges, shown.named, shown.decisions), (1, 1, 2, 4));
    assert!(shown.initialized && shown.last_error.is_none() && shown.last_sync.is_some());
    assert_eq!(service.starts(), 1, "everything was asked for once");
}

/// What the error says, and how the service answers.
type Lie<'a> = (&'static str, Box<dyn Fn() + 'a>);

#[tokio::test]
async fn a_service_that_fails_or_lies_takes_nothing_away() {
    let folder = folder();
    let (world, service) = world(folder.path(), &[ban(1, "192.0.2.1")]).await;
    let whole = format!("{{\"deleted\":null,\"new\":[{},{}]}}", ban(1, "192.0.2.1"), ban(2, "192.0.2.2"));
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(whole.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{whole}");
    let lies: Vec<Lie<'_>> = vec![
        (
            "refuses the key (403)",
            Box::new(|| service.gives("403 Forbidden", "", br#"{"message":"access forbidden"}"#)),
        ),
        ("refuses the key (401)", Box::new(|| service.gives("401 Unauthorized", "", b""))),
        ("answers 500", Box::new(|| service.gives("500 Oops", "", whole.as_bytes()))),
        ("answers 304", Box::new(|| service.gives("304 Not Modified", "", b""))),
        ("answers 302", Box::new(|| service.gives("302 Found", "location: http://127.0.0.1:1/\r\n", b""))),
        ("no complete list", Box::new(|| service.gives("200 OK", "", &whole.as_bytes()[..whole.len() - 3]))),
        ("no complete list", Box::new(|| service.gives("200 OK", "", b"<html>secret</html>"))),
        ("no complete list", Box::new(|| service.gives("200 OK", "", br#"{"message":"database is locked"}"#))),
        ("incomplete", Box::new(|| service.gives("200 OK", "content-encoding: gzip\r\n", &packed[..packed.len() - 9]))),
        ("breaks off", Box::new(|| service.sends(cut.as_bytes()))),
        ("no complete answer within 2 s", Box::new(|| service.is_silent())),
        ("lists 0 decisions, and 1 are in force", Box::new(|| service.has(&[]))),
    ];
    world.told();
    for (says, lies) in &lies {
        lies();
        let error = world.synced("a").await.unwrap_or_default();
        assert!(error.contains(says), "{says}: {error}");
        assert!(!error.contains(KEY) && !error.contains("secret") && !error.contains("locked"), "{error}");
        assert!(world.bans("192.0.2.1") && !world.bans("192.0.2.2"), "{says}");
        assert!(world.told().iter().any(|told| told.starts_with("bouncer `a` fails") && told.contains(says)), "{says}");
        // What fails is asked for everything again.
        service.has(&[ban(1, "192.0.2.1")]);
        assert_eq!(world.synced("a").await, None, "after {says}");
        assert!(world.told().contains(&"bouncer `a` works".to_owned()));
    }
    service.gives("200 OK", "content-encoding: gzip\r\n", &packed);
    assert_eq!(world.synced("a").await, None);
    assert!(world.bans("192.0.2.2"), "compressed");
}

#[tokio::test]
async fn an_answer_without_an_end_is_bounded() {
    let folder = folder();
    let service = Service::start().await;
    service.never_ends();
    let own = SvcBouncer { timeout_millis: 3_000, ..bouncer(&service) };
    let world = World::start(folder.path(), &[("a", own)]);
    world.until("the end", |world| world.runtime.bouncer("a").last_error.is_some()).await;
    let error = world.runtime.bouncer("a").last_error.clone().unwrap();
    assert!(error.contains("longer than") || error.contains("within 3 s"), "{error}");
    assert!(world.finds("192.0.2.1").is_none(), "without a list nothing is published");
}

#[tokio::test]
async fn a_short_list_is_believed_when_it_comes_again() {
    let folder = folder();
    let all: Vec<String> = (1..=20).map(|number| ban(number, &format!("192.0.2.{number}"))).collect();
    let (world, service) = world(folder.path(), &all).await;
    service.has(&[ban(77, "192.0.2.77")]);
    let error = world.synced("a").await.unwrap();
    assert!(error.contains("lists 1 decisions, and 20 are in force"), "{error}");
    assert!(world.bans("192.0.2.1") && world.bans("192.0.2.77"), "what is new counts at once");
    world.until("the next list", |world| !world.bans("192.0.2.1")).await;
    assert_eq!((world.runtime.bouncer("a").last_error.clone(), world.bans("192.0.2.77")), (None, true));
}

#[tokio::test]
async fn one_value_in_two_spellings_changes_no_deletion_of_others() {
    let folder = folder();
    let all = [
        ban(1, "203.0.113.9"),
        ban(2, "203.0.113.9/32"),
        decision(10, "Ip", "198.51.100.1", "ban", "4h"),
        ban(11, "198.51.100.2"),
    ];
    let (world, service) = world(folder.path(), &all).await;
    assert!(world.bans("198.51.100.1") && world.bans("203.0.113.9"));
    service.changes(&[], &[ban(9, "198.51.100.1"), ban(1, "203.0.113.9")]);
    world.until("the deletion", |world| !world.bans("198.51.100.1")).await;
    // Repeated, as services do for two seconds.
    service.changes(&[ban(12, "198.51.100.3")], &[ban(9, "198.51.100.1"), ban(1, "203.0.113.9")]);
    world.until("the change", |world| world.bans("198.51.100.3")).await;
    assert!(world.bans("203.0.113.9"), "the other spelling stays");
    service.changes(&[], &[ban(2, "203.0.113.9/32")]);
    world.until("the deletion of both", |world| !world.bans("203.0.113.9")).await;
    assert_eq!((service.starts(), world.bans("198.51.100.2")), (1, true));
}

/// How many decisions of `a` the store has, and by which plan.
fn kept(world: &World) -> Option<(usize, String)> {
    let store = Arc::clone(&world.store);
    let bytes = futures_now(async move { store.document(&keep::name("a")).await.unwrap() })?;
    keep::decode(&bytes).map(|kept| (kept.decisions.len(), kept.source))
}

#[tokio::test]
async fn decisions_that_have_become_none_do_not_come_back_after_a_restart() {
    let folder = folder();
    let (first, service) = world(folder.path(), &[ban(1, "192.0.2.1"), ban(2, "192.0.2.2")]).await;
    first.until("they are kept", |world| kept(world).is_some_and(|(count, _)| count == 2)).await;
    service.gives("200 OK", "", br#"{"new":null,"deleted":null}"#);
    assert!(first.synced("a").await.unwrap().contains("lists 0 decisions, and 2 are in force"));
    first.until("the next list", |world| !world.bans("192.0.2.1")).await;
    first.until("it is kept", |world| kept(world).is_some_and(|(count, _)| count == 0)).await;
    first.store.close().await.unwrap();
    drop(first);
    service.gives("500 Oops", "", b"");
    let world = World::start(folder.path(), &[("a", bouncer(&service))]);
    world.until("the failure", |world| world.runtime.bouncer("a").last_error.is_some()).await;
    assert!(!world.bans("192.0.2.1") && world.runtime.bouncer("a").initialized);
}

#[tokio::test]
async fn decisions_of_a_service_that_has_moved_are_those_of_the_new_one() {
    let folder = folder();
    let (world, _service) = world(folder.path(), &[ban(1, "192.0.2.1")]).await;
    world.until("it is kept", |world| kept(world).is_some_and(|(count, _)| count == 1)).await;
    let before = kept(&world);
    let other = Service::start().await;
    world.set("a", Some(bouncer(&other)));
    world.until("the other list", |world| !world.bans("192.0.2.1")).await;
    world.until("it is kept", |world| kept(world).is_some_and(|(count, _)| count == 0)).await;
    // A third one has none either: what is kept is by its plan.
    let between = kept(&world);
    assert_ne!(before.map(|(_, source)| source), between.clone().map(|(_, source)| source));
    let third = Service::start().await;
    world.set("a", Some(bouncer(&third)));
    world.until("the third plan", |world| kept(world).is_some_and(|kept| Some(kept) != between)).await;
}

#[tokio::test]
async fn a_change_that_is_lost_is_made_up_for() {
    let folder = folder();
    let (world, service) = world(folder.path(), &[ban(1, "192.0.2.1")]).await;
    service.has(&[ban(1, "192.0.2.1"), ban(2, "192.0.2.2")]);
    service.then("200 OK", br#"{"new":[{"duration":"1h","id":2,"origin":"cscli","sco"#);
    world.until("what was cut off", |world| world.bans("192.0.2.2")).await;
    assert_eq!(service.starts(), 2);
}

#[tokio::test]
async fn decisions_survive_a_restart_without_their_service_and_end_by_our_clock() {
    let folder = folder();
    let short = decision(2, "Ip", "192.0.2.2", "ban", "10m");
    let (first, service) = world(folder.path(), &[ban(1, "192.0.2.1"), short]).await;
    service.changes(&[ban(3, "192.0.2.3")], &[]);
    first.until("the change", |world| world.bans("192.0.2.3")).await;
    first
        .until("it is kept", |world| {
            let store = Arc::clone(&world.store);
            let kept = futures_now(async move { store.document(&keep::name("a")).await.unwrap() });
            kept.and_then(|bytes| keep::decode(&bytes)).is_some_and(|kept| kept.decisions.len() == 3)
        })
        .await;
    first.store.close().await.unwrap();
    drop(first);
    service.gives("500 Oops", "", b"");
    AHEAD.set(5 * 60_000);
    let world = World::start(folder.path(), &[("a", bouncer(&service))]);
    world.until("the decisions from the store", |world| world.bans("192.0.2.1") && world.bans("192.0.2.3")).await;
    assert!(world.bans("192.0.2.2"));
    world.until("the failure", |world| world.runtime.bouncer("a").last_error.is_some()).await;
    assert!(world.runtime.bouncer("a").initialized);
    AHEAD.set(11 * 60_000);
    // The gatherer looks at the clock when something happens.
    world.sync("a").await;
    world.until("the end of a decision", |world| !world.bans("192.0.2.2")).await;
    assert!(world.bans("192.0.2.1"), "of an hour");
    world.set("a", None);
    world.until("the end of the bouncer", |world| !world.bans("192.0.2.1")).await;
    world
        .until("it is forgotten", |world| {
            let store = Arc::clone(&world.store);
            futures_now(async move { store.document(&keep::name("a")).await.unwrap() }).is_none()
        })
        .await;
}

/// The outcome of a future in another thread, for closures.
fn futures_now<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    std::thread::spawn(move || runtime().block_on(work)).join().unwrap()
}

#[tokio::test]
async fn bouncers_that_are_disabled_or_share_a_key_do_not_count() {
    let folder = folder();
    let (world, service) = world(folder.path(), &[ban(1, "192.0.2.1")]).await;
    world.set("b", Some(bouncer(&service)));
    world.until("the refusal", |world| world.runtime.bouncer("b").last_error.is_some()).await;
    let why = world.runtime.bouncer("b").last_error.clone().unwrap();
    assert!(why.contains("the key of `a`") && !why.contains(KEY), "{why}");
    let other = Service::start().await;
    other.has(&[ban(1, "192.0.2.1"), decision(1, "Range", "192.0.2.0/24", "throttle", "1h")]);
    world.set("b", Some(bouncer(&other)));
    world.until("both", |world| world.finds("192.0.2.1").unwrap().0.len() == 2).await;
    assert_eq!(world.finds("192.0.2.9"), Some((vec!["b".into()], false)));
    // A deletion of one takes nothing from the other.
    service.changes(&[], &[ban(1, "192.0.2.1")]);
    world.until("the deletion", |world| world.finds("192.0.2.1") == Some((vec!["b".into()], true))).await;
    world.set("b", Some(SvcBouncer { enabled: false, ..bouncer(&other) }));
    world.until("the end of a disabled one", |world| world.finds("192.0.2.1") == Some((vec![], false))).await;
    assert_eq!(world.sync("b").await, Ordered::Refused("the bouncer `b` is not used".into()));
    assert!(world.told().contains(&"bouncer `b` ends".to_owned()));
}

#[tokio::test]
async fn what_a_bouncer_that_is_gone_had_decided_leaves_with_it() {
    let folder = folder();
    let (world, _service) = world(folder.path(), &[ban(1, "192.0.2.1")]).await;
    // Of the other one nothing is known, and it is slow.
    let other = Service::start().await;
    other.is_silent();
    world.set("b", Some(SvcBouncer { timeout_millis: 60_000, ..bouncer(&other) }));
    world.until("the call of the other", |_| !other.seen().is_empty()).await;
    world.set("a", None);
    world.until("the end of the first", |world| world.finds("192.0.2.1") == Some((vec![], false))).await;
}

#[tokio::test]
async fn slow_services_keep_no_other_waiting() {
    let folder = folder();
    let mut slow = Vec::new();
    for _ in 0..7 {
        slow.push(Service::start().await);
    }
    slow.iter().for_each(Service::is_silent);
    let quick = Service::start().await;
    quick.has(&[ban(1, "192.0.2.1")]);
    let patient = |service| SvcBouncer { timeout_millis: 60_000, ..bouncer(service) };
    let ids: Vec<String> = (0..7).map(|number| format!("a{number}")).collect();
    let mut all: Vec<(&str, SvcBouncer)> = ids.iter().map(String::as_str).zip(slow.iter().map(patient)).collect();
    all.push(("z", patient(&quick)));
    let world = World::start(folder.path(), &all);
    world.until("the last one", |world| world.bans("192.0.2.1")).await;
    assert!(slow.iter().all(|service| service.seen().len() == 1), "all of them are being asked");
}

#[tokio::test]
async fn a_private_address_is_not_called_unless_the_bouncer_says_so() {
    let folder = folder();
    // The operator allows 127.0.0.1, and nothing else on this machine.
    let service = Service::start_on("127.0.0.2").await;
    service.has(&[ban(1, "192.0.2.1")]);
    let outside = SvcBouncer { allow_private: false, ..bouncer(&service) };
    let world = World::start(folder.path(), &[("a", outside.clone())]);
    world.until("the refusal", |world| world.runtime.bouncer("a").last_error.is_some()).await;
    assert!(world.runtime.bouncer("a").last_error.as_ref().unwrap().contains("127.0.0.2 is a loopback address"));
    assert!(service.seen().is_empty());
    world.set("a", Some(SvcBouncer { allow_private: true, ..outside }));
    world.until("the list", |world| world.bans("192.0.2.1")).await;
    assert!(SvcBouncer::default().reaches_private(), "the default address is on this machine");
    assert!(!SvcBouncer { lapi_url: "http://127.0.0.1:8081".into(), ..SvcBouncer::default() }.reaches_private());
}

#[tokio::test]
async fn syncs_of_one_bouncer_at_the_same_time_are_few_calls() {
    let folder = folder();
    let (world, service) = world(folder.path(), &[ban(1, "192.0.2.1")]).await;
    let before = service.starts();
    let runtime = Arc::clone(&world.runtime);
    let wants = vec![Want::Sync { bouncer: "a".into() }; 20];
    let outcomes = tokio::task::spawn_blocking(move || runtime.order(wants)).await.unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome == Ordered::Done), "{outcomes:?}");
    let calls = service.starts() - before;
    assert!((1..20).contains(&calls), "{calls} calls");
    assert_eq!(
        world.sync("gone").await,
        Ordered::Refused("the bouncer is gone, or no bouncers are gathered at the moment".into())
    );
}

#[tokio::test]
async fn a_million_decisions_are_in_force_and_ten_more_take_little() {
    let folder = folder();
    let service = Service::start().await;
    let address = |number: u32| std::net::Ipv4Addr::from(0x0c00_0000 + 2 * number).to_string();
    let all: Vec<String> = (0..1_000_000).map(|number| ban(i64::from(number), &address(number))).collect();
    service.has(&all);
    let own = SvcBouncer { timeout_millis: 120_000, ..bouncer(&service) };
    let begun = Instant::now();
    let world = World::start(folder.path(), &[("a", own)]);
    for _ in 0..30 {
        if world.material.get(DECISIONS).is_some() {
            break;
        }
        world.until("something happens", |_| begun.elapsed() > Duration::from_secs(1)).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    println!("a million decisions were in force after {:?}", begun.elapsed());
    assert!(world.bans(&address(999_999)));
    let published = world.material.get(DECISIONS).unwrap();
    let (state, size) =
        (published.base_state(), published.chunks(DECISIONS).map(|chunk| chunk.data.len()).sum::<usize>());
    let ten: Vec<String> = (0..10).map(|number| ban(number, &format!("203.0.113.{}", 2 * number))).collect();
    let changes = *world.material.changes().borrow();
    service.changes(&ten, &[]);
    let begun = Instant::now();
    while *world.material.changes().borrow() < changes + 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(begun.elapsed() < Duration::from_secs(120));
    }
    println!("ten more were published {:?} after they were there to ask for", begun.elapsed());
    let Some(Next::Change(change, _)) = world.material.next(DECISIONS, TableKind::Ranges, Some(state)) else {
        panic!("a base")
    };
    println!("a base of {size} bytes, a change of {} bytes", change.data.len());
    assert!(change.data.len() < 1_000 && world.bans("203.0.113.0"));
}
