//! robots.txt and llms.txt in a real gateway.

use std::time::{Duration, Instant};

use palisade_tests::gateway::{Gateway, route, threat_policy};
use palisade_tests::http::{Connection, Request};
use palisade_tests::process::wait_for;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(30);
const SEO: &str = "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)";

fn asks(method: &str, path: &str, user_agent: &str) -> Request {
    Request::new(method, path).header("x-forwarded-for", "198.51.100.9").header("user-agent", user_agent)
}

#[test]
fn texts_of_the_policy_are_served_and_bots_that_disobey_are_noticed() {
    // As long as the policy may have it, and longer than a buffer of the gateway.
    let llms = format!("# Site\n{}", "a line of it\n".repeat(80_000));
    let mut gateway = Gateway::start(|control, backend| {
        let maze = json!({ "path": "/deep/", "pages_per_caller": 3, "delay_millis": 300 });
        let security = json!({ "ledger": { "enabled": false }, "maze": maze });
        control.configure(&json!({ "identity": { "trusted_hops": 1 }, "security": security }));
        let tiers = json!([
            { "min_score": 20, "action": "deny", "status": 418 }, { "min_score": 60, "action": "maze", "status": 410 },
        ]);
        control.create("threat-policies", &threat_policy("demo", json!({ "tiers": tiers })));
        let rules = json!([
            { "target": "name:gptbot", "action": "deny", "weight": 7 }, { "target": "name:ccbot", "action": "maze" },
            { "target": "name:dotbot", "action": "monitor", "weight": 70 },
        ]);
        control.create("bot-policies", &json!({
            "id": "bots", "rules": rules, "deny_status": 451, "serve_robots_txt": true, "serve_llms_txt": true,
            "llms_txt": llms, "robots_extra": "Disallow: /private", "robots_licenses": ["https://a.example/rsl.xml"],
            "verify_known_bots": false,
        }));
        let plugins = json!([{ "plugin": "SecuritySuitePreset", "config": { "threat_policy": "demo" } }]);
        control.create("routes", &route("demo", backend, plugins));
    });
    gateway.until(&asks("GET", "/", "x (GPTBot/1.2)"), 451, PATIENCE);
    assert_eq!(gateway.status(&asks("GET", "/private/x", SEO)), 200, "it has not read robots.txt");

    let served = gateway.send(&asks("GET", "/robots.txt", "x (GPTBot/1.2)"));
    let expected = "# Generated from the bot policy of this site.\nLicense: https://a.example/rsl.xml\n\nUser-agent: gptbot\n\
                    Disallow: /\n\nUser-agent: ccbot\nDisallow: /\n\nUser-agent: dotbot\nDisallow: /\n\nUser-agent: *\nDisallow:\n\nDisallow: /private\n";
    assert_eq!((served.status, served.text().as_str()), (200, expected));
    assert_eq!(served.header("content-type").as_deref(), Some("text/plain; charset=utf-8"));
    let mut connection = Connection::open(gateway.address).unwrap();
    connection.set_patience(PATIENCE).unwrap();
    let head = connection.exchange(&asks("HEAD", "/robots.txt", "curl/8")).unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, Some(expected.len().to_string())));
    let text = connection.exchange(&asks("GET", "/llms.txt", "curl/8")).unwrap();
    assert!(text.status == 200 && text.text() == llms, "{} {}", text.status, text.body.len());
    assert_eq!(connection.exchange(&asks("POST", "/robots.txt", "curl/8")).unwrap().status, 200, "of the backend");

    // Bots without a signature are one class for each address: another address has read nothing.
    let elsewhere = Request::new("GET", "/private/x").header("x-forwarded-for", "198.51.100.10");
    assert_eq!(gateway.status(&elsewhere.header("user-agent", "python-requests/2")), 200);
    // On all workers alike: the one that served it is not the one that takes the next request.
    assert_eq!(gateway.status(&asks("GET", "/robots.txt", SEO)), 200);
    // A worker that has served it before its first link with the control plane counts it for the others once that is there.
    wait_for("the memory of the node", PATIENCE, || {
        let statuses = gateway.statuses_of_all_workers(&asks("GET", "/private/x", SEO));
        statuses.iter().all(|status| *status == 418).then_some(())
    })
    .unwrap();
    assert_eq!(gateway.status(&asks("GET", "/public", SEO)), 200);
    let event = gateway.control.event("the disobedient bot", |event| {
        event["http"]["response"]["status_code"] == 418 || event["event"]["module"] == "threat-response"
    });
    assert_eq!(event["threat"]["tags"][0], "bot:disobeys:ahrefsbot", "{event}");
    let served = gateway.control.events().into_iter().filter(|event| event["url"]["path"] == "/robots.txt");
    assert_eq!(served.count(), 0, "what is served makes no event");
    leads_into_the_maze(&mut gateway);
    assert!(gateway.envoy.vm_failures().is_empty());
}

/// A bot under the action `maze`, and one whose score reaches a tier with it: three pages each, then the refusal.
#[allow(clippy::disallowed_methods, reason = "a real gateway holds the answer back")]
fn leads_into_the_maze(gateway: &mut Gateway) {
    for (agent, address, module, refused) in [
        ("x (CCBot/2.0)", "198.51.100.20", "bot-guard", 451),
        ("x (DotBot/1.2)", "198.51.100.21", "threat-response", 410),
    ] {
        let asks = |path: &str| Request::get(path).header("x-forwarded-for", address).header("user-agent", agent);
        let (mut path, asked) = ("/products?id=1".to_owned(), Instant::now());
        for _ in 0..3 {
            let page = gateway.send(&asks(&path));
            assert_eq!((page.status, page.header("x-robots-tag").as_deref()), (200, Some("noindex, nofollow")));
            let text = page.text();
            let link = text.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
            path = link.unwrap_or_default();
            assert!(path.starts_with("/deep/") && !text.contains("products"), "{text}");
        }
        assert!(asked.elapsed() >= Duration::from_millis(900), "each page is held back");
        assert_eq!(gateway.status(&asks(&path)), refused, "{agent}");
        let event = gateway.control.event("a page of the maze", |event| {
            event["event"]["action"] == "maze" && event["event"]["module"] == module
        });
        let decision = (&event["event"]["outcome"], &event["decision"]["enforced"], &event["decision"]["held_ms"]);
        assert_eq!(decision, (&json!("blocked"), &json!(true), &json!(300)), "{event}");
    }
    assert_eq!(gateway.status(&asks("POST", "/x", "x (DotBot/1.2)")), 410, "only what reads is shown a page");
}
