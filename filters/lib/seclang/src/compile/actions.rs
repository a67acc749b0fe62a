//! Checks action lists: of rules, of `SecDefaultAction`, of `SecRuleUpdateActionById`.

use super::{Compiler, Place, collections};
use crate::expansion::Template;
use crate::program::wire::{self, Disruption};
use crate::syntax::{self, Action, Argument};
use crate::transform::Transform;
use crate::vocabulary::{Severity, Variable, nearest};

/// What a disruptive action says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// `block`: what the default action says.
    Block,
    /// Everything else.
    Direct(Disruption),
}

/// An action list, checked.
#[derive(Debug, Clone, Default)]
pub(super) struct ActionSet {
    pub(super) id: Option<u64>,
    pub(super) phase: Option<u8>,
    pub(super) chain: bool,
    pub(super) verdict: Option<Verdict>,
    pub(super) verdict_place: Option<Place>,
    pub(super) status: Option<u16>,
    pub(super) redirect: Vec<u8>,
    pub(super) msg: Option<Vec<u8>>,
    pub(super) logdata: Option<Vec<u8>>,
    pub(super) severity: Option<Severity>,
    pub(super) tags: Vec<Vec<u8>>,
    pub(super) version: Option<Vec<u8>>,
    pub(super) revision: Option<Vec<u8>>,
    pub(super) maturity: Option<u32>,
    pub(super) accuracy: Option<u32>,
    pub(super) log: Option<bool>,
    pub(super) audit_log: Option<bool>,
    pub(super) skip: Option<u32>,
    pub(super) skip_after: Option<(Vec<u8>, Place)>,
    pub(super) transforms: Vec<Transform>,
    /// `t:none` was among the transformations.
    pub(super) only_these_transforms: bool,
    pub(super) multi_match: bool,
    pub(super) capture: bool,
    pub(super) sets: Vec<wire::SetVariable>,
    pub(super) controls: Vec<wire::Control>,
    /// What `xmlns` declares.
    pub(super) prefixes: Vec<Vec<u8>>,
}

/// All names of actions, for "did you mean".
pub(super) const NAMES: &[&str] = &[
    "accuracy",
    "allow",
    "auditlog",
    "block",
    "capture",
    "chain",
    "ctl",
    "deny",
    "deprecatevar",
    "drop",
    "expirevar",
    "id",
    "initcol",
    "log",
    "logdata",
    "maturity",
    "msg",
    "multiMatch",
    "noauditlog",
    "nolog",
    "pass",
    "phase",
    "redirect",
    "rev",
    "sanitiseArg",
    "sanitiseMatched",
    "sanitiseMatchedBytes",
    "sanitiseRequestHeader",
    "sanitiseResponseHeader",
    "setenv",
    "setrsc",
    "setsid",
    "setuid",
    "setvar",
    "severity",
    "skip",
    "skipAfter",
    "status",
    "t",
    "tag",
    "ver",
    "xmlns",
];

/// Actions that are refused, and why.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("exec", "a gateway runs no programs"),
    ("proxy", "routes are the gateway's; a rule cannot choose another"),
    ("pause", "a filter cannot stop a worker"),
    ("append", "bodies are not rewritten"),
    ("prepend", "bodies are not rewritten"),
];

/// An error about one action: the message and the help.
pub(super) type Complaint = (String, Option<String>);

