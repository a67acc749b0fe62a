//! The history of entities: who has changed them, what they were, and the way back.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::entities_support::{Answer, Api};
use entities::{EntitySet, MASK};
use serde_json::{Value, json};
use tokio::task::JoinSet;

impl Api {
    async fn ok(&self, method: &str, path: &str, body: Value) -> Answer {
        let answer = self.call(method, path, (!body.is_null()).then_some(body)).await;
        assert!(answer.status.is_success(), "{method} {path}: {}", answer.text);
        answer
    }

    /// The actions of an entity with their versions, newest first.
    async fn actions(&self, path: &str) -> Vec<(u64, String)> {
        let list = self.ok("GET", &format!("{path}/_history"), Value::Null).await.body;
        let list = list.as_array().unwrap().iter();
        list.map(|one| (one["version"].as_u64().unwrap(), one["action"].as_str().unwrap().to_owned())).collect()
    }
}

fn version(answer: &Answer) -> u64 {
    answer.header("etag").trim_matches('"').parse().unwrap()
}

#[tokio::test]
async fn changes_are_listed_with_their_author_and_can_be_taken_back() {
    let api = Api::new().await;
    let one = "/waf-rulesets/shop";
    let first = version(&api.ok("POST", "/waf-rulesets", json!({ "id": "shop", "description": "1" })).await);
    let second = version(&api.ok("PATCH", one, json!({ "description": "2", "tags": ["x"] })).await);
    let third = version(&api.ok("PUT", one, json!({ "description": "3" })).await);
    let list = api.ok("GET", &format!("{one}/_history"), Value::Null).await;
    assert_eq!(list.header("x-pages"), "1");
    assert_eq!(list.body.as_array().unwrap().len(), 3);
    let newest = &list.body[0];
    assert_eq!(
        (&newest["version"], &newest["action"], &newest["in_force"]),
        (&json!(third), &json!("replace"), &json!(true))
    );
    assert_eq!((&newest["author"]["kind"], &newest["author"]["name"]), (&json!("api_key"), &json!("test")));
    assert!(newest["author"]["id"].as_str().unwrap().starts_with("admin-key_"), "{newest}");
    assert!(newest["at"].as_str().unwrap().ends_with('Z'), "{newest}");
    let page = api.ok("GET", &format!("{one}/_history?page=2&pageSize=2"), Value::Null).await;
    assert_eq!((page.header("x-pages"), &page.body[0]["version"], &page.body[1]), ("2", &json!(first), &Value::Null));

    let read = api.ok("GET", &format!("{one}/_history/{second}?since={first}"), Value::Null).await.body;
    assert_eq!((&read["document"]["description"], &read["in_force"]), (&json!("2"), &json!(false)));
    assert_eq!(read["changes"]["since"], first);
    let mut before = api.ok("GET", &format!("{one}/_history/{first}"), Value::Null).await.body["document"].take();
    json_patch::patch(
        &mut before,
        &serde_json::from_value::<json_patch::Patch>(read["changes"]["patch"].clone()).unwrap(),
    )
    .unwrap();
    assert_eq!(before, read["document"], "the patch makes one of the other");

    let back = api.ok("POST", &format!("{one}/_revert"), json!({ "version": second })).await;
    assert_eq!((&back.body["description"], &back.body["tags"]), (&json!("2"), &json!(["x"])));
    let deleted = version(&api.ok("DELETE", one, Value::Null).await) + 2;
    assert_eq!(api.call("GET", one, None).await.status, 404);
    let actions = api.actions(one).await;
    let words: Vec<&str> = actions.iter().map(|(_, action)| action.as_str()).collect();
    assert_eq!(words, ["delete", "revert", "replace", "patch", "create"]);
    let deletion = api.ok("GET", &format!("{one}/_history/{}", actions[0].0), Value::Null).await.body;
    assert_eq!((&deletion["document"], &deletion["in_force"]), (&Value::Null, &json!(false)));
    // A deletion has no document, and what is gone has no revision that could match.
    let refused = api.call("POST", &format!("{one}/_revert"), Some(json!({ "version": actions[0].0 }))).await;
    assert_eq!((refused.status.as_u16(), &refused.body["errors"][0]["pointer"]), (400, &json!("/version")));
    let any = [("if-match", "*")];
    let refused = api.call_with("POST", &format!("{one}/_revert"), Some(json!({ "version": third })), &any).await;
    assert_eq!(refused.status, 412, "{}", refused.text);
    let back = api.ok("POST", &format!("{one}/_revert"), json!({ "version": third })).await;
    assert_eq!((version(&back), &back.body["description"]), (deleted, &json!("3")));
    assert_eq!(api.ok("GET", one, Value::Null).await.body, back.body);
    assert_eq!(api.actions(one).await[0], (deleted, "revert".to_owned()));
    let events = api.events().await;
    let last = events.last().unwrap();
    assert_eq!((&last["action"], &last["ref"]), (&json!("revert"), &json!("waf-rulesets/shop")));
    assert_eq!(last["detail"], format!("revision {deleted}, version {third}"));
    for missing in ["_history/999", "_history/x", "_history/-1"] {
        assert_eq!(api.call("GET", &format!("{one}/{missing}"), None).await.status, 404, "{missing}");
    }
    for (since, status) in [("x", 400), ("999", 404)] {
        let answer = api.call("GET", &format!("{one}/_history/{first}?since={since}"), None).await;
        assert_eq!(answer.status, status, "{since}");
    }
    let refused = api.call("POST", &format!("{one}/_revert"), Some(json!({ "version": 999 }))).await;
    assert_eq!((refused.status.as_u16(), &refused.body["error"]), (404, &json!("not_found")));
    let refused = api.call("POST", &format!("{one}/_revert"), Some(json!({ "versoin": 1 }))).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert_eq!(api.call("GET", "/waf-rulesets/never/_history", None).await.status, 404);
}

