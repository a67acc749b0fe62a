//! One ADS stream as a state machine without I/O: requests and sets go in, responses come out.
//!
//! State of the world and delta differ in what a response holds and how a subscription changes; everything else is
//! shared here. At most one response per type is unanswered at a time, so a slow Envoy costs no memory and an answer
//! always belongs to the last response.
//!
//! The order of a change, so that nothing refers to what is not there: clusters first; listeners and routes once the
//! clusters were taken; what was removed goes last, when everything that could refer to it was replaced. Filters are not
//! taken from a delta client at all: it gives them up when the last listener with them is gone. A set whose
//! clusters are refused changes no listener and no route: the old ones keep serving. (One case is out of reach: a
//! state-of-the-world client that reconnects to another control plane loses clusters that this one never knew before its
//! routes change. Delta clients keep them.)

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};

use super::parted::PartSet;
use super::set::{Kind, Resource, ResourceSet, version_of};
use super::wire::{Changed, DeltaReply, StateReply};

/// Which of the two protocols a stream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Each response holds every resource that is subscribed to.
    StateOfTheWorld,
    /// Each response holds what changed.
    Delta,
}

/// What a session wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this (state of the world).
    State(StateReply),
    /// Send this (delta).
    Delta(DeltaReply),
    /// A response was taken or refused.
    Answered {
        /// Of which kind it was.
        kind: Kind,
        /// Its version.
        version: String,
        /// Envoy's reason where it was refused, with the names of the resources in the response.
        refused: Option<(String, Vec<String>)>,
    },
}

/// One stream.
#[derive(Debug)]
pub struct Session {
    protocol: Protocol,
    set: Arc<ResourceSet>,
    subscriptions: BTreeMap<Kind, Subscription>,
    /// What the set no longer has stays with the client until nothing refers to it.
    retaining: bool,
    nonces: u64,
}

/// What the client asked for and holds, of one kind.
#[derive(Debug, Default)]
struct Subscription {
    /// Everything of the kind.
    wildcard: bool,
    /// These.
    names: BTreeSet<String>,
    /// By name, the version that the client was last sent (delta); empty for "there is no such resource".
    sent: BTreeMap<String, String>,
    /// Version of the last response (state of the world).
    sent_version: Option<String>,
    /// Nonce of the last response; empty before the first.
    last_nonce: String,
    /// What the client last took (state of the world).
    held: BTreeMap<String, Arc<Resource>>,
    /// By name, the parts that the client has taken with the resource (delta). What it is sent next comes without them.
    parts: BTreeMap<String, PartSet>,
    /// The response that waits for its answer.
    in_flight: Option<InFlight>,
    /// The last response was refused.
    refused: bool,
    /// The client holds something of this kind.
    holds: bool,
}

#[derive(Debug)]
struct InFlight {
    version: String,
    names: Vec<String>,
    /// The whole state that it holds (state of the world).
    state: BTreeMap<String, Arc<Resource>>,
    /// The parts of its resources (delta).
    parts: Vec<(String, PartSet)>,
    /// The resources that came without some of their parts.
    slim: Vec<String>,
}

// === impl Session ===

impl Session {
    /// A new stream that is to be given `set`.
    #[must_use]
    pub fn new(protocol: Protocol, set: Arc<ResourceSet>) -> Session {
        Session { protocol, set, subscriptions: BTreeMap::new(), retaining: true, nonces: 0 }
    }

    /// Another set is to be served.
    pub fn publish(&mut self, set: Arc<ResourceSet>) -> Vec<Output> {
        self.retaining = true;
        self.set = set;
        self.advance(Vec::new())
    }

