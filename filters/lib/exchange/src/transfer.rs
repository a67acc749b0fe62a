//! What travels between the filters of one gateway when plugins run as separate filters.
//!
//! The signals of a request go from filter to filter in one filter state. Access logs may print any filter state raw, so
//! the bytes are written in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use prost::Message;

use crate::signal::Note;
use crate::{
    Action, Caller, DecidedBy, Exchange, GivenAnswer, Host, Labels, MAX_SKIPS, MatchedOperation, Score, Signal,
    SignalRule, SkipNote, Skipped,
};

/// The filter state that carries the exchange.
pub const EXCHANGE_TOKEN: &str = "svc.exchange";

#[derive(Clone, PartialEq, Message)]
struct Carried {
    #[prost(message, repeated, tag = "1")]
    signals: Vec<CarriedSignal>,
    /// A filter has decided what is done about the request, and has emitted the event of that.
    #[prost(bool, tag = "2")]
    decided: bool,
    /// What the signals add to the score that were too many to be kept.
    #[prost(double, tag = "3")]
    overflow: f64,
    /// Steps that filters behind are to skip as well.
    #[prost(message, repeated, tag = "4")]
    skips: Vec<CarriedSkip>,
    /// A filter has answered in the backend's place.
    #[prost(bool, tag = "6")]
    answered: bool,
    /// Who is calling, where a filter has changed headers of the request: they say something else now.
    #[prost(message, optional, tag = "7")]
    caller: Option<CarriedCaller>,
    /// [`Exchange::target_is_secret`].
    #[prost(bool, tag = "8")]
    target_is_secret: bool,
    /// The status of that answer; 0 without one.
    #[prost(uint32, tag = "9")]
    given_status: u32,
    /// The action that it came of.
    #[prost(enumeration = "Action", tag = "10")]
    given_action: i32,
    /// [`Exchange::operation`].
    #[prost(message, optional, tag = "11")]
    operation: Option<CarriedOperation>,
    /// [`Exchange::rejected_by`].
    #[prost(string, repeated, tag = "12")]
    rejected_by: Vec<String>,
    /// [`Exchange::decided_by`].
    #[prost(message, repeated, tag = "13")]
    decided_by: Vec<CarriedDecision>,
}

#[derive(Clone, PartialEq, Message)]
struct CarriedDecision {
    #[prost(string, tag = "1")]
    policy: String,
    #[prost(double, tag = "2")]
    score: f64,
}

#[derive(Clone, PartialEq, Message)]
struct CarriedOperation {
    #[prost(string, tag = "1")]
    template: String,
    #[prost(string, repeated, tag = "2")]
    names: Vec<String>,
    /// One for each name.
    #[prost(bytes = "vec", repeated, tag = "3")]
    values: Vec<Vec<u8>>,
}

impl CarriedOperation {
    fn of(operation: &MatchedOperation) -> Self {
        let (names, values) = operation.parameters().iter().cloned().unzip();
        Self { template: operation.template().to_owned(), names, values }
    }

    fn operation(self) -> MatchedOperation {
        MatchedOperation::new(self.template, self.names.into_iter().zip(self.values).collect())
    }
}

#[derive(Clone, PartialEq, Message)]
struct CarriedCaller {
    #[prost(string, tag = "1")]
    ip: String,
    #[prost(uint32, tag = "2")]
    port: u32,
    #[prost(string, optional, tag = "3")]
    apikey: Option<String>,
    #[prost(string, repeated, tag = "4")]
    other_apikeys: Vec<String>,
    #[prost(string, optional, tag = "5")]
    user: Option<String>,
    #[prost(string, optional, tag = "6")]
    apikey_label: Option<String>,
    #[prost(string, optional, tag = "7")]
    user_label: Option<String>,
    #[prost(uint32, tag = "8")]
    ipv6_prefix: u32,
    #[prost(string, optional, tag = "60")]
    ja4: Option<String>,
}

impl CarriedCaller {
    fn of(caller: &Caller) -> Self {
        let Caller { ip, port, apikey, other_apikeys, user, labels, ipv6_prefix, ja4 } = caller.clone();
        let Labels { apikey: apikey_label, user: user_label } = labels;
        let (port, ipv6_prefix) = (port.into(), ipv6_prefix.into());
        Self { ip, port, apikey, other_apikeys, user, apikey_label, user_label, ipv6_prefix, ja4 }
    }

