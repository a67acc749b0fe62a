//! The profile of parameters: what their values look like in ordinary traffic, and rules for them.
//!
//! One rule reports a value that is far outside of the profile. It refuses nothing by itself, and adds the points of a notice to the anomaly
//! score. Where values are letters and digits, another says which are as usual, so that a match there weighs less (`crate::signals`). They
//! are written where an operator asks for them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::exclusion::{condition, described, operators};
use super::super::operations;
use super::super::shape::Shape;
use super::super::target::Target;
use super::super::windows::{MAX_SHAPES, Window, networks, parameter_key};
use super::groups::{MIN_CALLERS, are_enough, networks_needed};
use super::names::{OfPaths, folded_parameters};
use super::trade_offs::names_input;
use crate::samples::cardinality::estimate;
use crate::samples::messages::Parameter;

/// The parameters that a report shows, at most.
const MAX_SHOWN: usize = 500;
/// How many requests have to have a parameter before a rule can be written.
const MIN_REQUESTS: u64 = 20;

/// The ids that the rules of a profile have, at most.
pub(in super::super) const IDS_OF_PROFILE: usize = 2;
/// The tag of the rules that report.
const TAG: &str = "tag:'palisade-profile'";

/// A parameter and its profile.
pub(super) struct Profiled {
    parameter: Parameter,
    /// The paths that it was seen on; more than one where names at a place of them are one.
    paths: usize,
    target: Target,
    /// `None` where values may be anything, or too little is known.
    shape: Option<Shape>,
    /// Why there is no rule; empty where there is one.
    note: String,
    /// The number of the rule that is written for it already.
    written: Option<u64>,
}

/// The parameters of a window, those first that most requests have. `rules` are those of the config.
pub(super) fn profiles<'r>(window: &Window, rules: impl Iterator<Item = &'r str>) -> Vec<Profiled> {
    let callers = window.parameters.values().flat_map(|one| &one.shapes).map(|one| &one.caller);
    let needed = networks_needed(networks(callers));
    let mut all = folded_parameters(window);
    all.sort_by(|OfPaths { parameter: one, .. }, OfPaths { parameter: other, .. }| {
        other.count.cmp(&one.count).then_with(|| (&one.path, &one.target).cmp(&(&other.path, &other.target)))
    });
    let written: Vec<&str> = rules.filter(|rule| rule.contains(TAG)).collect();
    all.into_iter().filter_map(|one| Profiled::of(one, needed, &written)).collect()
}

impl Profiled {
    fn of(OfPaths { parameter, paths }: OfPaths, networks_needed: usize, rules: &[&str]) -> Option<Self> {
        let target = Target::parse(parameter.target.as_bytes())?;
        let are_enough = |callers: &BTreeSet<u64>| are_enough(callers, networks_needed);
        let callers = parameter.shapes.iter().map(|one| one.caller).collect();
        let (shape, note) = match () {
            () if parameter.count < MIN_REQUESTS => (None, format!("fewer than {MIN_REQUESTS} requests")),
            () if !are_enough(&callers) => (
                None,
                format!("fewer than {MIN_CALLERS} callers, or all of one network: what they send may be an attack"),
            ),
            () => match Shape::of(&parameter.shapes, &target, are_enough) {
                None => (None, "free text: a value of any kind is ordinary here".to_owned()),
                Some(_) if target.written().is_none() || condition(&parameter.path).is_none() => {
                    (None, "the name or the path cannot be written in a rule".to_owned())
                }
                shape => (shape, String::new()),
            },
        };
        let written = rules.iter().find_map(|rule| number_of_written(rule, &target, &parameter.path));
        Some(Self { parameter, paths, target, shape, note, written })
    }

    /// `<target>|<path>`.
    pub(super) fn key(&self) -> String {
        format!("{}|{}", self.parameter.target, self.parameter.path)
    }

    /// Whether it is the one of a key; the case of names does not count.
    pub(super) fn has_key(&self, key: &str) -> bool {
        let Parameter { target, path, .. } = &self.parameter;
        let is_key = |(named, on): (&str, &str)| parameter_key(named, on) == parameter_key(target, path);
        key.rsplit_once('|').is_some_and(is_key)
    }

    /// Whether it has a rule, which may be written already.
    pub(super) fn has_rule(&self) -> bool {
        self.rule([0; IDS_OF_PROFILE]).is_some()
    }

    /// The number of the rule that is written for it already.
    pub(super) fn written(&self) -> Option<u64> {
        self.written
    }

