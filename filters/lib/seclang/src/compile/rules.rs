//! `SecRule` and `SecAction`: drafts of rules, and chains.

use super::actions::{ActionSet, Verdict};
use super::{Compiler, Place};
use crate::expansion::Template;
use crate::operator::{self, Operator, OperatorKind, Prefilter};
use crate::program::wire;
use crate::syntax::{self, Argument, Directive};
use crate::vocabulary::nearest;

/// A rule before defaults, updates and jumps are resolved.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) place: Place,
    /// The actions of the head, which speak for the chain.
    pub(super) actions: ActionSet,
    pub(super) links: Vec<DraftLink>,
}

/// One test of a chain.
#[derive(Debug)]
pub(super) struct DraftLink {
    pub(super) targets: Vec<(wire::Target, bool)>,
    /// The operator's index, and whether it is negated.
    pub(super) operator: Option<(u32, bool)>,
    pub(super) actions: ActionSet,
}

/// What the next rule is to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenChain {
    /// A new rule.
    Closed,
    /// The next link of the last rule.
    Open,
    /// The next link of a rule with an error: it is checked and dropped.
    Broken,
}

/// Operators of Coraza that are refused, and what to use instead.
pub(super) const FOREIGN_OPERATORS: &[(&str, &str)] = &[
    ("ipMatchFromDataset", "put the networks into a data file and use @ipMatchFromFile"),
    ("pmFromDataset", "put the phrases into a data file and use @pmFromFile"),
    ("restpath", "paths are not taken apart: match REQUEST_FILENAME with @rx"),
];

