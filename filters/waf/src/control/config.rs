//! `waf-configs` and `waf-rulesets`: what the rule engine runs.

use schemars::JsonSchema;
use seclang::{BodyLimits, BudgetLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::examine;
use kit::{Entity, Examine, FieldProblem, Head, References, reference};

/// A rule engine's configuration, named by the WAF plugin of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WafConfig {
    /// False: it is not used. Default true.
    pub enabled: bool,
    /// False: rules are evaluated and matches reported, nothing is denied. Default true.
    pub block: bool,
    /// Ids of rulesets, composed in this order before `rules`.
    pub rulesets: Vec<String>,
    /// SecLang, one or more lines each; `@import_preset crs` imports the core rule set.
    pub rules: Vec<String>,
    /// Whether request bodies are read. Default true.
    pub inspect_input_body: bool,
    /// The bytes of a request body without the content of files in it; `null` means 1048576.
    pub input_body_limit: Option<u64>,
    /// The bytes of a multipart request body with its files, at least `input_body_limit`; `null` means
    /// 13107200, or `input_body_limit` if that is more.
    pub input_files_limit: Option<u64>,
    /// Whether response bodies are read. Default true.
    pub inspect_output_body: bool,
    /// The bytes of a response body that are inspected; `null` means 2097152.
    pub output_body_limit: Option<u64>,
    /// The media types of responses whose bodies are read, without parameters; `text/*` is understood. Empty means the
    /// engine's list.
    pub output_body_mimetypes: Vec<String>,
    /// The action for a body beyond its limit. Default reject.
    pub oversize_body_action: OversizeBody,
    /// The bytes that a compressed body may unpack to, with `inspect_prefix` at most `input_files_limit`; `null` means
    /// 67108864.
    pub decompressed_input_body_limit: Option<u64>,
    /// The maximum ratio of the unpacked to the compressed size of a body; `null` means 100.
    pub max_input_compression_ratio: Option<u64>,
    /// The action for a body that cannot be decompressed. Default reject.
    pub undecodable_body_action: UndecodableBody,
    /// Limits of the rules' cost in one exchange.
    pub budget: WafBudget,
    /// The action for an XML body whose document type has declarations or refers to another file. Default reject.
    pub xml_doctype: XmlDoctype,
    /// The core rule set's settings.
    pub crs: Crs,
}

/// The action for a body beyond its limit. Default reject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OversizeBody {
    /// The part within the limit is inspected; of the rest, what the prefilter of the rules finds suspicious.
    InspectPrefix,
    /// The request is refused with 413.
    #[default]
    Reject,
}

/// The action for a body that cannot be decompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UndecodableBody {
    /// The request is refused.
    #[default]
    Reject,
    /// The bytes are inspected as they were sent.
    InspectRaw,
}

/// Limits of the rules' cost for a request, and again for its response. `null` means the engine's default. At a limit the rules
/// stop; the request is answered with 503 if the WAF blocks and does not fail open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WafBudget {
    /// Units of work for every request. A unit is about one instruction of a processor.
    pub work: Option<u64>,
    /// Further units for each byte of the target, the headers and the decompressed body.
    pub work_per_byte: Option<u64>,
    /// Bytes of memory for every request.
    pub memory: Option<u64>,
    /// Further bytes for each of these bytes.
    pub memory_per_byte: Option<u64>,
}

impl WafBudget {
    /// The ceilings, with the engine's own where nothing is set.
    #[must_use]
    pub fn limits(self) -> BudgetLimits {
        let default = BudgetLimits::default();
        BudgetLimits {
            work: self.work.unwrap_or(default.work),
            work_per_byte: self.work_per_byte.unwrap_or(default.work_per_byte),
            memory: self.memory.unwrap_or(default.memory),
            memory_per_byte: self.memory_per_byte.unwrap_or(default.memory_per_byte),
        }
    }
}

/// The action for an XML body whose document type has declarations or refers to another file. Default reject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum XmlDoctype {
    /// It is an error of the body.
    #[default]
    Reject,
    /// Rules see its literals.
    Allow,
}

/// Settings of the core rule set. 0 and false mean unset: the engine's default applies and nothing is emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Crs {
    /// The blocking paranoia level, 1 to 4 (engine default 1).
    #[serde(skip_serializing_if = "is_unset")]
    pub paranoia_level: u32,
    /// The level up to which rules are evaluated, at least `paranoia_level` (engine default: the same).
    #[serde(skip_serializing_if = "is_unset")]
    pub detection_paranoia_level: u32,
    /// The anomaly score from which a request is denied (engine default 5).
    #[serde(skip_serializing_if = "is_unset")]
    pub inbound_anomaly_threshold: u32,
    /// The anomaly score from which a response is denied (engine default 4).
    #[serde(skip_serializing_if = "is_unset")]
    pub outbound_anomaly_threshold: u32,
    /// Whether phases 1 and 3 deny by themselves, before the body is there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub early_blocking: bool,
}

/// Rules that several configurations share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WafRuleset {
    /// A disabled ruleset contributes nothing. Default true.
    pub enabled: bool,
    /// SecLang, one or more lines each.
    pub rules: Vec<String>,
}