    /// The client has taken all that it asked for of what is served.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        Kind::ALL.into_iter().all(|kind| self.settled(kind))
    }

    /// What the client asks for and is not ours to serve.
    #[must_use]
    pub fn not_served(&self) -> Vec<Kind> {
        self.subscriptions.keys().copied().filter(|kind| !self.set.serves(*kind)).collect()
    }

    /// A request of a state-of-the-world stream.
    pub fn state_request(&mut self, request: DiscoveryRequest) -> Vec<Output> {
        let Some(kind) = Kind::of_type_url(&request.type_url) else { return Vec::new() };
        let known = self.subscriptions.contains_key(&kind);
        let subscription = self.subscriptions.entry(kind).or_default();
        let mut outputs = Vec::new();
        if known {
            // A request that answers another response than the last was sent before the client saw that one: it will
            // answer again.
            if request.response_nonce != subscription.last_nonce {
                return Vec::new();
            }
            outputs.extend(subscription.answer(kind, request.error_detail.map(|status| status.message)));
        } else {
            subscription.holds = !request.version_info.is_empty();
        }
        let mut names: BTreeSet<String> = request.resource_names.into_iter().collect();
        // An empty list asks for everything, unless the client asked for something by name before.
        let unnamed = names.is_empty() && if known { subscription.wildcard } else { kind.has_wildcard() };
        let wildcard = names.remove("*") || unnamed;
        let more = (wildcard && !subscription.wildcard) || !names.is_subset(&subscription.names);
        let in_step = known && !more && self.subscriptions.get(&kind).is_some_and(|it| !self.differs(kind, it));
        if let Some(subscription) = self.subscriptions.get_mut(&kind) {
            subscription.wildcard = wildcard;
            subscription.names = names;
            if known && more {
                // Who asks for what it had given up has dropped it, although nothing of it has changed.
                subscription.sent_version = None;
            }
        }
        if in_step || (!known && !request.version_info.is_empty()) {
            self.resume(kind, (!known).then_some(request.version_info));
        }
        self.advance(outputs)
    }

    /// What the client asks for it was sent already: on an earlier stream, whose version it names, or on this one, where
    /// it asks for less than before.
    fn resume(&mut self, kind: Kind, earlier: Option<String>) {
        let Some(subscription) = self.subscriptions.get(&kind) else { return };
        let target = self.target(kind, subscription);
        let version = version_of(target.iter().copied());
        let held = match earlier {
            Some(named) if named != version => return,
            // A client names what it has taken.
            Some(_) => Some(target.into_iter().map(|(name, held)| (name.clone(), Arc::clone(held))).collect()),
            None => None,
        };
        if let Some(subscription) = self.subscriptions.get_mut(&kind) {
            subscription.held = held.unwrap_or_else(|| std::mem::take(&mut subscription.held));
            subscription.sent_version = Some(version);
        }
    }

    /// A request of a delta stream.
    pub fn delta_request(&mut self, request: DeltaDiscoveryRequest) -> Vec<Output> {
        let Some(kind) = Kind::of_type_url(&request.type_url) else { return Vec::new() };
        let known = self.subscriptions.contains_key(&kind);
        let subscription = self.subscriptions.entry(kind).or_default();
        let mut outputs = Vec::new();
        if !known {
            subscription.holds = !request.initial_resource_versions.is_empty();
            subscription.sent = request.initial_resource_versions.into_iter().collect();
            subscription.wildcard = request.resource_names_subscribe.is_empty() && kind.has_wildcard();
        } else if !request.response_nonce.is_empty() && request.response_nonce == subscription.last_nonce {
            // An answer to an older response counts for nothing; the changes beside it do.
            outputs.extend(subscription.answer(kind, request.error_detail.map(|status| status.message)));
        }
        subscription.change(known, request.resource_names_subscribe, request.resource_names_unsubscribe);
        self.advance(outputs)
    }

    /// Sends what can be sent now.
    fn advance(&mut self, mut outputs: Vec<Output>) -> Vec<Output> {
        for kind in Kind::ALL {
            if self.may_send(kind) {
                outputs.extend(self.respond(kind));
            }
        }
        if self.retaining && self.complete() && Kind::ALL.into_iter().all(|kind| self.settled(kind)) {
            self.retaining = false;
            return self.advance(outputs);
        }
        outputs
    }

    /// Listeners and routes wait for the clusters that they may refer to, unless the client has none yet.
    fn may_send(&self, kind: Kind) -> bool {
        let Some(subscription) = self.subscriptions.get(&kind) else { return false };
        if !self.set.serves(kind) {
            return false;
        }
        let waits = matches!(kind, Kind::Listener | Kind::Route) && subscription.holds;
        subscription.in_flight.is_none() && (!waits || self.settled(Kind::Cluster))
    }

    /// The client has asked for all that may refer to clusters. After a reconnect its requests come one by one.
    fn complete(&self) -> bool {
        !self.set.serves(Kind::Route)
            || !self.subscriptions.contains_key(&Kind::Cluster)
            || self.subscriptions.contains_key(&Kind::Route)
    }

    /// What is gone from the set is withheld from this kind for now.
    fn retains(&self, kind: Kind) -> bool {
        // A listener refers to others, nothing refers to it.
        self.retaining && kind != Kind::Listener
    }

    /// The client has taken all that it should have of this kind.
    fn settled(&self, kind: Kind) -> bool {
        if !self.set.serves(kind) {
            return true;
        }
        self.subscriptions.get(&kind).is_none_or(|subscription| {
            subscription.in_flight.is_none() && !subscription.refused && !self.differs(kind, subscription)
        })
    }

    fn differs(&self, kind: Kind, subscription: &Subscription) -> bool {
        let target = self.target(kind, subscription);
        match self.protocol {
            Protocol::StateOfTheWorld => subscription.state_due(&target, &version_of(target.iter().copied())),
            Protocol::Delta => {
                let (changed, removed) = subscription.difference(kind, &target, self.retains(kind));
                !changed.is_empty() || !removed.is_empty()
            }
        }
    }

    /// What the client should have of this kind.
    fn target<'a>(&'a self, kind: Kind, subscription: &'a Subscription) -> Vec<(&'a String, &'a Arc<Resource>)> {
        let mut all: BTreeMap<&String, &Arc<Resource>> = BTreeMap::new();
        if self.retains(kind) {
            all.extend(&subscription.held);
        }
        all.extend(self.set.iter(kind));
        all.into_iter()
            .filter(|(name, _)| subscription.wildcard || subscription.names.contains(name.as_str()))
            .collect()
    }

    fn respond(&mut self, kind: Kind) -> Option<Output> {
        let subscription = self.subscriptions.get(&kind)?;
        let target = self.target(kind, subscription);
        let version = version_of(target.iter().copied());
        let nonce = format!("{}", self.nonces + 1);
        let type_url = kind.type_url().to_owned();
        let (mut state, mut parts, mut slim) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (output, names, sent) = match self.protocol {
            Protocol::StateOfTheWorld => {
                if !subscription.state_due(&target, &version) {
                    return None;
                }
                let names = target.iter().map(|(name, _)| (*name).clone()).collect();
                state = target.iter().map(|(name, resource)| ((*name).clone(), (*resource).clone())).collect();
                let response = StateReply {
                    version_info: version.clone(),
                    resources: target.iter().map(|(_, resource)| Arc::clone(resource)).collect(),
                    type_url,
                    nonce: nonce.clone(),
                };
                (Output::State(response), names, Vec::new())
            }
            Protocol::Delta => {
                let (changed, removed) = subscription.difference(kind, &target, self.retains(kind));
                // Who asks for everything and has nothing waits for an answer, although there is nothing: Envoy does not
                // go on to its listeners before it has one for its clusters.
                let waits = subscription.wildcard && subscription.sent_version.is_none() && !subscription.holds;
                if changed.is_empty() && removed.is_empty() && !waits {
                    return None;
                }
                let mut sent: Vec<(String, Option<String>)> =
                    changed.iter().map(|(name, resource)| ((*name).clone(), Some(resource.version.clone()))).collect();
                sent.extend(removed.iter().map(|name| (name.clone(), None)));
                let names = sent.iter().map(|(name, _)| name.clone()).collect();
                let resources: Vec<Changed> =
                    changed.into_iter().map(|(name, it)| subscription.change_of(name, it)).collect();
                let parted = resources.iter().filter(|changed| !changed.resource.parts().is_empty());
                parts = parted.map(|changed| (changed.name.clone(), changed.resource.parts().clone())).collect();
                slim = resources.iter().filter(|changed| changed.slim.is_some()).map(|it| it.name.clone()).collect();
                let response = DeltaReply {
                    system_version_info: version.clone(),
                    resources,
                    type_url,
                    removed_resources: removed,
                    nonce: nonce.clone(),
                };
                (Output::Delta(response), names, sent)
            }
        };
        self.nonces += 1;
        let subscription = self.subscriptions.get_mut(&kind)?;
        subscription.sent_version = Some(version.clone());
        subscription.remember(sent);
        subscription.last_nonce = nonce;
        subscription.in_flight = Some(InFlight { version, names, state, parts, slim });
        Some(output)
    }
}