impl Compiler<'_> {
    /// The actions of an argument. `None` if the list cannot be read at all; wrong actions are left out and reported.
    pub(super) fn actions(&mut self, source: usize, argument: &Argument) -> Option<ActionSet> {
        let parsed = match syntax::actions(&argument.text) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.syntax_error(source, argument, error, None);
                return None;
            }
        };
        // The id comes first, so that every message names the rule.
        let id = parsed.iter().find(|action| action.name == "id").and_then(|action| number(action).ok());
        let mut set = ActionSet::default();
        for action in &parsed {
            let offset = argument.source_offset(action.offset);
            let place = Place { source, offset };
            if let Err((message, help)) = self.action(&mut set, action, place) {
                self.error(place, message, help, id);
            }
        }
        Some(set)
    }

    fn action(&mut self, set: &mut ActionSet, action: &Action, place: Place) -> Result<(), Complaint> {
        let verdict = |set: &mut ActionSet, verdict| {
            set.verdict = Some(verdict);
            set.verdict_place = Some(place);
        };
        match action.name.as_str() {
            "id" => set.id = Some(number(action)?),
            "phase" => set.phase = Some(phase(action)?),
            "chain" => set.chain = true,
            // `deny,block`: what is named outright counts.
            "block" if matches!(set.verdict, Some(Verdict::Direct(direct)) if direct.blocks()) => {}
            "block" => verdict(set, Verdict::Block),
            "pass" => verdict(set, Verdict::Direct(Disruption::Pass)),
            "deny" => verdict(set, Verdict::Direct(Disruption::Deny)),
            "drop" => verdict(set, Verdict::Direct(Disruption::Drop)),
            "allow" => verdict(set, Verdict::Direct(allow(action)?)),
            "redirect" => {
                verdict(set, Verdict::Direct(Disruption::Redirect));
                set.redirect = template(action)?;
            }
            "status" => {
                let status = number(action)?;
                let valid = u16::try_from(status).ok().filter(|status| (100..=599).contains(status));
                set.status = Some(valid.ok_or_else(|| complaint("a status is a number from 100 to 599"))?);
            }
            "msg" => set.msg = Some(template(action)?),
            "logdata" => set.logdata = Some(template(action)?),
            "severity" => {
                let text = text(action)?;
                let help = "EMERGENCY, ALERT, CRITICAL, ERROR, WARNING, NOTICE, INFO, DEBUG, or 0 to 7";
                set.severity = Some(
                    Severity::parse(&text)
                        .ok_or_else(|| (format!("unknown severity '{text}'"), Some(help.to_owned())))?,
                );
            }
            "tag" => set.tags.push(value(action)?.to_vec()),
            "ver" => set.version = Some(value(action)?.to_vec()),
            "rev" => set.revision = Some(value(action)?.to_vec()),
            "maturity" => set.maturity = Some(small_number(action)?),
            "accuracy" => set.accuracy = Some(small_number(action)?),
            "log" => set.log = Some(true),
            "nolog" => {
                set.log = Some(false);
                set.audit_log = Some(false);
            }
            "auditlog" => set.audit_log = Some(true),
            "noauditlog" => set.audit_log = Some(false),
            "skip" => set.skip = Some(small_number(action)?),
            "skipafter" => set.skip_after = Some((value(action)?.to_vec(), place)),
            "t" => transform(set, action)?,
            "multimatch" => set.multi_match = true,
            "capture" => set.capture = true,
            "setvar" => set.sets.push(set_variable(action)?),
            "setenv" => set.sets.push(set_environment(action)?),
            "setuid" => {
                set.sets.push(set_scalar(action, Variable::UserId)?);
                set.sets.push(collections::attach(Variable::User, value(action)?)?);
            }
            "setsid" => {
                set.sets.push(set_scalar(action, Variable::SessionId)?);
                set.sets.push(collections::attach(Variable::Session, value(action)?)?);
            }
            "setrsc" => set.sets.push(collections::attach(Variable::Resource, value(action)?)?),
            "initcol" => set.sets.push(collections::initialise(value(action)?)?),
            "expirevar" => set.sets.push(collections::expire(value(action)?)?),
            "deprecatevar" => set.sets.push(collections::deprecate(value(action)?)?),
            "sanitisearg" => set.sets.push(sanitise(Variable::Args, value(action)?)?),
            "sanitiserequestheader" => set.sets.push(sanitise(Variable::RequestHeaders, value(action)?)?),
            "sanitiseresponseheader" => set.sets.push(sanitise(Variable::ResponseHeaders, value(action)?)?),
            // Of a match that is to be masked in part, nothing is shown.
            "sanitisematched" | "sanitisematchedbytes" => set.sets.push(sanitise(Variable::MatchedVar, b"")?),
            "ctl" => self.control(set, action, place)?,
            "xmlns" => {
                let (prefix, address) = namespace(action)?;
                self.declare_namespace(&prefix, &address)?;
                set.prefixes.push(prefix);
            }
            name => {
                if let Some((_, reason)) = REFUSED.iter().find(|(known, _)| *known == name) {
                    return Err((format!("the action '{name}' is not supported"), Some((*reason).to_owned())));
                }
                let help = nearest(name, NAMES.iter().chain(REFUSED.iter().map(|(known, _)| known)).copied());
                let help = help.map(|name| format!("did you mean '{name}'?"));
                return Err((format!("unknown action '{name}'"), help));
            }
        }
        Ok(())
    }
}

