use super::*;

const NOW: u32 = 1_700_000_040;

fn limits() -> Limits {
    Limits {
        surge: SurgeLimits {
            factor: 5.0,
            floor: 30,
            ceiling: 150,
            bucket_seconds: 60,
            learning: 60,
            warmup: 10,
            weight: 40.0,
        },
        walk: WalkLimits { min: 30, window_seconds: 600, max_gap: 3, weight: 50.0 },
        enumeration: EnumerationLimits {
            min: 20,
            ratio: 0.5,
            window_seconds: 300,
            statuses: vec![401, 403, 404],
            weight: 50.0,
        },
    }
}

/// A pace that has had so many objects in each bucket.
fn paced(counts: &[u32], limits: &Limits) -> (Pace, u32) {
    let (mut pace, mut now) = (Pace::default(), NOW);
    for count in counts {
        (0..*count).for_each(|_| pace.read(true, now, &limits.surge));
        now += 60;
    }
    (pace, now)
}

/// How many objects it takes until a surge.
fn until_surge(mut pace: Pace, now: u32, limits: &Limits) -> u32 {
    (1..=100_000)
        .find(|_| {
            pace.read(true, now, &limits.surge);
            pace.surge(&limits.surge).is_some()
        })
        .unwrap()
}

#[test]
fn a_surge_is_above_the_ceiling_then_above_the_factor_and_the_floor() {
    let limits = limits();
    assert_eq!(until_surge(Pace::default(), NOW, &limits), 151, "nothing is learned");
    let (pace, now) = paced(&[20; 9], &limits);
    assert_eq!(until_surge(pace, now, &limits), 151, "one bucket is missing");
    // Ten are closed with the next one.
    let (pace, now) = paced(&[20; 10], &limits);
    assert_eq!(until_surge(pace, now, &limits), 101, "five times twenty");
    let (pace, now) = paced(&[2; 10], &limits);
    assert_eq!(until_surge(pace, now, &limits), 31, "the floor");
    let (pace, now) = paced(&[100; 10], &limits);
    assert_eq!(until_surge(pace, now, &limits), 501);
}

#[test]
fn buckets_without_objects_and_those_of_a_surge_are_not_learned() {
    let limits = limits();
    let (pace, now) = paced(&[20, 0, 0, 20, 20, 0, 20, 20, 20, 20, 0, 20, 20, 20], &limits);
    assert_eq!(until_surge(pace, now, &limits), 101);
    let (mut pace, mut now) = paced(&[20; 12], &limits);
    for _ in 0..30 {
        (0..900).for_each(|_| pace.read(true, now, &limits.surge));
        assert!(pace.surge(&limits.surge).is_some());
        now += 60;
    }
    // On until a whole bucket is calm.
    pace.read(true, now, &limits.surge);
    assert_eq!(pace.surge(&limits.surge).map(|surge| (surge.count, surge.usual)), Some((1, Some(20.0))));
    pace.read(true, now + 60, &limits.surge);
    assert_eq!(pace.surge(&limits.surge), None);
    // The flood is not usual; a minute with one object makes it a little less.
    assert_eq!(until_surge(pace, now + 60, &limits), 92);
}

#[test]
fn a_surge_of_more_than_six_hours_is_learned_after_all() {
    let limits = limits();
    let (mut pace, mut now) = paced(&[20; 12], &limits);
    let mut minutes = 0;
    while minutes == 0 || pace.surge(&limits.surge).is_some() {
        (0..400).for_each(|_| pace.read(true, now, &limits.surge));
        (now, minutes) = (now + 60, minutes + 1);
        assert!(minutes < 500);
    }
    assert!((361..=400).contains(&minutes), "{minutes}");
}

#[test]
fn a_clock_that_is_put_back_far_begins_anew_and_one_a_little_behind_counts_on() {
    let limits = limits();
    let (pace, now) = paced(&[20; 12], &limits);
    assert_eq!(until_surge(pace, now - 120, &limits), 101 - 20, "into the newest bucket");
    assert_eq!(until_surge(pace, now - 86_400, &limits), 151);
    assert_eq!(until_surge(pace, now + 86_400, &limits), 101);
    assert_eq!(until_surge(pace, u32::MAX, &limits), 101);
}

