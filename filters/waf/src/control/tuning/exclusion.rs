//! Exclusions: the ways to keep a rule from an input, the narrowest first.

use std::collections::BTreeSet;

use exchange::fold::SLUG;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::Condition;
use super::target::Target;

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
                    "Rule {rule_id} does not look at the method of {method} requests for {paths}; it still looks at every other method there, \
                     and at all methods on all other paths."
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
    let links = [
        path.map(|operator| format!("REQUEST_FILENAME \"{operator}\"")),
        target.method().map(|method| format!("REQUEST_METHOD \"@streq {method}\"")),
        switch.map(|switch| format!("UNIQUE_ID \"@contains {switch}\"")),
    ];
    let links: Vec<String> = links.into_iter().flatten().collect();
    let last = links.len().saturating_sub(1);
    let rule = |(at, link): (usize, &String)| {
        let head = if at == 0 { format!("id:{id},phase:1,pass,nolog,t:none") } else { "t:none".to_owned() };
        let then = if at == last { controls } else { ",chain" };
        format!("SecRule {link} \"{head}{then}\"")
    };
    links.iter().enumerate().map(rule).collect::<Vec<_>>().join("\n")
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
    let is_reached = |(folded, segment): (&str, &str)| match folded.split_once('{') {
        Some((before, behind)) => {
            let behind = behind.split_once('}').map_or("", |(_, behind)| behind);
            let inner = segment.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
            inner.is_some_and(|inner| !inner.is_empty())
        }
        None => folded == segment,
    };
    folded.split('/').count() == path.split('/').count() && folded.split('/').zip(path.split('/')).all(is_reached)
}

/// Whether there are paths that both of two folded paths select, as far as they are known.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    // Segment by segment: `/users/{slug}/list` and `/{slug}/ann/list` have `/users/ann/list` in common.
    one.split('/').count() == other.split('/').count()
        && one.split('/').zip(other.split('/')).all(|(one, other)| reaches(one, other) || reaches(other, one))
}

/// A path in a sentence.
pub(super) fn described(path: &str) -> String {
    match path.contains(SLUG) {
        true => format!("{path} (any name stands for {SLUG})"),
        false => path.to_owned(),
    }
}

/// The operator that selects a folded path; `None` for a path that is none. Nodes report paths, so that one may be made to end the rule.
pub(super) fn condition(path: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"\\".contains(&byte);
    if !path.bytes().all(is_plain) || path.contains("%{") {
        return None;
    }
    if !path.contains('{') {
        return Some(format!("@streq {path}"));
    }
    let mut pattern = String::from("@rx \\A");
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        push_escaped(&mut pattern, before);
        // `{id}`, `{slug}`: what stands for names.
        pattern.push_str("[^/]+");
        rest = after.split_once('}').map_or("", |(_, behind)| behind);
    }
    push_escaped(&mut pattern, rest);
    // Not `^` and `$`, which stand for the bounds of lines in rules.
    pattern.push_str("\\z");
    Some(pattern)
}

fn push_escaped(pattern: &mut String, text: &str) {
    for letter in text.chars() {
        if !letter.is_ascii_alphanumeric() && !"/-_~%@:,=&;!'".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
}

/// The paths without names or identifiers that exclusions among these texts are for.
pub(super) fn named_paths<'t>(texts: impl Iterator<Item = &'t str>) -> BTreeSet<&'t str> {
    let exclusions = texts.filter(|text| text.contains("ctl:ruleRemove"));
    let begun = exclusions.flat_map(|text| text.split("REQUEST_FILENAME \"@streq ").skip(1));
    begun.filter_map(|begun| begun.split_once('"')).map(|(path, _)| path).collect()
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
mod tests {
    use super::*;

    fn place(target: &str, path: &str) -> Place {
        Place { rule_id: 942_100, target: Target::parse(target.as_bytes()).unwrap(), path: path.to_owned() }
    }

    #[test]
    fn the_narrowest_exclusion_comes_first() {
        let all = Exclusion::candidates(&place("ARGS:content", "/post"), 50_007);
        let texts: Vec<&str> = all.iter().map(|one| one.seclang.as_str()).collect();
        assert_eq!(
            texts,
            [
                "SecRule REQUEST_FILENAME \"@streq /post\" \"id:50007,phase:1,pass,nolog,t:none,\
                 ctl:ruleRemoveTargetById=942100;ARGS:content\"",
                "SecRuleUpdateTargetById 942100 \"!ARGS:content\"",
                "SecRule REQUEST_FILENAME \"@streq /post\" \"id:50007,phase:1,pass,nolog,t:none,ctl:ruleRemoveById=942100\"",
                "SecRuleRemoveById 942100",
            ]
        );
        assert!(all.iter().map(|one| one.kind.rank()).eq(1..=4));
        let placements: Vec<&str> = all.iter().map(|one| one.kind.placement()).collect();
        assert_eq!(placements, ["before", "after", "before", "after"]);
    }

    #[test]
    fn a_name_that_cannot_be_written_leaves_what_names_none() {
        let all = Exclusion::candidates(&place("ARGS:a\",deny,\"", "/post"), 50_000);
        assert!(all.iter().map(|one| one.kind).eq([ExclusionKind::ScopedRemove, ExclusionKind::RemoveRule]));
        assert!(all.iter().all(|one| !one.seclang.contains("deny")));
    }

