//! From the checked form to the executable one.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::arena::Value;
use super::foresight::Foresight;
use super::gates::{FirstTest, Groups, LinkGate, triggers};
use super::names::{ConstantList, Names};
use super::pairs::Pairs;
use super::plan::Plan;
use super::scanner::Scanner;
use super::store::Pool;
use super::vain::{self, VainChain};
use crate::body::xml;
use crate::expansion::{Piece, Template};
use crate::operator::{ByteSet, Operator, OperatorArgument, OperatorKind, shortest_match};
use crate::program::wire::{self, Disruption, IdRange};
use crate::program::{EngineMode, Program, Settings, XmlArguments};
use crate::transform::Transform;
use crate::vocabulary::{Severity, Variable};

/// Rules ready to run. Immutable but for what operators build on first use; shared between transactions.
pub struct Engine {
    pub(super) settings: Settings,
    pub(super) rules: Vec<Rule>,
    /// For each phase its rules, all of them, and those that are left of them if no `ctl` removes any.
    pub(super) whole: [Plan; 5],
    pub(super) foreseen: [Plan; 5],
    pub(super) foresight: Foresight,
    pub(super) operators: Vec<BuiltOperator>,
    pub(super) strings: Vec<Box<[u8]>>,
    pub(super) names: Names,
    pub(super) scanner: Scanner,
    pub(super) groups: Groups,
    /// Values that are there in every transaction; see [`super::arena::Arena::with_constants`].
    pub(super) constants: Vec<Box<[u8]>>,
    pub(super) pool: Pool,
    /// What rules look for in XML bodies, by the expression as written.
    pub(super) paths: Vec<(Box<[u8]>, xml::Path)>,
    uses: [bool; Variable::COUNT],
}

/// An operator, and its argument if that holds macros.
pub(super) struct BuiltOperator {
    pub(super) operator: Operator,
    pub(super) argument: Option<Macro>,
    /// With `@within` the pairs of a constant that the argument stood for once.
    pub(super) pairs: Option<OnceLock<(Value, Pairs)>>,
    /// Whether it searches for a regular expression.
    pub(super) is_pattern: bool,
    /// The number of its gate in the scanner.
    pub(super) gate: Option<u32>,
    /// Whether every test that uses it sees a value as it is where transformations leave the gates the value passes: what
    /// the operator says about the value then goes for all of them.
    pub(super) settles: bool,
}

/// A rule with its chain.
pub(super) struct Rule {
    pub(super) id: u64,
    pub(super) phase: u8,
    pub(super) links: Vec<Link>,
    pub(super) disruption: Disruption,
    pub(super) status: u16,
    pub(super) redirect: Macro,
    pub(super) msg: Macro,
    /// The message as written.
    pub(super) msg_text: Box<[u8]>,
    pub(super) logdata: Macro,
    pub(super) severity: Option<Severity>,
    /// Indexes of strings.
    pub(super) tags: Vec<u32>,
    pub(super) version: Option<u32>,
    pub(super) revision: Option<u32>,
    pub(super) log: bool,
    pub(super) audit_log: bool,
    pub(super) skip: u32,
    pub(super) skip_to: Option<u32>,
    /// Whether nothing of a match is seen but assignments and what is skipped, if its only test compares a name of TX
    /// with a number, or if it has none: what most rules do that match.
    pub(super) is_bookkeeping: bool,
    /// What tells that the chain comes to nothing for a value, if that can be told.
    pub(super) vain: Option<VainChain>,
}

impl Rule {
    /// Whether a match is reported with all its details.
    pub(super) fn is_reported(&self) -> bool {
        self.log || self.audit_log || self.disruption.blocks()
    }
}

