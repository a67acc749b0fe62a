//! Whether an outcome is what a stage expects.

use std::fmt::Write as _;

use regex_automata::meta::Regex;
use serde_json::Value;

use super::case::{Log, Output};
use proxy_host::traffic::Outcome;

/// What the rules said in one exchange.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The status that the client got.
    pub status: u16,
    /// The logged rules' ids, in their order.
    pub ids: Vec<u64>,
    /// A line for each match that is known in detail.
    pub log: String,
    /// The scores, as the event has them.
    pub scores: Value,
    /// The rule that denied it.
    pub denied_by: Option<u64>,
}

impl Found {
    /// Reads the trail of an outcome; there is none where no rule had anything to say.
    #[must_use]
    pub fn read(outcome: &Outcome) -> Self {
        let trails = outcome.events.iter().filter(|event| event["@type"] == "SvcWafTrailEvent");
        let mut found = Self { status: outcome.status, ..Self::default() };
        for trail in trails {
            found.ids.extend(trail["rule_ids"].as_array().into_iter().flatten().filter_map(Value::as_u64));
            found.scores = trail["scores"].clone();
            found.denied_by = trail["block"]["rule_id"].as_u64();
            for rule in trail["matches"].as_array().into_iter().flatten() {
                let text = |name: &str| one_line(rule[name].as_str().unwrap_or_default());
                let _ = writeln!(
                    found.log,
                    "[id \"{}\"] [msg \"{}\"] [data \"{}\"] [{}={}]",
                    rule["rule_id"],
                    text("msg"),
                    text("logdata"),
                    text("variable"),
                    text("value"),
                );
            }
        }
        found
    }
}

/// What is wrong, in one line; `None` where nothing is.
#[must_use]
pub fn judge(expected: &Log, outcome: &Outcome) -> Option<String> {
    if let Some(fault) = &outcome.fault {
        return Some(format!("the filter died in {} of `{}`: {}", fault.callback, fault.request, fault.message));
    }
    let found = Found::read(outcome);
    let mut complaints = Vec::new();
    for id in expected.expect_ids.iter().filter(|id| !found.ids.contains(id)) {
        complaints.push(format!("{id} did not match"));
    }
    for id in expected.no_expect_ids.iter().filter(|id| found.ids.contains(id)) {
        complaints.push(format!("{id} matched"));
    }
    for (pattern, wanted) in [(&expected.match_regex, true), (&expected.no_match_regex, false)] {
        let Some(pattern) = pattern else { continue };
        match Regex::new(pattern) {
            Err(error) => complaints.push(format!("the pattern `{pattern}` cannot be read: {error}")),
            Ok(regex) if regex.is_match(&found.log) != wanted => {
                complaints.push(format!("the log {} `{pattern}`", if wanted { "lacks" } else { "has" }));
            }
            Ok(_) => {}
        }
    }
    (!complaints.is_empty()).then(|| complaints.join("; "))
}

/// A test that only looks at how a malformed request is answered says something about the server, not about the rules.
#[must_use]
pub fn is_left_to_the_server(output: &Output) -> bool {
    let asks_nothing = output.log.expect_ids.is_empty() && output.log.match_regex.is_none();
    (output.status == Some(400) || output.expect_error == Some(true)) && asks_nothing
}

/// Control characters are escaped.
fn one_line(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, part| {
        match part.is_control() {
            true => drop(write!(out, "\\x{:02x}", u32::from(part))),
            false => out.push(part),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_host::traffic::Fault;
    use serde_json::json;

    fn outcome() -> Outcome {
        let rule = json!({ "rule_id": 7, "msg": "a\nb", "logdata": "x found within ARGS:q", "variable": "ARGS:q", "value": "x" });
        let trail = json!({ "@type": "SvcWafTrailEvent", "rule_ids": [7, 8], "matches": [rule] });
        Outcome { events: vec![json!({ "@type": "SvcSecurityEvent" }), trail], ..Outcome::default() }
    }

    #[test]
    fn ids_and_patterns_are_looked_for() {
        let right = Log {
            expect_ids: vec![8],
            no_expect_ids: vec![9],
            match_regex: Some(r#"msg "a\\x0ab".*within ARGS:q"#.into()),
            ..Log::default()
        };
        assert_eq!(judge(&right, &outcome()), None);
        let wrong = Log {
            expect_ids: vec![9],
            no_expect_ids: vec![7],
            match_regex: Some("ARGS:z".into()),
            no_match_regex: Some("ARGS:q".into()),
        };
        assert_eq!(
            judge(&wrong, &outcome()).unwrap(),
            "9 did not match; 7 matched; the log lacks `ARGS:z`; the log has `ARGS:q`"
        );
        assert!(judge(&Log { match_regex: Some("(".into()), ..Log::default() }, &outcome()).is_some());
        let fault =
            Fault { callback: "on_log".into(), message: "unreachable".into(), request: "GET / HTTP/1.1".into() };
        let dead = Outcome { fault: Some(fault), ..Outcome::default() };
        assert_eq!(
            judge(&Log::default(), &dead).unwrap(),
            "the filter died in on_log of `GET / HTTP/1.1`: unreachable"
        );
    }
}
