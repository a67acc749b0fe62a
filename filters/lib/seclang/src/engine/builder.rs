//! Builds executable rules and operators from an encoded program.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::names::{ConstantList, Names};
use super::negative_cache;
use super::prefilter::triggers;
use super::rules::{
    BuiltOperator, Control, KeySelector, Link, Macro, MacroPiece, Rule, RuleFilter, SetOperation, SetVariable, Target,
};
use crate::body::xml;
use crate::expansion::{Piece, Template};
use crate::operator::{Operator, OperatorArgument, OperatorKind};
use crate::program::wire::{self, Disruption};
use crate::program::{EngineMode, Settings, XmlArguments};
use crate::transform::Transform;
use crate::vocabulary::{Severity, Variable};

/// The state of the build: names, constants and expressions found so far.
pub(super) struct Builder<'a> {
    /// `false` for [`super::Engine::without_prefilter`].
    pub(super) with_prefilter: bool,
    strings: HashMap<&'a [u8], u32>,
    operators: usize,
    pub(super) names: Names,
    pub(super) constants: ConstantList,
    namespaces: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) paths: Vec<(Box<[u8]>, xml::Path)>,
    pub(super) uses: [bool; Variable::COUNT],
}

impl<'a> Builder<'a> {
    pub(super) fn new(wire: &'a wire::Program, with_prefilter: bool) -> Self {
        let mut names = Names::default();
        for capture in b'0'..=b'9' {
            names.add(&[capture]);
        }
        let strings = wire.strings.iter().zip(0..).map(|(text, at)| (text.as_slice(), at));
        Self {
            with_prefilter,
            strings: strings.collect(),
            operators: wire.operators.len(),
            names,
            constants: ConstantList::new(),
            namespaces: wire.settings.as_ref().map(Settings::from_wire).unwrap_or_default().namespaces,
            paths: Vec::new(),
            uses: [false; Variable::COUNT],
        }
    }

    /// Adds an XPath expression, unless it is present.
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

    pub(super) fn operator(&mut self, wire: &wire::Operator) -> Result<BuiltOperator, String> {
        let kind = u8::try_from(wire.kind).ok().and_then(OperatorKind::from_code);
        let kind = kind.ok_or_else(|| format!("there is no operator {}", wire.kind))?;
        let argument = OperatorArgument { text: wire.text.clone(), phrases: wire.phrases.clone() };
        let operator = Operator::build(kind, &argument)?;
        let expanded = operator.needs_expansion().then(|| self.template(&wire.text)).transpose()?;
        let is_pattern = matches!(kind, OperatorKind::Rx | OperatorKind::RxGlobal);
        // Of an argument with macros it is not known.
        let steps_back = operator.is_backtracking() || is_pattern && expanded.is_some();
        Ok(BuiltOperator {
            operator,
            argument: expanded,
            pairs: self.with_prefilter.then(OnceLock::new),
            is_pattern,
            steps_back,
            prefilter: None,
            settles: true,
        })
    }

    pub(super) fn rule(&mut self, wire: &wire::Rule) -> Result<Rule, String> {
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
            is_assignment_only: false,
            negative_chain: None,
        };
        rule.is_assignment_only = match rule.links.as_slice() {
            [link] => {
                let silent = !rule.is_reported() && rule.severity.is_none() && rule.disruption == Disruption::Pass;
                silent && link.is_assignment_only()
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
            test_number: None,
            negated: wire.negated,
            triggers: triggers(&transforms).filter(|_| self.with_prefilter),
            transforms,
            prefilter: None,
            target_numbers: Box::default(),
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

    /// Marks the assignments to names of TX that cannot have a slot. All names with a slot must be added before.
    pub(super) fn names_without_slots(&self, rules: &mut [Rule]) {
        for set in rules.iter_mut().flat_map(|rule| &mut rule.links).flat_map(|link| &mut link.sets) {
            if let Some(MacroPiece::Text(prefix)) = set.key.0.first() {
                let begins =
                    |name: &[u8]| name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
                set.is_dynamic =
                    self.with_prefilter && set.slot.is_none() && !self.names.list.iter().any(|name| begins(name));
            }
        }
    }

    /// Numbers the tests whose result depends on the value only, so that it is the same in every transaction. Tests
    /// that may give up at a limit get no number, nor do lookups, whose tables change.
    pub(super) fn number_tests(&self, rules: &mut [Rule], operators: &[BuiltOperator], wire: &wire::Program) {
        if !self.with_prefilter {
            return;
        }
        let lasts = |built: &BuiltOperator| {
            built.argument.is_none() && !built.operator.is_backtracking() && !built.operator.looks_up()
        };
        let mut count = 0;
        for (link, number) in rules.iter_mut().flat_map(|rule| &mut rule.links).zip(0..) {
            let operator = link.operator.and_then(|at| operators.get(at as usize));
            link.test_number = operator.filter(|operator| lasts(operator)).map(|_| number);
            count = number + 1;
        }
        negative_cache::find_chains(rules, operators, wire, count);
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
