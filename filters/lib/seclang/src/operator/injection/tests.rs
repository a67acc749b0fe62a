use super::html::CONTEXTS;
use super::reference::{self, HTML_CONTEXTS, Handlers};
use super::*;

const ATTACKS: [&str; 6] = [
    "' OR 1=1-- -",
    "' UNION SELECT 1,2,3-- -",
    "\" OR \"\"=\"",
    "' OR 'a'='a",
    "') AND SLEEP(5)#",
    "test' in boolean mode) union select 1-- -",
];

/// What is put before an attack, again and again: what folds away, what does not, and what begins strings and comments.
const PADDING: [&str; 30] = [
    " ",
    "\t",
    "\r\n",
    "\u{a0}",
    "/**/",
    "/* what is long */",
    "-- \n",
    "# x\n",
    "a ",
    "two words ",
    "1 ",
    "1,",
    "(",
    ")",
    "+",
    "-",
    "!",
    ",",
    "'a' ",
    "'a','b' ",
    "''",
    "\"a\" ",
    "\"",
    "`a` ",
    "`",
    "\\\\",
    "\u{20ac}\u{fc}",
    "$",
    "@",
    "a.b ",
];

fn detects(value: &[u8]) -> bool {
    is_sql(value, &mut Captures::new())
}

fn number(seed: &mut u64, end: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % end
}

/// A line of `fingerprints.txt` after its fingerprints.
fn unescaped(text: &str) -> Vec<u8> {
    let mut value = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'\\' {
            value.push(u8::from_str_radix(std::str::from_utf8(&after[1..3]).unwrap(), 16).unwrap());
            rest = &after[3..];
        } else {
            value.push(*first);
        }
    }
    value
}

#[test]
fn fingerprints_are_those_of_the_library() {
    let readings = [(None, false), (None, true), (Some(b'\''), false), (Some(b'\''), true), (Some(b'"'), true)];
    let mut lines = 0;
    for line in include_str!("fingerprints.txt").lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.splitn(6, '\t').collect();
        let value = unescaped(columns[5]);
        let mut found = false;
        for ((quote, mysql), wanted) in readings.iter().zip(&columns) {
            let reading = reference::read_sql(&value, *quote, *mysql, false);
            let mut fingerprint = String::from_utf8(reading.fingerprint).unwrap();
            if fingerprint.is_empty() {
                fingerprint.push('-');
            }
            if reading.is_injection {
                fingerprint.push('!');
            }
            assert_eq!(fingerprint, *wanted, "{line} {quote:?} {mysql}");
            found |= columns[0].ends_with('!');
        }
        assert!(!found || detects(&value), "{line}");
        lines += 1;
    }
    assert_eq!(lines, 400);
}

#[test]
fn a_phrase_of_three_words_is_one() {
    for value in
        ["test' in boolean mode) union select 1-- -", "x' IN BOOLEAN MODE) OR 1=1#", "a' In/**/Boolean Mode) or 1=1-- "]
    {
        let mut captures = Captures::new();
        captures.wanted(true);
        assert!(is_sql(value.as_bytes(), &mut captures), "{value}");
        assert!(captures.get(0).is_some_and(|fingerprint| fingerprint.starts_with(b"sk)")), "{value}");
    }
    assert!(!detects(b"in boolean mode") && !detects(b"search it in boolean mode, or not"));
}

#[test]
fn no_padding_hides_an_injection() {
    for length in [40, 8 * 1024, 8 * 1024 + 1, 64 * 1024] {
        for padding in PADDING {
            for attack in ATTACKS {
                let value = padding.repeat(length / padding.len() + 1) + attack;
                assert!(detects(value.as_bytes()), "{length} of {padding:?} before {attack}");
            }
        }
    }
    let long = format!("{}{}", "'a' ".repeat(256 * 1024), ATTACKS[0]);
    assert!(detects(long.as_bytes()));
}

