//! Many changes in one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::entities_support::{Answer, Api};
use api::rest::RestConfig;
use compiler::{Compiler, Settings};
use entities::{Admission, EntityRef, EntitySet, FieldProblem};
use serde_json::{Value, json};
use store::SqliteOptions;

async fn bulk(api: &Api, method: &str, path: &str, lines: &[Value]) -> (Answer, Vec<Value>) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    send(api, method, path, &text).await
}

async fn send(api: &Api, method: &str, path: &str, text: &str) -> (Answer, Vec<Value>) {
    let answer = api.raw(method, path, "application/x-ndjson", text).await;
    let results = answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (answer, results)
}

fn statuses(results: &[Value]) -> Vec<u64> {
    results.iter().map(|result| result["status"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn each_line_stands_alone_and_all_share_one_revision() {
    let api = Api::new().await;
    let mut changes = api.state.entities.subscribe();
    let text =
        "{\"id\": \"a\"}\n\n{\"id\": }\n{\"id\": \"a\"}\n{\"enabled\": \"yes\", \"id\": \"b\"}\r\n{\"name\": \"n\"}";
    let (answer, results) = send(&api, "POST", "/waf-rulesets/_bulk", text).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/x-ndjson"));
    assert_eq!(statuses(&results), [201, 400, 409, 400, 201], "{}", answer.text);
    assert_eq!(results[0], json!({"status": 201, "etag": "\"1\"", "id": "a"}));
    assert_eq!(results[1]["error"], "invalid_json");
    assert_eq!(results[1]["error_description"], "line 3 column 8: not JSON: expected value");
    assert_eq!((&results[2]["error"], &results[2]["id"]), (&json!("conflict"), &json!("a")));
    assert_eq!((&results[3]["pointer"], &results[3]["error"]), (&json!("/enabled"), &json!("invalid_entity")));
    assert!(results[4]["id"].as_str().unwrap().starts_with("waf-ruleset_"), "{}", answer.text);
    assert!(changes.has_changed().unwrap());
    assert_eq!(changes.borrow_and_update().revision(), 1);
    assert_eq!(api.call("GET", "/waf-rulesets/a", None).await.header("etag"), "\"1\"");
    let events = api.events().await;
    let told: Vec<_> = events.iter().map(|event| (event["action"].clone(), event["detail"].clone())).collect();
    assert_eq!(told, vec![(json!("create"), json!("revision 1")); 2]);

    // A line may name one before it, and not one after it.
    let lines = [json!({"id": "c", "rulesets": ["a"]}), json!({"id": "d", "rulesets": ["later"]})];
    let (_, results) = bulk(&api, "POST", "/waf-configs/_bulk", &lines).await;
    assert_eq!(statuses(&results), [201, 400]);
    assert_eq!(results[1]["pointer"], "/rulesets/0");

    let patches = [json!({"id": "a", "name": "A"}), json!({"name": "nobody"}), json!({"id": "x", "name": "X"})];
    let (_, results) = bulk(&api, "PATCH", "/waf-rulesets/_bulk", &patches).await;
    assert_eq!(statuses(&results), [200, 400, 404]);
    assert_eq!(results[1]["pointer"], "/id");
    assert_eq!(api.call("GET", "/waf-rulesets/a", None).await.body["name"], "A");
    let (_, results) = bulk(&api, "PUT", "/waf-rulesets/_bulk", &[json!({"id": "a", "description": "whole"})]).await;
    assert_eq!(statuses(&results), [200]);
    assert_eq!(api.call("GET", "/waf-rulesets/a", None).await.body["name"], "");

    // What is still named is kept, and everything else goes.
    let (_, results) = bulk(&api, "DELETE", "/waf-rulesets/_bulk", &[json!({"id": "a"}), json!({"id": "gone"})]).await;
    assert_eq!(statuses(&results), [409, 404], "{results:?}");
    assert!(results[0]["error_description"].as_str().unwrap().contains("waf-configs/c names it at /rulesets/0"));
    let (_, results) = bulk(&api, "DELETE", "/global-config/_bulk", &[json!({"id": "global-config"})]).await;
    assert_eq!(statuses(&results), [409]);
}

#[tokio::test]
async fn an_atomic_batch_is_written_as_a_whole_and_in_any_order_of_names() {
    let api = Api::new().await;
    let op = |op: &str, collection: &str, entity: Value| json!({"op": op, "collection": collection, "entity": entity});
    let lines = [
        op("create", "waf-configs", json!({"id": "c", "rulesets": ["base"]})),
        op("create", "waf-rulesets", json!({"id": "base"})),
        op("update", "global-config", json!({"id": "global-config", "gateway": {"port": 8080}})),
    ];
    let dry = bulk(&api, "POST", "/_bulk?atomic=true&dry_run=true", &lines).await;
    assert_eq!((dry.0.status.as_u16(), statuses(&dry.1)), (200, vec![201, 201, 200]), "{}", dry.0.text);
    assert_eq!(api.state.entities.current().revision(), 0, "a dry run writes nothing");
    assert!(api.events().await.is_empty());

    let (answer, results) = bulk(&api, "POST", "/_bulk?atomic=true", &lines).await;
    assert_eq!((answer.status.as_u16(), statuses(&results)), (200, vec![201, 201, 200]));
    assert_eq!(results[1], json!({"status": 201, "etag": "\"1\"", "id": "base", "collection": "waf-rulesets"}));
    assert_eq!(api.state.store.entities().await.unwrap().revision, 1);

    // One stale line refuses all.
    let lines = [
        json!({"op": "patch", "collection": "waf-configs", "id": "c", "patch": {"name": "C"}, "if_match": "\"1\""}),
        json!({"op": "patch", "collection": "waf-rulesets", "id": "base", "if_match": "\"7\"",
               "patch": [{"op": "replace", "path": "/name", "value": "B"}]}),
        json!({"op": "create", "collection": "waf-rulesets", "entity": {"id": "new"}}),
    ];
    let (answer, results) = bulk(&api, "POST", "/_bulk?atomic=true", &lines).await;
    assert_eq!((answer.status.as_u16(), statuses(&results)), (412, vec![424, 412, 424]), "{}", answer.text);
    assert_eq!(results[0]["error"], "not_applied");
    let (answer, results) = send(&api, "POST", "/_bulk?atomic=true", &format!("{}\n{{\"op\"", lines[0])).await;
    assert_eq!((answer.status.as_u16(), statuses(&results)), (400, vec![424, 400]), "{}", answer.text);
    assert!(results[1]["error_description"].as_str().unwrap().starts_with("line 2 column 5: not JSON"));
    assert_eq!(api.state.store.entities().await.unwrap().revision, 1);

    // Deleting what is named: refused alone, done together with the one that names it.
    let delete = |collection: &str, id: &str| json!({"op": "delete", "collection": collection, "id": id});
    let alone = [delete("waf-rulesets", "base")];
    let (answer, results) = bulk(&api, "POST", "/_bulk?atomic=true", &alone).await;
    assert_eq!((answer.status.as_u16(), statuses(&results)), (409, vec![409]));
    let both = [delete("waf-rulesets", "base"), delete("waf-configs", "c")];
    let (answer, _) = bulk(&api, "POST", "/_bulk?atomic=true", &both).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(api.call("GET", "/waf-rulesets", None).await.body, json!([]));
}

#[tokio::test]
async fn lines_that_ask_for_nothing_sensible_are_named() {
    let api = Api::new().await;
    for (line, pointer, part) in [
        (json!({"op": "jump", "collection": "routes"}), "/op", "unknown value `jump`"),
        (json!({"op": "create", "collection": "route"}), "/collection", "did you mean `routes`?"),
        (json!({"op": "create", "collection": "routes"}), "/entity", "`entity`"),
        (json!({"op": "update", "collection": "routes", "entity": {}}), "/id", "which entity"),
        (json!({"op": "delete", "collection": "routes", "id": "a", "entity": {}}), "", "neither"),
        (json!({"op": "delete", "collection": "routes", "id": "a", "if_match": "7"}), "/if_match", "entity tag"),
        (json!({"op": "patch", "collection": "routes", "id": "a", "entity": {}}), "/patch", "`patch`"),
        (json!([]), "", ""),
    ] {
        let (_, results) = bulk(&api, "POST", "/_bulk", std::slice::from_ref(&line)).await;
        assert_eq!(
            (results[0]["status"].as_u64(), results[0]["pointer"].as_str()),
            (Some(400), Some(pointer)),
            "{line}: {results:?}"
        );
        assert!(results[0]["error_description"].as_str().unwrap().contains(part), "{line}: {results:?}");
    }
    for (method, path, content_type, body, status, error) in [
        ("POST", "/routes/_bulk", "application/json", "{}", 415, "unsupported_media_type"),
        ("POST", "/routes/_bulk", "application/x-ndjson", " \n\n", 400, "invalid_body"),
        ("POST", "/rotes/_bulk", "application/x-ndjson", "{}", 404, "not_found"),
        ("GET", "/routes/_bulk", "application/x-ndjson", "", 405, "method_not_allowed"),
    ] {
        let answer = api.raw(method, path, content_type, body).await;
        assert_eq!((answer.status.as_u16(), answer.body["error"].as_str()), (status, Some(error)), "{}", answer.text);
    }
    let many = "{}\n".repeat(10_001);
    let (answer, results) = send(&api, "POST", "/routes/_bulk", &many).await;
    assert_eq!((answer.status.as_u16(), results[0]["error"].as_str()), (413, Some("too_many_lines")));
    let small = Api::with(SqliteOptions::default(), RestConfig { max_body_bytes: 4096, ..RestConfig::default() }).await;
    let (answer, results) = send(&small, "POST", "/routes/_bulk", &many).await;
    assert_eq!((answer.status.as_u16(), results[0]["error"].as_str()), (413, Some("payload_too_large")));
    assert_eq!(api.state.entities.current().revision(), 0);
}

/// Counts how often it is asked, and refuses by tag.
#[derive(Default)]
struct Judge {
    asked: AtomicUsize,
}

impl Admission for Judge {
    fn admit(&self, _: &EntitySet, _: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>> {
        Ok(Vec::new())
    }

    fn admit_all(&self, set: &EntitySet, _: &[EntityRef]) -> Result<Vec<entities::Warning>, Vec<entities::Refusal>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        // A judge that never knows which line is at fault.
        let bad = set.all::<waf::control::WafRuleset>().any(|ruleset| ruleset.head.tags.contains(&"bad".to_owned()));
        if bad {
            Err(vec![(None, FieldProblem::new("", "something is bad"))])
        } else {
            Ok(vec![(None, "beware".to_owned())])
        }
    }
}

#[tokio::test]
async fn what_the_judges_refuse_is_left_out_and_all_else_is_judged_at_once() {
    let api = Api::new().await;
    let judge = Arc::new(Judge::default());
    api.state.entities.add_admission(Arc::clone(&judge) as Arc<dyn Admission>);
    let line =
        |index: usize, bad: bool| json!({"id": format!("r{index}"), "tags": if bad { vec!["bad"] } else { vec![] }});
    let fine: Vec<Value> = (0..100).map(|index| line(index, false)).collect();
    let (answer, results) = bulk(&api, "POST", "/waf-rulesets/_bulk", &fine).await;
    assert_eq!(statuses(&results), [201; 100]);
    assert_eq!((judge.asked.swap(0, Ordering::SeqCst), answer.header("x-palisade-warnings")), (1, "[\"beware\"]"));

    let mixed: Vec<Value> = (100..200).map(|index| line(index, index == 103 || index == 177)).collect();
    let (_, results) = bulk(&api, "POST", "/waf-rulesets/_bulk", &mixed).await;
    let refused: Vec<usize> = (0..100).filter(|index| results[*index]["status"] != 201).collect();
    assert_eq!(refused, [3, 77]);
    assert_eq!(results[3]["error_description"], "something is bad");
    assert!(judge.asked.load(Ordering::SeqCst) < 40, "judged {} times", judge.asked.load(Ordering::SeqCst));
    assert_eq!(api.call("GET", "/waf-rulesets/_count", None).await.body["count"], 198);
    assert_eq!(api.state.store.entities().await.unwrap().revision, 2);

    let (answer, results) =
        bulk(&api, "POST", "/waf-rulesets/_bulk?atomic=true", &[line(900, false), line(901, true)]).await;
    assert_eq!((answer.status.as_u16(), statuses(&results)), (400, vec![400, 400]), "{}", answer.text);
}

#[tokio::test]
async fn lines_that_are_all_bad_are_not_judged_one_by_one() {
    let api = Api::new().await;
    let judge = Arc::new(Judge::default());
    api.state.entities.add_admission(Arc::clone(&judge) as Arc<dyn Admission>);
    let lines: Vec<Value> = (0..2000).map(|index| json!({"id": format!("r{index}"), "tags": ["bad"]})).collect();
    let (_, results) = bulk(&api, "POST", "/waf-rulesets/_bulk?dry_run=true", &lines).await;
    assert_eq!(statuses(&results), [400; 2000]);
    assert_eq!(results[1999]["error_description"], "something is bad");
    let asked = judge.asked.load(Ordering::SeqCst);
    assert!(asked < 500, "judged {asked} times");
}

/// A judge that takes its time with what it is to find slow.
struct SlowJudge {
    begun: tokio::sync::Notify,
    end: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Admission for SlowJudge {
    fn admit(&self, _: &EntitySet, _: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>> {
        Ok(Vec::new())
    }

    fn admit_all(&self, set: &EntitySet, _: &[EntityRef]) -> Result<Vec<entities::Warning>, Vec<entities::Refusal>> {
        if set.all::<waf::control::WafRuleset>().any(|ruleset| ruleset.head.id == "slow") {
            self.begun.notify_one();
            let _ = self.end.lock().unwrap().recv();
        }
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn a_batch_that_is_only_tried_holds_up_no_write() {
    let api = Api::new().await;
    let (end, ended) = std::sync::mpsc::channel();
    let judge = Arc::new(SlowJudge { begun: tokio::sync::Notify::new(), end: std::sync::Mutex::new(ended) });
    api.state.entities.add_admission(Arc::clone(&judge) as Arc<dyn Admission>);
    let lines = [json!({"id": "slow"})];
    let tried = bulk(&api, "POST", "/waf-rulesets/_bulk?dry_run=true", &lines);
    let meanwhile = async {
        judge.begun.notified().await;
        let written = api.call("POST", "/waf-rulesets", Some(json!({"id": "quick"}))).await;
        end.send(()).unwrap();
        written
    };
    let ((_, results), written) = tokio::join!(tried, meanwhile);
    assert_eq!((statuses(&results), written.status.as_u16()), (vec![201], 201), "{}", written.text);
    assert_eq!(api.call("GET", "/waf-rulesets/_count", None).await.body["count"], 1);
}

#[tokio::test]
async fn patches_of_a_batch_copy_no_more_than_one_batch_may() {
    let api = Api::new().await;
    let double = |times: usize| {
        let copies =
            (0..times).map(|at| json!({"op": "copy", "from": "/metadata/m", "path": format!("/metadata/m/c{at}")}));
        let first = json!({"op": "add", "path": "/metadata/m", "value": {"l": vec![Value::Null; 1000]}});
        Value::Array([first].into_iter().chain(copies).collect())
    };
    let line =
        |id: String, times| json!({"op": "patch", "collection": "waf-rulesets", "id": id, "patch": double(times)});
    let made: Vec<Value> = (0..40).map(|at| json!({"id": format!("r{at}")})).collect();
    assert_eq!(statuses(&bulk(&api, "POST", "/waf-rulesets/_bulk", &made).await.1), [201; 40]);
    let lines: Vec<Value> = (0..40).map(|at| line(format!("r{at}"), if at == 0 { 13 } else { 5 })).collect();
    let (_, results) = bulk(&api, "POST", "/_bulk?dry_run=true", &lines).await;
    assert_eq!((&results[0]["status"], &results[0]["error"]), (&json!(400), &json!("invalid_patch")), "{}", results[0]);
    assert_eq!(results[1]["status"], 200, "{}", results[1]);
    assert_eq!(results[39]["error"], "invalid_patch", "{}", results[39]);
}

#[tokio::test]
async fn rules_that_do_not_compile_name_their_line() {
    let api = Api::new().await;
    api.state.entities.add_admission(Arc::new(Compiler::new(Settings::default())));
    let lines = [
        json!({"id": "a", "rules": ["SecRuleEngine On"]}),
        json!({"id": "b", "rules": ["SecRul ARGS \"@rx x\" \"id:1\""]}),
        json!({"id": "c", "rules": ["SecRule ARGS \"@rx (\" \"id:2\""]}),
        json!({"id": "d"}),
    ];
    let (_, results) = bulk(&api, "POST", "/waf-rulesets/_bulk", &lines).await;
    assert_eq!(statuses(&results), [201, 400, 400, 201], "{results:?}");
    assert_eq!((&results[1]["pointer"], &results[2]["pointer"]), (&json!("/rules/0"), &json!("/rules/0")));
    let (answer, results) = bulk(
        &api,
        "PUT",
        "/waf-rulesets/_bulk?atomic=true",
        &[lines[0].clone(), json!({"id": "d", "rules": ["SecRul"]})],
    )
    .await;
    assert_eq!((answer.status.as_u16(), statuses(&results)), (400, vec![424, 400]), "{results:?}");
}

#[tokio::test]
async fn a_full_disk_refuses_the_whole_batch() {
    let api = Api::with(SqliteOptions { max_pages: Some(82), ..SqliteOptions::default() }, RestConfig::default()).await;
    let line = |index: usize| json!({"id": format!("r{index}"), "description": "x".repeat(4000)});
    let few: Vec<Value> = (0..5).map(line).collect();
    assert_eq!(statuses(&bulk(&api, "POST", "/waf-rulesets/_bulk", &few).await.1), [201; 5]);
    let many: Vec<Value> = (5..205).map(line).collect();
    for path in ["/waf-rulesets/_bulk", "/waf-rulesets/_bulk?atomic=true"] {
        let (_, results) = bulk(&api, "POST", path, &many).await;
        assert_eq!(statuses(&results), [507; 200]);
        assert_eq!(results[0]["error"], "insufficient_storage");
    }
    assert_eq!(api.call("GET", "/waf-rulesets/_count", None).await.body["count"], 5);
    assert_eq!(api.state.store.entities().await.unwrap().rows.len(), 5);
}

/// Refuses everything and does not say why.
struct Silent;

impl Admission for Silent {
    fn admit(&self, _: &EntitySet, _: &EntityRef) -> Result<Vec<String>, Vec<FieldProblem>> {
        Err(Vec::new())
    }

    fn admit_all(&self, _: &EntitySet, _: &[EntityRef]) -> Result<Vec<entities::Warning>, Vec<entities::Refusal>> {
        Err(Vec::new())
    }
}

#[tokio::test]
async fn a_refusal_without_a_reason_is_a_refusal() {
    let api = Api::new().await;
    api.state.entities.add_admission(Arc::new(Silent));
    let lines = [json!({"id": "a"}), json!({"id": "b"}), json!({"id": "c"})];
    for path in ["/waf-rulesets/_bulk", "/waf-rulesets/_bulk?atomic=true"] {
        let (_, results) = bulk(&api, "POST", path, &lines).await;
        assert_eq!(statuses(&results), [400; 3], "{path}");
    }
    assert_eq!(api.state.entities.current().revision(), 0);
}
