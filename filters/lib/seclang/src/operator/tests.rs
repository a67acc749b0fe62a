//! Operators from their argument to their answer.

use super::*;

struct Files;

impl DataFiles for Files {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        Some(match name {
            "words.data" => b"# comment\nalpha beta\r\n\n   \ngamma|41|\n".to_vec(),
            "networks.data" => b"192.0.2.0/24 # office\n# none\n2001:db8::/32\n".to_vec(),
            "wrong.data" => b"192.0.2.0/99\n".to_vec(),
            "empty.data" => b"# nothing\n".to_vec(),
            _ => return None,
        })
    }
}

fn operator(kind: OperatorKind, argument: &str) -> Operator {
    let argument = check(kind, argument.as_bytes(), &Files).expect(argument);
    Operator::build(kind, &argument).expect("checked")
}

fn captures() -> Captures {
    let mut captures = Captures::new();
    captures.wanted(true);
    captures
}

fn refusal(kind: OperatorKind, argument: &str) -> OperatorError {
    check(kind, argument.as_bytes(), &Files).expect_err(argument)
}

#[test]
fn evaluates_as_the_table_says() {
    use OperatorKind as Kind;
    let cases: &[(Kind, &str, &[u8], bool)] = &[
        (Kind::Rx, "", b"", true),
        (Kind::Rx, "^a.b$", b"a\nb", true),
        (Kind::Rx, "^b", b"a\nb", true),
        (Kind::Rx, "^$", b"a\n", false),
        (Kind::Rx, "^$", b"a\n\n", true),
        (Kind::Rx, "^$", b"\n", true),
        (Kind::Rx, "^(?!b)$", b"a\n", false),
        (Kind::Rx, "a$", b"a\n", true),
        (Kind::Rx, "(?i)k", b"K", true),
        (Kind::Rx, "(?i)k", "\u{212a}".as_bytes(), false),
        (Kind::Rx, "\\xbc", b"a\xbcb", true),
        (Kind::Rx, "\\x{bc}", b"\xbc", true),
        (Kind::Rx, "[^a]", b"\xff", true),
        (Kind::Rx, "\\w", "\u{e9}".as_bytes(), false),
        (Kind::Rx, "\\<script\\>", b"<script>", true),
        (Kind::Rx, "a{", b"a{", true),
        (Kind::Rx, "<\\?(?!xml)", b"<?xml", false),
        (Kind::Rx, "<\\?(?!xml)", b"<?php", true),
        (Kind::Rx, "(?<!\\xa9)x", b"\xc3\xa9x", false),
        (Kind::Rx, "(a+)b\\1c", b"aabac", true),
        (Kind::Rx, "(?>a+)a", b"aaaa", false),
        (Kind::Rx, "a++a", b"aaaa", false),
        (Kind::Rx, "(?=\\xff)[\\x80-\\xff]b", b"\xffb", true),
        (Kind::Pm, "alpha BETA", b"xBetax", true),
        (Kind::Pm, "A|42 43|D", b"abcd", true),
        (Kind::Pm, "alpha", b"alph", false),
        (Kind::PmFromFile, "words.data", b"an ALPHA BETA", true),
        (Kind::PmFromFile, "words.data", b"alpha", false),
        (Kind::PmFromFile, "words.data", b"GAMMA|41|", true),
        (Kind::PmFromFile, "words.data", b"# comment", false),
        (Kind::IpMatch, "10.0.0.0/8,::1", b"10.2.3.4", true),
        (Kind::IpMatch, "10.0.0.0/8,::1", b"11.2.3.4", false),
        (Kind::IpMatchFromFile, "networks.data", b"192.0.2.9", true),
        (Kind::IpMatchFromFile, "networks.data", b"2001:db8::9", true),
        (Kind::IpMatchFromFile, "networks.data", b"office", false),
        (Kind::Within, "GET POST", b"POST", true),
        (Kind::Within, "GET POST", b"PUT", false),
        (Kind::Within, "GET POST", b"", true),
        (Kind::Contains, "b", b"abc", true),
        (Kind::Contains, "B", b"abc", false),
        (Kind::StrMatch, "bc", b"abc", true),
        (Kind::ContainsWord, "b", b"a b c", true),
        (Kind::ContainsWord, "b", b"abc", false),
        (Kind::BeginsWith, "ab", b"abc", true),
        (Kind::BeginsWith, "bc", b"abc", false),
        (Kind::EndsWith, "bc", b"abc", true),
        (Kind::EndsWith, "ab", b"abc", false),
        (Kind::StrEq, "abc", b"abc", true),
        (Kind::StrEq, "abc", b"ABC", false),
        (Kind::Eq, "0", b"", true),
        (Kind::Eq, "5", b"5 apples", true),
        (Kind::Ge, "5", b"5", true),
        (Kind::Gt, "5", b"5", false),
        (Kind::Gt, "5", b"99999999999999999999", true),
        (Kind::Le, "5", b"6", false),
        (Kind::Lt, "1", b"", true),
        (Kind::Lt, "-1", b"-2", true),
        (Kind::ValidateByteRange, "32-126", b"abc", false),
        (Kind::ValidateByteRange, "32-126", b"a\xffc", true),
        (Kind::ValidateUrlEncoding, "", b"%41", false),
        (Kind::ValidateUrlEncoding, "", b"%4", true),
        (Kind::ValidateUtf8Encoding, "", "\u{e9}".as_bytes(), false),
        (Kind::ValidateUtf8Encoding, "", b"\xe9", true),
        (Kind::VerifyCc, "\\d{13,16}", b"card 4111111111111111.", true),
        (Kind::VerifyCc, "\\b\\d{13,16}", b"card 4111111111111112.", false),
        (Kind::VerifyCc, "\\d{13,16}", b"94111111111111111", true),
        (Kind::VerifyCpf, "[0-9.-]{11,14}", b"x 529.982.247-25", true),
        (Kind::VerifySsn, "\\d{3}-\\d{2}-\\d{4}", b"078-05-1120", true),
        (Kind::VerifySsn, "\\d{3}-\\d{2}-\\d{4}", b"000-05-1120", false),
        (Kind::VerifySvnr, "\\d{10}", b"1237010180", true),
        (Kind::DetectSqli, "", b"1' OR '1'='1", true),
        (Kind::DetectSqli, "", b"a harmless text", false),
        (Kind::DetectSqli, "", b"", false),
        (Kind::DetectXss, "", b"<script>alert(1)</script>", true),
        (Kind::DetectXss, "", b"1 < 2", false),
        (Kind::UnconditionalMatch, "", b"", true),
        (Kind::NoMatch, "", b"", false),
    ];
    for &(kind, argument, value, expected) in cases {
        let operator = operator(kind, argument);
        for wanted in [false, true] {
            let mut captures = Captures::new();
            captures.wanted(wanted);
            let answer = operator.evaluate(value, None, &mut captures);
            assert_eq!(answer, expected, "@{} {argument} on {}", kind.name(), value.escape_ascii());
            assert!(!captures.limit_exceeded());
        }
    }
}

