//! Collects the values of a target.

use super::arena::{EMPTY, Value};
use super::arguments::is_cut;
use super::build::Engine;
use super::clock::Civil;
use super::rules::{KeyPattern, KeySelector, Target};
use super::store::{Entry, digest, whole_digest};
use super::transaction::{ArgumentSource, Transaction, UNSET};
use crate::operator::{Captures, MAX_CAPTURE_LENGTH};
use crate::vocabulary::{Shape, Variable};

/// The name of an item within its collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// A single value has none.
    None,
    InArena(Value),
    /// A name of TX with a slot.
    Slot(u32),
}

/// One value a rule looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) variable: Variable,
    pub(super) name: Name,
    pub(super) value: Value,
}

impl Transaction {
    /// Appends the values of a target.
    pub(super) fn collect(&mut self, engine: &Engine, target: &Target, items: &mut Vec<Item>) {
        if !target.count {
            self.collect_values(engine, target.variable, &target.key, items);
            return;
        }
        let before = items.len();
        self.collect_values(engine, target.variable, &target.key, items);
        let count = items.len() - before;
        items.truncate(before);
        let value = self.arena.number(i64::try_from(count).unwrap_or(i64::MAX));
        let name = match &target.key {
            KeySelector::Name(name) => Name::InArena(self.arena.push(&**name)),
            KeySelector::Slot(slot) => Name::Slot(*slot),
            KeySelector::All | KeySelector::Pattern(_) => Name::None,
        };
        items.push(Item { variable: target.variable, name, value });
    }

    pub(super) fn collect_values(
        &mut self,
        engine: &Engine,
        variable: Variable,
        key: &KeySelector,
        items: &mut Vec<Item>,
    ) {
        if variable.shape() == Shape::Scalar {
            let value = self.scalar(variable);
            if value != UNSET {
                items.push(Item { variable, name: Name::None, value });
            }
            return;
        }
        match variable {
            Variable::Tx => self.collect_tx(engine, key, items),
            Variable::Rule => self.collect_rule(engine, key, items),
            Variable::Xml => self.collect_xml(engine, key, items),
            Variable::Args
            | Variable::ArgsNames
            | Variable::ArgsGet
            | Variable::ArgsGetNames
            | Variable::ArgsPost
            | Variable::ArgsPostNames => self.collect_arguments(variable, key, items),
            _ => self.collect_entries(variable, key, items),
        }
    }

    fn collect_arguments(&mut self, variable: Variable, key: &KeySelector, items: &mut Vec<Item>) {
        let (source, names) = match variable {
            Variable::ArgsGet => (Some(ArgumentSource::Query), false),
            Variable::ArgsGetNames => (Some(ArgumentSource::Query), true),
            Variable::ArgsPost => (Some(ArgumentSource::Form), false),
            Variable::ArgsPostNames => (Some(ArgumentSource::Form), true),
            Variable::ArgsNames => (None, true),
            _ => (None, false),
        };
        let all = matches!(key, KeySelector::All);
        let long_names = if names { self.long_names.as_slice() } else { &[] };
        self.arena.budget.charge_list(self.arguments.len() + long_names.len());
        for (from, entry) in &self.arguments {
            if source.is_some_and(|source| source != *from)
                || !(all || selects(key, self.arena.get(entry.name), &mut self.scratch))
                || names && is_cut(self.arena.get(entry.name))
            {
                continue;
            }
            items.push(Item {
                variable,
                name: Name::InArena(entry.name),
                value: if names { entry.name } else { entry.value },
            });
        }
        // Cut names are among the long names.
        for (from, entry) in long_names {
            if source.is_none_or(|source| source == *from)
                && (all || selects(key, self.arena.get(entry.name), &mut self.scratch))
            {
                items.push(Item { variable, name: Name::InArena(entry.name), value: entry.value });
            }
        }
        self.charge_names();
    }

    /// Charges the cost of patterns of names.
    fn charge_names(&mut self) {
        let cost = self.scratch.take_cost();
        if cost > 0 {
            self.arena.budget.charge(cost);
            self.scratch.allow(self.arena.budget.left());
        }
    }