#[tokio::test]
async fn a_version_that_is_not_valid_any_more_is_refused() {
    let api = Api::new().await;
    api.ok("POST", "/waf-rulesets", json!({ "id": "base" })).await;
    let first = version(&api.ok("POST", "/waf-configs", json!({ "id": "shop", "rulesets": ["base"] })).await);
    api.ok("PATCH", "/waf-configs/shop", json!({ "rulesets": [] })).await;
    api.ok("DELETE", "/waf-rulesets/base", Value::Null).await;
    let before = api.ok("GET", "/waf-configs/shop", Value::Null).await;
    let refused = api.call("POST", "/waf-configs/shop/_revert", Some(json!({ "version": first }))).await;
    assert_eq!((refused.status.as_u16(), &refused.body["error"]), (400, &json!("invalid_entity")), "{}", refused.text);
    assert_eq!(refused.body["errors"][0]["pointer"], "/rulesets/0");
    let after = api.ok("GET", "/waf-configs/shop", Value::Null).await;
    assert_eq!((after.header("etag"), &after.body), (before.header("etag"), &before.body));
    assert_eq!(api.actions("/waf-configs/shop").await.len(), 2, "a refused revert is no version");
    // Once it is back, so can be what names it.
    let ruleset = api.actions("/waf-rulesets/base").await[1].0;
    api.ok("POST", "/waf-rulesets/base/_revert", json!({ "version": ruleset })).await;
    let stale = [("if-match", "\"1\"")];
    let body = json!({ "version": first });
    let refused = api.call_with("POST", "/waf-configs/shop/_revert", Some(body.clone()), &stale).await;
    assert_eq!(refused.status, 412, "{}", refused.text);
    let seen = [("if-match", after.header("etag"))];
    let back = api.call_with("POST", "/waf-configs/shop/_revert", Some(body), &seen).await;
    assert_eq!((back.status.as_u16(), &back.body["rulesets"]), (200, &json!(["base"])), "{}", back.text);
}

