//! What a WAF config is composed of, and what comes of reading it.
//!
//! Publication, the admission of writes and the console's drafts compile rules here, and nowhere else.

use std::collections::HashMap;

use seclang::{Coverage, Diagnostic, Program, RuleLookups, Source};
use snapshot::{PartHash, content_hash};

use super::config::{Crs, WafConfig, WafRuleset};
use super::coverage;
use kit::{Item, View, did_you_mean};

/// One piece of a composition: where it stands, and what it says.
#[derive(Debug, Clone)]
pub struct Element {
    /// Its place, for people: `ruleset 'baseline', rule 3`.
    pub origin: String,
    /// Its place in the WAF config's document; `None` where it came from elsewhere.
    pub pointer: Option<String>,
    /// SecLang.
    pub text: String,
}

/// What holds before any rule of a user is read: rules that a user writes are meant to run, on bodies as well.
const BASE: &str = "SecRuleEngine On\nSecRequestBodyAccess On\nSecResponseBodyAccess On\n";

/// The composition of a WAF config: its rulesets in order, its own rules, and what its fields say to the engine.
#[must_use]
pub fn elements(config: &Item<WafConfig>, view: &View<'_>) -> Vec<Element> {
    compose(&config.rulesets, &config.body, view)
}

/// [`elements`] of a configuration that is no entity. `rulesets` are ids; those that do not exist or are disabled
/// contribute nothing.
#[must_use]
pub(super) fn compose(rulesets: &[String], config: &WafConfig, view: &View<'_>) -> Vec<Element> {
    let rulesets: Vec<&Item<WafRuleset>> =
        rulesets.iter().filter_map(|id| view.get::<WafRuleset>(id)).filter(|ruleset| ruleset.enabled).collect();
    let shares_name = |ruleset: &Item<WafRuleset>| {
        rulesets.iter().any(|other| other.head.name == ruleset.head.name && other.head.id != ruleset.head.id)
    };
    let of_rulesets = rulesets.iter().flat_map(|ruleset| {
        let name = match (ruleset.head.name.as_str(), &ruleset.head.id) {
            ("", id) => id.clone(),
            (name, id) if shares_name(ruleset) => format!("{name} ({id})"),
            (name, _) => name.to_owned(),
        };
        ruleset.rules.iter().enumerate().map(move |(number, text)| Element {
            origin: format!("ruleset '{name}', rule {}", number + 1),
            pointer: None,
            text: text.clone(),
        })
    });
    let fields = Element { origin: "fields of the WAF config".to_owned(), pointer: None, text: directives(config) };
    of_rulesets.chain(own_elements(&config.rules)).chain([fields]).collect()
}

/// The fields of a WAF config that are directives of the engine. They come last, so that they hold.
fn directives(config: &WafConfig) -> String {
    // The limits of request bodies are not among them: the smaller one of a field and a directive holds.
    let limit = config.output_body_limit.unwrap_or(WafConfig::DEFAULT_BODY_LIMIT);
    let mut text = format!("SecResponseBodyLimit {limit}\n");
    for (directive, inspected) in
        [("SecRequestBodyAccess", config.inspect_input_body), ("SecResponseBodyAccess", config.inspect_output_body)]
    {
        if !inspected {
            text.push_str(&format!("{directive} Off\n"));
        }
    }
    if !config.output_body_mimetypes.is_empty() {
        let list = config.output_body_mimetypes.join(" ");
        text.push_str(&format!("SecResponseBodyMimeTypesClear\nSecResponseBodyMimeType {list}\n"));
    }
    if !config.block {
        // Every rule is evaluated to the end, where a denial would stop at the first that denies.
        text.push_str("SecRuleEngine DetectionOnly\n");
    }
    text
}

/// The elements of a list of rules that stands in the document itself under `/rules`.
pub fn own_elements(rules: &[String]) -> impl Iterator<Item = Element> {
    rules.iter().enumerate().map(|(number, text)| Element {
        origin: format!("rule {}", number + 1),
        pointer: Some(format!("/rules/{number}")),
        text: text.clone(),
    })
}

/// A composition as the engine reads it.
pub(super) struct Composition {
    /// The sources in loading order.
    pub sources: Vec<Source>,
    /// Where each of them comes from.
    owners: Vec<Owner>,
    /// What is wrong before the engine has read anything.
    problems: Vec<ElementProblem>,
    /// The core rule set is imported.
    pub imports_crs: bool,
    /// The options of the core rule set are set and in force.
    pub crs_options: bool,
    /// Options of the core rule set are set, and nothing imports it.
    pub crs_ignored: bool,
    /// Elements that import a preset which is there already; once is enough.
    repeated_imports: Vec<usize>,
}