/// One test of a chain.
pub(super) struct Link {
    pub(super) targets: Vec<Target>,
    pub(super) exclusions: Vec<Target>,
    pub(super) operator: Option<u32>,
    /// The number of the test, if whether it matches a value depends on nothing but the value.
    pub(super) lasting: Option<u32>,
    pub(super) negated: bool,
    pub(super) transforms: Vec<Transform>,
    /// A value without any of these bytes is not changed by the transformations.
    pub(super) triggers: Option<ByteSet>,
    /// The bit that a scanned value has if it holds any of these bytes; 0 if there is none.
    pub(super) changes: u64,
    pub(super) gate: Option<LinkGate>,
    /// With a gate, the numbers of the targets in [`Groups`], one for each.
    pub(super) known_targets: Box<[u32]>,
    pub(super) multi_match: bool,
    pub(super) capture: bool,
    pub(super) sets: Vec<SetVariable>,
    pub(super) controls: Vec<Control>,
}

impl Link {
    /// Whether a match does nothing but assign names of TX, from nothing that has to do with what matched.
    fn is_bookkeeping(&self) -> bool {
        let plain = |value: &Macro| {
            let mut pieces = value.0.iter();
            pieces.all(|piece| matches!(piece, MacroPiece::Text(_) | MacroPiece::Slot(_)))
        };
        !self.capture && self.controls.is_empty() && self.sets.iter().all(|set| set.slot.is_some() && plain(&set.value))
    }
}

/// What a link looks at, or does not.
pub(super) struct Target {
    pub(super) variable: Variable,
    pub(super) key: KeySelector,
    pub(super) count: bool,
}

/// Which names of a collection.
pub(super) enum KeySelector {
    All,
    Name(Box<[u8]>),
    /// A name of TX that rules mention: see [`Names`].
    Slot(u32),
    Pattern(Box<KeyPattern>),
}

/// A pattern of names.
pub(super) struct KeyPattern {
    pub(super) operator: Operator,
    /// How many bytes a name has at least that matches.
    pub(super) min_length: usize,
    /// The slots of TX whose names match, once they were looked for.
    pub(super) slots: OnceLock<Box<[u32]>>,
}

impl KeySelector {
    fn pattern(argument: &OperatorArgument) -> Result<Self, String> {
        let operator = Operator::build(OperatorKind::Rx, argument)?;
        let min_length = shortest_match(argument);
        Ok(Self::Pattern(Box::new(KeyPattern { operator, min_length, slots: OnceLock::new() })))
    }
}

/// An assignment.
pub(super) struct SetVariable {
    pub(super) variable: Variable,
    /// The slot of a TX name without macros.
    pub(super) slot: Option<u32>,
    /// Whether the name, which holds macros, begins with a text no name with a slot begins with.
    pub(super) is_dynamic: bool,
    pub(super) key: Macro,
    pub(super) operation: SetOperation,
    pub(super) value: Macro,
    /// The value, if it is the same in every transaction.
    pub(super) constant: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetOperation {
    To,
    Add,
    Subtract,
    Nothing,
    /// The collection stands for the record of this key from now on.
    Attach,
    /// The variable ends after so many seconds.
    Expire,
    /// The variable shrinks by an amount every so many seconds.
    Deprecate,
    /// What is reported of this value is masked.
    Sanitise,
}

/// A `ctl`.
pub(super) enum Control {
    RuleEngine(EngineMode),
    RequestBodyAccess(bool),
    ResponseBodyAccess(bool),
    RequestBodyProcessor(Box<[u8]>),
    ForceRequestBodyVariable(bool),
    RequestBodyLimit(u64),
    ResponseBodyLimit(u64),
    XmlArguments(XmlArguments),
    Remove(RuleFilter),
    RemoveTarget(RuleFilter, Target),
}

/// Which rules.
#[derive(Debug, Clone)]
pub(super) enum RuleFilter {
    Ids(IdRange),
    /// Index of a string; `None` if no rule has the tag.
    Tag(Option<u32>),
    Msg(Box<[u8]>),
}

/// Text with macros, parsed and bound to slots.
#[derive(Default)]
pub(super) struct Macro(pub(super) Vec<MacroPiece>);

pub(super) enum MacroPiece {
    Text(Box<[u8]>),
    Slot(u32),
    Value(Variable, Option<Box<[u8]>>),
    /// The first value of a collection that a pattern selects.
    Selected(Variable, KeySelector),
}

impl RuleFilter {
    pub(super) fn matches(&self, rule: &Rule) -> bool {
        match self {
            Self::Ids(range) => (range.first..=range.last).contains(&rule.id),
            Self::Tag(tag) => tag.is_some_and(|tag| rule.tags.contains(&tag)),
            Self::Msg(msg) => *rule.msg_text == **msg,
        }
    }
}

impl Engine {
    /// Builds what a program describes. Patterns are compiled when a value first needs them.
    ///
    /// # Errors
    /// If the program was not made by [`crate::compile()`]: a code nobody knows, an index out of its table.
    pub fn new(program: Program) -> Result<Self, String> {
        Self::build(program, true)
    }