    fn caller(self) -> Caller {
        let Self { ip, port, apikey, other_apikeys, user, apikey_label, user_label, ipv6_prefix, ja4 } = self;
        let (port, ipv6_prefix) = (u16::try_from(port).unwrap_or(0), u8::try_from(ipv6_prefix).unwrap_or(0));
        let labels = Labels { apikey: apikey_label, user: user_label };
        Caller { ip, port, apikey, other_apikeys, user, labels, ipv6_prefix, ja4 }
    }
}

#[derive(Clone, PartialEq, Message)]
struct CarriedSkip {
    #[prost(string, tag = "1")]
    by: String,
    /// [`Skipped::word`].
    #[prost(string, tag = "2")]
    steps: String,
    #[prost(string, repeated, tag = "3")]
    plugins: Vec<String>,
    #[prost(string, tag = "4")]
    reason: String,
}

impl CarriedSkip {
    fn of(note: &SkipNote) -> Self {
        let plugins = note.steps.plugins().iter().map(|name| name.clone().into_owned()).collect();
        let (by, reason) = (note.by.clone().into_owned(), note.reason.clone());
        Self { by, steps: note.steps.word().to_owned(), plugins, reason }
    }

    /// `None` for a word of a later release: what is not known is not skipped.
    fn note(self) -> Option<SkipNote> {
        let steps = match self.steps.as_str() {
            "access" => Skipped::Access,
            "plugins" => Skipped::Plugins(self.plugins.into_iter().map(Into::into).collect()),
            "detectors" => Skipped::Detectors,
            "all" => Skipped::All,
            _ => return None,
        };
        Some(SkipNote { by: self.by.into(), steps, reason: self.reason })
    }
}

#[derive(Clone, PartialEq, Message)]
struct CarriedSignal {
    #[prost(string, tag = "1")]
    source: String,
    #[prost(string, tag = "2")]
    kind: String,
    #[prost(double, tag = "3")]
    weight: f64,
    #[prost(double, tag = "4")]
    confidence: f64,
    #[prost(string, tag = "5")]
    tag: String,
    #[prost(string, tag = "6")]
    detail: String,
    #[prost(uint64, tag = "7")]
    at: u64,
    /// The plugin that has added it; empty for none.
    #[prost(string, tag = "8")]
    module: String,
    #[prost(message, repeated, tag = "9")]
    rules: Vec<CarriedRule>,
    #[prost(uint32, tag = "10")]
    more_rules: u32,
}

#[derive(Clone, PartialEq, Message)]
struct CarriedRule {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    message: String,
}

/// Takes over the signals and the skips that other filters have left. Unreadable bytes count as none.
pub(crate) fn receive(exchange: &mut Exchange, host: &dyn Host) {
    let Some(carried) = carried(host) else {
        return;
    };
    let (status, action) = (u16::try_from(carried.given_status).unwrap_or(0), carried.given_action());
    exchange.given = (status != 0).then_some(GivenAnswer { status, action });
    exchange.decided_elsewhere = carried.decided;
    note_decisions(exchange, &carried.decided_by);
    exchange.score = score(carried.signals, carried.overflow);
    exchange.rejected_by = carried.rejected_by;
    exchange.answered = carried.answered;
    exchange.target_is_secret |= carried.target_is_secret;
    if let Some(operation) = carried.operation {
        exchange.operation = Some(operation.operation());
    }
    if let Some(caller) = carried.caller {
        exchange.caller = caller.caller();
        exchange.changes.of_request = true;
    }
    exchange.skips = carried.skips.into_iter().filter_map(CarriedSkip::note).collect();
}

/// Takes over what other filters have left at the end of an exchange: whether one has decided, and the signals, where they are
/// more than this filter knows. In the response the filters come in the other order, so the first ones have seen the most.
pub(crate) fn receive_last(exchange: &mut Exchange, host: &dyn Host) {
    let Some(carried) = carried(host) else { return };
    exchange.decided_elsewhere |= carried.decided;
    note_decisions(exchange, &carried.decided_by);
    if carried.signals.len() > exchange.score.signals().len() {
        exchange.score = score(carried.signals, carried.overflow);
    }
}

