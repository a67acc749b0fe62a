//! Alerts that wait to be sent, and the events that are gathered in each.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::attack::{Attack, Way};

/// The alerts of a bouncer that wait, at most.
pub(super) const MAX_WAITING: usize = 4_096;
/// The attacks that an alert describes, at most: the first ones. All are counted.
const MAX_DESCRIBED: usize = 3;

/// All attacks of one address that were noticed in the same way, since the last alert on it.
#[derive(Clone, Debug)]
pub(super) struct Alert {
    address: IpAddr,
    monitored: bool,
    first: u64,
    last: u64,
    count: u64,
    described: Vec<Arc<Attack>>,
    /// How often the service has failed with it.
    pub(super) failures: u32,
}

/// The alerts of one bouncer, the oldest first. The oldest are dropped where there are too many.
#[derive(Debug, Default)]
pub(super) struct Queue {
    alerts: BTreeMap<u64, Alert>,
    /// The alerts that take further attacks, by address and whether rules only monitor.
    open: HashMap<(IpAddr, bool), u64>,
    next: u64,
    /// Alerts that were taken out and not settled.
    pub(super) sending: usize,
    /// Alerts that were dropped.
    pub(super) dropped: u64,
}

/// What alerts say beside the attacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) scenario: String,
    /// How long the decision that alerts ask for lasts; `None`: they ask for none.
    pub(super) decision: Option<String>,
}

impl Queue {
    /// Adds an attack: to the alert on its address that waits, or as a new one.
    pub(super) fn add(&mut self, attack: &Arc<Attack>) {
        let key = (attack.address, attack.way == Way::Monitored);
        if let Some(alert) = self.open.get(&key).and_then(|number| self.alerts.get_mut(number)) {
            alert.add(attack);
            return;
        }
        self.open.insert(key, self.next);
        self.alerts.insert(self.next, Alert::of(attack));
        self.next += 1;
        self.fit();
    }

    /// Takes the oldest alerts out, `most` of them. They are to be put back or settled.
    pub(super) fn take(&mut self, most: usize) -> Vec<(u64, Alert)> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some((number, alert)) = self.alerts.pop_first()
        {
            self.close(number, &alert);
            taken.push((number, alert));
        }
        self.sending = taken.len();
        taken
    }

    /// Alerts that were not sent, in their old places.
    pub(super) fn put_back(&mut self, alerts: Vec<(u64, Alert)>) {
        self.sending = 0;
        self.alerts.extend(alerts);
        self.fit();
    }

    /// Those that were taken out are sent, or `dropped` of them are given up.
    pub(super) fn settle(&mut self, dropped: usize) {
        self.sending = 0;
        self.dropped += u64::try_from(dropped).unwrap_or(u64::MAX);
    }

    /// How often the service has failed with the oldest.
    pub(super) fn failures(&self) -> u32 {
        self.alerts.first_key_value().map_or(0, |(_, alert)| alert.failures)
    }

    /// How many wait or are being sent.
    pub(super) fn pending(&self) -> usize {
        self.alerts.len() + self.sending
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.alerts.is_empty()
    }

    fn fit(&mut self) {
        while self.alerts.len() > MAX_WAITING
            && let Some((number, alert)) = self.alerts.pop_first()
        {
            self.close(number, &alert);
            self.dropped += 1;
        }
    }

    /// An alert is not in the queue any more: further attacks are another one.
    fn close(&mut self, number: u64, alert: &Alert) {
        let key = (alert.address, alert.monitored);
        if self.open.get(&key) == Some(&number) {
            self.open.remove(&key);
        }
    }
}

impl Alert {
    fn of(attack: &Arc<Attack>) -> Alert {
        let Attack { at, address, way, .. } = **attack;
        Alert {
            address,
            monitored: way == Way::Monitored,
            first: at,
            last: at,
            count: 1,
            described: vec![Arc::clone(attack)],
            failures: 0,
        }
    }

    fn add(&mut self, attack: &Arc<Attack>) {
        (self.first, self.last) = (self.first.min(attack.at), self.last.max(attack.at));
        self.count = self.count.saturating_add(1);
        if self.described.len() < MAX_DESCRIBED {
            self.described.push(Arc::clone(attack));
        }
    }

    /// The caller.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether it asks for a decision. What rules only monitor asks for none.
    pub(super) fn asks_for_ban(&self, form: &Form) -> bool {
        form.decision.is_some() && !self.monitored
    }

    /// As the service takes it: all fields that it requires, and a decision where one is asked for, unless the caller is `spared`.
    pub(super) fn document(&self, form: &Form, spared: bool) -> Value {
        let address = self.address.to_string();
        let events = self.described.iter().map(|attack| {
            let facts = attack.facts.iter().map(|(key, value)| json!({ "key": key, "value": value }));
            json!({ "timestamp": base::clock::rfc3339(attack.at), "meta": facts.collect::<Vec<_>>() })
        });
        let message = self.described.first().map(|attack| attack.message().to_owned()).unwrap_or_default();
        let decision = form.decision.as_ref().filter(|_| self.asks_for_ban(form) && !spared);
        let mut document = json!({
            "scenario": form.scenario,
            "scenario_hash": "",
            "scenario_version": "",
            "message": message,
            "events_count": i32::try_from(self.count).unwrap_or(i32::MAX),
            "start_at": base::clock::rfc3339(self.first),
            "stop_at": base::clock::rfc3339(self.last),
            "capacity": 0,
            "leakspeed": "0s",
            "simulated": false,
            "remediation": decision.is_some(),
            "events": events.collect::<Vec<_>>(),
            "source": { "scope": "Ip", "value": address, "ip": address },
        });
        if let (Some(duration), Some(fields)) = (decision, document.as_object_mut()) {
            // Services list decisions of other origins only on request.
            let decision = json!({
                "duration": duration, "origin": "crowdsec", "scenario": form.scenario, "scope": "Ip", "type": "ban",
                "value": address, "simulated": false,
            });
            fields.insert("decisions".to_owned(), json!([decision]));
        }
        document
    }
}
