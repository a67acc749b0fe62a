//! The plugin in a worker, with a table of verdicts made in the test.

mod differential;
mod fingerprints;
mod identities;
mod pages;
mod ranges;
mod serving;
mod signing;

use std::rc::Rc;

use ::tables::{KeysBuilder, State};
use exchange::fake::FakeHost;
use exchange::{Headers, Tables, Taken};

use super::*;

fn bot(name: &str, category: &str, tokens: &[&str], reaction: BotReaction, weight: f64) -> KnownBot {
    KnownBot {
        name: name.into(),
        category: category.into(),
        tokens: tokens.iter().map(|token| token.as_bytes().to_vec()).collect(),
        reaction: reaction.into(),
        weight,
        method: Vec::new(),
        ranges: Vec::new(),
        directory: String::new(),
    }
}

fn some_bots() -> Vec<KnownBot> {
    let verifiable =
        KnownBot { method: METHOD.to_vec(), ..bot("googlebot", "search", &["googlebot"], BotReaction::Allow, 30.0) };
    vec![
        verifiable,
        bot("applebot", "search", &["applebot"], BotReaction::Allow, 0.0),
        bot("applebot-extended", "ai", &["applebot-extended"], BotReaction::Deny, 20.0),
        bot("ahrefsbot", "seo", &["ahrefsbot"], BotReaction::Monitor, 10.0),
    ]
}

const METHOD: [u8; METHOD_BYTES] = *b"method-1";

fn step() -> BotGuardStep {
    BotGuardStep {
        bots: Vec::new(),
        name: "Bots".into(),
        verify: true,
        bypass: true,
        impersonator_weight: 60.0,
        impersonator: BotReaction::Deny.into(),
        unknown_weight: 0.0,
        status: 451,
        robots_weight: 20.0,
        signatures: true,
        signature_max_age: 86_400,
        signature_nonce: false,
        signatures_per_second: 100,
        signature_hosts: Vec::new(),
        maze: None,
        marks_spared: false,
        fingerprints: None,
    }
}

/// The plugin in a worker that has these verdicts; `None` for one without the table.
fn plugin(step: BotGuardStep, bots: Vec<KnownBot>, verdicts: Option<&[(Vec<u8>, CrawlerVerdict)]>) -> Box<dyn Plugin> {
    plugin_of(step, BotList { bots, ..BotList::default() }, verdicts)
}