    #[test]
    fn a_method_is_excluded_by_itself() {
        let place = Place { rule_id: 911_100, ..place("REQUEST_METHOD:PUT", "/issues/{id}") };
        let all = Exclusion::candidates(&place, 50_001);
        assert!(all.iter().map(|one| one.kind).eq([
            ExclusionKind::ScopedTarget,
            ExclusionKind::ScopedRemove,
            ExclusionKind::RemoveRule
        ]));
        assert_eq!(
            all[0].seclang,
            "SecRule REQUEST_FILENAME \"@rx \\A/issues/[^/]+\\z\" \"id:50001,phase:1,pass,nolog,t:none,chain\"\n\
             SecRule REQUEST_METHOD \"@streq PUT\" \"t:none,ctl:ruleRemoveTargetById=911100;REQUEST_METHOD\""
        );
        let kept = [Kept::Rule(911_100)];
        assert_eq!(
            free_input(&place.target, "/a", &kept, 50_001, Some(",f1,")).unwrap(),
            "SecRule REQUEST_FILENAME \"@streq /a\" \"id:50001,phase:1,pass,nolog,t:none,chain\"\n\
             SecRule REQUEST_METHOD \"@streq PUT\" \"t:none,chain\"\n\
             SecRule UNIQUE_ID \"@contains ,f1,\" \"t:none,ctl:ruleRemoveTargetById=911100;REQUEST_METHOD\""
        );
    }

    #[test]
    fn a_folded_path_is_a_pattern() {
        assert_eq!(condition("/orders/{id}/notes.{x}"), Some("@rx \\A/orders/[^/]+/notes\\.[^/]+\\z".to_owned()));
        assert_eq!(condition("/a.b+c/{id}"), Some("@rx \\A/a\\.b\\+c/[^/]+\\z".to_owned()));
        assert_eq!(condition("/a.b"), Some("@streq /a.b".to_owned()));
        for path in ["/a\" \"id:1,pass,ctl:ruleEngine=Off\"", "/a\\", "/a b", "/%{tx.a}", "/\u{e4}"] {
            assert_eq!(condition(path), None, "{path}");
        }
    }

    #[test]
    fn a_path_reaches_what_its_pattern_selects() {
        for (folded, path, is_reached) in [
            ("/users/{slug}/profile", "/users/ann/profile", true),
            ("/users/{slug}/profile", "/users/{id}/profile", true),
            ("/users/{slug}/profile", "/users//profile", false),
            ("/users/{slug}/profile", "/users/ann/posts", false),
            ("/users/{slug}", "/users/ann/profile", false),
            ("/files/{id}.pdf", "/files/a.pdf", true),
            ("/files/{id}.pdf", "/files/a.png", false),
            ("/files/{id}.pdf", "/files/.pdf", false),
            ("/a", "/a", true),
            ("/a", "/{id}", false),
        ] {
            assert_eq!(reaches(folded, path), is_reached, "{folded} {path}");
        }
        for (one, other, is_one) in [
            ("/a", "/{id}", true),
            ("/a/{id}", "/{id}/b", true),
            ("/users/{slug}/list", "/{slug}/ann/list", true),
            ("/users/{slug}/list", "/{slug}/ann/posts", false),
            ("/a/{id}", "/b/{id}", false),
            ("/a", "/a/{id}", false),
        ] {
            assert_eq!((overlap(one, other), overlap(other, one)), (is_one, is_one), "{one} {other}");
        }
        let exclusion = &Exclusion::candidates(&place("ARGS:bio", "/users/{slug}/profile"), 50_000)[0];
        assert!(exclusion.seclang.contains("\"@rx \\A/users/[^/]+/profile\\z\""), "{}", exclusion.seclang);
        assert!(exclusion.reach.contains("/users/{slug}/profile (any name stands for {slug})"), "{}", exclusion.reach);
    }

    #[test]
    fn the_paths_of_exclusions_are_known() {
        let of = |path: &str| Exclusion::candidates(&place("ARGS:bio", path), 50_000).remove(0).seclang;
        let of_profile = of("/profile").replace("ctl:ruleRemoveTargetById=942100;ARGS:bio", "chain");
        let texts = [format!("# Exclusion 50000 by ann\n{}", of("/users/ann")), of("/users/{id}"), of_profile];
        let both = format!("{}\n{}", of("/a"), of("/b.c"));
        let all = texts.iter().chain([&both]).map(String::as_str);
        assert_eq!(named_paths(all), BTreeSet::from(["/users/ann", "/a", "/b.c"]));
    }

    #[test]
    fn ids_that_are_named_anywhere_are_taken() {
        assert_eq!(free_ids(std::iter::empty()).count(), 10_000);
        let taken = ["id:50000", "# Exclusion 50001 by x", "id:150002", "50004,"];
        assert!(free_ids(taken.into_iter()).take(3).eq([50_002, 50_003, 50_005]));
        let all: String = IDS.map(|id| format!("{id} ")).collect();
        assert_eq!(free_ids([all.as_str()].into_iter()).next(), None);
    }
}
