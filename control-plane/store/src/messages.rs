//! Messages between the control planes that share a store: of what is counted and soon forgotten, so that one that is lost does little harm.

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc};

/// Messages that wait to be sent, at most.
const WAITING: usize = 1024;
/// Messages that a listener may lag behind.
const LAG: usize = 4096;

/// This control plane's end.
pub(super) struct Messages {
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: broadcast::Sender<Arc<[u8]>>,
}

/// The server's end: what is to be sent, and where what others send goes.
#[derive(Debug)]
pub struct Exchange {
    /// What is to be sent.
    pub outgoing: mpsc::Receiver<Vec<u8>>,
    /// Where what others send goes.
    pub incoming: broadcast::Sender<Arc<[u8]>>,
}

/// Listens to messages of others.
#[derive(Debug)]
pub struct Listener(broadcast::Receiver<Arc<[u8]>>);

impl Messages {
    pub(super) fn new() -> (Messages, Exchange) {
        // What has not happened yet is worth showing as 0.
        lost(0);
        let (outgoing, sent) = mpsc::channel(WAITING);
        let (incoming, _) = broadcast::channel(LAG);
        let messages = Messages { outgoing, incoming: incoming.clone() };
        (messages, Exchange { outgoing: sent, incoming })
    }

    /// Sends a message, unless too many wait.
    pub(super) fn tell(&self, message: Vec<u8>) {
        if self.outgoing.try_send(message).is_err() {
            lost(1);
        }
    }

    pub(super) fn listen(&self) -> Listener {
        Listener(self.incoming.subscribe())
    }
}

impl Listener {
    /// The next message; `None` once the store is gone. What came while this lagged too far behind is lost. A call that is given up loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Arc<[u8]>> {
        loop {
            match self.0.recv().await {
                Ok(message) => return Some(message),
                Err(broadcast::error::RecvError::Lagged(missed)) => lost(missed),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// Counts messages that are lost, here or on their way.
pub fn lost(messages: u64) {
    metrics::counter!("palisade_store_messages_lost_total").increment(messages);
}
