use super::*;
use crate::samples::messages::ValueShape;

const NOW: u64 = 1_700_000_000_000;

fn matched(rule_id: u64, target: &str, path: &str) -> Matched {
    Matched {
        config: "shop".to_owned(),
        rule_id,
        phase: 2,
        target: target.to_owned(),
        path: path.to_owned(),
        method: "POST".to_owned(),
        count: 1,
        callers: vec![rule_id],
        value: b"value".to_vec(),
        request: Some(SampledRequest { uri: path.into(), ..SampledRequest::default() }),
        ..Matched::default()
    }
}

#[test]
fn matches_of_all_nodes_add_up() {
    let mut store = MatchStore::default();
    let first = Matched { count: 3, would_block: 2, age: 1000, ..matched(942_100, "ARGS:q", "/search") };
    store.take(vec![first.clone()], NOW);
    store.take(vec![first], NOW + 500);
    let later =
        Matched { callers: vec![1, 2], request: None, value: Vec::new(), ..matched(942_100, "ARGS:q", "/search") };
    store.take(vec![later], NOW + 9000);
    let all: Vec<&KeptMatch> = store.all().collect();
    assert_eq!(all.len(), 1);
    let kept = all[0];
    assert_eq!((kept.matched.count, kept.matched.would_block), (7, 4));
    assert_eq!((kept.first_seen, kept.last_seen()), (NOW, NOW + 9000));
    assert_eq!(kept.matched.callers, [1, 2, 942_100]);
    assert!(kept.matched.request.is_some() && kept.matched.value == b"value", "the sample stays");
    assert_eq!(kept.key(), "shop|942100|ARGS:q|/search");
    assert_eq!(store.get(&kept.key()), store.get(&kept.id()));
}

#[test]
fn the_callers_of_one_network_displace_no_others_of_a_match() {
    let mut store = MatchStore::default();
    let of = |callers: &[u64]| Matched { callers: callers.to_vec(), ..matched(942_100, "ARGS:q", "/search") };
    // The numbers of the flood are smaller than all others.
    let others: Vec<u64> = (0..6_u64).map(|number| (9_000 + number) << 32 | number).rev().collect();
    let flood: Vec<u64> = (0..1_000_u64).map(|number| number << 32 | 666).collect();
    store.take(vec![of(&others)], NOW);
    flood.chunks(50).for_each(|part| store.take(vec![of(part)], NOW));
    let kept = &store.all().next().unwrap().matched.callers;
    assert!(kept.len() == MAX_CALLERS_KEPT && kept.is_sorted(), "{kept:x?}");
    assert!(others.iter().all(|one| kept.contains(one)), "{kept:x?}");
}

#[test]
fn a_scan_pushes_out_what_it_brought_and_what_is_rare_stays() {
    let mut store = MatchStore::default();
    let rare = (0..20).map(|number| matched(900_000 + number, "ARGS:text", "/posts")).collect();
    store.take(rare, NOW);
    for number in 0..3000 {
        let scanned = matched(942_100, &format!("ARGS:p{number}"), "/search");
        store.take(vec![scanned], NOW + number);
    }
    assert_eq!(store.all().count(), MAX_MATCHES);
    assert_eq!(store.all().filter(|one| one.matched.rule_id != 942_100).count(), 20);
    assert!(store.get("shop|942100|ARGS:p2999|/search").is_some(), "the newest");
    assert!(store.get("shop|942100|ARGS:p0|/search").is_none(), "the oldest");
}

