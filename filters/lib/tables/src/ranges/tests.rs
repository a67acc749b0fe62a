mod labels;

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;
use crate::testing::Random;
use crate::{OpError, Table};

/// What a table should contain: every assignment in its order, the last one counts.
#[derive(Default, Clone)]
struct Model(Vec<(IpAddr, IpAddr, Option<u32>)>);

impl Model {
    fn find(&self, address: IpAddr) -> Option<u32> {
        let contains = |(first, last, _): &&(IpAddr, IpAddr, _)| *first <= address && address <= *last;
        self.0.iter().rev().find(contains).and_then(|(_, _, label)| *label)
    }
}

fn v4(number: u64) -> IpAddr {
    Ipv4Addr::from(number as u32).into()
}

fn v6(number: u64) -> IpAddr {
    Ipv6Addr::from(v6_number(number)).into()
}

/// A part of the space around 2001:db8::, wider than 64 bits, and both of its ends.
fn v6_number(number: u64) -> u128 {
    match number {
        0 => 0,
        u64::MAX => u128::MAX,
        number => 0x2001_0db8 << 96 | u128::from(number) << 60,
    }
}

/// An address out of a few hundred, or one of the ends of its space.
fn address(random: &mut Random, six: bool) -> IpAddr {
    match (random.below(20), six) {
        (0, false) => v4(0),
        (1, false) => v4(u64::from(u32::MAX)),
        (_, false) => v4(0x0a00_0000 + random.below(400)),
        (0, true) => v6(0),
        (1, true) => v6(u64::MAX),
        (_, true) => v6(1 + random.below(400)),
    }
}

fn range(random: &mut Random) -> (IpAddr, IpAddr) {
    let six = random.below(2) == 0;
    let (one, other) = (address(random, six), address(random, six));
    let short = random.below(3) > 0;
    match (one <= other, short) {
        (_, true) => (one, one),
        (true, _) => (one, other),
        (false, _) => (other, one),
    }
}

/// Every address of the few, those beside them, and the ends.
fn probes() -> impl Iterator<Item = IpAddr> {
    let fours =
        (0x0a00_0000 - 1..0x0a00_0000 + 401).chain([0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX)]).map(v4);
    let sixes = (0..402).chain([u64::MAX]).map(v6_number).flat_map(|number| [number, number.wrapping_add(1)]);
    let sixes = sixes.map(|number| Ipv6Addr::from(number).into());
    fours.chain(sixes)
}

fn assert_agrees(table: &Ranges, model: &Model, what: &str) {
    for address in probes() {
        assert_eq!(table.find(address), model.find(address), "{what}: {address}");
    }
}

fn built(random: &mut Random, width: LabelWidth, count: u64) -> (Ranges, Model) {
    let (mut builder, mut model) = (RangesBuilder::new(width), Model::default());
    for _ in 0..count {
        let (first, last) = range(random);
        let label = random.below(5) as u32;
        builder.set(first, last, label).unwrap();
        builder.name(label, &vec![b'n'; label as usize % 3]).unwrap();
        model.0.push((first, last, Some(label)));
    }
    (Ranges::load(builder.build().unwrap()).unwrap(), model)
}

fn delta(random: &mut Random, width: LabelWidth, model: &mut Model) -> Vec<u8> {
    let mut ops = RangeOps::new(width);
    for _ in 0..random.below(6) {
        let (first, last) = range(random);
        let label = (random.below(3) > 0).then(|| random.below(5) as u32);
        match label {
            Some(label) => ops.set(first, last, label).unwrap(),
            None => ops.clear(first, last).unwrap(),
        }
        model.0.push((first, last, label));
    }
    ops.finish()
}

