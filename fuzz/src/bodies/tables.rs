//! Tables: damaged bases and deltas are refused or harmless, and compaction changes no answer.

use std::net::{Ipv4Addr, Ipv6Addr};

use tables::{Keys, KeysBuilder, LabelWidth, Ranges, RangesBuilder, TableIndex};

/// The first byte chooses: a base, or operations on a small table; of ranges, or of keys.
pub fn run(data: &[u8]) {
    let Some((choice, rest)) = super::split_byte(data) else { return };
    match choice % 4 {
        0 => drop(Ranges::load(rest.to_vec()).map(|table| ranges(table, rest))),
        1 => drop(Keys::load(rest.to_vec()).map(|table| keys(table, rest))),
        2 => {
            let mut builder = RangesBuilder::new(LabelWidth::Two);
            let (first, last) = (Ipv4Addr::new(10, 0, 0, 0), Ipv4Addr::new(10, 255, 255, 255));
            builder.set(first.into(), last.into(), 1).expect("a range");
            builder.set(Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::LOCALHOST.into(), 2).expect("a range");
            let mut table = Ranges::load(builder.build().expect("a base")).expect("it loads");
            let before = table.clone();
            if table.apply(rest).is_err() {
                assert_eq!(table.save(), before.save(), "all of a delta or nothing");
            }
            let deltas = before.deltas_to(&table).expect("labels of one width");
            let mut led = before;
            deltas.iter().for_each(|delta| led.apply(delta).expect("a delta of our own"));
            assert_eq!(led.save(), table.save());
            ranges(table, rest);
        }
        _ => {
            let mut builder = KeysBuilder::default();
            builder.put(b"key", b"value").expect("a short key");
            let mut table = Keys::load(builder.build().expect("a base")).expect("it loads");
            let before = table.clone();
            if table.apply(rest).is_err() {
                assert_eq!(table.save(), before.save(), "all of a delta or nothing");
            }
            keys(table, rest);
        }
    }
}

/// Looks up every address that the input contains, before, while and after a compaction. Only a table with an overlay has one,
/// and its base is not a damaged one.
fn ranges(mut table: Ranges, data: &[u8]) {
    let answers = |table: &Ranges| -> Vec<Option<u32>> {
        let fours =
            data.windows(4).filter_map(|bytes| Some(Ipv4Addr::from(u32::from_le_bytes(bytes.try_into().ok()?)).into()));
        let sixes = data
            .windows(16)
            .filter_map(|bytes| Some(Ipv6Addr::from(u128::from_le_bytes(bytes.try_into().ok()?)).into()));
        fours.chain(sixes).take(500).map(|address| table.find(address)).collect()
    };
    let before = answers(&table);
    before.iter().flatten().for_each(|label| drop(table.name(*label).map(<[u8]>::to_vec)));
    while table.overlay() > 0 {
        table.compact(3);
        assert_eq!(answers(&table), before);
    }
}

/// The same with every part of the input as a key.
fn keys(mut table: Keys, data: &[u8]) {
    let answers = |table: &Keys| -> Vec<Option<Vec<u8>>> {
        data.windows(3).take(500).map(|key| table.find(key).map(<[u8]>::to_vec)).collect()
    };
    let before = answers(&table);
    while table.overlay() > 0 {
        table.compact(3);
        assert_eq!(answers(&table), before);
    }
}
