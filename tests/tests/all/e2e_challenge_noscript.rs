//! Challenges without JavaScript: a client that keeps cookies and follows what pages and answers say, and a real browser
//! whose scripts are switched off.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use palisade_tests::bootstrap::shipped;
use palisade_tests::browser::Browser;
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{
    Gateway, WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config,
};
use palisade_tests::http::{Request, Response};
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);
/// What a match weighs, and the tier below asks for.
const SUSPECT: &str = r#"SecRule ARGS:probe "@streq 1" "id:10001,phase:1,pass,log,msg:'suspect'""#;
const PLACE: &str = "/?probe=1";
/// The wait of whoever asks for it, in seconds: a score of 20 between a floor of 2 and a ceiling of 4.
const SLOT_SECONDS: u32 = 4;

/// A gateway that challenges whoever asks for `?probe=1`, with short waits.
fn gateway(filters: Value) -> Gateway {
    let mut gateway = Gateway::start(|control, backend| {
        control.configure(&json!({"gateway": {"filters": filters}}));
        let provider = json!({"id": "work", "wait_floor_seconds": 2, "wait_ceiling_seconds": SLOT_SECONDS});
        control.create("challenge-providers", &provider);
        control.create("waf-configs", &waf_config("demo", json!({"rules": [SUSPECT]})));
        let tiers =
            json!([{"min_score": 20, "action": "challenge", "status": 429}, {"min_score": 90, "action": "deny"}]);
        let policy = threat_policy("demo", json!({"tiers": tiers, "challenge_provider": "work"}));
        control.create("threat-policies", &policy);
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&Request::get("/"), 200, PATIENCE);
    gateway
}

/// A browser of the simplest kind.
#[derive(Default, Clone)]
struct Client {
    cookies: BTreeMap<String, String>,
}

impl Client {
    fn request(&self, path: &str) -> Request {
        let jar: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = Request::get(path).header("sec-fetch-mode", "navigate");
        if jar.is_empty() { request } else { request.header("cookie", jar.join("; ")) }
    }

    fn get(&mut self, path: &str, gateway: &Gateway) -> Response {
        let answer = gateway.send(&self.request(path));
        for (_, line) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let line = String::from_utf8(line.clone()).unwrap();
            assert!(line.contains("; Path=/; ") && line.contains("; HttpOnly; SameSite=Lax"), "{line}");
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            match line.contains("Max-Age=0;") {
                true => drop(self.cookies.remove(name)),
                false => drop(self.cookies.insert(name.to_owned(), value.to_owned())),
            }
        }
        answer
    }

    /// Loads a page again and again as the answers say; the answer that says nothing more, and what came before it.
    fn follow(&mut self, path: &str, gateway: &Gateway) -> (Response, Vec<u16>) {
        let mut statuses = Vec::new();
        for _ in 0..10 {
            let answer = self.get(path, gateway);
            statuses.push(answer.status);
            if answer.status == 303 {
                assert_eq!(answer.header("cache-control").as_deref(), Some("no-store"));
                assert_eq!(answer.header("location").as_deref(), Some(path));
            } else if let Some(seconds) = refresh(&answer) {
                // What the page asks for; to wait longer makes no difference.
                thread::sleep(Duration::from_secs(seconds));
            } else {
                return (answer, statuses);
            }
        }
        panic!("it goes in circles: {statuses:?}");
    }

    fn ticket(&self) -> Option<&String> {
        self.cookies.get("svc-clearance-wait")
    }
}

/// The seconds after which a page loads itself again.
fn refresh(answer: &Response) -> Option<u64> {
    let page = answer.text();
    let seconds = page.split("<noscript><meta http-equiv=refresh content=").nth(1)?.split('>').next()?.to_owned();
    Some(seconds.parse().expect("a number of seconds, and no URL"))
}

#[test]
fn whoever_waits_goes_on_in_one_filter() {
    waits_and_goes_on(json!(["preset"]));
}

#[test]
fn whoever_waits_goes_on_in_separate_filters() {
    waits_and_goes_on(json!(["threat-gate", "waf", "threat-response"]));
}

