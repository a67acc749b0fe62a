//! Texts that are served, and bots that disobey them.

use exchange::Reply;

use super::*;

const ROBOTS: &str = "User-agent: ahrefsbot\nDisallow: /\n\nUser-agent: *\nDisallow: /private\n";
const DAY: u64 = 86_400_000;

fn guard(
    robots: &str,
    llms: &str,
    step: BotGuardStep,
    verdicts: Option<&[(Vec<u8>, CrawlerVerdict)]>,
) -> Box<dyn Plugin> {
    let (robots_txt, llms_txt) = (robots.as_bytes().to_vec(), llms.as_bytes().to_vec());
    plugin_of(step, BotList { bots: some_bots(), robots_txt, llms_txt, fingerprints: None }, verdicts)
}

/// What a request leads to: the answer that is served, or the score and the tags of one that goes on.
fn asks(
    guard: &dyn Plugin,
    (method, path): (&str, &str),
    (address, user_agent): (&str, &str),
    host: &FakeHost,
) -> Result<Reply, (Option<u16>, f64, Vec<String>)> {
    let mut exchange = request(address, &[user_agent.as_bytes()]);
    exchange.request.method = method.into();
    exchange.request.path = path.into();
    let status = match guard.access(&mut exchange, &mut Slot::default(), host) {
        Verdict::Enforce { decision, hold_millis: 0, reply: Some(reply) } => {
            assert!(!decision.enforced && exchange.events.is_empty(), "{decision:?}");
            return Ok(reply);
        }
        Verdict::Refuse(refusal) => Some(refusal.status),
        _ => None,
    };
    Err((status, exchange.score.total(), exchange.score.tags().into_iter().map(str::to_owned).collect()))
}

fn disobeys(outcome: &Result<Reply, (Option<u16>, f64, Vec<String>)>) -> bool {
    matches!(outcome, Err((_, _, tags)) if tags.iter().any(|tag| tag.starts_with("bot:disobeys:")))
}

#[test]
fn texts_are_served_to_denied_bots_as_well() {
    let (guard, host) = (guard(ROBOTS, "# Site", step(), None), FakeHost::at(7));
    let denied = ("192.0.2.7", "Applebot-Extended");
    assert_eq!(asks(&*guard, ("GET", "/"), denied, &host).unwrap_err().0, Some(451));
    for (method, path, body) in [
        ("GET", "/robots.txt", ROBOTS),
        ("HEAD", "/robots.txt", ROBOTS),
        ("GET", "/robots.txt?x=1", ROBOTS),
        ("GET", "/llms.txt", "# Site"),
        ("HEAD", "/llms.txt", "# Site"),
    ] {
        let reply = asks(&*guard, (method, path), denied, &host).unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (200, body.as_bytes()), "{method} {path}");
        let content_type = reply.headers.iter().find(|(name, _)| name == "content-type").unwrap();
        assert_eq!(content_type.1, b"text/plain; charset=utf-8");
    }
    for (method, path) in [
        ("POST", "/robots.txt"),
        ("get", "/robots.txt"),
        ("GET", "/Robots.txt"),
        ("GET", "/robots.txt/"),
        ("GET", "/a/robots.txt"),
        ("GET", "robots.txt"),
        ("GET", "/robots.txt#x"),
    ] {
        assert!(asks(&*guard, (method, path), denied, &host).is_err(), "{method} {path}");
    }
}

#[test]
fn what_the_policy_does_not_serve_goes_to_the_backend() {
    let host = FakeHost::at(7);
    let browser = ("192.0.2.7", "Mozilla/5.0 Firefox/140.0");
    let neither = guard("", "", step(), None);
    assert!(asks(&*neither, ("GET", "/robots.txt"), browser, &host).is_err());
    assert!(asks(&*neither, ("GET", "/llms.txt"), browser, &host).is_err());
    let one = guard("", "# Site", step(), None);
    assert!(asks(&*one, ("GET", "/robots.txt"), browser, &host).is_err());
    assert!(asks(&*one, ("GET", "/llms.txt"), browser, &host).is_ok());
}