#[test]
fn mixed_padding_hides_no_injection() {
    let mut seed = 5;
    for _ in 0..3_000 {
        // What is in strings of one kind of quotes alone: strings of both may well hold the attack.
        let mut value = String::new();
        for _ in 0..1 + number(&mut seed, 60) {
            value += PADDING[number(&mut seed, 18)];
        }
        value += ATTACKS[[0, 1, 3, 4][number(&mut seed, 4)]];
        assert!(detects(value.as_bytes()), "{value}");
    }
}

#[test]
fn a_query_behind_words_is_found() {
    for length in [40, 100_000] {
        for padding in ["word ", "1 ", "[", "\"a\" ", "x y % "] {
            let value = format!("{} 1 UNION ALL SELECT 1,2,3-- -", padding.repeat(length / padding.len()));
            assert!(detects(value.as_bytes()), "{padding}");
        }
    }
}

#[test]
fn a_path_that_the_library_has_seen_and_let_pass_is_not_found_in_a_window() {
    for value in [
        "/post/foo/24 union all select 1,2,3 from aa/bar",
        "/a/b/c/d/e/f/24 union select 1,2 from x",
        "= 1 union select 1,2,3",
    ] {
        assert!(!reference::is_sql_to_libinjection(value.as_bytes()), "{value}");
        assert!(!detects(value.as_bytes()), "{value}");
        // What is in front of the five tokens that the library looks at hides it.
        let behind = format!("{}{value}", "x y ".repeat(3));
        assert!(detects(behind.as_bytes()), "{behind}");
    }
    // The same where it sees no more than the beginning of the query, and behind what folds.
    assert!(detects(b"/a b c 24 union all select 1,2,3 from aa"));
    assert!(detects(b"'a' 'b' 'c' 24 union all select 1,2,3 from aa"));
}

#[test]
fn words_of_code_begin_no_statement() {
    for value in ["a b c d 'e'; use declared_refs f", "print one two three 'x'; while updated_at y"] {
        assert!(!detects(value.as_bytes()), "{value}");
    }
    for statement in ["drop table users", "exec xp_cmdshell 'dir'", "EXECUTE immediate 'x'", "delete from users"] {
        let value = format!("a b c d e f 'x'; {statement}-- -");
        assert!(detects(value.as_bytes()), "{value}");
    }
}

#[test]
fn every_byte_of_any_value_costs_no_more_than_a_fixed_number_of_steps() {
    let pieces = [
        "' or ",
        "' or '",
        "' and (",
        "&&'",
        "'||'",
        "' or --x",
        "' or #",
        "' or /*",
        "'in ",
        "');",
        "' like \"",
        "1+",
        "1,",
        "or.",
        "select.",
        "$a$",
        "$b$$b$",
        "q'[",
        "x'1",
        "union select ",
        "' or [",
        "' or `",
        "'/*",
        "\\'",
        "''",
        "1e.",
        "--x ",
        "@'",
        "' or $$",
        "1.e ",
    ];
    for piece in pieces {
        for length in [1 << 10, 1 << 16, 1 << 20] {
            let value = piece.repeat(length / piece.len());
            let (_, steps) = reference::is_sql(value.as_bytes());
            let most = value.len() * (SQL_STEPS_PER_BYTE + SQL_STEPS_PER_BYTE / 2) + (1 << 16) + 64;
            assert!(steps <= most, "{steps} steps for {} bytes of {piece:?}", value.len());
        }
    }
}

#[test]
fn unread_input_is_reported() {
    let mut captures = Captures::new();
    let value = "' or --x".repeat(8 * 1024) + "' OR 1=1-- -";
    assert!(!is_sql(value.as_bytes(), &mut captures) && captures.limit_exceeded());
    assert!(captures.take_cost() > 8 * 1024);
    // Where less work is left than the value takes.
    let mut captures = Captures::new();
    captures.allow(2_000);
    let value = "1+".repeat(4 * 1024) + "(1 or 1=1";
    assert!(!is_sql(value.as_bytes(), &mut captures) && captures.limit_exceeded());
    captures.clear();
    captures.allow(u64::MAX);
    assert!(is_sql(value.as_bytes(), &mut captures) && !captures.limit_exceeded());
}