fn waits_and_goes_on(filters: Value) {
    let gateway = gateway(filters);
    let mut client = Client::default();
    let page = client.get(PLACE, &gateway);
    assert_eq!((page.status, refresh(&page).is_some()), (429, true), "{}", page.text());
    assert!(page.body.len() < 12 << 10);
    let policy = page.header("content-security-policy").unwrap();
    assert_eq!(policy.matches("'sha256-").count(), 3, "a script and two styles: {policy}");
    let ticket = client.ticket().expect("a ticket").clone();
    let seen = gateway.backend.requests();
    let (answer, statuses) = client.follow(PLACE, &gateway);
    assert_eq!((answer.status, answer.text().contains("Demo shop")), (200, true), "{}", answer.text());
    assert_eq!(statuses[statuses.len() - 2..], [303, 200]);
    assert_eq!(gateway.backend.requests(), seen + 1, "it was sent on before the backend saw anything");
    assert_eq!(client.ticket(), None, "it was taken back");
    let cleared = gateway.statuses_of_all_workers(&client.request(PLACE));
    assert!(cleared.iter().all(|status| *status == 200), "{cleared:?}");

    // The ticket again, on every worker: it was spent.
    let copy = Client { cookies: [("svc-clearance-wait".to_owned(), ticket)].into() };
    let again = gateway.statuses_of_all_workers(&copy.request(PLACE));
    assert!(again.iter().all(|status| *status == 429), "{again:?}");
    // A fresh one of somebody else's.
    let mut client = Client::default();
    let seconds = refresh(&client.get(PLACE, &gateway)).unwrap();
    thread::sleep(Duration::from_secs(seconds));
    let elsewhere = client.request(PLACE).send_from(Ipv4Addr::new(127, 0, 9, 1), gateway.address).unwrap();
    assert_eq!(elsewhere.status, 429, "another network");
    assert_eq!(gateway.status(&client.request(PLACE).header("sec-fetch-dest", "document")), 303);

    // A path that a reference could take for another host's. The shipped gateways merge slashes before filters see them.
    let mut client = Client::default();
    let seconds = refresh(&client.get("//evil.test/a?probe=1", &gateway)).unwrap();
    thread::sleep(Duration::from_secs(seconds));
    let answer = client.get("//evil.test/a?probe=1", &gateway);
    assert_eq!((answer.status, answer.header("location").as_deref()), (303, Some("/evil.test/a?probe=1")));
    assert_eq!(client.follow("/evil.test/a?probe=1", &gateway).1, [200]);

    let over = gateway.control.event("a wait that is over", |event| {
        event["message"].as_str().is_some_and(|message| message.starts_with("a wait is over"))
    });
    assert_eq!((&over["event"]["category"], &over["event"]["outcome"]), (&json!("challenge"), &json!("observed")));
    let told = gateway.control.events();
    assert!(!told.iter().any(|event| event["event"]["category"] == "dependency"), "the control plane was there");

    // Without it the page says what to do.
    gateway.control.patch("challenge-providers", "work", &json!({"without_javascript": false}));
    wait_for("the page of before", PATIENCE, || {
        let page = Client::default().get(PLACE, &gateway);
        (page.status == 429 && refresh(&page).is_none() && page.header("set-cookie").is_none()).then_some(())
    })
    .unwrap();
    let failures = gateway.envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
}

