//! Thresholds, weights, and what is reported of each pattern.

use exchange::shared_counts;
use exchange::{Answer, Ask};
use sha1::{Digest as _, Sha1};
use snapshot::CountsUp;

use super::*;

const STUFFING: &str = "login:credential_stuffing";
const SPRAYING: &str = "login:password_spraying";
const ATTACK: &str = "login:account_under_attack";
const TAKEOVER: &str = "login:account_takeover";
const BREACHED: &str = "login:breached_password";

struct Site {
    chain: Chain,
    host: FakeHost,
}

impl Site {
    fn new(change: impl FnOnce(&mut LoginGuardStep)) -> Self {
        let mut step = step();
        change(&mut step);
        Self { chain: chain(&step), host: FakeHost::at(NOW) }
    }

    fn limits(change: impl FnOnce(&mut LoginLimits)) -> Self {
        Self::new(|step| change(step.limits.as_mut().unwrap()))
    }

    fn fail(&self, ip: &str, user: &str, password: &str) -> Outcome {
        login(&self.chain, &self.host, (ip, user, password), false)
    }

    fn succeed(&self, ip: &str, user: &str) -> Outcome {
        login(&self.chain, &self.host, (ip, user, "right"), true)
    }

    /// The number of the failure, counted in accounts of one source, at which a tag comes.
    fn accounts_until(&self, tag: &str, password: impl Fn(usize) -> String) -> Option<usize> {
        (1..100).find(|number| has(&self.fail("192.0.2.1", &format!("u{number}"), &password(*number)), tag))
    }
}

fn has(outcome: &Outcome, tag: &str) -> bool {
    outcome.tags.iter().any(|own| own == tag)
}

#[test]
fn the_accounts_of_a_source_reach_their_threshold() {
    let each = |number: usize| format!("p{number}");
    assert_eq!(Site::limits(|_| {}).accounts_until(STUFFING, each), Some(10));
    assert_eq!(Site::limits(|limits| limits.source_accounts = 4).accounts_until(STUFFING, each), Some(4));
}

#[test]
fn many_passwords_for_one_account_are_stuffing_too_and_a_repeated_one_is_not() {
    for (threshold, expected) in [(20, 20), (7, 7)] {
        let site = Site::limits(|limits| limits.source_failures = threshold);
        let at = (1..50).find(|number| has(&site.fail("192.0.2.1", "ada", &format!("p{number}")), STUFFING));
        assert_eq!(at, Some(expected));
    }
    let site = Site::limits(|_| {});
    assert!((0..500).all(|_| site.fail("192.0.2.1", "ada", "old").tags.is_empty()), "a client that repeats itself");
}

#[test]
fn weights_are_those_of_the_configuration_and_grow_past_twice_a_threshold() {
    for (weight, once, twice) in [(50.0, 50.0, 70.0), (95.0, 95.0, 100.0), (0.0, 0.0, 0.0)] {
        let site = Site::limits(|limits| limits.stuffing_weight = weight);
        let scores: Vec<f64> =
            (1..=21).map(|n| site.fail("192.0.2.1", &format!("u{n}"), &format!("p{n}")).score).collect();
        assert_eq!((scores[8], scores[9], scores[19], scores[20]), (0.0, once, once, twice));
    }
    let site = Site::limits(|limits| limits.spraying_weight = 33.0);
    (1..11).for_each(|number| {
        site.fail(&format!("192.0.{number}.1"), &format!("u{number}"), "same");
    });
    let sprayed = site.fail("192.0.99.1", "u99", "same");
    assert_eq!((sprayed.score, sprayed.tags), (33.0, vec![SPRAYING.to_owned()]));
}

#[test]
fn the_weights_of_an_attacked_account_and_of_a_breached_password_are_those_of_the_configuration() {
    let site = Site::limits(|limits| limits.account_attack_weight = 17.0);
    let attacked = |number: usize| site.fail(&format!("192.0.{number}.1"), "ada", &format!("p{number}"));
    assert_eq!(((1..=9).map(attacked).map(|outcome| outcome.score).sum::<f64>(), attacked(10).score), (0.0, 17.0));
    let mut step = LoginGuardStep { breached_wait_millis: 100, ..step() };
    step.limits.as_mut().unwrap().breached_weight = 11.0;
    let suffix = *Sha1::digest(b"hunter2")[2..].first_chunk::<8>().unwrap();
    let answer = Answer::Data(BreachedPasswords { suffixes: suffix.to_vec() }.encode_to_vec());
    let start = Start { request: request("/login", &[]), route: b"", peer: b"192.0.2.1", node: &"node".into() };
    let host = FakeHost::at(NOW);
    let mut run = Run::new(&chain(&step), start, &host);
    let _ = run.request_headers(true, &host);
    let _ = run.request_body(Body { bytes: b"user=ada&pass=hunter2", complete: true }, &host);
    let _ = run.answered(answer, &host);
    assert_eq!(run.exchange().score.total(), 11.0);
}

