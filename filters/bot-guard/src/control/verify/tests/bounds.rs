//! What is kept and what waits has its limits.

use std::net::{Ipv4Addr, Ipv6Addr};

use material::Material;
use snapshot::TableKind;
use tables::{Keys, TableIndex as _};

use super::super::verdicts::Verdicts;
use super::super::waiting::Waiting;
use super::*;
use crate::{CrawlerVerdict, key, read_key};

const METHOD: &[u8] = b"method-1";

fn v4(number: u32) -> Vec<u8> {
    key(METHOD, Ipv4Addr::from(number).into())
}

fn verdict(finding: Finding, until: u64) -> CrawlerVerdict {
    CrawlerVerdict { finding, until, renew: until }
}

fn add(waiting: &mut Waiting, key: &[u8], known: bool) {
    waiting.add(key, read_key(key).unwrap().1, known);
}

#[test]
fn keys_are_those_of_canonical_addresses_alone() {
    let mapped = [METHOD, &"::ffff:192.0.2.7".parse::<Ipv6Addr>().unwrap().octets()].concat();
    assert_eq!(read_key(&mapped), None);
    assert_eq!(
        read_key(&key(METHOD, "::ffff:192.0.2.7".parse().unwrap())).unwrap().1,
        ADDRESS.parse::<IpAddr>().unwrap()
    );
    for wrong in [&b""[..], b"method", b"method-1", b"method-1abc", b"method-1abcde", &[0; 25]] {
        assert_eq!(read_key(wrong), None, "{wrong:?}");
    }
    assert_eq!(CrawlerVerdict::read(&verdict(Finding::Verified, 7).to_bytes()), Some(verdict(Finding::Verified, 7)));
    for wrong in [&b""[..], &[1; 16], &[9; 17]] {
        assert_eq!(CrawlerVerdict::read(wrong), None);
    }
}

#[test]
fn verified_crawlers_give_way_last() {
    let mut verdicts = Verdicts::default();
    for number in 0..50 {
        verdicts.put(&v4(number), verdict(Finding::Verified, 500 + u64::from(number)), 100);
    }
    for number in 1000..101_000 {
        verdicts.put(&v4(number), verdict(Finding::Impersonator, 1000 + u64::from(number)), 100);
    }
    let counts = verdicts.counts();
    assert_eq!((counts[&Finding::Verified], counts[&Finding::Impersonator]), (50, 50));
    assert!(verdicts.get(&v4(0), 0).is_some() && verdicts.get(&v4(100_999), 0).is_some());
    assert_eq!(verdicts.get(&v4(1000), 0), None, "what ends first gives way");
    for number in 100..200 {
        verdicts.put(&v4(number), verdict(Finding::Verified, 5000), 100);
    }
    assert_eq!(verdicts.counts()[&Finding::Verified], 100);
    verdicts.put(&v4(7_000_000), verdict(Finding::Impersonator, 9000), 100);
    assert_eq!(verdicts.get(&v4(7_000_000), 0), None, "there is nothing that gives way to it");
}

#[test]
fn verdicts_end_and_the_table_of_gateways_follows() {
    let (mut verdicts, material) = (Verdicts::default(), Material::default());
    material.publish("t", TableKind::Keys, verdicts.table().unwrap()).unwrap();
    for number in 0..5000 {
        let until = if number % 2 == 0 { 100 } else { 200 };
        verdicts.put(&v4(number), verdict(Finding::Unverifiable, until), 10_000);
    }
    let deltas = verdicts.deltas();
    assert_eq!((deltas.len(), verdicts.is_changed()), (5, false));
    let mut keys = Keys::load(verdicts.table().unwrap()).unwrap();
    assert_eq!(keys.rows(), 5000);
    deltas.iter().for_each(|delta| material.change("t", delta).unwrap());
    assert_eq!(verdicts.get(&v4(0), 99).unwrap().until, 100);
    assert_eq!(verdicts.get(&v4(0), 100), None);
    verdicts.expire(100);
    for delta in verdicts.deltas() {
        material.change("t", &delta).unwrap();
        keys.apply(&delta).unwrap();
    }
    assert_eq!(verdicts.counts()[&Finding::Unverifiable], 2500);
    assert!(keys.find(&v4(0)).is_none() && keys.find(&v4(1)).is_some());
    verdicts.retain(|key| *key == v4(1));
    assert_eq!(verdicts.counts()[&Finding::Unverifiable], 1);
}

#[test]
fn a_flood_waits_within_limits_and_known_crawlers_are_in_front() {
    let mut waiting = Waiting::default();
    for number in 0..1_000_000 {
        add(&mut waiting, &v4(number * 256), false);
    }
    assert_eq!((waiting.len(), waiting.dropped), (4096, 1_000_000 - 4096));
    add(&mut waiting, &v4(0xc000_0207), true);
    assert_eq!(waiting.next(), Some(v4(0xc000_0207)));
    assert_eq!(waiting.next(), Some(v4(0)));
    add(&mut waiting, &v4(0), false);
    assert_eq!(waiting.len(), 4095, "it runs already");
}

#[test]
fn a_network_takes_its_share_alone() {
    let mut waiting = Waiting::default();
    (0..256).for_each(|low| add(&mut waiting, &v4(0xc000_0200 + low), false));
    for low in 0..1000_u16 {
        add(&mut waiting, &key(METHOD, Ipv6Addr::new(0x2001, 0xdb8, 7, low, 0, 0, 0, 1).into()), false);
    }
    add(&mut waiting, &v4(0x0a00_0001), false);
    assert_eq!(waiting.len(), 16 + 16 + 1);
    let running: Vec<Vec<u8>> = std::iter::from_fn(|| waiting.next()).collect();
    assert_eq!(running.len(), 2 + 2 + 1, "two of a network at a time");
    waiting.ended(&running[0]);
    assert_eq!(std::iter::from_fn(|| waiting.next()).count(), 1);
    let mut ended = running.len() - 1 + 1;
    running.iter().skip(1).for_each(|key| waiting.ended(key));
    while let Some(key) = waiting.next() {
        waiting.ended(&key);
        ended += 1;
    }
    assert_eq!((ended, waiting.len()), (16 + 16 + 1 - 1, 0));
}