/// Where a source comes from.
#[derive(Clone, Copy, Default)]
struct Owner {
    /// The index of the element; `None` for what no element says.
    element: Option<usize>,
    /// It is a part of the preset that the element imports.
    preset: bool,
}

/// A composition that was read: rules that work together.
#[derive(Debug)]
pub(super) struct CheckedRules {
    /// The rules.
    pub program: Program,
    /// What they do for an ordinary request.
    pub coverage: Coverage,
    /// What they look up about addresses.
    pub lookups: RuleLookups,
    /// What has no effect in the elements. What a preset leaves without effect is not for its user to mend.
    pub warnings: Vec<RuleWarning>,
}

/// Something in an element that is allowed and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleWarning {
    /// The index of the element.
    pub element: usize,
    /// The line in the element, from 1; `None` for the element as a whole.
    pub line: Option<u32>,
    /// What has no effect, and why.
    pub message: String,
}

/// What is wrong with an element of a composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ElementProblem {
    /// The element's index; `None` where it is none's.
    pub element: Option<usize>,
    /// What is wrong, with the line, a caret and what to do.
    pub diagnostic: Diagnostic,
}

impl RuleWarning {
    /// Whether other elements decide it: a ruleset by itself need not have the rules that it changes.
    #[must_use]
    pub(super) fn is_of_composition(&self) -> bool {
        self.message == seclang::NOTHING_SELECTED
    }

    /// With its place among the elements: `rule 3, line 2: what has no effect`.
    #[must_use]
    pub(super) fn placed(&self, elements: &[Element]) -> String {
        let origin = elements.get(self.element).map(|element| element.origin.as_str()).unwrap_or_default();
        match self.line {
            Some(line) => format!("{origin}, line {line}: {}", self.message),
            None => format!("{origin}: {}", self.message),
        }
    }
}

impl Composition {
    /// Puts the elements together. Options of the core rule set come first of all, and only where it is imported.
    pub(super) fn new(elements: &[Element], crs: &Crs) -> Composition {
        let mut composition = Composition {
            sources: Vec::new(),
            owners: Vec::new(),
            problems: Vec::new(),
            imports_crs: false,
            crs_options: false,
            crs_ignored: false,
            repeated_imports: Vec::new(),
        };
        composition.push(Source::new("defaults", BASE), Owner::default());
        let mut imported = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            composition.element(index, element, &mut imported);
        }
        composition.imports_crs = imported.contains(&"crs");
        composition.crs_ignored = *crs != Crs::default() && !composition.imports_crs;
        if let Some(options) = crs_options(crs).filter(|_| composition.imports_crs) {
            composition.sources.insert(0, Source::new("crs options", options));
            composition.owners.insert(0, Owner::default());
            composition.crs_options = true;
        }
        composition
    }

    fn push(&mut self, source: Source, owner: Owner) {
        self.sources.push(source);
        self.owners.push(owner);
    }

    fn element(&mut self, index: usize, element: &Element, imported: &mut Vec<&'static str>) {
        let mut own = String::new();
        let mut offset = 0;
        for line in element.text.split_inclusive('\n') {
            let start = offset;
            offset += line.len();
            let Some(name) = line.trim().strip_prefix("@import_preset") else {
                own.push_str(line);
                continue;
            };
            let name = name.trim();
            match waf_presets::NAMES.into_iter().find(|known| *known == name) {
                Some(known) if imported.contains(&known) => self.repeated_imports.push(index),
                Some(known) => {
                    self.flush(index, element, &mut own);
                    imported.push(known);
                    for source in waf_presets::by_name(known).map(waf_presets::Preset::sources).unwrap_or_default() {
                        self.push(source, Owner { element: Some(index), preset: true });
                    }
                }
                None => {
                    let at = start + line.find(name).unwrap_or_default();
                    let source = Source::new(element.origin.as_str(), element.text.as_str());
                    self.problems
                        .push(ElementProblem { element: Some(index), diagnostic: unknown_preset(name, &source, at) });
                }
            }
            // The line stays as an empty one, so that the lines behind it keep their numbers.
            own.push('\n');
        }
        self.flush(index, element, &mut own);
        // Each element is whole: a chain that is open here is an error here, and does not take in the next element.
        self.push(Source::new("", END_OF_ELEMENT), Owner { element: Some(index), preset: false });
    }

    fn flush(&mut self, index: usize, element: &Element, own: &mut String) {
        if !own.trim().is_empty() {
            self.push(
                Source::new(element.origin.as_str(), own.as_str()),
                Owner { element: Some(index), preset: false },
            );
        }
        *own = "\n".repeat(own.matches('\n').count());
    }

    /// Reads and compiles it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, in the order of the elements.
    pub(super) fn compile(&self) -> Result<CheckedRules, Vec<ElementProblem>> {
        let diagnostics = match seclang::compile(&self.sources, waf_presets::data_files()) {
            Ok(program) if self.problems.is_empty() => {
                let (coverage, warnings) = (coverage::of(&program), self.warnings(&program));
                let lookups = program.lookups();
                return Ok(CheckedRules { program, coverage, lookups, warnings });
            }
            Ok(_) => Vec::new(),
            Err(diagnostics) => diagnostics,
        };
        let owners = self.owners();
        let found = diagnostics.into_iter().map(|diagnostic| {
            let owner = owners.get(diagnostic.origin.as_str());
            ElementProblem { element: owner.and_then(|owner| owner.element), diagnostic }
        });
        let mut problems: Vec<ElementProblem> = self.problems.iter().cloned().chain(found).collect();
        problems.sort_by_key(|problem| (problem.element, problem.diagnostic.line, problem.diagnostic.column));
        Err(problems)
    }

    /// By origin, where the first source of that origin comes from.
    fn owners(&self) -> HashMap<&str, Owner> {
        let mut owners = HashMap::new();
        for (source, owner) in self.sources.iter().zip(&self.owners) {
            owners.entry(source.origin.as_str()).or_insert(*owner);
        }
        owners
    }

    fn warnings(&self, program: &Program) -> Vec<RuleWarning> {
        let repeated = self.repeated_imports.iter().map(|element| RuleWarning {
            element: *element,
            line: None,
            message: "the preset is imported already, once is enough".to_owned(),
        });
        let owners = self.owners();
        let found = program.warnings().filter_map(|warning| {
            let owner = owners.get(warning.origin.as_str()).filter(|owner| !owner.preset)?;
            Some(RuleWarning { element: owner.element?, line: Some(warning.line), message: warning.message })
        });
        repeated.chain(found).collect()
    }

    /// A hash over all that is read.
    pub(super) fn fingerprint(&self) -> PartHash {
        let mut bytes = Vec::new();
        // A second import is in no source either.
        for element in &self.repeated_imports {
            bytes.extend_from_slice(&(*element as u64).to_le_bytes());
        }
        // What was refused before the engine has read it is in no source.
        let sources = self.sources.iter().map(|source| (source.origin.as_str(), source.text.as_slice()));
        let problems = self.problems.iter().map(|problem| &problem.diagnostic);
        let problems = problems.map(|found| (found.origin.as_str(), found.message.as_bytes()));
        for (origin, text) in sources.chain(problems) {
            for field in [origin.as_bytes(), text] {
                bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
                bytes.extend_from_slice(field);
            }
        }
        content_hash(&bytes)
    }
}