#[test]
fn a_source_that_is_noticed_is_signalled_before_the_backend_sees_its_next_login() {
    let site = Site::limits(|_| {});
    (1..=10).for_each(|number| {
        site.fail("192.0.2.1", &format!("u{number}"), &format!("p{number}"));
    });
    assert_eq!(site.succeed("192.0.2.1", "u77").early, [STUFFING]);
    assert_eq!(site.succeed("192.0.3.1", "u77").early, [] as [&str; 0], "another source");
    site.host.advance(1_000_000);
    assert_eq!(site.succeed("192.0.2.1", "u78").early, [] as [&str; 0], "the window is over");
}

#[test]
fn users_behind_one_address_that_log_in_at_last_are_no_attack() {
    let site = Site::limits(|_| {});
    for number in 0..60 {
        let user = format!("worker{number}");
        assert_eq!(site.fail("203.0.113.1", &user, &format!("typo{number}")).tags, [] as [&str; 0], "{number}");
        assert_eq!(site.succeed("203.0.113.1", &user).tags, [] as [&str; 0]);
    }
    assert_eq!(events(&site.host), [] as [&str; 0]);
}

#[test]
fn a_success_of_the_attacker_does_not_reset_a_count() {
    let site = Site::limits(|_| {});
    let at = (1..40).find(|number| {
        site.succeed("192.0.2.1", "mallory");
        has(&site.fail("192.0.2.1", &format!("u{number}"), &format!("p{number}")), STUFFING)
    });
    assert_eq!(at, Some(11), "one account of its own is room for a quarter of another");
}

/// A later success of the attacker's own account counts as long as its failure alone.
#[test]
fn an_own_account_does_not_end_the_count_of_passwords() {
    let site = Site::limits(|_| {});
    let own = "192.0.2.1";
    site.fail(own, "mallory", "typo");
    site.succeed(own, "mallory");
    site.host.advance(900_000);
    site.succeed(own, "mallory");
    site.host.advance(20_000);
    let at = (1..=200).find(|number| has(&site.fail(own, "victim", &format!("p{number}")), STUFFING));
    assert!(at.is_some_and(|at| at <= 25), "{at:?}");
    // The same with several accounts, of the other accounts' count.
    let site = Site::limits(|_| {});
    let all = || (0..8).map(|number| format!("own{number}"));
    all().for_each(|own| {
        site.fail("192.0.2.1", &own, "typo");
        site.succeed("192.0.2.1", &own);
    });
    site.host.advance(900_000);
    all().for_each(|own| {
        site.succeed("192.0.2.1", &own);
    });
    site.host.advance(20_000);
    let at =
        (1..=60).find(|number| has(&site.fail("192.0.2.1", &format!("u{number}"), &format!("p{number}")), STUFFING));
    // Eight accounts make room for two others.
    assert_eq!(at, Some(12));
}

#[test]
fn a_backend_that_refuses_all_its_users_is_no_attack() {
    let site = Site::limits(|_| {});
    let ip = |number: u32| format!("10.{}.{}.1", number / 200, number % 200);
    (0..400).for_each(|number| {
        site.succeed(&ip(number), &format!("user{number}"));
    });
    site.host.advance(86_400_000);
    for number in 0..400 {
        assert_eq!(site.fail(&ip(number), &format!("user{number}"), "right").tags, [] as [&str; 0], "{number}");
    }
    assert_eq!(events(&site.host), [] as [&str; 0]);
}

