//! The way without JavaScript: pages that are loaded again after a while, on a clock that stands until it is moved.

use exchange::Host as _;

use super::*;

const PLACE: &str = "/shop?q=garden%20chairs";
const HTML: (&str, &str) = ("accept", "text/html,*/*;q=0.8");

/// Waits of 10 s at score 0 and 30 s at score 100: 14 s at the score of these tests, in slots of 30 s.
fn waiting() -> Challenge {
    Challenge { without_javascript: true, wait_floor_seconds: 10, wait_ceiling_seconds: 30, ..settings() }
}

/// A browser without scripts, with the cookies that it keeps.
struct Browser {
    ip: &'static str,
    agent: &'static str,
    cookies: Vec<(String, String)>,
}

/// What came of a navigation.
#[derive(Debug, PartialEq)]
enum Came {
    /// It was sent on: the reference that it is to follow.
    On(String),
    /// The page, with the seconds after which it loads itself again.
    Page(Option<u64>, String),
    /// Nobody asked it for anything.
    Through,
}

impl Browser {
    fn at(ip: &'static str) -> Self {
        Self { ip, agent: BROWSER, cookies: Vec::new() }
    }

    fn exchange(&self, method: &str, path: &str) -> Exchange {
        let jar: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut exchange = Exchange::default();
        exchange.request.method = method.into();
        exchange.request.path = path.into();
        exchange.caller.ip = self.ip.into();
        let jar = jar.join("; ");
        exchange.request.headers =
            Headers::from([("user-agent", self.agent), HTML, ("sec-fetch-mode", "navigate"), ("cookie", &jar)]);
        exchange
    }

    /// Asks for a page that a tier challenges at this score, as the steps of a chain do one after the other.
    fn load(&mut self, challenges: &Challenges, score: f64, answer: Confirmation, host: &FakeHost) -> Came {
        self.send("GET", PLACE, challenges, score, answer, host)
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        challenges: &Challenges,
        score: f64,
        answer: Confirmation,
        host: &FakeHost,
    ) -> Came {
        let mut exchange = self.exchange(method, path);
        let verdict = match challenges.access("test", true, &mut exchange, host) {
            Verdict::Ask(ask) => {
                let slot: SpendPuzzle = ask.question.read().expect("another question");
                assert!(slot.id.len() <= 64 && slot.until_millis > host.now(), "{slot:?}");
                challenges.confirmed("test", answer, &mut exchange, host)
            }
            verdict => verdict,
        };
        if let Verdict::Enforce { reply: Some(reply), .. } = verdict {
            self.keep(&reply);
            assert_eq!((reply.status, header(&reply, "cache-control")), (303, "no-store"));
            return Came::On(header(&reply, "location").to_owned());
        }
        assert_eq!(verdict, Verdict::Pass);
        if challenges.cleared(&exchange, score, host.now()) {
            return Came::Through;
        }
        let reply = challenges.present(&exchange, score, 403, host);
        self.keep(&reply);
        let page = String::from_utf8(reply.body).unwrap();
        let seconds = page.split("http-equiv=refresh content=").nth(1).map(|rest| rest.split('>').next().unwrap());
        Came::Page(seconds.map(|seconds| seconds.parse().unwrap()), page)
    }

