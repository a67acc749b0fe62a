mod waiting;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use exchange::fake::FakeHost;
use exchange::{Answer, Ask, Exchange, Headers, Host as _, Reply, Verdict, offline};
use serde_json::{Value, json};
use snapshot::{Message as _, SpendPuzzle, YesNo};

use super::*;
use crate::flow::Confirmation;

const NOW: u64 = 1_900_000_000_000;
const BROWSER: &str = "Mozilla/5.0";

/// Puzzles of eight bits: solved in some hundred tries.
fn settings() -> Challenge {
    Challenge {
        provider: "challenge-provider_1".into(),
        difficulty_floor: 8,
        difficulty_ceiling: 8,
        challenge_ttl_seconds: 300,
        clearance_ttl_seconds: 1800,
        cookie_name: "svc-clearance".into(),
        keys: vec![b"a key of thirty-two bytes or more".to_vec()],
        bind_ip: true,
        bind_ua: true,
        ..Challenge::default()
    }
}

fn challenges() -> Challenges {
    Challenges::new(settings()).unwrap()
}

pub(crate) fn exchange(method: &str, ip: &str, headers: &[(&str, &str)]) -> Exchange {
    let mut exchange = Exchange::default();
    exchange.request.method = method.into();
    exchange.request.id = b"3f2a-77".to_vec();
    let mut all = vec![("user-agent", BROWSER)];
    all.extend(headers);
    exchange.request.headers = Headers::new(&all);
    exchange.caller.ip = ip.into();
    exchange
}

pub(crate) fn header<'a>(reply: &'a Reply, name: &str) -> &'a str {
    let found = reply.headers.iter().find(|(known, _)| known == name);
    found.map_or("", |(_, value)| std::str::from_utf8(value).unwrap())
}

/// A puzzle for this address at this score.
fn puzzle(challenges: &Challenges, ip: &str, score: f64, host: &FakeHost) -> String {
    let reply = challenges.present(&exchange("GET", ip, &[("accept", "*/*")]), score, 403, host);
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((&body["error"], &body["difficulty"]), (&json!("challenge_required"), &json!(8)));
    body["challenge"].as_str().unwrap().to_owned()
}

fn solve(challenge: &str) -> String {
    let nonces = (0_u32..).map(|nonce| nonce.to_string());
    let solution = { nonces }.find(|nonce| solves(challenge.as_bytes(), nonce.as_bytes(), 8)).unwrap();
    json!({ "challenge": challenge, "nonce": solution }).to_string()
}

fn submit(challenges: &Challenges, submission: &str, ip: &str, host: &FakeHost) -> Verdict {
    let mut exchange = exchange("POST", ip, &[(HEADER, submission), (":scheme", "https")]);
    match challenges.access("test", true, &mut exchange, host) {
        Verdict::Ask(_) => challenges.confirmed("test", Confirmation::Yes, &mut exchange, host),
        verdict => verdict,
    }
}

pub(crate) fn reply(verdict: Verdict) -> Reply {
    let Verdict::Enforce { reply: Some(reply), .. } = verdict else { panic!("{verdict:?}") };
    reply
}

/// The cookie that a solved puzzle earns, as a browser sends it back.
fn earn(challenges: &Challenges, ip: &str, score: f64, host: &FakeHost) -> String {
    let answer = reply(submit(challenges, &solve(&puzzle(challenges, ip, score, host)), ip, host));
    assert_eq!(answer.status, 204, "{:?}", host.events_json().last());
    header(&answer, "set-cookie").split(';').next().unwrap().to_owned()
}

