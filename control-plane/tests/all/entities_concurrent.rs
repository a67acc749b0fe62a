//! Many writers at a time: each gets its own answer, and a tag stands for one state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::entities_support::Api;
use axum::http::StatusCode;
use entities::EntitySet;
use serde_json::json;
use tokio::task::JoinSet;

/// Writers at a time.
const WRITERS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn nobody_overwrites_what_he_has_not_seen() {
    let api = Arc::new(Api::new().await);
    let body = json!({ "id": "shared", "description": "0" });
    assert_eq!(api.call("POST", "/waf-rulesets", Some(body)).await.status, StatusCode::CREATED);
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let api = Arc::clone(&api);
        // Each adds one, as often as it takes until nobody was faster.
        writers.spawn(async move {
            loop {
                let seen = api.call("GET", "/waf-rulesets/shared", None).await;
                let next = seen.body["description"].as_str().unwrap().parse::<usize>().unwrap() + 1;
                let change = json!({ "description": next.to_string() });
                let tag = [("if-match", seen.header("etag"))];
                let put = api.call_with("PATCH", "/waf-rulesets/shared", Some(change), &tag).await;
                match put.status {
                    StatusCode::OK => return (put.header("etag").to_owned(), put.body["description"].clone(), next),
                    StatusCode::PRECONDITION_FAILED => {}
                    other => panic!("{other}: {}", put.text),
                }
            }
        });
    }
    let written = writers.join_all().await;
    for (_, description, next) in &written {
        assert_eq!(description, &json!(next.to_string()));
    }
    let tags: BTreeSet<_> = written.iter().map(|(tag, ..)| tag).collect();
    assert_eq!(tags.len(), WRITERS, "each state has a tag of its own");
    let last = api.call("GET", "/waf-rulesets/shared", None).await;
    assert_eq!(last.body["description"], WRITERS.to_string(), "none was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_writer_is_answered_for_itself() {
    let api = Arc::new(Api::new().await);
    let mut writers = JoinSet::new();
    for number in 0..WRITERS * 3 {
        let api = Arc::clone(&api);
        writers.spawn(async move {
            let id = format!("r{}", number / 3);
            let answer = match number % 3 {
                // Two that want the same id, and one that is wrong.
                2 => api.call("POST", "/waf-rulesets", Some(json!({ "id": format!("{id}x"), "enabled": "no" }))).await,
                which => {
                    let body = json!({ "id": id, "description": which.to_string() });
                    api.call("POST", "/waf-rulesets", Some(body)).await
                }
            };
            (id, number % 3, answer)
        });
    }
    let mut created: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, which, answer) in writers.join_all().await {
        match (which, answer.status) {
            (0 | 1, StatusCode::CREATED) => {
                assert_eq!(answer.body["description"], which.to_string(), "an answer of another one");
                created.entry(id).or_default().push(which.to_string());
            }
            (0 | 1, StatusCode::CONFLICT) => {}
            (2, StatusCode::BAD_REQUEST) => assert_eq!(answer.body["errors"][0]["pointer"], "/enabled"),
            other => panic!("{other:?}: {}", answer.text),
        }
    }
    assert_eq!(created.len(), WRITERS);
    let stored = EntitySet::load(api.state.store.as_ref()).await.unwrap();
    for (id, winners) in &created {
        assert_eq!(winners.len(), 1, "{id}");
        assert_eq!(&stored.slot("waf-rulesets", id).unwrap().entity.head().description, &winners[0], "{id}");
    }
    let list = api.call("GET", "/waf-rulesets/_count", None).await;
    assert_eq!(list.body["count"], WRITERS, "what was refused is not there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_stands_for_one_state() {
    let api = Arc::new(Api::new().await);
    let body = json!({ "id": "shared" });
    assert_eq!(api.call("POST", "/waf-rulesets", Some(body)).await.status, StatusCode::CREATED);
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let api = Arc::clone(&api);
        writers.spawn(async move {
            let change = json!({ "description": number.to_string() });
            api.call("PATCH", "/waf-rulesets/shared", Some(change)).await
        });
    }
    let tags: BTreeSet<String> =
        writers.join_all().await.iter().map(|answer| answer.header("etag").to_owned()).collect();
    assert_eq!(tags.len(), WRITERS);
}
