//! The root context: one configuration of one filter.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use exchange::{Chain, Loaded, PluginDefinition};
use node_state::KeptParts;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;
use snapshot::{Configuration, LinkSettings, LoadReport, Part, PartHash, read_configuration};

use crate::calls::{self, Buffer, LogLevel};
use crate::http::HttpFilter;
use crate::proxy_host::ProxyHost;
use crate::proxy_host::define_metrics;
use crate::shared::{NodeSharedData, worker_id};
use crate::{held, link, roots, tables, tarpit};

/// How often queued events leave and held requests are looked at where the snapshot does not say, in milliseconds.
const TICK: u32 = 200;
/// How soon the next tick comes while held requests are overdue, in milliseconds.
const OVERDUE_TICK: u32 = 5;
/// How soon the next tick comes while plugins have something to prepare, or tables something to merge, in milliseconds: a few in a hundred of a worker's
/// time, for some seconds.
const PREPARING_TICK: u32 = 20;
/// The bounds of what a snapshot may say: events soon enough to be useful, ticks rare enough to cost nothing.
const TICK_RANGE: std::ops::RangeInclusive<u32> = 50..=1000;

thread_local! {
    /// The chains of this VM. A gateway gives a new configuration to the VM that runs the old one, which lives on until the
    /// last request on it has ended: what it has made of a part need not be made again.
    static CHAINS: RefCell<Vec<Weak<Chain>>> = const { RefCell::new(Vec::new()) };
}

/// Starts a filter: what a module's entry calls.
pub fn start(filter: &'static str, registry: &'static [PluginDefinition]) {
    proxy_wasm::set_root_context(store_definition(filter, registry));
}

/// The SDK takes a plain function; what it needs to know is the same for the whole module, so it waits in a cell.
fn store_definition(filter: &'static str, registry: &'static [PluginDefinition]) -> fn(u32) -> Box<dyn RootContext> {
    DEFINITION.set(Some((filter, registry)));
    |context| {
        let (filter, registry) = DEFINITION.get().unwrap_or(("", &[]));
        Box::new(Root {
            context,
            filter,
            registry,
            chain: None,
            node: Rc::from(""),
            hold_headers: true,
            tick: TICK,
            period: TICK,
            preparing: false,
            merging: false,
            settings: Settings::default(),
        })
    }
}

thread_local! {
    static DEFINITION: Cell<Option<(&'static str, &'static [PluginDefinition])>> = const { Cell::new(None) };
}

struct Root {
    context: u32,
    filter: &'static str,
    registry: &'static [PluginDefinition],
    chain: Option<Rc<Chain>>,
    node: Rc<str>,
    /// See [`Configuration::hold_headers`].
    hold_headers: bool,
    /// In milliseconds.
    tick: u32,
    /// After how many milliseconds ticks come now: sooner than that where there is something to do.
    period: u32,
    /// The plugins of its chain may have something to prepare.
    preparing: bool,
    /// The worker's tables have changes to merge.
    merging: bool,
    settings: Settings,
}

/// What of a snapshot is for the whole VM while its root context is the newest.
#[derive(Default)]
struct Settings {
    link: Option<LinkSettings>,
    /// See [`tarpit::configure`].
    max_held: u32,
    load: LoadReport,
}

impl Context for Root {
    fn on_grpc_stream_message(&mut self, token: u32, size: usize) {
        // A message whose fields are all at their defaults has no bytes.
        link::received(token, &calls::buffer(Buffer::GrpcMessage, size).unwrap_or_default());
        // Requests that waited for an answer in it go on at once.
        self.release();
        if self.take_over_if_newest() && calls::set_effective_context(self.context) {
            link::flush(self.context);
        }
    }

    fn on_grpc_stream_close(&mut self, token: u32, status: u32) {
        link::closed(token, status);
        // Messages that waited for answers on it go on at once.
        self.release();
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        let bytes = calls::buffer(Buffer::Configuration, size).unwrap_or_default();
        match self.load(&bytes) {
            Ok((version, Loaded { decoded, reused })) => {
                define_metrics();
                roots::configured(self.context);
                refusals::skip(self.filter);
                calls::log(
                    LogLevel::Info,
                    &format!(
                        "palisade: filter `{}` runs snapshot {version} (parts_decoded={decoded} parts_reused={reused})",
                        self.filter
                    ),
                );
                let (parts_decoded, parts_reused) = (decoded, reused);
                let filter = self.filter.into();
                self.settings.load = LoadReport { filter, version, error: String::new(), parts_decoded, parts_reused };
                self.take_over_if_newest();
                true
            }
            Err((version, error)) => {
                calls::log(
                    LogLevel::Error,
                    &format!("palisade: filter `{}` refuses its configuration: {error}", self.filter),
                );
                refusals::note(self.filter, &version, &error);
                false
            }
        }
    }

    fn on_tick(&mut self) {
        let newest = self.take_over_if_newest();
        self.preparing &= newest && self.chain.as_ref().is_some_and(|chain| chain.prepare());
        self.merging = newest && tables::merge();
        self.release();
        if newest {
            tables::tick();
            if let Some(chain) = &self.chain {
                chain.run_timers(worker_id(), &ProxyHost::default());
            }
            if let Some(refused) = refusals::news(self.filter) {
                link::report_load(refused);
            }
            link::flush(self.context);
        }
    }

