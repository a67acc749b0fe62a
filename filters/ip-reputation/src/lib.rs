//! The IP reputation: callers whose address is on a threat feed, or under a decision of a decision service, add to the score or are
//! refused. Those of a class of networks, such as hosting, add to the score.
//!
//! The control plane makes one table of all feeds: ranges of addresses, each labelled with the keys of the feeds that list it. A step
//! has what a hit on each of its feeds means, so steps with different feeds share the table. The classes of networks are such a table too.

#[cfg(feature = "control")]
pub mod control;
mod messages;
mod noting;

use std::net::IpAddr;

use exchange::{
    Action, Answer, Build, Category, Decision, Exchange, Exemptions, Host, KeysTable, Outcome, Plugin,
    PluginDefinition, RangesTable, Refusal, Role, SecurityEvent, Slot, Table, Verdict, canonical,
};
use prost::Message as _;

pub use messages::{FeedOfStep, IpReputationStep};
use reputation_tables::Blocklists;
pub use reputation_tables::{
    AddressAnswer, AddressQuestion, AddressVerdict, COUNTRIES, NETWORKS, REPORTS, VERDICTS, address_bytes,
    country_label, is_listable, label_country, network, read_address, verdict_key,
};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("ip-reputation", build).role(Role::Detector);

/// The table of address ranges, each labelled with the keys of the feeds that list it, with commas between them.
pub const TABLE: &str = "ip-reputation.feeds";

/// The table of address ranges that decision services have decisions on, each labelled with the keys of the bouncers. A key with
/// [`MILD`] behind it is for a decision other than a ban.
pub const DECISIONS: &str = "ip-reputation.decisions";

/// The table of countries (`country:cn`) and networks (`as:64496`) with decisions, with the keys of the bouncers.
pub const NAMED_DECISIONS: &str = "ip-reputation.named-decisions";

/// The table of address ranges, each labelled with the keys of the classes that databases have its network in.
pub const CLASSES: &str = "ip-reputation.classes";

/// What is behind the key of a bouncer whose decision is no ban: it never refuses by itself.
pub const MILD: char = '~';

/// The source of its signals.
pub(crate) const SOURCE: &str = "reputation.feed";

/// The kind of its signals, and that of a step whose refusals are reported to decision services: the control plane knows them by it.
const KIND: &str = "reputation";
pub(crate) const REPORTED: &str = "reputation.reported";

/// The tag of the one signal of all other feeds.
pub(crate) const OTHERS: &str = "reputation:others";

/// What a monitoring step has reported within the last minute: of each caller and reason once.
const WATCHED: Table = Table { name: "reputation.watched", shards: 32, entries_per_shard: 64 };
/// How long it is not reported again, in milliseconds.
const WATCH_AFTER: u64 = 60_000;

struct IpReputation {
    /// Sorted by their keys.
    feeds: Vec<FeedOfStep>,
    passthrough: Exemptions,
    monitor: bool,
    score_threshold: f64,
    status: u16,
    report: bool,
    table: RangesTable,
    /// Those of classes of networks, where it has any.
    classes: Option<RangesTable>,
    /// Those of bouncers, where it has any.
    decisions: Option<Decisions>,
    /// DNS blocklists, where it has any.
    blocklists: Option<Blocklists>,
}

/// The tables that decisions are found in.
struct Decisions {
    /// Of addresses and ranges.
    ranges: RangesTable,
    /// Of networks and countries.
    named: KeysTable,
    /// The number of the network of an address, where a bouncer has decisions on networks.
    networks: Option<RangesTable>,
    /// The country of an address, where a bouncer has decisions on countries.
    countries: Option<RangesTable>,
}