#[test]
fn captures_what_matched() {
    let mut captures = captures();
    assert!(operator(OperatorKind::Rx, "(a)(x)?(b+)").evaluate(b"-abb-", None, &mut captures));
    assert_eq!([0, 1, 2, 3].map(|index| captures.get(index)), [Some(&b"abb"[..]), Some(b"a"), None, Some(b"bb")]);
    captures.clear();
    assert!(operator(OperatorKind::Rx, "(?=(a))a(b+)").evaluate(b"-\xffabb-", None, &mut captures));
    assert_eq!([0, 1, 2].map(|index| captures.get(index)), [Some(&b"abb"[..]), Some(b"a"), Some(b"bb")]);
    captures.clear();
    assert!(operator(OperatorKind::RxGlobal, "(a)|(b)").evaluate(b"ab", None, &mut captures));
    assert_eq!([0, 1, 2].map(|index| captures.get(index)), [Some(&b"b"[..]), Some(b"a"), Some(b"b")]);
    captures.clear();
    assert!(operator(OperatorKind::Rx, &"(a)".repeat(12)).evaluate(b"aaaaaaaaaaaa", None, &mut captures));
    assert_eq!((captures.len(), captures.get(9)), (10, Some(&b"a"[..])));
    captures.clear();
    assert!(operator(OperatorKind::Pm, "beta").evaluate(b"a Beta", None, &mut captures));
    assert_eq!(captures.get(0), Some(&b"Beta"[..]));
    captures.clear();
    assert!(operator(OperatorKind::DetectSqli, "").evaluate(b"1' OR '1'='1", None, &mut captures));
    assert_eq!(captures.get(0), Some(&b"s&sos"[..]));
    captures.clear();
    assert!(operator(OperatorKind::VerifyCc, "\\d{16}").evaluate(b"x4111111111111111", None, &mut captures));
    assert_eq!(captures.get(0), Some(&b"4111111111111111"[..]));
}

