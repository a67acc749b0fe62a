//! The stream of events in the console, on a paused clock.

use std::net::SocketAddr;
use std::time::Duration;

use crate::console_support::{ConsoleApi, Login};
use api::names::NAMESPACE;
use axum::body::{Body, BodyDataStream};
use axum::extract::ConnectInfo;
use axum::http::Request;
use serde_json::{Value, json};
use tokio_stream::StreamExt as _;
use tower::ServiceExt as _;

/// An open stream.
struct Stream {
    body: BodyDataStream,
    text: String,
}

impl Stream {
    async fn open(console: &ConsoleApi, login: &Login, query: &str) -> Result<Stream, u16> {
        let request =
            Request::builder().uri(format!("{NAMESPACE}/events/_live{query}")).header("cookie", &login.cookie);
        let request = request.extension(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 1))));
        let response = console.api.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        if response.status() != 200 {
            return Err(response.status().as_u16());
        }
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let mut stream = Stream { body: response.into_body().into_data_stream(), text: String::new() };
        assert_eq!(stream.next().await.unwrap().0, "hello");
        Ok(stream)
    }

    /// The next event and its data; `None` at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        while !self.text.contains("\n\n") {
            let part = self.body.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&part).unwrap());
        }
        let (event, rest) = self.text.split_once("\n\n").unwrap();
        let (name, data) = event.split_once('\n').unwrap();
        let name = name.strip_prefix("event: ").unwrap().to_owned();
        let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        self.text = rest.to_owned();
        Some((name, data))
    }
}

fn publish(console: &ConsoleApi, number: usize, module: &str) {
    let event = json!({
        "@type": "SvcSecurityEvent", "@id": format!("e{number}"), "event": { "module": module }, "message": "a\nb\r\n\r\ndata: x",
    });
    console.api.state.events.publish(event.to_string().as_bytes()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_what_comes_that_its_filter_wants_and_signs_of_life() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    publish(&console, 0, "waf");
    let mut stream = Stream::open(&console, &login, "?filter.plugin=waf").await.unwrap();
    publish(&console, 1, "fail2ban");
    publish(&console, 2, "waf");
    let (name, data) = stream.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &data["id"], &data["event"]["message"]),
        ("event", &json!("e2"), &json!("a\nb\r\n\r\ndata: x"))
    );
    let (name, data) = stream.next().await.unwrap();
    assert!(name == "heartbeat" && data["at"].is_string());
    // What operators do is an event as well.
    let mut audits = Stream::open(&console, &login, "?filter.type=audit").await.unwrap();
    console.login("bob").await;
    // A login takes its time, which signs of life fill.
    let data = loop {
        let (name, data) = audits.next().await.unwrap();
        if name == "event" {
            break data;
        }
    };
    assert_eq!(data["event"]["action"], "login");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_session() {
    let console = ConsoleApi::new().await;
    let (login, other) = (console.login("alice").await, console.login("bob").await);
    let mut stream = Stream::open(&console, &login, "").await.unwrap();
    let mut going_on = Stream::open(&console, &other, "").await.unwrap();
    assert_eq!(console.post(&login, "/session/_logout", &json!({})).await.status, 200);
    let end = loop {
        let (name, data) = stream.next().await.unwrap();
        if name == "end" {
            break data;
        }
    };
    assert_eq!(end, json!({ "reason": "session" }));
    assert_eq!(stream.next().await, None);
    // It does not keep its session alive.
    console.advance(31 * 60_000);
    let end = loop {
        match going_on.next().await.unwrap() {
            (name, data) if name == "end" => break data,
            _ => {}
        }
    };
    assert_eq!(end, json!({ "reason": "session" }));
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_an_operator_who_is_removed() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let mut stream = Stream::open(&console, &login, "").await.unwrap();
    assert!(console.api.state.store.operator_remove("alice").await.unwrap());
    while stream.next().await.is_some_and(|(name, _)| name != "end") {}
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_control_plane_stops() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let mut stream = Stream::open(&console, &login, "").await.unwrap();
    console.stop.send_replace(true);
    assert_eq!(stream.next().await, Some(("end".to_owned(), json!({ "reason": "shutdown" }))));
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn streams_are_limited_and_a_closed_one_makes_room() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(Stream::open(&console, &login, "").await.unwrap());
    }
    assert_eq!(Stream::open(&console, &login, "").await.err(), Some(503));
    assert!(Stream::open(&console, &console.login("bob").await, "").await.is_ok());
    open.clear();
    // The task of a stream sees it at once, but not before it runs.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(Stream::open(&console, &login, "").await.is_ok());
}

#[tokio::test]
async fn a_client_that_reads_nothing_loses_the_oldest_and_delays_nothing() {
    let console = ConsoleApi::new().await;
    let login = console.login("alice").await;
    let mut stream = Stream::open(&console, &login, "").await.unwrap();
    for number in 0..20_000 {
        publish(&console, number, "waf");
        if number.is_multiple_of(1000) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let (mut events, mut dropped, mut last) = (0, 0, String::new());
    while events + dropped < 20_000 {
        match stream.next().await.unwrap() {
            (name, data) if name == "event" => {
                events += 1;
                last = data["id"].as_str().unwrap().to_owned();
            }
            (name, data) if name == "dropped" => dropped += data["count"].as_u64().unwrap(),
            _ => {}
        }
    }
    assert_eq!((events + dropped, last.as_str()), (20_000, "e19999"));
    assert!(dropped > 0);
}
