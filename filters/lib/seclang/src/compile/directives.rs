//! Every directive but `SecRule` and `SecAction`.

use super::actions::Verdict;
use super::ids::IdRanges;
use super::select::Selection;
use super::{Compiler, Defaults, Place, TargetUpdate};
use crate::program::{EngineMode, LimitAction, XmlArguments};
use crate::syntax::{Argument, Directive};
use crate::vocabulary::nearest;

/// Directives that have no meaning in a gateway, and why. They are accepted with a warning.
pub(super) const WITHOUT_MEANING: &[(&str, &str)] = &[
    ("SecArgumentsLimitAction", LOGS),
    ("SecAuditEngine", LOGS),
    ("SecAuditLog", LOGS),
    ("SecAuditLog2", LOGS),
    ("SecAuditLogDirMode", LOGS),
    ("SecAuditLogFileMode", LOGS),
    ("SecAuditLogFormat", LOGS),
    ("SecAuditLogParts", LOGS),
    ("SecAuditLogPrefix", LOGS),
    ("SecAuditLogRelevantStatus", LOGS),
    ("SecAuditLogStorageDir", LOGS),
    ("SecAuditLogType", LOGS),
    ("SecCacheTransformations", "transformations are always cached"),
    ("SecChrootDir", "the gateway is not started from here"),
    ("SecConnEngine", "connections are the gateway's"),
    ("SecConnReadStateLimit", "connections are the gateway's"),
    ("SecConnWriteStateLimit", "connections are the gateway's"),
    ("SecCookieV0Separator", "cookies are separated by ';'"),
    ("SecDataDir", FILES),
    ("SecDebugLog", LOGS),
    ("SecDebugLogLevel", LOGS),
    ("SecDisableBackendCompression", "the gateway decides about compression"),
    ("SecGeoLookupDb", "@geoLookup uses the countries of geo-databases"),
    ("SecGuardianLog", LOGS),
    ("SecHttpBlKey", "zones are asked without a key"),
    ("SecInterceptOnError", "evaluation of a rule does not fail"),
    ("SecPcreMatchLimit", "patterns run in linear time, or under a limit of their own"),
    ("SecPcreMatchLimitRecursion", "patterns run in linear time, or under a limit of their own"),
    ("SecReadStateLimit", "connections are the gateway's"),
    ("SecRequestBodyInMemoryLimit", "bodies are always in memory"),
    ("SecRuleInheritance", "there are no nested contexts"),
    ("SecRulePerfTime", LOGS),
    ("SecRxPreFilter", "values are always looked over before patterns run"),
    ("SecSensorId", LOGS),
    ("SecServerSignature", "the gateway names itself"),
    ("SecStatusEngine", "nothing is reported to anybody"),
    ("SecTmpDir", FILES),
    ("SecTmpSaveUploadedFiles", FILES),
    ("SecUnicodeCodePage", "the best-fit mapping of code page 20127 is built in"),
    ("SecUnicodeMapFile", "the best-fit mapping of code page 20127 is built in"),
    ("SecUploadDir", FILES),
    ("SecUploadFileMode", FILES),
    ("SecUploadKeepFiles", FILES),
    ("SecWriteStateLimit", "connections are the gateway's"),
];
const LOGS: &str = "what is logged is decided where logs are configured";
const FILES: &str = "nothing is written to files";

/// Directives that are refused, and why: ignoring them would leave a hole.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("Include", "put the rules into the text itself"),
    ("IncludeOptional", "put the rules into the text itself"),
    ("SecContentInjection", "bodies are not rewritten"),
    ("SecGsbLookupDb", "@gsbLookup is not available"),
    ("SecDataset", "put the values into a data file and use @pmFromFile"),
    ("SecHashEngine", "bodies are not rewritten"),
    ("SecHashKey", "bodies are not rewritten"),
    ("SecHashMethodPm", "bodies are not rewritten"),
    ("SecHashMethodRx", "bodies are not rewritten"),
    ("SecHashParam", "bodies are not rewritten"),
    ("SecIgnoreRuleCompilationErrors", "a rule that does not compile protects nothing: correct or remove it"),
    ("SecRemoteRules", "rules are not fetched from the network: put them into the text"),
    ("SecRemoteRulesFailAction", "rules are not fetched from the network: put them into the text"),
    ("SecRuleScript", "a filter runs no scripts: write the rule in SecLang"),
    ("SecRuleUpdateTargetByIdOffset", "write the rule anew"),
    ("SecStreamInBodyInspection", "bodies are not rewritten; use SecRequestBodyAccess"),
    ("SecStreamOutBodyInspection", "bodies are not rewritten; use SecResponseBodyAccess"),
];