impl Compiler<'_> {
    pub(super) fn rule(&mut self, place: Place, directive: &Directive, tests: bool) {
        let errors = self.diagnostics.len();
        let chain = self.chain;
        let drafted = self.draft(place, directive, tests);
        let chained = match &drafted {
            Some((_, actions)) => actions.chain,
            None => ends_in_chain(directive),
        };
        let sound = self.diagnostics.len() == errors;
        self.chain = match (chained, sound && chain != OpenChain::Broken) {
            (false, _) => OpenChain::Closed,
            (true, true) => OpenChain::Open,
            (true, false) => OpenChain::Broken,
        };
        let Some((link, actions)) = drafted.filter(|_| sound) else { return };
        match chain {
            OpenChain::Broken => {}
            OpenChain::Closed => self.begin_rule(place, link, actions),
            OpenChain::Open => self.add_link(place, link, actions),
        }
    }

    fn begin_rule(&mut self, place: Place, mut link: DraftLink, mut actions: ActionSet) {
        link.actions = part_of_link(&mut actions);
        if actions.id.is_none() {
            let help = Some("add id:1000 (a number of your own, not used elsewhere)".to_owned());
            self.error(place, "this rule has no id", help, None);
        }
        self.rules.push(Draft { place, actions, links: vec![link] });
    }

    fn add_link(&mut self, place: Place, mut link: DraftLink, mut actions: ActionSet) {
        let head = self.rules.last().and_then(|rule| rule.actions.id);
        let rule = "a chain acts through its first rule";
        // `pass` does nothing wherever it stands.
        if actions.verdict.is_some_and(|verdict| verdict != Verdict::Direct(wire::Disruption::Pass)) {
            let at = actions.verdict_place.unwrap_or(place);
            let help = Some(rule.to_owned());
            self.error(at, "a disruptive action belongs to the first rule of a chain", help, head);
        }
        if actions.skip.is_some() || actions.skip_after.is_some() {
            let help = Some(rule.to_owned());
            self.error(place, "skip and skipAfter belong to the first rule of a chain", help, head);
        }
        if actions.id.is_some() {
            self.warn(place, "the id of a chained rule is not used: a chain goes by the id of its first rule");
        }
        let head_phase = self.rules.last().and_then(|rule| rule.actions.phase);
        if actions.phase.is_some() && actions.phase != head_phase {
            self.warn(place, "the phase of a chained rule is not used: a chain runs in the phase of its first rule");
        }
        link.actions = part_of_link(&mut actions);
        let Some(rule) = self.rules.last_mut() else { return };
        // Metadata counts where the head has none.
        rule.actions.msg = rule.actions.msg.take().or(actions.msg);
        rule.actions.logdata = rule.actions.logdata.take().or(actions.logdata);
        rule.actions.severity = rule.actions.severity.or(actions.severity);
        rule.actions.tags.append(&mut actions.tags);
        rule.links.push(link);
    }

    /// Complains if a chain is open: what comes next is no rule.
    pub(super) fn close_chain(&mut self) {
        if self.chain == OpenChain::Open
            && let Some((place, id)) = self.rules.last().map(|rule| (rule.place, rule.actions.id))
        {
            let help = Some("remove 'chain' from the last rule, or add the rule it announces".to_owned());
            self.error(place, "the chain of this rule has no end", help, id);
        }
        self.chain = OpenChain::Closed;
    }

    fn draft(&mut self, place: Place, directive: &Directive, tests: bool) -> Option<(DraftLink, ActionSet)> {
        let (targets, operator, actions) = match (tests, directive.arguments.as_slice()) {
            (true, [targets, operator, actions]) => (Some(targets), Some(operator), Some(actions)),
            (true, [targets, operator]) => (Some(targets), Some(operator), None),
            (false, [actions]) => (None, None, Some(actions)),
            (true, _) => {
                let help =
                    Some("SecRule VARIABLES \"OPERATOR\" \"ACTIONS\"; put arguments with spaces in quotes".to_owned());
                self.error(place, "SecRule needs two or three arguments", help, None);
                return None;
            }
            (false, _) => {
                let help = Some("SecAction \"ACTIONS\"".to_owned());
                self.error(place, "SecAction needs one argument", help, None);
                return None;
            }
        };
        let actions = match actions {
            Some(argument) => self.actions(place.source, argument)?,
            None => ActionSet::default(),
        };
        let id = actions.id;
        self.prefixes.clone_from(&actions.prefixes);
        let targets = match targets {
            Some(argument) => self.targets(place.source, argument, b"|", id).unwrap_or_default(),
            None => Vec::new(),
        };
        let operator = operator.and_then(|argument| self.operator(place.source, argument, id));
        let link = DraftLink { targets, operator, actions: ActionSet::default() };
        Some((link, actions))
    }

    fn operator(&mut self, source: usize, argument: &Argument, id: Option<u64>) -> Option<(u32, bool)> {
        let text = syntax::operator(&argument.text);
        let at = |offset: usize| Place { source, offset: argument.source_offset(offset) };
        let Some(kind) = OperatorKind::from_name(&text.name) else {
            let foreign = FOREIGN_OPERATORS.iter().find(|(known, _)| known.eq_ignore_ascii_case(&text.name));
            let (message, help) = match foreign {
                Some((name, reason)) => (format!("@{name} is not supported"), Some((*reason).to_owned())),
                None => (
                    format!("unknown operator '@{}'", text.name),
                    nearest(&text.name, OperatorKind::names()).map(|name| format!("did you mean '@{name}'?")),
                ),
            };
            self.error(at(text.name_offset), message, help, id);
            return None;
        };
        let checked = match operator::check(kind, &text.argument, self.files) {
            Ok(checked) => checked,
            Err(error) => {
                let offset = text.argument_offset + error.offset.unwrap_or_default();
                self.error(at(offset), error.message, error.help, id);
                return None;
            }
        };
        match Operator::build(kind, &checked) {
            Ok(built) if built.needs_expansion() => {
                if let Err(error) = Template::parse(&checked.text) {
                    self.error(at(text.argument_offset + error.offset), error.message, error.help, id);
                    return None;
                }
            }
            Ok(_) => {}
            Err(message) => {
                self.error(at(text.argument_offset), message, None, id);
                return None;
            }
        }
        let prefilter = Prefilter::of_pattern(kind, &checked).map(wire::Prefilter::of);
        let index = self.intern_operator(wire::Operator {
            prefilter,
            kind: u32::from(kind.code()),
            text: checked.text,
            phrases: checked.phrases,
        });
        Some((index, text.negated))
    }
}

/// Takes out of a list what belongs to one test: the rest speaks for the chain.
fn part_of_link(actions: &mut ActionSet) -> ActionSet {
    ActionSet {
        transforms: std::mem::take(&mut actions.transforms),
        only_these_transforms: std::mem::take(&mut actions.only_these_transforms),
        multi_match: std::mem::take(&mut actions.multi_match),
        capture: std::mem::take(&mut actions.capture),
        sets: std::mem::take(&mut actions.sets),
        controls: std::mem::take(&mut actions.controls),
        ..ActionSet::default()
    }
}

/// Whether a rule that cannot be read announces a chain, as far as that can be read.
fn ends_in_chain(directive: &Directive) -> bool {
    let last = directive.arguments.last();
    last.is_some_and(|argument| {
        let mut items = argument.text.split(|&byte| byte == b',');
        items.any(|item| item.trim_ascii().eq_ignore_ascii_case(b"chain"))
    })
}