#[test]
fn candidates_beyond_the_limit_are_reported() {
    let operator = operator(OperatorKind::VerifyCc, "\\d{16}");
    let mut captures = Captures::new();
    // Fifteen digits and a letter are no candidate.
    assert!(!operator.evaluate("123456789012345x".repeat(2000).as_bytes(), None, &mut captures));
    assert!(!captures.limit_exceeded());
    let decoys = format!("{}4111111111111111", "4111111111111112 ".repeat(super::identifier::MAX_CANDIDATES));
    assert!(!operator.evaluate(decoys.as_bytes(), None, &mut captures) && captures.limit_exceeded());
}

#[test]
fn macros_are_expanded_by_the_caller() {
    let operator = operator(OperatorKind::Within, "%{tx.allowed}");
    assert!(operator.needs_expansion());
    assert!(operator.evaluate(b"GET", Some(b"GET POST"), &mut Captures::new()));
    assert!(!operator.evaluate(b"PUT", Some(b"GET POST"), &mut Captures::new()));
    let pattern = self::operator(OperatorKind::Rx, "^%{tx.pattern}$");
    assert!(pattern.needs_expansion());
    assert!(pattern.evaluate(b"aab", Some(b"^a+b$"), &mut Captures::new()));
    assert!(!pattern.evaluate(b"aab", Some(b"^b$"), &mut Captures::new()));
    let mut captures = Captures::new();
    assert!(!pattern.evaluate(b"aab", Some(b"^(b$"), &mut captures));
    assert!(captures.limit_exceeded(), "a pattern that cannot be compiled is not passed over in silence");
    assert!(!self::operator(OperatorKind::Pm, "%{tx.a}").needs_expansion());
    assert!(!self::operator(OperatorKind::StrEq, "%{1,2}").needs_expansion());
}

#[test]
fn backtracking_is_limited() {
    let operator = operator(OperatorKind::Rx, "(x+x+)+(?=y)z");
    assert!(operator.is_backtracking());
    let mut captures = captures();
    assert!(!operator.evaluate(b"xxy", None, &mut captures) && !captures.limit_exceeded());
    let value = [&[b'x'; 200][..], b"yz"].concat();
    assert!(!operator.evaluate(&value, None, &mut captures));
    assert!(captures.limit_exceeded());
    captures.clear();
    let lookahead = self::operator(OperatorKind::Rx, "x(?!y)");
    let mut value = vec![b'a'; BACKTRACK_INPUT_LIMIT];
    value.push(b'x');
    assert!(!lookahead.evaluate(&value, None, &mut captures));
    assert!(captures.limit_exceeded(), "what is beyond the limit was not looked at");
    assert!(!self::operator(OperatorKind::Rx, "(a+)+b").is_backtracking());
    assert_eq!((BACKTRACK_LIMIT, BACKTRACK_INPUT_LIMIT), (100_000, 65_536));
    assert_eq!((PATTERN_SIZE_LIMIT, PATTERN_CACHE_LIMIT), (8 << 20, 1 << 20));
    assert_eq!((MAX_CAPTURES, MAX_CAPTURE_LENGTH, MAX_PHRASES), (10, 65_536, 100_000));
}

