//! Answers of services, read.

use super::super::decisions::{Decisions, Key, Kind, Subject};
use super::super::stream::{Wanted, read};
use super::super::{keep, table};
use super::*;
use crate::control::DecisionScope;
use ::tables::SourceLabels;

fn wanted() -> Wanted {
    use DecisionScope::{As, Country, Ip, Range};
    Wanted { scopes: vec![Ip, Range, Country, As], origins: Vec::new() }
}

fn answer(new: &[String]) -> Vec<u8> {
    format!("{{\"new\":[{}],\"deleted\":null}}", new.join(",")).into_bytes()
}

#[test]
fn values_are_made_alike_however_the_service_has_them() {
    for (scope, value, first, last) in [
        ("Ip", "203.0.113.9", "203.0.113.9", "203.0.113.9"),
        ("ip", "203.0.113.9/32", "203.0.113.9", "203.0.113.9"),
        ("IP", "::ffff:1.2.3.4", "1.2.3.4", "1.2.3.4"),
        ("Range", "198.51.100.77/24", "198.51.100.0", "198.51.100.255"),
        ("RANGE", "::ffff:198.51.100.77/120", "198.51.100.0", "198.51.100.255"),
        ("range", "2001:DB8::1/64", "2001:db8::", "2001:db8::ffff:ffff:ffff:ffff"),
        ("range", "10.0.0.0/8", "10.0.0.0", "10.255.255.255"),
        ("Ip", " 192.0.2.1 ", "192.0.2.1", "192.0.2.1"),
    ] {
        let read = read(&answer(&[decision(7, scope, value, "BAN", "1h")]), &wanted()).unwrap();
        let [found] = &read.new[..] else { panic!("{value}: {read:?}") };
        let expected = Subject::Range(first.parse().unwrap(), last.parse().unwrap());
        assert_eq!((&found.key.subject, &found.key.kind, found.left_millis), (&expected, &Kind::Ban, 3_600_000));
    }
    for (scope, value, name) in
        [("Country", "CN", "cn"), ("country", "fr", "fr"), ("AS", "64496", "64496"), ("as", "AS64496", "64496")]
    {
        let read = read(&answer(&[decision(7, scope, value, "captcha", "1h")]), &wanted()).unwrap();
        assert_eq!(
            (&read.new[0].key.subject, &read.new[0].key.kind),
            (&Subject::Named(name.into()), &Kind::Other("captcha".into()))
        );
    }
}

#[test]
fn what_cannot_be_used_is_counted_and_hurts_nothing_else() {
    let odd = [
        decision(1, "Ip", "here", "ban", "1h"),
        decision(1, "Ip", "", "ban", "1h"),
        decision(1, "Ip", "192.0.2.1", "", "1h"),
        decision(1, "Ip", "192.0.2.1", "two words", "1h"),
        decision(1, "Ip", "192.0.2.1", "ban", "soon"),
        decision(1, "Ip", "192.0.2.1", "ban", ""),
        decision(1, "Range", "0.0.0.0/0", "ban", "1h"),
        decision(1, "Range", "8.0.0.0/7", "ban", "1h"),
        decision(1, "Range", "::/0", "ban", "1h"),
        decision(1, "Range", "2001:db8::/19", "ban", "1h"),
        decision(1, "Country", "China", "ban", "1h"),
        decision(1, "As", "4294967296", "ban", "1h"),
        decision(1, "As", "AS", "ban", "1h"),
        "{}".to_owned(),
        r#"{"scope": "Ip", "value": null, "type": null, "duration": null, "more": [{}]}"#.to_owned(),
    ];
    let mut all = odd.to_vec();
    all.push(ban(1, "192.0.2.9"));
    all.push(decision(1, "username", "bob", "ban", "1h"));
    all.push(decision(1, &"x".repeat(500), "bob", "ban", "1h"));
    let read = read(&answer(&all), &wanted()).unwrap();
    // The empty object has no scope at all.
    assert_eq!((read.new.len(), read.rejected), (1, odd.len() - 1), "{read:?}");
    assert_eq!(read.unknown.iter().map(String::as_str).collect::<Vec<_>>(), ["?", "username"]);
}

