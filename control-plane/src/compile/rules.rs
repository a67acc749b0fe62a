//! The rules of a WAF config: composed of rulesets, the options of the core rule set and its own rules, then compiled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use seclang::{Diagnostic, Source};
use snapshot::{PartHash, content_hash};

use super::presets;
use crate::entities::{Crs, EntitySet, FieldProblem, Item, WafConfig, WafRuleset, did_you_mean};

/// A rule program, ready for a snapshot.
#[derive(Debug)]
pub struct CompiledRules {
    /// The encoded program.
    pub program: Vec<u8>,
    /// SHA-256 of it.
    pub hash: PartHash,
    /// How many rules it has.
    pub rules: usize,
}

/// Compiles rules, and remembers what it compiled: most changes leave most rules as they were.
#[derive(Default)]
pub struct RuleCompiler {
    memory: Mutex<HashMap<PartHash, (u64, Outcome)>>,
    generation: std::sync::atomic::AtomicU64,
}

type Outcome = Result<Arc<CompiledRules>, Arc<Vec<Diagnostic>>>;

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

impl RuleCompiler {
    /// Compiles a composition.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, each with its place.
    pub fn compile(&self, elements: &[Element], crs: &Crs) -> Result<Arc<CompiledRules>, Vec<FieldProblem>> {
        let sources = sources(elements, crs)?;
        match self.remembered(&sources) {
            Ok(rules) => Ok(rules),
            Err(diagnostics) => Err(diagnostics.iter().map(|diagnostic| problem(diagnostic, elements)).collect()),
        }
    }

    /// Forgets what was not asked for since the last call: what no entity holds any more.
    pub fn forget_unused(&self) {
        let generation = self.generation.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.retain(|_, (used, _)| *used >= generation);
    }

    fn remembered(&self, sources: &[Source]) -> Outcome {
        let generation = self.generation.load(std::sync::atomic::Ordering::Relaxed);
        let key = fingerprint(sources);
        if let Some((used, outcome)) = self.memory.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&key) {
            *used = generation;
            return outcome.clone();
        }
        let outcome = match seclang::compile(sources, presets::data_files()) {
            Ok(program) => {
                let rules = program.rule_count();
                let program = program.encode();
                Ok(Arc::new(CompiledRules { hash: content_hash(&program), program, rules }))
            }
            Err(diagnostics) => Err(Arc::new(diagnostics)),
        };
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (generation, outcome.clone()));
        outcome
    }
}

/// What holds before any rule of a user is read: rules that a user writes are meant to run, on bodies as well.
const BASE: &str = "SecRuleEngine On\nSecRequestBodyAccess On\nSecResponseBodyAccess On\n";

/// The composition of a WAF config: its rulesets in order, its own rules, and what its fields say to the engine.
#[must_use]
pub fn elements(config: &Item<WafConfig>, set: &EntitySet) -> Vec<Element> {
    let rulesets = config.rulesets.iter().filter_map(|id| set.get::<WafRuleset>(id)).filter(|ruleset| ruleset.enabled);
    let of_rulesets = rulesets.flat_map(|ruleset| {
        let name = if ruleset.head.name.is_empty() { &ruleset.head.id } else { &ruleset.head.name };
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
    let mut text = format!(
        "SecRequestBodyLimit {}\nSecResponseBodyLimit {}\n",
        config.input_body_limit.unwrap_or(WafConfig::DEFAULT_BODY_LIMIT),
        config.output_body_limit.unwrap_or(WafConfig::DEFAULT_BODY_LIMIT),
    );
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

/// The sources in loading order. Options of the core rule set come first of all, and only where it is imported.
fn sources(elements: &[Element], crs: &Crs) -> Result<Vec<Source>, Vec<FieldProblem>> {
    let mut sources = vec![Source { origin: "defaults".to_owned(), text: BASE.as_bytes().to_vec() }];
    let mut problems = Vec::new();
    let mut imports_crs = false;
    for element in elements {
        let mut own = String::new();
        for line in element.text.split_inclusive('\n') {
            let Some(name) = line.trim().strip_prefix("@import_preset") else {
                own.push_str(line);
                continue;
            };
            let name = name.trim();
            match presets::by_name(name) {
                Some(preset) => {
                    flush(&mut sources, element, &mut own);
                    imports_crs |= name == "crs";
                    sources.extend(preset.sources());
                }
                None => problems.push(unknown_preset(name, element)),
            }
            // The line stays as an empty one, so that the lines behind it keep their numbers.
            own.push('\n');
        }
        flush(&mut sources, element, &mut own);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if let Some(options) = crs_options(crs).filter(|_| imports_crs) {
        sources.insert(0, Source { origin: "crs options".to_owned(), text: options.into_bytes() });
    }
    Ok(sources)
}

fn flush(sources: &mut Vec<Source>, element: &Element, own: &mut String) {
    if !own.trim().is_empty() {
        sources.push(Source { origin: element.origin.clone(), text: own.clone().into_bytes() });
    }
    *own = "\n".repeat(own.matches('\n').count());
}

fn unknown_preset(name: &str, element: &Element) -> FieldProblem {
    let suggestion =
        did_you_mean(name, presets::NAMES).map_or(String::new(), |known| format!("; did you mean `{known}`?"));
    let message = format!("{}: there is no preset `{name}`{suggestion}", element.origin);
    FieldProblem::new(element.pointer.clone().unwrap_or_default(), message)
        .expected(format!("one of {}", presets::NAMES.join(", ")))
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
    // Releases before 4 know the blocking level by another name.
    let older = (crs.paranoia_level != 0).then(|| format!("setvar:'tx.paranoia_level={}'", crs.paranoia_level));
    let settings: Vec<String> = settings.into_iter().chain(older).collect();
    (!settings.is_empty())
        .then(|| format!("SecAction \"id:900001,phase:1,pass,nolog,t:none,{}\"\n", settings.join(",")))
}

fn problem(diagnostic: &Diagnostic, elements: &[Element]) -> FieldProblem {
    let element = elements.iter().find(|element| element.origin == diagnostic.origin);
    let pointer = element.and_then(|element| element.pointer.clone()).unwrap_or_default();
    FieldProblem::new(pointer, diagnostic.to_string())
}

fn fingerprint(sources: &[Source]) -> PartHash {
    let mut bytes = Vec::new();
    for source in sources {
        for field in [source.origin.as_bytes(), &source.text] {
            bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            bytes.extend_from_slice(field);
        }
    }
    content_hash(&bytes)
}