/// A feed, a bouncer, a zone or a class of networks that has an address.
#[derive(Clone, Copy)]
struct Hit<'a> {
    feed: &'a FeedOfStep,
    /// It refuses regardless of the score.
    blocks: bool,
    /// What it is on: the caller's address, network or country.
    on: &'static str,
}

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = IpReputationStep::decode(config).map_err(|error| error.to_string())?;
    let status = u16::try_from(step.status).ok().filter(|status| (200..=599).contains(status));
    let status = status.ok_or("the IP reputation refuses with something that is no status")?;
    let IpReputationStep {
        mut feeds,
        monitor,
        score_threshold,
        passthrough,
        report,
        wait_millis,
        by_network,
        by_country,
        ..
    } = step;
    feeds.sort_by(|one, other| one.key.cmp(&other.key));
    let passthrough = Exemptions::new(&passthrough)?;
    let table = build.ranges(TABLE)?;
    let classes = if feeds.iter().any(|feed| feed.class) { Some(build.ranges(CLASSES)?) } else { None };
    let decisions = match feeds.iter().any(|feed| feed.bouncer) {
        true => Some(Decisions {
            ranges: build.ranges(DECISIONS)?,
            named: build.keys(NAMED_DECISIONS)?,
            networks: if by_network { Some(build.ranges(NETWORKS)?) } else { None },
            countries: if by_country { Some(build.ranges(COUNTRIES)?) } else { None },
        }),
        false => None,
    };
    let blocklists = match feeds.iter().any(|feed| feed.zone) {
        true => Some(Blocklists::new(build.keys(VERDICTS)?, wait_millis)),
        false => None,
    };
    Ok(Box::new(IpReputation {
        feeds,
        passthrough,
        monitor,
        score_threshold,
        status,
        report,
        table,
        classes,
        decisions,
        blocklists,
    }))
}

impl Plugin for IpReputation {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        // Without an address, and without the table, nothing is known of the caller: the request passes.
        let Some(address) = address_of(exchange) else { return Verdict::Pass };
        let listed = match self.blocklists.as_ref().map(|lists| (lists, lists.known(address, host))) {
            None => Vec::new(),
            Some((_, Some(keys))) => keys,
            Some((lists, None)) => {
                if self.passthrough.cover(&address.to_string()) {
                    return Verdict::Pass;
                }
                // A caller that is refused anyway is not worth a question.
                let is_refused = !self.monitor && self.reason(&self.hits(address, &[])).is_some();
                match if is_refused { None } else { lists.ask(address, host) } {
                    Some(ask) => return Verdict::Ask(ask),
                    None => Vec::new(),
                }
            }
        };
        self.judge(address, &listed, exchange, host)
    }

    fn answered(&self, exchange: &mut Exchange, answer: Answer, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(address) = address_of(exchange) else { return Verdict::Pass };
        // Without an answer in time the verdict counts from a later request on.
        let listed = Blocklists::answered(address, &answer, host);
        self.judge(address, &listed, exchange, host)
    }
}

fn address_of(exchange: &Exchange) -> Option<IpAddr> {
    exchange.caller.ip.parse::<IpAddr>().ok().map(canonical)
}

impl IpReputation {
    /// Acts on a caller, whom the zones with the keys `listed` list.
    fn judge(&self, address: IpAddr, listed: &[u8], exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let hits = self.hits(address, listed);
        if hits.is_empty() || self.passthrough.cover(&address.to_string()) {
            return Verdict::Pass;
        }
        noting::note_all(&hits, self.kind(), exchange, host);
        match self.reason(&hits) {
            Some(reason) if self.monitor => {
                if is_due(address, &reason, host) {
                    observe(reason, exchange, host);
                }
                Verdict::Pass
            }
            Some(reason) => Verdict::Refuse(Refusal::new(self.status, Category::Threat, reason).scored()),
            None => Verdict::Pass,
        }
    }

