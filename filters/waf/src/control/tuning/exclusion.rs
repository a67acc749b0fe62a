//! Exclusions: the ways to keep a rule from an input, the narrowest first.

use std::borrow::Cow;
use std::collections::BTreeSet;

use exchange::fold::SLUG;
use exchange::spelling::escaped;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::Condition;
use super::target::Target;
use crate::samples::{PROGRAMS, WITH_ARGUMENT};

/// The methods of WebDAV that write to the path that `Destination` names.
const MOVING: [&str; 2] = ["COPY", "MOVE"];

/// The ids that generated rules have.
pub(super) const IDS: std::ops::RangeInclusive<u64> = 50_000..=59_999;

/// How an exclusion is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExclusionKind {
    /// On one path, the rule does not look at the input.
    ScopedTarget,
    /// The rule does not look at the input.
    UpdateTarget,
    /// On one path, the rule is off.
    ScopedRemove,
    /// The rule is off.
    RemoveRule,
    /// On one path, the rule does not look at the input while its value has a shape.
    ScopedShape,
    /// The rule does not look at the input while its value has a shape.
    Shape,
}

/// A rule at an input on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The rule.
    pub(super) rule_id: u64,
    /// The input.
    pub(super) target: Target,
    /// The path, identifiers folded.
    pub(super) path: String,
}

/// An exclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exclusion {
    /// How it is written.
    pub(super) kind: ExclusionKind,
    /// SecLang.
    pub(super) seclang: String,
    /// What it is, in a few words.
    pub(super) title: String,
    /// What it ends, in a sentence.
    pub(super) reach: String,
    /// Under what it holds; only the kinds with a shape have one.
    pub(super) condition: Option<Condition>,
}

impl ExclusionKind {
    /// Those that always hold, the narrowest first.
    const ALL: [ExclusionKind; 4] = [
        ExclusionKind::ScopedTarget,
        ExclusionKind::UpdateTarget,
        ExclusionKind::ScopedRemove,
        ExclusionKind::RemoveRule,
    ];

    /// 1 for the narrowest, 4 for the widest.
    pub(super) fn rank(self) -> usize {
        let always = self.always();
        Self::ALL.iter().position(|kind| *kind == always).map_or(Self::ALL.len(), |place| place + 1)
    }

    /// The kind that does the same whatever the value is.
    pub(super) fn always(self) -> Self {
        match self {
            ExclusionKind::ScopedShape => ExclusionKind::ScopedTarget,
            ExclusionKind::Shape => ExclusionKind::UpdateTarget,
            other => other,
        }
    }

    /// Whether it holds on all paths.
    pub(super) fn is_for_all_paths(self) -> bool {
        matches!(self.always(), ExclusionKind::UpdateTarget | ExclusionKind::RemoveRule)
    }

    /// Whether it stands before the rules that it changes, or behind them.
    pub(super) fn placement(self) -> &'static str {
        match self {
            ExclusionKind::UpdateTarget | ExclusionKind::RemoveRule => "after",
            _ => "before",
        }
    }
}

impl Exclusion {
    /// The exclusions that end a match, the narrowest first; `id` is that of a rule that is generated for it.
    pub(super) fn candidates(place: &Place, id: u64) -> Vec<Exclusion> {
        ExclusionKind::ALL.into_iter().filter_map(|kind| Exclusion::new(kind, place, id)).collect()
    }

