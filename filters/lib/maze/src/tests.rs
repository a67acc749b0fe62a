use std::collections::HashSet;

use exchange::fake::FakeHost;
use exchange::{Caller, Exchange, Request, Signal};

use super::*;

type Change = fn(&mut MazeLimits);

fn limits() -> MazeLimits {
    let budget = MazeBudget { pages: 1000, kibibytes: 100_000, micros: 1_000_000 };
    MazeLimits { path: "/archive/".to_owned(), page_bytes: 4096, hold_millis: 700, caller: budget, all: budget }
}

fn maze(change: impl FnOnce(&mut MazeLimits)) -> Maze {
    let mut limits = limits();
    change(&mut limits);
    Maze::new(limits).unwrap()
}

fn asks(method: &str, path: &str, ip: &str) -> Exchange {
    let request = Request { method: method.into(), path: path.into(), ..Request::default() };
    let caller = Caller { ip: ip.into(), ..Caller::default() };
    Exchange { request, caller, ..Exchange::default() }
}

fn pages(maze: &Maze, ip: &str, asked: usize, host: &FakeHost) -> usize {
    (0..asked).filter(|at| maze.page(&asks("GET", &format!("/x/{at}"), ip), host).is_some()).count()
}

/// The links of a page.
fn links(html: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(html).unwrap();
    text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn pages_lead_to_further_pages_and_never_repeat_what_was_asked_for() {
    let (maze, host) = (maze(|_| {}), FakeHost::at(1_000));
    let mut next = "/a?<script>alert(1)</script>".to_owned();
    let mut seen = HashSet::new();
    for _ in 0..50 {
        let page = maze.page(&asks("GET", &next, "192.0.2.1"), &host).unwrap();
        let html = String::from_utf8(page.html.clone()).unwrap();
        assert!(
            html.starts_with("<!doctype html>") && html.ends_with("</html>\n") && html.contains("noindex"),
            "{html}"
        );
        assert!(!html.contains("script") && html.len() <= 4096 && html.len() > 3000, "{}", html.len());
        assert_eq!(html.matches("<p>").count(), html.matches("</p>").count());
        assert_eq!(page.hold_millis, 700);
        let links = links(&page.html);
        assert!(links.len() >= 10 && links.iter().all(|link| link.starts_with("/archive/")), "{links:?}");
        next = links[0].clone();
        assert!(seen.insert(next.clone()), "{next} again");
    }
    // The same address has the same page, whatever its query.
    let page = |path: &str| maze.page(&asks("GET", path, "192.0.2.1"), &host).unwrap();
    assert_eq!(page("/archive/a-b-1"), page("/archive/a-b-1?c=d"));
    assert_ne!(page("/archive/a-b-1"), page("/archive/a-b-2"));
}

#[test]
fn pages_stay_within_their_size() {
    for page_bytes in [1024, 1025, 2000, 8192, 32_768] {
        let (maze, host) = (maze(|limits| limits.page_bytes = page_bytes), FakeHost::at(1_000));
        for at in 0..50 {
            let html = maze.page(&asks("HEAD", &format!("/{at}"), "192.0.2.1"), &host).unwrap().html;
            assert!(html.len() <= page_bytes as usize && html.len() + 600 > page_bytes as usize, "{}", html.len());
        }
    }
    for page_bytes in [0, 1023, 32_769, u32::MAX] {
        assert!(Maze::new(MazeLimits { page_bytes, ..limits() }).is_err(), "{page_bytes}");
    }
}

#[test]
fn paths_need_no_escape() {
    for path in ["/a/", "/archive/", "/a-b_c/D9/", &format!("/{}/", "a".repeat(62))] {
        assert!(is_path(path), "{path}");
    }
    for path in [
        "",
        "/",
        "//",
        "a/",
        "/a",
        "/a//b/",
        "/a\"/",
        "/a b/",
        "/%41/",
        "/../",
        "/\u{e4}/",
        &format!("/{}/", "a".repeat(63)),
    ] {
        assert!(!is_path(path) && Maze::new(MazeLimits { path: path.to_owned(), ..limits() }).is_err(), "{path}");
    }
}

#[test]
fn each_budget_of_a_caller_ends_its_pages_and_is_renewed() {
    let cases: [(Change, usize, u64); 3] = [
        (|limits| limits.caller.pages = 7, 7, 3_600_000),
        (|limits| limits.caller.kibibytes = 4 * 9 + 3, 9, 3_600_000),
        // 61 microseconds for 4 KiB.
        (|limits| limits.caller.micros = 61 * 5, 5, 10_000),
    ];
    for (change, most, span) in cases {
        let (maze, host) = (maze(change), FakeHost::at(1_000_000));
        assert_eq!(pages(&maze, "192.0.2.1", 50, &host), most);
        assert_eq!(pages(&maze, "192.0.2.2", 50, &host), most, "another caller has its own");
        assert_eq!(
            pages(&maze, "2001:db8::1", 50, &host) + pages(&maze, "2001:db8::2", 50, &host),
            most,
            "one network"
        );
        host.advance(2 * span);
        assert_eq!(pages(&maze, "192.0.2.1", 50, &host), most, "after {span} ms");
    }
}

#[test]
fn each_budget_of_all_ends_the_pages_of_everyone() {
    let cases: [(Change, usize); 3] = [
        (|limits| limits.all.pages = 20, 20),
        (|limits| limits.all.kibibytes = 4 * 20, 20),
        (|limits| limits.all.micros = 61 * 20, 20),
    ];
    for (change, most) in cases {
        let (maze, host) = (maze(change), FakeHost::at(1_000_000));
        let shown: usize = (0..100).map(|at| pages(&maze, &format!("192.0.2.{at}"), 3, &host)).sum();
        assert_eq!(shown, most);
    }
}

#[test]
fn a_caller_over_its_own_budget_uses_up_nothing_of_all() {
    let maze = maze(|limits| (limits.caller.pages, limits.all.pages) = (5, 20));
    let host = FakeHost::at(1_000_000);
    assert_eq!(pages(&maze, "192.0.2.1", 10_000, &host), 5);
    assert_eq!(pages(&maze, "192.0.2.2", 10_000, &host), 5);
}

#[test]
fn many_callers_do_not_free_a_budget() {
    let maze = maze(|limits| (limits.all.pages, limits.all.micros) = (30_000, u32::MAX));
    let host = FakeHost::at(1_000_000);
    // More callers than the tables have room for.
    let address = |at: u32| std::net::Ipv4Addr::from(0x0a00_0000 + at).to_string();
    let shown: usize = (0..60_000).map(|at| pages(&maze, &address(at), 1, &host)).sum();
    assert!(shown <= 30_000, "{shown}");
}

#[test]
fn only_reading_requests_with_an_identity_are_shown_a_page() {
    let (maze, host) = (maze(|_| {}), FakeHost::at(1_000));
    for (method, shown) in [("GET", true), ("HEAD", true), ("POST", false), ("get", false), ("", false)] {
        assert_eq!(maze.page(&asks(method, "/", "192.0.2.1"), &host).is_some(), shown, "{method}");
    }
    assert!(maze.page(&asks("GET", "/", ""), &host).is_none());
}

#[test]
fn a_caller_is_inside_while_it_follows_links_of_its_pages() {
    let (maze, host) = (maze(|_| {}), FakeHost::at(1_000_000));
    let inside = |path: &str, ip: &str| maze.is_inside(&asks("GET", path, ip), &host);
    assert!(!inside("/archive/a", "192.0.2.1"));
    assert_eq!(pages(&maze, "192.0.2.1", 1, &host), 1);
    assert!(
        inside("/archive/a", "192.0.2.1") && !inside("/archive", "192.0.2.1") && !inside("/archive/a", "192.0.2.2")
    );
    host.advance(2 * 3_600_000);
    assert!(!inside("/archive/a", "192.0.2.1"));
}

#[test]
fn callers_that_may_be_obedient_are_told_by_signals() {
    for (tag, spared) in [
        ("bot:verified:googlebot", true),
        ("bot:spared:gptbot", true),
        ("bot:signed", true),
        ("bot:ai:gptbot", false),
        ("bot:impersonator:googlebot", false),
        ("feed:bot:verified:", false),
    ] {
        let mut exchange = asks("GET", "/", "192.0.2.1");
        exchange.score.add(Signal {
            source: "x".into(),
            kind: "bot".into(),
            weight: 0.0,
            confidence: 1.0,
            tag: tag.into(),
            detail: String::new(),
            at: 0,
        });
        assert_eq!(may_be_obedient(&exchange), spared, "{tag}");
    }
}

#[test]
fn the_answer_is_a_page_that_no_index_keeps() {
    let (maze, host) = (maze(|_| {}), FakeHost::at(1_000));
    let refusal = maze.page(&asks("GET", "/", "192.0.2.1"), &host).unwrap().refusal("why");
    assert_eq!((refusal.status, refusal.action, refusal.hold_millis), (200, Action::Maze, 700));
    assert!(refusal.headers.contains(&("x-robots-tag".to_owned(), b"noindex, nofollow".to_vec())));
}
