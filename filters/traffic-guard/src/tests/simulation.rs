//! Four weeks of a site, and attacks on it. All of it is drawn from seeds, with a clock that stands until it is moved.

use super::*;
use crate::pace::Pace;
use crate::paces::Paces;

const BUCKETS_OF_A_DAY: u64 = 8640;
const DAYS: u64 = 28;

/// Random numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Of a normal distribution, nearly.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    /// Of a Poisson distribution.
    fn poisson(&mut self, expected: f64) -> u32 {
        let (mut events, mut product) = (0, self.share());
        while product > (-expected).exp() {
            product *= self.share();
            events += 1;
        }
        events
    }

    /// How many requests come where so many are expected, with a spread of 8 % beyond that of chance.
    fn requests(&mut self, expected: f64) -> u32 {
        let spread = (expected + (0.08 * expected).powi(2)).sqrt();
        (expected + spread * self.normal()).round().max(0.0) as u32
    }
}

/// What of its pace at noon a site has, by the time in buckets: day and night, the weekend, a week in which it grows by 20 % a day, and a
/// launch that brings two and a half times as many at once and is over after three hours.
fn site(time: u64) -> f64 {
    let (day, of_day) = (time / BUCKETS_OF_A_DAY, (time % BUCKETS_OF_A_DAY) as f64 / BUCKETS_OF_A_DAY as f64);
    let daily = 0.55 - 0.45 * (of_day * std::f64::consts::TAU).cos();
    let weekend = if day % 7 >= 5 { 0.6 } else { 1.0 };
    let growth = 1.2_f64.powf((time as f64 / BUCKETS_OF_A_DAY as f64 - 7.0).clamp(0.0, 7.0));
    let launch = 17 * BUCKETS_OF_A_DAY + BUCKETS_OF_A_DAY / 2;
    let launched = if (launch..launch + 1080).contains(&time) { 2.5 } else { 1.0 };
    daily * weekend * growth * launched
}

/// A key of the site: the dimension, its floor in requests per second, and the requests per second at a time.
type Actor = (Dimension, f64, fn(u64, &mut Random) -> f64);

/// The share of the people of an office who are there: they come and go within an hour.
fn there(time: u64) -> f64 {
    let at = (time % BUCKETS_OF_A_DAY) as f64;
    ((at - 2880.0) / 360.0).min((6480.0 - at) / 360.0).clamp(0.0, 1.0)
}

const ACTORS: [Actor; 9] = [
    // Routes: busy, middling and quiet.
    (Dimension::Route, 20.0, |time, _| 400.0 * site(time)),
    (Dimension::Route, 20.0, |time, _| 40.0 * site(time)),
    (Dimension::Route, 20.0, |time, _| 2.0 * site(time)),
    // An office behind one address.
    (Dimension::Source, 5.0, |time, _| 0.1 + 20.0 * there(time)),
    // A smaller one, whose people ask for pages of twenty requests at once.
    (Dimension::Source, 5.0, |time, random| f64::from(random.poisson(0.02 + 3.0 * there(time))) * 2.0),
    // A browser: a page of sixty requests now and then.
    (Dimension::Source, 5.0, |_, random| if random.share() < 0.1 { 6.0 } else { 0.0 }),
    // A crawler that comes for twenty minutes every two hours.
    (Dimension::Source, 5.0, |time, _| if time % 720 < 120 { 8.0 } else { 0.0 }),
    // A partner with a batch every hour.
    (Dimension::Consumer, 10.0, |time, _| if time % 360 < 30 { 18.0 } else { 1.0 }),
    // The network of a large provider.
    (Dimension::Asn, 20.0, |time, _| 120.0 * site(time)),
];

/// The surges of the site in four weeks with a factor, by actor.
fn surges(factor: f64, seed: u64) -> [u32; ACTORS.len()] {
    let limits = Limits { factor, ..limits() };
    let mut random = Random(seed);
    ACTORS.map(|(_, floor, pace_at)| {
        let mut pace = Pace::new(&limits, 0, 0, false);
        let mut begun = 0;
        for time in 0..DAYS * BUCKETS_OF_A_DAY {
            let per_second = pace_at(time, &mut random);
            let requests = random.requests(per_second * 10.0);
            let moment = pace.add(requests, time, &limits, limits.in_bucket(floor));
            pace = moment.pace;
            begun += u32::from(moment.turn == Turn::Begins);
        }
        begun
    })
}