#[test]
fn a_source_that_attacks_the_accounts_of_its_own_users_is_reported_and_they_are_not_charged() {
    let site = Site::limits(|_| {});
    (0..60).for_each(|number| {
        site.succeed("203.0.113.1", &format!("worker{number}"));
    });
    site.host.advance(86_400_000);
    for number in 0..60 {
        let guess = format!("guess{number}");
        assert_eq!(site.fail("203.0.113.1", &format!("worker{number}"), &guess).tags, [] as [&str; 0]);
    }
    assert!(
        events(&site.host)[0].starts_with("credential stuffing: logins to 10 accounts"),
        "{:?}",
        events(&site.host)
    );
}

#[test]
fn an_account_needs_both_failures_and_sources() {
    let attacked = |sources: usize, tries: usize, site: &Site| {
        (0..tries).any(|number| {
            has(&site.fail(&format!("192.0.{}.1", number % sources), "ada", &format!("p{number}")), ATTACK)
        })
    };
    assert!(attacked(5, 10, &Site::limits(|_| {})));
    assert!(!attacked(4, 16, &Site::limits(|_| {})) && !attacked(5, 9, &Site::limits(|_| {})));
    assert!(attacked(4, 10, &Site::limits(|limits| limits.account_sources = 4)));
    assert!(attacked(5, 6, &Site::limits(|limits| limits.account_failures = 6)));
}

#[test]
fn an_account_that_is_tried_slowly_is_noticed_within_a_day() {
    let site = Site::limits(|_| {});
    let at = (1..100).find(|number| {
        site.host.advance(12 * 60_000);
        has(&site.fail(&format!("192.{number}.0.1"), "ada", &format!("p{number}")), ATTACK)
    });
    assert_eq!(at, Some(40), "after eight hours");
}

#[test]
fn the_owner_of_an_attacked_account_is_not_signalled_and_a_login_from_elsewhere_is_a_takeover() {
    let site = Site::limits(|limits| limits.takeover_weight = 66.0);
    site.succeed("198.51.100.7", "ada");
    (0..12).for_each(|number| {
        site.fail(&format!("192.0.{number}.1"), "ada", &format!("p{number}"));
    });
    assert_eq!(site.succeed("198.51.100.7", "ada").tags, [] as [&str; 0]);
    assert_eq!(site.succeed("198.51.100.99", "ada").tags, [] as [&str; 0], "the same network");
    let taken = site.succeed("203.0.113.9", "ada");
    assert_eq!((taken.tags, taken.score), (vec![ATTACK.to_owned(), TAKEOVER.to_owned()], 100.0_f64.min(40.0 + 66.0)));
}

#[test]
fn takeovers_by_a_source_reach_their_threshold() {
    for (threshold, expected) in [(3, 3), (1, 1)] {
        let site = Site::limits(|limits| limits.takeover_accounts = threshold);
        (0..12).for_each(|number| {
            site.fail("192.0.2.1", &format!("u{number}"), &format!("p{number}"));
        });
        let at = (1..10).find(|number| has(&site.succeed("192.0.2.1", &format!("v{number}")), TAKEOVER));
        assert_eq!(at, Some(expected));
    }
}

#[test]
fn a_network_of_sources_is_noticed_though_none_of_them_is() {
    let site = Site::limits(|_| {});
    let ip = |number: usize| format!("192.0.2.{number}");
    let at = (1..100).find(|number| {
        let outcome = site.fail(&ip(*number), &format!("u{number}"), &format!("p{number}"));
        assert_eq!(outcome.tags, [] as [&str; 0], "one account of a source may be its user's own");
        !events(&site.host).is_empty()
    });
    assert_eq!(at, Some(30));
    assert!(events(&site.host)[0].contains("from a network"), "{:?}", events(&site.host));
    assert_eq!(site.fail(&ip(1), "u1", "again").tags, [] as [&str; 0]);
    assert_eq!(site.fail(&ip(1), "another", "p").early, [STUFFING]);
    assert_eq!(site.succeed(&ip(200), "a user of the network").early, [] as [&str; 0]);
}

#[test]
fn the_window_is_that_of_the_configuration() {
    let within = |window_millis: u64, pause: u64| {
        let site = Site::new(|step| step.window_millis = window_millis);
        (1..30).any(|number| {
            site.host.advance(pause);
            has(&site.fail("192.0.2.1", &format!("u{number}"), &format!("p{number}")), STUFFING)
        })
    };
    assert!(within(900_000, 80_000) && !within(60_000, 80_000) && within(60_000, 5_000));
}

