//! The profile of parameters: what their values look like in ordinary traffic, and rules that report a value that is far outside of it.
//!
//! Such a rule refuses nothing by itself. It is written where an operator asks for it, and adds the points of a notice to the anomaly score.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::exclusion::condition;
use super::super::operations;
use super::super::shape::Shape;
use super::super::target::Target;
use super::super::windows::{MAX_SHAPES, Window, networks, parameter_key};
use super::groups::{MIN_CALLERS, are_enough, networks_needed};
use super::trade_offs::names_input;
use crate::samples::cardinality::estimate;
use crate::samples::messages::Parameter;

/// The parameters that a report shows, at most.
const MAX_SHOWN: usize = 500;
/// How many requests have to have a parameter before a rule can be written.
const MIN_REQUESTS: u64 = 20;

/// A parameter and its profile.
pub(super) struct Profiled<'w> {
    parameter: &'w Parameter,
    target: Target,
    /// `None` where values may be anything, or too little is known.
    shape: Option<Shape>,
    /// Why there is no rule; empty where there is one.
    note: String,
}

/// The parameters of a window, those first that most requests have.
pub(super) fn profiles(window: &Window) -> Vec<Profiled<'_>> {
    let callers = window.parameters.values().flat_map(|one| &one.shapes).map(|one| &one.caller);
    let needed = networks_needed(networks(callers));
    let mut all: Vec<&Parameter> = window.parameters.values().collect();
    all.sort_by(|one, other| {
        other.count.cmp(&one.count).then_with(|| (&one.path, &one.target).cmp(&(&other.path, &other.target)))
    });
    all.into_iter().filter_map(|one| Profiled::of(one, needed)).collect()
}

impl<'w> Profiled<'w> {
    fn of(parameter: &'w Parameter, networks_needed: usize) -> Option<Self> {
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
        Some(Self { parameter, target, shape, note })
    }

    /// `<target>|<path>`.
    pub(super) fn key(&self) -> String {
        parameter_key(&self.parameter.target, &self.parameter.path)
    }

    /// A rule with this id that reports a value outside of the profile; `None` where there is none.
    pub(super) fn rule(&self, id: u64) -> Option<String> {
        let (shape, input, path) = (self.shape?, self.target.written()?, condition(&self.parameter.path)?);
        let head = format!(
            "id:{id},phase:2,pass,log,t:none,severity:'NOTICE',tag:'palisade-profile',msg:'{input} is not what it usually is: {}',chain",
            shape.described()
        );
        // The points of a notice, where the core rule set counts points.
        let points = "setvar:'tx.inbound_anomaly_score_pl1=+%{tx.notice_anomaly_score}'";
        let pattern = shape.pattern_or_empty();
        Some(format!(
            "SecRule REQUEST_FILENAME \"{path}\" \"{head}\"\nSecRule {input} \"!@rx {pattern}\" \"t:none,{points}\""
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
        let Parameter { count, shapes, .. } = self.parameter;
        let fitting = shapes.iter().filter(|one| self.shape.is_some_and(|shape| shape.fits(one))).count();
        // Beyond so many they are not told apart.
        let or_more = if shapes.len() < MAX_SHAPES { "" } else { " or more" };
        format!(
            "{count} requests were looked at, of {}{or_more} callers; {fitting} of them send such values alone.",
            shapes.len()
        )
    }

    fn shown(&self) -> Value {
        let Parameter { path, count, shapes, distinct, .. } = self.parameter;
        let fitting = |shape: Shape| shapes.iter().filter(|one| shape.fits(one)).count();
        json!({
            "key": self.key(),
            "target": operations::target(&self.target),
            "path": path,
            "requests": count,
            "callers": shapes.len(),
            "networks": networks(shapes.iter().map(|one| &one.caller)),
            "distinct": estimate(distinct).min(*count),
            "shortest": shapes.iter().map(|one| one.shortest).min(),
            "longest": shapes.iter().map(|one| one.longest).max(),
            "kind": self.kind(),
            "values": self.shape.map(|shape| shape.described()),
            "fitting": self.shape.map(fitting),
            "seclang": self.rule(*super::super::exclusion::IDS.start()),
            "note": self.note,
        })
    }
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

/// The rules of those parameters that one of these texts names (`all`, `ARGS:page`, `ARGS:page on /list`).
///
/// # Errors
/// A text names none; for people.
pub(in super::super) fn named_rules<'w>(window: &'w Window, texts: &[String]) -> Result<NamedRules<'w>, String> {
    let all = profiles(window);
    let is_named = |one: &Profiled<'_>, text: &str| names_input(text, &one.parameter.target, &one.parameter.path);
    let with_rule = |one: &&Profiled<'_>| one.rule(0).is_some();
    if let Some(unknown) = texts.iter().find(|text| !all.iter().filter(with_rule).any(|one| is_named(one, text))) {
        return Err(format!(
            "the profile has no rule for `{}`: the report lists the inputs that have one, such as `ARGS:page on /list`",
            unknown.escape_debug()
        ));
    }
    let named = all.into_iter().filter(|one| one.rule(0).is_some() && texts.iter().any(|text| is_named(one, text)));
    Ok(NamedRules(named.collect()))
}

/// Rules of the profile that have no ids yet.
pub(in super::super) struct NamedRules<'w>(Vec<Profiled<'w>>);

impl NamedRules<'_> {
    /// How many there are.
    pub(in super::super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The rules with these ids.
    pub(in super::super) fn numbered(&self, ids: impl Iterator<Item = u64>) -> Vec<ProfileRule> {
        let rule = |(one, number): (&Profiled<'_>, u64)| {
            let (key, evidence) = (one.key(), one.evidence());
            Some(ProfileRule { number, key, seclang: one.rule(number)?, evidence })
        };
        self.0.iter().zip(ids).filter_map(rule).collect()
    }
}

/// What a report says of them.
pub(super) fn shown(window: &Window) -> Value {
    let all = profiles(window);
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
                        reports a value outside of it is written by `_apply`, where `parameters` names it.",
        "required": ["parameters", "known", "with_rule"],
        "properties": {
            "known": count("Parameters that were seen, at most 2000."),
            "with_rule": count("Those for which a rule can be written."),
            "parameters": { "type": "array", "description": "Those that most requests have, at most 500.", "items": {
                "type": "object",
                "required": ["key", "target", "path", "requests", "callers", "networks", "distinct", "shortest", "longest", "kind", "values",
                             "fitting", "seclang", "note"],
                "properties": {
                    "key": { "type": "string", "description": "`<target>|<path>`, for `_apply`." },
                    "target": super::super::schemas::target(),
                    "path": { "type": "string" },
                    "requests": count("Requests that were looked at."),
                    "callers": count("Callers whose values are described, at most 16; those that other plugins have found bad are left out."),
                    "networks": count("Networks that they are in."),
                    "distinct": count("About how many different values there were."),
                    "shortest": maybe("integer", "Bytes."),
                    "longest": maybe("integer", "Bytes; 257 for any above 256."),
                    "kind": { "enum": ["number", "word", "identifier", "text", "unknown"] },
                    "values": maybe("string", "What they are made of, and how long they are."),
                    "fitting": maybe("integer", "Callers all of whose values are so."),
                    "seclang": maybe("string", "The rule; its id is another one once it is written."),
                    "note": { "type": "string", "description": "Why there is no rule." },
                },
            } },
        },
    })
}

#[cfg(test)]
mod tests;