#[test]
fn long_text_is_harmless_and_cheap() {
    let prose = "It's the 2nd of May, and \"the garden\" (or what's left of it) isn't ours; we'll see -- or not. ";
    let json = "{\"a\": [1, 2, \"or\"], \"b's\": {\"c\": null, \"d\": \"x and y\"}},\n";
    let code = "if (name == \"x\" || other != 'y') { print(\"it's #1\"); drop(value); } // don't\n";
    for text in [prose, json, code] {
        let value = text.repeat((1 << 20) / text.len());
        let (verdict, steps) = reference::is_sql(value.as_bytes());
        assert_eq!(verdict, Some(false), "{text}");
        assert!(steps < value.len() * 24, "{steps} for {text}");
    }
}

#[test]
fn windows_read_as_readings_from_the_beginning_do() {
    let pieces = [
        "'", "''", "\"", "\\", "\\'", "`", "or", " ", "1", "a", "/*", "*/", "--", "\n", "[", "]", "=", ";", "#", "x",
        "q'", "nq'(", ")'", "$$", "$a$", "$",
    ];
    let mut seed = 9;
    for _ in 0..20_000 {
        let mut value = String::new();
        for _ in 0..12 {
            value += pieces[number(&mut seed, pieces.len())];
        }
        sql::assert_marks_agree(value.as_bytes());
    }
}

#[test]
fn numbers_without_an_exponent_hide_nothing() {
    for value in [
        "1 or 1.e(1)=1",
        "' or 1.e(1)=1.e(1)",
        "1.e(ascii 1.e(substring(1.e(select p from u limit 1 1.e,1 1.e) 1.e,1 1.e,1 1.e)1.e)1.e) = 70",
        "' into outfile '/var/www/x",
    ] {
        assert!(detects(value.as_bytes()), "{value}");
    }
    assert!(!detects(b"the 1.e of it, put into a box"));
}

#[test]
fn what_the_prefilter_rejects_is_harmless() {
    let words = "1 0 12 0x 0x1f 0b1 1e 1e5 1d 2f union select or and not null is like mod div xor between exists if \
                 case end from into having group order by limit waitfor delay sleep benchmark char user version \
                 current_user abc x n q e b u N_ _ _utf8 collate binary in any all some true unknown print shutdown \
                 exec execute begin create drop insert update delete set declare cast table";
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    for one in &words {
        for other in words.iter().chain(&[""]) {
            for third in ["", "1", "_", "union"] {
                let value = format!("{one}{other}{third}");
                assert!(!detects(value.as_bytes()), "{value}");
            }
        }
    }
    let pieces =
        ["onerror", "style", "/", ">", " ", "'", "\"", "`", "--", "!doctype", "xml", "[if", "%", "\0", "?import"];
    let mut seed = 3;
    for _ in 0..100_000 {
        let value: String = (0..6).map(|_| pieces[number(&mut seed, pieces.len())]).collect();
        assert!(!is_script(value.as_bytes(), &mut Captures::new()), "{value}");
    }
}