/// Directives that take effect, for "did you mean".
pub(super) const KNOWN: &[&str] = &[
    "SecAction",
    "SecArgumentSeparator",
    "SecArgumentsLimit",
    "SecCollectionTimeout",
    "SecComponentSignature",
    "SecCookieFormat",
    "SecDefaultAction",
    "SecMarker",
    "SecParseXmlIntoArgs",
    "SecRequestBodyAccess",
    "SecRequestBodyJsonDepthLimit",
    "SecRequestBodyLimit",
    "SecRequestBodyLimitAction",
    "SecRequestBodyNoFilesLimit",
    "SecResponseBodyAccess",
    "SecResponseBodyLimit",
    "SecResponseBodyLimitAction",
    "SecResponseBodyMimeType",
    "SecResponseBodyMimeTypesClear",
    "SecRule",
    "SecRuleEngine",
    "SecRuleRemoveById",
    "SecRuleRemoveByMsg",
    "SecRuleRemoveByTag",
    "SecRuleUpdateActionById",
    "SecRuleUpdateTargetById",
    "SecRuleUpdateTargetByMsg",
    "SecRuleUpdateTargetByTag",
    "SecUploadFileLimit",
    "SecWebAppId",
    "SecXmlExternalEntity",
];

type Outcome = Result<(), (String, Option<String>)>;

