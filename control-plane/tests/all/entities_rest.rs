//! The entity API: every collection, every class of error.

use crate::entities_samples;

use std::sync::Arc;

use crate::entities_support::{Api, BASE};
use api::rest::RestConfig;
use entities::registry::KINDS;
use entities::{Admission, Change, EntityRef, EntitySet, FieldProblem};
use serde_json::{Value, json};
use store::SqliteOptions;
use waf::control::WafConfig;

#[tokio::test]
async fn every_collection_is_created_read_changed_and_deleted() {
    let api = Api::new().await;
    for kind in KINDS.iter().filter(|kind| kind.singleton.is_none()) {
        let path = format!("/{}", kind.collection);
        let mut template = api.call("GET", &format!("{path}/_template"), None).await.body;
        // Two collections have a field `kind` of their own.
        let word = kind.own_kinds.first().unwrap_or(&kind.kind);
        assert_eq!(template["kind"].as_str().unwrap_or(word), *word);
        let wanted = entities_samples::minimal(kind);
        for (field, value) in wanted.as_object().unwrap().iter().filter(|(field, _)| *field != "id") {
            template[field] = value.clone();
        }
        template["name"] = json!("First");
        let created = api.call("POST", &path, Some(template)).await;
        assert_eq!(created.status, 201, "{}", created.text);
        let id = created.body["id"].as_str().unwrap().to_owned();
        assert!(id.starts_with(&format!("{}_", kind.id_prefix)), "{id}");
        let one = format!("{path}/{id}");
        assert_eq!(created.header("location"), format!("{BASE}{one}"));
        assert_eq!(created.body["kind"], *word);
        let created_at = created.body["metadata"]["created_at"].as_str().unwrap().to_owned();

        assert_eq!(api.call("GET", &one, None).await.body, created.body);
        let list = api.call("GET", &path, None).await;
        assert_eq!(list.body, json!([created.body]));
        assert_eq!(list.header("x-pages"), "1");
        assert_eq!(api.call("GET", &format!("{path}/_count"), None).await.body, json!({"count": 1}));

        let mut second = wanted.clone();
        for (field, value) in [("id", json!(id)), ("name", json!("Second")), ("tags", json!(["a"]))] {
            second[field] = value;
        }
        second["metadata"] = json!({"team": "red"});
        let put = api.call("PUT", &one, Some(second)).await;
        assert_eq!(put.status, 200, "{}", put.text);
        assert_eq!((&put.body["id"], &put.body["name"]), (&json!(id), &json!("Second")));
        assert_eq!(put.body["metadata"]["created_at"], created_at);
        assert_eq!(put.body["metadata"]["team"], "red");

        let merged = api.call("PATCH", &one, Some(json!({"description": "d", "metadata": {"team": null}}))).await;
        assert_eq!(merged.body["description"], "d", "{}", merged.text);
        assert_eq!((&merged.body["name"], merged.body["metadata"].get("team")), (&json!("Second"), None));
        let operations =
            json!([{"op": "test", "path": "/tags/0", "value": "a"}, {"op": "add", "path": "/tags/-", "value": "b"}]);
        let patched = api.call("PATCH", &one, Some(operations)).await;
        assert_eq!(patched.body["tags"], json!(["a", "b"]), "{}", patched.text);

        let deleted = api.call("DELETE", &one, None).await;
        assert_eq!(deleted.status, 200);
        assert_eq!(deleted.body, patched.body);
        for method in ["GET", "DELETE"] {
            let gone = api.call(method, &one, None).await;
            assert_eq!((gone.status.as_u16(), &gone.body["error"]), (404, &json!("not_found")));
        }
        for method in ["PUT", "PATCH"] {
            assert_eq!(api.call(method, &one, Some(json!({}))).await.status, 404);
        }
        assert_eq!(api.call("GET", &path, None).await.body, json!([]));
    }
}

