//! A node that recorded exchanges run on: its clock is that of the recording, and what it would log, count and send is dropped.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use exchange::{BanOrder, Host, Level, MemorySharedData, Metric, SharedData};

/// The node. Its numbers are the same each time that an exchange runs, whatever ran before.
#[derive(Default)]
pub(super) struct RecordedHost {
    now_millis: Cell<u64>,
    random: Cell<u64>,
    local: RefCell<Vec<u8>>,
    shared: Rc<MemorySharedData>,
}

impl RecordedHost {
    /// An exchange begins: its number, its time, and the gateway's own address.
    pub(super) fn begin(&self, number: u64, now_millis: u64, local: &str) {
        self.now_millis.set(now_millis);
        self.random.set(number);
        let mut own = self.local.borrow_mut();
        own.clear();
        own.extend_from_slice(local.as_bytes());
    }
}

impl Host for RecordedHost {
    fn now(&self) -> u64 {
        self.now_millis.get()
    }

    fn random(&self) -> u64 {
        // splitmix64: here it need not be hard to guess.
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn filter_state(&self, _token: &str) -> Option<Vec<u8>> {
        None
    }

    fn set_filter_state(&self, _token: &str, _value: &[u8]) {}

    fn local_address(&self) -> Option<Vec<u8>> {
        let local = self.local.borrow();
        (!local.is_empty()).then(|| local.clone())
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