/// What the last event says of a submission that failed.
fn failure(challenges: &Challenges, submission: &str, ip: &str, host: &FakeHost) -> String {
    let answer = reply(submit(challenges, submission, ip, host));
    assert_eq!((answer.status, header(&answer, "cache-control")), (403, "no-store"));
    assert_eq!(header(&answer, "set-cookie"), "");
    let event = host.events_json().pop().unwrap();
    assert_eq!(
        (&event["event"]["category"], &event["event"]["outcome"], &event["threat"]["tags"]),
        (&json!("challenge"), &json!("blocked"), &json!(["challenge:failed"]))
    );
    event["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_solved_puzzle_earns_a_cookie_that_lets_pass_until_it_ends() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let answer = reply(submit(&challenges, &solve(&puzzle(&challenges, "192.0.2.1", 40.0, &host)), "192.0.2.1", &host));
    let cookie = header(&answer, "set-cookie").to_owned();
    assert!(cookie.ends_with("; Path=/; Max-Age=1800; HttpOnly; SameSite=Lax; Secure"), "{cookie}");
    assert_eq!((answer.status, header(&answer, "cache-control")), (204, "no-store"));
    let value = cookie.split(';').next().unwrap().strip_prefix("svc-clearance=").unwrap();
    let (payload, signature) = value.split_once('.').unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
    assert_eq!((&claims["exp"], &claims["score"]), (&json!(NOW + 1_800_000), &json!(40)));
    assert_eq!(claims["ip"], "192.0.2.0/24");
    assert_eq!((claims["ua"].as_str().unwrap().len(), signature.len()), (32, 64));
    let event = host.events_json().pop().unwrap();
    assert_eq!(
        (&event["event"]["outcome"], &event["threat"]["tags"]),
        (&json!("observed"), &json!(["challenge:passed"]))
    );
    assert!(!event.to_string().contains(signature), "a cookie is no business of a log's");

    let with = |lines: &[&str], now| {
        let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
        challenges.cleared(&exchange("GET", "192.0.2.1", &lines), 40.0, now)
    };
    let own = format!("svc-clearance={value}");
    assert!(with(&[&own], NOW + 1_799_999));
    assert!(!with(&[&own], NOW + 1_800_000), "it has ended");
    assert!(with(&["a=b", &format!("c=d;  svc-clearance=old; {own} ; e=f")], NOW), "among others");
    assert!(!with(&["a=b"], NOW) && !with(&[], NOW));
    assert!(!with(&[&format!("x{own}")], NOW), "another name");
    assert!(with(&[&format!("{}{own}", "svc-clearance=x; ".repeat(50))], NOW), "what is no token does not count");
    let forged = |count| format!("svc-clearance={payload}.{}; ", "0".repeat(64)).repeat(count);
    assert!(with(&[&format!("{}{own}", forged(15))], NOW));
    assert!(!with(&[&format!("{}{own}", forged(16))], NOW), "that many are not tried");
}

#[test]
fn a_clearance_is_one_callers_and_no_byte_of_it_can_be_changed() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let cookie = earn(&challenges, "192.0.2.1", 40.0, &host);
    let from = |ip: &str, cookie: &str| challenges.cleared(&exchange("GET", ip, &[("cookie", cookie)]), 40.0, NOW);
    assert!(from("192.0.2.77", &cookie), "the same network");
    assert!(!from("192.0.3.1", &cookie) && !from("2001:db8::1", &cookie));
    let place = "svc-clearance=".len();
    for at in place..cookie.len() {
        let mut tampered = cookie.clone().into_bytes();
        tampered[at] = if tampered[at] == b'a' { b'b' } else { b'a' };
        assert!(!from("192.0.2.1", std::str::from_utf8(&tampered).unwrap()), "byte {at}");
        assert!(!from("192.0.2.1", &cookie[..at]), "cut at {at}");
    }
    let mut other = exchange("GET", "192.0.2.1", &[("cookie", &cookie)]);
    other.request.headers = Headers::from([("user-agent", "curl"), ("cookie", &cookie)]);
    assert!(!challenges.cleared(&other, 40.0, NOW), "another user agent");
    let loose = Challenges::new(Challenge { bind_ip: false, bind_ua: false, ..settings() }).unwrap();
    let cookie = earn(&loose, "192.0.2.1", 40.0, &host);
    other.caller.ip = "2001:db8::1".into();
    other.request.headers = Headers::from([("cookie", &cookie)]);
    assert!(loose.cleared(&other, 40.0, NOW), "nothing was bound");
    // A puzzle is no clearance, though the same provider has signed both.
    let signed = puzzle(&challenges, "192.0.2.1", 40.0, &host);
    assert!(!from("192.0.2.1", &format!("svc-clearance={signed}")));
}