pub(super) fn complaint(message: &str) -> Complaint {
    (message.to_owned(), None)
}

pub(super) fn value(action: &Action) -> Result<&[u8], Complaint> {
    let value = action.value.as_deref().filter(|value| !value.is_empty());
    value.ok_or_else(|| (format!("'{}' needs a value", action.name), Some(format!("write {}:...", action.name))))
}

fn text(action: &Action) -> Result<String, Complaint> {
    value(action).map(|value| String::from_utf8_lossy(value).trim().to_owned())
}

fn number(action: &Action) -> Result<u64, Complaint> {
    let text = text(action)?;
    text.parse().map_err(|_| (format!("'{}' needs a number, not '{text}'", action.name), None))
}

fn small_number(action: &Action) -> Result<u32, Complaint> {
    u32::try_from(number(action)?).map_err(|_| (format!("the number of '{}' is too large", action.name), None))
}

/// The value, whose macros are known to be good.
fn template(action: &Action) -> Result<Vec<u8>, Complaint> {
    let value = action.value.as_deref().unwrap_or_default();
    checked_template(value)?;
    Ok(value.to_vec())
}

pub(super) fn checked_template(text: &[u8]) -> Result<(), Complaint> {
    Template::parse(text).map(|_| ()).map_err(|error| (error.message, error.help))
}

fn phase(action: &Action) -> Result<u8, Complaint> {
    let text = text(action)?;
    match text.to_ascii_lowercase().as_str() {
        "1" => Ok(1),
        "2" | "request" => Ok(2),
        "3" => Ok(3),
        "4" | "response" => Ok(4),
        "5" | "logging" => Ok(5),
        _ => Err((format!("unknown phase '{text}'"), Some("1 to 5, request, response or logging".to_owned()))),
    }
}

fn allow(action: &Action) -> Result<Disruption, Complaint> {
    let Some(scope) = &action.value else { return Ok(Disruption::Allow) };
    match scope.to_ascii_lowercase().as_slice() {
        b"phase" => Ok(Disruption::AllowPhase),
        b"request" => Ok(Disruption::AllowRequest),
        _ => Err((
            format!("unknown scope '{}' of allow", String::from_utf8_lossy(scope)),
            Some("allow, allow:phase or allow:request".to_owned()),
        )),
    }
}

fn transform(set: &mut ActionSet, action: &Action) -> Result<(), Complaint> {
    let text = text(action)?;
    match Transform::from_name(&text) {
        Some(Transform::None) => {
            set.transforms.clear();
            set.only_these_transforms = true;
        }
        Some(transform) => set.transforms.push(transform),
        None => {
            let help = nearest(&text, Transform::names()).map(|name| format!("did you mean '{name}'?"));
            return Err((format!("unknown transformation '{text}'"), help));
        }
    }
    Ok(())
}

