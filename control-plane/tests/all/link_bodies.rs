//! Bodies that come with questions, over a real connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::link_support::{Worker, plain};
use crate::xds_support::{ControlPlane, until};
use link::{AnswerLimits, BodyAnswerer, QuestionBody};
use snapshot::{ASK_CHUNK, ASK_WINDOW, Ask, AskBody, AskChunk, AskGrant, Down, Message as _, Topic, Up};

/// What a scanner is asked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Scan {
    /// Answers after so many bytes; 0 for all.
    #[prost(uint64, tag = "1")]
    most: u64,
    /// Takes nothing, and never answers.
    #[prost(bool, tag = "2")]
    stalls: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Scanned {
    #[prost(uint64, tag = "1")]
    bytes: u64,
    #[prost(bool, tag = "2")]
    complete: bool,
}

impl Topic for Scan {
    const TOPIC: &'static str = "test.scan";
    type Answer = Scanned;
}

/// Counts what it has begun with.
#[derive(Clone, Default)]
struct Scanner(Arc<AtomicUsize>);

impl BodyAnswerer for Scanner {
    type Question = Scan;
    const LIMITS: AnswerLimits = AnswerLimits { running: 2, waiting: 1 };

    async fn answer(&self, _node: &str, scan: Scan, mut body: QuestionBody) -> Option<Scanned> {
        self.0.fetch_add(1, Ordering::SeqCst);
        if scan.stalls {
            std::future::pending::<()>().await;
        }
        let (complete, mut bytes) = (body.is_complete(), 0);
        if scan.most == 0 {
            bytes = body.collect(1 << 20).await.ok()?.len() as u64;
        } else {
            while bytes < scan.most {
                bytes += body.next().await.ok()??.len() as u64;
            }
        }
        Some(Scanned { bytes, complete })
    }
}

fn ask(id: u64, scan: &Scan, length: u64) -> Up {
    let body = Some(AskBody { length, complete: length.is_multiple_of(2) });
    let ask = Ask { id, topic: Scan::TOPIC.into(), data: scan.encode_to_vec(), body, ..Ask::default() };
    Up { node: "n".into(), asks: vec![ask], ..Up::default() }
}

fn chunk(id: u64, length: u64) -> Up {
    let data = vec![b'x'; usize::try_from(length).unwrap()];
    Up { chunks: vec![AskChunk { id, data, abandoned: false }], ..Up::default() }
}

async fn down(worker: &mut Worker) -> Down {
    worker.down.message().await.unwrap().expect("the stream has ended")
}

/// Sends a body as it is granted, and returns its answer with how much was sent.
async fn carry(worker: &mut Worker, id: u64, length: u64) -> (Option<Scanned>, u64) {
    let (mut sent, mut until) = (0, 0);
    loop {
        while sent < until {
            let next = (until - sent).min(ASK_CHUNK as u64);
            worker.up.send(chunk(id, next)).await.unwrap();
            sent += next;
        }
        let Down { grants, answers, .. } = down(worker).await;
        if let Some(answered) = answers.into_iter().find(|answered| answered.id == id) {
            return (answered.data.map(|data| Scanned::decode(data.as_slice()).unwrap()), sent);
        }
        for grant in grants.iter().filter(|grant| grant.id == id) {
            assert!(grant.until <= (grant.taken + ASK_WINDOW).min(length), "{grant:?}");
            until = until.max(grant.until);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_taken_as_its_answerer_takes_it() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    control_plane.link.answers().register_with_body(Scanner::default());
    let mut worker = Worker::admitted(plain(control_plane.address).await, None).await;
    let all = Scan::default();
    for (id, length, complete) in [(1, 1_000_000, true), (2, 999_999, false), (3, 0, true), (4, 1, false)] {
        worker.up.send(ask(id, &all, length)).await.unwrap();
        let answer = Some(Scanned { bytes: length, complete });
        assert_eq!(carry(&mut worker, id, length).await, (answer, length), "{length}");
    }
    // An answer that comes early saves the rest: no more is granted than the window behind what was taken.
    worker.up.send(ask(5, &Scan { most: 100_000, stalls: false }, 10_000_000)).await.unwrap();
    let (answer, sent) = carry(&mut worker, 5, 10_000_000).await;
    assert_eq!(answer.map(|answer| answer.bytes), Some(2 * ASK_CHUNK as u64));
    assert!(sent <= 2 * ASK_CHUNK as u64 + ASK_WINDOW, "{sent}");
    // Chunks that still arrive change nothing.
    worker.up.send(chunk(5, 7)).await.unwrap();
    // A longer one than the answerer collects, and one that is longer than any, are not sent.
    for (id, length) in [(6, (1 << 20) + 1), (7, u64::MAX)] {
        worker.up.send(ask(id, &all, length)).await.unwrap();
        assert_eq!(carry(&mut worker, id, length).await, (None, 0));
    }
    // One that breaks its bounds has no answer; nor has one that is abandoned.
    worker.up.send(ask(8, &all, 1000)).await.unwrap();
    assert_eq!(down(&mut worker).await.grants, [AskGrant { id: 8, taken: 0, until: 1000 }]);
    worker.up.send(chunk(8, 1001)).await.unwrap();
    assert_eq!(carry(&mut worker, 8, 0).await, (None, 0));
    worker.up.send(ask(9, &all, 1000)).await.unwrap();
    assert_eq!(down(&mut worker).await.grants.len(), 1);
    let abandoned = vec![AskChunk { id: 9, abandoned: true, ..AskChunk::default() }];
    worker.up.send(Up { chunks: abandoned, ..Up::default() }).await.unwrap();
    assert_eq!(carry(&mut worker, 9, 0).await, (None, 0));
    control_plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_questions_that_wait_for_their_turn_are_not_sent() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let scanner = Scanner::default();
    control_plane.link.answers().register_with_body(scanner.clone());
    let mut worker = Worker::admitted(plain(control_plane.address).await, None).await;
    let stalls = Scan { most: 0, stalls: true };
    for id in 1..=2 {
        worker.up.send(ask(id, &stalls, 1000)).await.unwrap();
    }
    until("both", async || (scanner.0.load(Ordering::SeqCst) == 2).then_some(())).await;
    // One of the others waits, and one is one too many.
    for id in 3..=4 {
        worker.up.send(ask(id, &Scan::default(), 1000)).await.unwrap();
    }
    let first = down(&mut worker).await;
    assert!((3..=4).contains(&first.answers[0].id), "{first:?}");
    assert_eq!((first.answers.len(), first.answers[0].data.as_ref(), first.grants.len()), (1, None, 0));
    assert_eq!(scanner.0.load(Ordering::SeqCst), 2);
    control_plane.stop().await;
}