    /// The kind of its signals.
    fn kind(&self) -> &'static str {
        if self.report { REPORTED } else { KIND }
    }

    /// The feeds, bouncers and classes of this step that have an address and mean something, and the zones with the keys `listed`.
    fn hits(&self, address: IpAddr, listed: &[u8]) -> Vec<Hit<'_>> {
        let mut found = Vec::new();
        let decisions = self.decisions.as_ref();
        let tables = [Some(&self.table), self.classes.as_ref(), decisions.map(|decisions| &decisions.ranges)];
        for table in tables.into_iter().flatten() {
            let _ = table.read(|ranges| {
                let keys = ranges.find(address).and_then(|label| ranges.name(label)).unwrap_or_default();
                self.take(keys, "address", &mut found);
            });
        }
        if let Some(decisions) = decisions {
            self.named_hits(address, decisions, &mut found);
        }
        let is_zone = |hit: &Hit<'_>| hit.feed.zone;
        found.retain(|hit| !is_zone(hit));
        found.extend(listed.split(|byte| *byte == b',').filter_map(|key| self.hit(key, "address")).filter(is_zone));
        found.retain(|hit: &Hit<'_>| hit.blocks || hit.feed.weight > 0.0);
        // The strongest first; feeds alike stay in the order of their keys.
        found.sort_by(|one, other| other.blocks.cmp(&one.blocks).then(other.feed.weight.total_cmp(&one.feed.weight)));
        // A bouncer with a ban and a milder decision counts once, as a ban. Databases that agree on a class count once.
        let mut once: Vec<Hit<'_>> = Vec::with_capacity(found.len());
        for hit in found {
            let is_same = |known: &FeedOfStep| {
                known.key == hit.feed.key || (known.class && hit.feed.class && known.tag == hit.feed.tag)
            };
            if !once.iter().any(|known| is_same(known.feed)) {
                once.push(hit);
            }
        }
        once
    }

    /// The bouncers with decisions on the network and on the country of an address.
    fn named_hits<'a>(&'a self, address: IpAddr, decisions: &Decisions, found: &mut Vec<Hit<'a>>) {
        let label = |table: &Option<RangesTable>| table.as_ref()?.read(|ranges| ranges.find(address))?;
        let network = label(&decisions.networks).map(|number| (format!("as:{number}"), "network"));
        let country = label(&decisions.countries).and_then(label_country);
        let country = country.map(|letters| {
            let [one, other] = letters.map(|letter| char::from(letter.to_ascii_lowercase()));
            (format!("country:{one}{other}"), "country")
        });
        for (name, on) in network.into_iter().chain(country) {
            let _ = decisions.named.read(|named| self.take(named.find(name.as_bytes()).unwrap_or_default(), on, found));
        }
    }

    /// Takes the feeds of keys with commas between them.
    fn take<'a>(&'a self, keys: &[u8], on: &'static str, found: &mut Vec<Hit<'a>>) {
        found.extend(keys.split(|byte| *byte == b',').filter_map(|key| self.hit(key, on)));
    }

    fn hit(&self, key: &[u8], on: &'static str) -> Option<Hit<'_>> {
        let (key, mild) = key.strip_suffix(&[MILD as u8]).map_or((key, false), |key| (key, true));
        let place = self.feeds.binary_search_by(|feed| feed.key.as_bytes().cmp(key)).ok()?;
        let feed = self.feeds.get(place)?;
        Some(Hit { feed, blocks: feed.blocks && !mild && !feed.class, on })
    }

    /// Why a caller with these hits is refused, if it is.
    fn reason(&self, hits: &[Hit<'_>]) -> Option<String> {
        if let Some(Hit { feed, on, .. }) = hits.iter().find(|hit| hit.blocks) {
            if feed.zone {
                return Some(format!("the caller's address is on the DNS blocklist `{}`", feed.name));
            }
            return Some(match feed.bouncer {
                true => format!("the decision service of `{}` bans the caller's {on}", feed.name),
                false => format!("the caller's address is on the threat feed `{}`", feed.name),
            });
        }
        // A class of networks never refuses, neither by itself nor as a part of the sum.
        let sum: f64 = hits.iter().filter(|hit| !hit.feed.class).map(|hit| hit.feed.weight).sum();
        let reached = self.score_threshold > 0.0 && sum >= self.score_threshold;
        reached.then(|| format!("the threat feeds that list the caller's address weigh {sum}"))
    }
}

/// Reports that a caller would have been refused.
fn observe(reason: String, exchange: &mut Exchange, host: &dyn Host) {
    let decision = Decision::new(Action::Deny, exchange.score.total(), reason).dry_run();
    let event = SecurityEvent {
        category: Category::Threat,
        outcome: Outcome::Observed,
        module: PLUGIN.name,
        message: &decision.reason,
        decision: &decision,
    };
    exchange.emit(&event, host);
}

/// Whether that is to be reported again; if so, it is noted.
fn is_due(address: IpAddr, reason: &str, host: &dyn Host) -> bool {
    let subject = [address.to_string().as_bytes(), b"\0", reason.as_bytes()].concat();
    WATCHED.is_due(host.shared(), &subject, host.now(), WATCH_AFTER)
}

#[cfg(test)]
mod tests;