#[test]
fn what_no_filter_makes_is_refused() {
    let good = || matched(942_100, "ARGS:q", "/search");
    let bad = [
        Matched { config: String::new(), ..good() },
        Matched { rule_id: 0, ..good() },
        Matched { phase: 6, ..good() },
        Matched { count: 0, ..good() },
        Matched { count: u64::MAX, ..good() },
        Matched { target: "TX:score".to_owned(), ..good() },
        Matched { target: "ARGS:a\nb".to_owned(), ..good() },
        Matched { target: format!("ARGS:{}", "a".repeat(600)), ..good() },
        Matched { path: "search".to_owned(), ..good() },
        Matched { path: String::new(), ..good() },
        Matched { path: "/a\u{202e}b".to_owned(), ..good() },
        Matched { path: "/users/{slug}".to_owned(), ..good() },
        Matched { target: "ARGS:\u{202e}egap".to_owned(), ..good() },
        Matched {
            request: Some(SampledRequest { body: vec![0; MAX_BODY + 1], ..SampledRequest::default() }),
            ..good()
        },
        Matched {
            request: Some(SampledRequest { headers: vec![Default::default(); 200], ..SampledRequest::default() }),
            ..good()
        },
    ];
    for mut wrong in bad {
        assert!(!bounded(&mut wrong), "{wrong:?}");
    }
    let mut long = Matched { msg: "ä".repeat(400), would_block: 9, callers: (0..100).collect(), ..good() };
    assert!(bounded(&mut long) && long.msg.len() <= MAX_TEXT && long.callers.len() <= MAX_CALLERS);
    assert_eq!(long.would_block, 1);
}

#[test]
fn changes_are_written_once_and_matches_of_a_config_that_is_gone_are_forgotten() {
    let mut store = MatchStore::default();
    store.take(vec![matched(1, "ARGS:q", "/a"), matched(2, "ARGS:q", "/a")], NOW);
    let (put, gone) = store.changes();
    assert_eq!((put.len(), gone.len()), (2, 0));
    assert_eq!(store.changes(), (Vec::new(), Vec::new()));
    let restored = MatchStore::load(put.into_iter().map(|(_, one)| one));
    assert!(restored.all().eq(store.all()));
    store.forget(|_| false);
    let (put, mut gone) = store.changes();
    assert_eq!((put.len(), gone.len(), store.all().count()), (0, 2, 0));
    store.put_back(gone.remove(0));
    assert_eq!(store.changes().1.len(), 1);
}

#[test]
fn lies_about_parameters_are_refused_or_bounded() {
    let shape = |caller, shortest, longest| ValueShape { caller, alphabet: u64::MAX, shortest, longest };
    let good = || Parameter {
        config: "shop".to_owned(),
        target: "ARGS:page".to_owned(),
        path: "/list/{id}".to_owned(),
        count: 1,
        shapes: vec![shape(9, 1, 2), shape(1, 5, 2), shape(9, 0, 400), shape(3, 1, 1)],
        distinct: vec![u8::MAX; 64],
    };
    let mut lie = Parameter { shapes: (0..500).map(|caller| shape(caller, 1, 1)).collect(), ..good() };
    assert!(bounded_parameter(&mut lie) && lie.shapes.len() == MAX_SHAPES);
    let mut one = good();
    assert!(bounded_parameter(&mut one) && one.shapes.iter().map(|one| one.caller).eq([3, 9]));
    for mut wrong in [
        Parameter { count: 0, ..good() },
        Parameter { count: u64::MAX, ..good() },
        Parameter { config: String::new(), ..good() },
        Parameter { target: "REQUEST_HEADERS:page".to_owned(), ..good() },
        Parameter { target: "ARGS:".to_owned() + &"a".repeat(300), ..good() },
        Parameter { target: "ARGS:a\u{200b}".to_owned(), ..good() },
        Parameter { path: "list".to_owned(), ..good() },
        Parameter { path: "/users/{slug}".to_owned(), ..good() },
        Parameter { path: "/\u{e4}".to_owned(), ..good() },
        Parameter { path: "/a b".to_owned(), ..good() },
        Parameter { path: format!("/{}", "a".repeat(600)), ..good() },
    ] {
        assert!(!bounded_parameter(&mut wrong), "{wrong:?}");
    }
}