    fn collect_entries(&mut self, variable: Variable, key: &KeySelector, items: &mut Vec<Item>) {
        if let KeySelector::Name(wanted) = key
            && let Variable::RequestHeaders | Variable::ResponseHeaders = variable
        {
            self.collect_headers(variable, wanted, items);
            return;
        }
        self.show_collection(variable);
        if matches!(variable, Variable::MatchedVars | Variable::MatchedVarsNames) {
            self.name_matches();
        }
        if variable == Variable::Geo {
            self.show_geo();
        }
        let names = matches!(
            variable,
            Variable::RequestHeadersNames
                | Variable::ResponseHeadersNames
                | Variable::RequestCookiesNames
                | Variable::FilesNames
                | Variable::MatchedVarsNames
        );
        let entries: &[Entry] = match variable {
            Variable::RequestHeaders | Variable::RequestHeadersNames => &self.request_headers.entries,
            Variable::ResponseHeaders | Variable::ResponseHeadersNames => &self.response_headers.entries,
            Variable::RequestCookies | Variable::RequestCookiesNames => &self.cookies.entries,
            Variable::Files | Variable::FilesNames => &self.files.entries,
            Variable::FilesSizes => &self.file_sizes.entries,
            Variable::FilesTmpContent => &self.file_contents.entries,
            Variable::MultipartPartHeaders => &self.part_headers.entries,
            Variable::MultipartName => &self.part_names.entries,
            Variable::MultipartFilename => &self.part_filenames.entries,
            Variable::MatchedVars | Variable::MatchedVarsNames => &self.matched.named,
            Variable::Ip => &self.ip.entries,
            Variable::Global => &self.global.entries,
            Variable::Session => &self.session.entries,
            Variable::User => &self.user.entries,
            Variable::Resource => &self.resource.entries,
            Variable::Env => &self.environment.entries,
            Variable::Geo => &self.geo.entries,
            _ => &[],
        };
        let all = matches!(key, KeySelector::All);
        self.arena.budget.charge_list(entries.len());
        for entry in entries {
            if all || selects(key, self.arena.get(entry.name), &mut self.scratch) {
                items.push(Item {
                    variable,
                    name: Name::InArena(entry.name),
                    value: if names { entry.name } else { entry.value },
                });
            }
        }
        self.charge_names();
    }

    /// The headers of a name: the most frequent target.
    fn collect_headers(&self, variable: Variable, wanted: &[u8], items: &mut Vec<Item>) {
        let headers = match variable {
            Variable::RequestHeaders => &self.request_headers,
            _ => &self.response_headers,
        };
        let looked_for = digest(wanted);
        for (entry, _) in headers.entries.iter().zip(&headers.digests).filter(|(_, digest)| **digest == looked_for) {
            if wanted.eq_ignore_ascii_case(self.arena.get(entry.name)) {
                items.push(Item { variable, name: Name::InArena(entry.name), value: entry.value });
            }
        }
    }

    fn collect_tx(&mut self, engine: &Engine, key: &KeySelector, items: &mut Vec<Item>) {
        if let KeySelector::Slot(slot) = key {
            if let Some(value) = self.tx.get(*slot) {
                items.push(Item { variable: Variable::Tx, name: Name::Slot(*slot), value });
                if self.captured_values.is_cut(*slot) {
                    self.left_out("TX", "bytes of a capture", MAX_CAPTURE_LENGTH);
                }
            }
            return;
        }
        let mut cut = false;
        let mut push = |slot: u32| {
            if let Some(value) = self.tx.get(slot) {
                cut |= self.captured_values.is_cut(slot);
                items.push(Item { variable: Variable::Tx, name: Name::Slot(slot), value });
            }
        };
        match key {
            KeySelector::Pattern(pattern) => pattern.slots(engine, &mut self.scratch).iter().copied().for_each(push),
            KeySelector::All => (0..).take(engine.names.list.len()).for_each(push),
            KeySelector::Name(name) => {
                if let Some(slot) = engine.names.slot(name) {
                    push(slot);
                }
            }
            KeySelector::Slot(_) => {}
        }
        if cut {
            self.left_out("TX", "bytes of a capture", MAX_CAPTURE_LENGTH);
        }
        let item = |entry: &Entry| Item { variable: Variable::Tx, name: Name::InArena(entry.name), value: entry.value };
        if let KeySelector::Name(name) = key {
            let found = self.dynamic_at(name).and_then(|at| self.tx.dynamic.get(at));
            items.extend(found.map(item));
            return;
        }
        self.arena.budget.charge_list(self.tx.dynamic.len());
        for entry in &self.tx.dynamic {
            if selects(key, self.arena.get(entry.name), &mut self.scratch) {
                items.push(item(entry));
            }
        }
        self.charge_names();
    }

