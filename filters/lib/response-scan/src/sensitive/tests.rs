use std::fmt::Write as _;

use super::*;

fn all() -> Scanner {
    Scanner::new(Detector::BUILT_IN.into_iter().collect(), 3, Vec::new())
}

/// The names and the texts of what is found.
fn found(text: &str) -> Vec<(&'static str, String)> {
    found_bytes(text.as_bytes())
}

fn found_bytes(text: &[u8]) -> Vec<(&'static str, String)> {
    let scanned = all().scan(text);
    let shown = |finding: &Finding| String::from_utf8_lossy(&text[finding.start..finding.end]).into_owned();
    scanned.iter().map(|finding| (finding.detector.name(), shown(finding))).collect()
}

/// Values that are found as a whole, whatever stands around them.
fn positive() -> Vec<(&'static str, String)> {
    let mut list: Vec<(&str, String)> = [
        ("card", "4111111111111111"),
        ("card", "4111 1111 1111 1111"),
        ("card", "4111-1111-1111-1111"),
        ("card", "5555555555554444"),
        ("card", "2223003122003222"),
        ("card", "378282246310005"),
        ("card", "3782 822463 10005"),
        ("card", "6011111111111117"),
        ("card", "30569309025904"),
        ("card", "3056 930902 5904"),
        ("card", "3530111333300000"),
        ("card", "6200000000000005"),
        ("iban", "DE89370400440532013000"),
        ("iban", "DE89 3704 0044 0532 0130 00"),
        ("iban", "GB82 WEST 1234 5698 7654 32"),
        ("iban", "GB82WEST12345698765432"),
        ("iban", "FR1420041010050500013M02606"),
        ("iban", "NL91ABNA0417164300"),
        ("iban", "MT84MALT011000012345MTLCAST001S"),
        ("iban", "LC55HEMM000100010012001200023015"),
        ("iban", "NO9386011117947"),
        ("us_ssn", "123-45-6789"),
        ("us_ssn", "078-05-1120"),
        ("fr_nir", "255081416802538"),
        ("fr_nir", "2550814168025 38"),
        ("fr_nir", "2 55 08 14 168 025 38"),
        ("cloud_key", "AKIAIOSFODNN7EXAMPLE"),
        ("cloud_key", "ASIAQ3EGRT5KJ7VWXYZ2"),
        ("cloud_key", "AIzaSyD4k9mQ2xT7vWb1nR8cL5pH3jF6gZ0aEuo"),
        ("cloud_key", "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"),
        ("llm_key", "sk-ant-api03-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"),
        ("llm_key", "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"),
        ("llm_key", "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"),
        ("llm_key", "hf_abcdefghijABCDEFGHIJklmnopqrstKLMN"),
        ("service_token", "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
        ("service_token", "glpat-a1B2c3D4e5F6g7H8i9J0"),
        ("service_token", "xoxb-123456789012-1234567890123-a1B2c3D4e5F6g7H8"),
        ("service_token", "sk_live_a1B2c3D4e5F6g7H8i9J0k1L2"),
        ("service_token", "npm_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
        ("service_token", "SG.a1B2c3D4e5F6g7H8i9J0k1.a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0abc"),
        ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec();
    for letter in ['A', 'B'] {
        // The key of a number of Corsica follows from the number.
        let base = 185_052_000_084_u64 * 10 + 6 - if letter == 'A' { 1_000_000 } else { 2_000_000 };
        let key = 97 - base % 97;
        list.push(("fr_nir", format!("185052{letter}000846{key:02}")));
        list.push(("fr_nir", format!("1 85 05 2{letter} 000 846 {key:02}")));
    }
    list.push(("cloud_key", format!("AccountKey={}==", "a1B2c3D4e5F6g7H8i9J0k1".repeat(4).split_at(86).0)));
    list
}

/// What stands beside a value where a text is escaped: for JSON, HTML, JavaScript and URLs.
const ESCAPED: [(&str, &str); 14] = [
    ("\\u003e", "\\u003c/b\\u003e"),
    ("card\\u003d", "\\u0026"),
    ("\\u0022", "\\u0022"),
    ("\\u0027", "\\u0027"),
    ("\\\\u003d", "\\\\u003c"),
    ("\\u00a0", "\\u00A0"),
    ("card\\x3d", "\\x26"),
    ("\\x22", "\\x22"),
    ("card%3D", "%26"),
    ("%22", "%22"),
    ("card&#61;", "&amp;"),
    ("&#34;", "&#34;"),
    ("&nbsp;", "&nbsp;"),
    ("card=%3E", "%0A"),
];

#[test]
fn each_value_is_found_at_every_place_of_a_block() {
    for (name, value) in positive() {
        for pad in [0, 1, 5, 40, 47, 50, 53, 55, 57, 58, 59, 60, 61, 62, 63, 64, 65, 127, 130] {
            for (before, after) in
                [("", ""), (" ", " "), ("\"", "\""), (">", "</b>"), (":", ","), ("\n", "."), ("(", ")"), ("\\n", "\\n")]
                    .into_iter()
                    .chain(ESCAPED)
            {
                let text = format!("{}{before}{value}{after}", "x ".repeat(70).split_at(pad).0.trim_end_matches('x'));
                assert_eq!(found(&text), [(name, value.clone())], "{text}");
            }
        }
    }
}

#[test]
fn what_is_like_a_value_and_is_none_is_not_found() {
    for text in [
        "4111111111111112",
        "41111111111111111",
        "x4111111111111111",
        "4111111111111111a",
        "0.4111111111111111",
        "4111111111111111.5",
        "4111 1111-1111 1111",
        "411 11111 1111 1111",
        "1234567890123452",
        "4444444444444444",
        "0000000000000000",
        "1700000000000",
        "2024-01-15 10:30:00",
        "+49 170 1234567",
        "550e8400-e29b-41d4-a716-446655440000",
        "DE89370400440532013001",
        "XX89370400440532013000",
        "aDE89370400440532013000",
        "DE893704004405320130001",
        "GB82 WEST 1234 5698 7654 3",
        "000-45-6789",
        "666-45-6789",
        "900-45-6789",
        "123-00-6789",
        "123-45-0000",
        "123-45-67890",
        "1-123-45-6789",
        "123-45-6789-1",
        "255081416802539",
        "255131416802538",
        "AKIAIOSFODNN7EXAMPL",
        "AKIAIOSFODNN7EXAMPLEX",
        "xAKIAIOSFODNN7EXAMPLE",
        "AKIAXXXXXXXXXXXXXXXX",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "task-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6",
        "sk-proj-<your key>",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0",
        "eyJhbGciOiJIUzI1NiJ9.abc.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "-----BEGIN CERTIFICATE-----\nMIIBa1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5\n-----END CERTIFICATE-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "a@b.example c@d.example",
        "\\u00414111111111111111",
        "\\u0031 %314111111111111111",
        "\\x61AKIAIOSFODNN7EXAMPLE",
        "%41AKIAIOSFODNN7EXAMPLE",
        "u003d4111111111111111",
        "411&nbsp;11111&nbsp;1111&nbsp;1111",
        "4111&nbsp;&nbsp;1111&nbsp;1111&nbsp;1111",
        "4111&nbsp;1111&#45;1111&nbsp;1111",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
        "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKE",
        "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEYS",
        "secretAccessKey: your key of forty characters, as the console shows it",
        "SECRET_ACCESS_KEY=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

/// A value as its mask is, with a spelling of its separators.
fn hidden(name: &str, value: &str, separator: char, spelling: &str) -> String {
    let owner = matches!(name, "card" | "iban");
    // Of other values every byte beyond ASCII is hidden.
    let stars = "*".repeat(spelling.len());
    let spelling = if owner || spelling.is_ascii() { spelling } else { &stars };
    let letters = value.chars().filter(char::is_ascii_alphanumeric).count();
    let mut left = if owner { letters - 4 } else { letters };
    let mut mask = String::new();
    for character in value.chars() {
        if character == separator {
            mask.push_str(spelling);
        } else {
            mask.push(if left > 0 { '*' } else { character });
            left = left.saturating_sub(1);
        }
    }
    mask
}

/// Whether each ampersand of a text begins a reference, and each percent sign an escape.
fn is_well_formed(text: &str) -> bool {
    let digits = |digits: &str, radix: u32| !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    let is_reference = |rest: &str| {
        rest.split_once(';').is_some_and(|(name, _)| match (name.strip_prefix("#x"), name.strip_prefix('#')) {
            (Some(hex), _) => digits(hex, 16),
            (None, Some(decimal)) => digits(decimal, 10),
            (None, None) => !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric()),
        })
    };
    text.split('&').skip(1).all(is_reference)
        && text.split('%').skip(1).all(|rest| rest.get(..2).is_some_and(|two| digits(two, 16)))
}

#[test]
fn masks_keep_escapes_within_a_match() {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    let stars = "*".repeat(13);
    for (slash, plus) in [("%2F", "%2B"), ("&#47;", "&#x2B;"), ("\\u002F", "\\u002b"), ("\\x2f", "\\x2B")] {
        let text = format!("secretAccessKey: {}.", secret.replace('/', slash).replace('+', plus));
        let expected = format!("secretAccessKey: {stars}{slash}*******{plus}{}.", "*".repeat(18));
        assert_eq!(masked(&all(), &text, Form::Other), expected);
    }
    for (text, expected) in [
        ("<card>4111&#160;1111&#160;1111&#160;1111</card>", "<card>****&#160;****&#160;****&#160;1111</card>"),
        // The last four characters are those of the number.
        ("4111&#160;1111&#160;1111&#160;1112&#160;100", "****&#160;****&#160;****&#160;***2&#160;100"),
        ("4111%201111%201111%201112%20100", "****%20****%20****%20***2%20100"),
    ] {
        assert_eq!(masked(&all(), text, Form::Other), expected);
    }
    // Letters and digits that are escaped are hidden as well.
    let letters = |of: fn(u8) -> String| secret.bytes().map(of).collect::<String>();
    for (value, star) in [
        (letters(|letter| format!("%{letter:02X}")), "%2a"),
        (letters(|letter| format!("\\u{letter:04x}")), "\\u002a"),
        (letters(|letter| format!("\\x{letter:02x}")), "\\x2a"),
        (letters(|letter| format!("&#{letter:03};")), "&#042;"),
        (letters(|letter| format!("&#x{letter:X};")), "&#x2a;"),
    ] {
        let shown = masked(&all(), &format!("secretAccessKey: {value}."), Form::Other);
        assert_eq!((shown.matches(star).count(), shown.len()), (38, 18 + value.len()), "{shown}");
    }
    // A percent sign in front of a number may begin an escape; in a program it is an operator.
    assert_eq!(masked(&all(), "?a=5%4111111111111111&", Form::Other), "?a=5%2a**********1111&");
    assert_eq!(masked(&all(), "a=b%4111111111111111;", Form::Script), "a=b%9999999999991111;");
}

#[test]
fn masks_keep_strings_within_strings() {
    let lines = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA/oIBAQC7VJTUt9Us8cKj\n".repeat(3);
    let key = format!("-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----\n");
    let mut text = serde_json::json!({ "key": key }).to_string().replace('/', "\\u002F").replace('+', "\\u002B");
    for _ in 0..4 {
        let mut shown = masked(&all(), &text, Form::Json);
        assert!(shown != text && !shown.contains("VJTU"), "{shown}");
        // Each string is JSON again.
        while let serde_json::Value::String(inner) = serde_json::from_str(&shown).expect(&shown) {
            shown = inner;
        }
        text = serde_json::json!(text).to_string();
    }
}

#[test]
fn groups_may_have_any_blank_or_hyphen_between() {
    let blanks = [
        "&nbsp;", "&#160;", "&#xA0;", "\u{a0}", "\\u00a0", "\\u00A0", "\\xa0", "\u{202f}", "\\u202F", "&#8239;", "%20",
        "%C2%A0", "%c2%a0", "&#32;", "\\u0020",
    ];
    let hyphens = ["\u{2011}", "\\u2011", "&#45;", "\\u002d", "%2D", "&#x2d;"];
    let mut missed = Vec::new();
    for (name, value) in positive() {
        let separated = matches!(name, "card" | "iban" | "fr_nir" | "us_ssn");
        for (plain, spellings) in [(' ', &blanks[..]), ('-', &hyphens[..])] {
            if !separated || !value.contains(plain) {
                continue;
            }
            for spelling in spellings {
                let (plain_value, value) = (value.clone(), value.replace(plain, spelling));
                if spelling.starts_with('\\') && !spelling.contains('x') {
                    let shown = masked(&all(), &format!("{{\"a\":\"{value}\"}}"), Form::Json);
                    assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
                }
                for (before, after) in [("\"", "\""), (" ", " ")].into_iter().chain(ESCAPED) {
                    for pad in [0, 40, 50, 57, 60, 63, 64, 65] {
                        let text = format!("{}{before}{value}{after}", ". ".repeat(70).split_at(pad).0);
                        let shown = masked(&all(), &text, Form::Other);
                        let expected = text.replace(&value, &hidden(name, &plain_value, plain, spelling));
                        if found(&text) != [(name, value.clone())] || shown != expected || !is_well_formed(&shown) {
                            missed.push((text, shown));
                        }
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    // A long separator behind a number is no reason to leave one out that stands before it.
    for (text, count) in [("4111111111111111 12&nbsp;4&nbsp;4111111111111111", 2), ("%201 4111111111111111", 1)] {
        assert_eq!(found(text), vec![("card", "4111111111111111".to_owned()); count], "{text}");
    }
}

#[test]
fn secrets_of_aws_are_found_by_their_names() {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    let (php, net) = (secret.replace('/', "\\/"), secret.replace('/', "\\u002F").replace('+', "\\u002B"));
    let url = secret.replace('/', "%2F").replace('+', "%2b");
    for (text, value) in [
        (format!("aws_access_key_id=x\naws_secret_access_key = {secret}\n"), secret),
        (format!("AWS_SECRET_ACCESS_KEY={secret}"), secret),
        (format!("export AWS_SECRET_ACCESS_KEY=\"{secret}\""), secret),
        (format!("{{\"SecretAccessKey\" : \"{secret}\",\"a\":1}}"), secret),
        (format!("{{\"SecretAccessKey\":\"{php}\"}}"), &php),
        (format!("{{\"secretAccessKey\":\"{net}\"}}"), &net),
        (format!("{{\"env\":\"AWS_SECRET_ACCESS_KEY\\u003d{net}\\n\"}}"), &net),
        (format!("{{\"env\":\"{{\\\"SecretAccessKey\\\": \\\"{secret}\\\"}}\"}}"), secret),
        (format!("'secretAccessKey' => '{secret}',"), secret),
        (format!("secret_access_key: {secret}"), secret),
        (format!("<SecretAccessKey>{secret}</SecretAccessKey>"), secret),
        (format!("&quot;SecretAccessKey&quot;:&quot;{secret}&quot;"), secret),
        (format!("aws_secret_access_key%3D{url}%26"), &url),
    ] {
        assert_eq!(found(&text), [("cloud_key", value.to_owned())], "{text}");
        if text.starts_with('{') {
            let shown = masked(&all(), &text, Form::Json);
            let parsed = serde_json::from_str::<serde_json::Value>(&shown);
            assert!(parsed.is_ok() && !shown.contains("bPxR") && shown.len() == text.len(), "{shown}");
        }
    }
    let session = format!("IQoJb3JpZ2luX2VjE{}", "a1B2c3D4e5/6g7+8".repeat(20)).replace('_', "");
    let escaped = session.replace('/', "\\/");
    assert_eq!(found(&format!("\"SessionToken\":\"{session}\"")), [("cloud_key", session.clone())]);
    assert_eq!(found(&format!("\"SessionToken\":\"{escaped}\"")), [("cloud_key", escaped)]);
    assert_eq!(found(&format!("?X-Amz-Security-Token={session}&x")), [], "an address that was signed for the client");
    assert_eq!(found(&session[..90]), []);
}

#[test]
fn keys_of_accounts_are_found_with_escapes() {
    let key = format!("{}==", "a1B2/3D4e+F6g7H8i9J0k1".repeat(4).split_at(86).0);
    let (php, net) = (key.replace('/', "\\/"), key.replace('/', "\\u002F").replace('+', "\\u002B"));
    let gson = key.replace('=', "\\u003d");
    for value in [&key, &php, &net, &gson] {
        let text = format!("{{\"a\":\"AccountName=x;AccountKey={value};\"}}");
        assert_eq!(found(&text), [("cloud_key", format!("AccountKey={value}"))], "{text}");
    }
    let text = format!("{{\"a\":\"AccountKey\\u003d{gson};\"}}");
    assert_eq!(found(&text), [("cloud_key", format!("AccountKey\\u003d{gson}"))]);
    assert_eq!(found(&format!("{{\"AccountKey\":\"{net}\"}}")), [("cloud_key", net)]);
}

#[test]
fn several_values_are_found_side_by_side() {
    let text = "2024-01-15 4111 1111 1111 1111 5555 5555 5555 4444 12 123-45-6789 4111111111111111";
    let names: Vec<_> = found(text).into_iter().map(|(_, value)| value).collect();
    assert_eq!(names, ["4111 1111 1111 1111", "5555 5555 5555 4444", "123-45-6789", "4111111111111111"]);
    for (name, value) in positive() {
        let text = format!("[\"{value}\",\"{value}\"]");
        assert_eq!(found(&text), [(name, value.clone()), (name, value.clone())]);
    }
}

#[test]
fn private_keys_are_found_in_text_and_in_json() {
    let lines = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n".repeat(3);
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"] {
        let text = format!("a\n-----BEGIN {label}-----\n{lines}-----END {label}-----\n");
        assert_eq!(found(&text), [("private_key", format!("\n{lines}"))], "{label}");
        let json = serde_like(&text);
        let mut masked = json.clone().into_bytes();
        let finding = all().scan(&masked)[0];
        mask(&mut masked, &finding, true);
        let masked = String::from_utf8(masked).unwrap();
        assert_eq!((masked.len(), masked.contains("VJTU")), (json.len(), false));
        assert_eq!(masked.matches("\\n").count(), json.matches("\\n").count(), "{masked}");
    }
    // A key that a limit cuts is found as well.
    assert_eq!(found(&format!("-----BEGIN PRIVATE KEY-----\n{lines}")).len(), 1);
}

/// A text as a string of JSON.
fn serde_like(text: &str) -> String {
    format!("{{\"key\":\"{}\"}}", text.replace('\n', "\\n"))
}

#[test]
fn addresses_are_counted_once_each() {
    let mut text = String::from("one@shop.example, ONE@shop.example; <two@shop.example>");
    assert_eq!(found(&text), []);
    write!(text, " three.x+y@mail.shop.example.").unwrap();
    let values: Vec<_> = found(&text).into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, ["one@shop.example", "ONE@shop.example", "two@shop.example", "three.x+y@mail.shop.example"]);
    assert_eq!(found("@@@@ a@ @b.c a@b a@b.c1 x@y@z.example"), []);
}

#[test]
fn masks_keep_the_length_and_what_tells_the_owner() {
    for (text, expected) in [
        ("{\"card\":\"4111 1111 1111 1111\"}", "{\"card\":\"**** **** **** 1111\"}"),
        ("{\"card\":4111111111111111}", "{\"card\":9999999999991111}"),
        ("[1, 4111111111111111 ]", "[1, 9999999999991111 ]"),
        ("iban DE89 3704 0044 0532 0130 00.", "iban **** **** **** **** **30 00."),
        ("ssn 123-45-6789", "ssn ***-**-****"),
        ("k=AKIAIOSFODNN7EXAMPLE;", "k=********************;"),
        ("t=glpat-a1B2c3D4e5F6g7H8i9J0", "t=*****-********************"),
    ] {
        let mut masked = text.as_bytes().to_vec();
        for finding in all().scan(text.as_bytes()) {
            mask(&mut masked, &finding, true);
        }
        assert_eq!(String::from_utf8(masked).unwrap(), expected);
    }
}

/// A text with all its matches masked.
fn masked(scanner: &Scanner, text: &str, form: Form) -> String {
    let mut masked = text.as_bytes().to_vec();
    mask_all(&mut masked, &scanner.scan(text.as_bytes()), form);
    String::from_utf8(masked).unwrap()
}

#[test]
fn addresses_behind_an_escape_are_masked_without_it() {
    for text in [
        r#"{"csv":"name\nbob@x.example\namy@y.example\r\ttom@z.example"}"#,
        r#"{"to":"\u003cbob@x.example\u003e, \u003Camy@y.example\u003E \u0022tom@z.example\u0022"}"#,
        r#"{"csv":"{\"a\":\"\\nbob@x.example\\u003camy@y.example %3Ctom@z.example\"}"}"#,
        r#"{"a":"\\bob@x.example \\\\amy@y.example \\\ntom@z.example"}"#,
    ] {
        let shown = masked(&all(), text, Form::Json);
        assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
        assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
        assert!(!["bob", "amy", "tom", "example"].iter().any(|name| shown.contains(name)), "{shown}");
    }
    // What is read of a long name begins within an escape.
    for length in 56..=66 {
        let text = format!("{{\"a\":\"\\u003c{}@x.example a@x.example b@x.example\"}}", "a".repeat(length));
        let shown = masked(&all(), &text, Form::Json);
        assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
    }
    let own = Scanner::new(DetectorSet::default(), 1, vec![CustomPattern::new("[a-z0-9]{4}", Checksum::None).unwrap()]);
    for text in [r#"{"a":"\nabcd"}"#, r#"{"a":"\u00e4abcd"}"#, r#"{"a":"x\u00e4bcde"}"#, r#"{"a":"\\nabc\\\u00e4"}"#] {
        let shown = masked(&own, text, Form::Json);
        assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
    }
}

#[test]
fn bare_numbers_stay_numbers_in_every_type() {
    let custom = ["\\b[0-9]{9}\\b", "[0-9]{9}", "\"id\":[0-9]{9}"];
    for pattern in custom {
        let own = Scanner::new(DetectorSet::default(), 1, vec![CustomPattern::new(pattern, Checksum::None).unwrap()]);
        for text in [
            "{\"lat\":52.123456789}",
            "{\"id\":1234567890123}",
            "{\"id\":123456789}",
            "[-123456789e10, 1.5E+123456789 ]",
            &format!("{{\"id\":{}}}", "123456789".repeat(40)),
            &format!("{{\"id\":{}123456789{}}}", " ".repeat(100), " ".repeat(100)),
        ] {
            let shown = masked(&own, text, Form::Json);
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&shown).is_ok(), "{shown}");
            assert_eq!(shown != *text, !own.scan(text.as_bytes()).is_empty(), "{shown}");
        }
    }
    for (form, text, expected) in [
        (Form::Script, "f({card:4111111111111111})", "f({card:9999999999991111})"),
        (Form::Script, "var a=4111111111111111\nvar b", "var a=9999999999991111\nvar b"),
        (Form::Script, "return 4111111111111111;", "return 9999999999991111;"),
        (Form::Script, "a='4111111111111111'", "a='************1111'"),
        (Form::Script, "a='4111 1111 1111 1111'", "a='**** **** **** 1111'"),
        (
            Form::Other,
            "<p>card: 4111111111111111, <script>var s={\"card\":4111111111111111};t=4111111111111111;</script> 4111111111111111",
            "<p>card: ************1111, <script>var s={\"card\":9999999999991111};t=9999999999991111;</script> ************1111",
        ),
        (
            Form::Other,
            "<a x='{&quot;a&quot;: 4111111111111111,&#34;b&#34;:4111111111111111}' y=\"{a:1,card:4111111111111111}\">",
            "<a x='{&quot;a&quot;: 9999999999991111,&#34;b&#34;:9999999999991111}' y=\"{a:1,card:9999999999991111}\">",
        ),
        (Form::Other, "<a x='[4111111111111111]'>", "<a x='[9999999999991111]'>"),
        (Form::Other, "bob,4111111111111111,x", "bob,************1111,x"),
        (Form::Json, "{\"card\":\"4111111111111111\"}", "{\"card\":\"************1111\"}"),
    ] {
        assert_eq!(masked(&all(), text, form), expected);
    }
}

#[test]
fn patterns_of_the_configuration_have_their_checksum() {
    let custom = vec![
        CustomPattern::new("MEM-[0-9]{4}", Checksum::None).unwrap(),
        CustomPattern::new("[0-9]{10}", Checksum::Luhn).unwrap(),
        CustomPattern::new("RF[0-9]{2}[A-Z0-9]{1,21}", Checksum::Mod97).unwrap(),
    ];
    let scanner = Scanner::new(DetectorSet::default(), 1, custom);
    let text = b"MEM-0042 7992739871 7992739873x1234567897 RF18539007547034 RF19539007547034";
    let places: Vec<_> = scanner.scan(text).into_iter().map(|finding| (finding.detector, finding.start)).collect();
    assert_eq!(places, [(Detector::Custom(0), 0), (Detector::Custom(1), 31), (Detector::Custom(2), 42)]);
    assert!(CustomPattern::new("(", Checksum::None).is_err());
    assert!(CustomPattern::new(&"[a-z]{1000}".repeat(40), Checksum::None).is_err());
}

#[test]
fn bytes_that_are_no_text_are_scanned_as_well() {
    let text = [b"\xff\xfe\x80 4111111111111111 \xc3(\xf0".as_slice(), &[0; 100], b" 123-45-6789"].concat();
    let names: Vec<_> = found_bytes(&text).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["card", "us_ssn"]);
}

/// What an attacker makes long must not be read again and again: the counts of findings are those of the text.
#[test]
fn long_texts_of_one_kind_end() {
    let long = |unit: &str| unit.repeat(400_000 / unit.len());
    for unit in [
        "1",
        "1 ",
        "12-",
        "4111",
        "@",
        "a@",
        "a@b.",
        "eyJ",
        "eyJ.",
        "eyJa.eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "AKIA",
        "sk-ant-",
        "DE89 ",
        "DE89",
        "T3BlbkFJ",
        "2A",
        "1234562A",
        "1 85 05 2A ",
        "SG.",
        "xoxb-1",
        "\u{0}",
        "A1",
        "1&nbsp;",
        "1%20",
        "1\\u00a0",
        "\\u0022",
        "%22",
        "2A%20",
        "&",
        "\\",
        "AccountKey=",
        "ecretAccessKey=",
        "ecretAccessKey=\\",
        "IQoJb3JpZ2lu",
    ] {
        assert_eq!(found(&long(unit)), [], "{unit}");
    }
    assert_eq!(found(&long("4111111111111111,")).len(), 400_000 / 17);
}