#[test]
fn four_weeks_of_a_site_without_an_attack_have_at_most_a_surge_a_week() {
    for seed in [1, 2] {
        let of = |factor| surges(factor, seed);
        let (low, medium, high) = (of(5.0), of(3.0), of(2.0));
        println!("seed {seed}, surges in four weeks: low {low:?}, medium {medium:?}, high {high:?}");
        assert!(medium.iter().sum::<u32>() <= 4, "{medium:?}");
        assert_eq!(low.iter().sum::<u32>(), 0, "{low:?}");
    }
}

/// A flood of five times the usual pace, as requests in a bucket: sources, consumers and networks that take part.
struct Flood {
    /// What is found.
    dimension: Dimension,
    sources: u32,
    apikey: Option<&'static str>,
    /// They are addresses of AS64496.
    in_network: bool,
    /// The requests in a bucket.
    requests: u32,
}

/// The site at its noon pace for a while, then the flood: in which bucket it was found, and the tags of it.
fn found(flood: &Flood) -> (u32, Vec<String>) {
    let (plugin, host) = (plugin(&step()), FakeHost::at(NOW));
    let mut random = Random(7);
    let ordinary = |random: &mut Random, host: &FakeHost| {
        // 40 requests a second from 4,000 visitors, a partner's among them, and some of the network.
        for _ in 0..random.requests(400.0) {
            let visitor = random.next() % 4000;
            let ip = match visitor {
                0..200 => format!("192.0.2.{visitor}"),
                _ => format!("10.1.{}.{}", visitor / 256, visitor % 256),
            };
            let apikey = (visitor % 10 == 3).then_some("partner");
            let _ = send(&*plugin, host, From { ip: &ip, apikey, ..ONE });
        }
    };
    for _ in 0..40 {
        ordinary(&mut random, &host);
        host.advance(BUCKET);
    }
    assert_eq!(messages(&host), [] as [String; 0]);
    for bucket in 1..=3 {
        ordinary(&mut random, &host);
        let mut tags: Vec<String> = Vec::new();
        for number in 0..flood.requests {
            let source = number % flood.sources;
            let ip = match flood.in_network {
                true => format!("192.0.2.{}", source % 250),
                false => format!("172.{}.{}.{}", 16 + source / 65_536, source / 256 % 256, source % 256),
            };
            let (_, found) = send(&*plugin, &host, From { ip: &ip, apikey: flood.apikey, ..ONE });
            tags.extend(found.split(' ').filter(|tag| !tag.is_empty()).map(str::to_owned));
        }
        if !tags.is_empty() {
            tags.sort_unstable();
            tags.dedup();
            return (bucket, tags);
        }
        host.advance(BUCKET);
    }
    panic!("{:?} was not found", flood.dimension);
}

#[test]
fn a_flood_of_five_times_the_pace_is_found_within_two_buckets_with_its_dimension() {
    let floods = [
        // 40 requests a second are usual for the route.
        Flood { dimension: Dimension::Route, sources: 2000, apikey: None, in_network: false, requests: 2000 },
        // Nothing is usual for a new source, so five times its floor.
        Flood { dimension: Dimension::Source, sources: 1, apikey: None, in_network: false, requests: 250 },
        // 4 requests a second are usual for the partner, so five times its floor.
        Flood {
            dimension: Dimension::Consumer,
            sources: 100,
            apikey: Some("partner"),
            in_network: false,
            requests: 500,
        },
        // 2 requests a second are usual for the network, so a little over three times its floor.
        Flood { dimension: Dimension::Asn, sources: 250, apikey: None, in_network: true, requests: 650 },
    ];
    for flood in &floods {
        let (bucket, tags) = found(flood);
        println!("{:?}: found in bucket {bucket}, {tags:?}", flood.dimension);
        assert!(bucket <= 2);
        assert_eq!(tags, [flood.dimension.tag()], "nothing else surges");
    }
}

