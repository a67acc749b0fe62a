//! The node link over a real connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::link_support::{Worker, plain};
use crate::xds_support::{ControlPlane, until};
use events::Exporter;
use link::{AnswerLimits, Answerer};
use snapshot::{
    AnswerWord, Answered, Ask, BanChange, BanRequest, Down, LoadReport, Message as _, SpendPuzzle, Topic, Up, YesNo,
};
use store::fabric::{FabricStore as _, Note};
use tonic::Request;

async fn worker_of(control_plane: &ControlPlane) -> Worker {
    Worker::admitted(plain(control_plane.address).await, None).await
}

fn now() -> u64 {
    base::clock::now_millis()
}

fn event(message: &str) -> Vec<u8> {
    serde_json::json!({
        "@type": "SvcSecurityEvent", "@timestamp": base::clock::rfc3339(now()),
        "event": { "category": "threat", "action": "deny", "outcome": "blocked" },
        "source": { "ip": "192.0.2.9" }, "threat": { "score": 95, "tags": ["waf:blocked"] },
        "incident": { "id": "inc-1", "count": 1 }, "message": message,
    })
    .to_string()
    .into_bytes()
}

#[tokio::test]
async fn a_ban_reaches_every_worker_and_whoever_comes_later() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let until_millis = now() + 600_000;
    let standing =
        BanChange { key: "ip:192.0.2.1".into(), until_millis, reason: "standing".into(), ..BanChange::default() };
    let ban = |key: &str, reason: &str| BanRequest {
        key: key.into(),
        until_millis,
        reason: reason.into(),
        issued_at_millis: now(),
        ..BanRequest::default()
    };
    control_plane.bans.record("n0", &[ban("ip:192.0.2.1", "standing")]).await.unwrap();
    let (mut one, mut two) = (worker_of(&control_plane).await, worker_of(&control_plane).await);
    assert_ne!(one.seed, two.seed, "each stream has a seed of its own");
    assert_eq!(one.bans().await, std::slice::from_ref(&standing), "then come the live bans");
    assert_eq!(two.bans().await, std::slice::from_ref(&standing));

    one.up.send(Up { node: "n1".into(), bans: vec![ban("ip:192.0.2.2", "tier")], ..Up::default() }).await.unwrap();
    let change = BanChange { key: "ip:192.0.2.2".into(), until_millis, reason: "tier".into(), ..BanChange::default() };
    assert_eq!(one.bans().await, std::slice::from_ref(&change));
    assert_eq!(two.bans().await, std::slice::from_ref(&change));

    let lifted = BanChange { key: "ip:192.0.2.1".into(), ..BanChange::default() };
    let lift = async {
        assert!(control_plane.store.ban_lift(&lifted.key, now(), Note::none()).await.unwrap());
        ((), Down { bans: vec![lifted.clone()], ..Down::default() })
    };
    control_plane.link.announcer().change(lift).await;
    assert_eq!(one.bans().await, std::slice::from_ref(&lifted));
    assert_eq!(two.bans().await, std::slice::from_ref(&lifted));
    let told = worker_of(&control_plane).await.bans().await;
    assert_eq!(told, [lifted, change], "a worker that was away may hold what was lifted");
}

#[tokio::test]
async fn many_bans_come_in_messages_of_a_bounded_size() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let ban = |number: u32| BanRequest {
        key: format!("ip:198.51.{}.{}", number / 256, number % 256),
        until_millis: now() + 600_000,
        ..BanRequest::default()
    };
    let bans: Vec<BanRequest> = (0..1200).map(ban).collect();
    control_plane.bans.record("n0", &bans).await.unwrap();
    let mut worker = worker_of(&control_plane).await;
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 1200 {
        sizes.push(worker.bans().await.len());
    }
    assert_eq!(sizes, [500, 500, 200]);
}

#[tokio::test]
async fn open_links_keep_no_list_of_all_bans() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let ban = BanRequest { key: "ip:192.0.2.1".into(), until_millis: now() + 600_000, ..BanRequest::default() };
    control_plane.bans.record("n0", &[ban]).await.unwrap();
    // Far more links than lists may be in memory at once, one after the other.
    let mut open = Vec::new();
    for _ in 0..30 {
        let mut worker = worker_of(&control_plane).await;
        assert_eq!(worker.bans().await.len(), 1);
        open.push(worker);
    }
    assert_eq!(control_plane.link.announcer().links(), 30);
}

#[tokio::test]
async fn bans_that_come_together_are_told_together() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let mut worker = worker_of(&control_plane).await;
    let ban = |number: u32| BanRequest {
        key: format!("ip:198.51.{}.{}", number / 256, number % 256),
        until_millis: now() + 600_000,
        ..BanRequest::default()
    };
    worker.up.send(Up { node: "n1".into(), bans: (0..1200).map(ban).collect(), ..Up::default() }).await.unwrap();
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(worker.bans().await);
    }
    assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [500, 500, 200]);
    assert!(told.concat().iter().zip(0..).all(|(change, number)| change.key == ban(number).key));
}