#[tokio::test]
async fn secrets_of_versions_are_kept_and_never_shown() {
    let api = Api::new().await;
    let one = "/threat-feeds/list";
    let feed = json!({ "id": "list", "enabled": false, "headers": { "Key": "planted-1", "Other": "planted-3" } });
    let mut answers = vec![api.ok("POST", "/threat-feeds", feed).await];
    let first = version(&answers[0]);
    answers.push(api.ok("PATCH", one, json!({ "headers": { "Key": "planted-2" } })).await);
    let second = version(&answers[1]);
    let read = api.ok("GET", &format!("{one}/_history/{second}?since={first}"), Value::Null).await;
    assert_eq!(read.body["document"]["headers"], json!({ "Key": MASK, "Other": MASK }));
    assert_eq!(read.body["changes"]["secrets"], json!(["/headers/Key"]));
    answers.push(read);
    answers.push(api.ok("GET", &format!("{one}/_history"), Value::Null).await);
    answers.push(api.ok("DELETE", one, Value::Null).await);
    answers.push(api.ok("GET", &format!("{one}/_history/{first}?since={second}"), Value::Null).await);
    answers.push(api.ok("POST", &format!("{one}/_revert"), json!({ "version": first })).await);
    for answer in &answers {
        assert!(!answer.text.contains("planted"), "{}", answer.text);
    }
    let events = Value::from(api.events().await).to_string();
    assert!(!events.contains("planted"), "{events}");
    let stored = EntitySet::load(api.state.store.as_ref()).await.unwrap();
    let stored = stored.slot("threat-feeds", "list").unwrap().entity.stored();
    assert_eq!(stored["headers"], json!({ "Key": "planted-1", "Other": "planted-3" }), "those of the version");
}

