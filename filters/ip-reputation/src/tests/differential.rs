//! The table and the step compared with a search that looks at every range of every feed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::*;

/// Addresses that are compared: `PALISADE_REPUTATION_ADDRESSES` says another number.
const ADDRESSES: u64 = 1_000_000;

struct Range {
    feed: usize,
    first: IpAddr,
    last: IpAddr,
}

/// splitmix64: the same addresses in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// An address of a space so small that ranges meet: a /16 of IPv4, and a /112 of IPv6.
    fn address(&mut self) -> IpAddr {
        let low = self.below(1 << 16) as u32;
        match self.below(3) {
            0 => Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(low)).into(),
            _ => Ipv4Addr::from(0xc000_0000 | low).into(),
        }
    }

    fn range(&mut self, feeds: usize) -> Range {
        let (feed, first, bits) = (self.below(feeds as u64) as usize, self.address(), self.below(11));
        let length = self.below(1 << bits);
        let last = match first {
            IpAddr::V4(address) => Ipv4Addr::from(u32::from(address).saturating_add(length as u32)).into(),
            IpAddr::V6(address) => Ipv6Addr::from(u128::from(address).saturating_add(length.into())).into(),
        };
        Range { feed, first, last }
    }
}

#[test]
fn lookups_agree_with_a_search_through_all_ranges() {
    const FEEDS: usize = 12;
    const RANGES: usize = 40;
    let count = std::env::var("PALISADE_REPUTATION_ADDRESSES").ok().and_then(|count| count.parse().ok());
    let count: u64 = count.unwrap_or(ADDRESSES);
    let mut random = Random(0x70_616c_6973);
    let ranges: Vec<Range> = (0..RANGES).map(|_| random.range(FEEDS)).collect();
    // Some feeds are in the table and not in the step.
    let known = |feed: usize| feed % 4 != 3;
    let weight = |feed: usize| (feed + 1) as f64;
    let mut builder = SourceBuilder::default();
    for range in &ranges {
        let source = builder.source(&format!("k{:02}", range.feed)).unwrap();
        builder.add(source, range.first, range.last).unwrap();
    }
    let feeds = (0..FEEDS).filter(|feed| known(*feed));
    let feeds: Vec<FeedOfStep> = feeds.map(|number| feed(&format!("k{number:02}"), weight(number), false)).collect();
    let tables = Rc::new(Tables::default());
    let handle = tables.ranges(TABLE).unwrap();
    let data = builder.build().unwrap();
    let (state, size) = (State::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
    let change = snapshot::TableChange { name: TABLE.into(), state, data, size, ..Default::default() };
    assert_eq!(tables.take(&change), Taken::Applied);
    let plugin = IpReputation {
        feeds,
        passthrough: Exemptions::default(),
        monitor: false,
        score_threshold: 0.0,
        status: 403,
        report: false,
        table: handle,
        classes: None,
        decisions: None,
        blocklists: None,
    };
    let mut listed = 0_u64;
    let mut compare = |address: IpAddr| {
        let mut naive = [false; FEEDS];
        for range in ranges.iter().filter(|range| range.first.is_ipv4() == address.is_ipv4()) {
            naive[range.feed] |= range.first <= address && address <= range.last && known(range.feed);
        }
        let mut found = [false; FEEDS];
        for feed in plugin.hits(address, &[]) {
            found[feed.feed.weight as usize - 1] = true;
        }
        assert_eq!(found, naive, "{address}");
        listed += u64::from(naive.contains(&true));
    };
    let edges = ranges.iter().flat_map(|range| [range.first, range.last]).flat_map(around);
    edges.chain(std::iter::repeat_with(|| random.address()).take(count as usize)).for_each(&mut compare);
    assert!(listed > count / 100 && listed < count, "{listed} of {count} are listed");
}