/// Adds what other filters have left to what this one knows: they have seen parts of the exchange that it has not, and it has seen
/// parts that they have not.
pub(crate) fn merge(exchange: &mut Exchange, host: &dyn Host) {
    let Some(carried) = carried(host) else { return };
    let (status, action) = (u16::try_from(carried.given_status).unwrap_or(0), carried.given_action());
    exchange.given = exchange.given.or((status != 0).then_some(GivenAnswer { status, action }));
    exchange.answered |= carried.answered;
    exchange.target_is_secret |= carried.target_is_secret;
    exchange.decided_elsewhere |= carried.decided;
    note_decisions(exchange, &carried.decided_by);
    if let Some(operation) = carried.operation.filter(|_| exchange.operation.is_none()) {
        exchange.operation = Some(operation.operation());
    }
    if let Some(caller) = carried.caller.filter(|_| !exchange.changes.of_request) {
        exchange.caller = caller.caller();
        exchange.changes.of_request = true;
    }
    for note in carried.skips.into_iter().filter_map(CarriedSkip::note) {
        if exchange.skips.len() < MAX_SKIPS && !exchange.skips.contains(&note) {
            exchange.skips.push(note);
        }
    }
    exchange.score.merge(&score(carried.signals, carried.overflow));
}

fn note_decisions(exchange: &mut Exchange, decisions: &[CarriedDecision]) {
    for CarriedDecision { policy, score } in decisions {
        exchange.note_decided(policy, *score);
    }
}

fn score(signals: Vec<CarriedSignal>, overflow: f64) -> Score {
    let mut score = Score::default();
    for signal in signals {
        let CarriedSignal { source, kind, weight, confidence, tag, detail, at, module, rules, more_rules } = signal;
        let (source, kind, tag) = (source.into(), kind.into(), tag.into());
        let rules = rules.into_iter().map(|CarriedRule { id, message }| SignalRule { id, message }).collect();
        let note = Note { module: module.into(), rules, more_rules };
        score.add_noted(note, Signal { source, kind, weight, confidence, tag, detail, at });
    }
    score.add_overflow(overflow);
    score
}

fn carried(host: &dyn Host) -> Option<Carried> {
    let bytes = STANDARD_NO_PAD.decode(host.filter_state(EXCHANGE_TOKEN)?).ok()?;
    Carried::decode(bytes.as_slice()).ok()
}