#[test]
fn ipv6_is_bound_by_its_64_bits_of_network() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let cookie = earn(&challenges, "2001:db8:1:2:3::4", 0.0, &host);
    let from = |ip| challenges.cleared(&exchange("GET", ip, &[("cookie", &cookie)]), 0.0, NOW);
    assert!(from("2001:db8:1:2:ffff::1"));
    assert!(!from("2001:db8:1:3:3::4"));
}

#[test]
fn a_clearance_is_good_at_its_provider_alone_whatever_the_secrets_are() {
    let of = |provider: &str, keys: &[&[u8]]| {
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        Challenges::new(Challenge { provider: provider.into(), keys, ..settings() }).unwrap()
    };
    let (old, new): (&[u8], &[u8]) = (b"a key of thirty-two bytes or more", b"another one, as long as the first");
    let (cheap, host) = (of("challenge-provider_1", &[old]), FakeHost::at(NOW));
    let cookie = earn(&cheap, "192.0.2.1", 50.0, &host);
    let clears =
        |challenges: &Challenges| challenges.cleared(&exchange("GET", "192.0.2.1", &[("cookie", &cookie)]), 50.0, NOW);
    assert!(clears(&cheap) && clears(&of("challenge-provider_1", &[new, old])));
    for (provider, keys) in [
        ("challenge-provider_2", [old].as_slice()),
        ("challenge-provider_2", &[new, old]),
        ("challenge-provider_", &[old]),
        ("challenge-provider_11", &[old]),
        ("", &[old]),
        ("challenge-provider_1", &[new]),
    ] {
        assert!(!clears(&of(provider, keys)), "{provider}");
    }
    // Nor does the secret itself, which was the key of clearances once, sign one.
    let value = cookie.split_once('=').unwrap().1;
    let payload = value.split('.').next().unwrap();
    use hmac::{Hmac, KeyInit as _, Mac as _};
    let mac = Hmac::<sha2::Sha256>::new_from_slice(old).unwrap().chain_update(payload).finalize().into_bytes();
    let cookie = format!("svc-clearance={payload}.{}", snapshot::hex(&mac));
    assert!(!cheap.cleared(&exchange("GET", "192.0.2.1", &[("cookie", &cookie)]), 50.0, NOW));
}

#[test]
fn clients_behind_a_translator_of_ipv4_are_bound_to_their_own_networks() {
    let network = crate::binding::network;
    assert_eq!(network("64:ff9b::c000:201"), "192.0.2.0/24");
    assert_ne!(network("64:ff9b::c000:201"), network("64:ff9b::c633:6401"));
}

#[test]
fn a_clearance_holds_for_what_was_worked_for_and_a_little_more() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let cookie = earn(&challenges, "192.0.2.1", 45.9, &host);
    let at = |score| challenges.cleared(&exchange("GET", "192.0.2.1", &[("cookie", &cookie)]), score, NOW);
    assert_eq!([0.0, 45.0, 65.0, 66.0, 100.0].map(at), [true, true, true, false, false]);
}

