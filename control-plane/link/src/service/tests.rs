use std::pin::pin;

use events::EventHub;
use fabric::{Bans, LiveList};
use snapshot::BanChange;
use store::{SqliteOptions, SqliteStore};
use tonic::Code;
use xds::Hub;

use super::*;

type Downs = mpsc::Receiver<Result<Down, Status>>;

/// A list of so many messages.
fn list(messages: usize) -> Down {
    Down { bans: vec![BanChange::default(); messages * ENTRIES_PER_MESSAGE], ..Down::default() }
}

/// Reads so many messages, one every 20 seconds.
async fn read_slowly(downs: &mut Downs, messages: usize) {
    for _ in 0..messages {
        tokio::time::sleep(Duration::from_secs(20)).await;
        downs.recv().await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_change_goes_behind_what_is_in_the_queue_while_there_is_room() {
    let (down, downs) = mpsc::channel(QUEUE);
    (0..QUEUE - 2).for_each(|_| down.try_send(Ok(Down::default())).unwrap());
    push(&down, &list(2)).await.unwrap();
    assert_eq!(downs.len(), QUEUE);
    assert_eq!(push(&down, &list(2)).await.unwrap_err().code(), Code::ResourceExhausted, "the worker does not read");
}

#[tokio::test(start_paused = true)]
async fn few_messages_of_a_list_wait_in_the_queue_and_waiting_is_idle() {
    let (down, mut downs) = mpsc::channel(QUEUE);
    let list = list(20);
    let mut polls = 0;
    {
        let mut sent = pin!(send_all(&down, &list, LIST_ROOM));
        let counted = std::future::poll_fn(|context| {
            polls += 1;
            sent.as_mut().poll(context)
        });
        assert!(tokio::time::timeout(Duration::from_secs(1), counted).await.is_err(), "all of it is in the queue");
        assert_eq!(downs.len(), QUEUE - LIST_ROOM + 1);
        tokio::select! {
            sent = &mut sent => sent.unwrap(),
            () = read_slowly(&mut downs, 20) => {}
        }
    }
    assert!(polls < 100, "it was woken {polls} times");
    assert_eq!(downs.len(), QUEUE - LIST_ROOM + 1, "the end of it");
}

#[tokio::test(start_paused = true)]
async fn a_slow_worker_gives_way_only_to_links_that_wait() {
    const MESSAGES: usize = 20;
    let list = list(MESSAGES);
    let (down, mut downs) = mpsc::channel(QUEUE);
    let sent = send_live(&down, &list, std::future::pending());
    let (sent, ()) = tokio::join!(sent, read_slowly(&mut downs, MESSAGES));
    sent.unwrap();
    let (down, mut downs) = mpsc::channel(QUEUE);
    let sent = send_live(&down, &list, std::future::ready(()));
    let sent = tokio::select! {
        sent = sent => sent,
        () = read_slowly(&mut downs, MESSAGES) => panic!("it was sent"),
    };
    assert_eq!(sent.unwrap_err().code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn a_worker_whose_link_cannot_begin_is_refused_and_does_not_hang() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap());
    let events = EventHub::new(Vec::new(), || 1000);
    let hub = LinkHub::new(events.clone(), Bans::new(store, events, || 1000), Hub::new(), || 1000);
    let mut held = Vec::new();
    for _ in 0..LiveList::MAX {
        held.push(hub.subscribe().await.unwrap());
    }
    tokio::time::pause();
    let (down, mut downs) = mpsc::channel(QUEUE);
    assert_eq!(begin(&hub, &down).await.unwrap_err().code(), Code::Unavailable);
    assert!(downs.try_recv().is_err(), "it was greeted");
    // It comes back when there is room.
    held.clear();
    tokio::time::resume();
    assert!(begin(&hub, &down).await.unwrap().is_some());
}
