use std::net::IpAddr;

use super::*;

const MANY: usize = 1_000;

fn lines(list: &str) -> Result<Parsed, FeedError> {
    parse(&Format::CidrLines, list.as_bytes(), MANY)
}

fn shown(parsed: &Parsed) -> Vec<String> {
    parsed.addresses.ranges().map(|(first, last)| format!("{first}-{last}")).collect()
}

fn ranges(format: &Format, list: &str) -> Vec<String> {
    shown(&parse(format, list.as_bytes(), MANY).unwrap())
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn lines_have_comments_of_every_style() {
    let list = "\u{feff}# comment\r\n; comment\n// comment\n! comment\n\n  1.2.3.4  \n1.2.3.5 # why\n1.2.3.6;why\n1.2.3.7 // why\n\
                1.2.3.8,why\n1.2.3.9\twhy\n2.0.0.0/8 ; SBL1\n3.1.2.3/24\n4.0.0.0/255.255.0.0\n5.0.0.1-5.0.0.9\n\
                6.0.0.1 - 6.0.0.2\n2001:DB8::/32\r2001:470::1\n::ffff:7.7.7.7\n::ffff:7.7.8.0/120\n9.9.9.0#x";
    let parsed = lines(list).unwrap();
    let expected = [
        "1.2.3.4-1.2.3.9",
        "2.0.0.0-2.255.255.255",
        "3.1.2.0-3.1.2.255",
        "4.0.0.0-4.0.255.255",
        "5.0.0.1-5.0.0.9",
        "6.0.0.1-6.0.0.2",
        "7.7.7.7-7.7.7.7",
        "7.7.8.0-7.7.8.255",
        "9.9.9.0-9.9.9.0",
        "2001:470::1-2001:470::1",
        "2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
    ];
    assert_eq!(shown(&parsed), expected);
    assert_eq!((parsed.entries, parsed.rejected), (16, 0));
}

#[test]
fn addresses_that_translators_write_are_those_of_ipv4() {
    let parsed =
        lines("64:ff9b::7.7.7.7\n64:ff9b::7.7.8.0/120\n64:ff9b::7.8.0.0 - 64:ff9b::7.8.0.9\n64:ff9b::10.0.0.1")
            .unwrap();
    assert_eq!(shown(&parsed), ["7.7.7.7-7.7.7.7", "7.7.8.0-7.7.8.255", "7.8.0.0-7.8.0.9"]);
    assert_eq!((parsed.entries, parsed.rejected), (3, 1));
    // Their prefix as a whole is reserved space, and not all of IPv4.
    for whole in ["64:ff9b::/96", "64:ff9b::/64", "64:ff9b::-64:ff9b::ffff:ffff"] {
        assert!(matches!(lines(whole), Err(FeedError::Empty(1))), "{whole}");
    }
}

#[test]
fn what_is_no_address_is_counted_and_left_out() {
    let list = "1.2.3.4\nexample.com\n1.2.3.256\n1.2.3.4/33\n2001::/129\n1.2.3\n01.2.3.4\n1.2.3.9-1.2.3.4\n1.2.3.4-::1\n\
                1.0.0.0/255.0.255.0\n::ffff:1.2.3.4/24\n1.2.3.4/\n/8\n1.2.3.4/-8\nfe80::1%eth0\n1.2.3.4:80\n";
    let parsed = lines(list).unwrap();
    assert_eq!((parsed.entries, parsed.rejected), (1, 15));
    let parsed = parse(&Format::CidrLines, b"1.2.3.4\n\xff\xfe\n\0", MANY).unwrap();
    assert_eq!((parsed.entries, parsed.rejected), (1, 2));
}

#[test]
fn reserved_space_is_dropped_and_counted() {
    let parsed =
        lines("0.0.0.0/8\n10.0.0.0/8\n192.168.1.1\n127.0.0.1\nfe80::1\n::1\nfc00::/7\n240.0.0.0/4\n203.0.113.7")
            .unwrap();
    assert_eq!((parsed.entries, parsed.rejected), (1, 8));
    assert_eq!(shown(&parsed), ["203.0.113.7-203.0.113.7"]);
    // Of a range that reaches beyond it, the rest is used.
    assert_eq!(shown(&lines("9.255.255.0-11.0.0.255").unwrap()), ["9.255.255.0-9.255.255.255", "11.0.0.0-11.0.0.255"]);
    assert!(matches!(lines("10.0.0.1"), Err(FeedError::Empty(1))));
}

#[test]
fn a_list_without_an_address_is_an_error() {
    for list in ["", "\n\n# nothing\n", "<html><body>Too many requests</body></html>"] {
        assert!(matches!(lines(list), Err(FeedError::Empty(_))), "{list}");
    }
    let format = Format::Csv { column: 3, separator: b',', skip_header: false };
    assert!(matches!(parse(&format, b"1.2.3.4,x", MANY), Err(FeedError::Empty(_))));
}

#[test]
fn entries_have_a_limit_used_or_not() {
    let list = "1.2.3.4\nx\n".repeat(500);
    assert_eq!(parse(&Format::CidrLines, list.as_bytes(), 1_000).unwrap().entries, 500);
    for format in [Format::CidrLines, Format::Csv { column: 0, separator: b',', skip_header: false }] {
        assert_eq!(parse(&format, list.as_bytes(), 999), Err(FeedError::TooMany(999)));
    }
    let list = format!("[{}\"1.2.3.4\"]", "\"1.2.3.4\",".repeat(999));
    assert_eq!(parse(&Format::JsonArray(None), list.as_bytes(), 999), Err(FeedError::TooMany(999)));
    let attribute = r#"{"type":"ip-src","value":"1.2.3.4"},"#.repeat(999);
    let list = format!(r#"[{attribute}{{"type":"ip-dst","value":"1.2.3.4"}}]"#);
    assert_eq!(parse(&Format::Misp, list.as_bytes(), 999), Err(FeedError::TooMany(999)));
}

#[test]
fn a_column_of_a_table_is_read() {
    let of = |column, separator, skip_header, list| ranges(&Format::Csv { column, separator, skip_header }, list);
    assert_eq!(
        of(0, b',', false, "1.2.3.0/24,US,,\r\n2001:470::/32,US\n"),
        ["1.2.3.0-1.2.3.255", "2001:470::-2001:470:ffff:ffff:ffff:ffff:ffff:ffff"]
    );
    assert_eq!(of(1, b';', true, "name;ip\n# x\n\"a;b\";\"1.2.3.4\"\nshort\nc; 1.2.3.5 ;d\n"), ["1.2.3.4-1.2.3.5"]);
    assert_eq!(of(0, b'\t', true, "ip\tx\n1.2.3.4\ty"), ["1.2.3.4-1.2.3.4"]);
}

#[test]
fn json_is_read_at_a_path() {
    let array = |field: Option<&str>| Format::JsonArray(field.map(str::to_owned));
    let path = |text: &str| Format::JsonPath(text.parse().unwrap());
    for (format, list) in [
        (array(None), r#"["1.2.3.4", "1.2.3.5"]"#),
        (array(Some("ip")), r#"[{"x": [{"ip": "9.9.9.9"}], "ip": "1.2.3.4"}, {"ip": "1.2.3.5", "ip2": 1}, {"x": 1}]"#),
        (array(Some("cidr")), "{\"cidr\":\"1.2.3.4\",\"x\":1}\n{\"cidr\":\"1.2.3.5/32\"}\n"),
        (
            path("data[].ipAddress"),
            r#"{"meta": {"data": []}, "data": [{"ipAddress": "1.2.3.4"}, {"ipAddress": "1.2.3.5"}]}"#,
        ),
        (
            path("values[].properties.addressPrefixes[]"),
            r#"{"values": [{"properties": {"addressPrefixes": ["1.2.3.4/31", null]}}]}"#,
        ),
        (path("a.b"), r#"{"a": {"b": ["1.2.3.4", "1.2.3.5"]}}"#),
        (path("[][]"), r#"[["1.2.3.4"], ["1.2.3.5"]]"#),
        (path("a\u{e9}"), "{\"a\\u00e9\": \"1.2.3.4/31\"}"),
    ] {
        assert_eq!(ranges(&format, list).concat(), "1.2.3.4-1.2.3.5", "{list}");
    }
    let parsed =
        parse(&path("a[].ip"), br#"{"a": [{"ip": 16909060}, {"ip": {}}, {"ip": true}, {"ip": "1.2.3.4"}]}"#, MANY)
            .unwrap();
    assert_eq!((parsed.entries, parsed.rejected), (1, 3));
    for wrong in ["", "a..b", "a[0]", "a[", ".a", "[]a"] {
        assert_eq!(wrong.parse::<Path>(), Err(PathError), "{wrong}");
    }
}

#[test]
fn json_that_is_cut_off_or_another_document_is_an_error() {
    let whole = r#"{"data": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]}"#;
    let format = Format::JsonPath("data[].ip".parse().unwrap());
    assert!(parse(&format, whole.as_bytes(), MANY).is_ok());
    for end in 0..whole.len() {
        assert!(
            matches!(parse(&format, &whole.as_bytes()[..end], MANY), Err(FeedError::Json { .. })),
            "{}",
            &whole[..end]
        );
    }
    assert_eq!(parse(&format, br#"{"error": "quota"}"#, MANY), Err(FeedError::Nowhere("data[].ip".to_owned())));
    let error = parse(&format, b"{\n \"data\": <html>", MANY).unwrap_err();
    assert_eq!(error.to_string(), "the list is no complete JSON document: line 2, column 10");
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&Format::JsonArray(None), deep.as_bytes(), MANY).is_err());
    assert!(parse(&Format::Misp, deep.as_bytes(), MANY).is_err());
}

#[test]
fn attributes_of_misp_are_found_wherever_they_are() {
    let attributes = r#"[
        {"value": "1.2.3.1", "type": "ip-src", "to_ids": true}, {"type": "ip-dst|port", "value": "1.2.3.2|443", "to_ids": "1"},
        {"type": "domain|ip", "value": "example.com|1.2.3.3"}, {"type": "ip-src", "value": "1.2.3.9", "to_ids": false},
        {"type": "ip-src", "value": "1.2.3.9", "deleted": true}, {"type": "domain", "value": "1.2.3.9"}, {"type": 5, "value": 6}]"#;
    for list in [
        attributes.to_owned(),
        format!(r#"{{"Event": {{"id": "1", "Attribute": [], "Object": [{{"Attribute": {attributes}}}]}}}}"#),
        format!(r#"{{"response": [{{"Event": {{"Attribute": {attributes}}}}}]}}"#),
        format!(r#"{{"response": {{"Attribute": {attributes}}}}}"#),
        r#"{"type": "cidr", "name": "a list", "list": ["1.2.3.1", "1.2.3.2/31"]}"#.to_owned(),
    ] {
        assert_eq!(ranges(&Format::Misp, &list), ["1.2.3.1-1.2.3.3"], "{list}");
    }
}

#[test]
fn lists_that_would_refuse_everyone_are_refused() {
    let checked = |list: &str| check(&lines(list).unwrap().addresses);
    for list in ["1.1.1.1", "8.0.0.0/8", "0.0.0.0/0", "::/0", "2001:4860::/32", "9.9.9.8-9.9.9.10"] {
        assert!(matches!(checked(list), Err(FeedError::Canary(_))), "{list}");
    }
    assert_eq!(checked("1.0.0.0/24\n1.1.1.0\n1.1.1.2/31"), Ok(()));
    let most = "32.0.0.0/5\n48.0.0.0/6\n64.0.0.0/5";
    assert!(lines(most).unwrap().addresses.v4_addresses() < MAX_V4 && checked(most).is_ok());
    assert!(matches!(checked(&format!("{most}\n72.0.0.0/6\n")), Err(FeedError::Coverage(_))));
    assert_eq!(checked("2a00::/8\n"), Ok(()));
    assert!(matches!(checked("2a00::/7\n3000::/8"), Err(FeedError::Coverage(_))));
}

#[test]
fn a_list_that_has_nothing_to_do_with_the_one_before_is_told() {
    let of = |ranges: usize| {
        let list: String = (0..ranges).map(|n| format!("3.{}.{}.1\n", n / 256, n % 256)).collect();
        parse(&Format::CidrLines, list.as_bytes(), 100_000).unwrap().addresses
    };
    let between = |before: usize, now: usize| Churn::between(&of(before), &of(now));
    assert_eq!(between(99, 1), None);
    assert_eq!(between(100, 20), None);
    assert_eq!(between(100, 19), Some(Churn::Shrunk { before: 100, now: 19 }));
    assert_eq!(between(100, 2_019), None);
    assert_eq!(between(100, 2_020), Some(Churn::Grown { before: 100, now: 2_020 }));
}

#[test]
fn a_list_that_covers_far_more_or_less_than_the_one_before_is_told() {
    let of = |list: &str| parse(&Format::CidrLines, list.as_bytes(), 100_000).unwrap().addresses;
    let between = |before: &str, now: &str| Churn::between(&of(before), &of(now));
    // One range more, and a sixteenth of the Internet with it.
    let singles: String = (0..200).map(|n| format!("3.0.{n}.1\n")).collect();
    let with_a_sixteenth = format!("{singles}64.0.0.0/4");
    assert_eq!(
        between(&singles, &with_a_sixteenth),
        Some(Churn::CoversMore { before: 200, now: 200 + (1 << 28) }),
        "{with_a_sixteenth}"
    );
    assert_eq!(between(&with_a_sixteenth, &singles), Some(Churn::CoversLess { before: 200 + (1 << 28), now: 200 }));
    // Few ranges as well, and lists that covered a lot already.
    assert!(between("3.0.0.1", "3.0.0.1\n64.0.0.0/4").is_some());
    assert!(between("64.0.0.0/6\n80.0.0.0/6", "64.0.0.0/4\n80.0.0.0/6").is_some());
    assert!(between("2600::/32", "2600::/32\n2a00::/16").is_some());
    assert!(between("2600::1\n2600::3", "2600::1\n2600::/24").is_some());
    // What lists do: an attacker's network or a stolen block of a provider comes or goes.
    for (before, now) in [
        ("3.0.0.1", "3.0.0.1\n64.0.0.0/13"),
        ("64.0.0.0/13\n3.0.0.1", "3.0.0.1"),
        ("64.0.0.0/9", "64.0.0.0/9\n65.0.0.0/9"),
        ("64.0.0.0/6\n80.0.0.0/6", "64.0.0.0/6\n80.0.0.0/6\n96.0.0.0/6"),
        ("2600::1", "2600::1\n2a00::/29"),
    ] {
        assert_eq!(between(before, now), None, "{before} {now}");
    }
    let told = between(&singles, &with_a_sixteenth).unwrap().to_string();
    assert_eq!(told, "the list covers 268435656 addresses, and the one before 200");
}

/// An address or range in a small part of both families, so that they meet.
fn some_entry(random: &mut fastrand::Rng) -> String {
    let (a, b, c) = (random.u8(..4), random.u8(..), random.u8(..));
    match random.u8(..4) {
        0 => format!("9.{}.{a}.{b}/{}", 254 + a % 2, random.u8(16..=32)),
        1 => format!("10.0.{a}.{}-10.0.{a}.{}", b.min(c), b.max(c)),
        2 => format!("11.0.{a}.{b}"),
        _ => format!("2001:db8::{a}:{b:x}/{}", random.u8(112..=128)),
    }
}

fn asked() -> impl Iterator<Item = IpAddr> {
    let v4 = (0_u32..0x0202_0000).step_by(997).map(|offset| IpAddr::from((0x09fd_ff00_u32 + offset).to_be_bytes()));
    let v6 = (0_u32..0x0005_0000).step_by(311).map(|offset| match address("2001:db8::") {
        IpAddr::V6(base) => IpAddr::from((u128::from(base) + u128::from(offset)).to_be_bytes()),
        base @ IpAddr::V4(_) => base,
    });
    v4.chain(v6)
}

#[test]
fn a_set_has_what_one_of_its_entries_has_and_is_not_reserved() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..24 {
        let entries: Vec<String> = (0..random.usize(1..40)).map(|_| some_entry(&mut random)).collect();
        let spans: Vec<_> = entries.iter().map(|entry| entry::span(entry).unwrap()).collect();
        let one_by_one: Vec<AddressSet> = spans.iter().map(|span| AddressSet::of(&[*span])).collect();
        let all = AddressSet::of(&spans);
        let usable = lines(&entries.join("\n")).map(|parsed| parsed.addresses).unwrap_or_default();
        for address in asked() {
            let is_in = one_by_one.iter().any(|set| set.contains(address));
            assert_eq!(all.contains(address), is_in, "{address} {entries:?}");
            let private = matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 10);
            assert_eq!(usable.contains(address), is_in && !private, "{address} {entries:?}");
        }
        let ranges: Vec<_> = all.ranges().collect();
        assert!(ranges.is_sorted() && ranges.iter().all(|(first, last)| first <= last));
    }
}

#[test]
fn no_bytes_are_too_odd() {
    let mut random = fastrand::Rng::with_seed(8);
    let path = Format::JsonPath("a[].b".parse().unwrap());
    let table = Format::Csv { column: 1, separator: b',', skip_header: true };
    let formats = [Format::CidrLines, table, Format::JsonArray(Some("a".to_owned())), path, Format::Misp];
    for round in 0..4_000 {
        let list: Vec<u8> =
            (0..random.usize(..200))
                .map(|_| {
                    if round % 2 == 0 { random.u8(..) } else { b"0123456789./,:[]{}\"abcdef \n#;-"[random.usize(..30)] }
                })
                .collect();
        for format in &formats {
            if let Ok(parsed) = parse(format, &list, MANY) {
                assert!(parsed.entries > 0 && !parsed.addresses.is_empty());
            }
        }
    }
}

#[test]
fn the_range_of_an_address_is_found() {
    let set = lines("1.2.3.4-1.2.3.9\n2001:db8::/32").unwrap().addresses;
    let range = |text: &str| set.range_of(address(text)).map(|(first, last)| format!("{first}-{last}"));
    assert_eq!(range("1.2.3.4").as_deref(), Some("1.2.3.4-1.2.3.9"));
    assert_eq!(range("::ffff:1.2.3.9").as_deref(), Some("1.2.3.4-1.2.3.9"));
    assert_eq!(range("64:ff9b::1.2.3.9").as_deref(), Some("1.2.3.4-1.2.3.9"));
    assert_eq!(range("2001:db8::7").as_deref(), Some("2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"));
    assert_eq!((range("1.2.3.3"), range("1.2.3.10"), range("2001:db9::")), (None, None, None));
}

#[test]
fn a_list_costs_no_more_than_it_is_long() {
    // Documents without an entry, of which there is no end.
    let documents = "{} ".repeat(2_000_000);
    let format = Format::JsonPath("a[]".parse().unwrap());
    assert!(matches!(parse(&format, documents.as_bytes(), MANY), Err(FeedError::Nowhere(_))));
    // A row of fields that are not wanted.
    let row = format!("{}1.2.3.4", ",".repeat(2_000_000));
    let format = Format::Csv { column: 2_000_000, separator: b',', skip_header: false };
    assert_eq!(ranges(&format, &row), ["1.2.3.4-1.2.3.4"]);
    // What is in a list of something else.
    let list = format!(r#"{{"list":[{}0],"type":"cidr"}}"#, r#"0,{"a":[1]},"#.repeat(200_000));
    assert!(matches!(parse(&Format::Misp, list.as_bytes(), MANY), Err(FeedError::Empty(_))));
    // An entry without an end.
    let long = format!("{}\n1.2.3.4\n", "\u{e9}".repeat(1_000_000));
    assert_eq!(shown(&lines(&long).unwrap()), ["1.2.3.4-1.2.3.4"]);
}

#[test]
fn long_fields_and_missing_columns_are_rejected_entries() {
    let format = Format::Csv { column: 1, separator: b';', skip_header: true };
    let list = format!("a;b\n# c;d\n1; 1.2.3.4 \n2;{}\n3\n\"x\ny\";\"1.2.3.5\"\n", "9".repeat(10_000));
    let parsed = parse(&format, list.as_bytes(), MANY).unwrap();
    assert_eq!((shown(&parsed), parsed.rejected), (vec!["1.2.3.4-1.2.3.5".to_owned()], 2));
}