#[test]
fn whatever_is_wrong_with_a_submission_earns_nothing() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let (ip, foreign) = ("192.0.2.1", Challenge { keys: vec![b"another".to_vec()], ..settings() });
    let other_provider = Challenge { provider: "challenge-provider_2".into(), ..settings() };
    for (settings, wrong) in [(foreign, "no key"), (other_provider, "another provider")] {
        let others = puzzle(&Challenges::new(settings).unwrap(), ip, 40.0, &host);
        let said = failure(&challenges, &solve(&others), ip, &host);
        assert!(said.contains(wrong), "{said}");
    }
    let signed = puzzle(&challenges, ip, 40.0, &host);
    let good = solve(&signed);
    assert!(failure(&challenges, &good, "198.51.100.1", &host).contains("another network"));
    let unsolved = (0..).map(|nonce: u64| nonce.to_string());
    let unsolved = { unsolved }.find(|nonce| !solves(signed.as_bytes(), nonce.as_bytes(), 8)).unwrap();
    let submission = json!({ "challenge": signed, "nonce": unsolved }).to_string();
    assert!(failure(&challenges, &submission, ip, &host).contains("does not solve"));
    // The work asked for is a part of what is signed.
    let (payload, signature) = signed.split_once('.').unwrap();
    let payload = String::from_utf8(URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
    let easier = URL_SAFE_NO_PAD.encode(payload.replace("\"bits\":8", "\"bits\":0"));
    let submission = json!({ "challenge": format!("{easier}.{signature}"), "nonce": 1 }).to_string();
    assert!(failure(&challenges, &submission, ip, &host).contains("no key"));
    let long = "9".repeat(129);
    let words = ["", "{}", "[]", "null", "{\"token\":1}", "{\"challenge\":1,\"nonce\":2}"];
    let made = [
        json!({"challenge": "x.y"}).to_string(),
        json!({"challenge": signed, "nonce": -1}).to_string(),
        json!({"challenge": signed, "nonce": 1.5}).to_string(),
        json!({"challenge": signed, "nonce": long}).to_string(),
        json!({"challenge": "x".repeat(3000), "nonce": 1}).to_string(),
    ];
    for submission in words.into_iter().chain(made.iter().map(String::as_str)) {
        let said = failure(&challenges, submission, ip, &host);
        assert!(said.contains("neither a puzzle with a nonce nor a token"), "{submission}: {said}");
    }
    host.advance(299_999);
    let late = solve(&puzzle(&challenges, ip, 40.0, &host));
    host.advance(1);
    assert!(failure(&challenges, &good, ip, &host).contains("expired"));
    assert_eq!(reply(submit(&challenges, &late, ip, &host)).status, 204, "all that was right about it");
}

#[test]
fn a_puzzle_serves_once_and_is_spent_before_anything_is_earned() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let solution = solve(&puzzle(&challenges, "192.0.2.1", 40.0, &host));
    let mut first = exchange("POST", "192.0.2.1", &[(HEADER, &solution)]);
    let mut second = exchange("POST", "192.0.2.1", &[(HEADER, &solution)]);
    let Verdict::Ask(ask) = challenges.access("test", true, &mut first, &host) else { panic!("nobody is asked") };
    let puzzle: SpendPuzzle = ask.question.read().expect("another question");
    assert_eq!((puzzle.id.len(), puzzle.until_millis), (32, NOW + 300_000));
    // The first one still waits for its answer.
    assert_eq!(reply(challenges.access("test", true, &mut second, &host)).status, 403);
    let answer = reply(challenges.confirmed("test", Confirmation::Yes, &mut first, &host));
    assert_eq!(answer.status, 204);
    assert!(!header(&answer, "set-cookie").contains("Secure"), "plain HTTP");
    assert!(failure(&challenges, &solution, "192.0.2.1", &host).contains("spent already"));
}

#[test]
fn an_answer_that_cannot_be_read_is_none() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let data = |yes| Answer::Data(YesNo { yes }.encode_to_vec());
    for (answer, status) in [(data(true), 204), (data(false), 403), (Answer::Data(b"\xff".to_vec()), 403)] {
        let solution = solve(&puzzle(&challenges, "192.0.2.1", 40.0, &host));
        let mut exchange = exchange("POST", "192.0.2.1", &[(HEADER, &solution)]);
        assert!(matches!(challenges.access("test", true, &mut exchange, &host), Verdict::Ask(_)));
        assert_eq!(reply(challenges.answered("test", &answer, &mut exchange, &host)).status, status, "{answer:?}");
    }
}