    /// An engine that runs every operator on every value: what the one with gates is compared with in tests.
    #[doc(hidden)]
    pub fn without_gates(program: Program) -> Result<Self, String> {
        Self::build(program, false)
    }

    fn build(program: Program, gated: bool) -> Result<Self, String> {
        let settings = program.settings();
        let wire = program.wire;
        let mut builder = Builder::new(&wire, gated);
        let operators = wire.operators.iter().map(|operator| builder.operator(operator));
        let mut operators: Vec<BuiltOperator> = operators.collect::<Result<_, _>>()?;
        let mut rules: Vec<Rule> = wire.rules.iter().map(|rule| builder.rule(rule)).collect::<Result<_, _>>()?;
        let phases = phases(&mut rules)?;
        let foresight = match gated {
            true => Foresight::new(&rules, &phases, &operators, &builder.names, &builder.constants.list),
            false => Foresight::default(),
        };
        builder.names_without_slots(&mut rules);
        builder.number_tests(&mut rules, &operators, &wire);
        let (scanner, groups) = builder.gates(&wire, &mut operators, &mut rules, &foresight)?;
        let first_test = |rule: u32| match rules.get(rule as usize).and_then(|rule| rule.links.first()) {
            Some(link) if gated => FirstTest::of(link, &operators),
            _ => FirstTest::Unknown,
        };
        Ok(Self {
            settings,
            whole: phases.each_ref().map(|phase| Plan::whole(phase, &rules, scanner.words(), first_test)),
            foreseen: phases
                .each_ref()
                .map(|phase| Plan::foreseen(phase, &foresight, &rules, scanner.words(), first_test)),
            foresight,
            pool: Pool::default(),
            constants: builder.constants.list,
            operators,
            rules,
            names: builder.names,
            scanner,
            groups,
            uses: builder.uses,
            paths: builder.paths,
            strings: wire.strings.into_iter().map(Into::into).collect(),
        })
    }

    /// What the directives set: the mode, access to bodies, limits, media types.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many rules there are; a chain is one rule.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// Whether any rule looks at the variable or expands it.
    pub fn uses(&self, variable: Variable) -> bool {
        self.uses.get(usize::from(variable.code())).copied().unwrap_or_default()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gates = self.operators.iter().filter(|operator| operator.gate.is_some()).count();
        f.debug_struct("Engine")
            .field("rules", &self.rules.len())
            .field("operators", &self.operators.len())
            .field("gates", &gates)
            .field("sets of bytes", &self.scanner.sets())
            .finish_non_exhaustive()
    }
}

/// For each phase its rules in order. How far a rule skips becomes the rule it leads to.
fn phases(rules: &mut [Rule]) -> Result<[Vec<u32>; 5], String> {
    let mut phases: [Vec<u32>; 5] = Default::default();
    for (at, rule) in rules.iter().enumerate() {
        let phase = phases.get_mut(usize::from(rule.phase).wrapping_sub(1));
        let at = u32::try_from(at).map_err(|_| "too many rules".to_owned())?;
        phase.ok_or_else(|| format!("rule {}: there is no phase {}", rule.id, rule.phase))?.push(at);
    }
    for phase in &phases {
        for (position, &at) in phase.iter().enumerate() {
            if let Some(rule) = rules.get_mut(at as usize).filter(|rule| rule.skip > 0 && rule.skip_to.is_none()) {
                let after = position.saturating_add(rule.skip as usize).saturating_add(1);
                rule.skip_to = Some(phase.get(after).copied().unwrap_or(u32::MAX));
            }
        }
    }
    Ok(phases)
}

pub(super) struct Builder<'a> {
    pub(super) gated: bool,
    strings: HashMap<&'a [u8], u32>,
    operators: usize,
    names: Names,
    constants: ConstantList,
    namespaces: Vec<(Vec<u8>, Vec<u8>)>,
    paths: Vec<(Box<[u8]>, xml::Path)>,
    uses: [bool; Variable::COUNT],
}