#[test]
fn a_bot_that_has_read_the_file_and_takes_what_it_forbids_is_noticed_for_a_day() {
    let (guard, host) = (guard(ROBOTS, "# Site", step(), None), FakeHost::at(5 * DAY));
    let seo = ("192.0.2.7", "AhrefsBot/7.0");
    assert!(!disobeys(&asks(&*guard, ("GET", "/a"), seo, &host)), "it has not read it");
    asks(&*guard, ("GET", "/llms.txt"), seo, &host).unwrap();
    assert!(!disobeys(&asks(&*guard, ("GET", "/a"), seo, &host)), "that was another text");
    asks(&*guard, ("GET", "/robots.txt"), seo, &host).unwrap();
    let (_, score, tags) = asks(&*guard, ("GET", "/a"), seo, &host).unwrap_err();
    assert_eq!((score, tags[0].as_str()), (30.0, "bot:disobeys:ahrefsbot"), "with the 10 of its rule");
    for other in [("192.0.2.8", "AhrefsBot"), ("192.0.2.7", "curl/8")] {
        assert!(!disobeys(&asks(&*guard, ("GET", "/private"), other, &host)), "{other:?}");
    }
    host.advance(DAY - 1);
    assert!(disobeys(&asks(&*guard, ("GET", "/a"), seo, &host)));
    host.advance(DAY / 8 + 2);
    assert!(!disobeys(&asks(&*guard, ("GET", "/a"), seo, &host)), "it is forgotten");
}

#[test]
fn bots_without_a_signature_are_watched_and_browsers_are_not() {
    let (guard, host) = (guard(ROBOTS, "", step(), None), FakeHost::at(DAY));
    let [program, browser] = ["python-requests/2.32", "Mozilla/5.0 Firefox/140.0"].map(|agent| ("2001:db8::1", agent));
    for caller in [program, browser] {
        asks(&*guard, ("GET", "/robots.txt"), caller, &host).unwrap();
    }
    let neighbour = ("2001:db8::ffff", program.1);
    assert_eq!(asks(&*guard, ("GET", "/private/x"), neighbour, &host).unwrap_err().2, ["bot:disobeys:unknown"]);
    assert_eq!(asks(&*guard, ("GET", "/public"), program, &host).unwrap_err().2, [] as [&str; 0]);
    assert_eq!(asks(&*guard, ("GET", "/private"), browser, &host).unwrap_err().2, [] as [&str; 0]);
    assert!(!disobeys(&asks(&*guard, ("GET", "/private"), ("2001:db8:0:1::1", program.1), &host)), "another network");
}

#[test]
fn without_a_weight_no_reader_is_remembered() {
    let without = BotGuardStep { robots_weight: 0.0, ..step() };
    let (guard, host) = (guard(ROBOTS, "", without, None), FakeHost::at(DAY));
    let seo = ("192.0.2.7", "AhrefsBot/7.0");
    asks(&*guard, ("GET", "/robots.txt"), seo, &host).unwrap();
    assert!(!disobeys(&asks(&*guard, ("GET", "/a"), seo, &host)));
}

#[test]
fn a_verified_bot_that_passes_gets_the_tag_without_a_weight() {
    let verdict = CrawlerVerdict { finding: Finding::Verified, until: 9 * DAY, renew: 8 * DAY };
    let verdicts = [(key(&METHOD, "192.0.2.7".parse().unwrap()), verdict)];
    for (bypass, weight) in [(true, 0.0), (false, 20.0)] {
        let guard = guard(ROBOTS, "", BotGuardStep { bypass, ..step() }, Some(&verdicts));
        let (host, google) = (FakeHost::at(DAY), ("192.0.2.7", "Googlebot/2.1"));
        asks(&*guard, ("GET", "/robots.txt"), google, &host).unwrap();
        let (status, score, tags) = asks(&*guard, ("GET", "/private"), google, &host).unwrap_err();
        assert_eq!((status, score, tags[0].as_str()), (None, weight, "bot:disobeys:googlebot"), "{bypass}");
    }
}

#[test]
fn a_flood_of_readers_takes_a_bounded_memory() {
    let (guard, host) = (guard(ROBOTS, "", step(), None), FakeHost::at(DAY));
    for number in 0..40_000_u32 {
        let address = std::net::Ipv4Addr::from(number).to_string();
        asks(&*guard, ("GET", "/robots.txt"), (&address, "AhrefsBot"), &host).unwrap();
    }
    let remembered = (0..40_000_u32)
        .filter(|number| {
            let address = std::net::Ipv4Addr::from(*number).to_string();
            disobeys(&asks(&*guard, ("GET", "/a"), (&address, "AhrefsBot"), &host))
        })
        .count();
    // 20,000 keys, rounded up to whole shards.
    assert!((1..=30_000).contains(&remembered), "{remembered}");
}

#[test]
fn a_node_that_has_served_a_bot_nothing_learns_what_it_has_read() {
    let host = FakeHost::at(7);
    assert!(!Readers::new().unwrap().has("googlebot", "192.0.2.7", &host));
    // By this list nodes tell the control plane what they want to know, each group behind the time of its last use.
    let (groups, _) = node_state::SharedData::get(host.shared(), "svc.counts.used").unwrap();
    let group = snapshot::CountGroup::decode_length_delimited(&groups[8..]).unwrap();
    assert_eq!((group.name.as_str(), group.everywhere_from), ("bots.robots", 1));
}