#[test]
fn what_the_control_plane_says_counts_and_its_silence_is_told_of() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    for (answer, status, categories) in [
        (Confirmation::Yes, 204, vec!["challenge"]),
        (Confirmation::No, 403, vec!["challenge"]),
        (Confirmation::NoControlPlane, 204, vec!["challenge"]),
        // Another node may take it. From here on puzzles are this node's own, and nobody need answer.
        (Confirmation::Unavailable, 403, vec!["dependency", "challenge"]),
        (Confirmation::Unavailable, 204, vec!["dependency", "challenge"]),
        (Confirmation::No, 403, vec!["challenge"]),
    ] {
        host.events.borrow_mut().clear();
        let solution = solve(&puzzle(&challenges, "192.0.2.1", 40.0, &host));
        let mut exchange = exchange("POST", "192.0.2.1", &[(HEADER, &solution)]);
        assert!(matches!(challenges.access("test", true, &mut exchange, &host), Verdict::Ask(_)));
        assert_eq!(reply(challenges.confirmed("test", answer, &mut exchange, &host)).status, status, "{answer:?}");
        let told = host.events_json();
        assert_eq!(
            told.iter().map(|event| event["event"]["category"].as_str().unwrap()).collect::<Vec<_>>(),
            categories
        );
    }
}

#[test]
fn a_submission_that_is_not_waited_for_earns_nothing_and_is_no_outage() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let solution = solve(&puzzle(&challenges, "192.0.2.1", 40.0, &host));
    let mut exchange = exchange("POST", "192.0.2.1", &[(HEADER, &solution)]);
    assert!(matches!(challenges.access("test", true, &mut exchange, &host), Verdict::Ask(_)));
    let answer = reply(challenges.answered("test", &Answer::Overrun, &mut exchange, &host));
    assert_eq!((answer.status, header(&answer, "set-cookie")), (403, ""));
    let told = host.events_json();
    let categories: Vec<_> = told.iter().map(|event| event["event"]["category"].as_str().unwrap()).collect();
    assert_eq!(categories, ["challenge"]);
    assert!(!offline::is(host.shared(), NOW), "the next puzzles count on every node");
    // Of an offline node's own as well: a missing answer is what they are for, a wait that the caller ends is not.
    offline::mark(host.shared(), NOW + 1000, NOW);
    let own = solve(&puzzle(&challenges, "192.0.2.1", 40.0, &host));
    let mut exchange = self::exchange("POST", "192.0.2.1", &[(HEADER, &own)]);
    assert!(matches!(challenges.access("test", true, &mut exchange, &host), Verdict::Ask(_)));
    assert_eq!(reply(challenges.answered("test", &Answer::Overrun, &mut exchange, &host)).status, 403);
}

#[test]
fn what_a_node_gives_while_it_is_offline_counts_there_and_in_that_incarnation_alone() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let shared = solve(&puzzle(&challenges, "192.0.2.1", 40.0, &host));
    offline::mark(host.shared(), NOW + 1000, NOW);
    let own = solve(&puzzle(&challenges, "192.0.2.1", 40.0, &host));
    // Another node, or this one after a restart; it has drawn other numbers.
    let other = FakeHost::at(NOW);
    for _ in 0..100 {
        other.random();
    }
    offline::mark(other.shared(), NOW + 1000, NOW);
    assert!(failure(&challenges, &own, "192.0.2.1", &other).contains("it alone takes it"));
    puzzle(&challenges, "192.0.2.1", 40.0, &other);
    assert!(failure(&challenges, &own, "192.0.2.1", &other).contains("it alone takes it"));
    // Those of before count everywhere, where the control plane says so.
    assert_eq!(reply(submit(&challenges, &shared, "192.0.2.1", &other)).status, 204);
    let mut submission = exchange("POST", "192.0.2.1", &[(HEADER, &own)]);
    assert!(matches!(challenges.access("test", true, &mut submission, &host), Verdict::Ask(_)));
    assert_eq!(reply(challenges.confirmed("test", Confirmation::Unavailable, &mut submission, &host)).status, 204);
    assert!(failure(&challenges, &own, "192.0.2.1", &host).contains("spent already"));
    // The control plane answers again.
    earn(&challenges, "192.0.2.1", 40.0, &host);
    assert!(!offline::is(host.shared(), NOW));
}

