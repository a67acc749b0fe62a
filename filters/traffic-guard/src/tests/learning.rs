//! Paces of one key.

use super::*;
use crate::pace::Pace;

/// The floor of a source in a bucket.
const FLOOR: f64 = 50.0;

/// A pace that has had so many requests in each of some buckets, and the next bucket.
fn learned(limits: &Limits, per_bucket: u32, buckets: u64) -> (Pace, u64) {
    let mut pace = Pace::new(limits, 1000, 0, false);
    (1000..1000 + buckets).for_each(|bucket| pace = pace.add(per_bucket, bucket, limits, FLOOR).pace);
    (pace, 1000 + buckets)
}

#[test]
fn a_surge_begins_within_the_bucket_and_ends_after_a_calm_one() {
    let limits = limits();
    let (pace, now) = learned(&limits, 100, 30);
    let calm = pace.add(300, now, &limits, FLOOR);
    assert_eq!((calm.turn, calm.threshold), (Turn::None, 300.0));
    let over = calm.pace.add(1, now, &limits, FLOOR);
    assert_eq!((over.turn, over.pace.since), (Turn::Begins, now));
    let next = over.pace.add(301, now + 1, &limits, FLOOR);
    assert_eq!(next.turn, Turn::None, "told once");
    let told = next.pace.add(400, now + 2, &limits, FLOOR);
    assert_eq!(told.turn, Turn::GoesOn);
    let calm = told.pace.add(300, now + 3, &limits, FLOOR);
    assert!(calm.turn == Turn::None && calm.pace.since != 0, "the bucket is not over");
    let end = calm.pace.add(1, now + 4, &limits, FLOOR);
    assert_eq!((end.turn, end.pace.since), (Turn::Ends { buckets: 3, peak: 400, since: now }, 0));
    assert!((end.pace.usual - 106.6).abs() < 0.1, "the buckets of the surge are not learned: {}", end.pace.usual);
}

#[test]
fn a_surge_that_stops_at_once_is_over_with_the_next_request() {
    let limits = limits();
    let (pace, now) = learned(&limits, 100, 30);
    let over = pace.add(900, now, &limits, FLOOR).pace;
    let end = over.add(1, now + 50, &limits, FLOOR);
    assert_eq!(end.turn, Turn::Ends { buckets: 1, peak: 900, since: now });
}

#[test]
fn the_floor_is_what_is_usual_at_least() {
    let limits = limits();
    let (pace, now) = learned(&limits, 2, 30);
    assert_eq!(pace.add(150, now, &limits, FLOOR).turn, Turn::None);
    assert_eq!(pace.add(151, now, &limits, FLOOR).turn, Turn::Begins);
    assert_eq!(pace.add(4, now, &limits, 0.1).turn, Turn::None, "{}", pace.usual);
    assert_eq!(pace.add(7, now, &limits, 0.1).turn, Turn::Begins);
}

#[test]
fn a_pace_that_varies_has_room_for_it_within_a_limit() {
    let limits = limits();
    let after = |high, low| {
        let mut pace = Pace::new(&limits, 1000, 0, true);
        (1000..1200)
            .for_each(|bucket| pace = pace.add(if bucket % 2 == 0 { high } else { low }, bucket, &limits, FLOOR).pace);
        pace.add(0, 1200, &limits, FLOOR).threshold
    };
    assert!((after(100, 100) - 300.0).abs() < 1.0, "{}", after(100, 100));
    assert!((290.0..310.0).contains(&after(120, 80)), "{}", after(120, 80));
    let varied = after(135, 65);
    assert!((400.0..480.0).contains(&varied), "{varied}");
    let wild = after(200, 0);
    assert!((480.0..=520.0).contains(&wild), "{wild}");
}

#[test]
fn nothing_is_a_surge_before_enough_is_learned() {
    let limits = limits();
    let (pace, now) = learned(&limits, 10, 5);
    assert_eq!(pace.add(1_000_000, now, &limits, FLOOR).turn, Turn::None, "five buckets are learned");
    let (pace, now) = learned(&limits, 10, 6);
    assert_eq!(pace.add(1_000_000, now, &limits, FLOOR).turn, Turn::Begins);
    let known = Pace::new(&limits, 7, 0, true);
    assert_eq!(known.add(151, 7, &limits, FLOOR).turn, Turn::Begins, "a caller that is known to have been slow");
}