// === impl WafConfig ===

impl WafConfig {
    /// The bytes of a request body without files where nothing is set: 1 MiB.
    pub const DEFAULT_INPUT_LIMIT: u64 = 1024 * 1024;
    /// The bytes of a request body with files where nothing is set: 12.5 MiB.
    pub const DEFAULT_FILES_LIMIT: u64 = 12 * 1024 * 1024 + 512 * 1024;
    /// The bytes of a response body that are inspected where nothing is set: 2 MiB.
    pub const DEFAULT_BODY_LIMIT: u64 = 2 * 1024 * 1024;
    /// The bytes that a compressed body may unpack to where nothing is set: 64 MiB.
    pub const DEFAULT_DECOMPRESSED_LIMIT: u64 = 64 * 1024 * 1024;
    /// How many times its size a compressed body may unpack to where nothing is set.
    pub const DEFAULT_COMPRESSION_RATIO: u64 = 100;

    /// The bytes of a request body without the content of files.
    #[must_use]
    pub fn input_limit(&self) -> u64 {
        self.input_body_limit.unwrap_or(Self::DEFAULT_INPUT_LIMIT)
    }

    /// The bytes of a request body with its files.
    #[must_use]
    pub fn files_limit(&self) -> u64 {
        self.input_files_limit.unwrap_or(Self::DEFAULT_FILES_LIMIT).max(self.input_limit())
    }

    /// How much of a request body is inspected, as the rule engine takes it.
    #[must_use]
    pub fn body_limits(&self) -> BodyLimits {
        BodyLimits {
            total: self.files_limit(),
            without_files: self.input_limit(),
            reject: self.oversize_body_action == OversizeBody::Reject,
        }
    }

    /// The bytes that a compressed body may unpack to.
    #[must_use]
    pub fn decompressed_limit(&self) -> u64 {
        self.decompressed_input_body_limit.unwrap_or(Self::DEFAULT_DECOMPRESSED_LIMIT)
    }

    /// How many times its size a compressed body may unpack to.
    #[must_use]
    pub fn compression_ratio(&self) -> u64 {
        self.max_input_compression_ratio.unwrap_or(Self::DEFAULT_COMPRESSION_RATIO)
    }
}

impl Default for WafConfig {
    fn default() -> WafConfig {
        WafConfig {
            enabled: true,
            block: true,
            rulesets: Vec::new(),
            rules: Vec::new(),
            inspect_input_body: true,
            input_body_limit: None,
            input_files_limit: None,
            inspect_output_body: true,
            output_body_limit: None,
            output_body_mimetypes: Vec::new(),
            oversize_body_action: OversizeBody::default(),
            decompressed_input_body_limit: None,
            max_input_compression_ratio: None,
            undecodable_body_action: UndecodableBody::default(),
            budget: WafBudget::default(),
            xml_doctype: XmlDoctype::default(),
            crs: Crs::default(),
        }
    }
}

impl Entity for WafConfig {
    const COLLECTION: &'static str = "waf-configs";
    const KIND: &'static str = "waf-config";
    const EXAMINE: Option<Examine<Self>> = Some(examine::config);

    fn check(&self, _head: &Head, refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = self.crs.check();
        for (index, id) in self.rulesets.iter().enumerate() {
            problems.extend(reference(refs, WafRuleset::COLLECTION, id, format!("/rulesets/{index}")));
        }
        for (index, mimetype) in self.output_body_mimetypes.iter().enumerate() {
            if !is_media_type(mimetype) {
                let message = format!("`{}` is not a media type", mimetype.escape_debug());
                let problem = FieldProblem::new(format!("/output_body_mimetypes/{index}"), message);
                problems.push(problem.expected("a media type alone, such as `text/html` or `text/*`"));
            }
        }
        for (field, limit, instead) in [
            ("/input_body_limit", self.input_body_limit, "inspect_input_body"),
            ("/output_body_limit", self.output_body_limit, "inspect_output_body"),
        ] {
            if limit == Some(0) {
                let problem = FieldProblem::new(field, "0 would inspect nothing of any body");
                problems.push(problem.expected(format!("1 or more, or null; `{instead}: false` inspects no bodies")));
            }
        }
        if let Some(limit) = self.input_files_limit.filter(|limit| *limit < self.input_limit()) {
            let message = format!("a body with files would be held to {limit} bytes, and one without to more");
            let problem = FieldProblem::new("/input_files_limit", message);
            problems.push(problem.expected(format!("at least `input_body_limit` ({}), or null", self.input_limit())));
        }
        for (field, value) in [
            ("/decompressed_input_body_limit", self.decompressed_input_body_limit),
            ("/max_input_compression_ratio", self.max_input_compression_ratio),
        ] {
            if value == Some(0) {
                problems.push(
                    FieldProblem::new(field, "0 would refuse every compressed body").expected("1 or more, or null"),
                );
            }
        }
        for (field, value) in [("/budget/work", self.budget.work), ("/budget/memory", self.budget.memory)] {
            if value == Some(0) {
                problems.push(FieldProblem::new(field, "0 would refuse every request").expected("1 or more, or null"));
            }
        }
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}

// === impl Crs ===

impl Crs {
    /// What is wrong with the settings that their types do not say.
    #[must_use]
    pub fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        for (field, level) in
            [("paranoia_level", self.paranoia_level), ("detection_paranoia_level", self.detection_paranoia_level)]
        {
            if level > 4 {
                let problem = FieldProblem::new(format!("/crs/{field}"), format!("there is no paranoia level {level}"));
                problems.push(problem.expected("1 to 4, or 0 for the engine's default"));
            }
        }
        // An unset blocking level is the engine's default, 1, and every detection level reaches that.
        if self.detection_paranoia_level != 0 && self.detection_paranoia_level < self.paranoia_level {
            let message = format!("rules of the blocking level {} would not be evaluated", self.paranoia_level);
            problems.push(
                FieldProblem::new("/crs/detection_paranoia_level", message).expected("at least `paranoia_level`"),
            );
        }
        problems
    }
}

