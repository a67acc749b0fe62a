//! Bots whose owners publish addresses, with a table of lists made in the test.

use ::tables::SourceBuilder;

use super::*;

const NOW: u64 = 1_800_000_000_000;
const GOOGLE: &[u8] = b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const OWN: &str = "aaaaaaaaaaaa";
const SECOND: &str = "bbbbbbbbbbbb";

/// The Googlebot with these lists; `dns`: reverse DNS verifies it as well.
fn bots(lists: &[&str], dns: bool) -> Vec<KnownBot> {
    let mut bots = some_bots();
    bots[0].ranges = lists.iter().map(|list| (*list).to_owned()).collect();
    if !dns {
        bots[0].method = Vec::new();
    }
    bots
}

/// The plugin in a worker with these lists, each with its addresses, and these verdicts by reverse DNS.
fn worker(
    step: BotGuardStep,
    bots: Vec<KnownBot>,
    lists: Option<&[(&str, &[&str])]>,
    verdicts: &[(&str, Finding)],
) -> Box<dyn Plugin> {
    let part = BotList { bots, ..BotList::default() }.encode_to_vec();
    let hash = snapshot::content_hash(&part).to_vec();
    let step = BotGuardStep { bots: hash.clone(), ..step };
    let tables = Rc::new(Tables::default());
    let mut parts = Build::new(std::iter::once((hash.as_slice(), part.as_slice()))).with_tables(Rc::clone(&tables));
    let plugin = build(&step.encode_to_vec(), &mut parts).unwrap();
    let take = |name: &str, data: Vec<u8>| {
        let (state, size) = (State::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
        let change = snapshot::TableChange { name: name.into(), state, data, size, ..Default::default() };
        assert_eq!(tables.take(&change), Taken::Applied, "{name}");
    };
    if let Some(lists) = lists {
        let mut builder = SourceBuilder::default();
        for (label, addresses) in lists {
            let source = builder.source(label).unwrap();
            builder.add(source, LISTS, LISTS).unwrap();
            for address in *addresses {
                let address = address.parse().unwrap();
                builder.add(source, address, address).unwrap();
            }
        }
        take(RANGES, builder.build().unwrap());
    }
    if !verdicts.is_empty() {
        let mut builder = KeysBuilder::default();
        for (address, finding) in verdicts {
            let verdict = CrawlerVerdict { finding: *finding, until: NOW + 1000, renew: NOW + 1000 };
            builder.put(&key(&METHOD, address.parse().unwrap()), &verdict.to_bytes()).unwrap();
        }
        take(TABLE, builder.build().unwrap());
    }
    plugin
}

/// What the plugin makes of a crawler from an address: `v` verified and by what, `i` impersonator, `-` neither; and whether it asked.
fn meets(plugin: &dyn Plugin, address: &str) -> (String, bool) {
    let (host, mut exchange) = (FakeHost::at(NOW), request(address, &[GOOGLE]));
    let verdict = plugin.access(&mut exchange, &mut Slot::default(), &host);
    let tags = exchange.score.tags();
    let text = match verdict {
        Verdict::Skip(Skip { reason, .. }) => {
            assert!(tags.contains(&"bot:verified:googlebot"), "{tags:?}");
            reason.replace("`googlebot`, verified ", "v ")
        }
        Verdict::Refuse(_) => {
            assert!(tags.contains(&"bot:impersonator:googlebot"), "{tags:?}");
            "i".to_owned()
        }
        Verdict::Pass => "-".to_owned(),
        other => panic!("{other:?}"),
    };
    (text, !host.reports.borrow().is_empty())
}

#[test]
fn an_address_on_a_list_is_verified_and_one_on_none_is_an_impersonators() {
    let lists: &[(&str, &[&str])] = &[(OWN, &["192.0.2.7", "2001:db8::7"]), (SECOND, &["192.0.2.8"])];
    let plugin = worker(step(), bots(&[OWN], false), Some(lists), &[]);
    for address in ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::7"] {
        assert_eq!(meets(&*plugin, address), ("v by its published addresses".to_owned(), false), "{address}");
    }
    for address in ["192.0.2.6", "192.0.2.8", "2001:db8::8", "::ffff:192.0.2.8"] {
        assert_eq!(meets(&*plugin, address), ("i".to_owned(), false), "{address}");
    }
    let both = worker(step(), bots(&[OWN, SECOND], false), Some(lists), &[]);
    assert_eq!(meets(&*both, "192.0.2.8").0, "v by its published addresses");
}

