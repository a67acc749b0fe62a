//! The traffic guard: routes, sources, consumers and networks whose requests come faster than usual add to the score.
//!
//! For each of them the node learns how many requests are usual in a bucket of some seconds. A bucket with several times as many is a surge,
//! which every request of the same key has as a signal until a whole bucket is calm again. Events name who makes a surge up. Nothing is
//! refused here.

mod causes;
#[cfg(feature = "control")]
pub mod control;
mod held;
mod messages;
mod open;
mod pace;
mod paces;
mod report;
mod silence;

use std::net::IpAddr;

use exchange::{
    Build, Exchange, Host, Plugin, PluginDefinition, RangesTable, Role, Signal, Slot, Timer, Verdict, Workers,
};
use prost::Message as _;

use causes::SurgeId;
pub use messages::{Dimension, DimensionOfStep, TrafficGuardStep};
use open::OpenSurges;
use pace::{Limits, Moment, Turn};
use paces::Paces;
use reputation_tables::{NETWORKS, network};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("traffic-guard", build).role(Role::Detector);

/// The filter state that names the dimensions in which a request was counted: a guard behind another one leaves them out.
const COUNTED: &str = "svc.traffic";
/// How often a worker looks for ends of surges, in milliseconds.
const LOOK_MILLIS: u32 = 1_000;
/// What is added to a weight past twice a threshold, and past four times.
const PAST_TWICE: f64 = 20.0;
const PAST_FOUR_TIMES: f64 = 40.0;

struct TrafficGuard {
    watched: Vec<Watched>,
    limits: Limits,
    paces: Paces,
    /// The numbers of networks; without the table there is no dimension of networks.
    networks: RangesTable,
    /// The surges that this worker has seen and whose end it looks for.
    open: OpenSurges,
}

/// A dimension that is watched.
struct Watched {
    dimension: Dimension,
    floor: f64,
    weight: f64,
}

/// The surges that a request is ranked in, once all is known of it.
struct InSurges(Vec<SurgeId>);

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = TrafficGuardStep::decode(config).map_err(|error| error.to_string())?;
    let watched = |of_step: &DimensionOfStep| {
        let dimension =
            Dimension::try_from(of_step.dimension).map_err(|_| "the traffic guard has an unknown dimension")?;
        Ok(Watched { dimension, floor: of_step.floor, weight: of_step.weight })
    };
    let limits = Limits {
        factor: step.surge_factor,
        millis: step.bucket_millis.max(1),
        learning: step.learning_buckets.max(1),
        warmup: step.warmup_buckets,
    };
    Ok(Box::new(TrafficGuard {
        watched: step.dimensions.iter().map(watched).collect::<Result<_, String>>()?,
        limits,
        paces: Paces::new(limits, step.max_keys),
        networks: build.ranges(NETWORKS)?,
        open: OpenSurges::default(),
    }))
}

impl Plugin for TrafficGuard {
    fn access(&self, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let mut counted = host.filter_state(COUNTED).unwrap_or_default();
        let already = counted.len();
        let mut surges = Vec::new();
        for watched in &self.watched {
            let letter = watched.dimension.letter();
            if counted.contains(&letter) {
                continue;
            }
            let Some(key) = self.key(watched.dimension, exchange) else { continue };
            counted.push(letter);
            let place = (watched.dimension, key.as_bytes());
            let Some(moment) = self.paces.count(place, (1, &exchange.route.id), watched.floor, host) else { continue };
            self.judge(watched, &key, &moment, exchange, host);
            if moment.pace.since != 0 && causes::is_sampled(moment.pace.count) {
                surges.push(causes::surge_id(letter, key.as_bytes(), moment.pace.since));
            }
        }
        if counted.len() > already {
            host.set_filter_state(COUNTED, &counted);
        }
        if !surges.is_empty() {
            slot.put(InSurges(surges));
        }
        Verdict::Pass
    }

    /// By now it is known whether the path holds a secret.
    fn finish(&self, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) {
        let Some(InSurges(surges)) = slot.take() else { return };
        let network = self.network_of(exchange);
        surges.into_iter().for_each(|surge| causes::rank(surge, &network, exchange, host));
    }

    fn timer(&self) -> Option<Timer> {
        Some(Timer { millis: LOOK_MILLIS, on: Workers::All })
    }

