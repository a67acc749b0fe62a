//! What the plugin has at work: contracts that the console fetches, and the API report.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use kit::Sources;
use outbound::{Call, Outbound};
use tokio::sync::{mpsc, oneshot};

use super::report::{self, ApiReport};

/// The largest document that is fetched, in bytes: 5 MB.
pub(super) const MAX_FETCHED: usize = 5_000_000;
/// How long a fetch may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Fetches that wait, at most.
const MAX_WAITING: usize = 8;
/// Redirects that are followed; the address of each is checked.
const REDIRECTS: u8 = 3;

/// A fetch that the console asks for.
struct Order {
    url: String,
    done: oneshot::Sender<Result<String, String>>,
}

/// What the plugin has at work.
#[derive(Default)]
pub(super) struct AtWork {
    pub(super) fetches: Fetches,
    pub(super) report: Arc<ApiReport>,
}

/// Keeps both going, for as long as the control plane runs.
pub(super) async fn gather(sources: Sources) {
    let Some(at_work) = sources.runtime::<AtWork>() else { return };
    tokio::join!(report::gather(sources.clone(), Arc::clone(&at_work.report)), fetch_all(sources, &at_work.fetches));
}

/// The way from the console to the gatherer, which makes the calls.
pub(super) struct Fetches {
    orders: mpsc::Sender<Order>,
    inbox: Mutex<Option<mpsc::Receiver<Order>>>,
}

impl Default for Fetches {
    fn default() -> Fetches {
        let (orders, inbox) = mpsc::channel(MAX_WAITING);
        Fetches { orders, inbox: Mutex::new(Some(inbox)) }
    }
}

impl Fetches {
    /// Fetches a document; the thread waits for it.
    pub(super) fn fetch(&self, url: String) -> Result<String, String> {
        let (done, answer) = oneshot::channel();
        let full = "other contracts are being fetched; try again";
        self.orders.try_send(Order { url, done }).map_err(|_| full.to_owned())?;
        answer.blocking_recv().unwrap_or_else(|_| Err("the control plane is stopping".to_owned()))
    }
}

/// Makes the calls, one after the other.
async fn fetch_all(sources: Sources, fetches: &Fetches) {
    let inbox = fetches.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut inbox) = inbox else { return };
    let mut entities = sources.entities.clone();
    loop {
        tokio::select! {
            order = inbox.recv() => {
                let Some(Order { url, done }) = order else { return };
                let fetched = fetch(&sources.outbound, url).await;
                // Where the console has given up, its answer is dropped.
                let _ = done.send(fetched);
            }
            changed = entities.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

async fn fetch(outbound: &Outbound, url: String) -> Result<String, String> {
    let mut headers = HeaderMap::new();
    headers
        .insert(header::ACCEPT, HeaderValue::from_static("application/json, application/yaml, text/yaml, */*;q=0.1"));
    let call = Call {
        method: Method::GET,
        url,
        headers,
        body: Bytes::new(),
        timeout: TIMEOUT,
        max_answer_bytes: MAX_FETCHED,
        redirects: REDIRECTS,
    };
    let answer = outbound.call(call).await.map_err(|error| error.to_string())?;
    if !answer.status.is_success() {
        return Err(format!("the server answered with the status {}", answer.status.as_u16()));
    }
    String::from_utf8(answer.body.to_vec()).map_err(|_| "the document is not UTF-8".to_owned())
}