#[test]
fn nothing_follows_from_a_list_that_is_not_there() {
    let own: &[(&str, &[&str])] = &[(OWN, &["192.0.2.7"])];
    for (lists, of_bot) in [(None, vec![OWN]), (Some([].as_slice()), vec![OWN]), (Some(own), vec![SECOND])] {
        let plugin = worker(step(), bots(&of_bot, false), lists, &[]);
        assert_eq!(meets(&*plugin, "192.0.2.9"), ("-".to_owned(), false), "{of_bot:?}");
    }
    // One of two lists is there: what it has is verified, all else is open.
    let plugin = worker(step(), bots(&[OWN, SECOND], false), Some(own), &[]);
    assert_eq!(
        (meets(&*plugin, "192.0.2.7").0.as_str(), meets(&*plugin, "192.0.2.9").0.as_str()),
        ("v by its published addresses", "-")
    );
}

#[test]
fn one_method_is_enough_and_an_impersonator_is_none_of_both() {
    let lists: &[(&str, &[&str])] = &[(OWN, &["192.0.2.7"])];
    let verdicts = [
        ("192.0.2.1", Finding::Verified),
        ("192.0.2.2", Finding::Impersonator),
        ("192.0.2.3", Finding::Unverifiable),
        ("192.0.2.7", Finding::Impersonator),
    ];
    let plugin = worker(step(), bots(&[OWN], true), Some(lists), &verdicts);
    let found = |address| meets(&*plugin, address).0;
    assert_eq!(found("192.0.2.1"), "v by reverse DNS");
    assert_eq!(found("192.0.2.2"), "i");
    assert_eq!(found("192.0.2.3"), "-", "a name server that fails says nothing");
    assert_eq!(found("192.0.2.7"), "v by its published addresses");
    assert_eq!(meets(&*plugin, "192.0.2.4"), ("-".to_owned(), true), "reverse DNS is asked for what is on no list");
    let without = worker(step(), bots(&[OWN], true), Some(&[]), &verdicts);
    assert_eq!(meets(&*without, "192.0.2.2").0, "-", "it may be on the list that is not there");
}

#[test]
fn the_address_that_names_all_lists_is_on_none() {
    let lists: &[(&str, &[&str])] = &[(OWN, &["192.0.2.7"])];
    let plugin = worker(step(), bots(&[OWN], false), Some(lists), &[]);
    for address in ["0.0.0.0", "::", "::ffff:0.0.0.0", "nonsense", ""] {
        assert_eq!(meets(&*plugin, address), ("-".to_owned(), false), "{address}");
    }
}

#[test]
fn a_policy_that_does_not_verify_looks_at_no_list() {
    let lists: &[(&str, &[&str])] = &[(OWN, &["192.0.2.7"])];
    let part = BotList { bots: bots(&[OWN], false), ..BotList::default() };
    let plugin = plugin_of(BotGuardStep { verify: false, ..step() }, part, None);
    assert_eq!(meets(&*plugin, "192.0.2.9"), ("-".to_owned(), false));
    let no_bypass = worker(BotGuardStep { bypass: false, ..step() }, bots(&[OWN], false), Some(lists), &[]);
    assert_eq!(meets(&*no_bypass, "192.0.2.7").0, "-", "it is verified, and skips nothing");
    let mut denied = bots(&[OWN], false);
    denied[0].reaction = BotReaction::Deny.into();
    let plugin = worker(step(), denied, Some(lists), &[]);
    let (host, mut exchange) = (FakeHost::at(NOW), request("192.0.2.7", &[GOOGLE]));
    assert!(matches!(plugin.access(&mut exchange, &mut Slot::default(), &host), Verdict::Refuse(_)));
    assert!(exchange.score.tags().contains(&"bot:verified:googlebot"));
}