#[test]
fn objects_are_known_for_half_an_hour_at_least_and_an_hour_at_most() {
    let mut lately = Lately::default();
    assert!(lately.read(1, NOW) && !lately.read(1, NOW + 1799));
    let mut lately = Lately::default();
    assert!(lately.read(1, NOW) && !lately.read(1, NOW + 3599), "the generation before");
    let mut lately = Lately::default();
    assert!(lately.read(1, NOW) && lately.read(1, NOW + 3600));
    // One that is read again stays.
    let mut lately = Lately::default();
    assert!(lately.read(1, NOW));
    assert!((1..100).all(|turn| !lately.read(1, NOW + turn * 1700)));
    assert!(lately.read(2, NOW) && lately.read(1, NOW - 900_000), "the clock was put back far");
}

#[test]
fn a_hundred_and_twenty_eight_objects_in_turns_are_known_and_a_million_take_no_more_room() {
    let mut lately = Lately::default();
    for round in 0..20 {
        for object in 0..128 {
            assert_eq!(lately.read(object, NOW), round == 0, "{object} in round {round}");
        }
    }
    assert_eq!((1000..1_001_000).filter(|object| lately.read(*object, NOW)).count(), 1_000_000);
    assert!(lately.len() <= 256);
}

/// Reads numbered objects, five seconds apart.
fn walked(numbers: impl IntoIterator<Item = u64>) -> (Walk<'static>, u32) {
    let (mut walk, mut now) = (Walk::default(), NOW);
    for number in numbers {
        let text = number.to_string();
        walk.read(&[Identifier::any(text.as_bytes())], now, &limits().walk);
        now += 5;
    }
    (walk, now - 5)
}

fn is_walk(numbers: impl IntoIterator<Item = u64>) -> bool {
    let (walk, now) = walked(numbers);
    walk.found(now, &limits().walk).is_some()
}

#[test]
fn thirty_numbers_in_any_order_with_small_gaps_are_a_walk() {
    assert!(is_walk(1..=30) && !is_walk(1..=29));
    assert!(is_walk((1..=30).rev()));
    assert!(is_walk((0..30).map(|at| at * 3)) && !is_walk((0..30).map(|at| at * 4)));
    assert!(is_walk((0..30).map(|at| (at * 7) % 30)), "shuffled");
    assert!(is_walk((0..30).map(|at| at / 2 + at % 2 * 1_000_000)), "two walks in turns");
    assert!(is_walk((0..30).map(|at| if at % 3 == 0 { at * at * 99_991 } else { at })), "with others between");
    assert!(!is_walk((0..30).map(|at| at * 7919 % 100_003)));
    assert!(is_walk((0..30).map(|at| at * 1000).chain(1..=30)), "the last thirty");
    let (walk, now) = walked(1..=30);
    let steps = walk.found(now, &limits().walk).unwrap();
    assert_eq!((steps.count, steps.from, steps.to, steps.gap), (30, 1, 30, 1));
    let largest = 9_999_999_999_999_999_999;
    assert!(is_walk(largest - 30..largest));
}

#[test]
fn a_walk_takes_place_within_its_window() {
    let limits = limits().walk;
    let (mut walk, mut now) = (Walk::default(), NOW);
    let read = |walk: &mut Walk, number: u64, now: u32| {
        let text = number.to_string();
        walk.read(&[Identifier::any(text.as_bytes())], now, &limits);
        walk.found(now, &limits).is_some()
    };
    // 29 pauses of 21 s are more than 600 s, of 20 s they are not.
    assert!(!(0..200).any(|number| {
        now += 21;
        read(&mut walk, number, now)
    }));
    let begun = now;
    assert_eq!(
        (200..).position(|number| {
            now += 20;
            read(&mut walk, number, now)
        }),
        Some(8),
        "nine pauses of 20 s and twenty of 21 s are 600 s"
    );
    assert_eq!(now, begun + 180);
    assert!(walk.found(now, &limits).is_some() && walk.found(now + 1, &limits).is_none());
    assert!(walk.found(NOW - 100_000, &limits).is_none(), "the clock was put back");
    // With numbers of the time to come there is no walk.
    let (mut walk, _) = walked(1..=29);
    assert!(!read(&mut walk, 30, NOW - 100_000));
}