    fn create_http_context(&self, context: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(HttpFilter::new(context, self.chain.clone(), Rc::clone(&self.node), self.hold_headers)))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

impl Root {
    /// Whether this root context is the newest that lives. Where it has become that, its settings take effect first.
    fn take_over_if_newest(&mut self) -> bool {
        if roots::takes_over(self.context) {
            let Settings { link, max_held, load } = &self.settings;
            tables::kept_others();
            link::configure(link.clone());
            tarpit::configure(*max_held);
            link::report_load(load.clone());
            self.preparing = true;
        }
        roots::is_newest(self.context)
    }

    /// Releases held requests that are due, and comes back soon where there are more.
    fn release(&mut self) {
        let overdue = held::release();
        calls::set_effective_context(self.context);
        let period = match () {
            () if overdue => OVERDUE_TICK,
            () if self.preparing || self.merging => PREPARING_TICK,
            () => self.tick,
        };
        if period != std::mem::replace(&mut self.period, period) {
            calls::set_tick_period(period);
        }
    }

    /// Makes the chains of a snapshot; on failure its version, as far as it was readable, and the reason.
    fn load(&mut self, bytes: &[u8]) -> Result<(String, Loaded), (String, String)> {
        let Configuration { version, snapshot, hold_headers } =
            read_configuration(bytes).map_err(|error| (String::new(), error.to_string()))?;
        if snapshot.filter != self.filter {
            let error = format!("the snapshot is for filter `{}`, this is `{}`", snapshot.filter, self.filter);
            return Err((version, error));
        }
        let earlier = living_chains();
        let kept = KeptParts::of(self.filter);
        let find = |hash: &PartHash| kept.get(&NodeSharedData, hash);
        let chain = Chain::load_after(&snapshot, self.registry, &find, &earlier, &tables::of_worker());
        let chain = Rc::new(chain.map_err(|error| (version.clone(), error.to_string()))?);
        // Only a control plane leaves parts out.
        if snapshot.link.is_some() {
            keep_parts(kept, &snapshot.parts);
        }
        let loaded = chain.loaded();
        CHAINS.with_borrow_mut(|chains| chains.push(Rc::downgrade(&chain)));
        self.chain = Some(chain);
        self.hold_headers = hold_headers;
        self.node = Rc::from(link::node_id());
        let tick = snapshot.link.as_ref().map(|link| link.flush_millis).filter(|millis| TICK_RANGE.contains(millis));
        self.tick = tick.unwrap_or(TICK);
        (self.period, self.preparing) = (PREPARING_TICK, true);
        calls::set_tick_period(self.period);
        (self.settings.link, self.settings.max_held) = (snapshot.link, snapshot.max_held);
        Ok((version, loaded))
    }
}

/// Keeps the parts of a snapshot in the node, so that the control plane need not send them again.
fn keep_parts(kept: KeptParts<'_>, parts: &[Part]) {
    let in_use = parts.iter().filter_map(|part| Some((part.hash.as_slice().try_into().ok()?, part.data.as_slice())));
    kept.keep(&NodeSharedData, &in_use.collect::<Vec<_>>());
}

/// The chains that are still in use, the newest first.
fn living_chains() -> Vec<Rc<Chain>> {
    CHAINS.with_borrow_mut(|chains| {
        chains.retain(|chain| chain.strong_count() > 0);
        chains.iter().rev().filter_map(Weak::upgrade).collect()
    })
}

impl Drop for Root {
    fn drop(&mut self) {
        roots::ended(self.context);
        link::owner_gone(self.context);
    }
}

/// Why a configuration was refused: noted by the VM that refuses it, which ends right after, and found by one that lives.
mod refusals {
    use std::cell::RefCell;

    use snapshot::{LoadReport, Message};

    use crate::calls;

    thread_local! {
        static SEEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    fn key(filter: &str) -> String {
        format!("svc.refused/{filter}")
    }

    pub(super) fn note(filter: &str, version: &str, error: &str) {
        let report =
            LoadReport { filter: filter.into(), version: version.into(), error: error.into(), ..LoadReport::default() };
        // Whatever was noted before is out of date.
        let token = calls::shared_data(&key(filter)).map_or(0, |(_, token)| token);
        if calls::set_shared_data(&key(filter), &report.encode_to_vec(), token).is_err() {
            calls::log(calls::LogLevel::Warn, "palisade: the reason could not be noted for the control plane");
        }
    }

    /// What was refused before this VM took a configuration was reported already.
    pub(super) fn skip(filter: &str) {
        SEEN.set(calls::shared_data(&key(filter)).map_or(Vec::new(), |(bytes, _)| bytes));
    }

    pub(super) fn news(filter: &str) -> Option<LoadReport> {
        let (bytes, _) = calls::shared_data(&key(filter))?;
        SEEN.with_borrow_mut(|seen| {
            if *seen == bytes {
                return None;
            }
            let report = LoadReport::decode(bytes.as_slice()).ok();
            *seen = bytes;
            report
        })
    }
}
