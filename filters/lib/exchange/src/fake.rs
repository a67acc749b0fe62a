//! A host in memory, with a clock that stands until it is moved.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use node_state::{MemorySharedData, SharedData};

use crate::{BanOrder, Host, Level, Metric};

/// A host whose every answer a test sets, and whose every word it can read afterwards.
#[derive(Default)]
pub struct FakeHost {
    /// Milliseconds since the Unix epoch.
    pub clock: Cell<u64>,
    /// The next random number; each one drawn is one more than the one before.
    pub randomness: Cell<u64>,
    /// The filter state of the request.
    pub state: RefCell<HashMap<String, Vec<u8>>>,
    /// The address and the port that the connection came to.
    pub local: RefCell<Option<Vec<u8>>>,
    /// What else the gateway knows, by path.
    pub properties: RefCell<HashMap<Vec<String>, Vec<u8>>>,
    /// What the workers of the node share.
    pub shared_data: Rc<MemorySharedData>,
    /// What was counted.
    pub counts: RefCell<HashMap<Metric, u64>>,
    /// What was logged.
    pub logged: RefCell<Vec<String>>,
    /// The events that were sent, each a line of JSON.
    pub events: RefCell<Vec<Vec<u8>>>,
    /// The bans that were ordered.
    pub bans: RefCell<Vec<BanOrder>>,
    /// The reports that were sent, with their kinds.
    pub reports: RefCell<Vec<(&'static str, Vec<u8>)>>,
}

impl FakeHost {
    /// A host at the given time.
    #[must_use]
    pub fn at(millis: u64) -> Self {
        let host = Self::default();
        host.clock.set(millis);
        host
    }

    /// Moves the clock.
    pub fn advance(&self, millis: u64) {
        self.clock.set(self.clock.get() + millis);
    }

    /// The events so far as JSON; an event that is none becomes null.
    #[must_use]
    pub fn events_json(&self) -> Vec<serde_json::Value> {
        self.events.borrow().iter().map(|line| serde_json::from_slice(line).unwrap_or_default()).collect()
    }
}

impl Host for FakeHost {
    fn now(&self) -> u64 {
        self.clock.get()
    }

    fn random(&self) -> u64 {
        self.randomness.replace(self.randomness.get() + 1)
    }

    fn filter_state(&self, token: &str) -> Option<Vec<u8>> {
        self.state.borrow().get(token).cloned()
    }

    fn set_filter_state(&self, token: &str, value: &[u8]) {
        self.state.borrow_mut().insert(token.to_owned(), value.to_vec());
    }

    fn local_address(&self) -> Option<Vec<u8>> {
        self.local.borrow().clone()
    }

    fn property(&self, path: &[String]) -> Option<Vec<u8>> {
        self.properties.borrow().get(path).cloned()
    }

    fn shared(&self) -> &dyn SharedData {
        &self.shared_data
    }

    fn shared_handle(&self) -> Rc<dyn SharedData> {
        Rc::clone(&self.shared_data) as Rc<dyn SharedData>
    }

    fn count(&self, metric: Metric) {
        *self.counts.borrow_mut().entry(metric).or_default() += 1;
    }

    fn log(&self, _level: Level, message: &str) {
        self.logged.borrow_mut().push(message.to_owned());
    }

    fn send_event(&self, event: &[u8]) {
        self.events.borrow_mut().push(event.to_vec());
    }

    fn send_ban(&self, ban: BanOrder) {
        self.bans.borrow_mut().push(ban);
    }

    fn send_report(&self, kind: &'static str, data: Vec<u8>) {
        self.reports.borrow_mut().push((kind, data));
    }
}
