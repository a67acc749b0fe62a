//! What nodes count together (`probe-count`), in two real gateways with two workers each, over a real control plane.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::{Static, http2_cluster, wasm_filter};
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::h2;
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use prost::Message as _;
use serde_json::{Value, json};
use snapshot::{LinkSettings, Snapshot, Step, seal};

use crate::kit::own;

/// It bounds a test that fails: a gateway waits for up to 30 s before it tries a lost link again.
const PATIENCE: Duration = Duration::from_secs(120);

/// Two gateways of one control plane.
struct Site {
    control: ControlPlane,
    gateways: [Envoy; 2],
    to: [SocketAddr; 2],
    _backend: Backend,
}

fn module() -> PathBuf {
    let folder = std::env::var_os("PALISADE_FILTERS").map_or_else(|| own("../../target/filters"), PathBuf::from);
    folder.join("probe.wasm").canonicalize().unwrap()
}

impl Site {
    fn start(config: &Value) -> Self {
        let step = Step { plugin: "probe-count".into(), config: config.to_string().into_bytes(), ..Step::default() };
        let link = LinkSettings { cluster: "control".into(), flush_millis: 50, max_queued: 1000 };
        let (filter, global, link) = ("probe".into(), vec![step], Some(link));
        let snapshot = Snapshot { filter, composite: true, global, link, ..Snapshot::default() };
        let filter = wasm_filter("probe", &module(), &seal(&snapshot).encode_to_vec());
        let (control, backend) = (ControlPlane::start(), Backend::start());
        let gateways = ["gateway-1", "gateway-2"].map(|node| {
            let gateway = Static::to(backend.address()).filter(filter.clone());
            let gateway = gateway.cluster(http2_cluster("control", control.xds())).render();
            let mut gateway: Value = serde_json::from_str(&gateway).unwrap();
            gateway["node"] = json!({ "id": node, "cluster": "test" });
            Envoy::start_with(&gateway.to_string(), 2, None).unwrap_or_else(|why| panic!("{why}"))
        });
        let to = gateways.each_ref().map(|envoy| envoy.listener(Static::LISTENER));
        Self { control, gateways, to, _backend: backend }
    }

    /// One attempt: the status, and what the gateway has counted, its own and others'.
    fn attempt(&self, gateway: usize, key: &str) -> (u16, u32, u32) {
        let answer = Request::get(format!("/?{key}")).send(self.to[gateway]);
        let answer = answer.unwrap_or_else(|error| panic!("{error}\n{}", self.gateways[gateway].log_tail(40)));
        let text = answer.text();
        let (own, others) = text.split_once('+').unwrap_or_else(|| panic!("{} {text}", answer.status));
        (answer.status, own.parse().unwrap(), others.parse().unwrap())
    }

    /// Further attempts, until the gateway knows of all of the other's.
    fn until_agreed(&self, gateway: usize, key: &str, sent: &mut [u32; 2]) {
        let agreed = || {
            sent[gateway] += 1;
            let (_, own, others) = self.attempt(gateway, key);
            // None is counted twice. For the second in which a gateway gets the secret of all, its workers may miss some of each other.
            assert!(own <= sent[gateway] && others <= sent[1 - gateway], "{own}+{others} of {sent:?}");
            (own == sent[gateway] && others == sent[1 - gateway]).then_some(())
        };
        wait_for("the attempts of the other gateway", PATIENCE, agreed).unwrap_or_else(|why| {
            panic!("{why}: {sent:?}\n{}\n{}", self.gateways[gateway].log_tail(20), self.control.log())
        });
    }

    /// Waits until every worker of both gateways gets answers.
    fn until_answered(&self) {
        for (envoy, to) in self.gateways.iter().zip(self.to) {
            let mut tries = 0;
            let answered = || {
                tries += 1;
                let unanswered = || envoy.stats(r"palisade\.questions_unanswered$").values().sum::<u64>();
                let before = unanswered();
                let request = Request::get(format!("/?warm-up-{tries}")).header("member", "one");
                envoy.every_worker(|| request.send(to)).unwrap_or_else(|why| panic!("{why}"));
                (unanswered() == before).then_some(())
            };
            wait_for("answers on every worker", PATIENCE, answered).unwrap();
        }
    }

    fn is_well(&self) {
        for gateway in &self.gateways {
            assert!(gateway.vm_failures().is_empty(), "{:?}", gateway.vm_failures());
        }
    }
}

#[test]
fn attempts_of_one_per_gateway_are_seen_by_both_and_add_up_after_kill_9() {
    let mut site = Site::start(&json!({ "form": "window", "limit": 60_000, "show": true }));
    let mut sent = [0, 0];
    for gateway in [0, 1] {
        sent[gateway] += 1;
        assert_eq!(site.attempt(gateway, "alice").1, 1);
    }
    site.until_agreed(0, "alice", &mut sent);
    site.until_agreed(1, "alice", &mut sent);
    site.until_agreed(0, "alice", &mut sent);
    // Without the control plane each goes on alone, with what it knew.
    site.control.kill();
    let known = sent[1];
    for _ in 0..5 {
        (0..2).for_each(|gateway| sent[gateway] += 1);
        assert_eq!(site.attempt(0, "alice"), (403, sent[0], known));
        assert_eq!(site.attempt(1, "alice").1, sent[1]);
    }
    site.control.restart();
    // The process that knew the sums is gone: the gateways have sent theirs again.
    site.until_agreed(0, "alice", &mut sent);
    site.until_agreed(1, "alice", &mut sent);
    site.is_well();
}