/// `setvar:tx.score=+%{tx.critical_anomaly_score}`, `setvar:!tx.score`, `setvar:tx.flag`.
fn set_variable(action: &Action) -> Result<wire::SetVariable, Complaint> {
    let text = value(action)?.trim_ascii();
    let (text, removes) = text.strip_prefix(b"!").map_or((text, false), |text| (text, true));
    let (name, value) = split(text, b'=').map_or((text, None), |(name, value)| (name, Some(value)));
    let Some((collection, key)) = split(name, b'.').or_else(|| split(name, b':')) else {
        let help = Some("write setvar:tx.name=value".to_owned());
        return Err(("setvar needs a collection and a name".to_owned(), help));
    };
    let collection = String::from_utf8_lossy(collection.trim_ascii()).into_owned();
    let variable = Variable::from_name(&collection).filter(|variable| variable.is_writable());
    let Some(variable) = variable else {
        let help = Some("rules may write to TX, IP, GLOBAL, SESSION, USER and RESOURCE".to_owned());
        return Err((format!("'{collection}' cannot be written to"), help));
    };
    let key = key.trim_ascii();
    checked_template(key)?;
    let (operation, value) = match (removes, value) {
        (true, _) => (wire::SET_NOTHING, &b""[..]),
        (false, None) => (wire::SET_TO, &b"1"[..]),
        (false, Some(value)) => match value.split_first() {
            Some((b'+', value)) => (wire::SET_ADD, value),
            Some((b'-', value)) => (wire::SET_SUBTRACT, value),
            _ => (wire::SET_TO, value),
        },
    };
    checked_template(value)?;
    collections::check_name(variable, key)?;
    Ok(wire::SetVariable { variable: u32::from(variable.code()), key: key.to_vec(), operation, value: value.to_vec() })
}

/// `xmlns:soap='http://schemas.xmlsoap.org/soap/envelope/'`.
fn namespace(action: &Action) -> Result<(Vec<u8>, Vec<u8>), Complaint> {
    let help = || Some("write xmlns:prefix='http://example.org/namespace'".to_owned());
    let Some((prefix, address)) = split(value(action)?, b'=') else {
        return Err(("xmlns needs a prefix, an equals sign and a namespace".to_owned(), help()));
    };
    if prefix.is_empty() || !address.starts_with(b"http") {
        let message = match prefix.is_empty() {
            true => "the prefix of xmlns is missing",
            false => "the namespace of xmlns is no URL",
        };
        return Err((message.to_owned(), help()));
    }
    Ok((prefix.to_vec(), address.to_vec()))
}

/// `sanitiseArg:password`: what is reported of the value is masked.
fn sanitise(variable: Variable, name: &[u8]) -> Result<wire::SetVariable, Complaint> {
    checked_template(name)?;
    Ok(wire::SetVariable {
        variable: u32::from(variable.code()),
        key: name.trim_ascii().to_vec(),
        operation: wire::SET_SANITISE,
        value: Vec::new(),
    })
}

fn set_environment(action: &Action) -> Result<wire::SetVariable, Complaint> {
    let text = value(action)?;
    let Some((key, value)) = split(text, b'=') else {
        return Err(("setenv needs a name and a value".to_owned(), Some("write setenv:name=value".to_owned())));
    };
    checked_template(value)?;
    Ok(wire::SetVariable {
        variable: u32::from(Variable::Env.code()),
        key: key.to_vec(),
        operation: wire::SET_TO,
        value: value.to_vec(),
    })
}

fn set_scalar(action: &Action, variable: Variable) -> Result<wire::SetVariable, Complaint> {
    Ok(wire::SetVariable {
        variable: u32::from(variable.code()),
        key: Vec::new(),
        operation: wire::SET_TO,
        value: template(action)?,
    })
}

pub(super) fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = text.iter().position(|&byte| byte == at)?;
    Some((text.get(..position)?, text.get(position + 1..)?))
}