/// A key whose usual pace is above its floor, drawn from a seed, and a flood of five times that pace on top of the site's other
/// requests: the bucket in which it is found, and the tags of all requests until then.
fn five_times(dimension: Dimension, usual: f64, seed: u64) -> (u32, Vec<String>) {
    let floors =
        [(Dimension::Route, 500.0), (Dimension::Source, 5.0), (Dimension::Consumer, 10.0), (Dimension::Asn, 20.0)];
    let dimensions =
        floors.map(|(dimension, floor)| DimensionOfStep { dimension: dimension.into(), floor, weight: 40.0 });
    // Others who ask at the same time are far below their floors; the route has a floor above all of it but its own flood.
    let (plugin, host) = (plugin(&TrafficGuardStep { dimensions: dimensions.to_vec(), ..step() }), FakeHost::at(NOW));
    let mut random = Random(seed);
    let request = |number: u64| {
        let place = number % 4096;
        let (ip, apikey) = match dimension {
            Dimension::Source => ("198.51.100.7".to_owned(), None),
            Dimension::Asn => (format!("192.0.2.{}", place % 250), None),
            Dimension::Consumer => (format!("172.16.{}.{}", place / 256, place % 256), Some("partner")),
            Dimension::Route => (format!("172.16.{}.{}", place / 256, place % 256), None),
        };
        send(&*plugin, &host, From { ip: &ip, apikey, ..ONE }).1
    };
    let mut number = 0;
    let mut bucket = |times: f64, random: &mut Random| {
        let mut tags: Vec<String> = Vec::new();
        for _ in 0..random.requests(usual * times * 10.0) {
            number += 1;
            tags.extend(request(number).split(' ').filter(|tag| !tag.is_empty()).map(str::to_owned));
        }
        host.advance(BUCKET);
        tags.sort_unstable();
        tags.dedup();
        tags
    };
    for _ in 0..60 {
        assert_eq!(
            bucket(1.0, &mut random),
            [] as [String; 0],
            "{dimension:?}, seed {seed}: nothing surges before the flood"
        );
    }
    for after in 1..=2 {
        let tags = bucket(5.0, &mut random);
        if !tags.is_empty() {
            return (after, tags);
        }
    }
    panic!("{dimension:?} was not found, seed {seed}");
}

#[test]
fn five_times_the_usual_pace_is_found_in_each_dimension() {
    for seed in 1..=4 {
        // Paces above the floors, so that what is usual decides.
        for (dimension, usual) in
            [(Dimension::Source, 6.0), (Dimension::Source, 12.0), (Dimension::Consumer, 25.0), (Dimension::Asn, 30.0)]
        {
            let (bucket, tags) = five_times(dimension, usual, seed);
            println!("seed {seed}, {dimension:?} at {usual} requests/s: found in bucket {bucket}, {tags:?}");
            assert_eq!(tags, [dimension.tag()], "nothing else surges");
        }
    }
}

#[test]
fn a_source_that_floods_from_the_first_request_of_a_route_on_is_found_once_it_grows() {
    let host = FakeHost::at(NOW);
    let shop: Rc<str> = "shop".into();
    let paces = Paces::new(limits(), 1000);
    let count = |by| {
        let moment = paces.count((Dimension::Source, b"a"), (by, &shop), 5.0, &host);
        host.advance(BUCKET);
        moment.is_some_and(|moment| moment.pace.since != 0)
    };
    assert!((0..20).all(|_| !count(400)), "with nothing to compare it with, it is taken for usual");
    assert!(count(1300));
}

/// A bucket of a site with an office behind one address, a partner and visitors, all of them above their floors, and the office so many
/// times as fast: the tags of it.
fn busy(plugin: &dyn Plugin, host: &FakeHost, random: &mut Random, office: u32) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    let mut ask = |from: From<'_>| {
        let (_, found) = send(plugin, host, from);
        tags.extend(found.split(' ').filter(|tag| !tag.is_empty()).map(str::to_owned));
    };
    (0..random.requests(200.0) * office).for_each(|_| ask(ONE));
    for number in 0..random.requests(400.0) {
        let ip = format!("172.16.0.{}", number % 200);
        ask(From { ip: &ip, apikey: Some("partner"), ..ONE });
    }
    for _ in 0..random.requests(300.0) {
        let ip = format!("192.0.2.{}", random.next() % 250);
        ask(From { ip: &ip, ..ONE });
    }
    host.advance(BUCKET);
    tags.sort_unstable();
    tags.dedup();
    tags
}