#[tokio::test]
async fn the_global_configuration_always_exists() {
    let api = Api::new().await;
    let list = api.call("GET", "/global-config", None).await;
    assert_eq!(list.body.as_array().unwrap().len(), 1);
    assert_eq!(list.body[0]["id"], "global-config");
    let one = "/global-config/global-config";
    assert_eq!(api.call("GET", one, None).await.header("etag"), "\"0\"");
    assert_eq!(api.call("POST", "/honeypot-policies", Some(json!({"id": "p"}))).await.status, 201);
    let validators = json!([{"plugin": "IncomingRequestValidatorSvcHoneypot", "config": {"policy": "p"}}]);
    let patch = json!({"incoming_request_validators": validators, "gateway": {"port": 8080}});
    let patched = api.call("PATCH", one, Some(patch)).await;
    assert_eq!(patched.body["gateway"]["port"], 8080, "{}", patched.text);
    assert_eq!(patched.body["gateway"]["address"], "0.0.0.0");
    assert_eq!(patched.body["incoming_request_validators"][0]["enabled"], true);
    assert_eq!(api.call("PUT", one, Some(json!({}))).await.body["gateway"]["port"], 10000);
    assert_eq!(api.call("POST", "/global-config", Some(json!({}))).await.status, 409);
    assert_eq!(api.call("DELETE", one, None).await.status, 409);
}