impl Compiler<'_> {
    pub(super) fn other_directive(&mut self, name: &str, place: Place, directive: &Directive) {
        let handled = match name {
            "secmarker" => self.marker(directive),
            "secdefaultaction" => self.default_action(place, directive),
            _ if name.starts_with("secruleremove") || name.starts_with("secruleupdate") => {
                self.exception(name, place, directive)
            }
            _ => self.setting(name, place, directive),
        };
        if let Err((message, help)) = handled {
            self.error(place, message, help, None);
        }
    }

    fn marker(&mut self, directive: &Directive) -> Outcome {
        let name = one(directive)?;
        self.markers.push((name.text.clone(), self.rules.len()));
        Ok(())
    }

    fn default_action(&mut self, place: Place, directive: &Directive) -> Outcome {
        let argument = one(directive)?;
        let Some(actions) = self.actions(place.source, argument) else { return Ok(()) };
        if actions.phase.is_none() || actions.verdict.is_none() {
            let help = Some("SecDefaultAction \"phase:2,log,auditlog,pass\"".to_owned());
            return Err(("SecDefaultAction needs a phase and a disruptive action".to_owned(), help));
        }
        if actions.id.is_some() || actions.chain || actions.skip.is_some() || actions.skip_after.is_some() {
            return Err(("SecDefaultAction has no id, no chain and no skip".to_owned(), None));
        }
        // One text is one context. A text of its own may have defaults of its own.
        let of_text = self.defaults.iter().rev().take_while(|known| known.source == place.source);
        if of_text.into_iter().any(|known| known.actions.phase == actions.phase) {
            let phase = actions.phase.unwrap_or_default();
            let help = Some("a text has one SecDefaultAction for each phase: remove one of them".to_owned());
            return Err((format!("there is a SecDefaultAction for phase {phase} already"), help));
        }
        if actions.verdict == Some(Verdict::Block) {
            self.warn(place, "block in SecDefaultAction means pass: name the action that block is to stand for");
        }
        self.defaults.push(Defaults { rules_before: self.rules.len(), source: place.source, actions });
        Ok(())
    }

    fn exception(&mut self, name: &str, place: Place, directive: &Directive) -> Outcome {
        let arguments = directive.arguments.as_slice();
        let first = arguments.first().ok_or_else(|| needs("at least one argument", directive))?;
        let ids = |text: &[u8]| {
            let unknown = |piece| (format!("'{piece}' is no rule id and no range of ids"), None);
            IdRanges::parse(text).map_err(unknown)
        };
        match name {
            "secruleremovebyid" => {
                let all: Vec<&[u8]> = arguments.iter().map(|argument| argument.text.as_slice()).collect();
                self.removals.push(Selection::Ids(ids(&all.join(&b' '))?));
            }
            "secruleremovebytag" | "secruleremovebymsg" => {
                for argument in arguments {
                    self.removals.push(match name.ends_with("tag") {
                        true => Selection::Tag(argument.text.clone()),
                        false => Selection::Msg(argument.text.clone()),
                    });
                }
            }
            "secruleupdateactionbyid" => {
                let [_, actions] = arguments else { return Err(needs("two arguments", directive)) };
                let ranges = ids(&first.text)?;
                if let Some(actions) = self.actions(place.source, actions) {
                    if actions.id.is_some() || actions.phase.is_some() || actions.chain {
                        return Err(("an update cannot change the id, the phase or the chain".to_owned(), None));
                    }
                    self.action_updates.push((ranges, actions, place));
                }
            }
            "secruleupdatetargetbyid" | "secruleupdatetargetbytag" | "secruleupdatetargetbymsg" => {
                let [_, targets] = arguments else {
                    let help = Some("add targets with \"ARGS:a\" and take them away with \"!ARGS:a\"".to_owned());
                    return Err((format!("{} needs two arguments", directive.name), help));
                };
                let selection = match name.get(name.len() - 2..) {
                    Some("id") => Selection::Ids(ids(&first.text)?),
                    Some("ag") => Selection::Tag(first.text.clone()),
                    _ => Selection::Msg(first.text.clone()),
                };
                // An update has no xmlns of its own.
                self.prefixes = self.settings.namespaces.iter().map(|(prefix, _)| prefix.clone()).collect();
                if let Some(targets) = self.targets(place.source, targets, b"|,", None) {
                    self.target_updates.push(TargetUpdate { selection, targets, place });
                }
            }
            _ => return self.setting(name, place, directive),
        }
        Ok(())
    }

    fn setting(&mut self, name: &str, place: Place, directive: &Directive) -> Outcome {
        let settings = &mut self.settings;
        match name {
            "secruleengine" => {
                let text = one_text(directive)?;
                settings.mode = EngineMode::parse(&text).ok_or_else(|| unknown(&text, "On, Off or DetectionOnly"))?;
            }
            "secrequestbodyaccess" => settings.request_body_access = switch(directive)?,
            "secresponsebodyaccess" => settings.response_body_access = switch(directive)?,
            "secrequestbodylimit" => settings.request_body_limit = number(directive)?,
            "secresponsebodylimit" => settings.response_body_limit = number(directive)?,
            "secrequestbodylimitaction" => settings.request_body_limit_action = limit_action(directive)?,
            "secresponsebodylimitaction" => settings.response_body_limit_action = limit_action(directive)?,
            "secrequestbodyjsondepthlimit" => settings.json_depth_limit = small_number(directive)?,
            "secargumentslimit" => settings.arguments_limit = small_number(directive)?,
            "secuploadfilelimit" => settings.upload_file_limit = small_number(directive)?,
            "secresponsebodymimetypesclear" => settings.response_mime_types.clear(),
            "secresponsebodymimetype" => {
                // As in ModSecurity, the types of a directive take the place of those before.
                let types =
                    directive.arguments.iter().flat_map(|argument| argument.text.split(u8::is_ascii_whitespace));
                let types = types.filter(|text| !text.is_empty()).map(<[u8]>::to_ascii_lowercase);
                settings.response_mime_types = types.collect();
            }
            "secargumentseparator" => match one(directive)?.text.as_slice() {
                [separator] => settings.argument_separator = *separator,
                _ => return Err(("a separator is one character".to_owned(), None)),
            },
            "seccookieformat" => {
                if one(directive)?.text != b"0" {
                    let help = Some("version 1 cookies are not in use: write SecCookieFormat 0".to_owned());
                    return Err(("only cookies of version 0 are supported".to_owned(), help));
                }
            }
            "seccomponentsignature" => {
                let text = one_text(directive)?;
                if !settings.component_signature.is_empty() {
                    settings.component_signature.push_str(", ");
                }
                settings.component_signature.push_str(&text);
            }
            "seccollectiontimeout" => {
                settings.collection_timeout = match small_number(directive)? {
                    0 => return Err(("a record that lives no time keeps nothing".to_owned(), None)),
                    seconds => seconds,
                };
            }
            "secrequestbodynofileslimit" => settings.request_body_no_files_limit = number(directive)?,
            "secparsexmlintoargs" => {
                let text = one_text(directive)?;
                settings.xml_arguments =
                    XmlArguments::parse(&text).ok_or_else(|| unknown(&text, "On, Off or OnlyArgs"))?;
            }
            "secwebappid" => settings.web_app_id = one(directive)?.text.clone(),
            "secxmlexternalentity" => {
                if switch(directive)? {
                    let help = Some("it would let a request read files and call servers".to_owned());
                    return Err(("external entities are never resolved".to_owned(), help));
                }
            }
            _ => return self.without_effect(place, directive),
        }
        Ok(())
    }

    fn without_effect(&mut self, place: Place, directive: &Directive) -> Outcome {
        let name = directive.name.as_str();
        let find = |list: &'static [(&'static str, &'static str)]| {
            list.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        if let Some((known, reason)) = find(WITHOUT_MEANING) {
            self.warn(place, format!("{known} has no effect: {reason}"));
            return Ok(());
        }
        if let Some((known, reason)) = find(REFUSED) {
            return Err((format!("{known} is not supported"), Some((*reason).to_owned())));
        }
        let listed = WITHOUT_MEANING.iter().chain(REFUSED).map(|(known, _)| *known);
        let help = nearest(name, KNOWN.iter().copied().chain(listed)).map(|name| format!("did you mean '{name}'?"));
        Err((format!("unknown directive '{name}'"), help))
    }
}

