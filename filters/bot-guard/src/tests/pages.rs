//! The maze, and who is spared.

use exchange::Action;
use maze::{MazeBudget, MazeLimits};

use super::*;

const ROBOTS: &str = "User-agent: seekbot\nUser-agent: knownbot\nDisallow: /\nAllow: /open\n";

/// A guard whose bots are under the maze: `seekbot`, and `knownbot`, which can be verified.
fn guard(pages: u32, marks_spared: bool, verdicts: &[(Vec<u8>, CrawlerVerdict)]) -> Box<dyn Plugin> {
    let budget = MazeBudget { pages, kibibytes: 10_000, micros: 100_000 };
    let limits = MazeLimits { path: "/m/".into(), page_bytes: 2048, hold_millis: 40, caller: budget, all: budget };
    let step = BotGuardStep { maze: Some(limits), marks_spared, ..step() };
    let seeking = bot("seekbot", "ai", &["seekbot"], BotReaction::Maze, 15.0);
    let known = KnownBot { method: METHOD.to_vec(), ..bot("knownbot", "ai", &["knownbot"], BotReaction::Maze, 15.0) };
    let bots = vec![seeking, known];
    let list = BotList { bots, robots_txt: ROBOTS.into(), ..BotList::default() };
    plugin_of(step, list, Some(verdicts))
}

fn verdict(finding: Finding) -> [(Vec<u8>, CrawlerVerdict); 1] {
    [(key(&METHOD, "192.0.2.7".parse().unwrap()), CrawlerVerdict { finding, until: 9_000_000, renew: 8_000_000 })]
}

/// The status of the answer and the action, with the tags.
fn asks(guard: &dyn Plugin, agent: &str, path: &str, host: &FakeHost) -> (Option<(u16, Action)>, Vec<String>) {
    let mut exchange = request("192.0.2.7", &[agent.as_bytes()]);
    (exchange.request.method, exchange.request.path) = (b"GET".to_vec(), path.into());
    let answer = match guard.access(&mut exchange, &mut Slot::default(), host) {
        Verdict::Refuse(refusal) => {
            assert!(refusal.scored && refusal.category == Category::Threat, "{refusal:?}");
            assert_eq!(refusal.hold_millis, if refusal.action == Action::Maze { 40 } else { 0 });
            Some((refusal.status, refusal.action))
        }
        _ => None,
    };
    (answer, exchange.score.tags().into_iter().map(str::to_owned).collect())
}

#[test]
fn a_bot_is_led_astray_where_robots_txt_forbids() {
    let (guard, host) = (guard(3, false, &[]), FakeHost::at(1_000_000));
    let page = Some((200, Action::Maze));
    let (answer, tags) = asks(&*guard, "SeekBot/1", "/x", &host);
    assert_eq!((answer, tags), (page, super::tags(&["bot:ai:seekbot", "bot:ai"])));
    assert_eq!(asks(&*guard, "SeekBot/1", "/m/a-b-1", &host).0, page, "its links lead on");
    assert_eq!(asks(&*guard, "SeekBot/1", "/open/x", &host).0, None, "what it may take");
    assert_eq!(asks(&*guard, "Mozilla/5.0 Firefox/140.0", "/x", &host).0, None);
    assert_eq!(asks(&*guard, "SeekBot/1", "/y", &host).0, page);
    assert_eq!(asks(&*guard, "SeekBot/1", "/z", &host).0, Some((451, Action::Deny)), "its budget is used up");
}

#[test]
fn a_bot_that_is_or_may_be_verified_is_refused_and_shown_nothing() {
    for (verdicts, action) in [
        (&verdict(Finding::Verified)[..], Action::Deny),
        (&verdict(Finding::Unverifiable), Action::Deny),
        (&[], Action::Deny),
        (&verdict(Finding::Impersonator), Action::Maze),
    ] {
        let (guard, host) = (guard(3, false, verdicts), FakeHost::at(1_000_000));
        let answer = asks(&*guard, "KnownBot/1", "/x", &host).0;
        assert_eq!(answer.map(|(_, action)| action), Some(action), "{verdicts:?}");
    }
}

#[test]
fn a_threat_response_with_a_maze_learns_who_is_spared() {
    let spared = |tags: Vec<String>| tags.iter().any(|tag| tag.starts_with(maze::SPARED));
    let host = FakeHost::at(1_000_000);
    let marking = guard(3, true, &[]);
    assert!(!spared(asks(&*marking, "SeekBot/1", "/open", &host).1), "it has not read it");
    asks(&*marking, "SeekBot/1", "/robots.txt", &host);
    assert!(spared(asks(&*marking, "SeekBot/1", "/open", &host).1), "it obeys");
    assert!(!spared(asks(&*marking, "SeekBot/1", "/x", &host).1), "it does not");
    assert!(spared(asks(&*marking, "KnownBot/1", "/x", &host).1), "it may turn out to be verified");
    let marking = guard(3, true, &verdict(Finding::Impersonator));
    assert!(!spared(asks(&*marking, "KnownBot/1", "/x", &host).1), "it is none");
    let silent = guard(3, false, &[]);
    assert!(
        !spared(asks(&*silent, "SeekBot/1", "/open", &host).1) && !spared(asks(&*silent, "KnownBot/1", "/x", &host).1)
    );
}
