//! Tokens of widgets, verified with a vendor of the tests' own.

use crate::xds_support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::entities_support::Api;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use fabric::challenges::Verifier;
use outbound::Outbound;
use serde_json::{Value, json};
use snapshot::{AnswerWord, VerifyToken};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// What the verifier takes the time for.
static NOW: AtomicU64 = AtomicU64::new(1_900_000_000_000);

fn clock() -> u64 {
    NOW.load(Ordering::Relaxed)
}

/// A vendor that answers every call with what its script says at that time.
#[derive(Clone)]
struct Vendor {
    script: Arc<Mutex<(u16, String)>>,
    calls: Arc<Mutex<Vec<(HeaderMap, String)>>>,
    /// Each call takes one of these before it is answered.
    permits: Arc<Semaphore>,
    address: SocketAddr,
}

impl Vendor {
    async fn start() -> Vendor {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let vendor = Vendor {
            script: Arc::new(Mutex::new((200, r#"{"success":true}"#.to_owned()))),
            calls: Arc::default(),
            permits: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            address: listener.local_addr().unwrap(),
        };
        let router = Router::new().fallback(answer).with_state(vendor.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        vendor
    }

    fn says(&self, status: u16, body: &str) {
        *self.script.lock().unwrap() = (status, body.to_owned());
    }

    fn calls(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

async fn answer(State(vendor): State<Vendor>, headers: HeaderMap, body: String) -> Response {
    vendor.calls.lock().unwrap().push((headers, body));
    vendor.permits.acquire().await.unwrap().forget();
    let (status, body) = vendor.script.lock().unwrap().clone();
    (StatusCode::from_u16(status).unwrap(), [("location", "/elsewhere")], body).into_response()
}

async fn create(api: &Api, verify_url: &str, more: Value) {
    let mut provider = json!({
        "id": "w", "kind": "vendor", "site_key": "public", "secret_key": "hunter2", "response_field": "f",
        "widget_script_url": "https://vendor.example/api.js", "widget_html": "<div></div>", "verify_url": verify_url,
    });
    provider.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = api.call("POST", "/challenge-providers", Some(provider)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
}

fn verifier(api: &Api, allowed: &str) -> Arc<Verifier> {
    let outbound = Outbound::new(allowed.parse().into_iter().collect());
    let (store, entities) = (Arc::clone(&api.state.store), api.state.entities.clone());
    Arc::new(Verifier::new(store, entities, outbound, api.state.events.clone(), clock))
}

/// An API with a provider whose vendor is `vendor`.
async fn with(vendor: &Vendor, more: Value) -> (Api, Arc<Verifier>) {
    let api = Api::new().await;
    create(&api, &format!("http://{}/siteverify", vendor.address), more).await;
    let verifier = verifier(&api, "127.0.0.0/8");
    (api, verifier)
}

fn token(text: &str) -> VerifyToken {
    VerifyToken { provider: "w".into(), token: text.into(), ip: "192.0.2.7".into(), host: "shop.example".into() }
}

/// What the events say of the vendor's health.
async fn told(api: &Api) -> Vec<String> {
    let events = api.events().await;
    let of_vendor = events.iter().filter(|event| event["event"]["category"] == "dependency");
    of_vendor.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_token_that_the_vendor_vouches_for_counts_once() {
    let vendor = Vendor::start().await;
    let (api, verifier) = with(&vendor, json!({})).await;
    assert_eq!(verifier.verify(&token("good")).await, AnswerWord::Yes);
    assert_eq!(verifier.verify(&token("good")).await, AnswerWord::No, "it was used");
    assert_eq!(verifier.verify(&token("other")).await, AnswerWord::Yes);
    let (headers, body) = vendor.calls.lock().unwrap()[0].clone();
    assert_eq!(body, "secret=hunter2&response=good&remoteip=192.0.2.7");
    assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
    // The provider as it is now, not as it was when it was compiled.
    let change = json!({ "secret_key": "hunter3", "bind_ip": false });
    assert_eq!(api.call("PATCH", "/challenge-providers/w", Some(change)).await.status, StatusCode::OK);
    assert_eq!(verifier.verify(&token("third")).await, AnswerWord::Yes);
    assert_eq!(vendor.calls.lock().unwrap()[3].1, "secret=hunter3&response=third");
    let change = json!({ "enabled": false });
    assert_eq!(api.call("PATCH", "/challenge-providers/w", Some(change)).await.status, StatusCode::OK);
    assert_eq!(verifier.verify(&token("fourth")).await, AnswerWord::Unknown);
    let unknown = VerifyToken { provider: "none".into(), ..token("fifth") };
    assert_eq!(verifier.verify(&unknown).await, AnswerWord::Unknown);
    assert_eq!(vendor.calls(), 4, "nobody is asked for those");
    assert!(told(&api).await.is_empty());
}

#[tokio::test]
async fn what_the_vendor_refuses_or_knows_from_elsewhere_does_not_count() {
    let vendor = Vendor::start().await;
    let (api, verifier) = with(&vendor, json!({})).await;
    vendor.says(200, r#"{"success":false,"error-codes":["invalid-input-response"]}"#);
    assert_eq!(verifier.verify(&token("a")).await, AnswerWord::No);
    vendor.says(200, r#"{"success":true,"hostname":"other.example"}"#);
    assert_eq!(verifier.verify(&token("b")).await, AnswerWord::No);
    vendor.says(200, r#"{"success":true,"hostname":"shop.example"}"#);
    assert_eq!(verifier.verify(&token("b")).await, AnswerWord::Yes, "it was not used up by being refused");
    assert_eq!(verifier.verify(&token("")).await, AnswerWord::No);
    assert_eq!(verifier.verify(&token(&"x".repeat(4097))).await, AnswerWord::No);
    assert_eq!(vendor.calls(), 3, "nobody is asked for those");
    assert!(told(&api).await.is_empty(), "a refusal is no failure");
}

#[tokio::test]
async fn a_vendor_that_gives_no_answer_is_told_of_once_and_once_when_it_does_again() {
    let vendor = Vendor::start().await;
    let (api, verifier) = with(&vendor, json!({})).await;
    let huge = format!(r#"{{"success":true,"x":"{}"}}"#, "x".repeat(64 * 1024));
    for (status, body) in [
        (500, r#"{"success":true}"#),
        (200, "<html>"),
        (200, huge.as_str()),
        (302, r#"{"success":true}"#),
        (200, r#"{"success":false,"error-codes":["invalid-input-secret"]}"#),
    ] {
        vendor.says(status, body);
        assert_eq!(verifier.verify(&token("a")).await, AnswerWord::Unknown, "{status}");
    }
    assert_eq!(vendor.calls(), 5, "neither redirects nor second tries");
    let [begins] = &told(&api).await[..] else { panic!("{:?}", told(&api).await) };
    assert!(begins.contains("`w` cannot be verified") && begins.contains("status 500"), "{begins}");
    vendor.says(200, r#"{"success":true}"#);
    assert_eq!(verifier.verify(&token("a")).await, AnswerWord::Yes);
    assert_eq!(told(&api).await.len(), 1, "one answer among many failures is no recovery");
    NOW.fetch_add(60_000, Ordering::Relaxed);
    assert_eq!(verifier.verify(&token("b")).await, AnswerWord::Yes);
    assert_eq!(verifier.verify(&token("c")).await, AnswerWord::Yes);
    let [_, ends] = &told(&api).await[..] else { panic!("{:?}", told(&api).await) };
    assert!(ends.contains("`w` can be verified again"), "{ends}");
}

#[tokio::test]
async fn a_vendor_that_cannot_be_reached_vouches_for_nothing() {
    let api = Api::new().await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    create(&api, &format!("http://{}/siteverify", free.local_addr().unwrap()), json!({})).await;
    drop(free);
    assert_eq!(verifier(&api, "127.0.0.0/8").verify(&token("a")).await, AnswerWord::Unknown);
    // An address that is not for outside, and nobody has allowed it.
    assert_eq!(verifier(&api, "192.0.2.0/24").verify(&token("a")).await, AnswerWord::Unknown);
    let told = told(&api).await;
    assert!(told[0].contains("does not take a connection") && told[1].contains("loopback"), "{told:?}");
}

#[tokio::test]
async fn a_broken_connection_is_tried_once_more() {
    let api = Api::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    create(&api, &format!("http://{}/siteverify", listener.local_addr().unwrap()), json!({})).await;
    let taken = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            drop(stream);
        }
    });
    assert_eq!(verifier(&api, "127.0.0.0/8").verify(&token("a")).await, AnswerWord::Unknown);
    assert_eq!(taken.load(Ordering::Relaxed), 2);
}

/// A token from an address.
fn token_from(text: &str, ip: String) -> VerifyToken {
    VerifyToken { ip, ..token(text) }
}

#[tokio::test]
async fn a_slow_vendor_is_not_waited_for_and_no_more_than_so_many_are_asked_at_once() {
    let vendor = Vendor::start().await;
    let (api, verifier) = with(&vendor, json!({})).await;
    vendor.permits.forget_permits(Semaphore::MAX_PERMITS);
    let all: Vec<_> = (0..64)
        .map(|number| {
            let verifier = Arc::clone(&verifier);
            let token = token_from(&number.to_string(), format!("10.{}.0.1", number / 8));
            tokio::spawn(async move { verifier.verify(&token).await })
        })
        .collect();
    xds_support::until("64 calls", async || (vendor.calls() == 64).then_some(())).await;
    // Of a network that has nothing yet: it waits for its turn.
    let more = Arc::clone(&verifier);
    let more = tokio::spawn(async move { more.verify(&token("one more")).await });
    tokio::task::yield_now().await;
    assert_eq!(vendor.calls(), 64, "it was not asked about");
    vendor.permits.add_permits(63);
    let mut answers = Vec::new();
    for one in all {
        answers.push(one.await.unwrap());
    }
    let count = |word| answers.iter().filter(|answer| **answer == word).count();
    assert_eq!((count(AnswerWord::Yes), count(AnswerWord::Unknown)), (63, 1), "the slow one");
    assert_eq!(more.await.unwrap(), AnswerWord::Unknown, "nor has it an answer");
    let [why] = &told(&api).await[..] else { panic!("{:?}", told(&api).await) };
    assert!(why.contains("no complete answer within"), "{why}");
    // Whoever was waited for has given way.
    vendor.permits.add_permits(1);
    assert_eq!(verifier.verify(&token("after")).await, AnswerWord::Yes);
}

#[tokio::test]
async fn garbage_from_one_network_leaves_room_for_the_others() {
    let vendor = Vendor::start().await;
    let (_api, verifier) = with(&vendor, json!({})).await;
    vendor.permits.forget_permits(Semaphore::MAX_PERMITS);
    let verify = |text: String, ip: String| {
        let verifier = Arc::clone(&verifier);
        tokio::spawn(async move { verifier.verify(&token_from(&text, ip)).await })
    };
    // From every address of a /24, and from every /64 of a /56 as well.
    let mut flood: Vec<_> =
        (0..100).map(|number| verify(format!("v4 {number}"), format!("203.0.113.{number}"))).collect();
    flood.extend((0..100).map(|number| verify(format!("v6 {number}"), format!("2001:db8:0:{number:x}::1"))));
    xds_support::until("the share of each", async || (vendor.calls() == 24).then_some(())).await;
    let others: Vec<_> =
        (0..40).map(|number| verify(format!("good {number}"), format!("198.{number}.100.7"))).collect();
    xds_support::until("all others are asked about", async || (vendor.calls() == 64).then_some(())).await;
    // The answers come in the order of the calls: first those that were there first.
    vendor.permits.add_permits(24 + 40);
    for one in others {
        assert_eq!(one.await.unwrap(), AnswerWord::Yes);
    }
    vendor.permits.add_permits(1000);
    let mut words = Vec::new();
    for one in flood {
        words.push(one.await.unwrap());
    }
    let verified = words.iter().filter(|word| **word == AnswerWord::Yes).count();
    assert!((1..=72).contains(&verified), "8 run and 16 wait of the /24, 16 run and 32 wait of the /48: {verified}");
    assert!(vendor.calls() <= 64 + 48, "{}", vendor.calls());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_one_token_on_two_nodes_at_once_one_counts() {
    let vendor = Vendor::start().await;
    let (_api, verifier) = with(&vendor, json!({})).await;
    // Both are with the vendor, who vouches for both, before either is answered.
    vendor.permits.forget_permits(Semaphore::MAX_PERMITS);
    let both = [0, 1].map(|_| {
        let verifier = Arc::clone(&verifier);
        tokio::spawn(async move { verifier.verify(&token("one")).await })
    });
    xds_support::until("both calls", async || (vendor.calls() == 2).then_some(())).await;
    vendor.permits.add_permits(2);
    let mut answers = Vec::new();
    for one in both {
        answers.push(one.await.unwrap());
    }
    answers.sort_by_key(|answer| *answer as i32);
    assert_eq!(answers, [AnswerWord::Yes, AnswerWord::No]);
}