    /// Keeps cookies, and throws away what has an age of nothing.
    fn keep(&mut self, reply: &Reply) {
        for (_, value) in reply.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let line = std::str::from_utf8(value).unwrap();
            assert!(line.contains("; Path=/; ") && line.contains("; HttpOnly; SameSite=Lax"), "{line}");
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            if !line.contains("Max-Age=0;") {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    fn ticket(&self) -> Option<&str> {
        self.cookies.iter().find(|(name, _)| name == "svc-clearance-wait").map(|(_, value)| value.as_str())
    }
}

fn page(came: Came) -> (Option<u64>, String) {
    let Came::Page(seconds, page) = came else { panic!("no page: {came:?}") };
    (seconds, page)
}

fn seconds(came: Came) -> u64 {
    page(came).0.expect("it loads itself again")
}

/// A host at the start of a slot.
fn host() -> FakeHost {
    FakeHost::at(NOW / 30_000 * 30_000)
}

#[test]
fn whoever_waits_is_sent_on_to_the_same_url_with_clearance() {
    let (challenges, host) = (Challenges::new(waiting()).unwrap(), host());
    let mut browser = Browser::at("192.0.2.1");
    let (seconds, text) = page(browser.load(&challenges, 20.0, Confirmation::Yes, &host));
    assert_eq!(seconds, Some(14));
    assert!(text.contains("takes 14 seconds") && text.contains("<a href=\"\">"), "{text}");
    let ticket = browser.ticket().unwrap().to_owned();
    // Too early: what is left of the wait, and no other ticket.
    host.advance(9_500);
    assert_eq!(page(browser.load(&challenges, 20.0, Confirmation::Yes, &host)).0, Some(5));
    host.advance(4_499);
    assert_eq!(page(browser.load(&challenges, 20.0, Confirmation::Yes, &host)).0, Some(2), "a millisecond too early");
    assert_eq!(browser.ticket(), Some(ticket.as_str()));
    host.advance(1);
    assert_eq!(browser.load(&challenges, 20.0, Confirmation::Yes, &host), Came::On(PLACE.into()));
    let event = host.events_json().pop().unwrap();
    assert_eq!(
        (&event["event"]["outcome"], &event["threat"]["tags"]),
        (&json!("observed"), &json!(["challenge:passed"]))
    );
    assert!(!event.to_string().contains(&ticket), "a cookie is no business of a log's");
    assert_eq!(browser.ticket(), None, "it was taken back");
    assert_eq!(browser.load(&challenges, 20.0, Confirmation::Yes, &host), Came::Through);
    // It is a clearance like any other.
    assert_eq!(browser.load(&challenges, 40.0, Confirmation::Yes, &host), Came::Through);
    assert!(matches!(browser.load(&challenges, 41.0, Confirmation::Yes, &host), Came::Page(..)));
}

#[test]
fn the_wait_grows_with_the_score() {
    let host = host();
    let challenges = Challenges::new(waiting()).unwrap();
    let at = |score| seconds(Browser::at("192.0.2.1").load(&challenges, score, Confirmation::Yes, &host));
    assert_eq!([0.0, 50.0, 99.0, 100.0, -1.0, 500.0, f64::NAN].map(at), [10, 20, 30, 30, 10, 30, 30]);
    let turned = Challenges::new(Challenge { wait_ceiling_seconds: 3, ..waiting() }).unwrap();
    assert_eq!(seconds(Browser::at("192.0.2.1").load(&turned, 100.0, Confirmation::Yes, &host)), 10);
    let nothing = Challenge { wait_floor_seconds: 0, wait_ceiling_seconds: 0, ..waiting() };
    let mut browser = Browser::at("192.0.2.1");
    let challenges = Challenges::new(nothing).unwrap();
    assert_eq!(seconds(browser.load(&challenges, 0.0, Confirmation::Yes, &host)), 2, "no division by nothing");
    assert_eq!(browser.load(&challenges, 0.0, Confirmation::Yes, &host), Came::On(PLACE.into()));
    // A ticket of a low score does not open a high one.
    let challenges = Challenges::new(waiting()).unwrap();
    let mut browser = Browser::at("192.0.2.2");
    assert_eq!(seconds(browser.load(&challenges, 20.0, Confirmation::Yes, &host)), 14);
    assert_eq!(seconds(browser.load(&challenges, 40.0, Confirmation::Yes, &host)), 14);
    assert_eq!(seconds(browser.load(&challenges, 60.0, Confirmation::Yes, &host)), 22);
}

#[test]
fn a_ticket_is_one_callers_and_ends() {
    let (challenges, host) = (Challenges::new(waiting()).unwrap(), host());
    let mut browser = Browser::at("192.0.2.1");
    seconds(browser.load(&challenges, 20.0, Confirmation::Yes, &host));
    let ticket = browser.cookies.clone();
    host.advance(14_000);
    let with = |ip, agent, cookies: &[(String, String)]| {
        let mut browser = Browser { ip, agent, cookies: cookies.to_vec() };
        browser.load(&challenges, 20.0, Confirmation::Yes, &host)
    };
    for (ip, agent) in [("192.0.3.1", BROWSER), ("192.0.2.1", "curl"), ("2001:db8::1", BROWSER)] {
        assert_eq!(seconds(with(ip, agent, &ticket)), 14, "{ip} {agent}");
    }
    let (name, value) = &ticket[0];
    for at in 0..value.len() {
        let mut tampered = value.clone().into_bytes();
        tampered[at] = if tampered[at] == b'a' { b'b' } else { b'a' };
        let tampered = String::from_utf8(tampered).unwrap();
        assert!(matches!(with("192.0.2.1", BROWSER, &[(name.clone(), tampered)]), Came::Page(..)), "byte {at}");
    }
    let renamed = [("wait".to_owned(), value.clone())];
    assert!(matches!(with("192.0.2.1", BROWSER, &renamed), Came::Page(..)), "another name");
    // It is taken until all of its slot have ended, and the time of a challenge is over.
    host.advance(16_000 + 300_000);
    assert!(matches!(with("192.0.2.1", BROWSER, &ticket), Came::Page(Some(14), _)), "it has ended");
    let host = FakeHost::at(host.now() - 1);
    let mut near = Browser { ip: "192.0.2.99", agent: BROWSER, cookies: ticket };
    assert_eq!(near.load(&challenges, 20.0, Confirmation::Yes, &host), Came::On(PLACE.into()), "the same network");
}

#[test]
fn no_signed_text_is_taken_for_another() {
    let (challenges, host) = (Challenges::new(waiting()).unwrap(), host());
    let mut browser = Browser::at("192.0.2.1");
    seconds(browser.load(&challenges, 20.0, Confirmation::Yes, &host));
    let ticket = browser.ticket().unwrap().to_owned();
    host.advance(14_000);
    // A ticket as a puzzle, and as a clearance.
    let submission = json!({ "challenge": ticket, "nonce": 1 }).to_string();
    assert!(failure(&challenges, &submission, "192.0.2.1", &host).contains("no key"));
    browser.cookies = vec![("svc-clearance".into(), ticket.clone())];
    assert!(matches!(browser.load(&challenges, 20.0, Confirmation::Yes, &host), Came::Page(..)));
    // A puzzle and a clearance as a ticket.
    let clearance = earn(&challenges, "192.0.2.1", 20.0, &host);
    let clearance = clearance.split_once('=').unwrap().1.to_owned();
    for value in [puzzle(&challenges, "192.0.2.1", 20.0, &host), clearance] {
        browser.cookies = vec![("svc-clearance-wait".into(), value)];
        assert!(matches!(browser.load(&challenges, 20.0, Confirmation::Yes, &host), Came::Page(..)));
    }
    // Even with the ticket's own words in it: what tells them apart is the key.
    let words = URL_SAFE_NO_PAD.decode(ticket.split('.').next().unwrap()).unwrap();
    let words: Value = serde_json::from_slice(&words).unwrap();
    let sign = |purpose, words: &Value| vec![("svc-clearance-wait".to_owned(), challenges.keys.sign(purpose, words))];
    for purpose in [crate::keys::Purpose::Puzzle, crate::keys::Purpose::Clearance] {
        browser.cookies = sign(purpose, &words);
        assert!(matches!(browser.load(&challenges, 20.0, Confirmation::Yes, &host), Came::Page(..)), "{purpose:?}");
    }
    // Another provider may have the same secret.
    let mut others = words.clone();
    others["by"] = json!("challenge-provider_2");
    browser.cookies = sign(crate::keys::Purpose::Wait, &others);
    assert!(matches!(browser.load(&challenges, 20.0, Confirmation::Yes, &host), Came::Page(..)));
    browser.cookies = sign(crate::keys::Purpose::Wait, &words);
    assert_eq!(browser.load(&challenges, 20.0, Confirmation::Yes, &host), Came::On(PLACE.into()), "all that was wrong");
}

#[test]
fn a_wait_serves_once_and_one_of_a_network_at_a_time() {
    let (challenges, host) = (Challenges::new(waiting()).unwrap(), host());
    let mut first = Browser::at("192.0.2.1");
    seconds(first.load(&challenges, 20.0, Confirmation::Yes, &host));
    let copied = first.cookies.clone();
    // A neighbour, with another browser: both waits end in the same slot.
    host.advance(5_000);
    let mut second = Browser { agent: "Mozilla/4.0", ..Browser::at("192.0.2.7") };
    let (wait, text) = page(second.load(&challenges, 20.0, Confirmation::Yes, &host));
    assert_eq!((wait, text.contains("Somebody else")), (Some(14), false));
    host.advance(9_000);
    assert_eq!(first.load(&challenges, 20.0, Confirmation::Yes, &host), Came::On(PLACE.into()));
    let mut copy = Browser { cookies: copied, ..Browser::at("192.0.2.1") };
    assert_eq!(page(copy.load(&challenges, 20.0, Confirmation::Yes, &host)).0, Some(16), "it was spent: the next slot");
    host.advance(5_000);
    let (wait, text) = page(second.load(&challenges, 20.0, Confirmation::Yes, &host));
    assert_eq!((wait, text.contains("Somebody else")), (Some(11), true), "from the start of the next slot");
    host.advance(5_000);
    let (wait, text) = page(second.load(&challenges, 20.0, Confirmation::Yes, &host));
    assert_eq!((wait, text.contains("Somebody else")), (Some(6), true), "it still says so");
    // Somebody who comes now waits past the start of that slot, and loses to nobody by then.
    let mut third = Browser::at("192.0.2.9");
    assert_eq!(seconds(third.load(&challenges, 20.0, Confirmation::Yes, &host)), 14);
    host.advance(6_000);
    assert_eq!(second.load(&challenges, 20.0, Confirmation::Yes, &host), Came::On(PLACE.into()));
    assert_eq!(second.load(&challenges, 20.0, Confirmation::Yes, &host), Came::Through);
    // One more arrives in a slot that is taken: it is told the whole wait at once.
    let (wait, text) = page(Browser::at("192.0.2.8").load(&challenges, 20.0, Confirmation::Yes, &host));
    assert_eq!((wait, text.contains("Somebody else")), (Some(30), true));
    // Another network is another matter.
    assert_eq!(seconds(Browser::at("198.51.100.1").load(&challenges, 20.0, Confirmation::Yes, &host)), 14);
}

#[test]
fn many_tickets_of_a_host_earn_one_clearance_a_slot_and_everybody_gets_through() {
    let (challenges, host) = (Challenges::new(waiting()).unwrap(), host());
    let mut callers: Vec<_> = (0..20).map(|_| Browser::at("192.0.2.1")).collect();
    for (number, caller) in callers.iter_mut().enumerate() {
        // Waits of several lengths, none of which is longer than what is left of the slot.
        seconds(caller.load(&challenges, number as f64 * 2.0, Confirmation::Yes, &host));
    }
    let mut through = 0;
    for slot in 0..20 {
        host.advance(29_999);
        let on = |caller: &mut Browser| matches!(caller.load(&challenges, 40.0, Confirmation::Yes, &host), Came::On(_));
        let let_in: Vec<_> = callers.iter_mut().enumerate().filter_map(|(at, one)| on(one).then_some(at)).collect();
        assert!(let_in.len() <= 1, "slot {slot}: {let_in:?}");
        for at in let_in {
            callers.remove(at);
            through += 1;
        }
        host.advance(1);
    }
    assert_eq!(through, 20);
}

#[test]
fn the_control_plane_has_the_last_word_and_its_silence_is_told_of() {
    for (answer, on, categories) in [
        (Confirmation::Yes, true, vec!["challenge"]),
        (Confirmation::No, false, vec![]),
        (Confirmation::NoControlPlane, true, vec!["challenge"]),
        (Confirmation::Unavailable, true, vec!["dependency", "challenge"]),
    ] {
        let (challenges, host) = (Challenges::new(waiting()).unwrap(), host());
        let mut browser = Browser::at("192.0.2.1");
        seconds(browser.load(&challenges, 20.0, answer, &host));
        host.advance(14_000);
        let came = browser.load(&challenges, 20.0, answer, &host);
        if on {
            assert_eq!(came, Came::On(PLACE.into()), "{answer:?}");
        } else {
            // Another node has let somebody in for this slot.
            assert!(page(came).1.contains("Somebody else"));
            host.advance(16_000);
            assert_eq!(browser.load(&challenges, 20.0, Confirmation::Yes, &host), Came::On(PLACE.into()));
            host.events.borrow_mut().clear();
        }
        let told = host.events_json();
        let told: Vec<_> = told.iter().map(|event| event["event"]["category"].as_str().unwrap()).collect();
        assert_eq!(told, categories, "{answer:?}");
    }
}

#[test]
fn two_nodes_agree_on_the_slot() {
    let challenges = Challenges::new(waiting()).unwrap();
    let (here, there) = (host(), host());
    let asked = |host: &FakeHost, browser: &Browser| {
        let verdict = challenges.access("test", true, &mut browser.exchange("GET", PLACE), host);
        let Verdict::Ask(Ask { question, .. }) = verdict else { panic!("{verdict:?}") };
        question.read::<SpendPuzzle>().expect("another question")
    };
    let (mut first, mut second) = (Browser::at("192.0.2.1"), Browser::at("192.0.2.2"));
    seconds(first.load(&challenges, 20.0, Confirmation::Yes, &here));
    there.advance(3_000);
    seconds(second.load(&challenges, 30.0, Confirmation::Yes, &there));
    here.advance(20_000);
    there.advance(20_000);
    assert_eq!(asked(&here, &first), asked(&there, &second));
}

#[test]
fn without_it_the_page_says_what_to_do_and_tickets_count_for_nothing() {
    let host = host();
    let on = Challenges::new(waiting()).unwrap();
    let off = Challenges::new(Challenge { without_javascript: false, ..waiting() }).unwrap();
    let mut browser = Browser::at("192.0.2.1");
    seconds(browser.load(&on, 20.0, Confirmation::Yes, &host));
    host.advance(14_000);
    let (wait, text) = page(browser.load(&off, 20.0, Confirmation::Yes, &host));
    assert_eq!(wait, None);
    assert!(text.contains("This check needs JavaScript") && !text.contains("http-equiv"));
    let mut fresh = Browser::at("192.0.2.1");
    page(fresh.load(&off, 20.0, Confirmation::Yes, &host));
    assert_eq!(fresh.ticket(), None);
}

#[test]
fn nobody_is_led_to_another_host() {
    let (challenges, host) = (Challenges::new(waiting()).unwrap(), host());
    for (at, (path, to)) in [
        ("//evil.test/a?b=c", "/.//evil.test/a?b=c"),
        ("/\\evil.test/", "/%5Cevil.test/"),
        ("/\t/evil.test/", "/%09/evil.test/"),
        ("/?next=https://evil.test/", "/?next=https://evil.test/"),
    ]
    .into_iter()
    .enumerate()
    {
        let ip: &'static str = ["192.0.2.1", "192.0.3.1", "192.0.4.1", "192.0.5.1"][at];
        let mut browser = Browser::at(ip);
        let (_, text) = page(browser.send("GET", path, &challenges, 20.0, Confirmation::Yes, &host));
        assert!(!text.contains("evil"), "the page names no URL");
        host.advance(30_000);
        assert_eq!(browser.send("GET", path, &challenges, 20.0, Confirmation::Yes, &host), Came::On(to.into()));
    }
    // What is no path cannot be named by a reference: nobody waits for it.
    for path in ["", "*", "evil.test/", "https://evil.test/"] {
        let came = Browser::at("192.0.9.1").send("GET", path, &challenges, 20.0, Confirmation::Yes, &host);
        assert_eq!(page(came).0, None, "{path}");
    }
}

#[test]
fn a_form_is_not_repeated_and_programs_get_no_ticket() {
    let (challenges, host) = (Challenges::new(waiting()).unwrap(), host());
    let mut browser = Browser::at("192.0.2.1");
    let (wait, text) = page(browser.send("POST", PLACE, &challenges, 20.0, Confirmation::Yes, &host));
    assert_eq!((wait, text.contains("Your form was not sent")), (Some(14), true));
    host.advance(14_000);
    // The form again instead of the page: it is asked to wait no longer, but a form earns nothing.
    assert_eq!(seconds(browser.send("POST", PLACE, &challenges, 20.0, Confirmation::Yes, &host)), 2);
    // The page loads itself again by GET, whatever that weighs.
    assert_eq!(browser.load(&challenges, 0.0, Confirmation::Yes, &host), Came::On(PLACE.into()));
    assert_eq!(browser.send("POST", PLACE, &challenges, 20.0, Confirmation::Yes, &host), Came::Through);
    let program = exchange("GET", "192.0.2.1", &[("accept", "application/json")]);
    let answer = challenges.present(&program, 20.0, 403, &host);
    assert_eq!(header(&answer, "set-cookie"), "");
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body.as_object().unwrap().len(), 7, "{body}");
    // Nor does a script's request use up a ticket.
    let mut browser = Browser::at("198.51.100.1");
    seconds(browser.load(&challenges, 20.0, Confirmation::Yes, &host));
    host.advance(30_000);
    let mut script = browser.exchange("GET", PLACE);
    let cookie = format!("svc-clearance-wait={}", browser.ticket().unwrap());
    script.request.headers =
        Headers::from([("user-agent", BROWSER), HTML, ("sec-fetch-mode", "cors"), ("cookie", &cookie)]);
    assert_eq!(challenges.access("test", true, &mut script, &host), Verdict::Pass);
}

#[test]
fn a_solved_puzzle_takes_the_ticket_back() {
    let (challenges, host) = (Challenges::new(waiting()).unwrap(), host());
    let mut browser = Browser::at("192.0.2.1");
    let (_, text) = page(browser.load(&challenges, 20.0, Confirmation::Yes, &host));
    let challenge = text.split("data-c=\"").nth(1).unwrap().split('"').next().unwrap();
    let cookie = format!("svc-clearance-wait={}", browser.ticket().unwrap());
    let solution = solve(challenge);
    let mut submission = exchange("POST", "192.0.2.1", &[(HEADER, &solution), ("cookie", &cookie)]);
    assert!(matches!(challenges.access("test", true, &mut submission, &host), Verdict::Ask(_)));
    let answer = reply(challenges.confirmed("test", Confirmation::Yes, &mut submission, &host));
    assert!(header(&answer, "set-cookie").starts_with("svc-clearance="), "the clearance comes first");
    browser.keep(&answer);
    assert_eq!(browser.ticket(), None);
    // Where it is kept nonetheless, a clearance goes before it: nobody is sent in circles.
    let ticket = cookie.split_once('=').unwrap().1.to_owned();
    browser.cookies.push(("svc-clearance-wait".into(), ticket));
    host.advance(14_000);
    assert_eq!(browser.load(&challenges, 20.0, Confirmation::Yes, &host), Came::Through);
}

#[test]
fn the_page_for_those_who_wait_is_small_and_its_policy_names_both_styles() {
    use sha2::{Digest as _, Sha256};
    let host = host();
    let settings = Challenge { title: "Shop".into(), ..waiting() };
    let challenges = Challenges::new(settings).unwrap();
    for language in ["en", "fr", "de", "es"] {
        let mut exchange =
            exchange("POST", "2001:db8::1", &[HTML, ("accept-language", language), ("sec-fetch-mode", "navigate")]);
        exchange.request.path = PLACE.into();
        let reply = challenges.present(&exchange, 100.0, 403, &host);
        println!("{language}: {} bytes", reply.body.len());
        assert!(reply.body.len() < 12 * 1024, "{} bytes", reply.body.len());
        let page = String::from_utf8(reply.body.clone()).unwrap();
        assert!(page.contains("prefers-reduced-motion:reduce") && page.contains(" 30 "), "{page}");
        let policy = header(&reply, "content-security-policy");
        let styles: Vec<_> = page.split("<style>").skip(1).map(|rest| rest.split("</style>").next().unwrap()).collect();
        assert_eq!(styles.len(), 2);
        let sources = policy.split("style-src ").nth(1).unwrap();
        let named: Vec<_> = styles
            .iter()
            .map(|text| format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text))))
            .collect();
        assert_eq!(sources, named.join(" "));
        // What only takes effect without scripts stands in `noscript`, the refresh first of all.
        let outside: String = page.split("<noscript>").map(|part| part.split("</noscript>").last().unwrap()).collect();
        assert!(!outside.contains("refresh") && !outside.contains("<a "), "{outside}");
    }
}
