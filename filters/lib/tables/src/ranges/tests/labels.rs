//! Labels and their names on the way from one table to the next.

use super::*;

/// What an address has: nothing, or the name of its label.
fn names(table: &Ranges) -> Vec<Option<Option<Vec<u8>>>> {
    probes().map(|address| table.find(address).map(|label| table.name(label).map(<[u8]>::to_vec))).collect()
}

/// Applies deltas operation by operation: none gives an address a name that neither table has for it.
fn assert_leads_safely(old: &Ranges, new: &Ranges, deltas: &[Vec<u8>], what: &str) {
    let (before, after) = (names(old), names(new));
    let mut table = old.clone();
    for delta in deltas {
        let mut rest = delta.as_slice();
        while !rest.is_empty() {
            let (_, left) = ops::read(rest, table.width()).unwrap();
            table.apply(&rest[..rest.len() - left.len()]).unwrap();
            rest = left;
            let now = names(&table);
            let third = (0..now.len()).find(|at| now[*at] != before[*at] && now[*at] != after[*at]);
            assert_eq!(third, None, "{what}");
        }
    }
    assert_eq!(table.save(), new.save(), "{what}");
}

/// Random ranges of some of these sources.
fn sources(random: &mut Random, count: u64) -> Vec<(String, IpAddr, IpAddr)> {
    let one = |random: &mut Random| {
        let (first, last) = range(random);
        (format!("feed-{}", random.below(6)), first, last)
    };
    (0..count).map(|_| one(random)).collect()
}

fn build(rows: &[(String, IpAddr, IpAddr)], before: &SourceLabels) -> (Ranges, SourceLabels) {
    let mut builder = SourceBuilder::default();
    for (name, first, last) in rows {
        let source = builder.source(name).unwrap();
        builder.add(source, *first, *last).unwrap();
    }
    let (base, labels) = builder.build_after(before).unwrap();
    (Ranges::load(base).unwrap(), labels)
}

#[test]
fn on_the_way_to_the_next_table_each_address_has_its_old_or_its_new_sources() {
    let mut bases = 0;
    for seed in 0..60 {
        let mut random = Random(7000 + seed);
        let (mut rows, mut labels) = (Vec::new(), SourceLabels::default());
        let mut old = build(&rows, &labels).0;
        for round in 0..6 {
            // Some rows go, others come.
            rows.retain(|_| random.below(3) > 0);
            let more = random.below(30);
            rows.extend(sources(&mut random, more));
            let (new, next) = build(&rows, &labels);
            let deltas = old.deltas_to(&new).expect("labels that are kept never need a base");
            assert_leads_safely(&old, &new, &deltas, &format!("seed {seed}, round {round}"));
            // Of tables that number their labels anew.
            let (anew, _) = build(&rows, &SourceLabels::default());
            match old.deltas_to(&anew) {
                Some(deltas) => assert_leads_safely(&old, &anew, &deltas, &format!("seed {seed}, round {round}, anew")),
                None => bases += 1,
            }
            (old, labels) = (new, next);
        }
    }
    assert!(bases > 100, "{bases}");
}

#[test]
fn a_change_of_one_address_is_one_operation_or_two() {
    let mut random = Random(8000);
    let mut rows = sources(&mut random, 200);
    let (old, labels) = build(&rows, &SourceLabels::default());
    // The lowest address of all gets a set that no other has: by their first appearance all others would move.
    rows.push(("feed-new".to_owned(), v4(2), v4(2)));
    let (new, next) = build(&rows, &labels);
    let deltas = old.deltas_to(&new).unwrap();
    assert!(deltas.len() == 1 && deltas[0].len() < 64, "{deltas:?}");
    let name = new.name(new.find(v4(2)).unwrap()).unwrap();
    assert!(std::str::from_utf8(name).unwrap().split(',').any(|source| source == "feed-new"));
    // And back: the number is free again once no row has it.
    rows.pop();
    let (back, last) = build(&rows, &next);
    assert_eq!((back.save(), last), (old.save(), labels));
}

#[test]
fn labels_that_exchange_their_names_need_a_base_and_a_name_that_changes_does_not() {
    let table = |names: [&[u8]; 2], split: u64| {
        let mut builder = RangesBuilder::new(LabelWidth::Two);
        builder.set(v4(0x0a00_0000), v4(0x0a00_0000 + split), 0).unwrap();
        builder.set(v4(0x0a00_0001 + split), v4(0x0a00_0100), 1).unwrap();
        names.iter().zip(0..).for_each(|(name, label)| builder.name(label, name).unwrap());
        Ranges::load(builder.build().unwrap()).unwrap()
    };
    let old = table([b"a", b"b"], 10);
    assert_eq!(old.deltas_to(&table([b"b", b"a"], 11)), None);
    for (new, what) in [
        (table([b"b", b"a"], 10), "no row changes"),
        (table([b"c", b"b"], 9), "rows leave the label"),
        (table([b"c", b"b"], 11), "rows come to it"),
    ] {
        let deltas = old.deltas_to(&new).unwrap();
        assert_leads_safely(&old, &new, &deltas, what);
    }
}

#[test]
fn labels_begin_anew_where_there_are_too_few() {
    let rows = |from: u64, count: u64| -> Vec<(String, IpAddr, IpAddr)> {
        (from..from + count).map(|number| (format!("s{number}"), v4(number), v4(number))).collect()
    };
    let (_, labels) = build(&rows(0, 40_000), &SourceLabels::default());
    let (table, next) = build(&rows(40_000, 30_000), &labels);
    assert_eq!(table.find(v4(40_000)), Some(0));
    assert_eq!(table.name(29_999), Some(&b"s69999"[..]));
    let (_, kept) = build(&rows(40_000, 30_001), &next);
    assert_ne!(kept, next);
}