#[test]
fn random_tables_agree_with_a_list_of_assignments_through_deltas_and_compaction() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let width = [LabelWidth::One, LabelWidth::Two, LabelWidth::Four][seed as usize % 3];
        let count = random.below(60);
        let (mut table, mut model) = built(&mut random, width, count);
        assert_agrees(&table, &model, &format!("seed {seed}, base"));
        for round in 0..12 {
            table.apply(&delta(&mut random, width, &mut model)).unwrap();
            // Some rounds a compaction goes on a little, so that deltas arrive in the middle of it.
            if random.below(2) == 0 {
                table.compact(random.below(20) as usize);
            }
            assert_agrees(&table, &model, &format!("seed {seed}, round {round}"));
        }
        let saved = table.save();
        let mut anew = Ranges::load(table.base().to_vec()).unwrap();
        table.changes().iter().for_each(|ops| anew.apply(ops).unwrap());
        assert_agrees(&anew, &model, &format!("seed {seed}, changes on the base"));
        assert_eq!(anew.save(), saved, "seed {seed}");
        while table.overlay() > 0 {
            table.compact(7);
            assert_agrees(&table, &model, &format!("seed {seed}, compaction"));
        }
        assert_eq!(table.base, saved, "seed {seed}");
        assert_agrees(&Ranges::load(saved).unwrap(), &model, &format!("seed {seed}, loaded again"));
    }
}

#[test]
fn equal_content_gives_equal_bytes_whatever_made_it() {
    for seed in 0..30 {
        let mut random = Random(1000 + seed);
        let (one, model) = built(&mut random, LabelWidth::Two, 40);
        // The same content, each address by itself in a delta.
        let mut other = Ranges::load(RangesBuilder::new(LabelWidth::Two).build().unwrap()).unwrap();
        for (first, last, label) in &model.0 {
            let mut ops = RangeOps::new(LabelWidth::Two);
            ops.set(*first, *last, label.unwrap()).unwrap();
            other.apply(&ops.finish()).unwrap();
            other.compact(3);
        }
        let mut names = RangeOps::new(LabelWidth::Two);
        for label in 0..20 {
            names.name(label, b"taken away again").unwrap();
            names.name(label, one.name(label).unwrap_or_default()).unwrap();
        }
        other.apply(&names.finish()).unwrap();
        assert_eq!(other.save(), one.save(), "seed {seed}");
    }
}

#[test]
fn deltas_lead_from_any_table_to_any_other() {
    for seed in 0..40 {
        let mut random = Random(2000 + seed);
        let (old_rows, new_rows) = (random.below(60), random.below(60));
        let (mut old, _) = built(&mut random, LabelWidth::Two, old_rows);
        let (new, model) = built(&mut random, LabelWidth::Two, new_rows);
        for delta in old.deltas_to(&new).unwrap() {
            old.apply(&delta).unwrap();
        }
        assert_agrees(&old, &model, &format!("seed {seed}"));
        assert_eq!(old.save(), new.save(), "seed {seed}");
        assert_eq!(old.deltas_to(&new), Some(Vec::new()), "seed {seed}");
    }
    let (narrow, _) = built(&mut Random(1), LabelWidth::One, 5);
    let (wide, _) = built(&mut Random(1), LabelWidth::Four, 5);
    assert_eq!(narrow.deltas_to(&wide), None);
}

#[test]
fn long_lists_of_deltas_keep_to_the_limits_of_one() {
    let mut builder = RangesBuilder::new(LabelWidth::Two);
    for number in 0..20_000 {
        builder.set(v4(number * 3), v4(number * 3), number as u32 % 7).unwrap();
    }
    for label in 0..600 {
        builder.name(label, &[b'x'; MAX_LABEL]).unwrap();
    }
    let new = Ranges::load(builder.build().unwrap()).unwrap();
    let empty = Ranges::load(RangesBuilder::new(LabelWidth::Two).build().unwrap()).unwrap();
    let mut table = Table::<Ranges>::new(empty.save()).unwrap();
    let deltas = empty.deltas_to(&new).unwrap();
    assert!(deltas.len() > 10);
    let mut full = 0;
    for delta in &deltas {
        let (from, to) = (table.state(), table.state().after(delta));
        while let Err(error) = table.delta(&from.0, &to, delta) {
            assert_eq!(error, TableError::OverlayFull);
            table.compact(1000);
            full += 1;
        }
    }
    assert!(full > 0);
    assert_eq!(table.index().save(), new.save());
}

