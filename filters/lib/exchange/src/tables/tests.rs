use std::net::IpAddr;

use super::*;
use ::tables::{KeyOps, KeysBuilder, MAX_OPS};

fn base(rows: u32) -> Vec<u8> {
    let mut builder = KeysBuilder::default();
    (0..rows).for_each(|row| builder.put(&row.to_be_bytes(), b"base").unwrap());
    builder.build().unwrap()
}

fn chunks(base: &[u8], length: usize) -> Vec<TableChange> {
    let state = State::of_base(base).0.to_vec();
    let size = u32::try_from(base.len()).unwrap();
    let chunk = |(place, data): (usize, &[u8])| TableChange {
        name: "t".into(),
        state: state.clone(),
        data: data.to_vec(),
        offset: u32::try_from(place * length).unwrap(),
        size,
        ..TableChange::default()
    };
    base.chunks(length).enumerate().map(chunk).collect()
}

fn delta(from: State, ops: Vec<u8>) -> (State, TableChange) {
    let state = from.after(&ops);
    let change = TableChange {
        name: "t".into(),
        from: from.0[..8].to_vec(),
        state: state.0.to_vec(),
        data: ops,
        ..TableChange::default()
    };
    (state, change)
}

fn put(key: u32, value: &[u8]) -> Vec<u8> {
    let mut ops = KeyOps::default();
    ops.put(&key.to_be_bytes(), value).unwrap();
    ops.finish()
}

fn find(table: &KeysTable, key: u32) -> Option<Vec<u8>> {
    table.read(|keys| keys.find(&key.to_be_bytes()).map(<[u8]>::to_vec)).flatten()
}

#[test]
fn a_base_comes_in_chunks_and_deltas_change_it() {
    let tables = Tables::default();
    let table = tables.keys("t").unwrap();
    assert!(!table.is_there());
    assert_eq!(tables.tell().tables, [KeptTable { name: "t".into(), kind: 1, ..KeptTable::default() }]);
    let (base, last) = (base(100), chunks(&base(100), 64).len() - 1);
    for (place, chunk) in chunks(&base, 64).iter().enumerate() {
        let expected = if place == last { Taken::Applied } else { Taken::Waits };
        assert_eq!(tables.take(chunk), expected);
    }
    assert_eq!(find(&table, 7).unwrap(), b"base");
    let (state, change) = delta(State::of_base(&base), put(7, b"new"));
    assert_eq!(tables.take(&change), Taken::Applied);
    assert_eq!(find(&table, 7).unwrap(), b"new");
    assert_eq!(tables.tell().tables[0].state, state.0);
    // The same content as a base of its own.
    let renamed = State::of_base(&table.read(TableIndex::save).unwrap());
    let rebase =
        TableChange { name: "t".into(), from: state.0.to_vec(), state: renamed.0.to_vec(), ..TableChange::default() };
    assert_eq!(tables.take(&rebase), Taken::Applied);
    assert_eq!(tables.take(&delta(renamed, put(7, b"newer")).1), Taken::Applied);
    assert_eq!(find(&table, 7).unwrap(), b"newer");
}

#[test]
fn what_does_not_fit_is_refused_and_the_table_serves_as_it_was() {
    let tables = Tables::default();
    let table = tables.keys("t").unwrap();
    let (base, larger) = (base(100), base(101));
    let parts = chunks(&base, 64);
    let refused = |change: &TableChange| match tables.take(change) {
        Taken::Refused(reason) => reason,
        other => panic!("{other:?}"),
    };
    let (_, early) = delta(State::of_base(&base), put(1, b"x"));
    assert!(refused(&early).contains("before the base"));
    assert!(tables.tell().tables[0].refused.contains("before the base"));
    assert_eq!(tables.tell().tables[0].refused, "", "told once");
    assert!(refused(&parts[1]).contains("missing"), "the first one is not there");
    tables.take(&parts[0]);
    assert!(refused(&parts[2]).contains("missing"), "the second one is not there");
    assert!(refused(&parts[1]).contains("missing"), "it begins anew");
    parts.iter().for_each(|part| drop(tables.take(part)));
    assert!(table.is_there());
    // Another base, of which a byte is wrong.
    let mut parts = chunks(&larger, 64);
    parts[3].data[0] ^= 1;
    let last = parts.len() - 1;
    parts[..last].iter().for_each(|part| assert_eq!(tables.take(part), Taken::Waits));
    assert_eq!(find(&table, 7).unwrap(), b"base", "the one before serves meanwhile");
    refused(&parts[last]);
    let (_, mut gap) = delta(State::of_base(&larger), put(1, b"x"));
    refused(&gap);
    gap.state.pop();
    refused(&gap);
    let (_, mut unreadable) = delta(State::of_base(&base), vec![99]);
    refused(&unreadable);
    unreadable.size = u32::MAX;
    unreadable.state = vec![0; 32];
    refused(&unreadable);
    assert_eq!((find(&table, 7).unwrap(), find(&table, 100)), (b"base".to_vec(), None));
    assert_eq!(tables.take(&TableChange { name: "u".into(), ..gap }), Taken::NotKept);
}

#[test]
fn a_table_lives_as_long_as_a_plugin_keeps_it() {
    let tables = Tables::default();
    let table = tables.keys("t").unwrap();
    chunks(&base(3), 64).iter().for_each(|part| drop(tables.take(part)));
    let again = tables.keys("t").unwrap();
    drop(table);
    assert_eq!(find(&again, 1).unwrap(), b"base", "it is the same one");
    assert!(tables.ranges("t").unwrap_err().contains("another kind"));
    drop(again);
    assert!(tables.tell().tables.is_empty());
    let ranges = tables.ranges("t").unwrap();
    assert_eq!(ranges.read(|ranges| ranges.find(IpAddr::from([192, 0, 2, 1]))), None);
    assert!(tables.ranges("").is_err() && tables.ranges(&"t".repeat(MAX_TABLE_NAME + 1)).is_err());
    let many: Vec<_> = (1..MAX_TABLES).map(|number| tables.keys(&number.to_string()).unwrap()).collect();
    assert!(tables.keys("one more").unwrap_err().contains("at most 64"));
    drop(many);
    assert!(tables.keys("one more").is_ok());
}

#[test]
fn changes_are_merged_in_quiet_moments_and_at_once_where_there_are_none() {
    let tables = Tables::default();
    let table = tables.keys("t").unwrap();
    let base = base(100_000);
    chunks(&base, 1 << 16).iter().for_each(|part| drop(tables.take(part)));
    let mut state = State::of_base(&base);
    let mut change = |from: u32, count: usize| {
        let mut ops = KeyOps::default();
        (from..).take(count).for_each(|key| ops.put(&key.to_be_bytes(), b"new").unwrap());
        let (after, change) = delta(state, ops.finish());
        state = after;
        assert_eq!(tables.take(&change), Taken::Applied);
    };
    assert!(!tables.merge());
    change(0, 511);
    assert!(!tables.merge(), "it is not worth it yet");
    change(1_000, 1);
    let calls = (0..100).take_while(|_| tables.merge()).count();
    assert!((1..10).contains(&calls), "{calls}");
    assert_eq!(table.read(|keys| keys.overlay()), Some(0));
    (0..20).for_each(|round| change(50_000 + round * 2_048, MAX_OPS));
    assert_eq!(find(&table, 50_000 + 19 * 2_048).unwrap(), b"new");
}