impl<'a> Builder<'a> {
    fn new(wire: &'a wire::Program, gated: bool) -> Self {
        let mut names = Names::default();
        for capture in b'0'..=b'9' {
            names.add(&[capture]);
        }
        let strings = wire.strings.iter().zip(0..).map(|(text, at)| (text.as_slice(), at));
        Self {
            gated,
            strings: strings.collect(),
            operators: wire.operators.len(),
            names,
            constants: ConstantList::new(),
            namespaces: wire.settings.as_ref().map(Settings::from_wire).unwrap_or_default().namespaces,
            paths: Vec::new(),
            uses: [false; Variable::COUNT],
        }
    }

    /// An expression for XML bodies, once.
    fn path(&mut self, text: &[u8]) -> Result<(), String> {
        if matches!(text, b"/*" | b"//@*") || self.paths.iter().any(|(known, _)| **known == *text) {
            return Ok(());
        }
        let namespaces = self.namespaces.iter();
        let named = |prefix: &[u8]| namespaces.clone().find(|(known, _)| known == prefix).map(|(_, url)| url.clone());
        let path = xml::Path::parse(text, named).map_err(|error| error.message)?;
        self.paths.push((text.into(), path));
        Ok(())
    }

    fn operator(&mut self, wire: &wire::Operator) -> Result<BuiltOperator, String> {
        let kind = u8::try_from(wire.kind).ok().and_then(OperatorKind::from_code);
        let kind = kind.ok_or_else(|| format!("there is no operator {}", wire.kind))?;
        let argument = OperatorArgument { text: wire.text.clone(), phrases: wire.phrases.clone() };
        let operator = Operator::build(kind, &argument)?;
        let expanded = operator.needs_expansion().then(|| self.template(&wire.text)).transpose()?;
        let is_pattern = matches!(kind, OperatorKind::Rx | OperatorKind::RxGlobal);
        Ok(BuiltOperator {
            operator,
            argument: expanded,
            pairs: self.gated.then(OnceLock::new),
            is_pattern,
            gate: None,
            settles: true,
        })
    }

    fn rule(&mut self, wire: &wire::Rule) -> Result<Rule, String> {
        let links: Vec<Link> = wire.links.iter().map(|link| self.link(link)).collect::<Result<_, _>>()?;
        let disruption = Disruption::from_code(wire.disruption);
        let mut rule = Rule {
            id: wire.id,
            phase: u8::try_from(wire.phase).unwrap_or(0),
            links,
            disruption: disruption.ok_or_else(|| format!("rule {}: unknown disruptive action", wire.id))?,
            status: u16::try_from(wire.status).unwrap_or(403),
            redirect: self.template(&wire.redirect)?,
            msg: self.template(&wire.msg)?,
            msg_text: wire.msg.as_slice().into(),
            logdata: self.template(&wire.logdata)?,
            severity: wire.severity.checked_sub(1).and_then(|level| Severity::from_level(u8::try_from(level).ok()?)),
            tags: wire.tags.clone(),
            version: wire.version.checked_sub(1),
            revision: wire.revision.checked_sub(1),
            log: wire.log,
            audit_log: wire.audit_log,
            skip: wire.skip,
            skip_to: wire.skip_to.checked_sub(1),
            is_bookkeeping: false,
            vain: None,
        };
        rule.is_bookkeeping = match rule.links.as_slice() {
            [link] => {
                let silent = !rule.is_reported() && rule.severity.is_none() && rule.disruption == Disruption::Pass;
                silent && link.is_bookkeeping()
            }
            _ => false,
        };
        Ok(rule)
    }