#[test]
fn evil_patterns_take_no_more_steps_than_the_limit() {
    let value = [vec![b'a'; 100_000], b"!ac ab".to_vec()].concat();
    // Under each of three limits, with what is looked at on the way.
    let attempts = 1_000_000;
    for (pattern, backtracking) in [
        ("(a+)+$", false),
        ("(a|aa)+$", false),
        ("(.*a){20}$", false),
        ("(a+)+(?=b)c", true),
        ("(a|aa)+(?=b)c", true),
        ("(.*a){20}(?=b)c", true),
        ("(?<!x)(?:(a+)b?)+\\1c", true),
        ("((a+)\\2?)+b", true),
    ] {
        let operator = operator(OperatorKind::Rx, pattern);
        assert_eq!(operator.is_backtracking(), backtracking, "{pattern}");
        let mut captures = captures();
        assert!(!operator.evaluate(&value, None, &mut captures), "{pattern}");
        assert_eq!(captures.limit_exceeded(), backtracking, "{pattern}");
        let spent = BACKTRACK_BUDGET - captures.backtracks_left();
        assert!(spent <= if backtracking { attempts } else { 0 }, "{pattern}: {spent} steps");
        // The other way to match all of them is many searches in one value.
        captures.clear();
        self::operator(OperatorKind::RxGlobal, pattern).evaluate(&value, None, &mut captures);
        let spent = BACKTRACK_BUDGET - captures.backtracks_left() - spent;
        assert!(spent <= if backtracking { attempts } else { 0 }, "@rxGlobal {pattern}: {spent} steps");
    }
}

#[test]
fn groups_that_would_cost_too_much_are_left_out() {
    let operator = operator(OperatorKind::Rx, "a(b+)(?:c|d(e+))+f");
    let evaluate = |letters: usize, units: u64| {
        let value = format!("xa{}cf{}", "b".repeat(letters), "-".repeat(2000));
        let mut captures = Captures::new();
        captures.wanted(true);
        captures.allow(units);
        assert!(operator.evaluate(value.as_bytes(), None, &mut captures));
        assert!(captures.get(0).is_some_and(|whole| whole.len() == letters + 3), "{captures:?}");
        (captures.get(1).map(<[u8]>::len), captures.limit_exceeded())
    };
    assert_eq!(evaluate(1000, 1_000_000), (Some(1000), false));
    assert_eq!(evaluate(1000, 200_000), (None, true));
    // What counts is the match, not what is behind it.
    assert_eq!(evaluate(10, 200_000), (Some(10), false));
}

#[test]
fn all_searches_share_one_budget() {
    let operator = operator(OperatorKind::Rx, "(x+x+)+(?=y)z");
    let value = [&[b'x'; 40][..], b"yz"].concat();
    let mut captures = Captures::new();
    let mut searches = 0;
    while captures.backtracks_left() >= BACKTRACK_LIMIT {
        captures.clear();
        assert!(!operator.evaluate(&value, None, &mut captures) && captures.limit_exceeded());
        searches += 1;
        assert!(searches <= BACKTRACK_BUDGET / BACKTRACK_LIMIT);
    }
    // What is left suffices for a value that takes few steps, and no search goes below zero.
    captures.clear();
    assert!(self::operator(OperatorKind::Rx, "a(?!b)").evaluate(b"ac", None, &mut captures));
    assert!(!captures.limit_exceeded());
    for _ in 0..1000 {
        operator.evaluate(&value, None, &mut captures);
    }
    captures.clear();
    assert!(!self::operator(OperatorKind::Rx, "a(?!b)").evaluate(b"ac", None, &mut captures));
    assert!(captures.limit_exceeded(), "nothing is left, and that is said");
}