#[tokio::test]
async fn every_class_of_error_says_what_is_wrong_and_where() {
    let api = Api::with(SqliteOptions::default(), RestConfig { max_body_bytes: 4096, ..RestConfig::default() }).await;
    api.call("POST", "/waf-configs", Some(json!({"id": "taken"}))).await;
    let json = "application/json";
    let long = format!("{{\"name\": \"{}\"}}", "x".repeat(5000));
    let cases: &[(&str, &str, &str, &str, u16, &str, &str)] = &[
        ("POST", "/waf-configs", json, r#"{"enabled": "yes"}"#, 400, "invalid_entity", "/enabled: invalid type"),
        ("POST", "/waf-configs", json, r#"{"blok": true}"#, 400, "invalid_entity", "did you mean `block`?"),
        ("POST", "/waf-configs", json, r#"{"id": "a/b"}"#, 400, "invalid_entity", "/id: `a/b` cannot be an id"),
        ("POST", "/waf-configs", json, r#"{"id": ".."}"#, 400, "invalid_entity", "/id: "),
        ("POST", "/waf-configs", json, r#"{"id": 7}"#, 400, "invalid_entity", "/id: "),
        ("POST", "/waf-configs", json, r#"{"kind": "route"}"#, 400, "invalid_entity", "/kind: "),
        (
            "POST",
            "/waf-configs",
            json,
            r#"{"rulesets": ["gone"]}"#,
            400,
            "invalid_entity",
            "/rulesets/0: there is no entity `gone` in waf-rulesets",
        ),
        ("POST", "/waf-configs", json, r#"{"metadata": 1}"#, 400, "invalid_entity", "/metadata: "),
        (
            "POST",
            "/threat-policies",
            json,
            r#"{"tiers": [{"min_score": 101}]}"#,
            400,
            "invalid_entity",
            "/tiers/0/min_score: ",
        ),
        (
            "POST",
            "/threat-policies",
            json,
            r#"{"exemptions": ["10.0.0.0/33"]}"#,
            400,
            "invalid_entity",
            "/exemptions/0: ",
        ),
        (
            "POST",
            "/routes",
            json,
            r#"{"plugins": [{"plugin": "SvcWaf", "include": ["("]}]}"#,
            400,
            "invalid_entity",
            "/plugins/0/include/0: ",
        ),
        (
            "POST",
            "/routes",
            json,
            r#"{"backend": {"address": "b"}}"#,
            400,
            "invalid_entity",
            "/backend/port: the field `port` is required",
        ),
        (
            "PATCH",
            "/global-config/global-config",
            json,
            r#"{"gateway": {"port": 0}}"#,
            400,
            "invalid_entity",
            "/gateway/port: ",
        ),
        ("POST", "/waf-configs", json, "[]", 400, "invalid_entity", "a waf-config is an object"),
        ("POST", "/waf-configs", json, "{\n \"name\": }", 400, "invalid_json", "line 2 column 10"),
        ("POST", "/waf-configs", json, "", 400, "invalid_json", "the body is empty"),
        ("POST", "/waf-configs", json, "{\"name\": \"\u{1}\"}", 400, "invalid_json", "line 1"),
        ("POST", "/waf-configs", "text/plain", "{}", 415, "unsupported_media_type", "application/json"),
        (
            "POST",
            "/waf-configs",
            "application/merge-patch+json",
            "{}",
            415,
            "unsupported_media_type",
            "application/json",
        ),
        ("POST", "/waf-configs", json, &long, 413, "payload_too_large", "limit"),
        ("POST", "/waf-configs", json, r#"{"id": "taken"}"#, 409, "conflict", "exists already"),
        ("PUT", "/waf-configs/taken", json, r#"{"id": "other"}"#, 400, "invalid_entity", "an id cannot change"),
        ("PATCH", "/waf-configs/taken", json, r#"{"id": "other"}"#, 400, "invalid_entity", "an id cannot change"),
        ("PATCH", "/waf-configs/taken", json, "7", 400, "invalid_patch", "a patch is an object"),
        ("PATCH", "/waf-configs/taken", json, r#"[{"op": "jump"}]"#, 400, "invalid_patch", "operation [0].op"),
        (
            "PATCH",
            "/waf-configs/taken",
            json,
            r#"[{"op": "remove", "path": "/nothing"}]"#,
            400,
            "invalid_patch",
            "/nothing",
        ),
        (
            "PATCH",
            "/waf-configs/taken",
            json,
            r#"[{"op": "test", "path": "/block", "value": false}]"#,
            409,
            "patch_test_failed",
            "/block",
        ),
        ("PATCH", "/waf-configs/taken", "application/merge-patch+json", "[]", 400, "invalid_patch", "is an object"),
        ("PATCH", "/waf-configs/taken", "application/json-patch+json", "{}", 400, "invalid_patch", "is an array"),
        ("PUT", "/waf-configs/missing", json, "{}", 404, "not_found", "no entity"),
        ("GET", "/waf-confgs", json, "", 404, "not_found", "did you mean `waf-configs`?"),
        ("GET", "/waf-configs?page=0", json, "", 400, "invalid_query", "`page`"),
        ("PUT", "/waf-configs", json, "{}", 405, "method_not_allowed", "Allow"),
    ];
    for (method, path, content_type, body, status, error, part) in cases {
        let answer = api.raw(method, path, content_type, body).await;
        let description = answer.body["error_description"].as_str().unwrap_or_default();
        assert_eq!(
            (answer.status.as_u16(), answer.body["error"].as_str()),
            (*status, Some(*error)),
            "{method} {path} {body}: {}",
            answer.text
        );
        assert!(description.contains(part), "{method} {path} {body}: `{part}` not in `{description}`");
        assert_eq!(answer.body["errors"].is_array(), *error == "invalid_entity", "{}", answer.text);
    }
    let list = api.call("GET", "/waf-configs", None).await.body;
    assert_eq!(list.as_array().unwrap().len(), 1, "nothing of all this was kept: {list}");
    let elsewhere = api.raw("GET", "/../../other/v1/routes", json, "").await;
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn several_wrong_fields_are_named_together() {
    let api = Api::new().await;
    let document = json!({"hosts": ["a b"], "paths": ["x"], "plugins": [{"plugin": ""}]});
    let answer = api.call("POST", "/routes", Some(document)).await;
    let pointers: Vec<_> =
        answer.body["errors"].as_array().unwrap().iter().map(|error| error["pointer"].as_str().unwrap()).collect();
    assert_eq!(pointers, ["/hosts/0", "/paths/0", "/plugins/0/plugin"]);
}

/// The specification has it so; the answer shows what was understood.
#[tokio::test]
async fn an_unknown_tier_action_reads_as_log() {
    let api = Api::new().await;
    let answer =
        api.call("POST", "/threat-policies", Some(json!({"tiers": [{"min_score": 40, "action": "denny"}]}))).await;
    assert_eq!((answer.status.as_u16(), &answer.body["tiers"][0]["action"]), (201, &json!("log")), "{}", answer.text);
}

#[tokio::test]
async fn json_that_is_nested_too_deep_names_the_field() {
    let api = Api::new().await;
    let text = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let body = format!("{{\"id\": \"r\", \"metadata\": {{\"a\": 1, \"deep\": {}}}}}", text(126));
    let refused = api.raw("POST", "/waf-rulesets", "application/json", &body).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.body["errors"][0]["pointer"]),
        (400, &json!("/metadata/deep")),
        "{}",
        refused.text
    );
    let made = api.raw("POST", "/waf-rulesets", "application/json", &body.replace(&text(126), &text(125))).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let patch = format!("[{{\"op\": \"add\", \"path\": \"/metadata/x\", \"value\": {}}}]", text(126));
    let refused = api.raw("PATCH", "/waf-rulesets/r", "application/json-patch+json", &patch).await;
    assert_eq!(refused.body["errors"][0]["pointer"], "/0/value", "{}", refused.text);
}

#[tokio::test]
async fn hosts_and_paths_are_kept_in_the_form_of_the_listener() {
    let api = Api::new().await;
    let route = json!({
        "id": "r", "hosts": ["shop.example.", "*.shop.example.", "[0:0:0:0:0:0:0:1]"], "paths": ["/\u{fc}", "/%61/%c3%bc"],
    });
    let made = api.call("POST", "/routes", Some(route)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.body["hosts"], json!(["shop.example", "*.shop.example", "[::1]"]));
    assert_eq!(made.body["paths"], json!(["/%C3%BC", "/a/%C3%BC"]));
    let address = |address: &str| json!({"address": address, "port": 80});
    for (document, pointer) in [
        (json!({"paths": ["/a", "/a//b"]}), "/paths/1"),
        (json!({"paths": ["/a/../b"]}), "/paths/0"),
        (json!({"paths": ["/%2e/b"]}), "/paths/0"),
        (json!({"paths": ["/\\"]}), "/paths/0"),
        (json!({"paths": ["/%zz"]}), "/paths/0"),
        (json!({"hosts": ["shop.example.."]}), "/hosts/0"),
        (json!({"backend": address("256.1.1.1")}), "/backend/address"),
        (json!({"backend": address("127.0.0.1:80")}), "/backend/address"),
        (json!({"backend": address("-x")}), "/backend/address"),
    ] {
        let refused = api.call("POST", "/routes", Some(document.clone())).await;
        assert_eq!(refused.status, 400, "{document}: {}", refused.text);
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{document}: {}", refused.text);
    }
}

#[tokio::test]
async fn conditions_on_the_revision_are_kept() {
    let api = Api::new().await;
    let first = api.call("POST", "/waf-rulesets", Some(json!({"id": "r"}))).await.header("etag").to_owned();
    let one = "/waf-rulesets/r";
    let put = |tag: String| {
        let api = &api;
        async move { api.call_with("PUT", one, Some(json!({})), &[("if-match", &tag)]).await }
    };
    let second = put(first.clone()).await;
    assert_eq!(second.status, 200);
    assert_ne!(second.header("etag"), first);
    let stale = put(first.clone()).await;
    assert_eq!((stale.status.as_u16(), &stale.body["error"]), (412, &json!("precondition_failed")));
    assert_eq!(put(format!("W/{}", second.header("etag"))).await.status, 412, "a weak tag never matches");
    let deletion = api.call_with("DELETE", one, None, &[("if-match", &first)]).await;
    assert_eq!(deletion.status, 412);
    let third = put(format!("\"x\", {}", second.header("etag"))).await;
    assert_eq!(third.status, 200);
    assert_eq!(put("*".to_owned()).await.status, 200);
    let tag = api.call("GET", one, None).await.header("etag").to_owned();
    let cached = api.call_with("GET", one, None, &[("if-none-match", &tag)]).await;
    assert_eq!((cached.status.as_u16(), cached.text.as_str()), (304, ""));
}

#[tokio::test]
async fn of_two_writers_with_one_tag_one_wins() {
    let api = Arc::new(Api::new().await);
    let tag = api.call("POST", "/waf-rulesets", Some(json!({"id": "r"}))).await.header("etag").to_owned();
    let writers = (0..20).map(|number| {
        let (api, tag) = (Arc::clone(&api), tag.clone());
        tokio::spawn(async move {
            let body = Some(json!({"description": number.to_string()}));
            api.call_with("PUT", "/waf-rulesets/r", body, &[("if-match", &tag)]).await.status.as_u16()
        })
    });
    let mut statuses = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        statuses.push(writer.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200], vec![412; 19]].concat());
    assert_eq!(api.state.entities.current().revision(), 2);
}

#[tokio::test]
async fn what_others_name_cannot_be_deleted() {
    let api = Api::new().await;
    api.call("POST", "/waf-rulesets", Some(json!({"id": "base"}))).await;
    let config = api.call("POST", "/waf-configs", Some(json!({"id": "c", "rulesets": ["base"]}))).await;
    assert_eq!(config.status, 201, "{}", config.text);
    let refused = api.call("DELETE", "/waf-rulesets/base", None).await;
    assert_eq!((refused.status.as_u16(), &refused.body["error"]), (409, &json!("in_use")));
    assert!(refused.text.contains("waf-configs/c names it at /rulesets/0"), "{}", refused.text);
    api.call("DELETE", "/waf-configs/c", None).await;
    assert_eq!(api.call("DELETE", "/waf-rulesets/base", None).await.status, 200);
}

/// Refuses what has the tag `bad`, and the deletion of what has the tag `kept`.
struct Judge;

impl Admission for Judge {
    fn admit(&self, candidate: &EntitySet, changed: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>> {
        match candidate.get::<WafConfig>(&changed.id) {
            Some(config) if config.head.tags.contains(&"bad".to_owned()) => {
                Err(vec![FieldProblem::new("/rules/0", "line 1, column 3:\n  SecRul\n    ^ unknown directive")])
            }
            Some(_) => Ok(vec!["rule 1 never matches: \u{e4}".to_owned()]),
            None if changed.change == Change::Deleted && changed.id == "kept" => {
                Err(vec![FieldProblem::new("", "a route needs it")])
            }
            None => Ok(Vec::new()),
        }
    }
}

#[tokio::test]
async fn what_is_not_admitted_is_not_written() {
    let api = Api::new().await;
    api.state.entities.add_admission(Arc::new(Judge));
    let refused = api.call("POST", "/waf-configs", Some(json!({"id": "a", "tags": ["bad"]}))).await;
    assert_eq!((refused.status.as_u16(), &refused.body["errors"][0]["pointer"]), (400, &json!("/rules/0")));
    assert!(refused.body["error_description"].as_str().unwrap().contains("\n    ^ unknown"), "{}", refused.text);
    assert_eq!(api.call("GET", "/waf-configs", None).await.body, json!([]));
    assert!(api.state.store.entities().await.unwrap().rows.is_empty());

    let admitted = api.call("POST", "/waf-configs", Some(json!({"id": "kept"}))).await;
    assert_eq!(admitted.status, 201);
    let warnings: Vec<String> = serde_json::from_str(admitted.header("x-palisade-warnings")).unwrap();
    assert_eq!(warnings, ["rule 1 never matches: \u{e4}"]);
    assert_eq!(api.call("PATCH", "/waf-configs/kept", Some(json!({"tags": ["bad"]}))).await.status, 400);
    assert_eq!(api.call("DELETE", "/waf-configs/kept", None).await.status, 409);
    assert_eq!(api.call("GET", "/waf-configs/kept", None).await.body["tags"], json!([]));
}

#[tokio::test]
async fn lists_come_in_pages_and_parts() {
    let api = Api::new().await;
    for number in 0..5 {
        let document =
            json!({"id": format!("r{number}"), "name": format!("n{}", 9 - number), "enabled": number % 2 == 0});
        api.call("POST", "/waf-rulesets", Some(document)).await;
    }
    let page = api.call("GET", "/waf-rulesets?page=2&pageSize=2", None).await;
    assert_eq!(page.header("x-pages"), "3");
    assert_eq!(page.body[0]["id"], "r2");
    let query = "/waf-rulesets?filter.enabled=true&sorted=name:asc&fields=id,name&envelope=true&pretty=true";
    let list = api.call("GET", query, None).await;
    assert_eq!(list.body["data"][0], json!({"id": "r4", "name": "n5"}));
    assert_eq!(list.body["data"].as_array().unwrap().len(), 3);
    assert!(list.text.contains("\n  \"data\": ["));
}

#[tokio::test]
async fn a_full_disk_is_507_and_loses_nothing() {
    let api = Api::with(SqliteOptions { max_pages: Some(75), ..SqliteOptions::default() }, RestConfig::default()).await;
    let mut kept = Vec::new();
    let refused = loop {
        let id = format!("r{}", kept.len());
        let answer = api.call("POST", "/waf-rulesets", Some(json!({"id": id, "description": "x".repeat(8000)}))).await;
        if answer.status != 201 {
            break answer;
        }
        kept.push(id);
        assert!(kept.len() < 100, "the limit never held");
    };
    assert_eq!((refused.status.as_u16(), &refused.body["error"]), (507, &json!("insufficient_storage")));
    assert!(refused.text.contains("palisade.db"), "{}", refused.text);
    assert!(!kept.is_empty());
    assert_eq!(api.state.store.entities().await.unwrap().rows.len(), kept.len());
    assert_eq!(api.call("GET", "/waf-rulesets/_count", None).await.body["count"], kept.len());
    // Room again: the same write goes through.
    assert_eq!(api.call("DELETE", &format!("/waf-rulesets/{}", kept[0]), None).await.status, 200);
    let again = api.call("POST", "/waf-rulesets", Some(json!({"id": "again", "description": "x".repeat(4000)}))).await;
    assert_eq!(again.status, 201, "{}", again.text);
}

#[tokio::test]
async fn readers_see_each_change_and_a_reload_sees_the_same() {
    let api = Api::new().await;
    let mut changes = api.state.entities.subscribe();
    let mut revisions = api.state.store.changes();
    api.call("POST", "/waf-configs", Some(json!({"id": "c", "rules": ["SecRuleEngine On"]}))).await;
    changes.changed().await.unwrap();
    revisions.changed().await.unwrap();
    let seen = changes.borrow_and_update().clone();
    assert_eq!((seen.revision(), *revisions.borrow_and_update()), (1, 1));
    let config = seen.get::<WafConfig>("c").unwrap();
    assert_eq!(config.rules, ["SecRuleEngine On"]);
    let loaded = EntitySet::load(api.state.store.as_ref()).await.unwrap();
    assert_eq!(loaded.revision(), 1);
    assert_eq!(loaded.get::<WafConfig>("c"), Some(config));
}

#[tokio::test]
async fn what_somebody_else_writes_to_the_store_is_followed() {
    let api = Api::new().await;
    tokio::spawn(api.state.entities.clone().follow_store());
    let mut changes = api.state.entities.subscribe();
    let store = &api.state.store;
    store.entity_put("waf-configs", "other", json!({"id": "other"}).to_string(), 0).await.unwrap();
    changes.wait_for(|set| set.get::<WafConfig>("other").is_some()).await.unwrap();
    // A document of a newer release is left out, and named, and nothing else suffers.
    store.entity_put("waf-configs", "newer", json!({"id": "newer", "future": 1}).to_string(), 0).await.unwrap();
    let set = changes.wait_for(|set| set.revision() == 2).await.unwrap().clone();
    assert_eq!(set.unreadable()[0].0, "waf-configs/newer");
    assert_eq!(set.unreadable()[0].1.pointer, "/future");
    assert!(set.get::<WafConfig>("other").is_some());
    assert_eq!(api.call("POST", "/waf-configs", Some(json!({"id": "newer"}))).await.status, 409);
}

#[tokio::test]
async fn numbers_come_back_as_they_were_sent() {
    let api = Api::new().await;
    let document = json!({"id": "p", "waf_block_weight": 50, "tiers": [{"min_score": 12.5}, {"min_score": 90}]});
    api.call("POST", "/threat-policies", Some(document)).await;
    let text = api.call("GET", "/threat-policies/p", None).await.text;
    let back: Value = serde_json::from_str(&text).unwrap();
    assert!(text.contains("\"waf_block_weight\":50,") && text.contains("\"min_score\":12.5,"), "{back}");
}