#[test]
fn of_several_identifiers_the_first_that_changes_counts() {
    let limits = limits().walk;
    let is_walk = |objects: &mut dyn Iterator<Item = String>| {
        let mut walk = Walk::default();
        for object in objects {
            let parts: Vec<Identifier<'_>> = object.split('/').map(|part| Identifier::any(part.as_bytes())).collect();
            walk.read(&parts, NOW, &limits);
        }
        walk.found(NOW, &limits).is_some()
    };
    assert!(is_walk(&mut (0..31).map(|at| format!("{at}/9"))), "over users");
    assert!(is_walk(&mut (0..31).map(|at| format!("42/{at}"))), "over orders of one user");
    assert!(is_walk(&mut (0..31).map(|at| format!("{}/{}", at / 5, at % 5))), "over orders of all users");
    assert!(is_walk(&mut (0..31).map(|at| format!("f47ac10b-58cc-4372-a567-0e02b2c3d479/{at}"))));
    assert!(!is_walk(&mut (0..31).map(|at| format!("{}/{}", at * 7919 % 10_007, at % 5))), "a desk that serves users");
    assert!(!is_walk(&mut (0..31).map(|at| format!("user-{}/{}", at * 7919 % 10_007, at % 5))));
    assert!(!is_walk(&mut (0..31).map(|at| format!("item-{at}"))), "no numbers");
}

#[test]
fn an_enumeration_has_enough_requests_and_enough_denials() {
    let limits = limits().enumeration;
    let found = |requests: u16, denied: u16| {
        let mut denials = Denials::default();
        denials.add(requests, denied, NOW, &limits);
        denials.found(&limits).is_some()
    };
    assert!(found(20, 10) && !found(20, 9) && !found(19, 19) && found(1000, 500) && !found(1000, 499));
    assert!(found(u16::MAX, u16::MAX));
    let mut denials = Denials::default();
    for at in 0..20 {
        denials.add(1, 1, NOW + at * 15, &limits);
    }
    assert_eq!(denials.found(&limits).map(|found| (found.requests, found.denied)), Some((20, 20)));
    let mut slow = Denials::default();
    for at in 0..100 {
        slow.add(1, 1, NOW + at * 20, &limits);
        assert_eq!(slow.found(&limits), None, "18 at most in a window and a slice");
    }
    // What has left the window does not count, nor what a clock has counted that was put back.
    denials.add(1, 0, NOW + 300 + 60 + 300, &limits);
    assert_eq!(denials.found(&limits), None);
    let mut ahead = Denials::default();
    ahead.add(30, 30, NOW + 90_000, &limits);
    ahead.add(1, 0, NOW, &limits);
    assert_eq!(ahead.found(&limits), None);
}

#[test]
fn a_record_is_read_as_it_was_written_and_damaged_ones_are_none() {
    let limits = limits();
    let mut record = Record::default();
    for number in 0..1000_u32 {
        let text = number.to_string();
        record.read((number, &[Identifier::any(text.as_bytes())]), NOW + number, &limits);
        record.denied(NOW + number, &limits);
    }
    let bytes = record.encode();
    assert!(bytes.len() <= Record::MAX_BYTES, "{}", bytes.len());
    assert_eq!(Record::decode(&bytes).as_ref(), Some(&record));
    assert_eq!(Record::weight_of(&bytes), record.weight());
    assert!(record.weight() > 1 << 32, "it was reported");
    for length in 0..bytes.len() {
        assert_eq!(Record::decode(&bytes[..length]), None, "{length}");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        if let Some(mut record) = Record::decode(&damaged) {
            record.read((7, &[Identifier::any(b"7")]), NOW, &limits);
            record.read((8, &[Identifier::any(b"8")]), u32::MAX, &limits);
        }
    }
    assert_eq!(Record::weight_of(b""), 0);
}

#[test]
fn each_pattern_is_reported_once_a_minute() {
    let limits = limits();
    let mut record = Record::default();
    let mut due = Vec::new();
    for second in 0..125_u32 {
        for part in 0..4 {
            let number = second * 4 + part;
            let text = (u64::from(number) * 1_000_003).to_string();
            let read = record.read((number, &[Identifier::any(text.as_bytes())]), NOW + second, &limits);
            let denied = record.denied(NOW + second, &limits);
            due.extend((0..3).filter(|at| read.due[*at] || denied.due[*at]).map(|at| (second, at)));
        }
    }
    // Twenty requests are there with the fifth second, a surge with the 151st object.
    assert_eq!(due, [(4, 2), (37, 0), (64, 2), (97, 0), (124, 2)]);
}

#[test]
fn a_record_of_the_most_numbers_has_its_room() {
    let mut limits = limits();
    limits.walk.min = MAX_NUMBERS;
    let mut record = Record::default();
    for number in 0..1024_u32 {
        let ids: Vec<String> = (0..6).map(|part| format!("{}", number + part)).collect();
        let ids: Vec<Identifier<'_>> = ids.iter().map(|id| Identifier::any(id.as_bytes())).collect();
        record.read((number, &ids), NOW, &limits);
    }
    assert_eq!(record.encode().len(), Record::MAX_BYTES);
}