#[test]
fn arguments_are_refused_with_their_place() {
    use OperatorKind as Kind;
    let cases: &[(Kind, &str, Option<usize>)] = &[
        (Kind::Rx, "a(b", Some(1)),
        (Kind::Rx, "\\'a)", Some(3)),
        (Kind::Rx, "a[b", Some(1)),
        (Kind::Rx, "(?:a{1000}){1000}", None),
        (Kind::Pm, " ", Some(0)),
        (Kind::PmFromFile, "", Some(0)),
        (Kind::PmFromFile, "words.data missing.data", Some(11)),
        (Kind::PmFromFile, "https://data.example/x", Some(0)),
        (Kind::PmFromFile, "empty.data", None),
        (Kind::IpMatch, "10.0.0.1,10.0.0", Some(9)),
        (Kind::IpMatch, "", Some(0)),
        (Kind::IpMatchFromFile, "wrong.data", None),
        (Kind::ValidateByteRange, "1-255,x", Some(6)),
        (Kind::VerifyCc, "", Some(0)),
        (Kind::Rbl, "", Some(0)),
        (Kind::Rbl, "a.example b.example", Some(0)),
        (Kind::Rbl, "a..example", Some(0)),
        (Kind::Rsub, "s/a/b/", None),
        (Kind::InspectFile, "x", None),
        (Kind::FuzzyHash, "x 1", None),
        (Kind::ValidateSchema, "x", None),
        (Kind::ValidateDtd, "x", None),
        (Kind::GsbLookup, "x", None),
        (Kind::ValidateHash, "x", None),
    ];
    for &(kind, argument, offset) in cases {
        let error = refusal(kind, argument);
        assert_eq!(error.offset, offset, "@{} {argument}: {error:?}", kind.name());
    }
    assert!(refusal(Kind::Rbl, "x y").message.contains("zone"));
}

#[test]
fn stored_arguments_are_checked_again() {
    let argument = |text: &[u8], phrases: &[&[u8]]| OperatorArgument {
        text: text.to_vec(),
        phrases: phrases.iter().map(|phrase| phrase.to_vec()).collect(),
    };
    assert!(Operator::build(OperatorKind::Rx, &argument(b"a", &[b"other", b"a"])).is_err());
    assert!(Operator::build(OperatorKind::Rx, &argument(b"a", &[b"linear", b"\xff"])).is_err());
    assert!(Operator::build(OperatorKind::IpMatch, &argument(b"", &[b"x"])).is_err());
    assert!(Operator::build(OperatorKind::ValidateByteRange, &argument(b"x", &[])).is_err());
    // A pattern that was never checked fails closed when it is used, and says so.
    let broken = Operator::build(OperatorKind::Rx, &argument(b"a", &[b"linear", b"("])).expect("built lazily");
    let mut captures = Captures::new();
    assert!(!broken.evaluate(b"a", None, &mut captures) && captures.limit_exceeded());
}

#[test]
fn a_pattern_with_too_many_states_is_given_up() {
    // Which of the last thousand bytes were an `a` makes 2^1000 states.
    let operator = operator(OperatorKind::Rx, "a[ab]{1000}c");
    assert!(!operator.is_backtracking());
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { b'a' } else { b'b' }
    };
    let long: Vec<u8> = (0..1 << 20).map(|_| random()).collect();
    let mut captures = captures();
    assert!(!operator.evaluate(&long, None, &mut captures) && captures.limit_exceeded());
    captures.clear();
    assert!(!operator.evaluate(&long[..4000], None, &mut captures) && !captures.limit_exceeded());
    // What the automaton can do stays as it was, on long values too.
    captures.clear();
    let plain = [vec![b'.'; 1 << 20], [&b"a"[..], &[b'b'; 1000], b"cc"].concat()].concat();
    assert!(operator.evaluate(&plain, None, &mut captures) && !captures.limit_exceeded());
    assert_eq!(captures.get(0).map(<[u8]>::len), Some(1002));
    captures.wanted(false);
    assert!(operator.evaluate(&plain, None, &mut captures));
}