/// The same with texts that it serves.
fn plugin_of(step: BotGuardStep, list: BotList, verdicts: Option<&[(Vec<u8>, CrawlerVerdict)]>) -> Box<dyn Plugin> {
    let part = list.encode_to_vec();
    let hash = snapshot::content_hash(&part).to_vec();
    let step = BotGuardStep { bots: hash.clone(), ..step };
    let tables = Rc::new(Tables::default());
    let mut parts = Build::new(std::iter::once((hash.as_slice(), part.as_slice()))).with_tables(Rc::clone(&tables));
    let plugin = build(&step.encode_to_vec(), &mut parts).unwrap();
    if let Some(verdicts) = verdicts {
        let mut builder = KeysBuilder::default();
        verdicts.iter().for_each(|(key, verdict)| builder.put(key, &verdict.to_bytes()).unwrap());
        let data = builder.build().unwrap();
        let (state, size) = (State::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
        let change = snapshot::TableChange { name: TABLE.into(), state, data, size, ..Default::default() };
        assert_eq!(tables.take(&change), Taken::Applied);
    }
    plugin
}

/// A request from an address with these user agents.
fn request(address: &str, user_agents: &[&[u8]]) -> Exchange {
    let headers: Vec<(&str, &[u8])> = user_agents.iter().map(|text| ("user-agent", *text)).collect();
    let mut exchange = Exchange::default();
    exchange.request.headers = Headers::new(&headers);
    exchange.caller.ip = address.into();
    exchange
}

/// The outcome of a request: the status of a refusal, the score, and the tags.
fn ask(plugin: &dyn Plugin, user_agents: &[&[u8]]) -> (Option<u16>, f64, Vec<String>) {
    let (host, mut exchange) = (FakeHost::at(7), request("192.0.2.7", user_agents));
    let status = match plugin.access(&mut exchange, &mut Slot::default(), &host) {
        Verdict::Refuse(refusal) => {
            assert!(refusal.scored && refusal.category == Category::Threat, "{refusal:?}");
            Some(refusal.status)
        }
        Verdict::Pass => None,
        other => panic!("{other:?}"),
    };
    (status, exchange.score.total(), exchange.score.tags().into_iter().map(str::to_owned).collect())
}

fn tags(all: &[&str]) -> Vec<String> {
    all.iter().map(|tag| (*tag).to_owned()).collect()
}

#[test]
fn each_action_does_what_it_says() {
    let plugin = plugin(step(), some_bots(), None);
    let seo = ask(&*plugin, &[b"Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"]);
    assert_eq!(seo, (None, 10.0, tags(&["bot:seo:ahrefsbot", "bot:seo"])));
    let denied = ask(&*plugin, &[b"Mozilla/5.0 (Applebot-Extended)"]);
    assert_eq!(denied, (Some(451), 20.0, tags(&["bot:ai:applebot-extended", "bot:ai"])));
    let allowed = ask(&*plugin, &[b"APPLEBOT"]);
    assert_eq!(allowed, (None, 0.0, tags(&["bot:search:applebot", "bot:search"])));
    assert_eq!(ask(&*plugin, &[b"Mozilla/5.0 Firefox/140.0"]), (None, 0.0, Vec::new()));
}

#[test]
fn the_longest_token_wins_wherever_it_is_and_in_every_header() {
    let plugin = plugin(step(), some_bots(), None);
    for texts in [
        &[&b"applebot-extended applebot"[..]][..],
        &[b"applebot applebot-extended"],
        &[b"applebot", b"x", b"(applebot-extended)"],
        &[b"applebot-extended", b"applebot"],
    ] {
        assert_eq!(ask(&*plugin, texts).2[0], "bot:ai:applebot-extended", "{texts:?}");
    }
    assert_eq!(ask(&*plugin, &[b"applebot", b"-extended"]).2[0], "bot:search:applebot", "headers are apart");
}

#[test]
fn user_agents_may_be_any_bytes_of_any_length() {
    let unknown = BotGuardStep { unknown_weight: 25.0, ..step() };
    let plugin = plugin(unknown, some_bots(), None);
    let all_bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(ask(&*plugin, &[&all_bytes]), (None, 0.0, Vec::new()));
    assert_eq!(ask(&*plugin, &[&[&all_bytes[..], b"AhrefsBot", &all_bytes].concat()]).2[0], "bot:seo:ahrefsbot");
    let long = vec![b'x'; 64 << 10];
    assert_eq!(ask(&*plugin, &[&long]), (None, 25.0, tags(&["bot:unknown"])), "no browser sends that");
    let first = [b"ahrefsbot ", &long[..]].concat();
    assert_eq!(ask(&*plugin, &[&first]).2[0], "bot:seo:ahrefsbot");
    let at_the_end = [&long[..MAX_USER_AGENT - 9], b"ahrefsbot"].concat();
    assert_eq!(ask(&*plugin, &[&at_the_end]).2[0], "bot:seo:ahrefsbot");
    let over_the_end = [&long[..MAX_USER_AGENT - 8], b"ahrefsbot"].concat();
    assert_eq!(ask(&*plugin, &[&over_the_end]).2, tags(&["bot:unknown"]));
    let many: Vec<&[u8]> = std::iter::repeat_n(&long[..1024], 8).chain([&b"ahrefsbot"[..]]).collect();
    assert_eq!(ask(&*plugin, &many).2, tags(&["bot:unknown"]), "the limit is that of all headers together");
}

#[test]
fn unknown_bots_are_programs_that_are_no_browser() {
    let unknown = BotGuardStep { unknown_weight: 25.0, ..step() };
    let with_weight = plugin(unknown, some_bots(), None);
    let is_unknown = |text: &[u8]| ask(&*with_weight, &[text]) == (None, 25.0, tags(&["bot:unknown"]));
    for text in [
        &b""[..],
        b"  ",
        b"SomeBot/1.0",
        b"my bot",
        b"Bot",
        b"(compatible; WebCrawler +https://x.example)",
        b"curl/8.5.0",
        b"python-requests/2.32",
        b"Go-http-client/2.0",
        b"Mozilla/5.0 HeadlessChrome/130.0",
        b"Robot",
    ] {
        assert!(is_unknown(text), "{}", text.escape_ascii());
    }
    for text in [
        &b"Mozilla/5.0 (Linux; Android 9; CUBOT_NOVA Build/PPR1) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36"[..],
        b"Mozilla/5.0 (Linux; Android 9; CUBOT X18) Chrome/130.0",
        b"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15",
        b"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0",
        b"Mozilla/5.0 Bottle botany",
    ] {
        assert!(!is_unknown(text), "{}", text.escape_ascii());
    }
    assert_eq!(ask(&*with_weight, &[]), (None, 25.0, tags(&["bot:unknown"])), "no user agent");
    assert_eq!(ask(&*plugin(step(), some_bots(), None), &[b"curl/8"]).2, Vec::<String>::new(), "without a weight");
}

#[test]
fn a_guard_of_the_global_chain_and_one_of_the_route_count_a_bot_once() {
    let guard =
        |weight| plugin(step(), vec![bot("ahrefsbot", "seo", &["ahrefsbot"], BotReaction::Monitor, weight)], None);
    let score = |first: f64, second: f64| {
        let (host, mut exchange) = (FakeHost::at(7), request("192.0.2.7", &[b"AhrefsBot/7"]));
        for guard in [guard(first), guard(second)] {
            assert_eq!(guard.access(&mut exchange, &mut Slot::default(), &host), Verdict::Pass);
        }
        exchange.score.total()
    };
    assert_eq!([score(25.0, 25.0), score(25.0, 40.0), score(40.0, 25.0)], [25.0, 40.0, 40.0]);
    let unknown = plugin(BotGuardStep { unknown_weight: 25.0, ..step() }, some_bots(), None);
    let (host, mut exchange) = (FakeHost::at(7), request("192.0.2.7", &[b"curl/8"]));
    for _ in 0..2 {
        assert_eq!(unknown.access(&mut exchange, &mut Slot::default(), &host), Verdict::Pass);
    }
    assert_eq!(exchange.score.total(), 25.0);
}

#[test]
fn a_step_that_cannot_be_right_is_refused() {
    let built = |step: BotGuardStep, bots: Vec<KnownBot>| {
        let part = BotList { bots, ..BotList::default() }.encode_to_vec();
        let hash = snapshot::content_hash(&part).to_vec();
        let step = BotGuardStep { bots: hash.clone(), ..step };
        build(&step.encode_to_vec(), &mut Build::new(std::iter::once((hash.as_slice(), part.as_slice())))).map(|_| ())
    };
    assert_eq!(built(step(), some_bots()), Ok(()));
    assert_eq!(built(step(), Vec::new()), Ok(()), "without bots nothing is known");
    for (wrong, bots) in [
        (BotGuardStep { status: 99, ..step() }, some_bots()),
        (BotGuardStep { impersonator: 9, ..step() }, some_bots()),
        (BotGuardStep { impersonator: 0, ..step() }, some_bots()),
        (step(), vec![KnownBot { reaction: 9, ..some_bots().remove(0) }]),
        (step(), vec![KnownBot { method: vec![1], ..some_bots().remove(0) }]),
        (step(), vec![KnownBot { tokens: vec![Vec::new()], ..some_bots().remove(0) }]),
    ] {
        assert!(built(wrong.clone(), bots).is_err(), "{wrong:?}");
    }
    assert!(build(b"\xff\xff", &mut Build::new(std::iter::empty())).is_err());
}