#[test]
fn no_attempt_is_lost_where_the_control_plane_is_killed_in_the_middle() {
    let mut site = Site::start(&json!({ "form": "window", "limit": 60_000, "show": true }));
    let (over, counted) = (AtomicBool::new(false), [AtomicU32::new(0), AtomicU32::new(0)]);
    let to = site.to;
    let blows = |site: &mut Site| {
        for _ in 0..3 {
            let before = counted.each_ref().map(|count| count.load(Ordering::SeqCst));
            let enough = || {
                let now = counted.each_ref().map(|count| count.load(Ordering::SeqCst));
                (now[0] >= before[0] + 100 && now[1] >= before[1] + 100).then_some(())
            };
            wait_for("attempts", PATIENCE, enough).unwrap();
            site.control.kill();
            site.control.restart();
        }
    };
    thread::scope(|scope| {
        for gateway in [0, 1] {
            let (over, counted) = (&over, &counted[gateway]);
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    assert_eq!(Request::get("/?alice").send(to[gateway]).unwrap().status, 403);
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        blows(&mut site);
        over.store(true, Ordering::SeqCst);
    });
    let mut sent = counted.map(AtomicU32::into_inner);
    println!("{sent:?} attempts at two gateways, with three kills");
    site.until_agreed(0, "alice", &mut sent);
    site.until_agreed(1, "alice", &mut sent);
    site.is_well();
}

/// Sends requests to both gateways in turn, all at once: statuses, in their order.
fn at_once(site: &Site, requests: Vec<h2::Request>) -> Vec<u16> {
    // As many streams of one connection as a gateway takes by default.
    let parts: Vec<(usize, &[h2::Request])> =
        requests.chunks(100).enumerate().map(|(number, part)| (number % 2, part)).collect();
    thread::scope(|scope| {
        let running: Vec<_> = parts
            .into_iter()
            .map(|(gateway, part)| scope.spawn(move || h2::exchange(site.to[gateway], part).unwrap()))
            .collect();
        let answers = running.into_iter().flat_map(|part| part.join().unwrap());
        answers.map(|answer| answer.unwrap().status).collect()
    })
}

#[test]
fn a_thousand_takes_at_once_do_not_overdraw_a_budget_and_kill_9_forgets_none() {
    const LIMIT: usize = 300;
    let mut site = Site::start(&json!({ "form": "budget", "limit": LIMIT, "ask": true }));
    site.until_answered();
    let takes = || (0..1000).map(|_| h2::Request::get("/?consumer")).collect::<Vec<_>>();
    let statuses = at_once(&site, takes());
    let of = |status: u16| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((of(200), of(429)), (LIMIT, 1000 - LIMIT));
    site.control.kill();
    site.control.restart();
    site.until_answered();
    assert_eq!(at_once(&site, (0..200).map(|_| h2::Request::get("/?consumer")).collect()), vec![429; 200]);
    site.is_well();
}

#[test]
fn a_set_has_at_most_its_cap_of_distinct_members() {
    const CAP: usize = 20;
    let site = Site::start(&json!({ "form": "set", "limit": CAP, "ask": true }));
    site.until_answered();
    let add = |member: usize| {
        let mut request = h2::Request::get("/?consumer");
        request.headers.push(("member".into(), format!("object-{member}").into_bytes()));
        request
    };
    // Each of 200 members is added at both gateways at once.
    let requests: Vec<_> = (0..4).flat_map(|part| (0..100).map(move |at| part / 2 * 100 + at)).map(add).collect();
    let statuses = at_once(&site, requests);
    let members = |gateway: usize| -> BTreeSet<usize> {
        let of = statuses.iter().enumerate().filter(|(at, status)| at / 100 % 2 == gateway && **status == 200);
        of.map(|(at, _)| at / 200 * 100 + at % 100).collect()
    };
    let all: BTreeSet<usize> = members(0).union(&members(1)).copied().collect();
    assert_eq!(all.len(), CAP);
    // Its members are known at each gateway, and no other is taken.
    for to in site.to {
        let known: Vec<_> = all.iter().copied().chain([1000]).map(add).collect();
        let again = h2::exchange(to, &known).unwrap().into_iter().map(|answer| answer.unwrap().status);
        assert_eq!(again.collect::<Vec<_>>(), [vec![200; CAP], vec![429]].concat());
    }
    site.is_well();
}

#[test]
fn from_a_total_on_a_gateway_knows_of_what_it_has_not_counted() {
    let site = Site::start(&json!({ "form": "window", "limit": 60_000, "show": true, "everywhere_from": 5 }));
    site.attempt(1, "introduction");
    let mut tries = 0;
    let knew = || {
        tries += 1;
        let key = format!("key-{tries}");
        for _ in 0..5 {
            site.attempt(0, &key);
        }
        // It has to have come before the gateway's own first attempt: the longer the pause, the surer.
        #[allow(clippy::disallowed_methods, reason = "a gateway is waited for, in no filter")]
        thread::sleep(Duration::from_millis(200 * tries));
        let (_, own, others) = site.attempt(1, &key);
        assert_eq!(own, 1);
        (others == 5).then_some(())
    };
    wait_for("a key that the other gateway has counted", PATIENCE, knew).unwrap();
    site.is_well();
}