    /// The index of a name of TX without a slot.
    pub(super) fn dynamic_at(&mut self, name: &[u8]) -> Option<usize> {
        let digest = whole_digest(name);
        self.arena.budget.charge_copy(name.len().saturating_mul(4) + self.tx.digests.len().saturating_mul(3));
        let mut same = self.tx.digests.iter().zip(&self.tx.dynamic);
        same.position(|(other, entry)| *other == digest && self.arena.get(entry.name).eq_ignore_ascii_case(name))
    }

    fn collect_xml(&mut self, engine: &Engine, key: &KeySelector, items: &mut Vec<Item>) {
        let wants = |name: &[u8]| match key {
            KeySelector::Name(wanted) => **wanted == *name,
            _ => true,
        };
        if wants(b"/*") && (self.xml_text.is_some() || !self.xml_literals.is_empty()) {
            let name = self.arena.push_once(b"/*");
            self.arena.budget.charge_list(self.xml_literals.len());
            let values = self.xml_text.iter().chain(&self.xml_literals);
            items.extend(values.map(|value| Item {
                variable: Variable::Xml,
                name: Name::InArena(name),
                value: *value,
            }));
        }
        if wants(b"//@*") && !self.xml_attributes.is_empty() {
            let name = self.arena.push_once(b"//@*");
            self.arena.budget.charge_list(self.xml_attributes.len());
            items.extend(self.xml_attributes.iter().map(|value| Item {
                variable: Variable::Xml,
                name: Name::InArena(name),
                value: *value,
            }));
        }
        if let KeySelector::Name(path) = key
            && let Some(at) = engine.paths.iter().position(|(known, _)| known == path)
        {
            let name = self.arena.push_shared(path);
            self.arena.budget.charge_list(self.xml_nodes.len());
            let values = self.xml_nodes.iter().filter(|(of, _)| *of == at);
            items.extend(values.map(|(_, value)| Item {
                variable: Variable::Xml,
                name: Name::InArena(name),
                value: *value,
            }));
        }
    }

    fn collect_rule(&mut self, engine: &Engine, key: &KeySelector, items: &mut Vec<Item>) {
        let Some(rule) = self.current_rule.and_then(|at| engine.rules.get(at as usize)) else { return };
        let string = |at: Option<u32>| at.and_then(|at| engine.strings.get(at as usize)).map(|text| text.to_vec());
        let fields: [(&[u8], Option<Vec<u8>>); 6] = [
            (b"id", Some(rule.id.to_string().into_bytes())),
            (b"msg", Some(rule.msg_text.to_vec())),
            (b"severity", rule.severity.map(|severity| severity.level().to_string().into_bytes())),
            (b"rev", string(rule.revision)),
            (b"ver", string(rule.version)),
            (b"logdata", Some(self.expanded(engine, &rule.logdata))),
        ];
        for (name, value) in fields {
            if let Some(value) = value
                && selects(key, name, &mut self.scratch)
            {
                let name = self.arena.push(name);
                let value = self.arena.push(value);
                items.push(Item { variable: Variable::Rule, name: Name::InArena(name), value });
            }
        }
    }

    /// The value of a scalar variable; [`UNSET`] if it is absent.
    pub(super) fn scalar(&mut self, variable: Variable) -> Value {
        let civil = || Civil::from_millis(self.start.now_millis);
        let text = match variable {
            Variable::ArgsCombinedSize => {
                self.arena.budget.charge_list(self.arguments.len());
                let entries = self.arguments.iter();
                let bytes =
                    entries.map(|(_, entry)| self.arena.get(entry.name).len() + self.arena.get(entry.value).len());
                return self.arena.number(i64::try_from(bytes.sum::<usize>()).unwrap_or(i64::MAX));
            }
            Variable::HighestSeverity => return self.arena.number(i64::from(self.highest_severity)),
            Variable::MatchedVar => return self.matched_value(),
            Variable::MatchedVarName => return self.matched_name(),
            Variable::FullRequest => return self.full_request(),
            Variable::FullRequestLength => {
                let request = self.full_request();
                return self.arena.number(i64::try_from(self.arena.get(request).len()).unwrap_or(i64::MAX));
            }
            Variable::Time => {
                let now = civil();
                format!("{:02}:{:02}:{:02}", now.hour, now.minute, now.second)
            }
            Variable::TimeDay => civil().day.to_string(),
            Variable::TimeEpoch => (self.start.now_millis / 1000).to_string(),
            Variable::TimeHour => format!("{:02}", civil().hour),
            Variable::TimeMin => format!("{:02}", civil().minute),
            Variable::TimeMon => format!("{:02}", civil().month),
            Variable::TimeSec => format!("{:02}", civil().second),
            Variable::TimeWday => civil().weekday.to_string(),
            Variable::TimeYear => civil().year.to_string(),
            _ => return self.scalars.get(usize::from(variable.code())).copied().unwrap_or(EMPTY),
        };
        self.arena.push(text.into_bytes())
    }