#[test]
fn the_traffic_after_an_outage_is_no_surge_and_a_flood_soon_after_it_is_found() {
    for minutes in [2, 30, 39, 40, 360] {
        let (plugin, host, mut random) = (plugin(&step()), FakeHost::at(NOW), Random(5));
        for _ in 0..60 {
            assert_eq!(busy(&*plugin, &host, &mut random, 1), [] as [String; 0]);
        }
        host.advance(minutes * 60_000);
        for bucket in 0..12 {
            assert_eq!(busy(&*plugin, &host, &mut random, 1), [] as [String; 0], "{minutes} minutes, bucket {bucket}");
        }
        assert_eq!(busy(&*plugin, &host, &mut random, 5), ["traffic:source_surge"], "{minutes} minutes");
    }
}

#[test]
fn stray_requests_end_no_outage() {
    // Minutes from one to the next; the last comes with the traffic.
    for outage in [&[15, 5, 10][..], &[30, 30], &[2, 39], &[350, 10], &[200, 5, 10], &[10; 7]] {
        let (plugin, host, mut random) = (plugin(&step()), FakeHost::at(NOW), Random(5));
        (0..60).for_each(|_| drop(busy(&*plugin, &host, &mut random, 1)));
        for minutes in outage {
            host.advance(minutes * 60_000);
            assert_eq!(send(&*plugin, &host, From { ip: "203.0.113.1", ..ONE }).1, "", "{outage:?}");
        }
        for bucket in 0..12 {
            assert_eq!(busy(&*plugin, &host, &mut random, 1), [] as [String; 0], "{outage:?}, bucket {bucket}");
        }
        assert_eq!(busy(&*plugin, &host, &mut random, 5), ["traffic:source_surge"], "{outage:?}");
    }
}

#[test]
fn a_moment_of_traffic_ends_no_outage() {
    let (plugin, host, mut random) = (plugin(&step()), FakeHost::at(NOW), Random(5));
    (0..60).for_each(|_| drop(busy(&*plugin, &host, &mut random, 1)));
    host.advance(360 * 60_000);
    // One of the callers comes back before the gateway is taken out once more.
    for _ in 0..2 {
        assert_eq!(bucket(&*plugin, &host, From { ip: "203.0.113.1", ..ONE }, 50).1, "");
    }
    host.advance(90_000);
    for _ in 0..12 {
        assert_eq!(busy(&*plugin, &host, &mut random, 1), [] as [String; 0]);
    }
}

#[test]
fn a_site_that_has_become_quiet_finds_a_flood() {
    for minutes in [5, 10] {
        let (plugin, host, mut random) = (plugin(&step()), FakeHost::at(NOW), Random(5));
        (0..60).for_each(|_| drop(busy(&*plugin, &host, &mut random, 1)));
        for _ in 0..20 {
            host.advance(minutes * 60_000);
            assert_eq!(send(&*plugin, &host, From { ip: "203.0.113.1", ..ONE }).1, "");
        }
        host.advance(minutes * 60_000);
        let flood = From { ip: "203.0.113.9", ..ONE };
        let first = (1..1000).find(|_| !send(&*plugin, &host, flood).1.is_empty());
        assert!(first.is_some_and(|first| (140..=151).contains(&first)), "{minutes} minutes: {first:?}");
    }
}

#[test]
fn a_quiet_site_finds_a_flood_that_comes_after_minutes_without_a_request() {
    let (plugin, host) = (plugin(&step()), FakeHost::at(NOW));
    for _ in 0..30 {
        assert_eq!(send(&*plugin, &host, ONE).1, "");
        host.advance(5 * 60_000);
    }
    let flood = From { ip: "203.0.113.9", ..ONE };
    let first = (1..1000).find(|_| !send(&*plugin, &host, flood).1.is_empty()).unwrap();
    assert!((140..=151).contains(&first), "{first}");
}

#[test]
fn a_key_that_is_idle_on_a_busy_node_becomes_slow() {
    let (plugin, host) = (plugin(&only(Dimension::Source)), FakeHost::at(NOW));
    let other = From { ip: "203.0.113.9", ..ONE };
    for _ in 0..60 {
        assert_eq!(bucket(&*plugin, &host, ONE, 200).1, "");
    }
    (0..120).for_each(|_| drop(bucket(&*plugin, &host, other, 20)));
    assert_eq!(bucket(&*plugin, &host, ONE, 200).1, "traffic:source_surge");
}