    fn link(&mut self, wire: &wire::Link) -> Result<Link, String> {
        let transform =
            |code: &u8| Transform::from_code(*code).ok_or_else(|| format!("there is no transformation {code}"));
        let operator = wire.operator.checked_sub(1);
        if operator.is_some_and(|operator| operator as usize >= self.operators) {
            return Err(format!("there is no operator at index {}", wire.operator));
        }
        let transforms: Vec<Transform> = wire.transforms.iter().map(transform).collect::<Result<_, _>>()?;
        Ok(Link {
            targets: wire.targets.iter().map(|target| self.target(target)).collect::<Result<_, _>>()?,
            exclusions: wire.exclusions.iter().map(|target| self.target(target)).collect::<Result<_, _>>()?,
            operator,
            lasting: None,
            negated: wire.negated,
            triggers: triggers(&transforms).filter(|_| self.gated),
            transforms,
            gate: None,
            known_targets: Box::default(),
            changes: 0,
            multi_match: wire.multi_match,
            capture: wire.capture,
            sets: wire.sets.iter().map(|set| self.set(set)).collect::<Result<_, _>>()?,
            controls: wire.controls.iter().map(|control| self.control(control)).collect::<Result<_, _>>()?,
        })
    }

    fn variable(&mut self, code: u32) -> Result<Variable, String> {
        let variable = u8::try_from(code).ok().and_then(Variable::from_code);
        let variable = variable.ok_or_else(|| format!("there is no variable {code}"))?;
        if let Some(used) = self.uses.get_mut(usize::from(variable.code())) {
            *used = true;
        }
        Ok(variable)
    }

    pub(super) fn target(&mut self, wire: &wire::Target) -> Result<Target, String> {
        let variable = self.variable(wire.variable)?;
        if variable == Variable::Xml && wire.selection == wire::KEY_NAME {
            self.path(&wire.key)?;
        }
        let key = match (wire.selection, variable) {
            (wire::KEY_ALL, _) => KeySelector::All,
            (wire::KEY_NAME, Variable::Tx) => KeySelector::Slot(self.names.add(&wire.key)),
            (wire::KEY_NAME, _) => KeySelector::Name(wire.key.as_slice().into()),
            (wire::KEY_PATTERN, _) => {
                KeySelector::pattern(&OperatorArgument { text: wire.key.clone(), phrases: wire.phrases.clone() })?
            }
            (other, _) => return Err(format!("there is no selection {other}")),
        };
        Ok(Target { variable, key, count: wire.count })
    }

    fn set(&mut self, wire: &wire::SetVariable) -> Result<SetVariable, String> {
        let variable = self.variable(wire.variable)?;
        let parsed = Template::parse(&wire.key).map_err(|error| error.message)?;
        let slot = match (variable, parsed.as_text()) {
            (Variable::Tx, Some(name)) => Some(self.names.add(name)),
            _ => None,
        };
        Ok(SetVariable {
            variable,
            slot,
            is_dynamic: false,
            key: self.bind(parsed)?,
            operation: match wire.operation {
                wire::SET_TO => SetOperation::To,
                wire::SET_ADD => SetOperation::Add,
                wire::SET_SUBTRACT => SetOperation::Subtract,
                wire::SET_NOTHING => SetOperation::Nothing,
                wire::SET_ATTACH => SetOperation::Attach,
                wire::SET_EXPIRE => SetOperation::Expire,
                wire::SET_DEPRECATE => SetOperation::Deprecate,
                wire::SET_SANITISE => SetOperation::Sanitise,
                other => return Err(format!("there is no assignment {other}")),
            },
            constant: Template::parse(&wire.value).ok().and_then(|value| Some(self.constants.add(value.as_text()?))),
            value: self.template(&wire.value)?,
        })
    }

    /// Finds the assignments to names that cannot have a slot. All names that have one are known by now.
    fn names_without_slots(&self, rules: &mut [Rule]) {
        for set in rules.iter_mut().flat_map(|rule| &mut rule.links).flat_map(|link| &mut link.sets) {
            if let Some(MacroPiece::Text(prefix)) = set.key.0.first() {
                let begins =
                    |name: &[u8]| name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
                set.is_dynamic = self.gated && set.slot.is_none() && !self.names.list.iter().any(|name| begins(name));
            }
        }
    }

