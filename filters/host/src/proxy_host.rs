//! The world of a plugin, as the gateway gives it.

use std::cell::{Cell, OnceCell};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;

use exchange::{BanOrder, Host, Level, Metric, SharedData};

use crate::calls::{self, LogLevel};
use crate::link;
use crate::shared::NodeSharedData;

/// [`Host`] over the gateway's calls, for one of its callbacks: a callback is one moment, and its time is asked for once.
/// All else belongs to the VM.
#[derive(Default)]
pub(crate) struct ProxyHost {
    now: OnceCell<u64>,
}

thread_local! {
    static RANDOM: Cell<u64> = Cell::new(seed());
    static COUNTERS: [Cell<Option<u32>>; Metric::ALL.len()] = const { [const { Cell::new(None) }; Metric::ALL.len()] };
}

/// The standard library's keys come from the gateway's random source; the clock sets apart VMs that started with one key.
fn seed() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(calls::now());
    hasher.finish()
}

/// Defines every counter once, so that a scrape shows them before the first request.
pub(crate) fn define_metrics() {
    COUNTERS.with(|counters| {
        for (counter, metric) in counters.iter().zip(Metric::ALL) {
            if counter.get().is_none() {
                counter.set(calls::define_counter(metric.name()));
            }
        }
    });
}

pub(crate) fn count(metric: Metric, by: u64) {
    COUNTERS.with(|counters| {
        let place = Metric::ALL.iter().position(|known| *known == metric);
        if let Some(id) = place.and_then(|place| counters.get(place)).and_then(Cell::get) {
            calls::increment(id, by);
        }
    });
}

impl Host for ProxyHost {
    fn now(&self) -> u64 {
        *self.now.get_or_init(calls::now)
    }

    fn random(&self) -> u64 {
        // SplitMix64: one addition a draw, every state visited once.
        let state = RANDOM.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        RANDOM.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn filter_state(&self, token: &str) -> Option<Vec<u8>> {
        calls::property(&[token])
    }

    fn set_filter_state(&self, token: &str, value: &[u8]) {
        calls::set_property(token, value);
    }

    fn local_address(&self) -> Option<Vec<u8>> {
        calls::property(&["destination", "address"])
    }

    fn shared(&self) -> &dyn SharedData {
        &NodeSharedData
    }

    fn shared_handle(&self) -> Rc<dyn SharedData> {
        Rc::new(NodeSharedData)
    }

    fn count(&self, metric: Metric) {
        count(metric, 1);
    }

    fn log(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        calls::log(level, message);
    }

    fn send_event(&self, event: &[u8]) {
        link::queue_event(event);
    }

    fn send_ban(&self, ban: BanOrder) {
        link::queue_ban(ban, calls::now());
    }
}