#[tokio::test]
async fn a_worker_gets_time_for_a_long_list() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let mut worker = worker_of(&control_plane).await;
    // More messages than its queue and its connection hold.
    let lift = |number: u32| BanChange { key: format!("user:{number:0100}"), ..BanChange::default() };
    control_plane.link.announcer().announce((0..100_000).map(lift).collect());
    control_plane.link.announcer().announce(vec![lift(100_000)]);
    let mut last = Vec::new();
    for _ in 0..201 {
        last = worker.bans().await;
    }
    assert_eq!(last, [lift(100_000)]);
}

#[tokio::test]
async fn events_reach_the_file_and_the_incidents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let control_plane = ControlPlane::start(vec![Exporter::File(path.clone())]).await;
    let worker = worker_of(&control_plane).await;
    let batch = vec![event("first"), b"no event".to_vec(), event("second")];
    worker.up.send(Up { node: "n1".into(), events: batch, ..Up::default() }).await.unwrap();
    worker.up.send(Up { dropped: 3, ..Up::default() }).await.unwrap();
    let load = LoadReport {
        filter: "preset".into(),
        version: "v9".into(),
        error: "too large".into(),
        ..LoadReport::default()
    };
    worker.up.send(Up { loads: vec![load], ..Up::default() }).await.unwrap();
    let status = until("the load report", async || control_plane.hub.nodes().into_iter().next()).await;
    assert_eq!((status.id.as_str(), status.filters[0].error.as_str()), ("n1", "too large"));

    control_plane.events.flush().await;
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(messages[..2], ["first", "second"]);
    assert!(lines.len() == 3 && messages[2].contains("dropped 3 events"), "{messages:?}");
    assert_eq!(lines[2]["event"]["category"], "dependency");
    let incidents = control_plane.events.incidents_since(0);
    assert_eq!((incidents.len(), &*incidents[0].0.id, incidents[0].0.count), (1, "inc-1", 2));

    // The file was moved away, as log rotation does.
    std::fs::rename(&path, folder.path().join("events.1")).unwrap();
    control_plane.events.publish(&event("third")).unwrap();
    control_plane.events.flush().await;
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn another_method_is_unimplemented() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let mut grpc = tonic::client::Grpc::new(plain(control_plane.address).await);
    grpc.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<Up, Down>::default();
    let path = "/palisade.v1.NodeLink/Other".parse().unwrap();
    let status = grpc.unary(Request::new(Up::default()), path, codec).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_does_not_read_is_cut_off_and_holds_up_nobody() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let (mut deaf, mut awake) = (worker_of(&control_plane).await, worker_of(&control_plane).await);
    // 40 KB each: more than the connection and the queues of a stream hold.
    let change =
        BanChange { key: "ip:192.0.2.1".into(), until_millis: 1, reason: "r".repeat(40_000), ..BanChange::default() };
    let total = 2000;
    for _ in 0..total {
        control_plane.link.announcer().announce(vec![change.clone()]);
        assert_eq!(awake.bans().await.len(), 1);
    }
    let mut received = 0;
    let end = loop {
        match deaf.down.message().await {
            Ok(Some(_)) => received += 1,
            end => break end,
        }
    };
    assert!(received < total, "it was given everything");
    // By this it knows that the control plane is there.
    assert_eq!(end.unwrap_err().code(), tonic::Code::ResourceExhausted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_on_its_own_stream() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let (mut one, mut two) = (worker_of(&control_plane).await, worker_of(&control_plane).await);
    let spend = |id, puzzle: &str| {
        let spend_puzzle = Some(SpendPuzzle { id: puzzle.into(), until_millis: now() + 1000 });
        Up { node: "n".into(), asks: vec![Ask { id, spend_puzzle, ..Ask::default() }], ..Up::default() }
    };
    let answered =
        async |worker: &mut Worker| worker.down.message().await.unwrap().expect("the stream has ended").answers;
    let answer = |id, word: AnswerWord| vec![Answered { id, answer: word.into(), data: None }];
    one.up.send(spend(1, "p")).await.unwrap();
    assert_eq!(answered(&mut one).await, answer(1, AnswerWord::Unknown), "there is no store yet");
    let folder = tempfile::tempdir().unwrap();
    let store = store::SqliteStore::open(folder.path(), store::SqliteOptions::default()).unwrap();
    control_plane.link.answer_from(Arc::new(store));
    one.up.send(spend(2, "p")).await.unwrap();
    assert_eq!(answered(&mut one).await, answer(2, AnswerWord::Yes));
    two.up.send(spend(2, "p")).await.unwrap();
    assert_eq!(answered(&mut two).await, answer(2, AnswerWord::No));
    two.up.send(spend(3, &"x".repeat(65))).await.unwrap();
    assert_eq!(answered(&mut two).await, answer(3, AnswerWord::Unknown));
    // The same in the form of this release, beside a question of a later one.
    let puzzle = SpendPuzzle { id: "q".into(), until_millis: now() + 1000 };
    let of_topic = |id, topic: &str| Ask { id, topic: topic.into(), data: puzzle.encode_to_vec(), ..Ask::default() };
    for (id, yes) in [(4, true), (5, false)] {
        two.up.send(Up { asks: vec![of_topic(id, SpendPuzzle::TOPIC)], ..Up::default() }).await.unwrap();
        let data = Some(YesNo { yes }.encode_to_vec());
        assert_eq!(answered(&mut two).await, vec![Answered { id, answer: 0, data }]);
    }
    two.up.send(Up { asks: vec![of_topic(6, "challenge.of-tomorrow")], ..Up::default() }).await.unwrap();
    assert_eq!(answered(&mut two).await, answer(6, AnswerWord::Unknown));
    control_plane.stop().await;
}