#[test]
fn labels_have_names_and_names_outlive_a_compaction() {
    let mut builder = RangesBuilder::new(LabelWidth::Two);
    builder.set(v4(1), v4(9), 1).unwrap();
    builder.name(1, b"DE").unwrap();
    let mut table = Ranges::load(builder.build().unwrap()).unwrap();
    let name = |table: &Ranges, label| table.name(label).map(<[u8]>::to_vec);
    assert_eq!([0, 1, 2].map(|label| name(&table, label)), [None, Some(b"DE".to_vec()), None]);
    let mut ops = RangeOps::new(LabelWidth::Two);
    ops.name(3, b"FR").unwrap();
    ops.name(1, b"AT").unwrap();
    ops.set(v4(5), v4(5), 3).unwrap();
    table.apply(&ops.finish()).unwrap();
    for _ in 0..2 {
        assert_eq!((name(&table, 1), name(&table, 3)), (Some(b"AT".to_vec()), Some(b"FR".to_vec())));
        assert_eq!((table.find(v4(4)), table.find(v4(5))), (Some(1), Some(3)));
        while table.overlay() > 0 {
            table.compact(1);
        }
    }
    assert_eq!((table.rows(), name(&table, 2), name(&table, 4)), ((3, 0), None, None));
}

#[test]
fn sources_are_flattened_into_sets() {
    let mut builder = SourceBuilder::default();
    let (spam, tor) = (builder.source("spam").unwrap(), builder.source("tor").unwrap());
    assert_eq!(builder.source("spam"), Ok(spam));
    builder.add(tor, v4(10), v4(20)).unwrap();
    builder.add(spam, v4(15), v4(30)).unwrap();
    // The same source twice is one.
    builder.add(spam, v4(25), v4(40)).unwrap();
    builder.add(spam, v6(5), v6(5)).unwrap();
    builder.add(spam, v4(u64::from(u32::MAX)), v4(u64::from(u32::MAX))).unwrap();
    let table = Ranges::load(builder.build().unwrap()).unwrap();
    let names = |address: IpAddr| {
        table.find(address).map(|label| String::from_utf8_lossy(table.name(label).unwrap()).into_owned())
    };
    let found = [9, 10, 14, 15, 20, 21, 40, 41, u64::from(u32::MAX)].map(|number| names(v4(number)));
    let expected =
        [None, Some("tor"), Some("tor"), Some("spam,tor"), Some("spam,tor"), Some("spam"), Some("spam"), None];
    assert_eq!(found[..8], expected.map(|name| name.map(str::to_owned)));
    assert_eq!((found[8].as_deref(), names(v6(5)).as_deref()), (Some("spam"), Some("spam")));
    assert_eq!(table.rows(), (4, 1), "what touches and is equal is one row");
    assert_eq!(SourceBuilder::default().source("a,b"), Err(OpError::Label));
}

#[test]
fn random_sources_agree_with_asking_each_of_them() {
    for seed in 0..30 {
        let mut random = Random(3000 + seed);
        let mut builder = SourceBuilder::default();
        let mut all: Vec<(String, IpAddr, IpAddr)> = Vec::new();
        for _ in 0..50 {
            let name = format!("feed-{}", random.below(6));
            let (first, last) = range(&mut random);
            let source = builder.source(&name).unwrap();
            builder.add(source, first, last).unwrap();
            all.push((name, first, last));
        }
        let table = Ranges::load(builder.build().unwrap()).unwrap();
        for address in probes() {
            let mut names: Vec<&str> = all
                .iter()
                .filter(|(_, first, last)| *first <= address && address <= *last)
                .map(|(name, ..)| name.as_str())
                .collect();
            names.sort_unstable();
            names.dedup();
            let expected = (!names.is_empty()).then(|| names.join(",").into_bytes());
            let found = table.find(address).map(|label| table.name(label).unwrap().to_vec());
            assert_eq!(found, expected, "seed {seed}: {address}");
        }
    }
}