#[test]
fn a_service_that_sends_what_was_not_asked_for_is_not_followed() {
    let wanted = Wanted { scopes: vec![DecisionScope::Ip], origins: vec!["crowdsec".into()] };
    let of = |origin: &str| ban(1, "192.0.2.1").replace("cscli", origin);
    let simulated = of("crowdsec").replace("{", r#"{"simulated":true,"#);
    let all = [
        of("cscli"),
        of("crowdsec"),
        simulated,
        decision(1, "Range", "192.0.2.0/24", "ban", "1h").replace("cscli", "crowdsec"),
    ];
    let body = format!("{{\"new\":[{0}],\"deleted\":[{0}]}}", all.join(","));
    let read = read(body.as_bytes(), &wanted).unwrap();
    assert_eq!((read.new.len(), read.deleted.len(), read.rejected), (1, 1, 0));
}

#[test]
fn an_answer_that_is_not_whole_is_no_answer() {
    let whole = answer(&[ban(1, "192.0.2.1"), ban(2, "192.0.2.2")]);
    assert_eq!(read(&whole, &wanted()).unwrap().new.len(), 2);
    for end in 0..whole.len() {
        let error = read(&whole[..end], &wanted()).unwrap_err();
        assert!(!error.contains("192.0"), "{error}");
    }
    for odd in [
        "{}",
        "null",
        "[]",
        "\"new\"",
        r#"{"message": "no such table"}"#,
        r#"{"new": {}}"#,
        r#"{"new": [1]}"#,
        r#"{"new": [], "deleted": []} {}"#,
        r#"{"new": [{"value": 7}]}"#,
        "<html>",
        "",
    ] {
        assert!(read(odd.as_bytes(), &wanted()).is_err(), "{odd}");
    }
    for fine in [r#"{"new": null, "deleted": null}"#, r#"{"new": []}"#, r#"{"deleted": null, "links": {"a": [1]}}"#] {
        assert_eq!(read(fine.as_bytes(), &wanted()), Ok(super::super::stream::Answer::default()), "{fine}");
    }
    let deep = "[".repeat(100_000);
    assert!(read(format!("{{\"x\":{deep}").as_bytes(), &wanted()).is_err(), "and no stack is used up");
}

/// Decisions of a list of all, or of changes.
fn decisions(new: &[String], listed: bool) -> Decisions {
    let new = read(&answer(new), &wanted()).unwrap().new;
    if listed {
        return Decisions::of_list(new, 1_000);
    }
    let mut decisions = Decisions::default();
    decisions.add(new, 1_000);
    decisions
}

fn deletion(decisions: &mut Decisions, of: &str) -> bool {
    decisions.delete(&read(&answer(&[of.to_owned()]), &wanted()).unwrap().new)
}

#[test]
fn a_deletion_is_by_what_it_is_about_and_may_come_twice() {
    let mut all = decisions(
        &[
            ban(1, "192.0.2.1"),
            decision(2, "Range", "192.0.2.1/32", "ban", "1h"),
            decision(3, "Ip", "192.0.2.1", "captcha", "1h"),
        ],
        false,
    );
    // Its id was never sent: the longest of several was.
    assert!(deletion(&mut all, &ban(99, "192.0.2.1/32")));
    assert!(!deletion(&mut all, &ban(99, "192.0.2.1")), "the service repeats deletions");
    let left: Vec<i64> = all.iter().map(|(_, id, _)| id).collect();
    assert!(left.len() == 2 && !left.contains(&1), "of other scopes and kinds nothing was deleted: {left:?}");
}

#[test]
fn of_a_service_that_sends_each_decision_each_is_deleted_by_itself() {
    let mut all = decisions(&[ban(1, "192.0.2.1"), ban(2, "192.0.2.1").replace("cscli", "CAPI")], true);
    assert!(all.has_several() && all.len() == 1);
    assert!(!deletion(&mut all, &ban(1, "192.0.2.1")), "the other one stays");
    assert!(!deletion(&mut all, &ban(7, "192.0.2.1")));
    assert!(deletion(&mut all, &ban(2, "192.0.2.1")) && all.len() == 0);
}

#[test]
fn what_is_deleted_by_itself_on_one_key_is_deleted_by_the_key_on_others() {
    // Two spellings of one address; and two that end at the same time, of which a service sends both.
    for several in
        [["203.0.113.9", "203.0.113.9/32"], ["203.0.113.9", "203.0.113.9"], ["::ffff:203.0.113.9", "203.0.113.9"]]
    {
        let list = [ban(1, several[0]), ban(2, several[1]), decision(10, "Ip", "198.51.100.1", "ban", "4h")];
        let mut all = decisions(&list, true);
        assert!(deletion(&mut all, &ban(9, "198.51.100.1")), "{several:?}: its id was never sent");
        assert!(!deletion(&mut all, &ban(1, several[0])), "the other one stays");
        assert!(!deletion(&mut all, &ban(1, several[0])), "the service repeats deletions");
        // What is new on another key counts in the place of what was there.
        all.add(read(&answer(&[ban(20, "192.0.2.1"), ban(21, "192.0.2.1")]), &wanted()).unwrap().new, 1_000);
        assert!(deletion(&mut all, &ban(20, "192.0.2.1")));
        assert!(deletion(&mut all, &ban(2, several[1])) && all.len() == 0);
    }
}

#[test]
fn of_many_decisions_on_one_address_those_that_end_last_are_held() {
    let key = about("192.0.2.1", "192.0.2.1", "ban");
    let mut all = Decisions::default();
    // Each would be looked for among all others.
    for id in 0..300_000_u64 {
        all.insert_listed(key.clone(), i64::try_from(id).unwrap(), 1_000 + id.wrapping_mul(7_919) % 300_000);
    }
    let ends: Vec<u64> = all.iter().map(|(_, _, until)| until).collect();
    assert_eq!((all.len(), ends.len()), (1, 65));
    assert_eq!(ends.iter().filter(|end| **end >= 1_000 + 300_000 - 64).count(), 64, "{ends:?}");
}

#[test]
fn decisions_end_by_our_clock() {
    let short = decision(1, "Ip", "192.0.2.1", "ban", "2s");
    let mut all = decisions(&[short, ban(2, "192.0.2.2"), decision(3, "Ip", "192.0.2.3", "ban", "-1s")], false);
    assert_eq!((all.len(), all.next_end()), (2, Some(3_000)));
    assert!(!all.expire(2_999) && all.expire(3_000));
    assert_eq!((all.len(), all.next_end()), (1, Some(1_000 + 3_599_500)));
    // The longest duration that Go has, behind the largest clock.
    let long = decision(1, "Ip", "192.0.2.1", "ban", "2562047h47m16s");
    all.add(read(&answer(&[long]), &wanted()).unwrap().new, u64::MAX - 1);
    assert!(!all.expire(4_000) && all.len() == 2);
}

#[test]
fn decisions_come_back_from_the_store() {
    let new = [
        ban(1, "192.0.2.1"),
        ban(2, "192.0.2.1"),
        decision(3, "Range", "2001:db8::/32", "captcha", "4h"),
        decision(4, "Country", "CN", "ban", "4h"),
        decision(5, "AS", "64496", "throttle", "4h"),
    ];
    for listed in [true, false] {
        let decisions = decisions(&new, listed);
        let bytes = keep::encode("source", 7, &decisions);
        let expected = keep::Kept { source: "source".into(), last_sync: 7, decisions };
        assert_eq!(keep::decode(&bytes), Some(expected));
        for end in 0..bytes.len() {
            assert_eq!(keep::decode(&bytes[..end]), None, "cut at {end}");
        }
    }
    assert_eq!(keep::decode(b"decisions 1"), None);
}

fn about(first: &str, last: &str, kind: &str) -> Key {
    let subject = Subject::Range(first.parse().unwrap(), last.parse().unwrap());
    let kind = if kind == "ban" { Kind::Ban } else { Kind::Other(kind.into()) };
    Key { scope: DecisionScope::Range, subject, kind }
}

#[test]
fn labels_stay_the_same_so_that_a_small_change_is_one() {
    let of = |offset: u32| {
        let mut decisions = Decisions::default();
        for number in 0..5_000_u32 {
            let address = std::net::Ipv4Addr::from(0xc633_0000 + offset + 4 * number).to_string();
            decisions.insert(about(&address, &address, "ban"), i64::from(number), 10);
        }
        decisions
    };
    let (first, mut second) = (Arc::new(of(0)), of(2));
    let all =
        |second: &Decisions| vec![("b".to_owned(), Arc::clone(&first)), ("c".to_owned(), Arc::new(second.clone()))];
    let before = table::flatten(&all(&second), &SourceLabels::default()).unwrap();
    // The lowest address of all is of the other bouncer now: its label would be the first one.
    second.insert(about("1.0.0.1", "1.0.0.1", "captcha"), 1, 10);
    second.insert(about("1.0.0.2", "1.0.0.2", "ban"), 1, 10);
    let after = table::flatten(&all(&second), &before.labels).unwrap();
    let material = Material::default();
    material.publish("t", TableKind::Ranges, before.ranges).unwrap();
    let state = material.get("t").unwrap().base_state();
    material.publish("t", TableKind::Ranges, after.ranges).unwrap();
    let Some(Next::Change(change, _)) = material.next("t", TableKind::Ranges, Some(state)) else { panic!("a base") };
    assert!(change.data.len() < 100, "{} bytes", change.data.len());
}

#[test]
fn labels_are_those_of_the_table_of_addresses_that_was_published() {
    let mut decisions = Decisions::default();
    decisions.insert(about("192.0.2.1", "192.0.2.1", "ban"), 1, 10);
    let all = [("a".to_owned(), Arc::new(decisions))];
    let made = || table::flatten(&all, &SourceLabels::default()).unwrap();
    let labels = made().labels;
    assert_ne!(labels, SourceLabels::default());
    for (failing, expected) in [(NAMED_DECISIONS, Some(labels)), (DECISIONS, None)] {
        let publish =
            |name: &str, _: TableKind, _: Vec<u8>| if name == failing { Err("no room".to_owned()) } else { Ok(()) };
        let (kept, published) = publish_tables(made(), publish);
        assert_eq!((kept, published.err().as_deref()), (expected, Some("no room")), "{failing}");
    }
}

#[test]
fn a_service_that_refuses_everyone_is_left_out() {
    let mut wide = Decisions::default();
    for first in 1..=23 {
        wide.insert(about(&format!("{first}.0.0.0"), &format!("{first}.255.255.255"), "ban"), 1, 10);
    }
    let mut sane = Decisions::default();
    sane.insert(about("192.0.2.1", "192.0.2.1", "ban"), 1, 10);
    let all = [("sane".to_owned(), Arc::new(sane)), ("wide".to_owned(), Arc::new(wide))];
    let made = table::flatten(&all, &SourceLabels::default()).unwrap();
    assert!(made.left_out["wide"].contains("385875968 addresses"), "{:?}", made.left_out);
    assert_eq!(made.rows.keys().collect::<Vec<_>>(), ["sane"]);
}