    /// FULL_REQUEST: made once, as it copies the body.
    fn full_request(&mut self) -> Value {
        if let Some(known) = self.full_request {
            return known;
        }
        let mut text = Vec::new();
        for entry in &self.request_headers.entries {
            text.extend_from_slice(self.arena.get(entry.name));
            text.extend_from_slice(b": ");
            text.extend_from_slice(self.arena.get(entry.value));
            text.push(b'\n');
        }
        text.extend_from_slice(b"\n\n");
        if let Some(body) = self.raw_body {
            text.extend_from_slice(self.arena.get(body));
        }
        self.arena.budget.charge_copy(text.len());
        let value = self.arena.push(text);
        if self.body_seen {
            self.full_request = Some(value);
        }
        value
    }

    /// The bytes of an item's name.
    pub(super) fn name_bytes<'t>(&'t self, engine: &'t Engine, name: Name) -> &'t [u8] {
        match name {
            Name::None => &[],
            Name::InArena(value) => self.arena.get(value),
            Name::Slot(slot) => engine.names.list.get(slot as usize).map(|name| &**name).unwrap_or_default(),
        }
    }

    /// Whether the target, as an exclusion, covers the item.
    pub(super) fn covers(&mut self, engine: &Engine, target: &Target, item: &Item) -> bool {
        if target.variable != item.variable {
            return false;
        }
        match (&target.key, item.name) {
            (KeySelector::All, _) => true,
            // A cut name may be any name with its beginning: no exclusion covers it.
            (_, Name::InArena(name)) if is_argument(item.variable) && is_cut(self.arena.get(name)) => false,
            (KeySelector::Slot(slot), Name::Slot(name)) => *slot == name,
            (KeySelector::Name(wanted), name) => wanted.eq_ignore_ascii_case(self.name_bytes(engine, name)),
            (key, name) => {
                let mut scratch = std::mem::take(&mut self.scratch);
                let covered = selects_named(engine, key, self.name_bytes(engine, name), &mut scratch);
                self.scratch = scratch;
                self.charge_names();
                covered
            }
        }
    }
}

/// Whether a variable holds arguments, or their names.
fn is_argument(variable: Variable) -> bool {
    use Variable as V;
    matches!(variable, V::Args | V::ArgsNames | V::ArgsGet | V::ArgsGetNames | V::ArgsPost | V::ArgsPostNames)
}

/// Whether a variable is a scalar whose value is stored, not computed.
pub(super) fn is_stored(variable: Variable) -> bool {
    use Variable as V;
    let made = matches!(
        variable,
        V::ArgsCombinedSize
            | V::HighestSeverity
            | V::MatchedVar
            | V::MatchedVarName
            | V::FullRequest
            | V::FullRequestLength
            | V::Time
            | V::TimeDay
            | V::TimeEpoch
            | V::TimeHour
            | V::TimeMin
            | V::TimeMon
            | V::TimeSec
            | V::TimeWday
            | V::TimeYear
    );
    variable.shape() == Shape::Scalar && !made
}

/// Whether a key selects a name. Slots are compared elsewhere.
pub(super) fn selects(key: &KeySelector, name: &[u8], scratch: &mut Captures) -> bool {
    match key {
        KeySelector::All => true,
        KeySelector::Name(wanted) => wanted.eq_ignore_ascii_case(name),
        KeySelector::Slot(_) => false,
        KeySelector::Pattern(pattern) => {
            name.len() >= pattern.min_length && pattern.operator.evaluate(name, None, scratch)
        }
    }
}

impl KeyPattern {
    /// The slots of TX with names that match.
    fn slots(&self, engine: &Engine, scratch: &mut Captures) -> &[u32] {
        self.slots.get_or_init(|| {
            let names = engine.names.list.iter().zip(0..);
            let selected = names.filter(|(name, _)| self.operator.evaluate(name, None, scratch));
            selected.map(|(_, slot): (_, u32)| slot).collect()
        })
    }
}

fn selects_named(engine: &Engine, key: &KeySelector, name: &[u8], scratch: &mut Captures) -> bool {
    match key {
        KeySelector::Slot(slot) => {
            engine.names.list.get(*slot as usize).is_some_and(|wanted| wanted.eq_ignore_ascii_case(name))
        }
        key => selects(key, name, scratch),
    }
}