/// Closes what an element has left open, and does nothing else. No rule skips to it: its name is not public.
const END_OF_ELEMENT: &str = "SecMarker palisade-end-of-element\n";

fn unknown_preset(name: &str, source: &Source, offset: usize) -> Diagnostic {
    let diagnostic = Diagnostic::at(source, offset, format!("there is no preset `{}`", name.escape_debug()));
    let known = waf_presets::NAMES.join(", ");
    diagnostic.with_help(match did_you_mean(name, waf_presets::NAMES) {
        Some(near) => format!("did you mean `{near}`? The presets are: {known}"),
        None => format!("the presets are: {known}"),
    })
}

/// The action that sets the options of the core rule set; `None` where all of them are unset.
fn crs_options(crs: &Crs) -> Option<String> {
    let numbers = [
        ("blocking_paranoia_level", crs.paranoia_level),
        ("detection_paranoia_level", crs.detection_paranoia_level),
        ("inbound_anomaly_score_threshold", crs.inbound_anomaly_threshold),
        ("outbound_anomaly_score_threshold", crs.outbound_anomaly_threshold),
        ("early_blocking", u32::from(crs.early_blocking)),
    ];
    let settings: Vec<String> = numbers
        .iter()
        .filter(|(_, value)| *value != 0)
        .map(|(name, value)| format!("setvar:'tx.{name}={value}'"))
        .collect();
    // Releases before 4 know the levels by other names.
    let older = [("paranoia_level", crs.paranoia_level), ("executing_paranoia_level", crs.detection_paranoia_level)];
    let older =
        older.iter().filter(|(_, level)| *level != 0).map(|(name, level)| format!("setvar:'tx.{name}={level}'"));
    let settings: Vec<String> = settings.into_iter().chain(older).collect();
    (!settings.is_empty())
        .then(|| format!("SecAction \"id:900001,phase:1,pass,nolog,t:none,{}\"\n", settings.join(",")))
}