#[tokio::test]
async fn every_kind_of_change_is_a_version() {
    let api = Api::new().await;
    // A singleton has none until it is written.
    assert!(api.actions("/global-config/global-config").await.is_empty());
    api.ok("PATCH", "/global-config/global-config", json!({ "description": "1" })).await;
    assert_eq!(api.actions("/global-config/global-config").await.len(), 1);
    let lines = [
        json!({ "op": "create", "collection": "waf-rulesets", "entity": { "id": "a" } }),
        json!({ "op": "patch", "collection": "waf-rulesets", "id": "a", "patch": { "description": "2" } }),
        json!({ "op": "create", "collection": "waf-rulesets", "entity": { "id": "b" } }),
        json!({ "op": "delete", "collection": "waf-rulesets", "id": "b" }),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n");
    let answer = api.raw("POST", "/_bulk", "application/x-ndjson", &lines).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(api.actions("/waf-rulesets/a").await, [(2, "create".to_owned())], "one change, one version");
    let list = api.ok("GET", "/waf-rulesets/a/_history", Value::Null).await.body;
    assert_eq!(list[0]["detail"], "_bulk");
    assert_eq!(api.call("GET", "/waf-rulesets/b/_history", None).await.status, 404, "it never was");
    let read = api.ok("GET", "/waf-rulesets/a/_history/2", Value::Null).await.body;
    assert_eq!(read["document"]["description"], "2");
    // A dry run is none.
    let delete = json!({ "op": "delete", "collection": "waf-rulesets", "id": "a" }).to_string();
    api.raw("POST", "/_bulk?dry_run=true", "application/x-ndjson", &delete).await;
    assert_eq!(api.actions("/waf-rulesets/a").await.len(), 1);
}

#[tokio::test]
async fn a_version_of_another_release_is_not_shown_and_not_written() {
    let api = Api::new().await;
    let store = &api.state.store;
    let newer = json!({ "id": "shop", "enabled": "planted" }).to_string();
    assert_eq!(store.entity_put("waf-rulesets", "shop", newer, 0).await, Ok(1));
    assert_eq!(store.entity_put("waf-rulesets", "shop", json!({ "id": "shop" }).to_string(), 1).await, Ok(2));
    let read = api.ok("GET", "/waf-rulesets/shop/_history/1?since=2", Value::Null).await;
    assert_eq!((&read.body["document"], &read.body["changes"]), (&Value::Null, &Value::Null));
    assert_eq!(read.body["problems"][0]["pointer"], "/enabled");
    assert_eq!((&read.body["author"], &read.body["at"]), (&Value::Null, &Value::Null), "not known");
    assert!(!read.text.contains("planted"), "{}", read.text);
    let refused = api.call("POST", "/waf-rulesets/shop/_revert", Some(json!({ "version": 1 }))).await;
    assert_eq!((refused.status.as_u16(), &refused.body["errors"][0]["pointer"]), (400, &json!("/enabled")));
    assert!(!refused.text.contains("planted"), "{}", refused.text);
}

#[tokio::test]
async fn deleted_entities_are_listed_until_they_are_there_again() {
    let api = Api::new().await;
    let list = async |query: &str| api.ok("GET", &format!("/waf-rulesets/_deleted{query}"), Value::Null).await;
    let ids = |list: &Answer| {
        let list = list.body.as_array().unwrap().iter();
        list.map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list("").await.body, json!([]));
    for id in ["a", "b", "c"] {
        api.ok("POST", "/waf-rulesets", json!({ "id": id, "description": id })).await;
    }
    let last = version(&api.ok("PATCH", "/waf-rulesets/a", json!({ "description": "last" })).await);
    for id in ["b", "a"] {
        api.ok("DELETE", &format!("/waf-rulesets/{id}"), Value::Null).await;
    }
    let all = list("").await;
    assert_eq!((all.header("x-pages"), ids(&all)), ("1", vec!["a".to_owned(), "b".to_owned()]), "the last one first");
    let newest = &all.body[0];
    assert_eq!((&newest["last_version"], &newest["action"]), (&json!(last), &json!("delete")));
    assert_eq!((&newest["version"], &newest["author"]["name"]), (&json!(last + 2), &json!("test")));
    let page = list("?page=2&pageSize=1").await;
    assert_eq!((page.header("x-pages"), ids(&page)), ("2", vec!["b".to_owned()]));
    let page = list("?pageSize=1").await;
    assert_eq!((page.header("x-pages"), ids(&page)), ("2", vec!["a".to_owned()]));
    assert_eq!(api.ok("GET", "/waf-configs/_deleted", Value::Null).await.body, json!([]), "another collection");
    for (path, status) in [("/waf-rulesets/_deleted?page=0", 400), ("/waf-ruleset/_deleted", 404)] {
        assert_eq!(api.call("GET", path, None).await.status, status, "{path}");
    }
    let back = api.ok("POST", "/waf-rulesets/a/_revert", json!({ "version": newest["last_version"] })).await;
    assert_eq!(back.body["description"], "last");
    assert_eq!(ids(&list("").await), ["b"]);
    api.ok("DELETE", "/waf-rulesets/a", Value::Null).await;
    let again = list("").await;
    assert_eq!(
        (ids(&again), &again.body[0]["last_version"]),
        (vec!["a".to_owned(), "b".to_owned()], &json!(version(&back)))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_and_reverts_at_once_are_versions_one_after_the_other() {
    let api = Arc::new(Api::new().await);
    let first = version(&api.ok("POST", "/waf-rulesets", json!({ "id": "shop", "description": "first" })).await);
    let mut writers = JoinSet::new();
    for number in 0..30 {
        let api = Arc::clone(&api);
        writers.spawn(async move {
            let answer = if number % 3 == 0 {
                api.ok("POST", "/waf-rulesets/shop/_revert", json!({ "version": first })).await
            } else {
                api.ok("PATCH", "/waf-rulesets/shop", json!({ "description": number.to_string() })).await
            };
            (version(&answer), answer.body)
        });
    }
    let written = writers.join_all().await;
    let numbers: BTreeSet<u64> = written.iter().map(|(version, _)| *version).collect();
    let listed: BTreeSet<u64> = api.actions("/waf-rulesets/shop").await.iter().map(|(version, _)| *version).collect();
    assert_eq!((numbers.len(), listed.len()), (30, 31));
    for (version, document) in written {
        let read = api.ok("GET", &format!("/waf-rulesets/shop/_history/{version}"), Value::Null).await.body;
        assert_eq!(read["document"], document, "{version}");
    }
}
