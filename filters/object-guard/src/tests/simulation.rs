//! Two weeks of ordinary consumers of an API, and attacks. All of it is drawn from seeds, with a clock that stands until it is moved.

use super::*;

const DAY: u64 = 86_400;
const DAYS: u64 = 14;

/// Random numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// Whether something comes that comes once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of so many, the first ones far more often.
    fn popular(&mut self, among: u64) -> u64 {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (share.powi(4) * among as f64) as u64
    }
}

/// The requests of a consumer in one minute, by the time in seconds: kind, number and status.
type Consumer = (&'static str, fn(u64, &mut Random) -> Vec<(&'static str, u64, u16)>);

/// Whether people work at this time.
fn is_day(time: u64) -> bool {
    (8..20).contains(&(time % DAY / 3600)) && time / DAY % 7 < 5
}

const CONSUMERS: [Consumer; 7] = [
    // One who looks at products for a while, now and then, and follows a stale link at times.
    ("visitor", |_, random| {
        if !random.once_in(20) {
            return Vec::new();
        }
        let views = 1 + random.below(12);
        let view = |_| {
            let id = random.popular(20_000);
            ("products", id, if random.once_in(30) { 404 } else { 200 })
        };
        (0..views).map(view).collect()
    }),
    // A page with forty tiles that polls them every five minutes.
    ("dashboard", |time, _| {
        (0..if time % 300 == 0 { 40 } else { 0 }).map(|tile| ("tiles", 70_000 + tile * 17, 200)).collect()
    }),
    // A help desk: a customer and three of its orders every minute or so, during the day.
    ("help desk", |time, random| {
        if !is_day(time) || random.once_in(3) {
            return Vec::new();
        }
        let (customer, order) = (random.below(90_000), random.below(900_000));
        let orders = (0..3).map(|more| ("orders", order + more * 5_003, 200));
        std::iter::once(("customers", customer, 200)).chain(orders).collect()
    }),
    // A warehouse that fetches each new order, which have numbers in a row: two a minute.
    ("warehouse", |time, random| {
        (0..2).map(|at| ("orders", time / 30 + at, if random.once_in(50) { 404 } else { 200 })).collect()
    }),
    // A partner that fetches what has changed: twenty minutes every hour, twenty objects a minute.
    ("partner", |time, random| {
        let minutes = if time % 3600 < 1200 { 18 + random.below(5) } else { 0 };
        (0..minutes).map(|_| ("products", random.below(20_000), if random.once_in(10) { 404 } else { 200 })).collect()
    }),
    // A mobile application of many users behind one key, with a lunch break that triples it.
    ("application", |time, random| {
        let usual = if is_day(time) { 12 } else { 3 };
        let now = if is_day(time) && time % DAY / 3600 == 12 { 3 * usual } else { usual };
        (0..now / 2 + random.below(now))
            .map(|_| ("orders", random.below(900_000), if random.once_in(25) { 403 } else { 200 }))
            .collect()
    }),
    // A monitor that asks for three objects each minute, one of which is gone.
    ("monitor", |_, _| vec![("orders", 17, 200), ("products", 4, 200), ("products", 9_999_999, 404)]),
];

#[test]
fn two_weeks_of_ordinary_consumers_have_hardly_a_pattern() {
    for seed in [1] {
        let (plugin, host, mut random) = (plugin(&step()), node(), Random(seed));
        let (mut requests, mut found) = (0_u64, BTreeMap::<(&str, String), u32>::new());
        for minute in 0..DAYS * DAY / 60 {
            for (consumer, of) in CONSUMERS {
                for (kind, id, status) in of(minute * 60, &mut random) {
                    let before = host.events.borrow().len();
                    send(&*plugin, &host, Request { consumer, path: &format!("/{kind}/{id}"), status });
                    requests += 1;
                    if host.events.borrow().len() > before {
                        let event = messages(&host).pop().unwrap_or_default();
                        let pattern = event.split(':').next().unwrap_or_default().to_owned();
                        *found.entry((consumer, pattern)).or_default() += 1;
                        host.events.borrow_mut().clear();
                    }
                }
            }
            host.advance(60_000);
        }
        println!(
            "seed {seed}: {requests} requests of {} consumers in {DAYS} days, patterns {found:?}",
            CONSUMERS.len()
        );
        let all: u32 = found.values().sum();
        assert!(all <= 4, "{found:?}");
    }
}