#[test]
fn ipv4_in_ipv6_form_is_ipv4() {
    let mut builder = RangesBuilder::new(LabelWidth::One);
    builder.set("::ffff:192.0.2.0".parse().unwrap(), "192.0.2.255".parse().unwrap(), 7).unwrap();
    let table = Ranges::load(builder.build().unwrap()).unwrap();
    assert_eq!(table.find("::ffff:192.0.2.1".parse().unwrap()), Some(7));
    assert_eq!(table.find("192.0.2.1".parse().unwrap()), Some(7));
}

#[test]
fn what_is_out_of_bounds_is_refused_where_it_is_made_and_where_it_arrives() {
    let mut ops = RangeOps::new(LabelWidth::One);
    assert_eq!(ops.set(v4(2), v4(1), 0), Err(OpError::Range));
    assert_eq!(ops.set(v4(2), v6(1), 0), Err(OpError::Range));
    assert_eq!(ops.set(v4(1), v4(2), 256), Err(OpError::Label));
    assert_eq!(ops.name(256, b""), Err(OpError::Label));
    assert_eq!(ops.name(1, &[0; MAX_LABEL + 1]), Err(OpError::Label));
    assert!(ops.is_empty());
    let mut table = Ranges::load(RangesBuilder::new(LabelWidth::One).build().unwrap()).unwrap();
    let refused = [
        (vec![9], OpError::Unknown(9)),
        (vec![1, 0, 0, 0, 0, 9], OpError::Truncated),
        (vec![2, 9, 0, 0, 0, 1, 0, 0, 0], OpError::Range),
        (vec![5, 0, 1, 0, 0, 0, 0], OpError::Label),
        (vec![5, 0, 0, 0, 0, 1, 0], OpError::Truncated),
    ];
    for (bytes, error) in refused {
        assert_eq!(table.apply(&bytes), Err(TableError::Op(0, error)));
    }
    let mut ops = RangeOps::new(LabelWidth::One);
    for number in 0..=MAX_OPS as u64 {
        ops.set(v4(number * 2), v4(number * 2), 1).unwrap();
    }
    assert_eq!(table.apply(&ops.finish()), Err(TableError::TooLarge));
    assert_eq!((table.overlay(), table.compact(1)), (0, Progress::Done));
}

#[test]
fn a_full_overlay_takes_deltas_again_after_a_compaction() {
    let mut table = Ranges::load(RangesBuilder::new(LabelWidth::One).build().unwrap()).unwrap();
    let mut number = 0;
    let mut next = || {
        let mut ops = RangeOps::new(LabelWidth::One);
        for _ in 0..MAX_OPS {
            ops.set(v4(number * 2), v4(number * 2), 1).unwrap();
            number += 1;
        }
        ops.finish()
    };
    // Two thousand at a time, each of which may become three: the third one fits, the fourth does not.
    assert_eq!([next(), next(), next()].map(|ops| table.apply(&ops)), [Ok(()), Ok(()), Ok(())]);
    let fourth = next();
    assert_eq!(table.apply(&fourth), Err(TableError::OverlayFull));
    assert_eq!((table.overlay(), table.find(v4(6 * MAX_OPS as u64))), (3 * MAX_OPS, None));
    // It is enough that a compaction has begun.
    assert_eq!(table.compact(1), Progress::More);
    assert_eq!((table.apply(&fourth), table.overlay()), (Ok(()), 4 * MAX_OPS));
    assert_eq!(table.find(v4(6 * MAX_OPS as u64)), Some(1));
}

#[test]
fn addresses_that_translators_write_are_those_of_ipv4() {
    let at = |text: &str| text.parse::<IpAddr>().unwrap();
    let mut builder = RangesBuilder::new(LabelWidth::Two);
    builder.set(at("192.0.2.0"), at("192.0.2.255"), 7).unwrap();
    builder.set(at("64:ff9b::198.51.100.0"), at("64:ff9b::198.51.100.9"), 8).unwrap();
    builder.set(at("2001:db8::"), at("2001:db8::ff"), 9).unwrap();
    let table = Ranges::load(builder.build().unwrap()).unwrap();
    for (address, label) in [
        ("64:ff9b::192.0.2.1", Some(7)),
        ("64:ff9b::198.51.100.9", Some(8)),
        ("198.51.100.9", Some(8)),
        ("198.51.100.10", None),
        ("2001:db8::1", Some(9)),
        ("64:ff9b:1::192.0.2.1", None),
    ] {
        assert_eq!(table.find(at(address)), label, "{address}");
    }
    // Their prefix as a whole is not all of IPv4.
    let mut builder = RangesBuilder::new(LabelWidth::Two);
    builder.set(at("64:ff9b::"), at("64:ff9b::ffff:ffff"), 7).unwrap();
    let table = Ranges::load(builder.build().unwrap()).unwrap();
    assert_eq!(table.find(at("192.0.2.1")), None);
}