// === impl WafRuleset ===

impl Default for WafRuleset {
    fn default() -> WafRuleset {
        WafRuleset { enabled: true, rules: Vec::new() }
    }
}

impl Entity for WafRuleset {
    const COLLECTION: &'static str = "waf-rulesets";
    const KIND: &'static str = "waf-ruleset";
    const EXAMINE: Option<Examine<Self>> = Some(examine::ruleset);

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        Vec::new()
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }

    fn template() -> Value {
        json!({ "enabled": true, "rules": ["@import_preset crs"] })
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's `skip_serializing_if` hands over a reference")]
fn is_unset(number: &u32) -> bool {
    *number == 0
}

fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    text.split_once('/').is_some_and(|(kind, subtype)| token(kind) && (subtype == "*" || token(subtype)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let expected = json!({
            "enabled": true, "block": true, "rulesets": [], "rules": [], "inspect_input_body": true,
            "input_body_limit": null, "input_files_limit": null, "inspect_output_body": true, "output_body_limit": null,
            "output_body_mimetypes": [], "oversize_body_action": "reject",
            "decompressed_input_body_limit": null, "max_input_compression_ratio": null,
            "undecodable_body_action": "reject", "xml_doctype": "reject", "crs": {},
            "budget": { "work": null, "work_per_byte": null, "memory": null, "memory_per_byte": null }
        });
        assert_eq!(serde_json::to_value(WafConfig::default()).unwrap(), expected);
        assert_eq!(serde_json::from_value::<WafConfig>(json!({})).unwrap(), WafConfig::default());
        assert_eq!((WafConfig::DEFAULT_INPUT_LIMIT, WafConfig::DEFAULT_FILES_LIMIT), (1_048_576, 13_107_200));
        assert_eq!(WafConfig::DEFAULT_BODY_LIMIT, 2_097_152);
        assert_eq!(WafConfig::DEFAULT_DECOMPRESSED_LIMIT, 67_108_864);
        assert_eq!(WafConfig::DEFAULT_COMPRESSION_RATIO, 100);
        assert_eq!(
            serde_json::from_value::<WafRuleset>(json!({})).unwrap(),
            WafRuleset { enabled: true, rules: vec![] }
        );
        assert_eq!(WafRuleset::template()["rules"], json!(["@import_preset crs"]));
    }

    #[test]
    fn a_budget_is_the_engines_where_nothing_is_set() {
        let default = BudgetLimits::default();
        assert_eq!(WafBudget::default().limits(), default);
        let budget = WafBudget { work: Some(5), memory_per_byte: Some(0), ..WafBudget::default() };
        assert_eq!(budget.limits(), BudgetLimits { work: 5, memory_per_byte: 0, ..default });
    }

    #[test]
    fn the_limit_with_files_is_no_less_than_the_one_without() {
        let config = |input_body_limit, input_files_limit| WafConfig {
            input_body_limit,
            input_files_limit,
            ..WafConfig::default()
        };
        let limits = |config: &WafConfig| (config.input_limit(), config.files_limit());
        assert_eq!(limits(&config(None, None)), (1_048_576, 13_107_200));
        assert_eq!(limits(&config(Some(20_000_000), None)), (20_000_000, 20_000_000));
        struct Nothing;
        impl References for Nothing {
            fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
                None
            }
        }
        let problems = |config: WafConfig| config.check(&Head::default(), &Nothing).len();
        assert_eq!(problems(config(Some(7), Some(7))), 0);
        assert_eq!(problems(config(Some(7), Some(6))), 1);
        assert_eq!(problems(config(None, Some(1000))), 1);
    }

    #[test]
    fn detection_reaches_the_blocking_level() {
        let crs = |paranoia_level, detection_paranoia_level| Crs {
            paranoia_level,
            detection_paranoia_level,
            ..Crs::default()
        };
        assert!(crs(2, 2).check().is_empty());
        assert!(crs(2, 0).check().is_empty());
        assert!(crs(0, 1).check().is_empty());
        assert_eq!(crs(3, 2).check().len(), 1);
        assert_eq!(crs(5, 0).check().len(), 1);
    }
}
