//! Acts on a match: assignments, `ctl`, the report, and the intervention.

use super::arena::Value;
use super::build::Engine;
use super::collect::Name;
use super::limits::{
    DYNAMIC_NAMES, EXPANSION_LENGTH, MATCHED_IDS, MATCHED_RULES, REMOVED_TARGETS, REPORTED_INPUTS, REPORTED_LENGTH,
};
use super::persist::CollectionKind;
use super::phase::Flow;
use super::report::{Intervention, InterventionKind, MatchedInput, MatchedRule};
use super::rules::{Control, Macro, MacroPiece, Rule, RuleFilter, SetOperation, SetVariable};
use super::store::{Entry, whole_digest};
use super::transaction::{Allowed, RemovedTarget, Transaction};
use crate::program::EngineMode;
use crate::program::wire::Disruption;
use crate::vocabulary::Variable;

/// The matches of a chain among which different inputs are looked for: many values of one name are one input.
const CONSIDERED_MATCHES: usize = 4 * REPORTED_INPUTS;

impl Transaction {
    /// Acts on the match of a whole chain.
    pub(super) fn act_on_match(&mut self, engine: &Engine, rule: &Rule, at: u32) -> Flow {
        for (link, number) in rule.links.iter().zip(0..) {
            for (control, position) in link.controls.iter().zip(0..) {
                let place = RemovedTarget { rule: at, link: number, control: position };
                self.control(engine, control, place);
            }
        }
        if let Some(severity) = rule.severity {
            self.highest_severity = self.highest_severity.min(severity.level());
        }
        self.count(at);
        self.record(engine, rule);
        if self.mode == EngineMode::Off {
            return Flow::Stop;
        }
        if let Some(flow) = self.disrupt(engine, rule) {
            return flow;
        }
        rule.flow()
    }

    /// Counts a rule among those that matched.
    pub(super) fn count(&mut self, at: u32) {
        if self.order.len() < MATCHED_IDS {
            self.order.push(at);
        }
    }

    fn disrupt(&mut self, engine: &Engine, rule: &Rule) -> Option<Flow> {
        match rule.disruption {
            Disruption::Pass => return None,
            // Detection-only mode follows the same path.
            Disruption::Allow => self.allowed = Allowed::Everything,
            Disruption::AllowRequest => self.allowed = Allowed::Request,
            Disruption::AllowPhase => {}
            Disruption::Deny | Disruption::Drop | Disruption::Redirect => {
                if rule.phase == 5 {
                    return None;
                }
                let kind = match rule.disruption {
                    Disruption::Redirect => InterventionKind::Redirect(self.expanded(engine, &rule.redirect)),
                    Disruption::Drop => InterventionKind::Drop,
                    _ => InterventionKind::Deny,
                };
                let redirects = (300..400).contains(&rule.status);
                let intervention = Intervention {
                    status: match kind {
                        InterventionKind::Redirect(_) if !redirects => 302,
                        _ => rule.status,
                    },
                    rule_id: rule.id,
                    kind,
                    msg: capped(self.expanded(engine, &rule.msg)),
                };
                return self.intervene(intervention).then_some(Flow::Stop);
            }
        }
        Some(Flow::Stop)
    }

    /// Records an intervention; `true` if it takes effect.
    pub(super) fn intervene(&mut self, intervention: Intervention) -> bool {
        if self.would_block.is_none() {
            self.would_block = Some(intervention.clone());
        }
        if self.mode != EngineMode::On {
            return false;
        }
        if self.intervention.is_none() {
            self.intervention = Some(intervention);
        }
        true
    }

    fn record(&mut self, engine: &Engine, rule: &Rule) {
        if self.matched_rules.len() >= MATCHED_RULES || !rule.is_reported() {
            return;
        }
        let tags = rule.tags.iter().filter_map(|tag| engine.strings.get(*tag as usize));
        let tags = tags.map(|tag| tag.to_vec()).collect();
        let variable = capped(self.scalar_bytes(Variable::MatchedVarName));
        let earlier = self.earlier_inputs(engine, &variable);
        let reported = MatchedRule {
            rule_id: rule.id,
            phase: rule.phase,
            msg: capped(self.expanded(engine, &rule.msg)),
            msg_is_fixed: rule.msg.is_fixed(),
            logdata: capped(self.expanded(engine, &rule.logdata)),
            severity: rule.severity,
            tags,
            variable,
            value: capped(self.scalar_bytes(Variable::MatchedVar)),
            earlier,
            disruptive: rule.disruption.blocks(),
            logged: rule.log,
            audited: rule.audit_log,
        };
        let texts = [&reported.msg, &reported.logdata, &reported.variable, &reported.value];
        let earlier = reported.earlier.iter().flat_map(|input| [&input.variable, &input.value]);
        let texts = texts.into_iter().chain(&reported.tags).chain(earlier);
        let bytes = texts.map(|text| text.len() + size_of::<Vec<u8>>()).sum();
        self.arena.budget.keep(bytes);
        self.arena.budget.charge_copy(bytes);
        self.matched_rules.push(reported);
    }

