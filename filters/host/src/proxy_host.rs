//! The world of a plugin, as the gateway gives it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;

use exchange::random::Generator;
use exchange::{BanOrder, Host, Level, Metric, SharedData};
use snapshot::content_hash;

use crate::calls::{self, LogLevel};
use crate::shared::NodeSharedData;
use crate::{link, reports};

/// [`Host`] over the gateway's calls, for one of its callbacks: a callback is one moment, and its time is asked for once.
/// All else belongs to the VM.
#[derive(Default)]
pub(crate) struct ProxyHost {
    now: OnceCell<u64>,
}

thread_local! {
    static RANDOM: RefCell<Generator> = RefCell::new(Generator::new(seed()));
    static LOST: Cell<Option<u32>> = const { Cell::new(None) };
    static COUNTERS: [Cell<Option<u32>>; Metric::ALL.len()] = const { [const { Cell::new(None) }; Metric::ALL.len()] };
}

/// Whether the node is without its control plane: 1 or 0.
const CONTROL_PLANE_LOST: &str = "palisade.control_plane_lost";

/// A key from the gateway's random source. Until the control plane's seed is mixed in, nothing else makes the numbers; a gateway
/// without such a source differs from others by its clock.
fn seed() -> [u8; 32] {
    let mut key = [0; 32];
    if !calls::random(&mut key) {
        calls::log(
            LogLevel::Warn,
            "palisade: this gateway gives no random bytes; ids can be predicted until it has a link",
        );
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(calls::now());
        key = content_hash(&hasher.finish().to_le_bytes());
    }
    key
}

/// Mixes a seed of the control plane into the random numbers of this VM.
pub(crate) fn mix_random(seed: &[u8]) {
    RANDOM.with_borrow_mut(|random| random.mix(seed));
}

/// Shows whether the node is without its control plane.
pub(crate) fn show_control_plane_lost(lost: bool) {
    if let Some(gauge) = LOST.get() {
        calls::record(gauge, u64::from(lost));
    }
}

/// Defines every metric once, so that a scrape shows them before the first request.
pub(crate) fn define_metrics() {
    if LOST.get().is_none() {
        LOST.set(calls::define_gauge(CONTROL_PLANE_LOST));
    }
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
        RANDOM.with_borrow_mut(Generator::draw)
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

    fn property(&self, path: &[String]) -> Option<Vec<u8>> {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        calls::property(&words).filter(|value| !value.is_empty())
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

    fn send_report(&self, kind: &'static str, data: Vec<u8>) {
        // Without a control plane nobody ever takes them.
        if link::is_configured() {
            reports::queue(kind, data);
        }
    }
}
