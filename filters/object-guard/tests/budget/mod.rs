//! A budget that two gateways with two workers each share, with the guard as a filter of its own.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use object_guard::{EnumerationLimits, ObjectGuardStep, SurgeLimits, WalkLimits};
use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::{Static, http2_cluster, wasm_filter};
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;
use prost::Message as _;
use serde_json::{Value, json};
use snapshot::{LinkSettings, Snapshot, Step, seal};

/// It bounds a test that fails: a gateway waits for up to 30 s before it tries a lost link again.
const PATIENCE: Duration = Duration::from_secs(120);
const CLIENTS: usize = 64;
const BUDGET: u32 = 100;

/// Two gateways of one control plane.
struct Site {
    control: ControlPlane,
    gateways: [Envoy; 2],
    to: [SocketAddr; 2],
    _backend: Backend,
}

fn module() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/filters");
    let folder = std::env::var_os("PALISADE_FILTERS").map_or(own, PathBuf::from);
    folder.join("object-guard.wasm").canonicalize().unwrap_or_else(|error| panic!("{error}: run `make filters` first"))
}

fn step() -> ObjectGuardStep {
    let surge = SurgeLimits {
        factor: 5.0,
        floor: 30,
        ceiling: 100_000,
        bucket_seconds: 60,
        learning: 60,
        warmup: 10,
        weight: 0.0,
    };
    ObjectGuardStep {
        auto_detect: true,
        budget: BUDGET,
        budget_window_seconds: u32::try_from(super::far_window()).unwrap(),
        surge: Some(surge),
        walk: Some(WalkLimits { min: 64, window_seconds: 1, max_gap: 0, weight: 0.0 }),
        enumeration: Some(EnumerationLimits {
            min: 10_000,
            ratio: 1.0,
            window_seconds: 300,
            ..EnumerationLimits::default()
        }),
        max_keys: 1000,
        ..ObjectGuardStep::default()
    }
}

impl Site {
    fn start() -> Self {
        let step = Step { plugin: "object-guard".into(), config: step().encode_to_vec(), ..Step::default() };
        let link = LinkSettings { cluster: "control".into(), flush_millis: 50, max_queued: 1000 };
        let (filter, global, link) = ("object-guard".into(), vec![step], Some(link));
        let snapshot = Snapshot { filter, composite: true, global, link, ..Snapshot::default() };
        let filter = wasm_filter("object-guard", &module(), &seal(&snapshot).encode_to_vec());
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

    fn unanswered(&self) -> u64 {
        let of = |gateway: &Envoy| gateway.stats(r"palisade\.questions_unanswered$").values().sum::<u64>();
        self.gateways.iter().map(of).sum()
    }

    /// Waits until every worker of both gateways gets answers. The objects have kinds of their own.
    fn until_answered(&self) {
        let tries = AtomicUsize::new(0);
        let answered = || {
            let before = self.unanswered();
            for (envoy, to) in self.gateways.iter().zip(self.to) {
                let ask = || {
                    let object = tries.fetch_add(1, Ordering::SeqCst);
                    Request::get(format!("/warm-up-{}/{object}", object % 60)).send(to)
                };
                envoy.every_worker(ask).unwrap_or_else(|why| panic!("{why}"));
            }
            (self.unanswered() == before).then_some(())
        };
        wait_for("answers on every worker", PATIENCE, answered)
            .unwrap_or_else(|why| panic!("{why}\n{}\n{}", self.gateways[0].log_tail(20), self.control.log()));
    }

    fn status(&self, gateway: usize, object: usize) -> u16 {
        let request = Request::get(format!("/status/200/{}", object * 1_000_003));
        let answer = request.send(self.to[gateway]);
        answer.unwrap_or_else(|error| panic!("{error}\n{}", self.gateways[gateway].log_tail(40))).status
    }

    /// The distinct objects that 64 clients at once are let in with, each of which asks for so many. Every second object is asked for by
    /// two clients at both gateways.
    fn at_once(&self, each: usize) -> BTreeSet<usize> {
        let (together, admitted) = (Barrier::new(CLIENTS), Mutex::new(BTreeSet::new()));
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (together, admitted) = (&together, &admitted);
                scope.spawn(move || {
                    together.wait();
                    for at in 0..each {
                        let object = if at % 2 == 0 { client / 2 * each + at } else { (CLIENTS + client) * each + at };
                        if self.status(client % 2, object) != 429 {
                            admitted.lock().unwrap().insert(object);
                        }
                    }
                });
            }
        });
        admitted.into_inner().unwrap()
    }
}

#[test]
fn sixty_four_clients_of_two_gateways_are_let_in_with_the_budget_and_kill_9_forgets_none() {
    let mut site = Site::start();
    site.until_answered();
    let (before, budget) = (site.unanswered(), BUDGET as usize);
    let admitted = site.at_once(20);
    // What was not answered passed, and may be in the set all the same.
    let unanswered = usize::try_from(site.unanswered() - before).unwrap();
    println!("{} distinct objects were let in, {unanswered} questions had no answer", admitted.len());
    match unanswered {
        0 => assert_eq!(admitted.len(), budget),
        _ => assert!(
            (budget - unanswered.min(budget)..=budget + unanswered).contains(&admitted.len()),
            "{}",
            admitted.len()
        ),
    }

    // Without the control plane what is new passes, and the event comes once it is back.
    site.control.kill();
    wait_for("a lost link", PATIENCE, || {
        (site.status(0, 900_001) == 200 && site.status(1, 900_002) == 200).then_some(())
    })
    .unwrap();
    site.control.restart();
    site.until_answered();
    let told = |event: &Value| event["threat"]["tags"] == json!(["objects:budget_uncounted"]);
    let event = site.control.event("an event of objects that were not counted", told);
    assert_eq!(event["event"]["category"], "dependency", "{event}");

    // The control plane has forgotten nothing: at both gateways what was let in is, and what is new is not.
    for gateway in [0, 1] {
        let again = admitted.iter().filter(|object| site.status(gateway, **object) == 200).count();
        assert!(again >= budget - unanswered.min(budget) && (unanswered > 0 || again == budget), "{again}");
        assert_eq!(site.status(gateway, 900_003), 429);
    }
    for gateway in &site.gateways {
        assert!(gateway.vm_failures().is_empty(), "{:?}", gateway.vm_failures());
    }
}
