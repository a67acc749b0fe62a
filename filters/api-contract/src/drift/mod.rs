//! Payloads that are looked at now and then: what they look like goes to the control plane, which has the contract's schemas.
//!
//! The filter sends types and names of fields. That the comparison is made in the control plane keeps the schemas of responses out of
//! the filters, and one payload a minute costs a filter no more than reading it once.

mod shape;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use exchange::{Host, Table, Update};
use prost::Message as _;
use snapshot::content_hash;

use crate::inventory::messages::{DRIFT, DriftSample};

pub(crate) use shape::shape_of;

/// What was looked at lately, by all workers of the node.
const LOOKED: Table = Table { name: "api.drift", shards: 64, entries_per_shard: 32 };
/// What a worker remembers of it, at most; what is beyond is asked of the node each time.
const MAX_KNOWN: usize = 4096;

/// When payloads of one step are looked at.
#[derive(Debug, Default)]
pub(crate) struct Sampling {
    /// How much time is between two looks at an operation, in milliseconds; 0 for none at all.
    millis: u64,
    /// Not before these times.
    next: RefCell<BTreeMap<Known, u64>>,
}

/// A route, an operation and a status.
type Known = (Rc<str>, u32, u16);

/// Which payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payload<'p> {
    /// The id of the route.
    pub(crate) route: &'p Rc<str>,
    /// The number of the operation in its contract.
    pub(crate) operation: u32,
    /// The status of the response; 0 for a request.
    pub(crate) status: u16,
}

impl Sampling {
    pub(crate) fn new(millis: u64) -> Self {
        Self { millis, next: RefCell::default() }
    }

    /// Whether a payload is due; if so, the next one is not before the time has passed, on any worker of the node. `label` is the
    /// operation as the contract has it.
    pub(crate) fn is_due(&self, payload: Payload<'_>, label: impl FnOnce() -> String, host: &dyn Host) -> bool {
        if self.millis == 0 {
            return false;
        }
        let now = host.now();
        let Ok(mut next) = self.next.try_borrow_mut() else { return false };
        let known = (Rc::clone(payload.route), payload.operation, payload.status);
        // A clock that was put back makes all due.
        if next.get(&known).is_some_and(|due| *due > now && *due - now <= self.millis) {
            return false;
        }
        if next.len() >= MAX_KNOWN {
            next.retain(|_, due| *due > now);
        }
        if next.len() < MAX_KNOWN {
            next.insert(known, now.saturating_add(self.millis));
        }
        let status = payload.status.to_le_bytes();
        let subject = [payload.route.as_bytes(), label().as_bytes(), &status].join(b"\0".as_slice());
        let mut first = false;
        let noted = LOOKED.update(host.shared(), &content_hash(&subject), now, |known| {
            first = known.is_none();
            if first { Update::Put(Vec::new(), now.saturating_add(self.millis)) } else { Update::Keep }
        });
        first && noted.is_ok()
    }
}

impl Payload<'_> {
    /// Sends what the payload looks like. `label` is the operation as the contract has it, `body` is there where it was read.
    pub(crate) fn send(&self, label: &str, content_type: Option<&[u8]>, body: Option<&[u8]>, host: &dyn Host) {
        let (method, path) = label.split_once(' ').unwrap_or(("", label));
        let essence = content_type.unwrap_or_default().split(|byte| *byte == b';').next().unwrap_or_default();
        let media = essence.iter().filter(|byte| byte.is_ascii_graphic()).take(64);
        let sample = DriftSample {
            route: self.route.to_string(),
            method: method.to_owned(),
            path: path.to_owned(),
            status: u32::from(self.status),
            media: media.map(|byte| char::from(byte.to_ascii_lowercase())).collect(),
            shape: body.and_then(shape_of),
        };
        host.send_report(DRIFT, sample.encode_to_vec());
    }
}
