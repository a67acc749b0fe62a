//! Checks `ctl`: what a rule changes for the rest of its transaction.

use super::actions::{ActionSet, Complaint, split, value};
use super::ids::IdRanges;
use super::{Compiler, Place};
use crate::program::wire::{Control, ControlKind, RemoveTarget, Target};
use crate::program::{EngineMode, XmlArguments};
use crate::syntax::{self, Action};
use crate::vocabulary::nearest;

pub(super) const NAMES: &[&str] = &[
    "auditEngine",
    "auditLogParts",
    "debugLogLevel",
    "forceRequestBodyVariable",
    "parseXmlIntoArgs",
    "requestBodyAccess",
    "requestBodyLimit",
    "requestBodyProcessor",
    "responseBodyAccess",
    "responseBodyLimit",
    "ruleEngine",
    "ruleRemoveById",
    "ruleRemoveByMsg",
    "ruleRemoveByTag",
    "ruleRemoveTargetById",
    "ruleRemoveTargetByMsg",
    "ruleRemoveTargetByTag",
];

impl Compiler<'_> {
    pub(super) fn control(&mut self, set: &mut ActionSet, action: &Action, place: Place) -> Result<(), Complaint> {
        self.prefixes.clone_from(&set.prefixes);
        let text = value(action)?;
        let Some((name, argument)) = split(text, b'=') else {
            return Err(("ctl needs a name and a value".to_owned(), Some("write ctl:ruleEngine=Off".to_owned())));
        };
        let name = String::from_utf8_lossy(name).trim().to_ascii_lowercase();
        let argument = argument.trim_ascii();
        let kinds = match name.as_str() {
            "ruleengine" => {
                let mode = EngineMode::parse(&String::from_utf8_lossy(argument));
                let mode = mode.ok_or_else(|| unknown(argument, "On, Off or DetectionOnly"))?;
                vec![ControlKind::RuleEngine(mode.code())]
            }
            "requestbodyaccess" => vec![ControlKind::RequestBodyAccess(switch(argument)?)],
            "responsebodyaccess" => vec![ControlKind::ResponseBodyAccess(switch(argument)?)],
            "forcerequestbodyvariable" => vec![ControlKind::ForceRequestBodyVariable(switch(argument)?)],
            "requestbodyprocessor" => {
                let processor = argument.to_ascii_uppercase();
                if !matches!(processor.as_slice(), b"URLENCODED" | b"MULTIPART" | b"JSON" | b"XML") {
                    return Err(unknown(argument, "URLENCODED, MULTIPART, JSON or XML"));
                }
                vec![ControlKind::RequestBodyProcessor(processor)]
            }
            "ruleremovebyid" => ids(argument)?.0.into_iter().map(ControlKind::RemoveById).collect(),
            "ruleremovebytag" => vec![ControlKind::RemoveByTag(argument.to_vec())],
            "ruleremovebymsg" => vec![ControlKind::RemoveByMsg(argument.to_vec())],
            "ruleremovetargetbyid" => {
                let (ids_text, target) = self.selected_target(argument, place, set.id)?;
                let ranges = ids(ids_text)?.0.into_iter();
                let removals = ranges.map(|range| RemoveTarget {
                    ids: Some(range),
                    text: Vec::new(),
                    target: Some(target.clone()),
                });
                removals.map(ControlKind::RemoveTargetById).collect()
            }
            "ruleremovetargetbytag" | "ruleremovetargetbymsg" => {
                let (text, target) = self.selected_target(argument, place, set.id)?;
                let removal = RemoveTarget { ids: None, text: text.to_vec(), target: Some(target) };
                vec![match name.ends_with("tag") {
                    true => ControlKind::RemoveTargetByTag(removal),
                    false => ControlKind::RemoveTargetByMsg(removal),
                }]
            }
            "requestbodylimit" => vec![ControlKind::RequestBodyLimit(bytes(argument)?)],
            "responsebodylimit" => vec![ControlKind::ResponseBodyLimit(bytes(argument)?)],
            "parsexmlintoargs" => {
                let mode = XmlArguments::parse(&String::from_utf8_lossy(argument));
                vec![ControlKind::XmlArguments(mode.ok_or_else(|| unknown(argument, "On, Off or OnlyArgs"))?.code())]
            }
            // What is recorded of a transaction is decided where logs are configured.
            "auditengine" | "auditlogparts" | "debugloglevel" => Vec::new(),
            "hashengine" | "hashenforcement" => {
                return Err((format!("ctl:{name} is not supported"), Some("bodies are not rewritten".to_owned())));
            }
            "responsebodyprocessor" => {
                let help = Some("bodies of responses are not parsed: look at RESPONSE_BODY".to_owned());
                return Err((format!("ctl:{name} is not supported"), help));
            }
            _ => {
                let help = nearest(&name, NAMES.iter().copied()).map(|name| format!("did you mean '{name}'?"));
                return Err((format!("unknown ctl '{name}'"), help));
            }
        };
        set.controls.extend(kinds.into_iter().map(|kind| Control { kind: Some(kind) }));
        Ok(())
    }

    /// `942100;ARGS:token`: what selects the rules, and the target.
    fn selected_target<'t>(
        &mut self,
        argument: &'t [u8],
        place: Place,
        id: Option<u64>,
    ) -> Result<(&'t [u8], Target), Complaint> {
        let Some((selection, target)) = split(argument, b';') else {
            return Err((
                "a target is missing".to_owned(),
                Some("write ctl:ruleRemoveTargetById=942100;ARGS:name".to_owned()),
            ));
        };
        let parsed = syntax::targets(target, b"|").map_err(|error| (error.message, error.help))?;
        let [parsed] = parsed.as_slice() else {
            return Err(("one target was expected".to_owned(), Some("write one ctl for each target".to_owned())));
        };
        let target = self.target(place, parsed, id);
        let target = target.ok_or_else(|| ("the target of this ctl is not valid".to_owned(), None))?;
        Ok((selection.trim_ascii(), target))
    }
}

fn ids(text: &[u8]) -> Result<IdRanges, Complaint> {
    IdRanges::parse(text).map_err(|piece| (format!("'{piece}' is no rule id and no range of ids"), None))
}

fn bytes(text: &[u8]) -> Result<u64, Complaint> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| unknown(text, "a number of bytes"))
}

fn switch(text: &[u8]) -> Result<bool, Complaint> {
    match text.to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(unknown(text, "On or Off")),
    }
}

fn unknown(text: &[u8], help: &str) -> Complaint {
    (format!("unknown value '{}'", String::from_utf8_lossy(text)), Some(help.to_owned()))
}
