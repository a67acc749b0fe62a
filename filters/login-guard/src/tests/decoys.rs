//! Attacks that name other users and passwords beside those that the application takes, and ordinary forms with several such fields.

use super::*;
use serde_json::json;

const ATTACK: &str = "login:account_under_attack";
const SPRAYING: &str = "login:password_spraying";
const STUFFING: &str = "login:credential_stuffing";
const TAKEOVER: &str = "login:account_takeover";

/// The head and the body of a login with a user and a password, and further ones of a number that never comes again.
type Disguise = fn(&str, &str, usize) -> (Request, Vec<u8>);

fn form(body: String) -> (Request, Vec<u8>) {
    (request("/login", &[("content-type", "application/x-www-form-urlencoded")]), body.into_bytes())
}

fn json_of(body: String) -> (Request, Vec<u8>) {
    (request("/login", &[("content-type", "application/json")]), body.into_bytes())
}

/// JSON in UTF-16 that has another structure where its NULs are left out: U+2220 is a blank and a quote.
fn utf_16(user: &str, password: &str, n: usize) -> Vec<u8> {
    let body = format!(r#"{{"x":"{}","user":"{user}","password":"{password}","r":{n}}}"#, '\u{2220}');
    body.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A form in EBCDIC: letters and digits as they are in code page 37.
pub(super) fn ebcdic(text: &str) -> Vec<u8> {
    let letter = |byte: u8| match byte {
        b'a'..=b'i' => byte - b'a' + 0x81,
        b'j'..=b'r' => byte - b'j' + 0x91,
        b's'..=b'z' => byte - b's' + 0xa2,
        b'0'..=b'9' => byte - b'0' + 0xf0,
        b'=' => 0x7e,
        b'&' => 0x50,
        other => other,
    };
    text.bytes().map(letter).collect()
}

fn disguises() -> [(&'static str, Disguise); 17] {
    [
        ("another field", |user, password, n| form(format!("username={user}&user=r{n}&password={password}"))),
        ("the same field, behind it", |user, password, n| {
            form(format!("user={user}&user=r{n}&pass={password}&pass=r{n}"))
        }),
        ("the same field, in front of it", |user, password, n| {
            form(format!("user=r{n}&user={user}&pass=r{n}&pass={password}"))
        }),
        ("the query", |user, password, n| {
            let head = request(&format!("/login?email=r{n}&pwd=r{n}"), &[]);
            (head, format!("user={user}&password={password}").into_bytes())
        }),
        ("JSON", |user, password, n| {
            json_of(format!(r#"{{"email":"r{n}","data":{{"user":"{user}","password":"{password}"}},"user":"s{n}"}}"#))
        }),
        ("a name twice in an object", |user, password, n| {
            json_of(format!(r#"{{"user":"r{n}","user":"{user}","password":"r{n}","password":"{password}"}}"#))
        }),
        ("a list in JSON", |user, password, n| {
            json_of(format!(r#"{{"email":["r{n}","{user}"],"password":"{password}"}}"#))
        }),
        ("an object that is no user", |user, password, n| {
            json_of(format!(r#"{{"user":"{user}","account":{{"id":{n}}},"password":"{password}"}}"#))
        }),
        ("JSON that only lenient parsers read", |user, password, n| {
            json_of(format!(r#"{{"user":"{user}","password":"{password}","r":"{n}",}}"#))
        }),
        ("basic authentication", |user, password, n| {
            use base64::Engine as _;
            let value = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("r{n}:r{n}")));
            (request("/login", &[("authorization", &value)]), format!("user={user}&pass={password}").into_bytes())
        }),
        ("a semicolon", |user, password, n| form(format!("user={user};x=r{n}&password={password};x=r{n}"))),
        ("characters that are not shown", |user, password, n| {
            form(format!("user={user}{}&password={password}", "%e2%80%8b".repeat(n)))
        }),
        ("accents", |user, password, n| form(format!("user={user}{}&password={password}", "%cc%81".repeat(n)))),
        ("a NUL", |user, password, n| form(format!("user={user}%00r{n}&password={password}"))),
        ("escapes of .NET", |user, password, n| {
            let escaped = |(at, letter): (usize, char)| match at == n % user.len() {
                true => format!("%u{:04x}", u32::from(letter)),
                false => letter.to_string(),
            };
            let spelled: String = user.char_indices().map(escaped).collect();
            form(format!("user={spelled}{}&password={password}", "%u200b".repeat(n)))
        }),
        ("a part in base64", |user, password, n| {
            use base64::Engine as _;
            let coded = base64::engine::general_purpose::STANDARD.encode(user);
            let (start, end) = coded.split_at(3);
            let part =
                |head: &str, value: &str| format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n");
            let user =
                part("name=user\r\nContent-Transfer-Encoding: Base64", &format!("{start}{}{end}", "!".repeat(n)));
            let body = [user, part("name=password", password), "--b--\r\n".into()].concat();
            (request("/login", &[("content-type", "multipart/form-data; boundary=b")]), body.into_bytes())
        }),
        // Its user is always the same number.
        ("spellings of a number", |_, password, n| {
            let zeros = "0".repeat(n);
            let number = match n % 5 {
                0 => "12345".to_owned(),
                1 => format!("12345.{zeros}"),
                2 => format!("1.2345{zeros}e4"),
                3 => format!("12345{zeros}E-{n}"),
                _ => format!("0.{zeros}12345e+{}", n + 5),
            };
            json_of(format!(r#"{{"user":{number},"password":"{password}"}}"#))
        }),
    ]
}

/// Requests whose user is not found: it is behind what is read.
fn hidden() -> [(&'static str, Disguise); 10] {
    fn decoys(n: usize, name: &str) -> String {
        (0..9).map(|decoy| format!("{name}=d{decoy}-{n}&")).collect()
    }
    [
        ("behind many users", |user, password, n| {
            form(format!("{}user={user}&{}pass={password}", decoys(n, "user"), decoys(n, "pass")))
        }),
        ("between many users", |user, password, n| {
            let (before, behind) = (decoys(n, "email"), decoys(n, "account"));
            form(format!("{before}user={user}&{behind}{}pass={password}&{}", decoys(n, "pwd"), decoys(n, "passwd")))
        }),
        ("behind many fields", |user, password, n| {
            form(format!("{}user={user}&pass={password}&r={n}", "a=1&".repeat(300)))
        }),
        ("behind many fields of the query", |user, password, n| {
            let query = format!("/login?{}user={user}&pass={password}&r={n}", "&".repeat(256));
            (request(&query, &[]), b"x=1".to_vec())
        }),
        ("behind many names of JSON", |user, password, n| {
            json_of(format!(r#"{{{}"user":"{user}","pass":"{password}","r":{n}}}"#, r#""a":1,"#.repeat(4_096)))
        }),
        ("under a content coding", |user, password, n| {
            let head = request("/login", &[("content-encoding", "gzip")]);
            (head, format!("user{user}{password}{n}").into_bytes())
        }),
        ("JSON in UTF-16", |user, password, n| (request("/login", &[]), utf_16(user, password, n))),
        ("a charset that is not ASCII", |user, password, n| {
            let head = request("/login", &[("content-type", "application/x-www-form-urlencoded; charset=ibm037")]);
            (head, ebcdic(&format!("user={user}&password={password}&r={n}")))
        }),
        ("a form that names its charset", |user, password, n| {
            let wide = |text: &str| text.bytes().map(|byte| format!("%00%{byte:02x}")).collect::<String>();
            form(format!(
                "_charset_=utf-16be&{}={}&{}={}&r={n}",
                wide("user"),
                wide(user),
                wide("pass"),
                wide(password)
            ))
        }),
        ("parts between one of two boundaries", |user, password, n| {
            let part = |name: &str, value: &str| {
                format!("--b\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}{n}\r\n")
            };
            let head = "multipart/form-data; boundary=c; boundary=b";
            let body = [part("user", &format!("{user}{n}")), part("password", password), "--b--".into()].concat();
            (request("/login", &[("content-type", head)]), body.into_bytes())
        }),
    ]
}

/// Tries an account from many sources; the number of the attempt that has the tag of an attack on it. Then one of them gets in.
fn attacked(of: Disguise) -> (Option<usize>, Outcome) {
    let (chain, host) = (chain(&step()), FakeHost::at(NOW));
    let send = |n: usize, password: &str, code: u16| {
        let (head, body) = of("victim", password, n);
        send(&chain, &host, &format!("198.51.{n}.7"), (head, &body), status(code))
    };
    let at = (1..=20).find(|n| send(*n, &format!("guess{n}"), 401).tags.contains(&ATTACK.to_owned()));
    (at, send(99, "right", 302))
}

#[test]
fn an_attacked_account_is_found_behind_decoys() {
    for (name, of) in disguises().into_iter().chain(hidden()) {
        let (at, taken) = attacked(of);
        assert_eq!(at, Some(10), "{name}");
        assert_eq!(taken.tags, [ATTACK, TAKEOVER], "{name}");
    }
}

#[test]
fn an_account_that_is_attacked_with_and_without_decoys_is_one() {
    let (chain, host) = (chain(&step()), FakeHost::at(NOW));
    let mut ways = disguises().into_iter().cycle();
    let at = (1..=20).find(|n| {
        let (_, of) = ways.next().unwrap();
        let (head, body) = of("victim", &format!("guess{n}"), *n);
        let told = send(&chain, &host, &format!("198.51.{n}.7"), (head, &body), status(401));
        told.tags.contains(&ATTACK.to_owned())
    });
    assert_eq!(at, Some(10));
    let told = login(&chain, &host, ("203.0.113.7", "victim", "right"), true);
    assert_eq!(told.tags, [ATTACK, TAKEOVER], "a login without any decoy");
    assert!(events(&host)[0].contains("; the account is "), "{:?}", events(&host));
    assert_eq!(login(&chain, &host, ("203.0.113.8", "another", "x"), false).tags, [] as [&str; 0]);
}

#[test]
fn a_sprayed_password_is_found_behind_decoys() {
    let several: Vec<_> = disguises().into_iter().take(6).chain(hidden().into_iter().take(2)).collect();
    for (name, of) in several {
        let (chain, host) = (chain(&step()), FakeHost::at(NOW));
        let at = (1..=20).find(|n| {
            let (head, body) = of(&format!("customer{n}"), "Winter2026", *n);
            let told = send(&chain, &host, &format!("198.51.{n}.7"), (head, &body), status(401));
            told.tags.contains(&SPRAYING.to_owned())
        });
        // Ten, and a twentieth of all that have failed.
        assert_eq!(at, Some(11), "{name}");
    }
}

/// Successes of the attacker's own account, each beside another decoy, make no more room for failures than one.
#[test]
fn decoys_make_no_room_for_failures() {
    for beside in [1, 9] {
        let (chain, host) = (chain(&step()), FakeHost::at(NOW));
        let at = (1..=40).find(|n| {
            for own in 0..4 {
                let decoys: String = (0..beside).map(|decoy| format!("&user=r{n}-{own}-{decoy}")).collect();
                let (head, body) = form(format!("username=mallory&password=own{decoys}"));
                send(&chain, &host, "192.0.2.1", (head, &body), status(302));
            }
            let victim = format!("u{n}");
            let told = login(&chain, &host, ("192.0.2.1", &victim, &format!("p{n}")), false);
            told.tags.contains(&STUFFING.to_owned())
        });
        assert_eq!(at, Some(11), "{beside} decoys");
    }
}

/// Who logs in to an account of their own with the victim as a decoy is not taken for a user of the victim's account.
#[test]
fn a_decoy_makes_no_one_known() {
    type Swap = fn(&str, &str) -> (Request, Vec<u8>);
    let swaps: [(&str, Swap); 7] = [
        ("fields", |own, other| form(format!("user={own}&username={other}&pass=x"))),
        ("names in another case", |own, other| form(format!("user={own}&User={other}&pass=x"))),
        ("the order of one field", |own, other| form(format!("user={other}&user={own}&pass=x"))),
        ("an occurrence more", |own, other| form(format!("user={own}&user={other}&user={own}&pass=x"))),
        ("places", |own, other| {
            (request(&format!("/login?user={other}"), &[]), format!("user={own}&pass=x").into_bytes())
        }),
        ("objects", |own, other| json_of(format!(r#"{{"a":{{"user":"{own}"}},"user":"{other}","pass":"x"}}"#))),
        ("files", |own, other| {
            let part = |head: &str, value: &str| {
                format!("--b\r\nContent-Disposition: form-data; name=user{head}\r\n\r\n{value}\r\n")
            };
            let body = [part("", own), part("; filename=a", other), "--b--".into()].concat();
            (request("/login", &[("content-type", "multipart/form-data; boundary=b")]), body.into_bytes())
        }),
    ];
    for (name, swap) in swaps {
        let (chain, host) = (chain(&step()), FakeHost::at(NOW));
        let ip = |number: usize| format!("198.51.{number}.7");
        for number in 1..=20 {
            let (head, body) = swap("mallory", "victim");
            send(&chain, &host, &ip(number), (head, &body), status(302));
        }
        let at = (1..=20).find(|number| {
            let (head, mut body) = swap("victim", "mallory");
            body.truncate(body.len() - usize::from(name != "files" && name != "objects"));
            if name != "files" && name != "objects" {
                body.extend_from_slice(format!("g{number}").as_bytes());
            }
            let told = send(&chain, &host, &ip(*number), (head, &body), status(401));
            told.tags.contains(&ATTACK.to_owned())
        });
        // Without a password that differs, each source is one login.
        assert_eq!(at, Some(10), "{name}");
    }
}

/// A form that sends another field with the name of a user, such as its button or the company of the user.
#[test]
fn what_all_logins_of_a_form_have_is_no_account() {
    type Form = fn(usize, &str) -> (Request, Vec<u8>);
    let forms: [(&str, Form); 5] = [
        ("a button", |n, password| form(format!("username=user{n}&password={password}&login=Log+in"))),
        ("a company", |n, password| form(format!("account=company&user=user{n}&password={password}"))),
        ("all of them", |n, password| {
            form(format!(
                "username=user{n}&email=user{n}%40example.com&password={password}&pass=1&login=Log+in&account=c"
            ))
        }),
        ("bodies that clients compress", |n, password| {
            let head = request("/login", &[("content-encoding", "gzip")]);
            (head, format!("compressed {n} {password}").into_bytes())
        }),
        ("a list of users", |n, password| {
            json_of(json!({ "users": ([1, 2, 3, 4, 5, 6]).map(|of| json!({ "user": format!("u{n}-{of}") })), "password": password }).to_string())
        }),
    ];
    for (name, of) in forms {
        let (chain, host) = (chain(&step()), FakeHost::at(NOW));
        let ip = |n: usize| format!("10.{}.{}.7", n / 250, n % 250);
        let mut number = 0;
        for day in 0..3 {
            for n in 0..400 {
                host.advance(60_000);
                // One in five mistypes the password, once or twice.
                for _ in 0..if n % 5 == 0 { 1 + n % 2 } else { 0 } {
                    number += 1;
                    let (head, body) = of(n, &format!("typo{number}"));
                    let told = send(&chain, &host, &ip(n), (head, &body), status(401));
                    assert_eq!(told.tags, [] as [&str; 0], "{name}, day {day}, user {n}");
                }
                let (head, body) = of(n, &format!("right{n}"));
                let told = send(&chain, &host, &ip(n), (head, &body), status(302));
                assert_eq!(told.tags, [] as [&str; 0], "{name}, day {day}, user {n}");
            }
            host.advance(86_400_000 - 400 * 60_000);
        }
        assert_eq!(events(&host), [] as [&str; 0], "{name}");
        if name == "bodies that clients compress" {
            continue;
        }
        // An attack on one account of it is noticed, and its owner is not charged.
        let at = (1..=20).find(|guess| {
            let (head, body) = of(7, &format!("guess{guess}"));
            let told = send(&chain, &host, &format!("198.51.{guess}.7"), (head, &body), status(401));
            told.tags.contains(&ATTACK.to_owned())
        });
        assert_eq!(at, Some(10), "{name}");
        for (user, ip) in [(7, ip(7)), (8, "203.0.113.9".to_owned())] {
            let (head, body) = of(user, &format!("right{user}"));
            assert_eq!(
                send(&chain, &host, &ip, (head, &body), status(302)).tags,
                [] as [&str; 0],
                "{name}, user {user}"
            );
        }
    }
}

#[test]
fn a_login_with_one_user_counts_for_one_account() {
    for of in [
        form("user=ada&password=x".into()),
        form("user=ada&username=ADA&email=+ada&password=x&pass=x".into()),
        json_of(r#"{"user":"ada","password":"x","login":"","email":null,"account":true}"#.into()),
    ] {
        let mut found = fields().of_head(&of.0);
        fields().read_body(of.0.headers.get("content-type").unwrap(), false, &of.1, &mut found);
        let watched = Watched { kind: EndpointKind::Login, surely: true, reached: true };
        let pseudonyms = Pseudonyms::new(Vec::new());
        let attempt = Attempt::new(watched, (&found, &of.1), &Exchange::default(), (&pseudonyms, NOW));
        assert_eq!((attempt.accounts, attempt.users.len(), attempt.hidden), (vec![attempt.user], 0, None));
        assert_eq!((attempt.user, attempt.has_user), (pseudonyms.of(pseudonym::Of::User, b"ada", NOW), true));
        assert_eq!((attempt.passwords, attempt.several_passwords.len()), (vec![attempt.password.unwrap()], 0));
    }
}

fn fields() -> Fields {
    Fields::new(step().username_fields, step().password_fields)
}

#[test]
fn a_flood_of_decoys_stays_bounded() {
    let (chain, host) = (chain(&step()), FakeHost::at(NOW));
    let mut bytes = 0;
    for number in 0..8_000_u32 {
        let ip = format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255);
        let body: String = (0..6).map(|decoy| format!("user=u{number}-{decoy}&pass=p{number}-{decoy}&")).collect();
        let (head, body) = form(body);
        send(&chain, &host, &ip, (head, &body), status(if number % 3 == 0 { 302 } else { 401 }));
        host.events.borrow_mut().clear();
        if number == 6_000 {
            bytes = host.shared_data.bytes();
        }
    }
    let after = host.shared_data.bytes();
    println!("{bytes} bytes after 6,000 requests, {after} after 8,000");
    assert!(after < 80 << 20, "{after}");
}
