//! What one long body costs where its beginning is inspected and the rest is scanned (`inspect_prefix`): instructions of the
//! shipped module, not time.

use std::io::Write;

use base64::Engine;
use flate2::Compression;
use flate2::write::GzEncoder;
use palisade_bench::waf::rules;
use proxy_host::traffic::{Exchange, Outcome, Request};
use proxy_host::{Module, Node, Options, Vm};
use waf::WafStep;

use crate::kit;

/// Restricted headers: an operator who takes compressed bodies allows theirs.
const ALLOWED: &str = "SecRuleRemoveById 920450-920451\n";
const MIB: usize = 1 << 20;
/// The millions of instructions that one request of a MiB may take: 250 ms.
const LARGE: u64 = 3750;

fn prefix(step: WafStep) -> WafStep {
    WafStep {
        reject_oversize: false,
        input_body_limit: 1 << 20,
        input_files_limit: 25 << 19,
        decompressed_input_body_limit: 64 << 20,
        ..step
    }
}

struct Metered(Vm);

impl Metered {
    fn new(paranoia: u8, change: impl Fn(WafStep) -> WafStep) -> Self {
        let snapshot = rules::snapshot_with(&kit::crs(), paranoia, ALLOWED, |step| change(prefix(step))).unwrap();
        let module = Module::metered(&kit::filter("waf")).unwrap();
        let options = Options { buffer_limit: 16 << 20, ..Options::default() };
        let mut vm = Vm::with_options(&module, &snapshot, &Node::new("long", kit::NOW_MILLIS, 7), options).unwrap();
        vm.set_fuel(u64::MAX);
        Self(vm)
    }

    /// The outcome, and how many millions of instructions it took.
    fn post(&mut self, body: &[u8], encoding: Option<&str>) -> (Outcome, u64) {
        let mut request = Request { body: body.to_vec(), ..Request::get("/upload") };
        request
            .headers
            .iter_mut()
            .filter(|(name, _)| name == b":method")
            .for_each(|(_, method)| *method = b"POST".into());
        let header = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        request.headers.extend([
            header("content-type", "application/json"),
            header("content-length", &body.len().to_string()),
            header("user-agent", "test"),
            header("accept", "*/*"),
        ]);
        request.headers.extend(encoding.map(|encoding| header("content-encoding", encoding)));
        let before = self.0.fuel();
        let began = std::time::Instant::now();
        let outcome = self.0.exchange(&Exchange { request, ..Exchange::default() });
        assert_eq!(outcome.fault, None);
        let cost = (before - self.0.fuel()) / 1_000_000;
        println!("{} bytes: {} with {cost} million instructions, {:?}", body.len(), outcome.status, began.elapsed());
        (outcome, cost)
    }
}

/// JSON of so many bytes that the prefilter finds suspicious from the first to the last, and that no rule refuses. It is
/// compressed to a little more than the hundredth part.
fn suspicious(length: usize) -> Vec<u8> {
    let (mut body, mut seed) = (b"{\"p\":\"".to_vec(), 7u64);
    while body.len() < length {
        body.extend(b"<b>x</b> <i> ".repeat(290));
        for _ in 0..6 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bytes = (seed >> 16).to_be_bytes();
            body.extend(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&bytes[2..]).as_bytes());
        }
    }
    body.extend(b"\"}");
    body
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// What the trail says of the limits of a request, and whether it is one event.
fn left_out(outcome: &Outcome) -> Vec<String> {
    let events = outcome.events.iter().filter(|event| event["@type"] == "SvcWafTrailEvent");
    let limits = events.flat_map(|event| event["uninspected"].as_array().unwrap());
    limits.map(|limit| limit["limit"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_rest_of_a_compressed_body_takes_no_more_than_a_body_that_is_inspected() {
    let most = 2 * LARGE;
    let mut vm = Metered::new(1, |step| step);
    vm.post(b"{}", None);
    // Over the limit with files, and below it.
    for (decoded, status, limit) in
        [(60 * MIB, 413, "bytes of the decoded body"), (12 * MIB, 503, "units of work for the rest of a body")]
    {
        let (outcome, cost) = vm.post(&gzip(&suspicious(decoded)), Some("gzip"));
        assert_eq!(outcome.status, status);
        assert!(left_out(&outcome).iter().any(|found| found == limit), "{:?}", outcome.events);
        assert!(cost < most, "{cost} of {most} million instructions");
    }
    // Where nothing is denied it passes, with the same limits in the event.
    let mut watching = Metered::new(1, |step| WafStep { block: false, ..step });
    watching.post(b"{}", None);
    for (decoded, limit) in
        [(60 * MIB, "bytes of the decoded body"), (12 * MIB, "units of work for the rest of a body")]
    {
        let (outcome, cost) = watching.post(&gzip(&suspicious(decoded)), Some("gzip"));
        assert_eq!(outcome.status, 200);
        assert!(left_out(&outcome).iter().any(|found| found == limit), "{:?}", outcome.events);
        assert!(cost < most, "{cost} of {most} million instructions");
    }
}

#[test]
fn a_long_body_is_judged_to_its_end_in_proportion_to_its_length() {
    let mut vm = Metered::new(1, |step| step);
    vm.post(b"{}", None);
    let harmless = suspicious(13 * MIB);
    let (outcome, cost) = vm.post(&harmless, None);
    assert_eq!((outcome.status, outcome.reached_backend), (200, true));
    let most = 13 * LARGE;
    assert!(cost < most, "{cost} of {most} million instructions");
    // Behind the limit with files, on its way to the backend.
    let attack = [harmless.as_slice(), b"{\"q\":\"1' UNION SELECT password FROM users-- -\"}"].concat();
    assert_eq!(vm.post(&attack, None).0.status, 403);
    // Compressed, all of it is judged in one call: there is work for as much as the limit without files.
    let compressed = gzip(&suspicious(3 * MIB / 2));
    assert_eq!(vm.post(&compressed, Some("gzip")).0.status, 200);
}