#[test]
fn of_many_who_wait_in_one_network_one_goes_on_in_each_slot_on_two_nodes() {
    let mut gateway = gateway(json!(["preset"]));
    // The kernel divides connections between the two: both listen on the one port.
    let ports = [(WRITTEN_XDS_PORT, gateway.control.xds().port()), (WRITTEN_ADMIN_PORT, 0)];
    let other = Envoy::start(&shipped("xds.yaml", &ports));
    let requests = |envoy: &Envoy| envoy.stats("^http.*downstream_rq_2xx").values().sum::<u64>();
    wait_for("requests on both nodes", PATIENCE, || {
        let _ = Request::get("/").send(gateway.address);
        (requests(&other) > 0).then_some(())
    })
    .unwrap_or_else(|why| panic!("{why}\n{}", other.log_tail(40)));
    let mut clients = vec![Client::default(); 100];
    let mut slots = BTreeSet::new();
    let mut longest = 0;
    for client in &mut clients {
        longest = longest.max(refresh(&client.get(PLACE, &gateway)).unwrap());
        let payload = client.ticket().unwrap().split('.').next().unwrap();
        let payload: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
        slots.insert(payload["slot"].as_str().unwrap().to_owned());
    }
    thread::sleep(Duration::from_secs(longest));
    let sent_on = |envoy: &Envoy| envoy.stats("^http.*downstream_rq_4xx").values().sum::<u64>();
    let before = (sent_on(&gateway.envoy), sent_on(&other));
    let barrier = Barrier::new(clients.len());
    let statuses: Vec<u16> = thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter()
            .map(|client| {
                scope.spawn(|| {
                    barrier.wait();
                    client.request(PLACE).send(gateway.address).map_or(0, |answer| answer.status)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let count = |status| statuses.iter().filter(|known| **known == status).count();
    println!("{} slots: {} sent on, {} asked to wait", slots.len(), count(303), count(429));
    assert_eq!((count(303), count(429)), (slots.len(), clients.len() - slots.len()), "{statuses:?}");
    assert!(slots.len() < clients.len() / 2, "too few of them met: {}", slots.len());
    let after = (sent_on(&gateway.envoy), sent_on(&other));
    assert!(after.0 > before.0 && after.1 > before.1, "one node had all of them");
    // The next one of the network gets through in the end.
    assert_eq!(Client::default().follow(PLACE, &gateway).0.status, 200);
    assert!(gateway.envoy.lives());
}

#[test]
fn without_its_control_plane_a_node_lets_in_whom_it_knows_of() {
    let mut gateway = gateway(json!(["preset"]));
    let mut client = Client::default();
    let seconds = refresh(&client.get(PLACE, &gateway)).unwrap();
    let copy = client.clone();
    thread::sleep(Duration::from_secs(seconds));
    gateway.control.kill();
    let (answer, statuses) = client.follow(PLACE, &gateway);
    assert_eq!((answer.status, statuses), (200, vec![303, 200]));
    assert_eq!(gateway.status(&copy.request(PLACE)), 429, "this node knows that it was spent");
    gateway.control.restart();
    // A node that found nobody waits up to half a minute until it looks again.
    let event = wait_for("an event of a dependency", 2 * PATIENCE, || {
        // That the link was lost is an event of its own.
        let asked = |event: &serde_json::Value| event["event"]["module"] != "node-link";
        gateway.control.events().into_iter().find(|event| event["event"]["category"] == "dependency" && asked(event))
    })
    .unwrap();
    assert!(event["message"].as_str().unwrap().contains("did not say whether a wait was spent"), "{event}");
}

/// A real browser: `PALISADE_CHROMIUM`, or `chromium` where there is one.
#[test]
fn a_browser_without_scripts_gets_to_the_page_behind() {
    let Some(program) = Browser::program() else {
        println!("there is no chromium: nothing was tested");
        return;
    };
    let gateway = gateway(json!(["preset"]));
    let browser = Browser::start(&program, &["--blink-settings=scriptEnabled=false"]).unwrap();
    // Proof that scripts are off: one of its own would have named the page.
    let script = "data:text/html,<title>off</title><script>document.title='on'</script>";
    browser.open(script).unwrap();
    let title = |wanted: &str| browser.tabs().unwrap().into_iter().find(|tab| tab.title == wanted);
    wait_for("a page without scripts", PATIENCE, || title("off")).unwrap();
    assert_eq!(title("on"), None);
    let url = format!("http://{}{PLACE}&q=garden%20chairs", gateway.address);
    browser.open(&url).unwrap();
    let asked = wait_for("the page that asks to wait", PATIENCE, || title("One moment, please"));
    assert_eq!(asked.unwrap_or_else(|why| panic!("{why}\n{}", browser.log_tail(40))).url, url);
    let shown = wait_for("the page asked for", PATIENCE, || title("Demo shop"));
    let shown = shown.unwrap_or_else(|why| panic!("{why}\n{:?}\n{}", browser.tabs(), browser.log_tail(40)));
    assert_eq!(shown.url, url, "it stays on the URL");
    let passed = gateway.control.event("a wait that is over", |event| {
        event["message"].as_str().is_some_and(|message| message.starts_with("a wait is over"))
    });
    assert_eq!(passed["http"]["method"], "GET");
}
