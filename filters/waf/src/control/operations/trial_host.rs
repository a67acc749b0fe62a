//! What the plugin finds around an exchange that is tried out: a node of its own, which nothing was counted on.

use std::rc::Rc;

use exchange::{BanOrder, Host, Level, MemorySharedData, Metric, SharedData};

/// The gateway's own address.
const LOCAL: &[u8] = b"192.0.2.2:443";

/// A gateway that has just started. What it would log, count and send is dropped.
pub(super) struct TrialHost {
    now_millis: u64,
    shared: Rc<MemorySharedData>,
}

impl TrialHost {
    /// A gateway at this time, which stands still.
    pub(super) fn new(now_millis: u64) -> TrialHost {
        TrialHost { now_millis, shared: Rc::default() }
    }
}

impl Host for TrialHost {
    fn now(&self) -> u64 {
        self.now_millis
    }

    fn random(&self) -> u64 {
        getrandom::u64().unwrap_or_default()
    }

    fn filter_state(&self, _token: &str) -> Option<Vec<u8>> {
        None
    }

    fn set_filter_state(&self, _token: &str, _value: &[u8]) {}

    fn local_address(&self) -> Option<Vec<u8>> {
        Some(LOCAL.to_vec())
    }

    fn property(&self, _path: &[String]) -> Option<Vec<u8>> {
        None
    }

    fn shared(&self) -> &dyn SharedData {
        &self.shared
    }

    fn shared_handle(&self) -> Rc<dyn SharedData> {
        Rc::clone(&self.shared) as Rc<dyn SharedData>
    }

    fn count(&self, _metric: Metric) {}

    fn log(&self, _level: Level, _message: &str) {}

    fn send_event(&self, _event: &[u8]) {}

    fn send_ban(&self, _ban: BanOrder) {}

    fn send_report(&self, _kind: &'static str, _data: Vec<u8>) {}
}