    /// `None` where the name of the input or the path cannot be written, and for the kinds with a shape, see [`Condition::exclusion`].
    pub(super) fn new(kind: ExclusionKind, place: &Place, id: u64) -> Option<Exclusion> {
        let Place { rule_id, target, path } = place;
        let paths = described(path);
        let on_path = |control: &str| {
            let operator = condition(path)?;
            Some(format!("SecRule REQUEST_FILENAME \"{operator}\" \"id:{id},phase:1,pass,nolog,t:none,ctl:{control}\""))
        };
        let input = target.written();
        let (seclang, title, reach) = match (kind, target.method()) {
            (ExclusionKind::ScopedTarget, Some(method)) => (
                switched(kind, place, id, None)?,
                format!("Rule {rule_id} without {method} on {path}"),
                format!(
                    "Rule {rule_id} does not look at the method of {method} requests for {paths} that write no file that servers run; it still \
                     looks at every other method there, and at all methods on all other paths."
                ),
            ),
            // It would be for all methods.
            (ExclusionKind::UpdateTarget, Some(_)) => return None,
            (ExclusionKind::ScopedTarget, None) => (
                on_path(&format!("ruleRemoveTargetById={rule_id};{}", input?))?,
                format!("Rule {rule_id} without {} on {path}", target),
                format!(
                    "Rule {rule_id} does not look at {} in requests for {paths}; it still looks at everything else there, and at \
                     everything on all other paths.",
                    target
                ),
            ),
            (ExclusionKind::UpdateTarget, None) => (
                format!("SecRuleUpdateTargetById {rule_id} \"!{}\"", input?),
                format!("Rule {rule_id} without {}", target),
                format!("Rule {rule_id} does not look at {} on any path; it still looks at everything else.", target),
            ),
            (ExclusionKind::ScopedRemove, _) => (
                on_path(&format!("ruleRemoveById={rule_id}"))?,
                format!("No rule {rule_id} on {path}"),
                format!(
                    "Rule {rule_id} is off in requests for {paths}, whatever the input; on all other paths it stays."
                ),
            ),
            (ExclusionKind::RemoveRule, _) => (
                format!("SecRuleRemoveById {rule_id}"),
                format!("No rule {rule_id}"),
                format!("Rule {rule_id} is off everywhere, whatever the input."),
            ),
            (ExclusionKind::ScopedShape | ExclusionKind::Shape, _) => return None,
        };
        Some(Exclusion { kind, seclang, title, reach, condition: None })
    }
}

/// An exclusion of one of the two kinds that keep a rule from an input. Behind a switch, it is on in requests whose unique id contains that.
/// `None` where the name of the input or the path cannot be written, and for a method on all paths, which no such exclusion names.
pub(super) fn switched(kind: ExclusionKind, place: &Place, id: u64, switch: Option<&str>) -> Option<String> {
    let Place { rule_id, target, path } = place;
    let control = format!(",ctl:ruleRemoveTargetById={rule_id};{}", target.written()?);
    let path = match kind {
        ExclusionKind::ScopedTarget => Some(condition(path)?),
        ExclusionKind::UpdateTarget if target.method().is_none() => None,
        _ => return None,
    };
    Some(chained(path.as_deref(), target, id, switch, &control))
}

/// A chain of rules with what an exclusion holds under: the path, the method, and a switch. The last one has the controls, each behind a comma.
fn chained(path: Option<&str>, target: &Target, id: u64, switch: Option<&str>, controls: &str) -> String {
    let plain = |link: String| (link, "");
    let mut links: Vec<(String, &str)> = Vec::new();
    links.extend(path.map(|operator| plain(format!("REQUEST_FILENAME \"{operator}\""))));
    if let Some(method) = target.method() {
        links.push(plain(format!("REQUEST_METHOD \"@streq {method}\"")));
        links.extend(no_program(method));
    }
    links.extend(switch.map(|switch| plain(format!("UNIQUE_ID \"@contains {switch}\""))));
    let last = links.len().saturating_sub(1);
    let rule = |(at, (link, transformations)): (usize, &(String, &str))| {
        let head = if at == 0 { format!("id:{id},phase:1,pass,nolog,t:none") } else { "t:none".to_owned() };
        let then = if at == last { controls } else { ",chain" };
        format!("SecRule {link} \"{head}{transformations}{then}\"")
    };
    links.iter().enumerate().map(rule).collect::<Vec<_>>().join("\n")
}

/// Links of a chain that hold for requests that write no file that servers run, with their transformations. Writing one is what rules against
/// methods are for.
fn no_program(method: &str) -> Vec<(String, &'static str)> {
    const DECODED: &str = ",t:urlDecodeUni,t:urlDecodeUni,t:urlDecodeUni,t:lowercase";
    let joined = |endings: &[&[u8]]| String::from_utf8_lossy(&endings.join(b"|".as_slice())).into_owned();
    let folders: Vec<&[u8]> = PROGRAMS.into_iter().filter(|ending| !WITH_ARGUMENT.contains(ending)).collect();
    let (programs, folders) = (joined(&PROGRAMS), joined(&folders));
    // The last segment is the file, with what servers leave out at its end; what is behind some programs (`/remote.php/dav/a.txt`) is an
    // argument. `..` could make another segment the last one.
    let rest = "(?:[^0-9a-z/][^/]*)?";
    let operator =
        format!("!@rx \\.(?:{programs})(?:{rest}[/.\\s]*\\z|\\x00)|\\.(?:{folders}){rest}/|/\\.\\.(?:[/;]|\\z)");
    let mut links = vec![(format!("REQUEST_FILENAME \"{operator}\""), DECODED)];
    // A rule does not match at a header that is not there, and of two headers, one that names no program would do.
    if MOVING.contains(&method) {
        links.push(("&REQUEST_HEADERS:Destination \"@eq 1\"".to_owned(), ""));
        links.push((format!("REQUEST_HEADERS:Destination \"{operator}\""), DECODED));
    } else {
        links.push(("&REQUEST_HEADERS:Destination \"@eq 0\"".to_owned(), ""));
    }
    links
}

