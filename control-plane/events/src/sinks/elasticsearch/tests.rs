use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::queue::Queue;
use crate::sinks::{Backoff, Formatted, Notices, Then, run};
use crate::{Audit, AuditAction, EventFormat, dependency};

/// A cluster: creates documents by their id as the bulk API does, refuses and fails those that say so, and takes no request above a number
/// of events.
#[derive(Clone, Default)]
struct Cluster {
    documents: Arc<Mutex<BTreeMap<String, Value>>>,
    /// How often a document is still failed, by its id.
    failing: Arc<Mutex<HashMap<String, u32>>>,
    most: usize,
    paths: Arc<Mutex<Vec<String>>>,
    /// Answers of whole requests, before all others.
    answers: Arc<Mutex<Vec<(u16, String)>>>,
}

async fn bulk(State(cluster): State<Cluster>, uri: Uri, body: String) -> axum::response::Response {
    cluster.paths.lock().unwrap().push(uri.to_string());
    if let Some((status, body)) = cluster.answers.lock().unwrap().pop() {
        return (StatusCode::from_u16(status).unwrap(), body).into_response();
    }
    let lines: Vec<&str> = body.lines().collect();
    assert!(body.ends_with('\n') && lines.len().is_multiple_of(2), "{body}");
    if lines.len() / 2 > cluster.most {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    let mut items = Vec::new();
    for pair in lines.chunks(2) {
        let action: Value = serde_json::from_str(pair[0]).unwrap();
        let id = action["create"]["_id"].as_str().unwrap_or_default().to_owned();
        let document: Value = serde_json::from_str(pair[1]).unwrap();
        let mut failing = cluster.failing.lock().unwrap();
        let left = failing.entry(id.clone()).or_default();
        let status = if *left > 0 {
            *left -= 1;
            429
        } else if document["threat"]["score"].is_string() {
            400
        } else {
            match cluster.documents.lock().unwrap().entry(id) {
                Entry::Occupied(_) => 409,
                Entry::Vacant(place) => {
                    place.insert(document);
                    201
                }
            }
        };
        let mut item = json!({ "status": status });
        if status >= 400 {
            item["error"] = json!({ "type": "some_exception", "reason": format!("the reason of {status}") });
        }
        items.push(json!({ "create": item }));
    }
    axum::Json(json!({ "errors": true, "items": items })).into_response()
}

async fn serve(most: usize) -> (Cluster, String) {
    let cluster = Cluster { most, ..Cluster::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(bulk).with_state(cluster.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (cluster, url)
}

fn options(url: &str) -> ServerOptions {
    ServerOptions { url: url.parse().unwrap(), headers_file: None, ca_file: None, timeout: Duration::from_secs(60) }
}

fn sink(url: &str) -> Elasticsearch {
    Elasticsearch::new(options(url), EventFormat::Ecs.data_stream()).unwrap()
}

fn events(count: u32) -> Vec<Line> {
    let event =
        |number| json!({ "@type": "SvcSecurityEvent", "@id": format!("e{number:04}"), "threat": { "score": 1 } });
    (0..count).map(|number| event(number).to_string().as_bytes().into()).collect()
}

#[tokio::test]
async fn each_event_is_created_once_under_its_id_with_the_fields_of_the_schema() {
    let (cluster, url) = serve(500).await;
    let mut sink = sink(&format!("{url}/prefix/"));
    assert_eq!(sink.write(&events(3)).await, Ok(()));
    // The answer was lost, and all of it comes again.
    assert_eq!(sink.write(&events(4)).await, Ok(()));
    assert_eq!(cluster.documents.lock().unwrap().len(), 4);
    let audit = Audit::new(AuditAction::Ban).of("ip:192.0.2.1".to_owned()).note(7);
    let trouble = dependency(7, "store", Some("edge-1"), "it fails").to_string();
    assert_eq!(sink.write(&[audit.as_bytes().into(), trouble.as_bytes().into()]).await, Ok(()));
    let documents = cluster.documents.lock().unwrap().clone();
    let audit = documents.values().find(|event| event["@type"] == "SvcWafSecurityAudit").unwrap();
    assert_eq!((&audit["event"]["action"], &audit["event"]["id"]), (&json!("ban"), &audit["@id"]));
    let trouble = documents.values().find(|event| event["event"]["category"] == "dependency").unwrap();
    assert_eq!((&trouble["observer"]["name"], &trouble["ecs"]["version"]), (&json!("edge-1"), &json!("8.17.0")));
    let path = cluster.paths.lock().unwrap()[0].clone();
    assert!(path.starts_with("/prefix/logs-palisade.events-default/_bulk?filter_path="), "{path}");
}

#[tokio::test]
async fn events_in_ocsf_have_their_id_and_a_time_for_the_data_stream() {
    let (cluster, url) = serve(500).await;
    let mut sink = Formatted::new(sink(&url), EventFormat::Ocsf);
    for _ in 0..2 {
        assert_eq!(sink.write(&events(2)).await, Ok(()));
    }
    let documents = cluster.documents.lock().unwrap().clone();
    assert_eq!(documents.keys().collect::<Vec<_>>(), ["e0000", "e0001"]);
    let document = &documents["e0000"];
    assert_eq!(
        (&document["metadata"]["uid"], &document["class_uid"], &document["ecs"]),
        (&json!("e0000"), &json!(2004), &Value::Null)
    );
    let time = base::clock::rfc3339_millis(document["@timestamp"].as_str().unwrap());
    assert_eq!(time, document["time"].as_u64());
}

#[tokio::test]
async fn what_fails_comes_again_and_what_is_refused_is_counted() {
    let (cluster, url) = serve(500).await;
    cluster.failing.lock().unwrap().insert("e0002".to_owned(), 3);
    let queue = Arc::new(Queue::new("test".to_owned(), Bounds { lines: 1000, bytes: 1 << 20 }));
    let mut lines = events(6);
    lines[4] = r#"{"@id":"bad","threat":{"score":"many"}}"#.as_bytes().into();
    lines.into_iter().for_each(|line| queue.push(line));
    let backoff = Backoff::new(Duration::from_micros(1), Duration::from_micros(1), || 1.0);
    let task = tokio::spawn(run(sink(&url), Arc::clone(&queue), backoff, Notices { others: Vec::new(), clock: || 0 }));
    queue.drained().await;
    task.abort();
    let figures = queue.figures();
    assert_eq!((figures.written, figures.dropped), (5, 1), "{figures:?}");
    assert!(figures.error.unwrap().contains("400, some_exception: the reason of 400"));
    assert_eq!(cluster.documents.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_divided() {
    let (cluster, url) = serve(60).await;
    let mut sink = sink(&url);
    assert_eq!(sink.write(&events(500)).await, Ok(()));
    assert_eq!((cluster.documents.lock().unwrap().len(), sink.parts.most()), (500, 31));
    let (_, url) = serve(0).await;
    let failure = self::sink(&url).write(&events(2)).await.unwrap_err();
    assert_eq!((failure.written, failure.refused, failure.then), (2, 2, Then::Drop), "{failure:?}");
}

#[tokio::test]
async fn an_answer_that_says_nothing_is_no_success() {
    let (cluster, url) = serve(500).await;
    let cases = [
        (200, "{}", Then::Retry(None)),
        (200, r#"{"errors":false,"items":[]}"#, Then::Retry(None)),
        (200, "<html>", Then::Retry(None)),
        (401, "{}", Then::Retry(None)),
        (403, "{}", Then::Retry(None)),
        (404, "{}", Then::Retry(None)),
        (503, "{}", Then::Retry(None)),
        (400, "{}", Then::Drop),
    ];
    for (status, body, then) in cases {
        cluster.answers.lock().unwrap().push((status, body.to_owned()));
        let failure = sink(&url).write(&events(2)).await.unwrap_err();
        assert_eq!((failure.written, failure.refused, failure.then), (0, 0, then), "{status} {body}");
    }
    // One that is too long, as reasons may be that quote events: fewer events are asked about.
    let too_long = || cluster.answers.lock().unwrap().push((200, "x".repeat(MAX_ANSWER + 1)));
    too_long();
    assert_eq!(sink(&url).write(&events(2)).await, Ok(()));
    assert_eq!(cluster.documents.lock().unwrap().len(), 2);
    (0..2).for_each(|_| too_long());
    assert_eq!(sink(&url).write(&events(2)).await.unwrap_err().then, Then::Retry(None), "also of one event");
}

#[test]
fn what_is_no_address_or_no_name_is_said_before_anything_is_sent() {
    let error = |url: &str, name: &str| Elasticsearch::new(options(url), name).unwrap_err().to_string();
    for (url, name, why) in [
        ("ftp://es.test", "a", "https://HOST"),
        ("http://user:s3cret@es.test", "a", "authorization"),
        ("http://es.test/?q=1", "a", "no query"),
        ("http://es.test", "", "a-z 0-9"),
        ("http://es.test", "Logs", "a-z 0-9"),
        ("http://es.test", "a/../b", "a-z 0-9"),
        ("http://es.test", ".hidden", "begin with"),
    ] {
        let error = error(url, name);
        assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
    }
}

/// Every field that events are sure to have, and the type that it is searched by.
#[test]
fn the_templates_map_the_fields_of_events() {
    let lines = [Audit::new(AuditAction::Ban).note(7), dependency(7, "store", None, "it fails").to_string()];
    let lines: Vec<Line> = lines.iter().map(|line| line.as_bytes().into()).collect();
    let types = [("@timestamp", "date"), ("source/ip", "ip"), ("threat/score", "double"), ("event/severity", "long")];
    check_template(EventFormat::Ecs, &lines, &types);
    let types = [("@timestamp", "date"), ("time", "date"), ("src_endpoint/ip", "ip"), ("class_uid", "long")];
    check_template(EventFormat::Ocsf, &lines, &types);
}

fn check_template(format: EventFormat, lines: &[Line], types: &[(&str, &str)]) {
    let template: Value = serde_json::from_str(format.index_template()).unwrap();
    assert!(format.data_stream().starts_with(template["index_patterns"][0].as_str().unwrap().trim_end_matches('*')));
    let mappings = &template["template"]["mappings"];
    let lines: Vec<Line> = lines.iter().map(|line| format.line(line, 7)).collect();
    let body = String::from_utf8(document::bulk(&lines)).unwrap();
    for document in body.lines().skip(1).step_by(2) {
        check_mapped("", mappings, &serde_json::from_str(document).unwrap());
    }
    for (path, kind) in types {
        let mapped = path.split('/').fold(mappings, |at, name| &at["properties"][name]);
        assert_eq!(mapped["type"], *kind, "{path}");
    }
}

/// Whether a mapping has a type for a value, or for all fields of it.
fn check_mapped(path: &str, mapping: &Value, value: &Value) {
    match value {
        _ if mapping["type"].is_string() => {}
        Value::Array(items) => items.iter().for_each(|item| check_mapped(path, mapping, item)),
        Value::Object(fields) => {
            for (name, value) in fields {
                check_mapped(&format!("{path}/{name}"), &mapping["properties"][name], value);
            }
        }
        _ => panic!("{path} is not mapped"),
    }
}