#[test]
fn realms_count_apart_and_routes_of_one_realm_together() {
    let site = |realm: &str| Site::new(|step| step.realm = realm.to_owned());
    let (shop, also, staff) = (site("shop"), site("shop"), site("staff"));
    let fail = |chain: &Chain, number: usize| {
        has(&login(chain, &shop.host, ("192.0.2.1", &format!("u{number}"), &format!("p{number}")), false), STUFFING)
    };
    (0..5).for_each(|number| assert!(!fail(&shop.chain, number)));
    (5..10).for_each(|number| assert!(!fail(&staff.chain, number)));
    (5..9).for_each(|number| assert!(!fail(&also.chain, number)));
    assert!(fail(&also.chain, 9));
}

#[test]
fn a_pattern_is_reported_once_a_minute_and_signalled_each_time() {
    let site = Site::limits(|_| {});
    let told =
        (1..=60).filter(|number| has(&site.fail("192.0.2.1", &format!("u{number}"), &format!("p{number}")), STUFFING));
    assert_eq!(told.count(), 51);
    let event = site.host.events_json().remove(0);
    assert_eq!((&event["event"]["category"], &event["event"]["outcome"]), (&"login".into(), &"observed".into()));
    assert_eq!((&event["event"]["action"], &event["source"]["ip"]), (&"log".into(), &"192.0.2.1".into()));
    let of_source = || events(&site.host).iter().filter(|event| event.contains("from one source")).count();
    assert_eq!(of_source(), 1);
    site.host.advance(60_000);
    site.fail("192.0.2.1", "u61", "p61");
    assert_eq!(of_source(), 2);
}

#[test]
fn one_attempt_of_a_source_per_node_is_seen() {
    // Twenty gateways with one worker each, and the counts of a real control plane between them.
    let hub = ::counts::Counts::new([7; 16], 1, || NOW);
    let nodes: Vec<Site> = (0..20).map(|_| Site::limits(|_| {})).collect();
    let name = |number: usize| format!("node-{number}");
    for (number, node) in nodes.iter().enumerate() {
        let _link = hub.linked(&name(number), 1);
        shared_counts::learn(node.host.shared(), &hub.greeting(), NOW);
        // Any request introduces what the node counts.
        send(&node.chain, &node.host, "203.0.113.1", (request("/", &[]), b""), status(200));
    }
    let carry = || {
        for (number, node) in nodes.iter().enumerate() {
            while let Some(up) = shared_counts::news(node.host.shared(), NOW) {
                hub.take(&name(number), &up);
                taken(node, &up);
            }
        }
        for (number, node) in nodes.iter().enumerate() {
            while let Some(down) = hub.news(&name(number), 1) {
                shared_counts::learn(node.host.shared(), &down, NOW);
            }
        }
    };
    carry();
    let at = (0..20).find(|number| {
        let told = has(&nodes[*number].fail("192.0.2.1", &format!("u{number}"), &format!("p{number}")), STUFFING);
        carry();
        told
    });
    assert_eq!(at, Some(9), "the tenth login, on the tenth node");
    // A client that repeats one login on every node counts once.
    let repeated = nodes.iter().any(|node| !node.fail("192.0.9.9", "ada", "old").tags.is_empty());
    assert!(!repeated);
}

/// Tells a node that the control plane has taken a message.
fn taken(node: &Site, up: &CountsUp) {
    let down = snapshot::CountsDown { now_millis: NOW, taken: up.number, ..snapshot::CountsDown::default() };
    shared_counts::learn(node.host.shared(), &down, NOW);
}

/// A login whose password is looked up: the question, and the tags once it is answered.
fn asked(
    chain: &Chain,
    host: &FakeHost,
    (user, password): (&str, &str),
    answer: &Answer,
) -> (Option<Ask>, Vec<String>) {
    let body = format!("user={user}&pass={password}");
    let start = Start { request: request("/login", &[]), route: b"", peer: b"192.0.2.1", node: &"node".into() };
    let mut run = Run::new(chain, start, host);
    let _ = run.request_headers(true, host);
    let flow = run.request_body(Body { bytes: body.as_bytes(), complete: true }, host);
    let ask = if let Flow::Ask(ask) = flow { Some(ask) } else { None };
    if ask.is_some() {
        assert_eq!(run.answered(answer.clone(), host), Flow::Continue);
    }
    let _ = run.response_headers(status(302), false, host);
    run.finish(host);
    (ask, run.exchange().score.tags().into_iter().map(str::to_owned).collect())
}