    /// What matched in the chain beside the last.
    fn earlier_inputs(&mut self, engine: &Engine, last: &[u8]) -> Vec<MatchedInput> {
        let mut inputs: Vec<MatchedInput> = Vec::new();
        let mut names = 0;
        for found in self.matched.list.iter().take(CONSIDERED_MATCHES) {
            if inputs.len() >= REPORTED_INPUTS {
                break;
            }
            let (collection, name) = (found.item.variable.name().as_bytes(), self.name_bytes(engine, found.item.name));
            let colon: &[u8] = if found.item.name == Name::None { b"" } else { b":" };
            let parts = [collection, colon, name];
            let is = |known: &[u8]| is_joined(known, parts);
            names += 1 + inputs.len();
            if is(last) || inputs.iter().any(|input| is(&input.variable)) {
                continue;
            }
            let value = self.arena.get(found.value);
            inputs.push(MatchedInput { variable: capped(parts.concat()), value: beginning(value).to_vec() });
        }
        self.arena.budget.charge_list(names);
        inputs
    }

    fn scalar_bytes(&mut self, variable: Variable) -> Vec<u8> {
        let value = self.scalar(variable);
        beginning(self.arena.get(value)).to_vec()
    }

    pub(super) fn assign(&mut self, engine: &Engine, sets: &[SetVariable]) {
        for set in sets {
            if let (Some(slot), Some(constant), SetOperation::To) = (set.slot, set.constant, set.operation) {
                self.tx.set(slot, Some(constant));
                continue;
            }
            self.arena.budget.charge_assignment();
            let mut key = std::mem::take(&mut self.key);
            key.clear();
            if set.slot.is_none() {
                self.expand(engine, &set.key, &mut key);
            }
            self.assign_to(engine, set, &key);
            self.key = key;
        }
    }

    /// Carries out an assignment to a name.
    fn assign_to(&mut self, engine: &Engine, set: &SetVariable, key: &[u8]) {
        let operand = match set.constant {
            Some(constant) => constant,
            None => self.operand(engine, &set.value),
        };
        if set.operation == SetOperation::Sanitise {
            self.sanitise(set.variable, key);
            return;
        }
        if CollectionKind::of(set.variable).is_some() && self.assign_persistent(set, key, operand) {
            return;
        }
        let sign = match set.operation {
            SetOperation::Add => 1,
            SetOperation::Subtract => -1,
            _ => 0,
        };
        let value = match set.operation {
            SetOperation::Nothing => None,
            SetOperation::To => Some(operand),
            SetOperation::Attach | SetOperation::Expire | SetOperation::Deprecate | SetOperation::Sanitise => {
                return;
            }
            SetOperation::Add | SetOperation::Subtract => {
                let before = match set.slot {
                    Some(slot) => self.tx.get(slot),
                    None => self.first_value(engine, set.variable, Some(key)),
                };
                let before = before.map_or(0, |value| integer(self.arena.get(value)));
                let sum = before.saturating_add(integer(self.arena.get(operand)).saturating_mul(sign));
                Some(self.arena.number(sum))
            }
        };
        match (set.variable, set.slot) {
            (_, Some(slot)) => self.tx.set(slot, value),
            (Variable::Tx, None) if set.is_dynamic => self.set_dynamic(key, value),
            (Variable::Tx, None) => self.set_tx(engine, key, value),
            (Variable::UserId | Variable::SessionId, None) => {
                if let Some(value) = value {
                    self.set_scalar(set.variable, value);
                }
            }
            (variable, None) => self.set_entry(variable, key, value),
        }
    }

    /// The value of an assignment. A value that is assigned whole is not copied.
    fn operand(&mut self, engine: &Engine, text: &Macro) -> Value {
        let same = match text.0.as_slice() {
            [MacroPiece::Slot(slot)] => self.tx.get(*slot),
            [MacroPiece::Value(variable, key)] => self.first_value(engine, *variable, key.as_deref()),
            _ => None,
        };
        match same.filter(|value| self.arena.get(*value).len() <= EXPANSION_LENGTH) {
            // The next match overwrites captures.
            Some(value) if self.captured_values.holds(value) => self.arena.copy(value),
            Some(value) => value,
            None => {
                let mut expanded = std::mem::take(&mut self.text);
                expanded.clear();
                if !self.expand(engine, text, &mut expanded) {
                    self.left_out("TX", "bytes of an assignment", EXPANSION_LENGTH);
                }
                let value = self.arena.push(&expanded);
                self.text = expanded;
                value
            }
        }
    }

