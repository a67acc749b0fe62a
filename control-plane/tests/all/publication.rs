//! What cannot be published to one group of gateways reaches the others, and five places say so.

use std::sync::Arc;

use crate::console_support::{ConsoleApi, Login};
use crate::xds_support::until;
use axum::body::Body;
use axum::http::Request;
use compiler::publish;
use compiler::{Compiler, Settings};
use material::Material;
use palisade::health;
use serde_json::{Value, json};
use tokio::sync::watch;

/// A control plane whose entities come straight from its store, as another release may have left them there: no check of the
/// API stands between them and the publication.
struct World {
    console: ConsoleApi,
    login: Login,
    material: Material,
    _stop: watch::Sender<bool>,
}

impl World {
    async fn start() -> World {
        let console = ConsoleApi::new().await;
        let login = console.login("alice").await;
        let state = &console.api.state;
        let (stop, stopping) = watch::channel(false);
        let (material, settings) =
            (Material::default(), Settings { filters_dir: "/filters".into(), ..Settings::default() });
        let compiler = Arc::new(Compiler::new(settings).with_material(material.clone()));
        let first = state.readiness.register("first snapshot");
        tokio::spawn(state.entities.clone().follow_store());
        let (hub, events) = (console.hub.clone(), state.events.clone());
        tokio::spawn(publish::run(state.entities.clone(), compiler, hub, events, first, stopping));
        let world = World { console, login, material, _stop: stop };
        world.put("global-config", "global-config", json!({ "groups": { "eu": {}, "us": {} } })).await;
        for group in ["eu", "us"] {
            world.put("routes", group, route(group, json!({}))).await;
        }
        world
    }

    /// Writes an entity to the store, and waits until it was compiled.
    async fn put(&self, collection: &str, id: &str, mut document: Value) -> u64 {
        document["id"] = id.into();
        document["name"] = id.into();
        let store = &self.console.api.state.store;
        let rows = store.entities().await.unwrap().rows;
        let held = rows.iter().find(|row| row.collection == collection && row.id == id).map_or(0, |row| row.revision);
        let revision = store.entity_put(collection, id, document.to_string(), held).await.unwrap();
        let compiled = async || (self.console.hub.publication_status().revision == revision).then_some(());
        until("it was compiled", compiled).await;
        revision
    }

    /// The revision that each group is served, and why it is no later one.
    fn groups(&self) -> Vec<(String, Option<u64>, Option<String>)> {
        let groups = self.console.hub.publication_status().groups.into_iter();
        groups
            .map(|group| (group.group, group.revision, group.failure.map(|failure| failure.reasons.join(" | "))))
            .collect()
    }

    async fn ready(&self) -> (u16, Value) {
        let request = Request::builder().uri("/readyz").body(Body::empty()).unwrap();
        let answer = self.console.api.send(request).await;
        (answer.status.as_u16(), answer.body)
    }

    async fn status(&self) -> Value {
        self.console.get(&self.login, "/security/_status").await.body
    }

    async fn nodes(&self) -> Value {
        let request = Request::builder().uri("/api/extensions/svc/waf/api/_nodes");
        let request = request.header("authorization", &self.console.api.authorization);
        self.console.api.send(request.body(Body::empty()).unwrap()).await.body
    }