// === impl Subscription ===

impl Subscription {
    /// Takes the answer to the last response; `None` where it was answered before.
    fn answer(&mut self, kind: Kind, reason: Option<String>) -> Option<Output> {
        let InFlight { version, names, state, parts, slim } = self.in_flight.take()?;
        self.refused = reason.is_some();
        if !self.refused {
            self.holds = true;
            self.held = state;
            self.parts.extend(parts);
        }
        // A gateway that does not have what was left out refuses: it gets all of it.
        for name in slim.iter().filter(|_| reason.is_some()) {
            self.parts.remove(name);
            self.sent.remove(name);
        }
        let refused = reason.map(|reason| {
            let named: Vec<String> = names.iter().filter(|name| reason.contains(name.as_str())).cloned().collect();
            (reason, if named.is_empty() { names } else { named })
        });
        Some(Output::Answered { kind, version, refused })
    }

    fn change(&mut self, known: bool, subscribe: Vec<String>, unsubscribe: Vec<String>) {
        for name in subscribe {
            if name == "*" {
                self.wildcard = true;
                continue;
            }
            // Asking again means that the client dropped it; only the first request says what it still holds.
            if known {
                self.sent.remove(&name);
                self.parts.remove(&name);
            }
            self.names.insert(name);
        }
        for name in unsubscribe {
            if name == "*" {
                self.wildcard = false;
                let names = &self.names;
                self.sent.retain(|name, _| names.contains(name));
                continue;
            }
            self.names.remove(&name);
            self.sent.remove(&name);
            self.parts.remove(&name);
        }
    }