#[test]
fn no_padding_hides_a_script() {
    let attacks = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\"><svg onload=alert(1)>",
        "<a href=\"java&#115;cript:1\">",
    ];
    let padding = [
        " ",
        "long text ",
        "<b>",
        "</b>",
        "<i>x</i>",
        "<p class=\"long\">",
        "<!-- comment -->",
        "a=b ",
        "1 < 2 ",
        "\u{e9}",
        "\0",
        "/",
        "/ ",
    ];
    for length in [10, 64 * 1024, 64 * 1024 + 1, 1 << 20] {
        for piece in padding {
            for attack in attacks {
                let value = piece.repeat(length / piece.len() + 1) + attack;
                assert!(is_script(value.as_bytes(), &mut Captures::new()), "{length} of {piece:?} before {attack}");
            }
        }
        let long = format!("<p title=\"{}\"><script>", "x".repeat(length));
        assert!(is_script(long.as_bytes(), &mut Captures::new()));
        let long = format!("<!-- {} --><img onerror=1>", "- ".repeat(length));
        assert!(is_script(long.as_bytes(), &mut Captures::new()));
        assert!(!is_script("<b>a</b> = 'x' ".repeat(length / 15).as_bytes(), &mut Captures::new()));
    }
}

#[test]
fn handlers_are_those_of_events_and_all_in_tags() {
    assert_eq!((CONTEXTS.len(), HTML_CONTEXTS), (5, 5));
    for value in ["<a onload=1>", "<a onfuture=1>", "' onclick='1", "x onbeforetoggle=1", "<a\0onerror=x"] {
        assert!(is_script(value.as_bytes(), &mut Captures::new()), "{value}");
    }
    // To the library this byte is the end of the value.
    assert!(is_script(b"<a \xff onload=1>", &mut Captures::new()));
    for value in ["onwards = 2", "x onion=1", "<a one=1>", "a\0b", "<b>on=1</b>"] {
        assert!(!is_script(value.as_bytes(), &mut Captures::new()), "{value}");
    }
    assert!(reference::is_script_in(b"x onion=1", 1, Handlers::Any));
    assert!(!reference::is_script_in(b"<a onfuture=1>", 0, Handlers::Known));
    assert_eq!(reference::html_tokens(b"<a b=c>", 0), [(b'<', 1), (b'n', 1), (b'v', 1), (b'>', 1)]);
}

#[test]
fn contexts_that_are_read_side_by_side_find_what_each_finds() {
    let pieces = [
        "a",
        "on",
        "onload",
        "onx12",
        "href",
        "style",
        "by",
        "=",
        "=",
        "'",
        "\"",
        "`",
        " ",
        "/",
        "<",
        ">",
        "<a ",
        "</a",
        "-->",
        "<!--",
        "<!",
        "?",
        "%>",
        "\0",
        "x=\"",
        "java",
        "script:",
        "&#106;",
        "&#0;",
        "data",
        "\n",
        "xmlns",
        "attributename",
        "\u{e9}",
    ];
    let mut seed = 11;
    let mut scripts = 0;
    for _ in 0..200_000 {
        let length = 1 + number(&mut seed, 24);
        let value: String = (0..length).map(|_| pieces[number(&mut seed, pieces.len())]).collect();
        let in_context = |context| reference::is_script_in(value.as_bytes(), context, Handlers::AnyInTags);
        let expected = (0..HTML_CONTEXTS).any(in_context);
        assert_eq!(reference::is_script(value.as_bytes()), expected, "{value:?}");
        scripts += u32::from(expected);
    }
    assert!((20_000..180_000).contains(&scripts), "{scripts}");
}

#[test]
fn readings_that_have_met_go_on_as_one() {
    // Behind a tag all five contexts are in the same place.
    let value = "<b>a</b> = 'x' ".repeat(1000);
    let (_, effort) = html::detect(value.as_bytes());
    let once: usize = reference::html_tokens(value.as_bytes(), 0).len();
    assert!(effort.tokens < once + once / 10, "{effort:?}, {once} in the text of a page");
    // In and out of quotes nothing meets.
    let value = "x='a\" b=\"c' ".repeat(1000);
    let (_, effort) = html::detect(value.as_bytes());
    let apart: usize = [1, 2].map(|context| reference::html_tokens(value.as_bytes(), context).len()).iter().sum();
    assert!(apart > 3000 && effort.tokens > apart - apart / 10, "{effort:?}, {apart} in a tag and in quotes");
}