/// Leaves the signals and the skips for other filters, and whether anything was decided.
pub(crate) fn send(exchange: &Exchange, host: &dyn Host) {
    let (decided, answered) = (exchange.is_decided(), exchange.answered);
    let caller = exchange.changes.of_request.then(|| CarriedCaller::of(&exchange.caller));
    let operation = exchange.operation.as_ref().map(CarriedOperation::of);
    let said = operation.is_some() || caller.is_some() || !exchange.rejected_by.is_empty();
    let nothing = exchange.score.signals().is_empty() && exchange.skips.is_empty() && !said;
    if nothing && !decided && !answered {
        return;
    }
    let rule = |rule: &SignalRule| CarriedRule { id: rule.id, message: rule.message.clone() };
    let signals = exchange.score.noted().map(|(note, signal)| CarriedSignal {
        source: signal.source.clone().into_owned(),
        kind: signal.kind.clone().into_owned(),
        weight: signal.weight,
        confidence: signal.confidence,
        tag: signal.tag.clone().into_owned(),
        detail: signal.detail.clone(),
        at: signal.at,
        module: note.module.clone().into_owned(),
        rules: note.rules.iter().map(rule).collect(),
        more_rules: note.more_rules,
    });
    let skips = exchange.skips.iter().map(CarriedSkip::of).collect();
    let decision = |by: &DecidedBy| CarriedDecision { policy: by.policy.clone(), score: by.score };
    let carried = Carried {
        signals: signals.collect(),
        decided,
        overflow: exchange.score.overflow(),
        skips,
        answered,
        caller,
        target_is_secret: exchange.target_is_secret,
        given_status: exchange.given.map_or(0, |given| given.status.into()),
        given_action: exchange.given.map_or(Action::Deny, |given| given.action).into(),
        operation,
        rejected_by: exchange.rejected_by.clone(),
        decided_by: exchange.decided_by.iter().map(decision).collect(),
    };
    host.set_filter_state(EXCHANGE_TOKEN, STANDARD_NO_PAD.encode(carried.encode_to_vec()).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeaderChange;
    use crate::fake::FakeHost;

    #[test]
    fn a_target_that_is_secret_is_hidden_by_other_filters_as_well() {
        let (host, mut first, mut second) = (FakeHost::at(0), Exchange::default(), Exchange::default());
        for exchange in [&mut first, &mut second] {
            (exchange.request.path, exchange.request.authority) = (b"/bait?x".to_vec(), b"bait.example".to_vec());
        }
        assert_eq!((&first.http()["path"], &first.http()["host"]), (&"/bait".into(), &"bait.example".into()));
        first.target_is_secret = true;
        first.answered = true;
        send(&first, &host);
        receive(&mut second, &host);
        for exchange in [&first, &second] {
            assert_eq!((&exchange.http()["path"], &exchange.http()["host"]), (&"(hidden)".into(), &"(hidden)".into()));
        }
    }

    #[test]
    fn signals_that_are_not_kept_count_behind_the_next_filter_as_well() {
        let (host, mut first, mut second) = (FakeHost::at(0), Exchange::default(), Exchange::default());
        let signal = Signal {
            source: "waf".into(),
            kind: "waf".into(),
            weight: 1.0,
            confidence: 1.0,
            tag: "waf:match".into(),
            detail: String::new(),
            at: 0,
        };
        first.score.turn_of("waf");
        let rules = (1..=20).map(|id| SignalRule { id, message: format!("rule {id}") });
        first.score.add_about(signal.clone(), rules);
        (1..70).for_each(|_| first.score.add(signal.clone()));
        send(&first, &host);
        receive(&mut second, &host);
        assert_eq!((first.score.total(), second.score.total()), (70.0, 70.0));
        assert!(second.score.noted().all(|(note, _)| note.module == "waf"));
        assert!(first.score.noted().eq(second.score.noted()), "with the rules that they are about");
        // And behind the one after it.
        send(&second, &host);
        receive(&mut first, &host);
        assert_eq!(first.score.total(), 70.0);
    }

    #[test]
    fn the_caller_travels_where_its_headers_were_changed() {
        let (host, mut first, mut second) = (FakeHost::at(0), Exchange::default(), Exchange::default());
        first.caller = Caller {
            ip: "192.0.2.1".into(),
            port: 7,
            apikey: Some("k".into()),
            other_apikeys: vec!["l".into()],
            user: None,
            labels: Labels { apikey: None, user: Some("ada".into()) },
            ipv6_prefix: 56,
            ja4: Some("t13d1516h2_8daaf6152771_02713d6af862".into()),
        };
        send(&first, &host);
        receive(&mut second, &host);
        assert_eq!(second.caller, Caller::default(), "nothing was changed");
        assert!(first.change_request(HeaderChange::remove("x-user"), &host));
        send(&first, &host);
        receive(&mut second, &host);
        assert_eq!((&second.caller, second.answered), (&first.caller, false));
        // And to the filter behind it.
        (second.answered, second.given) = (true, Some(GivenAnswer { status: 429, action: Action::Throttle }));
        send(&second, &host);
        let mut third = Exchange::default();
        receive(&mut third, &host);
        assert_eq!((third.caller, third.answered, third.given), (first.caller, true, second.given));
    }

    #[test]
    fn the_matched_operation_travels_alone_as_well() {
        let (host, mut first, mut second) = (FakeHost::at(0), Exchange::default(), Exchange::default());
        let parameters = vec![("item".to_owned(), b"4 2".to_vec()), ("part".to_owned(), vec![0, 255])];
        first.operation = Some(MatchedOperation::new("/items/{item}/{part}".to_owned(), parameters));
        send(&first, &host);
        receive(&mut second, &host);
        assert_eq!(second.operation, first.operation);
    }

    #[test]
    fn skips_travel_with_their_reasons() {
        let (host, mut first, mut second) = (FakeHost::at(0), Exchange::default(), Exchange::default());
        let kinds = [Skipped::Access, Skipped::Plugins(vec!["waf".into()]), Skipped::Detectors, Skipped::All];
        let note = |steps| SkipNote { by: "crawlers".into(), steps, reason: "verified".to_owned() };
        first.skips = kinds.map(note).into();
        send(&first, &host);
        receive(&mut second, &host);
        assert_eq!(second.skips, first.skips);
        let unknown = CarriedSkip { steps: "everything".into(), ..CarriedSkip::of(&first.skips[0]) };
        assert_eq!(unknown.note(), None, "of a later release");
    }
}