#[test]
fn keys_change_without_throwing_anybody_out() {
    let host = FakeHost::at(NOW);
    let with = |keys: &[&[u8]]| {
        Challenges::new(Challenge { keys: keys.iter().map(|key| key.to_vec()).collect(), ..settings() })
    };
    let (old, both, new) = (with(&[b"old"]).unwrap(), with(&[b"new", b"old"]).unwrap(), with(&[b"new"]).unwrap());
    let cookie = earn(&old, "192.0.2.1", 40.0, &host);
    let cleared =
        |by: &Challenges, cookie: &str| by.cleared(&exchange("GET", "192.0.2.1", &[("cookie", cookie)]), 40.0, NOW);
    assert!(cleared(&both, &cookie) && !cleared(&new, &cookie));
    let fresh = earn(&both, "192.0.2.1", 40.0, &host);
    assert!(cleared(&new, &fresh) && !cleared(&old, &fresh), "the first key signs");
    let under_way = solve(&puzzle(&old, "192.0.2.1", 40.0, &host));
    assert_eq!(reply(submit(&both, &under_way, "192.0.2.1", &host)).status, 204);
    assert!(with(&[]).is_none() && with(&[b""]).is_none());
}

#[test]
fn only_a_post_with_the_header_is_a_submission() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    for (method, headers) in [("POST", vec![]), ("GET", vec![(HEADER, "{}")])] {
        let mut exchange = exchange(method, "192.0.2.1", &headers);
        assert_eq!(challenges.access("test", true, &mut exchange, &host), Verdict::Pass);
    }
    // A widget of somebody else behind may have given it.
    let mut token = exchange("POST", "192.0.2.1", &[(HEADER, r#"{"token":"x"}"#)]);
    assert_eq!(challenges.access("test", false, &mut token, &host), Verdict::Pass);
    assert_eq!(reply(challenges.access("test", true, &mut token, &host)).status, 403);
    // Somebody else behind may have signed it.
    let other = Challenges::new(Challenge { provider: "c".into(), keys: vec![b"x".to_vec()], ..settings() }).unwrap();
    let others = solve(&puzzle(&other, "192.0.2.1", 40.0, &host));
    let mut unknown = exchange("POST", "192.0.2.1", &[(HEADER, &others)]);
    assert_eq!(challenges.access("test", false, &mut unknown, &host), Verdict::Pass);
    assert_eq!(reply(challenges.access("test", true, &mut unknown, &host)).status, 403);
    let mut forged = exchange("POST", "192.0.2.1", &[(HEADER, r#"{"challenge":"x.00","nonce":"1"}"#)]);
    assert_eq!(reply(challenges.access("test", false, &mut forged, &host)).status, 403);
}

#[test]
fn people_get_a_page_and_programs_get_json() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let html = ("accept", "text/html,*/*;q=0.8");
    for (method, headers, is_page, repeats) in [
        ("GET", vec![html], true, "1"),
        ("HEAD", vec![html, ("sec-fetch-mode", "navigate")], true, "1"),
        ("POST", vec![html, ("sec-fetch-mode", "navigate")], true, "0"),
        ("POST", vec![html], false, ""),
        ("GET", vec![html, ("sec-fetch-mode", "cors")], false, ""),
        ("GET", vec![("accept", "application/json")], false, ""),
        ("GET", vec![], false, ""),
    ] {
        let reply = challenges.present(&exchange(method, "192.0.2.1", &headers), 40.0, 429, &host);
        assert_eq!((reply.status, header(&reply, "cache-control")), (429, "no-store"));
        let body = String::from_utf8(reply.body.clone()).unwrap();
        match is_page {
            true => {
                assert_eq!(header(&reply, "content-type"), "text/html; charset=utf-8");
                assert!(body.contains(&format!("data-repeat={repeats} ")), "{method} {headers:?}");
                assert!(body.contains("3f2a-77") && body.contains("<noscript>"));
            }
            false => {
                assert_eq!(header(&reply, "content-type"), "application/json");
                let body: Value = serde_json::from_str(&body).unwrap();
                assert_eq!((&body["reference"], &body["header"]), (&json!("3f2a-77"), &json!(HEADER)));
            }
        }
    }
}

#[test]
fn pages_submit_to_their_own_host_whatever_the_path() {
    // `//x`, as a relative reference, would be the host `x`.
    for script in [include_str!("page/page.js"), include_str!("page/widget/widget.js")] {
        assert_eq!(script.matches("fetch(").count(), 1);
        assert!(script.contains("fetch(location.origin + location.pathname + location.search"));
    }
}

#[test]
fn the_page_is_small_whole_and_shows_words_as_words() {
    let host = FakeHost::at(NOW);
    let settings = Challenge { title: "<b>\"Shop\" & Co</b>".into(), message: "it's {title}".into(), ..settings() };
    let challenges = Challenges::new(settings).unwrap();
    for language in ["en", "fr", "de", "es"] {
        let mut exchange = exchange("GET", "2001:db8::1", &[("accept", "text/html"), ("accept-language", language)]);
        exchange.request.id = b"<script>".to_vec();
        let reply = challenges.present(&exchange, 100.0, 403, &host);
        assert!(reply.body.len() < 12 * 1024, "{} bytes", reply.body.len());
        let page = String::from_utf8(reply.body.clone()).unwrap();
        assert!(page.contains(&format!("<html lang={language}>")));
        assert!(page.contains("&lt;b&gt;&quot;Shop&quot; &amp; Co&lt;/b&gt;") && page.contains("it&#39;s {title}"));
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(
            !page.contains("http:") && !page.contains("https:") && !page.contains("//www"),
            "nothing from elsewhere"
        );
        // The policy names exactly this script and this style.
        use sha2::{Digest as _, Sha256};
        for (open, close) in [("<script>", "</script>"), ("<style>", "</style>")] {
            let text = page.split(open).nth(1).unwrap().split(close).next().unwrap();
            let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
            let policy = header(&reply, "content-security-policy");
            assert!(
                policy.contains(&format!("'sha256-{hash}'")) && policy.starts_with("default-src 'none'"),
                "{policy}"
            );
        }
    }
}

#[test]
fn a_clearance_counts_by_the_name_that_its_cookie_had_before() {
    let of = |name: &str, other: &str| {
        let named = Challenge { cookie_name: name.into(), other_cookie_name: other.into(), ..settings() };
        Challenges::new(named).unwrap()
    };
    let (alone, beside, strange) = (of("c", "c-1"), of("c-1", "c"), of("d", ""));
    let caller = exchange("GET", "192.0.2.1", &[]);
    for (gives, takes) in [(&alone, &beside), (&beside, &alone)] {
        let crate::binding::Binding { ip, ua } = crate::binding::Binding::of(&settings(), &caller);
        let earned = crate::puzzle::ClearanceClaim { score: 40, ip, ua };
        let set = String::from_utf8(gives.cookie(earned, &caller, NOW)).unwrap();
        let again = exchange("GET", "192.0.2.1", &[("cookie", set.split(';').next().unwrap())]);
        assert!(gives.cleared(&again, 40.0, NOW) && takes.cleared(&again, 40.0, NOW), "{set}");
        assert!(!strange.cleared(&again, 40.0, NOW));
    }
}