#[test]
fn breached_passwords_are_found_and_the_question_has_twenty_bits() {
    let step = LoginGuardStep { breached_wait_millis: 150, ..step() };
    let (chain, host) = (chain(&step), FakeHost::at(NOW));
    let hash = Sha1::digest(b"hunter2");
    let mut suffixes = [[0_u8; 8], [0xff; 8], *hash[2..].first_chunk().unwrap()];
    suffixes.sort_unstable();
    let answer = Answer::Data(BreachedPasswords { suffixes: suffixes.concat() }.encode_to_vec());
    let (ask, tags) = asked(&chain, &host, ("ada", "hunter2"), &answer);
    let ask = ask.unwrap();
    assert_eq!((tags.as_slice(), ask.millis), (&[BREACHED.to_owned()][..], 150));
    let question = ask.question.read::<BreachedRange>().unwrap();
    let hex = snapshot::hex(&hash);
    assert_eq!(format!("{:05x}", question.prefix), hex[..5]);
    assert!(ask.question.data.len() <= 5, "no more than the prefix: {:?}", ask.question.data);
    let told = events(&host);
    assert!(
        told[0].starts_with("breached password: a login with a breached password succeeded; the account is "),
        "{told:?}"
    );
    // What was answered is known for an hour.
    let (ask, tags) = asked(&chain, &host, ("eve", "hunter2"), &Answer::Unavailable);
    assert_eq!((ask, tags.as_slice()), (None, &[BREACHED.to_owned()][..]));
    host.advance(3_600_001);
    for answer in [Answer::Unavailable, Answer::NoControlPlane, Answer::Data(vec![0xff])] {
        let (ask, tags) = asked(&chain, &host, ("ada", "hunter2"), &answer);
        assert!(ask.is_some() && tags.is_empty(), "without an answer the login goes on");
    }
    let (ask, tags) = asked(&chain, &host, ("ada", "hunter2"), &Answer::Data(Vec::new()));
    assert!(ask.is_some() && tags.is_empty(), "it is not breached");
    let plain = self::chain(&super::step());
    assert_eq!(asked(&plain, &host, ("ada", "hunter2"), &answer).0, None, "it is not asked for");
}

#[test]
fn a_flood_of_accounts_and_sources_stays_bounded() {
    let site = Site::limits(|_| {});
    let mut bytes = 0;
    for number in 0..60_000_u32 {
        let ip = format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255);
        site.fail(&ip, &format!("u{number}"), &format!("p{number}"));
        site.host.events.borrow_mut().clear();
        if number == 40_000 {
            bytes = site.host.shared_data.bytes();
        }
    }
    let after = site.host.shared_data.bytes();
    println!("{bytes} bytes after 40,000 sources, {after} after 60,000");
    assert!(after < 64 << 20, "{after}");
}

#[test]
fn credentials_in_the_head_count_although_the_body_is_withheld() {
    let host = FakeHost::at(NOW);
    let chain = chain(&step());
    let attempt = |path: &str| {
        let start = Start { request: request(path, &[]), route: b"", peer: b"192.0.2.1:1", node: &"node".into() };
        let mut run = Run::new(&chain, start, &host);
        assert!(matches!(run.request_headers(true, &host), Flow::Buffer { .. }));
        assert_eq!(run.overtaken(401, false, &host), Some(Flow::Continue));
        assert_eq!(run.response_headers(status(401), false, &host), Flow::Continue);
        run.finish(&host);
        run.exchange().score.tags().join(" ")
    };
    let tags: Vec<_> = (0..15).map(|at| attempt(&format!("/login?username=u{at}&password=p"))).collect();
    assert!(tags.iter().any(|tags| !tags.is_empty()), "fifteen accounts of one source");
    // A request that has none is no login.
    let host = FakeHost::at(NOW);
    let start = Start { request: request("/login", &[]), route: b"", peer: b"192.0.2.2:1", node: &"node".into() };
    let mut run = Run::new(&chain, start, &host);
    assert!(matches!(run.request_headers(true, &host), Flow::Buffer { .. }));
    assert_eq!(run.overtaken(401, false, &host), Some(Flow::Continue));
    assert_eq!(run.exchange().score.tags().join(" "), "");
}
