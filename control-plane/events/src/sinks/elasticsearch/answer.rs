//! What a bulk request was answered, event by event.

use serde::Deserialize;

use crate::sinks::parts::Settled;
use crate::sinks::server::shown;

/// The items of an answer.
#[derive(Debug)]
pub(super) struct Items(Vec<Item>);

#[derive(Deserialize)]
struct Answered {
    items: Vec<Created>,
}

#[derive(Deserialize)]
struct Created {
    create: Item,
}

#[derive(Debug, Deserialize)]
struct Item {
    status: u16,
    error: Option<Error>,
}

#[derive(Debug, Deserialize)]
struct Error {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    reason: String,
}

impl Items {
    /// The answer to a request with so many events; `None` if it is none.
    pub(super) fn read(body: &[u8], events: usize) -> Option<Items> {
        let answered: Answered = serde_json::from_slice(body).ok()?;
        let items: Vec<Item> = answered.items.into_iter().map(|item| item.create).collect();
        (items.len() == events).then_some(Items(items))
    }

    pub(super) fn settled(&self) -> Settled {
        let mut settled = Settled::default();
        for item in &self.0 {
            match item.status {
                // 409: it is there already.
                200..300 | 409 => {}
                429 | 500.. => {
                    settled.failure = Some(item.why());
                    return settled;
                }
                _ => {
                    settled.refused += 1;
                    settled.refusal.get_or_insert_with(|| item.why());
                }
            }
            settled.first += 1;
        }
        settled
    }
}

impl Item {
    fn why(&self) -> String {
        let error = self.error.as_ref().map_or(String::new(), |error| format!(", {}: {}", error.kind, error.reason));
        shown(&format!("an event is answered with {}{error}", self.status))
    }
}