    /// Sets or removes a name of TX.
    pub(super) fn set_tx(&mut self, engine: &Engine, key: &[u8], value: Option<Value>) {
        if let Some(slot) = engine.names.slot(key) {
            self.tx.set(slot, value);
            return;
        }
        self.set_dynamic(key, value);
    }

    /// Sets or removes a name of TX without a slot.
    fn set_dynamic(&mut self, key: &[u8], value: Option<Value>) {
        let known = self.dynamic_at(key);
        match (known, value) {
            (Some(at), None) => {
                self.tx.dynamic.remove(at);
                self.tx.digests.remove(at);
            }
            (Some(at), Some(value)) => {
                if let Some(entry) = self.tx.dynamic.get_mut(at) {
                    entry.value = value;
                }
            }
            (None, Some(value)) => {
                if self.tx.dynamic.len() >= DYNAMIC_NAMES {
                    self.left_out("TX", "names", DYNAMIC_NAMES);
                    return;
                }
                let name = self.arena.push(key);
                self.tx.dynamic.push(Entry { name, value });
                self.tx.digests.push(whole_digest(key));
            }
            (None, None) => {}
        }
    }

    fn set_entry(&mut self, variable: Variable, key: &[u8], value: Option<Value>) {
        let collection = match variable {
            Variable::Ip => &mut self.ip,
            Variable::Global => &mut self.global,
            Variable::Session => &mut self.session,
            Variable::User => &mut self.user,
            Variable::Resource => &mut self.resource,
            Variable::Env => &mut self.environment,
            _ => return,
        };
        self.arena.budget.charge_list(collection.entries.len());
        let arena = &self.arena;
        collection.entries.retain(|entry| !arena.get(entry.name).eq_ignore_ascii_case(key));
        if let Some(value) = value {
            if collection.entries.len() >= DYNAMIC_NAMES {
                self.left_out(variable.name(), "names", DYNAMIC_NAMES);
                return;
            }
            let name = self.arena.push(key);
            collection.entries.push(Entry { name, value });
        }
    }

    fn control(&mut self, engine: &Engine, control: &Control, place: RemovedTarget) {
        match control {
            Control::RuleEngine(mode) => self.mode = *mode,
            Control::RequestBodyAccess(on) => self.request_body_access = *on,
            Control::ResponseBodyAccess(on) => self.response_body_access = *on,
            Control::RequestBodyProcessor(name) => {
                let value = self.arena.push(&**name);
                self.set_scalar(Variable::ReqbodyProcessor, value);
            }
            Control::RequestBodyLimit(bytes) => self.request_body_limit = *bytes,
            Control::ResponseBodyLimit(bytes) => self.response_body_limit = *bytes,
            Control::XmlArguments(mode) => self.xml_arguments = *mode,
            Control::ForceRequestBodyVariable(on) => self.force_request_body = *on,
            Control::Remove(filter) => self.remove_rules(engine, filter),
            Control::RemoveTarget(filter, target) => {
                self.arena.budget.charge_list(self.removed_targets.len());
                self.names_removed |= target.variable == Variable::Tx;
                self.follows_prediction &=
                    target.variable != Variable::Tx || !engine.const_prop.relies_on(&engine.rules, filter);
                let known = self.removed_targets.contains(&place);
                if !known && self.removed_targets.len() < REMOVED_TARGETS {
                    self.removed_targets.push(place);
                }
            }
        }
    }

    fn remove_rules(&mut self, engine: &Engine, filter: &RuleFilter) {
        self.follows_prediction &= !engine.const_prop.relies_on(&engine.rules, filter);
        self.arena.budget.charge_list(engine.rules.len());
        self.removed.resize(engine.rules.len(), false);
        for (rule, removed) in engine.rules.iter().zip(&mut self.removed) {
            *removed |= filter.matches(rule);
        }
    }
}

/// The integer a value begins with; 0 if it begins with none.
fn integer(bytes: &[u8]) -> i64 {
    let text = bytes.trim_ascii();
    let (negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let value = digits.fold(0i64, |value, digit| value.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    if negative { -value } else { value }
}

/// Whether a reported text is that of the parts, one behind the other.
fn is_joined(text: &[u8], parts: [&[u8]; 3]) -> bool {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut rest = text;
    let mut begins = || {
        parts.iter().all(|part| {
            let (same, behind) = rest.split_at(part.len().min(rest.len()));
            rest = behind;
            part.starts_with(same)
        })
    };
    text.len() == length.min(REPORTED_LENGTH) && begins()
}

fn beginning(bytes: &[u8]) -> &[u8] {
    bytes.get(..REPORTED_LENGTH).unwrap_or(bytes)
}

fn capped(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(REPORTED_LENGTH);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_number_a_value_begins_with() {
        assert_eq!(integer(b" 12abc"), 12);
        assert_eq!(integer(b"-3"), -3);
        assert_eq!(integer(b"x"), 0);
        assert_eq!(integer(b"99999999999999999999"), i64::MAX);
    }
}