    /// The messages of events about the publication.
    async fn told(&self) -> Vec<String> {
        let events = self.console.events().await;
        let of_publication = events
            .iter()
            .filter(|event| event["event"]["category"] == "dependency" && event["event"]["module"] == "publication");
        of_publication.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    async fn failing(&self, group: &str) -> String {
        let request = Request::builder().uri("/metrics").body(Body::empty()).unwrap();
        let text = self.console.api.send(request).await.text;
        let line = format!("palisade_publish_failing{{group=\"{group}\"}} ");
        text.lines().find_map(|found| found.strip_prefix(&line)).unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_gathered_is_published_like_a_change_of_an_entity() {
    let world = World::start().await;
    let published = async || {
        let request = Request::builder().uri("/metrics").body(Body::empty()).unwrap();
        let text = world.console.api.send(request).await.text;
        let line = r#"palisade_publish_attempts_total{outcome="published"} "#;
        text.lines().find_map(|found| found.strip_prefix(line)).unwrap().parse::<u64>().unwrap()
    };
    // What the writes of the start have led to comes first.
    let quiet = tokio::time::sleep(std::time::Duration::from_millis(600));
    quiet.await;
    let before = published().await;
    world.material.give("contracts.shop", b"openapi: 3.1.0".to_vec());
    until("it was compiled again", async || (published().await > before).then_some(())).await;
    let revision = world.console.api.state.entities.current().revision();
    assert!(world.groups().iter().all(|(_, served, failure)| *served == Some(revision) && failure.is_none()));
}

/// A route of one group.
fn route(group: &str, more: Value) -> Value {
    let mut route = json!({ "groups": [group], "backend": { "address": "127.0.0.1", "port": 1 } });
    route.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    route
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_group_cannot_have_the_others_get_and_everybody_is_told() {
    let world = World::start().await;
    let revision = world.console.api.state.entities.current().revision();
    let all =
        |eu, us| vec![("default".into(), Some(us), None), ("eu".into(), Some(eu), None), ("us".into(), Some(us), None)];
    assert_eq!(world.groups(), all(revision, revision));
    let ready = json!({ "status": "ready", "revision": revision, "problems": [] });
    assert_eq!(world.ready().await, (200, ready));

    // What compiles, and Envoy would not take; what does not compile at all.
    for (broken, reason) in [
        (json!({ "hosts": ["sh*p.example"] }), "sh*p.example"),
        (json!({ "plugins": [{ "plugin": "Nonsense" }] }), "no plugin `Nonsense`"),
    ] {
        let before = world.console.api.state.entities.current().revision();
        let since = base::clock::now_millis();
        world.put("routes", "eu", route("eu", broken)).await;
        let after = world.put("routes", "us", route("us", json!({ "paths": ["/shop"] }))).await;
        let groups = world.groups();
        assert_eq!(
            (&groups[0], &groups[2]),
            (&("default".into(), Some(after), None), &("us".into(), Some(after), None))
        );
        assert_eq!((&groups[1].0, groups[1].1), (&"eu".to_owned(), Some(before)), "the last good version");
        let why = groups[1].2.clone().unwrap();
        assert!(why.contains(reason), "{why}");

        let (code, ready) = world.ready().await;
        assert_eq!((code, &ready["status"], &ready["revision"]), (200, &json!("degraded"), &json!(after)));
        let problem = &ready["problems"][0];
        assert_eq!((&problem["part"], &problem["subject"]), (&json!("publication"), &json!("eu")));
        assert!(problem["reason"].as_str().unwrap().contains(reason) && problem["since"].as_u64() >= Some(since));
        let (status, nodes) = (world.status().await, world.nodes().await);
        for told in [&status, &nodes] {
            assert_eq!(told["problems"], ready["problems"]);
            let eu = &told["publication"]["groups"][1];
            assert_eq!((&eu["group"], &eu["revision"]), (&json!("eu"), &json!(before)));
            assert!(eu["failure"]["reasons"][0].as_str().unwrap().contains(reason), "{eu}");
            assert!(eu["failure"]["since"].as_u64() >= Some(since), "{eu}");
        }
        assert_eq!((world.failing("eu").await.as_str(), world.failing("us").await.as_str()), ("1", "0"));
        let told = world.told().await;
        let last = told.last().unwrap();
        assert!(last.contains("the publication to the group `eu` fails") && last.contains(reason), "{told:?}");

        let mended = world.put("routes", "eu", route("eu", json!({}))).await;
        assert_eq!(world.groups(), all(mended, mended));
        assert_eq!(world.ready().await.1["status"], "ready");
        assert_eq!(world.failing("eu").await, "0");
        assert!(world.told().await.last().unwrap().contains("`eu` works again"));
    }
    assert_eq!(world.told().await.len(), 4, "each begin and each end once");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_group_can_be_published_nothing_is_ready_and_a_group_that_goes_takes_its_trouble_along() {
    let world = World::start().await;
    let state = &world.console.api.state;
    // What every group has.
    world
        .put(
            "global-config",
            "global-config",
            json!({
                "groups": { "eu": {}, "us": {} },
                "incoming_request_validators": [{ "plugin": "Nonsense" }],
            }),
        )
        .await;
    assert_eq!(world.told().await.len(), 3, "all three groups");
    let (code, ready) = world.ready().await;
    assert_eq!(
        (code, ready["problems"].as_array().unwrap().len()),
        (200, 3),
        "what was published is served on: {ready}"
    );
    world.put("global-config", "global-config", json!({ "groups": { "us": {} } })).await;
    let ready = world.ready().await.1;
    assert_eq!(ready["problems"], json!([]), "{ready}");

    // A process that starts with such a store has nothing to serve.
    let fresh = telemetry::Readiness::default();
    let first = fresh.register("first snapshot");
    world
        .put("global-config", "global-config", json!({ "incoming_request_validators": [{ "plugin": "Nonsense" }] }))
        .await;
    let (hub, compiler) = (xds::Hub::new(), Arc::new(Compiler::new(Settings::default())));
    let (_stop, stopping) = watch::channel(false);
    let publishing = publish::run(state.entities.clone(), compiler, hub.clone(), state.events.clone(), first, stopping);
    tokio::spawn(publishing);
    until("it was compiled", async || (hub.publication_status().revision > 0).then_some(())).await;
    assert_eq!(fresh.missing(), ["first snapshot"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_that_cannot_be_read_and_a_store_that_cannot_be_written_are_told() {
    let world = World::start().await;
    let state = &world.console.api.state;
    world.put("waf-rulesets", "new", json!({ "a_field_of_the_next_release": 1 })).await;
    let ready = until("it is told", async || {
        let ready = world.ready().await.1;
        (ready["status"] == "degraded").then_some(ready)
    })
    .await;
    assert_eq!(ready["problems"][0]["part"], "entities");
    assert!(ready["problems"][0]["reason"].as_str().unwrap().contains("waf-rulesets/new"), "{ready}");
    world.put("waf-rulesets", "new", json!({})).await;
    until("it is over", async || (world.ready().await.1["status"] == "ready").then_some(())).await;

    let look = async || health::look(state.store.as_ref(), &state.entities, &state.events).await;
    look().await.unwrap();
    let db = rusqlite::Connection::open(world.console.api.folder().join("palisade.db")).unwrap();
    db.execute_batch("ALTER TABLE document RENAME TO away").unwrap();
    assert!(state.store.document_put("a", vec![1]).await.is_err());
    look().await.unwrap();
    let (code, ready) = world.ready().await;
    let problem = &ready["problems"][0];
    assert_eq!((code, &problem["part"], &problem["subject"]), (200, &json!("store"), &json!("writes")), "{ready}");
    db.execute_batch("ALTER TABLE away RENAME TO document").unwrap();
    state.store.document_put("a", vec![1]).await.unwrap();
    look().await.unwrap();
    assert_eq!(world.ready().await.1["problems"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_that_no_gateway_can_have_is_told() {
    let world = World::start().await;
    let global = |delivery: &str| {
        json!({
            "identity": { "verified_by": [{ "kind": "mtls" }] }, "groups": { "eu": { "delivery": delivery }, "us": {} },
        })
    };
    world.put("global-config", "global-config", global("full")).await;
    let problem = until("it is told", async || world.ready().await.1["problems"].get(0).cloned()).await;
    assert_eq!((&problem["part"], &problem["subject"]), (&json!("entities"), &json!("verified_by")), "{problem}");
    assert!(problem["reason"].as_str().unwrap().contains("`identity.verified_by[0]` (`mtls`)"), "{problem}");
    world.put("global-config", "global-config", global("ecds")).await;
    until("it is over", async || (world.ready().await.1["problems"] == json!([])).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn protection_that_is_off_is_told() {
    let world = World::start().await;
    let state = &world.console.api.state;
    state.entities.add_admission(Arc::new(Compiler::new(Settings::default())));
    let preset = json!({ "plugin": "SecuritySuitePreset", "config": {} });
    let mut document = route("us", json!({ "plugins": [preset] }));
    document["id"] = "bare".into();
    let made = world.console.api.call("POST", "/routes", Some(document)).await;
    assert_eq!(made.status.as_u16(), 201, "{}", made.text);
    assert!(made.header("x-palisade-warnings").contains("no WAF inspects requests"), "{:?}", made.headers);
    let problem = until("it is told", async || world.ready().await.1["problems"].get(0).cloned()).await;
    assert_eq!((&problem["part"], &problem["subject"]), (&json!("entities"), &json!("protection")), "{problem}");
    assert!(problem["reason"].as_str().unwrap().contains("route `bare`: no WAF inspects requests"), "{problem}");
    let gone = world.console.api.call("DELETE", "/routes/bare", None).await;
    assert!(gone.status.is_success(), "{}", gone.text);
    until("it is over", async || (world.ready().await.1["problems"] == json!([])).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_that_is_in_the_store_already_keeps_no_write_from_being_made() {
    let world = World::start().await;
    let state = &world.console.api.state;
    state.entities.add_admission(Arc::new(Compiler::new(Settings::default())));
    world.put("routes", "eu", route("eu", json!({ "plugins": [{ "plugin": "Nonsense" }] }))).await;
    let call = async |method: &str, path: &str, id: &str, more: Value| {
        let mut document = route("us", more);
        document["id"] = id.into();
        document["name"] = id.into();
        world.console.api.call(method, path, Some(document)).await
    };
    let made = call("POST", "/routes", "us2", json!({})).await;
    assert_eq!(made.status.as_u16(), 201, "{}", made.text);
    assert!(made.header("x-palisade-warnings").contains("an older fault stays: routes/eu"), "{:?}", made.headers);
    let revision = state.entities.current().revision();
    until("it is published", async || (world.groups()[2].1 == Some(revision)).then_some(())).await;
    assert_ne!(world.groups()[1].1, Some(revision));
    // What is wrong with the write itself is refused as ever, and the old fault can be mended.
    let wrong = call("POST", "/routes", "us3", json!({ "plugins": [{ "plugin": "Nonsense" }] })).await;
    assert_eq!(wrong.status.as_u16(), 400, "{}", wrong.text);
    let taken = call("POST", "/routes", "us4", json!({ "envoy_route": "us2" })).await;
    assert_eq!(taken.status.as_u16(), 400, "{}", taken.text);
    let mended = call("PUT", "/routes/eu", "eu", json!({})).await;
    assert_eq!(mended.status.as_u16(), 200, "{}", mended.text);
    assert!(!mended.header("x-palisade-warnings").contains("older fault"), "{:?}", mended.headers);
}
