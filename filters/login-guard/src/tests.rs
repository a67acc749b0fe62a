use exchange::fake::FakeHost;
use exchange::{Chain, Flow, Headers, Request, Response, Run, Start};
use snapshot::{Snapshot, Step};

use super::*;

mod decoys;
mod extraction;
mod privacy;
mod rules;
mod simulation;

const NOW: u64 = 1_700_000_000_000;

fn limits() -> LoginLimits {
    LoginLimits {
        source_failures: 20,
        source_accounts: 10,
        account_failures: 10,
        account_sources: 5,
        takeover_accounts: 3,
        stuffing_weight: 50.0,
        spraying_weight: 70.0,
        account_attack_weight: 40.0,
        takeover_weight: 80.0,
        breached_weight: 20.0,
    }
}

/// The defaults, for `/login`.
fn step() -> LoginGuardStep {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    LoginGuardStep {
        endpoints: vec![Endpoint {
            pattern: "^/login$".into(),
            kind: EndpointKind::Login.into(),
            path: "/login".into(),
        }],
        methods: words(&["POST"]),
        username_fields: words(&[
            "username",
            "user",
            "login",
            "email",
            "user_name",
            "userName",
            "identifier",
            "account",
        ]),
        password_fields: words(&["password", "pass", "passwd", "pwd"]),
        failure_statuses: vec![401, 403],
        window_millis: 900_000,
        limits: Some(limits()),
        body_limit: 65_536,
        secret: b"a secret of the cluster".to_vec(),
        ..LoginGuardStep::default()
    }
}

fn chain(step: &LoginGuardStep) -> Chain {
    let global = vec![Step { plugin: PLUGIN.name.into(), config: step.encode_to_vec(), ..Step::default() }];
    Chain::load(&Snapshot { filter: "preset".into(), global, ..Snapshot::default() }, &[PLUGIN]).unwrap()
}

/// What a login has led to.
struct Outcome {
    /// The tags of the request, before the backend saw it.
    early: Vec<String>,
    /// Those at the end.
    tags: Vec<String>,
    score: f64,
}

fn request(path: &str, headers: &[(&str, &str)]) -> Request {
    Request { method: b"POST".to_vec(), path: path.into(), headers: Headers::new(headers), ..Request::default() }
}

/// Sends a request with a body, which is answered with a status.
fn send(chain: &Chain, host: &FakeHost, ip: &str, (request, body): (Request, &[u8]), response: Response) -> Outcome {
    let start = Start { request, route: b"", peer: ip.as_bytes(), node: &"node".into() };
    let mut run = Run::new(chain, start, host);
    let mut flow = run.request_headers(!body.is_empty(), host);
    if matches!(flow, Flow::Buffer { .. }) {
        flow = run.request_body(Body { bytes: body, complete: true }, host);
    }
    assert_eq!(flow, Flow::Continue);
    let tags = |run: &Run| run.exchange().score.tags().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let early = tags(&run);
    let _ = run.response_headers(response, false, host);
    run.finish(host);
    Outcome { early, tags: tags(&run), score: run.exchange().score.total() }
}

fn status(status: u16) -> Response {
    Response { status, headers: Headers::default(), streaming: false }
}

/// A login by a form.
fn login(chain: &Chain, host: &FakeHost, (ip, user, password): (&str, &str, &str), ok: bool) -> Outcome {
    let body = format!("username={user}&password={password}");
    let form = request("/login", &[("content-type", "application/x-www-form-urlencoded")]);
    send(chain, host, ip, (form, body.as_bytes()), status(if ok { 302 } else { 401 }))
}

fn events(host: &FakeHost) -> Vec<String> {
    host.events_json().iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}