    /// Numbers the tests that say the same of a value in every transaction. One that may give up does not.
    fn number_tests(&self, rules: &mut [Rule], operators: &[BuiltOperator], wire: &wire::Program) {
        if !self.gated {
            return;
        }
        let lasts = |built: &BuiltOperator| built.argument.is_none() && !built.operator.is_backtracking();
        let mut count = 0;
        for (link, number) in rules.iter_mut().flat_map(|rule| &mut rule.links).zip(0..) {
            let operator = link.operator.and_then(|at| operators.get(at as usize));
            link.lasting = operator.filter(|operator| lasts(operator)).map(|_| number);
            count = number + 1;
        }
        vain::find(rules, operators, wire, count);
    }

    fn control(&mut self, wire: &wire::Control) -> Result<Control, String> {
        use wire::ControlKind as Kind;
        Ok(match wire.kind.as_ref().ok_or_else(|| "a ctl without a kind".to_owned())? {
            Kind::RuleEngine(code) => Control::RuleEngine(EngineMode::from_code(*code)),
            Kind::RequestBodyAccess(on) => Control::RequestBodyAccess(*on),
            Kind::ResponseBodyAccess(on) => Control::ResponseBodyAccess(*on),
            Kind::RequestBodyProcessor(name) => Control::RequestBodyProcessor(name.as_slice().into()),
            Kind::RequestBodyLimit(bytes) => Control::RequestBodyLimit(*bytes),
            Kind::ResponseBodyLimit(bytes) => Control::ResponseBodyLimit(*bytes),
            Kind::XmlArguments(code) => Control::XmlArguments(XmlArguments::from_code(*code)),
            Kind::ForceRequestBodyVariable(on) => Control::ForceRequestBodyVariable(*on),
            Kind::RemoveById(range) => Control::Remove(RuleFilter::Ids(*range)),
            Kind::RemoveByTag(tag) => Control::Remove(self.tag(tag)),
            Kind::RemoveByMsg(msg) => Control::Remove(RuleFilter::Msg(msg.as_slice().into())),
            Kind::RemoveTargetById(removal) => {
                let ids = removal.ids.ok_or_else(|| "a ctl without ids".to_owned())?;
                Control::RemoveTarget(RuleFilter::Ids(ids), self.removed(removal)?)
            }
            Kind::RemoveTargetByTag(removal) => Control::RemoveTarget(self.tag(&removal.text), self.removed(removal)?),
            Kind::RemoveTargetByMsg(removal) => {
                Control::RemoveTarget(RuleFilter::Msg(removal.text.as_slice().into()), self.removed(removal)?)
            }
        })
    }

    fn tag(&self, tag: &[u8]) -> RuleFilter {
        RuleFilter::Tag(self.strings.get(tag).copied())
    }

    fn removed(&mut self, wire: &wire::RemoveTarget) -> Result<Target, String> {
        let target = wire.target.as_ref().ok_or_else(|| "a ctl without a target".to_owned())?;
        self.target(target)
    }

    fn template(&mut self, text: &[u8]) -> Result<Macro, String> {
        let parsed = Template::parse(text).map_err(|error| error.message)?;
        self.bind(parsed)
    }

    fn bind(&mut self, template: Template) -> Result<Macro, String> {
        let mut pieces = Vec::with_capacity(template.pieces.len());
        for piece in template.pieces {
            pieces.push(match piece {
                Piece::Text(text) => MacroPiece::Text(text),
                Piece::Value(Variable::Tx, Some(name)) => MacroPiece::Slot(self.names.add(&name)),
                Piece::Value(variable, key) => {
                    if let Some(used) = self.uses.get_mut(usize::from(variable.code())) {
                        *used = true;
                    }
                    MacroPiece::Value(variable, key)
                }
                Piece::Pattern(variable, pattern) => {
                    if let Some(used) = self.uses.get_mut(usize::from(variable.code())) {
                        *used = true;
                    }
                    MacroPiece::Selected(variable, KeySelector::pattern(&pattern)?)
                }
            });
        }
        Ok(Macro(pieces))
    }
}