    /// A rule with the first of these ids that reports a value outside of the profile; where values are letters and digits, with one of the
    /// second id that says that a value is as usual. `None` where there is none.
    pub(super) fn rule(&self, [id, second]: [u64; IDS_OF_PROFILE]) -> Option<String> {
        let (shape, input, path) = (self.shape?, self.target.written()?, condition(&self.parameter.path)?);
        let on_path = format!("SecRule REQUEST_FILENAME \"{path}\"");
        let head = format!(
            "id:{id},phase:2,pass,log,t:none,severity:'NOTICE',{TAG},msg:'{input} is not what it usually is: {}',chain",
            shape.described()
        );
        // The points of a notice, where the core rule set counts points.
        let points = "setvar:'tx.inbound_anomaly_score_pl1=+%{tx.notice_anomaly_score}'";
        let pattern = shape.pattern_or_empty();
        let reports = format!("{on_path} \"{head}\"\nSecRule {input} \"!@rx {pattern}\" \"t:none,{points}\"");
        if !shape.is_plain() {
            return Some(reports);
        }
        // An application may take another value of a name that is there twice.
        let usual = format!("setvar:'tx.palisade_usual=%{{tx.palisade_usual}} {input}'");
        Some(format!(
            "{reports}\n{on_path} \"id:{second},phase:2,pass,nolog,t:none,chain\"\nSecRule &{input} \"@eq 1\" \"t:none,chain\"\n\
             SecRule {input} \"@rx {}\" \"t:none,{usual}\"",
            shape.pattern()
        ))
    }

    fn kind(&self) -> &'static str {
        match self.shape {
            Some(shape) if shape.is_number() => "number",
            Some(shape) if shape.is_word() => "word",
            Some(_) => "identifier",
            None if self.note.starts_with("free text") => "text",
            None => "unknown",
        }
    }

    /// What it was learned from, for people.
    fn evidence(&self) -> String {
        let Parameter { count, shapes, .. } = &self.parameter;
        let fitting = shapes.iter().filter(|one| self.shape.is_some_and(|shape| shape.fits(one))).count();
        // Beyond so many they are not told apart.
        let or_more = if shapes.len() < MAX_SHAPES { "" } else { " or more" };
        let of_paths = match self.paths {
            1 => String::new(),
            many => format!(" for {many} paths, {},", described(&self.parameter.path)),
        };
        format!(
            "{count} requests{of_paths} were looked at, of {}{or_more} callers; {fitting} of them send such values alone.",
            shapes.len()
        )
    }

    fn shown(&self) -> Value {
        let Parameter { path, count, shapes, distinct, .. } = &self.parameter;
        let fitting = |shape: Shape| shapes.iter().filter(|one| shape.fits(one)).count();
        json!({
            "key": self.key(),
            "target": operations::target(&self.target),
            "path": path,
            "paths": self.paths,
            "requests": count,
            "callers": shapes.len(),
            "networks": networks(shapes.iter().map(|one| &one.caller)),
            "distinct": estimate(distinct).min(*count),
            "shortest": shapes.iter().map(|one| one.shortest).min(),
            "longest": shapes.iter().map(|one| one.longest).max(),
            "kind": self.kind(),
            "values": self.shape.map(|shape| shape.described()),
            "fitting": self.shape.map(fitting),
            "seclang": self.rule([*super::super::exclusion::IDS.start(), *super::super::exclusion::IDS.start() + 1]),
            "written": self.written,
            "note": self.note,
        })
    }
}

/// The number of the profile that a rule is, if it is one of an input on a path.
fn number_of_written(rule: &str, target: &Target, path: &str) -> Option<u64> {
    let input = target.written()?;
    let behind = operators(path)
        .find_map(|operator| Some(rule.split_once(&format!("SecRule REQUEST_FILENAME \"{operator}\" \"id:"))?.1))?;
    let reports = behind.lines().nth(1)?.strip_prefix("SecRule ")?.split_once(" \"!@rx ")?.0;
    let number = behind.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()?;
    reports.eq_ignore_ascii_case(&input).then_some(number)
}

/// A rule of the profile, as it is written.
pub(in super::super) struct ProfileRule {
    /// Its id.
    pub(in super::super) number: u64,
    /// Its parameter, `<target>|<path>`.
    pub(in super::super) key: String,
    pub(in super::super) seclang: String,
    /// What it was learned from, for people.
    pub(in super::super) evidence: String,
}