/// A question of tests. It is answered with its number; 0 never, and 1 with more than an answer may have.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Number {
    #[prost(uint32, tag = "1")]
    number: u32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Numbered {
    #[prost(uint32, tag = "1")]
    number: u32,
    #[prost(bytes = "vec", tag = "2")]
    more: Vec<u8>,
}

impl Topic for Number {
    const TOPIC: &'static str = "test.number";
    type Answer = Numbered;
}

/// Counts the questions that it never answers.
#[derive(Clone, Default)]
struct Numbers(Arc<AtomicUsize>);

impl Answerer for Numbers {
    type Question = Number;
    const LIMITS: AnswerLimits = AnswerLimits { running: 2, waiting: 0 };

    async fn answer(&self, _node: &str, Number { number }: Number) -> Option<Numbered> {
        if number == 0 {
            self.0.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        let more = if number == 1 { vec![0; snapshot::MAX_ANSWER] } else { Vec::new() };
        Some(Numbered { number, more })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_answer_holds_up_no_other_and_too_many_questions_have_none() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let numbers = Numbers::default();
    control_plane.link.answers().register(numbers.clone());
    let folder = tempfile::tempdir().unwrap();
    let store = store::SqliteStore::open(folder.path(), store::SqliteOptions::default()).unwrap();
    control_plane.link.answer_from(Arc::new(store));
    let (mut one, mut two) = (worker_of(&control_plane).await, worker_of(&control_plane).await);
    let ask = |id, number, wait_millis| {
        let data = Number { number }.encode_to_vec();
        let ask = Ask { id, topic: Number::TOPIC.into(), data, wait_millis, ..Ask::default() };
        Up { node: "n".into(), asks: vec![ask], ..Up::default() }
    };
    let answered = async |worker: &mut Worker| {
        let mut answers = worker.down.message().await.unwrap().expect("the stream has ended").answers;
        let Answered { id, data, .. } = answers.pop().expect("no answer");
        (id, data.map(|data| Numbered::decode(data.as_slice()).unwrap().number))
    };
    one.up.send(ask(1, 7, 0)).await.unwrap();
    assert_eq!(answered(&mut one).await, (1, Some(7)));
    one.up.send(ask(2, 1, 0)).await.unwrap();
    assert_eq!(answered(&mut one).await, (2, None), "it is too long");
    let unreadable = Ask { id: 3, topic: Number::TOPIC.into(), data: vec![0xff], ..Ask::default() };
    one.up.send(Up { asks: vec![unreadable], ..Up::default() }).await.unwrap();
    assert_eq!(answered(&mut one).await, (3, None));

    // Two never end, so a third has no answer; other topics and other workers have theirs.
    for id in 4..=5 {
        one.up.send(ask(id, 0, 10_000)).await.unwrap();
    }
    until("the questions", async || (numbers.0.load(Ordering::SeqCst) == 2).then_some(())).await;
    one.up.send(ask(7, 8, 0)).await.unwrap();
    assert_eq!(answered(&mut one).await, (7, None), "too many of this topic");
    let data = SpendPuzzle { id: "p".into(), until_millis: now() + 1000 }.encode_to_vec();
    let spend = |id| Ask { id, topic: SpendPuzzle::TOPIC.into(), data: data.clone(), ..Ask::default() };
    for worker in [&mut one, &mut two] {
        worker.up.send(Up { node: "n".into(), asks: vec![spend(8)], ..Up::default() }).await.unwrap();
        assert_eq!(worker.down.message().await.unwrap().unwrap().answers[0].id, 8);
    }
    // With the link end its questions, and their places are free.
    drop(one);
    let mut place = 9;
    while {
        two.up.send(ask(place, 9, 0)).await.unwrap();
        answered(&mut two).await
    } != (place, Some(9))
    {
        place += 1;
    }
    // Nor does a question take a place for longer than its worker waits.
    for id in 100..102 {
        two.up.send(ask(id, 0, 1)).await.unwrap();
    }
    place = 102;
    while {
        two.up.send(ask(place, 9, 0)).await.unwrap();
        answered(&mut two).await
    } != (place, Some(9))
    {
        place += 1;
    }
    control_plane.stop().await;
}