/// A consumer that read at its usual pace for a day, and then attacks: after how many of its requests which pattern is found.
fn after(
    usual_a_minute: u64,
    attack: impl Fn(u64, &mut Random) -> (u64, u16),
    millis: u64,
    most: usize,
) -> Option<(usize, String)> {
    let (plugin, host, mut random) = (plugin(&step()), node(), Random(7));
    for _ in 0..1440 {
        for _ in 0..usual_a_minute {
            let path = format!("/orders/{}", random.below(900_000_000));
            assert_eq!(send(&*plugin, &host, Request { path: &path, ..GET }).tags, "");
        }
        host.advance(60_000);
    }
    for at in 0..most {
        let (id, status) = attack(at as u64, &mut random);
        let path = format!("/orders/{id}");
        let sent = send(&*plugin, &host, Request { path: &path, status, ..GET });
        if !sent.tags.is_empty() {
            return Some((at + 1, sent.tags));
        }
        host.advance(millis);
    }
    None
}

#[test]
fn scrapers_and_enumerators_are_found_after_so_many_requests() {
    let walk = |at: u64, _: &mut Random| (5_000_000 + at, 200);
    let shuffled = |at: u64, _: &mut Random| (5_000_000 + at / 16 * 16 + at * 7 % 16, 200);
    let with_gaps = |at: u64, random: &mut Random| (5_000_000 + 3 * at + random.below(2), 200);
    let known = |_: u64, random: &mut Random| (random.below(900_000_000), 200);
    let guess =
        |at: u64, random: &mut Random| (random.below(900_000_000), if at.is_multiple_of(4) { 200 } else { 404 });
    let forbidden = |_: u64, random: &mut Random| (random.below(900_000_000), 403);
    // What the consumer has read before is among the last thirty numbers, and among the requests of the window.
    type Attack = fn(u64, &mut Random) -> (u64, u16);
    type Found = Option<(usize, &'static str)>;
    let cases: [(&str, u64, Attack, u64, Found); 9] = [
        ("numbers in a row, one a second", 4, walk, 1000, Some((16, "objects:sequential"))),
        ("numbers in a row, shuffled by sixteen", 4, shuffled, 1000, Some((16, "objects:sequential"))),
        ("every third number, by chance", 4, with_gaps, 1000, Some((25, "objects:sequential"))),
        ("numbers in a row, one in 25 s, of a new consumer", 0, walk, 25_000, None),
        ("known objects, one a second", 4, known, 1000, Some((31, "objects:surge"))),
        ("known objects, four a second, of a new consumer", 0, known, 250, Some((151, "objects:surge"))),
        ("guessed numbers, three of four not there", 4, guess, 2000, Some((32, "objects:enumeration"))),
        ("objects of others, forbidden", 4, forbidden, 10_000, Some((12, "objects:enumeration"))),
        ("guessed numbers, one in 20 s", 0, guess, 20_000, None),
    ];
    let mut all = Vec::new();
    for (name, usual, attack, millis, expected) in cases {
        let found = after(usual, attack, millis, 600);
        println!("{name}: {found:?}");
        all.push((name, found, expected.map(|(at, tags)| (at, tags.to_owned()))));
    }
    for (name, found, expected) in all {
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_budget_stops_the_scraper_that_is_too_slow_for_patterns() {
    let (plugin, host, mut store) = (plugin(&ObjectGuardStep { budget: 100, ..step() }), node(), Store::default());
    let mut read = 0;
    for at in 0..3600 / 25 {
        let sent = pass(&*plugin, &host, exchange("slow", &format!("/orders/{at}")), 200, &mut store).0;
        assert_eq!(sent.tags.replace("objects:budget", ""), "", "no pattern");
        read += usize::from(sent.refused.is_none());
        host.advance(24_000);
    }
    assert_eq!(read, 100);
}