/// The rules of those parameters that one of these texts names (`all`, `ARGS:page`, `ARGS:page on /list`), but for those that are written
/// already. `rules` are those of the config.
///
/// # Errors
/// A text names none; for people.
pub(in super::super) fn named_rules<'r>(
    window: &Window,
    texts: &[String],
    rules: impl Iterator<Item = &'r str>,
) -> Result<NamedRules, String> {
    let mut all = profiles(window, rules);
    all.retain(Profiled::has_rule);
    let is_named = |one: &Profiled, text: &str| names_input(text, &one.parameter.target, &one.parameter.path);
    if let Some(unknown) = texts.iter().find(|text| !all.iter().any(|one| is_named(one, text))) {
        return Err(format!(
            "the profile has no rule for `{}`: the report lists the inputs that have one, such as `ARGS:page on /list`",
            unknown.escape_debug()
        ));
    }
    all.retain(|one| one.written.is_none() && texts.iter().any(|text| is_named(one, text)));
    Ok(NamedRules(all))
}

/// Rules of the profile that have no ids yet.
pub(in super::super) struct NamedRules(Vec<Profiled>);

impl NamedRules {
    /// How many ids they have, at most.
    pub(in super::super) fn ids(&self) -> usize {
        self.0.len() * IDS_OF_PROFILE
    }

    /// The rules with these ids.
    pub(in super::super) fn numbered(&self, ids: &[u64]) -> Vec<ProfileRule> {
        let rule = |(one, ids): (&Profiled, &[u64])| {
            let ids: [u64; IDS_OF_PROFILE] = ids.try_into().ok()?;
            let [number, _] = ids;
            Some(ProfileRule { number, key: one.key(), seclang: one.rule(ids)?, evidence: one.evidence() })
        };
        self.0.iter().zip(ids.chunks_exact(IDS_OF_PROFILE)).filter_map(rule).collect()
    }
}

/// What a report says of them. `rules` are those of the config.
pub(super) fn shown<'r>(window: &Window, rules: impl Iterator<Item = &'r str>) -> Value {
    let all = profiles(window, rules);
    json!({
        "parameters": all.iter().take(MAX_SHOWN).map(Profiled::shown).collect::<Vec<_>>(),
        "known": all.len(),
        "with_rule": all.iter().filter(|one| one.shape.is_some()).count(),
    })
}

/// Its schema.
pub(super) fn schema() -> Value {
    let count = |about: &str| json!({ "type": "integer", "description": about });
    let maybe = |kind: &str, about: &str| json!({ "type": [kind, "null"], "description": about });
    json!({
        "type": "object",
        "description": "What values of parameters look like, of some of the requests that were answered with a status below 400. A rule that \
                        reports a value outside of it, and one by which matches at ordinary values weigh less, are written by `_apply`, \
                        where `parameters` names it.",
        "required": ["parameters", "known", "with_rule"],
        "properties": {
            "known": count("Parameters that were seen, at most 2000."),
            "with_rule": count("Those for which a rule can be written."),
            "parameters": { "type": "array", "description": "Those that most requests have, at most 500.", "items": {
                "type": "object",
                "required": ["key", "target", "path", "paths", "requests", "callers", "networks", "distinct", "shortest", "longest", "kind",
                             "values", "fitting", "seclang", "written", "note"],
                "properties": {
                    "key": { "type": "string", "description": "`<target>|<path>`, for `_apply`." },
                    "target": super::super::schemas::target(),
                    "path": { "type": "string", "description": "Identifiers are `{id}`; `{slug}` where many names stand at one place." },
                    "paths": count("Paths that it was seen on: more than one where names are one."),
                    "requests": count("Requests that were looked at."),
                    "callers": count("Callers whose values are described, at most 16; those that other plugins have found bad are left out."),
                    "networks": count("Networks that they are in."),
                    "distinct": count("About how many different values there were."),
                    "shortest": maybe("integer", "Bytes."),
                    "longest": maybe("integer", "Bytes; 257 for any above 256."),
                    "kind": { "enum": ["number", "word", "identifier", "text", "unknown"] },
                    "values": maybe("string", "What they are made of, and how long they are."),
                    "fitting": maybe("integer", "Callers all of whose values are so."),
                    "seclang": maybe("string", "The rules; their ids are other ones once they are written."),
                    "written": maybe("integer", "The number of the rule that is written already; `tuning/_revert` takes it back."),
                    "note": { "type": "string", "description": "Why there is no rule." },
                },
            } },
        },
    })
}

#[cfg(test)]
mod tests;