    /// A surge is over with the bucket in which it was calm, whether or not another request comes.
    fn on_timer(&self, host: &dyn Host) {
        self.paces.begin(host);
        let of = |kind: u8| self.watched.iter().find(|watched| watched.dimension as u8 == kind);
        self.paces.settle_all(|kind| of(kind).map_or(0.0, |watched| watched.floor), host);
        self.open.look(self.limits.bucket(host.now()), |open| {
            let Some(watched) = of(open.dimension as u8) else { return false };
            let Some(moment) = self.paces.look((open.dimension, open.key.as_bytes()), watched.floor, host) else {
                return false;
            };
            if moment.turn != Turn::None {
                let mut exchange = Exchange { route: open.route.clone(), ..Exchange::default() };
                self.report(open.dimension, &open.key, &moment, &mut exchange, host);
            }
            moment.pace.since != 0
        });
    }
}

impl TrafficGuard {
    /// What a request is counted by in a dimension; `None` where it has nothing of the kind.
    fn key(&self, dimension: Dimension, exchange: &Exchange) -> Option<String> {
        let caller = &exchange.caller;
        match dimension {
            // Requests without a route count together.
            Dimension::Route => Some(exchange.route.id.to_string()),
            Dimension::Source => caller.network(),
            Dimension::Consumer => {
                let consumer = caller.identities().next();
                consumer.filter(|identity| identity.kind != exchange::IdentityKind::Ip).map(|identity| identity.key())
            }
            Dimension::Asn => self.asn(exchange).map(|number| format!("AS{number}")),
        }
    }

    /// The number of the network that the caller's address is in.
    fn asn(&self, exchange: &Exchange) -> Option<u32> {
        let address = exchange.caller.ip.parse::<IpAddr>().ok()?.to_canonical();
        self.networks.read(|networks| networks.find(address))?
    }

    /// The network of the caller as rankings name it: its number, or where that is not known the range around the address.
    fn network_of(&self, exchange: &Exchange) -> String {
        if let Some(number) = self.asn(exchange) {
            return format!("AS{number}");
        }
        let Ok(address) = exchange.caller.ip.parse::<IpAddr>() else { return String::new() };
        match network(address)[..] {
            [a, b, c] => format!("{a}.{b}.{c}.0/24"),
            [a, b, c, d, e, f] => format!("{a:x}{b:02x}:{c:x}{d:02x}:{e:x}{f:02x}::/48"),
            _ => String::new(),
        }
    }

    /// Adds a surge to the score, and tells what has changed in it.
    fn judge(&self, watched: &Watched, key: &str, moment: &Moment, exchange: &mut Exchange, host: &dyn Host) {
        if moment.pace.since != 0 {
            let bucket = self.limits.bucket(host.now());
            self.open.note(bucket, (watched.dimension, key), &exchange.route);
            exchange.score.add(Signal {
                source: "traffic".into(),
                kind: "traffic".into(),
                weight: watched.points(moment),
                confidence: 1.0,
                tag: watched.dimension.tag().into(),
                detail: self.describe(watched.dimension, key, moment),
                at: host.now(),
            });
        }
        if moment.turn != Turn::None {
            self.report(watched.dimension, key, moment, exchange, host);
        }
    }
}

impl Watched {
    /// What a surge adds to the score. A weight of 0 is an operator's: it stays.
    fn points(&self, moment: &Moment) -> f64 {
        let times = moment.pace.times(moment.threshold);
        let more = match self.dimension {
            // A route's surge is made by callers of all kinds: most are innocent.
            Dimension::Route => 0.0,
            _ if self.weight <= 0.0 => 0.0,
            _ if times > 4.0 => PAST_FOUR_TIMES,
            _ if times > 2.0 => PAST_TWICE,
            _ => 0.0,
        };
        (self.weight + more).min(100.0)
    }
}

impl Dimension {
    /// The tag of its surges.
    fn tag(self) -> &'static str {
        match self {
            Self::Route => "traffic:route_surge",
            Self::Source => "traffic:source_surge",
            Self::Consumer => "traffic:consumer_surge",
            Self::Asn => "traffic:asn_surge",
        }
    }

    /// It as a letter.
    fn letter(self) -> u8 {
        match self {
            Self::Route => b'r',
            Self::Source => b's',
            Self::Consumer => b'c',
            Self::Asn => b'a',
        }
    }
}

#[cfg(test)]
mod tests;