/// What an input is kept from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    /// A rule.
    Rule(u64),
    /// All rules with a tag.
    Tag(String),
}

/// One rule that keeps an input on one path from several rules; with a switch, as of [`switched`]. `None` where the input or the path cannot be
/// written.
pub(super) fn free_input(target: &Target, path: &str, from: &[Kept], id: u64, switch: Option<&str>) -> Option<String> {
    let input = target.written()?;
    let controls: String = from
        .iter()
        .map(|kept| match kept {
            Kept::Rule(rule) => format!(",ctl:ruleRemoveTargetById={rule};{input}"),
            Kept::Tag(tag) => format!(",ctl:ruleRemoveTargetByTag={tag};{input}"),
        })
        .collect();
    Some(chained(Some(&condition(path)?), target, id, switch, &controls))
}

/// Whether the operator that selects a folded path selects another path, which may be folded as well.
pub(super) fn reaches(folded: &str, path: &str) -> bool {
    folded.split('/').count() == path.split('/').count()
        && folded.split('/').zip(path.split('/')).all(|(folded, segment)| reaches_segment(folded, segment))
}

/// Whether there are paths that both of two folded paths select, as far as they are known.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    // Segment by segment: `/users/{slug}/list` and `/{slug}/ann/list` have `/users/ann/list` in common.
    one.split('/').count() == other.split('/').count()
        && one
            .split('/')
            .zip(other.split('/'))
            .all(|(one, other)| reaches_segment(one, other) || reaches_segment(other, one))
}

fn reaches_segment(folded: &str, segment: &str) -> bool {
    selects_segment(folded, &unescaped(segment))
}

/// Whether the operator that selects a folded path ([`condition`]) selects the target of a request.
pub(super) fn selects(folded: &str, uri: &[u8]) -> bool {
    let path = uri.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
    let path = decoded(path);
    let mut segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty()).collect();
    if segments.is_empty() {
        segments.push(b"");
    }
    let folded = folded.split('/').skip(1);
    path.starts_with(b"/")
        && folded.clone().count() == segments.len()
        && folded.zip(segments).all(|(folded, segment)| selects_segment(folded, segment))
}

/// Whether a folded segment stands for one whose escapes are undone.
fn selects_segment(folded: &str, segment: &[u8]) -> bool {
    let is_end = |rest: &[u8]| rest.is_empty() || rest.starts_with(b";");
    let Some((before, behind)) = folded.split_once('{') else {
        return segment.strip_prefix(&*unescaped(folded)).is_some_and(is_end);
    };
    let behind = unescaped(behind.split_once('}').map_or("", |(_, behind)| behind));
    let Some(rest) = segment.strip_prefix(&*unescaped(before)).filter(|rest| !rest.is_empty()) else { return false };
    // At least one byte stands for the name.
    let mut ends = (1..=rest.len()).filter_map(|at| rest.get(at..)?.strip_prefix(&*behind));
    behind.is_empty() || ends.any(is_end)
}

/// The bytes of a folded text.
fn unescaped(text: &str) -> Cow<'_, [u8]> {
    decoded(text.as_bytes())
}

