use std::sync::Mutex;

use super::*;

/// A server that takes at most so many bytes in a request, and never the event `bad`.
#[derive(Default)]
struct Server {
    most: usize,
    /// The number of events of each request.
    requests: Mutex<Vec<usize>>,
    taken: Mutex<Vec<String>>,
}

impl Requests for Server {
    async fn send(&self, part: &[Line]) -> Result<Settled, Unsent> {
        self.requests.lock().unwrap().push(part.len());
        let texts: Vec<String> = part.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        if part.iter().map(|line| line.len()).sum::<usize>() > self.most {
            return Err(Unsent::TooLarge);
        }
        if texts.iter().any(|text| text == "bad") {
            return Err(Unsent::Invalid("no such time".to_owned()));
        }
        self.taken.lock().unwrap().extend(texts);
        Ok(Settled { first: part.len(), ..Settled::default() })
    }
}

impl Server {
    fn new(most: usize) -> Server {
        Server { most, ..Server::default() }
    }

    fn count(&self) -> usize {
        std::mem::take(&mut *self.requests.lock().unwrap()).len()
    }
}

fn events(count: usize) -> Vec<Line> {
    (0..count).map(|number| Line::from(format!("{number:010}").as_bytes())).collect()
}

#[tokio::test]
async fn a_request_has_as_many_events_as_before_some_time_after_a_division() {
    let mut parts = Parts::new(500);
    // A proxy with a small limit for some minutes.
    assert_eq!(parts.write(&Server::new(40), &events(500)).await, Ok(()));
    assert!(parts.most() <= 7, "{}", parts.most());
    let server = Server::new(1 << 20);
    for _ in 0..4 * PATIENCE {
        parts.write(&server, &events(500)).await.unwrap();
    }
    assert_eq!(parts.most(), 500);
    server.count();
    parts.write(&server, &events(500)).await.unwrap();
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_server_with_a_fixed_limit_is_seldom_asked_for_more() {
    let (mut parts, server) = (Parts::new(500), Server::new(400));
    for _ in 0..200 {
        parts.write(&server, &events(500)).await.unwrap();
    }
    server.count();
    for _ in 0..20 {
        parts.write(&server, &events(500)).await.unwrap();
    }
    assert!((20 * 17..20 * 17 + 5).contains(&server.count()));
}

#[tokio::test]
async fn an_event_that_is_too_large_makes_later_requests_no_smaller() {
    let (mut parts, server) = (Parts::new(500), Server::new(6000));
    let mut batch = events(500);
    batch[250] = vec![b'x'; 7000].into();
    let failure = parts.write(&server, &batch).await.unwrap_err();
    assert_eq!((failure.written, failure.refused, failure.then), (500, 1, Then::Drop));
    server.count();
    assert_eq!(parts.write(&server, &events(500)).await, Ok(()));
    assert_eq!((parts.most(), server.count()), (500, 1));
}

#[tokio::test]
async fn an_event_that_the_server_refuses_is_left_out_and_the_others_arrive() {
    let (mut parts, server) = (Parts::new(500), Server::new(1 << 20));
    let mut batch = events(500);
    batch[123] = Line::from(b"bad".as_slice());
    let failure = parts.write(&server, &batch).await.unwrap_err();
    assert_eq!((failure.written, failure.refused, failure.then), (500, 1, Then::Drop));
    assert_eq!(failure.reason, "no such time");
    let taken = server.taken.lock().unwrap().clone();
    let expected: Vec<String> =
        (0..500).filter(|number| *number != 123).map(|number| format!("{number:010}")).collect();
    assert_eq!((taken, parts.most()), (expected, 500));
    assert!(server.count() < 40, "it is looked for by halves");
    // By itself, and nothing else.
    let failure = parts.write(&server, &[Line::from(b"bad".as_slice())]).await.unwrap_err();
    assert_eq!((failure.written, failure.refused, failure.then), (1, 1, Then::Drop));
}