fn needs(what: &str, directive: &Directive) -> (String, Option<String>) {
    (format!("{} needs {what}", directive.name), None)
}

fn one(directive: &Directive) -> Result<&Argument, (String, Option<String>)> {
    match directive.arguments.as_slice() {
        [argument] => Ok(argument),
        _ => Err(needs("one argument", directive)),
    }
}

fn one_text(directive: &Directive) -> Result<String, (String, Option<String>)> {
    one(directive).map(|argument| String::from_utf8_lossy(&argument.text).trim().to_owned())
}

fn number(directive: &Directive) -> Result<u64, (String, Option<String>)> {
    let text = one_text(directive)?;
    text.parse().map_err(|_| unknown(&text, "a number"))
}

fn small_number(directive: &Directive) -> Result<u32, (String, Option<String>)> {
    u32::try_from(number(directive)?).map_err(|_| (format!("the number of {} is too large", directive.name), None))
}

fn switch(directive: &Directive) -> Result<bool, (String, Option<String>)> {
    let text = one_text(directive)?;
    match text.to_ascii_lowercase().as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(unknown(&text, "On or Off")),
    }
}

fn limit_action(directive: &Directive) -> Result<LimitAction, (String, Option<String>)> {
    let text = one_text(directive)?;
    match text.to_ascii_lowercase().as_str() {
        "reject" => Ok(LimitAction::Reject),
        "processpartial" => Ok(LimitAction::ProcessPartial),
        _ => Err(unknown(&text, "Reject or ProcessPartial")),
    }
}

fn unknown(text: &str, help: &str) -> (String, Option<String>) {
    (format!("unknown value '{text}'"), Some(format!("expected {help}")))
}
