use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::IntoResponse as _;
use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use super::proto::{
    ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse, LogRecord, Status, Typed,
};
use super::*;
use crate::queue::Queue;
use crate::sinks::{Backoff, Formatted, Notices, Then, run};
use crate::{Audit, AuditAction, EventFormat, dependency, published, samples};

/// An answer: status, content type, body.
type Given = (u16, &'static str, Vec<u8>);

/// A request: path, headers, body as it was before compression.
type Seen = (String, HeaderMap, Vec<u8>);

/// A collector: gives the answers that it was given, then takes everything but requests above a number of events.
#[derive(Clone, Default)]
struct Collector {
    answers: Arc<Mutex<Vec<Given>>>,
    requests: Arc<Mutex<Vec<Seen>>>,
    records: Arc<Mutex<Vec<LogRecord>>>,
    most: usize,
}

async fn logs(
    State(collector): State<Collector>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> axum::response::Response {
    let mut bytes = body.to_vec();
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip") {
        bytes.clear();
        GzDecoder::new(body.as_ref()).read_to_end(&mut bytes).unwrap();
    }
    let request = ExportLogsServiceRequest::decode(bytes.as_slice()).unwrap();
    collector.requests.lock().unwrap().push((uri.to_string(), headers, bytes));
    let given = {
        let mut answers = collector.answers.lock().unwrap();
        if answers.is_empty() { None } else { Some(answers.remove(0)) }
    };
    if let Some((status, kind, body)) = given {
        let headers = [(header::CONTENT_TYPE, kind), (header::RETRY_AFTER, "7")];
        return (StatusCode::from_u16(status).unwrap(), headers, body).into_response();
    }
    let records = request.resource_logs.into_iter().flat_map(|logs| logs.scope_logs);
    let records: Vec<LogRecord> = records.flat_map(|logs| logs.log_records).collect();
    if records.len() > collector.most {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    collector.records.lock().unwrap().extend(records);
    ([(header::CONTENT_TYPE, "application/x-protobuf")], Vec::new()).into_response()
}

async fn serve(most: usize, answers: &[Given]) -> (Collector, String) {
    let answers = Arc::new(Mutex::new(answers.to_vec()));
    let collector = Collector { most, answers, ..Collector::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(logs).with_state(collector.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (collector, url)
}

fn options(url: &str) -> ServerOptions {
    ServerOptions { url: url.parse().unwrap(), headers_file: None, ca_file: None, timeout: Duration::from_secs(60) }
}

fn sink(url: &str) -> Otlp {
    Otlp::new(options(url), OtlpCompression::Gzip).unwrap()
}

fn events(count: u32) -> Vec<Line> {
    let event = |number| json!({ "@type": "SvcSecurityEvent", "@id": format!("e{number:04}"), "message": "m" });
    (0..count).map(|number| event(number).to_string().as_bytes().into()).collect()
}

fn attribute(record: &LogRecord, name: &str) -> Option<Typed> {
    let found = record.attributes.iter().find(|attribute| attribute.key == name)?;
    found.value.clone()?.value
}

fn string(text: &str) -> Option<Typed> {
    Some(Typed::String(text.to_owned()))
}

#[tokio::test]
async fn events_are_records_with_time_severity_body_and_attributes() {
    let (collector, url) = serve(500, &[]).await;
    let security = json!({
        "@type": "SvcSecurityEvent", "@id": "event_1", "@timestamp": "2026-11-26T10:00:00.123Z",
        "event": { "category": "threat", "outcome": "blocked", "severity": 4 },
        "source": { "ip": "192.0.2.1", "user": null },
        "threat": { "score": 92.5, "tags": ["waf:match"], "signals": [{ "source": "waf.seclang", "weight": 50 }] },
        "route": { "node": "edge-1" }, "decision": { "enforced": true }, "message": "the request is refused",
    });
    let audit = Audit::new(AuditAction::Ban).of("ip:192.0.2.1".to_owned()).note(7);
    let trouble = dependency(8, "store", Some("edge-1"), "it fails").to_string();
    let lines: Vec<Line> =
        [security.to_string(), audit.clone(), trouble].iter().map(|line| line.as_bytes().into()).collect();
    assert_eq!(sink(&format!("{url}/base/")).write(&lines).await, Ok(()));
    let (path, headers, body) = collector.requests.lock().unwrap()[0].clone();
    assert_eq!(
        (path.as_str(), &headers["content-type"]),
        ("/base/v1/logs", &"application/x-protobuf".parse().unwrap())
    );
    assert_eq!(headers["content-encoding"], "gzip");
    let request = ExportLogsServiceRequest::decode(body.as_slice()).unwrap();
    let resource = request.resource_logs[0].resource.clone().unwrap();
    let names: Vec<&str> = resource.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    assert!(names.starts_with(&["service.name", "service.version", "service.instance.id"]), "{names:?}");

    let records = collector.records.lock().unwrap().clone();
    let [security, audited, trouble] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((security.severity_number, security.severity_text.as_str()), (17, "ERROR"));
    assert_eq!(security.time_unix_nano, 1_795_687_200_123_000_000);
    assert!(security.observed_time_unix_nano > 0);
    assert_eq!(security.body, Some(value::text("the request is refused")));
    assert_eq!(security.event_name, "palisade.security_event");
    assert_eq!(attribute(security, "threat.score"), Some(Typed::Double(92.5)));
    assert_eq!(attribute(security, "event.severity"), Some(Typed::Int(4)));
    assert_eq!(attribute(security, "decision.enforced"), Some(Typed::Bool(true)));
    assert_eq!(attribute(security, "observer.name"), string("edge-1"));
    assert_eq!(attribute(security, "event.id"), string("event_1"));
    assert!(matches!(attribute(security, "threat.signals"), Some(Typed::Array(_))));
    for gone in ["source.user", "message", "@timestamp"] {
        assert_eq!(attribute(security, gone), None, "{gone}");
    }
    assert_eq!((audited.severity_number, audited.event_name.as_str()), (10, "palisade.security_audit"));
    assert_eq!((audited.time_unix_nano, &audited.body), (7_000_000, &Some(value::text(audit))));
    assert_eq!(attribute(audited, "event.action"), string("ban"));
    assert_eq!((trouble.severity_text.as_str(), &trouble.body), ("INFO2", &Some(value::text("it fails"))));
}

#[tokio::test]
async fn an_answer_decides() {
    let status = |message: &str| Status { message: message.to_owned() }.encode_to_vec();
    let protobuf = "application/x-protobuf";
    let later = Then::Retry(Some(Duration::from_secs(7)));
    let cases = [
        (429, protobuf, status("slow down"), later, "429 Too Many Requests: slow down"),
        (502, "text/html", b"<html>".to_vec(), later, "502"),
        (503, protobuf, Vec::new(), later, "503"),
        (504, protobuf, Vec::new(), later, "504"),
        (
            401,
            "application/json",
            br#"{"message":"no\u0007 key"}"#.to_vec(),
            Then::Retry(None),
            "401 Unauthorized: no key",
        ),
        (403, protobuf, Vec::new(), Then::Retry(None), "403"),
        (404, protobuf, Vec::new(), Then::Retry(None), "404"),
        (400, protobuf, status("no such field"), Then::Drop, "400 Bad Request: no such field"),
        (408, protobuf, Vec::new(), Then::Drop, "408"),
        (500, protobuf, Vec::new(), Then::Drop, "500"),
        (200, "text/html", b"<html>".to_vec(), Then::Retry(None), "not one of OTLP"),
        (200, "application/json", b"[]".to_vec(), Then::Retry(None), "not one of OTLP"),
    ];
    for (code, kind, body, then, reason) in cases {
        let (_, url) = serve(500, &[(code, kind, body)]).await;
        let failure = sink(&url).write(&events(2)).await.unwrap_err();
        assert_eq!((failure.written, failure.refused, failure.then), (0, 0, then), "{code}");
        assert!(failure.reason.contains(reason), "{}", failure.reason);
    }
    // One that is too long: fewer events are asked about.
    let too_long = || (200, protobuf, vec![b'x'; MAX_ANSWER + 1]);
    let (_, url) = serve(500, &[too_long()]).await;
    assert_eq!(sink(&url).write(&events(2)).await, Ok(()));
    let (_, url) = serve(500, &[too_long(), too_long()]).await;
    assert_eq!(sink(&url).write(&events(2)).await.unwrap_err().then, Then::Retry(None), "also of one event");
    let (_, url) = serve(500, &[(200, "application/json; charset=utf-8", b"{}".to_vec())]).await;
    assert_eq!(sink(&url).write(&events(2)).await, Ok(()));
}

#[tokio::test]
async fn rejected_records_are_counted_and_explained() {
    let partial = |rejected, message: &str| {
        let partial = ExportLogsPartialSuccess { rejected_log_records: rejected, error_message: message.to_owned() };
        ExportLogsServiceResponse { partial_success: Some(partial) }.encode_to_vec()
    };
    let json = br#"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too old"}}"#.to_vec();
    for (kind, body) in [("application/x-protobuf", partial(2, "too old")), ("application/json", json)] {
        let (_, url) = serve(500, &[(200, kind, body)]).await;
        let queue = Arc::new(Queue::new("test".to_owned(), Bounds { lines: 1000, bytes: 1 << 20 }));
        events(6).into_iter().for_each(|line| queue.push(line));
        let backoff = Backoff::new(Duration::from_micros(1), Duration::from_micros(1), || 1.0);
        let notices = Notices { others: Vec::new(), clock: || 0 };
        let task = tokio::spawn(run(sink(&url), Arc::clone(&queue), backoff, notices));
        queue.drained().await;
        task.abort();
        let figures = queue.figures();
        assert_eq!((figures.written, figures.dropped), (4, 2), "{figures:?}");
        assert_eq!(figures.error.as_deref(), Some("the server has rejected log records: too old"));
    }
    // A warning, and a number that cannot be.
    for (rejected, refused) in [(0, 0), (-3, 0), (9, 6)] {
        let (_, url) = serve(500, &[(200, "application/x-protobuf", partial(rejected, "why"))]).await;
        let written = sink(&url).write(&events(6)).await;
        assert_eq!(written.err().map_or(0, |failure| failure.refused), refused, "{rejected}");
    }
}

#[tokio::test]
async fn a_request_that_is_too_large_is_divided() {
    let (collector, url) = serve(60, &[]).await;
    let mut sink = Otlp::new(options(&url), OtlpCompression::None).unwrap();
    assert_eq!(sink.write(&events(500)).await, Ok(()));
    let ids = |record: &LogRecord| attribute(record, "@id");
    let records = collector.records.lock().unwrap().clone();
    let expected: Vec<_> = (0..500).map(|number| string(&format!("e{number:04}"))).collect();
    assert_eq!((records.iter().map(ids).collect::<Vec<_>>(), sink.parts.most()), (expected, 31));
    assert!(collector.requests.lock().unwrap().iter().all(|(_, headers, _)| !headers.contains_key("content-encoding")));
}

/// An object with a long name and many fields: as attributes with dotted names they would have 700 MiB.
#[tokio::test]
async fn an_event_costs_no_more_than_a_few_times_its_length_and_its_neighbours_arrive() {
    let fields: Vec<String> = (0..10_000).map(|number| format!(r#""{number:x}":0"#)).collect();
    let (name, fields) = ("K".repeat(70_000), fields.join(","));
    let line =
        format!(r#"{{"@type":"SvcSecurityEvent","{name}":{{{fields}}},"good":{{"{name}":1}},"kept":{{"a":1}}}}"#);
    let mut lines = events(2);
    lines.insert(1, line.as_bytes().into());
    let sent = body(record::resource("h", "i"), OtlpCompression::None, &lines, 0);
    assert!(sent.bytes.len() < 2 << 20, "{}", sent.bytes.len());
    let (collector, url) = serve(500, &[]).await;
    assert_eq!(sink(&url).write(&lines).await, Ok(()));
    let records = collector.records.lock().unwrap().clone();
    let ids: Vec<_> = records.iter().map(|record| attribute(record, "@id")).collect();
    assert_eq!(ids, [string("e0000"), None, string("e0001")]);
    assert_eq!((records[1].dropped_attributes_count, attribute(&records[1], "kept.a")), (1, Some(Typed::Int(1))));
    assert_eq!(attribute(&records[1], "good"), string(&format!(r#"{{"{name}":1}}"#)));
}

/// A value as the published messages show it in JSON.
fn shown(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(bool) => json!({ "bool_value": bool }),
        Value::Number(number) if number.is_i64() => json!({ "int_value": number.to_string() }),
        Value::Number(number) => json!({ "double_value": number }),
        Value::String(text) => json!({ "string_value": text }),
        Value::Array(items) if items.is_empty() => json!({ "array_value": {} }),
        Value::Array(items) => json!({ "array_value": { "values": items.iter().map(shown).collect::<Vec<_>>() } }),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| json!({ "key": name, "value": shown(value) });
            json!({ "kvlist_value": { "values": fields.iter().map(field).collect::<Vec<_>>() } })
        }
    }
}

/// The fields of an event by their dotted names, as the published messages show them in JSON.
fn dotted(prefix: &str, fields: &Map<String, Value>, found: &mut BTreeMap<String, Value>) {
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::Object(fields) => dotted(&format!("{prefix}{name}."), fields, found),
            value => drop(found.insert(format!("{prefix}{name}"), shown(value))),
        }
    }
}

#[test]
fn the_published_messages_read_what_is_sent() {
    let lines = samples::all();
    let sent = body(record::resource("host-1", "instance-1"), OtlpCompression::None, &lines, 1_795_687_300_000);
    let read: Value = serde_json::from_str(&published::run("decode_otlp.py", &sent.bytes)).unwrap();
    let logs = &read["resource_logs"][0];
    let service = json!({ "key": "service.name", "value": { "string_value": "palisade" } });
    assert_eq!(
        (&logs["resource"]["attributes"][0], &logs["scope_logs"][0]["scope"]["name"]),
        (&service, &json!("palisade.events"))
    );
    let records = logs["scope_logs"][0]["log_records"].as_array().unwrap();
    assert_eq!(records.len(), lines.len());
    for (record, line) in records.iter().zip(&lines) {
        let mut event: Map<String, Value> = serde_json::from_slice(line).unwrap();
        let time = clock::rfc3339_millis(event.remove("@timestamp").unwrap().as_str().unwrap()).unwrap();
        // JSON has no zeros.
        let nanos = (time > 0).then(|| (time * 1_000_000).to_string());
        assert_eq!(record["time_unix_nano"], json!(nanos), "{event:?}");
        assert_eq!(record["observed_time_unix_nano"], "1795687300000000000");
        let message = event.remove("message").unwrap_or_else(|| String::from_utf8_lossy(line).into());
        assert_eq!(record["body"], shown(&message));
        let severity = event.get("event").and_then(|event| event["severity"].as_u64());
        let number = match (&event["@type"], severity) {
            (kind, _) if kind == "SvcWafSecurityAudit" => "SEVERITY_NUMBER_INFO2",
            (_, Some(4)) => "SEVERITY_NUMBER_ERROR",
            (_, Some(3)) => "SEVERITY_NUMBER_WARN",
            (_, Some(2)) => "SEVERITY_NUMBER_INFO2",
            _ => "SEVERITY_NUMBER_INFO",
        };
        assert_eq!(record["severity_number"], number);
        assert!(record["event_name"].as_str().unwrap().starts_with("palisade."), "{record}");
        crate::sinks::ecs::complete(&mut event);
        let mut expected = BTreeMap::new();
        dotted("", &event, &mut expected);
        let attribute = |attribute: &Value| (attribute["key"].as_str().unwrap().to_owned(), attribute["value"].clone());
        let found: BTreeMap<_, _> = record["attributes"].as_array().unwrap().iter().map(attribute).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_time_that_servers_cannot_keep_is_an_attribute_and_that_of_sending_counts() {
    let record = |time: u64| {
        let line = Line::from(json!({ "@type": "SvcSecurityEvent", "@timestamp": time }).to_string().as_bytes());
        let mut request = record::request(record::resource("h", "i"), &[line], 7);
        request.resource_logs.remove(0).scope_logs.remove(0).log_records.remove(0)
    };
    let last = i64::MAX as u64 / 1_000_000;
    assert_eq!(record(last).time_unix_nano, last * 1_000_000);
    assert_eq!(attribute(&record(last), "@timestamp"), None);
    for time in [last + 1, u64::MAX] {
        let record = record(time);
        assert_eq!((record.time_unix_nano, record.observed_time_unix_nano), (0, 7_000_000));
        assert!(attribute(&record, "@timestamp").is_some());
    }
}

#[tokio::test]
async fn events_in_ocsf_are_records_too() {
    let (collector, url) = serve(500, &[]).await;
    let lines = events(1);
    Formatted::new(sink(&url), EventFormat::Ocsf).write(&lines).await.unwrap();
    let record = collector.records.lock().unwrap()[0].clone();
    assert_eq!((&record.body, record.event_name.as_str()), (&Some(value::text("m")), "palisade.security_event"));
    assert_eq!(attribute(&record, "class_uid"), Some(Typed::Int(2004)));
    assert_eq!(attribute(&record, "metadata.uid"), string("e0000"));
    assert!(record.time_unix_nano > 0 && attribute(&record, "ecs.version").is_none(), "{record:?}");
}

#[test]
fn what_is_no_base_url_is_said_before_anything_is_sent() {
    let error = |url: &str| Otlp::new(options(url), OtlpCompression::Gzip).unwrap_err().to_string();
    for (url, why) in [
        ("grpc://otel.test:4317", "https://HOST"),
        ("http://user:s3cret@otel.test", "authorization"),
        ("http://otel.test/?q=1", "no query"),
        ("http://otel.test/v1/logs", "without /v1/logs"),
    ] {
        let error = error(url);
        assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
    }
    let plain = |url: &str| Otlp::new(options(url), OtlpCompression::Gzip).unwrap().export.url.to_string();
    assert_eq!(plain("http://otel.test:4318"), "http://otel.test:4318/v1/logs");
    assert_eq!(plain("http://otel.test:4318/tenant/"), "http://otel.test:4318/tenant/v1/logs");
}