    /// A whole new state must be sent. Where nothing of what was asked for by name is there, there is none: the client
    /// waits for it, or keeps what it has.
    fn state_due(&self, target: &[(&String, &Arc<Resource>)], version: &str) -> bool {
        (self.wildcard || !target.is_empty()) && self.sent_version.as_deref() != Some(version)
    }

    /// What must be sent so that the client has `target`: changed resources, and names of removed ones unless they are
    /// retained.
    ///
    /// A filter is never taken from a client that asks for it by name. Envoy takes a listener before it can serve: the old
    /// one goes on with its filters until the new one has compiled its modules, then for the time of draining, and without
    /// the configuration of a filter it answers every request with 500. It unsubscribes by itself.
    fn difference<'a>(
        &self,
        kind: Kind,
        target: &[(&'a String, &'a Arc<Resource>)],
        retain: bool,
    ) -> (Vec<(&'a String, &'a Arc<Resource>)>, Vec<String>) {
        let wanted: HashMap<&str, &str> =
            target.iter().map(|(name, resource)| (name.as_str(), resource.version.as_str())).collect();
        let changed =
            target.iter().filter(|(name, resource)| self.sent.get(*name) != Some(&resource.version)).copied().collect();
        let is_in_use = |name: &String| kind == Kind::Extension && self.names.contains(name);
        let gone = self.sent.iter().filter(|(_, version)| !retain && !version.is_empty()).map(|(name, _)| name);
        let gone = gone.filter(|name| !is_in_use(name));
        // A name that was asked for and is not there is answered once, so that the client need not wait for it.
        let missing = self.names.iter().filter(|name| !self.sent.contains_key(*name));
        let removed: BTreeSet<&String> =
            gone.chain(missing).filter(|name| !wanted.contains_key(name.as_str())).collect();
        (changed, removed.into_iter().cloned().collect())
    }

    /// What the client is sent of a resource.
    fn change_of(&self, name: &str, resource: &Arc<Resource>) -> Changed {
        let slim = self.parts.get(name).and_then(|held| resource.without(held));
        Changed { name: name.to_owned(), resource: Arc::clone(resource), slim }
    }

    fn remember(&mut self, sent: Vec<(String, Option<String>)>) {
        for (name, version) in sent {
            match version {
                Some(version) => {
                    self.sent.insert(name, version);
                }
                None if self.names.contains(&name) => {
                    self.sent.insert(name, String::new());
                }
                None => {
                    self.sent.remove(&name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
