use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::queue::{Bounds, Line};

/// What was written, and when, in seconds since the beginning.
type Written = Arc<Mutex<Vec<(u64, Vec<String>)>>>;

/// Answers what it was told to, then takes everything.
struct Told {
    answers: Vec<Result<(), Failure>>,
    attempts: Written,
    begun: tokio::time::Instant,
}

impl Sink for Told {
    const BATCH: Bounds = Bounds { lines: 2, bytes: 1000 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        let lines = batch.iter().map(|line| String::from_utf8(line.to_vec()).unwrap()).collect();
        self.attempts.lock().unwrap().push((self.begun.elapsed().as_secs(), lines));
        if self.answers.is_empty() { Ok(()) } else { self.answers.remove(0) }
    }
}

fn retry(after: Option<u64>) -> Result<(), Failure> {
    Err(Failure {
        written: 0,
        refused: 0,
        reason: "down".to_owned(),
        then: Then::Retry(after.map(Duration::from_secs)),
    })
}

struct Set {
    queue: Arc<Queue>,
    other: Arc<Queue>,
    attempts: Written,
    task: tokio::task::JoinHandle<()>,
}

impl Set {
    /// An exporter whose queue holds three lines and whose waits are 1, 2, 4, … seconds.
    fn new(answers: Vec<Result<(), Failure>>) -> Set {
        let queue = |name: &str, lines| Arc::new(Queue::new(name.to_owned(), Bounds { lines, bytes: 1 << 20 }));
        let (queue, other, attempts) = (queue("test", 3), queue("other", 100), Written::default());
        let sink = Told { answers, attempts: attempts.clone(), begun: tokio::time::Instant::now() };
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60), || 1.0);
        let notices = Notices { others: vec![other.clone()], clock: || 0 };
        let task = tokio::spawn(run(sink, queue.clone(), backoff, notices));
        Set { queue, other, attempts, task }
    }

    fn push(&self, lines: &[&str]) {
        for line in lines {
            self.queue.push(line.as_bytes().into());
        }
    }

    /// Each attempt as "seconds: lines".
    fn attempts(&self) -> Vec<String> {
        self.attempts.lock().unwrap().iter().map(|(at, lines)| format!("{at}: {}", lines.join(" "))).collect()
    }

    /// What the other exporter was told.
    async fn told(&self) -> Vec<String> {
        let all = Bounds { lines: 100, bytes: 1 << 20 };
        let lines = self.other.take(all).await;
        let texts = lines.iter().map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap());
        texts.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_come_later_and_later_and_lose_nothing() {
    let set = Set::new(vec![retry(None), retry(None), retry(None)]);
    set.push(&["a", "b", "c"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(set.attempts(), ["0: a b", "1: a b", "3: a b", "7: a b", "7: c"]);
    let figures = set.queue.figures();
    assert_eq!((figures.written, figures.dropped, figures.retries, figures.error), (3, 0, 3, None));
    let expected = ["the exporter test fails: down", "the exporter test works again; 0 events were lost so far"];
    assert_eq!(set.told().await, expected, "once each");
}

#[tokio::test(start_paused = true)]
async fn the_oldest_go_while_nothing_can_be_written() {
    let set = Set::new(vec![retry(None), retry(None)]);
    set.push(&["1", "2", "3"]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    set.push(&["4", "5"]);
    let figures = set.queue.figures();
    assert_eq!((figures.waiting, figures.dropped, figures.error.as_deref()), (3, 2, Some("down")));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(set.attempts(), ["0: 1 2", "1: 3 4", "3: 3 4", "3: 5"]);
}

#[tokio::test(start_paused = true)]
async fn the_other_side_says_when_to_come_back() {
    let set = Set::new(vec![retry(Some(30)), retry(None)]);
    set.push(&["a"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(set.attempts(), ["0: a", "30: a", "31: a"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_dropped_and_the_next_goes_on_at_once() {
    let refused = Failure { written: 0, refused: 0, reason: "400".to_owned(), then: Then::Drop };
    let set = Set::new(vec![Err(refused)]);
    set.push(&["a", "b", "c"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(set.attempts(), ["0: a b", "0: c"]);
    let figures = set.queue.figures();
    assert_eq!((figures.written, figures.dropped, figures.retries), (1, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn what_was_written_is_not_written_again() {
    let half = Failure { written: 1, refused: 0, reason: "full".to_owned(), then: Then::Retry(None) };
    let set = Set::new(vec![Err(half)]);
    set.push(&["a", "b"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(set.attempts(), ["0: a b", "1: b"]);
    assert_eq!(set.queue.figures().written, 2);
}

#[tokio::test(start_paused = true)]
async fn a_flush_does_not_wait_for_the_backoff() {
    let set = Set::new(vec![retry(Some(3000))]);
    set.push(&["a"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    set.queue.drained().await;
    assert_eq!(set.attempts(), ["0: a", "1: a"]);
}

fn refused(written: usize, refused: usize) -> Result<(), Failure> {
    Err(Failure { written, refused, reason: "too large".to_owned(), then: Then::Drop })
}

#[tokio::test(start_paused = true)]
async fn an_exporter_that_refuses_some_events_and_takes_others_does_not_fail() {
    // Half of a batch, then one by itself, and again.
    let set = Set::new(vec![refused(2, 1), refused(1, 1), Ok(()), refused(1, 1)]);
    for lines in [&["a", "bad"] as &[&str], &["bad"], &["b", "c"], &["bad"], &["d"]] {
        set.push(lines);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let figures = set.queue.figures();
    assert_eq!((figures.written, figures.dropped), (4, 3), "{figures:?}");
    set.other.push(Line::from(br#"{"message":"nothing else"}"#.as_slice()));
    assert_eq!(set.told().await, ["nothing else"]);
}

#[tokio::test(start_paused = true)]
async fn an_exporter_that_takes_nothing_fails_whatever_it_says_of_each_event() {
    let set = Set::new((0..MANY).map(|_| refused(1, 1)).chain([refused(2, 1)]).collect());
    for _ in 0..MANY {
        set.push(&["bad"]);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    set.push(&["bad", "good"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let expected = ["the exporter test fails: too large", "the exporter test works again; 10 events were lost so far"];
    assert_eq!(set.told().await, expected);
}

#[tokio::test(start_paused = true)]
async fn refused_events_are_logged_once_a_minute() {
    let mut refusals = Refusals::default();
    let news: Vec<bool> = (0..3).map(|_| refusals.is_news()).collect();
    tokio::time::sleep(SILENCE).await;
    assert_eq!((news, refusals.is_news()), (vec![true, false, false], true));
}