#[test]
fn ranges_that_touch_cover_everything() {
    for bits in [0, 4, 8, 12] {
        let mut builder = RangesBuilder::new(LabelWidth::Two);
        let (four, six) = (|part: u64| part << (32 - bits), |part: u128| part.checked_shl(128 - bits).unwrap_or(0));
        for part in 0..1_u64 << bits {
            builder.set(v4(four(part)), v4(four(part + 1) - 1), part as u32).unwrap();
            let last = six(u128::from(part) + 1).wrapping_sub(1);
            builder.set(Ipv6Addr::from(six(part.into())).into(), Ipv6Addr::from(last).into(), part as u32).unwrap();
        }
        let table = Ranges::load(builder.build().unwrap()).unwrap();
        for part in 0..1_u64 << bits {
            for address in [four(part), four(part) + 1, four(part + 1) - 1] {
                assert_eq!(table.find(v4(address)), Some(part as u32), "{bits} bits, {address:x}");
            }
            let (first, last) = (six(part.into()), six(u128::from(part) + 1).wrapping_sub(1));
            for address in [first, last].map(Ipv6Addr::from) {
                // Addresses of IPv4 in IPv6 form are those of IPv4.
                if address.to_ipv4_mapped().is_none() {
                    assert_eq!(table.find(address.into()), Some(part as u32), "{bits} bits, {address}");
                }
            }
        }
    }
}

#[test]
fn damaged_rows_of_large_bases_do_not_harm() {
    let mut builder = RangesBuilder::new(LabelWidth::Two);
    let mut random = Random(6);
    for _ in 0..1_000 {
        let (four, six) = (v4(random.next() >> 32), Ipv6Addr::from(u128::from(random.next()) << 40).into());
        builder.set(four, four, 1).unwrap();
        builder.set(six, six, 2).unwrap();
    }
    let base = builder.build().unwrap();
    for seed in 0..30 {
        let mut random = Random(seed);
        let mut damaged = base.clone();
        for _ in 0..200 {
            // The header says how long the base is: it stays.
            let at = 24 + random.below(damaged.len() as u64 - 24) as usize;
            damaged[at] = random.next() as u8;
        }
        let table = Ranges::load(damaged).unwrap();
        for _ in 0..2_000 {
            let _ = table.find(v4(random.next() >> 32));
            let _ = table.find(Ipv6Addr::from(u128::from(random.next()) << 40).into());
        }
    }
}

#[test]
fn bytes_that_are_no_base_are_refused_and_no_rows_harm() {
    let (table, _) = built(&mut Random(5), LabelWidth::Two, 40);
    let base = table.save();
    for cut in 0..base.len() {
        assert!(Ranges::load(base[..cut].to_vec()).is_err());
    }
    assert_eq!(Ranges::load(crate::KeysBuilder::default().build().unwrap()).err(), Some(BaseError::Kind));
    for seed in 0..300 {
        let mut random = Random(seed);
        let mut damaged = base.clone();
        for _ in 0..10 {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = random.next() as u8;
        }
        if let Ok(mut table) = Ranges::load(damaged) {
            probes().for_each(|address| {
                let _ = table.find(address).and_then(|label| table.name(label).map(<[u8]>::len));
            });
            table.apply(&delta(&mut random, table.width(), &mut Model::default())).unwrap();
            while table.overlay() > 0 {
                table.compact(10);
            }
        }
    }
}