#[test]
fn buckets_without_requests_count_as_zeros() {
    let limits = limits();
    for idle in [0, 1, 7, 40, 500] {
        let (mut one_by_one, now) = learned(&limits, 100, 20);
        let at_once = one_by_one.add(0, now + idle, &limits, FLOOR);
        (0..=idle).for_each(|passed| one_by_one = one_by_one.add(0, now + passed, &limits, FLOOR).pace);
        let (one, other) = (one_by_one.usual, at_once.pace.usual);
        assert!((one - other).abs() < 1e-6, "{idle}: {one} {other}");
        let (one, other) = (one_by_one.add(0, now + idle, &limits, FLOOR).threshold, at_once.threshold);
        assert!((one - other).abs() < other / 50.0, "{idle}: {one} {other}");
    }
    let (pace, now) = learned(&limits, 100, 200);
    assert!((pace.add(0, now, &limits, FLOOR).pace.usual - 100.0).abs() < 1e-6);
    let later = pace.add(0, now + 240, &limits, FLOOR).pace.usual;
    assert!(later < 0.1, "{later}");
}

#[test]
fn learning_buckets_say_how_fast_a_pace_is_learned() {
    let after = |learning| {
        let limits = Limits { learning, ..limits() };
        let (mut pace, now) = learned(&limits, 100, 200);
        (now..now + 20).for_each(|bucket| pace = pace.add(200, bucket, &limits, FLOOR).pace);
        pace.usual
    };
    assert!(after(6) > 199.0 && (140.0..160.0).contains(&after(60)) && after(600) < 115.0, "{}", after(60));
}

#[test]
fn a_surge_of_six_hours_becomes_usual() {
    let limits = limits();
    let (mut pace, now) = learned(&limits, 100, 60);
    let six_hours = 6 * 360;
    let mut turns = Vec::new();
    for bucket in now..now + six_hours + 400 {
        let moment = pace.add(1000, bucket, &limits, FLOOR);
        pace = moment.pace;
        if moment.turn != Turn::None {
            turns.push((bucket - now, moment.turn));
        }
        if bucket == now + six_hours {
            assert!((pace.usual - 100.0).abs() < 1.0, "frozen until then: {}", pace.usual);
        }
    }
    let [(0, Turn::Begins), (2, Turn::GoesOn), (end, Turn::Ends { .. })] = turns[..] else { panic!("{turns:?}") };
    assert!((six_hours..six_hours + 60).contains(&end), "{end}");
    assert!((pace.usual - 1000.0).abs() < 5.0, "{}", pace.usual);
}

#[test]
fn clocks_that_are_behind_or_put_back_and_other_lengths_are_survived() {
    let limits = limits();
    let (pace, now) = learned(&limits, 100, 30);
    let pace = pace.add(10, now, &limits, FLOOR).pace;
    assert_eq!(pace.add(5, now - 2, &limits, FLOOR).pace.count, 15, "it counts into the current bucket");
    for back in [3, 6, 12, 30, 60] {
        let mut pace = pace;
        let usual = pace.usual;
        for bucket in now - back..now + 20 {
            (0..10).for_each(|_| {
                let moment = pace.add(10, bucket, &limits, FLOOR);
                assert_eq!((moment.turn, moment.pace.since), (Turn::None, 0), "back by {back} buckets, in {bucket}");
                pace = moment.pace;
            });
        }
        assert!((pace.usual - usual).abs() < 1.0 && pace.is_learned(&limits), "{back}: {}", pace.usual);
        let flood = pace.add(600, now + 20, &limits, FLOOR).pace;
        assert_ne!(flood.since, 0);
        let put_back = flood.add(10, now + 20 - back, &limits, FLOOR);
        let ends = Turn::Ends { buckets: 0, peak: 600, since: now + 20 };
        assert_eq!((put_back.turn, put_back.pace.since, put_back.pace.count), (ends, 0, 10), "{back}");
    }
    let back = pace.add(5, now - 61, &limits, FLOOR).pace;
    assert_eq!((back.count, back.usual), (5, 0.0));
    let longer = Limits { millis: 20_000, ..limits };
    assert_eq!(pace.add(5, now / 2, &longer, FLOOR).pace.usual, 0.0);
    let far = pace.add(u32::MAX, u64::MAX, &limits, FLOOR).pace.add(u32::MAX, u64::MAX, &limits, FLOOR);
    assert_eq!(far.pace.count, u32::MAX);
}

#[test]
fn a_pace_is_stored_as_it_is_and_damaged_bytes_are_none() {
    let (pace, now) = learned(&limits(), 100, 30);
    let pace = pace.add(900, now, &limits(), FLOOR).pace;
    let bytes = pace.encode();
    assert_eq!((bytes.len(), Pace::decode(&bytes)), (Pace::BYTES, Some(pace)));
    (0..Pace::BYTES).for_each(|length| assert_eq!(Pace::decode(&bytes[..length]), None));
    assert_eq!(Pace::decode(&[0xff; Pace::BYTES]), None, "an average that is no number");
    assert_eq!(Pace::decode(&[bytes.as_slice(), &[0]].concat()), None);
}