/// The bytes with their escapes undone, once, as rules see a path.
fn decoded(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.contains(&b'%') {
        return Cow::Borrowed(bytes);
    }
    let (mut undone, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some((first, behind)) = rest.split_first() {
        let escape = (*first == b'%').then(|| escaped(behind)).flatten();
        let (byte, behind) = escape.unwrap_or((*first, behind));
        undone.push(byte);
        rest = behind;
    }
    Cow::Owned(undone)
}

/// A path in a sentence.
pub(super) fn described(path: &str) -> String {
    match path.contains(SLUG) {
        true => format!("{path} (any name stands for {SLUG})"),
        false => path.to_owned(),
    }
}

/// The operator that selects all paths that are one when they are folded: with more slashes, one at the end, parameters of segments
/// (`/shop;jsessionid=1/cart`), and any spelling. `None` for a path that is none: nodes report paths, so that one may be made to end the rule.
/// `None` as well for one with an escaped slash, which rules see as the end of a segment.
pub(super) fn condition(path: &str) -> Option<String> {
    if !is_plain(path) || path.to_ascii_lowercase().contains("%2f") {
        return None;
    }
    let mut pattern = String::from("@rx \\A");
    for segment in path.strip_prefix('/')?.split('/') {
        pattern.push_str("/+");
        let mut rest = segment;
        while let Some((before, after)) = rest.split_once('{') {
            push_escaped(&mut pattern, &unescaped(before));
            // `{id}`, `{slug}`: what stands for names, with parameters where nothing is behind it.
            pattern.push_str("[^/]+");
            rest = after.split_once('}').map_or("", |(_, behind)| behind);
        }
        push_escaped(&mut pattern, &unescaped(rest));
        if !rest.is_empty() || !segment.contains('{') {
            pattern.push_str("(?:;[^/]*)?");
        }
    }
    // Not `^` and `$`, which stand for the bounds of lines in rules.
    pattern.push_str("/*\\z");
    Some(pattern)
}

/// Whether a path has only what may stand in a rule.
fn is_plain(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"\\".contains(&byte);
    path.bytes().all(is_plain) && !path.contains("%{")
}

fn push_escaped(pattern: &mut String, text: &[u8]) {
    for byte in text {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => pattern.push(char::from(*byte)),
            byte if b"-_~@:,=&;!'".contains(byte) => pattern.push(char::from(*byte)),
            byte if b".+*()[]$|".contains(byte) => pattern.extend(['\\', char::from(*byte)]),
            byte => pattern.push_str(&format!("\\x{byte:02X}")),
        }
    }
}

/// The operators by which rules name a folded path: [`condition`], and what earlier releases have written.
pub(super) fn operators(path: &str) -> impl Iterator<Item = String> {
    [condition(path), earlier_condition(path)].into_iter().flatten()
}

/// The operator that earlier releases have written for a folded path.
fn earlier_condition(path: &str) -> Option<String> {
    if !is_plain(path) {
        return None;
    }
    if !path.contains('{') {
        return Some(format!("@streq {path}"));
    }
    let mut pattern = String::from("@rx \\A");
    let push = |pattern: &mut String, text: &str| {
        for letter in text.chars() {
            if !letter.is_ascii_alphanumeric() && !"/-_~%@:,=&;!'".contains(letter) {
                pattern.push('\\');
            }
            pattern.push(letter);
        }
    };
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        push(&mut pattern, before);
        pattern.push_str("[^/]+");
        rest = after.split_once('}').map_or("", |(_, behind)| behind);
    }
    push(&mut pattern, rest);
    pattern.push_str("\\z");
    Some(pattern)
}

/// The paths without names or identifiers that exclusions are for, by their operators.
pub(super) struct NamedPaths<'t>(BTreeSet<&'t str>);

impl<'t> NamedPaths<'t> {
    /// Those of the exclusions among these texts.
    pub(super) fn of(texts: impl Iterator<Item = &'t str>) -> Self {
        let exclusions = texts.filter(|text| text.contains("ctl:ruleRemove"));
        let begun = exclusions.flat_map(|text| text.split("SecRule REQUEST_FILENAME \"").skip(1));
        Self(begun.filter_map(|begun| begun.split_once('"')).map(|(operator, _)| operator).collect())
    }

    /// Whether a folded path is one of them.
    pub(super) fn has(&self, path: &str) -> bool {
        !self.0.is_empty() && !path.contains('{') && operators(path).any(|operator| self.0.contains(operator.as_str()))
    }
}

/// The ids for generated rules that none of these texts has.
pub(super) fn free_ids<'t>(texts: impl Iterator<Item = &'t str>) -> impl Iterator<Item = u64> {
    let mut taken = BTreeSet::new();
    for text in texts {
        let numbers = text.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| digits.len() == 5);
        taken.extend(numbers.filter_map(|digits| digits.parse::<u64>().ok()).filter(|id| IDS.contains(id)));
    }
    IDS.filter(move |id| !taken.contains(id))
}

#[cfg(test)]
mod tests;
