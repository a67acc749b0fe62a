//! What only plugins of later releases would use is told to those who write it.

use std::sync::Arc;

use crate::cli_support::{Server, palisade, run, text};
use crate::entities_samples;
use crate::entities_support::{Answer, Api};
use compiler::{Compiler, Settings};
use entities::registry::KINDS;
use entities::{plugins, unused};
use kit::ChallengeRoot;
use serde_json::{Value, json};

/// An API whose writes are compiled.
async fn api() -> Api {
    let api = Api::new().await;
    let settings = Settings { challenge_root: ChallengeRoot::for_checks(), ..Settings::default() };
    api.state.entities.add_admission(Arc::new(Compiler::new(settings)));
    api
}

/// The warnings of a write on what is not active.
fn told(answer: &Answer) -> Vec<String> {
    assert!(answer.status.is_success(), "{}", answer.text);
    let header = answer.header("x-palisade-warnings");
    let all: Vec<String> = if header.is_empty() { Vec::new() } else { serde_json::from_str(header).unwrap() };
    all.into_iter().filter(|warning| warning.contains("not active yet")).collect()
}

#[tokio::test]
async fn an_entity_of_an_inert_collection_warns_and_one_of_an_active_collection_does_not() {
    let api = api().await;
    let mut inert = 0;
    for kind in KINDS.iter() {
        let mut document = entities_samples::minimal(kind);
        document["id"] = json!(kind.singleton.unwrap_or("mine"));
        let place = format!("/{}/{}", kind.collection, document["id"].as_str().unwrap());
        let note = unused::collection_note(kind.collection);
        let expect = |answer: Answer| match &note {
            None => assert_eq!(told(&answer), [] as [String; 0], "{}", kind.collection),
            Some(note) => {
                let [warning] = &told(&answer)[..] else { panic!("{}: {:?}", kind.collection, answer.headers) };
                assert!(warning.starts_with(&format!("{}: /enabled: {note}", &place[1..])), "{warning}");
                assert!(warning.ends_with("do not rely on it; `enabled: false` ends this warning"), "{warning}");
            }
        };
        if kind.singleton.is_none() {
            expect(api.call("POST", &format!("/{}", kind.collection), Some(document.clone())).await);
        }
        expect(api.call("PUT", &place, Some(document.clone())).await);
        expect(api.call("PATCH", &place, Some(json!({ "description": "other" }))).await);
        let about = entities::registry::schema(kind)["description"].as_str().unwrap().to_owned();
        assert_eq!(about.contains("Not active yet"), note.is_some(), "{about}");
        inert += usize::from(note.is_some());
        if note.is_some() {
            let off = api.call("PATCH", &place, Some(json!({ "enabled": false }))).await;
            assert_eq!(told(&off), [] as [String; 0], "it is switched off");
        }
        let gone = api.call("DELETE", &place, None).await;
        assert!(kind.singleton.is_some() || told(&gone).is_empty(), "{:?}", gone.headers);
    }
    let lists = plugins::ALL.iter().filter(|plugin| !plugin.is_active()).flat_map(|plugin| plugin.kinds);
    assert_eq!(inert, lists.count());
}

/// The plugins with switches that have no effect in this release, each with the first.
fn inert() -> impl Iterator<Item = (&'static str, &'static str)> {
    plugins::active().filter_map(|plugin| Some((plugin.class(), plugin.inert.first()?.0)))
}

#[tokio::test]
async fn a_write_is_warned_of_its_own_entity_alone() {
    let api = api().await;
    for (class, field) in inert() {
        let line = |id: &str| {
            let plugins = json!([{ "plugin": class, "config": { field: true } }]);
            json!({ "id": id, "plugins": plugins }).to_string()
        };
        let first: Value = serde_json::from_str(&line("a")).unwrap();
        assert_eq!(told(&api.call("POST", "/routes", Some(first)).await).len(), 1);
        assert_eq!(told(&api.call("POST", "/waf-rulesets", Some(json!({ "id": "b" }))).await), [] as [String; 0]);
        let lines = [line("b"), line("_c"), line("d")].join("\n");
        let many = api.raw("POST", "/routes/_bulk", "application/x-ndjson", &lines).await;
        let named: Vec<String> =
            told(&many).iter().map(|warning| warning.split(':').next().unwrap().to_owned()).collect();
        assert_eq!(named, ["routes/b", "routes/d"], "the refused one is not written: {}", many.text);
    }
}

#[tokio::test]
async fn sections_of_presets_and_settings_warn_where_their_plugin_is_not_active() {
    let api = api().await;
    let preset =
        |config: Value| json!({ "id": "r", "plugins": [{ "plugin": "SecuritySuitePreset", "config": config }] });
    let route = preset(json!({ "objects": true, "objects_mode": "score", "uploads": false, "gate": true }));
    assert_eq!(told(&api.call("POST", "/routes", Some(route)).await), [] as [String; 0]);
    let rule = json!({ "id": "a", "categories": ["threat", "objects"] });
    assert_eq!(told(&api.call("POST", "/alert-rules", Some(rule)).await), [] as [String; 0]);
    let settings = json!({ "security": { "objects": { "max_keys": 7 }, "ledger": { "window_seconds": 7 } } });
    let settings = api.call("PATCH", "/global-config/global-config", Some(settings)).await;
    assert_eq!(told(&settings), [] as [String; 0]);
    let wrong = json!({ "security": { "objects": { "max_keys": 0 } } });
    let wrong = api.call("PATCH", "/global-config/global-config", Some(wrong)).await;
    assert_eq!(
        (wrong.status.as_u16(), &wrong.body["errors"][0]["pointer"]),
        (400, &json!("/security/objects/max_keys"))
    );

    let settings = json!({ "security": { "objects": null, "api": { "inventory": { "max_records": 7 } } } });
    let settings = api.call("PATCH", "/global-config/global-config", Some(settings)).await;
    assert_eq!(told(&settings), [] as [String; 0]);
}

#[tokio::test]
async fn fields_of_a_plugin_that_have_no_effect_warn_with_their_pointer() {
    let api = api().await;
    let crowd = json!({ "id": "crowd", "api_key": "k" });
    assert_eq!(told(&api.call("POST", "/svc-bouncers", Some(crowd)).await), [] as [String; 0]);
    let push = json!({ "push_enabled": true, "push_machine_id": "m", "push_password": "p" });
    assert_eq!(told(&api.call("PATCH", "/svc-bouncers/crowd", Some(push)).await), [] as [String; 0]);
    let feed = json!({ "id": "tor", "url": "https://feeds.test/tor" });
    assert_eq!(told(&api.call("POST", "/threat-feeds", Some(feed)).await), [] as [String; 0]);
    let route = |config: Value| json!({ "id": "r", "plugins": [{ "plugin": "SvcIpReputation", "config": config }] });
    let set = route(json!({ "feeds": ["tor"], "bouncers": ["crowd"], "report_to_bouncer": true }));
    assert_eq!(told(&api.call("POST", "/routes", Some(set)).await), [] as [String; 0]);
    let settings = json!({ "security": { "dnsbl": { "wait_millis": 7 } } });
    let settings = api.call("PATCH", "/global-config/global-config", Some(settings)).await;
    assert_eq!(told(&settings), [] as [String; 0]);
}

/// What a write says of words that are read as others.
fn misread(answer: &Answer) -> Vec<String> {
    assert!(answer.status.is_success(), "{}", answer.text);
    let header = answer.header("x-palisade-warnings");
    let all: Vec<String> = if header.is_empty() { Vec::new() } else { serde_json::from_str(header).unwrap() };
    all.into_iter().filter(|warning| warning.contains("is read as")).collect()
}

#[tokio::test]
async fn an_action_that_is_none_warns_on_the_write_that_has_it() {
    let api = api().await;
    let tiers = json!([{ "min_score": 40, "action": "denny" }, { "min_score": 90, "action": "ban" }]);
    let expected =
        "threat-policies/p: /tiers/0/action: `denny` is no action and is read as `log`, did you mean `deny`?";
    for (method, path, enabled) in [("POST", "/threat-policies", true), ("PUT", "/threat-policies/p", false)] {
        let policy = json!({ "id": "p", "enabled": enabled, "tiers": tiers });
        let told = misread(&api.call(method, path, Some(policy)).await);
        assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
    }
    let stored = api.call("GET", "/threat-policies/p", None).await;
    assert_eq!(stored.body["tiers"][0]["action"], "log", "{}", stored.text);
    assert_eq!(
        misread(&api.call("PATCH", "/threat-policies/p", Some(json!({ "name": "q" }))).await),
        [] as [String; 0]
    );
    let tiers = json!([{ "min_score": 40, "action": "Deny" }]);
    let told = misread(&api.call("PATCH", "/threat-policies/p", Some(json!({ "tiers": tiers }))).await);
    assert!(
        told.len() == 1 && told[0].contains("`Deny` is no action and is read as `log`, did you mean `deny`?"),
        "{told:?}"
    );

    let folder = tempfile::tempdir().unwrap();
    let policy = json!({ "kind": "threat-policy", "id": "p", "tiers": [{ "min_score": 40, "action": "Deny" }] });
    std::fs::write(folder.path().join("p.json"), policy.to_string()).unwrap();
    let checked = run(&["check", folder.path().to_str().unwrap()]);
    let out = text(&checked.stdout);
    assert!(checked.status.success() && out.contains("/tiers/0/action: `Deny` is no action"), "{out}");
}

#[test]
fn check_compile_and_apply_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (entities, data) = (folder.path().join("entities"), folder.path().join("data"));
    std::fs::create_dir_all(entities.join("routes")).unwrap();
    let file = entities.join("routes/all.yaml");
    let Some((class, field)) = inert().next() else { return };
    let plugins = format!("plugins: [{{plugin: {class}, config: {{{field}: true}}}}]\n");
    std::fs::write(&file, &plugins).unwrap();
    let note = format!("/plugins/0/config/{field}: not active yet: this release has no");
    let expected = format!("warning: {}: {note}", file.display());
    let entities = entities.to_str().unwrap();
    let checked = run(&["check", entities]);
    let out = text(&checked.stdout);
    assert!(checked.status.success() && out.contains(&expected), "{out}");
    let compiled = run(&["compile", "--entities", entities, "--out", folder.path().join("out.pb").to_str().unwrap()]);
    assert!(text(&compiled.stdout).contains(&format!("routes/all: {note}")), "{compiled:?}");

    let mut server = Server::start(&data);
    let key = data.join("admin-key.json");
    let url = format!("http://{}", server.rest);
    let arguments = ["apply", entities, "--url", &url, "--key-file", key.to_str().unwrap()];
    for more in [&["--dry-run"][..], &[]] {
        let applied = palisade(&[&arguments[..], more].concat()).output().unwrap();
        assert!(text(&applied.stdout).contains(&expected), "{applied:?}");
    }
    server.signal("TERM");
    server.child.wait().unwrap();
    std::fs::write(&file, format!("description: other\n{plugins}")).unwrap();
    let applied = run(&["apply", entities, "--data", data.to_str().unwrap()]);
    assert!(applied.status.success() && text(&applied.stdout).contains(&expected), "{applied:?}");
}
