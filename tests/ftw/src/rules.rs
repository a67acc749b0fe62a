//! The snapshot that the suite runs on.

use std::path::{Path, PathBuf};

use seclang::{DataFiles, ENGINE_CONF, Program, Source};
use snapshot::{Message as _, Part, Snapshot, Step, content_hash, seal};
use waf::WafStep;

/// The limits that the suite's tests reach; none of them is set by default.
const SUITE_LIMITS: &str = "setvar:tx.crs_validate_utf8_encoding=1,setvar:tx.arg_name_length=100,\
    setvar:tx.arg_length=400,setvar:tx.total_arg_length=64000,setvar:tx.max_num_args=255,\
    setvar:tx.max_file_size=64100,setvar:tx.combined_file_sizes=65535";

/// The most bytes of a body that are inspected: more than any test has.
const BODY_LIMIT: u64 = 4 << 20;

/// How a core rule set is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    /// As its regression suite wants it: detection only, paranoia level 4, and limits that the tests reach.
    Suite,
    /// With the suite's limits, but blocking at a paranoia level from 1 to 4, with the thresholds that are the default.
    Blocking(u8),
    /// As it comes, blocking at a paranoia level from 1 to 4.
    Default(u8),
}

/// A rule set compiled for a filter.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The snapshot in its envelope, as every engine takes it.
    pub snapshot: Vec<u8>,
    /// How many rules there are.
    pub rules: usize,
}

struct Folder(PathBuf);

impl DataFiles for Folder {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(name)).ok()
    }
}

/// The files of a core rule set in the order they are loaded in: the setup, then the rules.
#[derive(Debug, Clone)]
pub struct CrsFiles {
    /// `crs-setup.conf`, or its example.
    pub setup: PathBuf,
    /// `rules/*.conf`, by name.
    pub rules: Vec<PathBuf>,
}

impl CrsFiles {
    /// Looks for them in a folder with `rules/` and `crs-setup.conf`, or the example of one.
    ///
    /// # Errors
    ///
    /// There is no setup, or the rules cannot be listed.
    pub fn find(folder: &Path) -> Result<Self, String> {
        let setups = ["crs-setup.conf.example", "crs-setup.conf"].map(|name| folder.join(name));
        let setup = setups
            .into_iter()
            .find(|path| path.exists())
            .ok_or_else(|| format!("{} has no crs-setup.conf: give the folder of a core rule set", folder.display()))?;
        let rules = folder.join("rules");
        let listed = std::fs::read_dir(&rules).map_err(|error| format!("{}: {error}", rules.display()))?;
        let mut paths: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
        paths.sort();
        Ok(Self { setup, rules: paths })
    }

    /// Reads them, with more to set up behind the setup.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn sources(&self, setup: Source) -> Result<Vec<Source>, String> {
        let mut sources = vec![Source::new("crs-setup.conf", read(&self.setup)?), setup];
        for path in &self.rules {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            sources.push(Source::new(name, read(path)?));
        }
        Ok(sources)
    }
}

impl Setup {
    /// What is said between the rule set's own setup and its rules.
    fn directives(self) -> String {
        let level = |level| format!("setvar:tx.blocking_paranoia_level={level},setvar:tx.paranoia_level={level}");
        let actions = match self {
            Self::Suite => format!("ctl:ruleEngine=DetectionOnly,{},{SUITE_LIMITS}", level(4)),
            Self::Blocking(paranoia) => format!("{},{SUITE_LIMITS}", level(paranoia)),
            Self::Default(paranoia) => level(paranoia),
        };
        format!("SecAction \"id:900005,phase:1,nolog,pass,ctl:ruleRemoveById=910000,{actions}\"\n")
    }

    fn blocks(self) -> bool {
        self != Self::Suite
    }
}

/// Compiles a rule set with a setup. The folder has `rules/` and `crs-setup.conf`, or the example of one.
///
/// # Errors
///
/// A file that cannot be read, or every diagnostic of the compiler.
pub fn compile_crs(folder: &Path, how: Setup) -> Result<Compiled, String> {
    let sources = CrsFiles::find(folder)?.sources(Source::new("test-setup.conf", how.directives()))?;
    compile(sources, folder.join("rules"), how.blocks())
}

/// Compiles rules that need no other file. The engine's own configuration goes in front of them.
///
/// # Errors
///
/// Every diagnostic of the compiler.
pub fn compile_text(name: &str, rules: &str) -> Result<Compiled, String> {
    compile(vec![Source::new(name, rules)], PathBuf::new(), false)
}

fn compile(sources: Vec<Source>, data: PathBuf, block: bool) -> Result<Compiled, String> {
    let program = program(sources, data)?;
    let step = WafStep { block, inspect_undecodable: true, ..inspecting_step("ftw") };
    Ok(Compiled { snapshot: waf_snapshot(&program.encode(), step), rules: program.rule_count() })
}

/// A step that inspects both halves and both bodies.
#[must_use]
pub fn inspecting_step(name: &str) -> WafStep {
    WafStep {
        id: name.to_owned(),
        name: name.to_owned(),
        inspect_input_body: true,
        input_body_limit: BODY_LIMIT,
        inspect_output_body: true,
        output_body_limit: BODY_LIMIT,
        decompressed_input_body_limit: BODY_LIMIT,
        max_input_compression_ratio: 100,
        ..WafStep::default()
    }
}

/// Compiles sources behind the engine's own configuration; data files are in a folder.
///
/// # Errors
///
/// Every diagnostic of the compiler.
pub fn program(mut sources: Vec<Source>, data: PathBuf) -> Result<Program, String> {
    sources.insert(0, Source::new("engine.conf", ENGINE_CONF));
    seclang::compile(&sources, &Folder(data))
        .map_err(|diagnostics| diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"))
}

/// A snapshot for filter `waf`, in its envelope: one step that runs an encoded program on every request.
#[must_use]
pub fn waf_snapshot(program: &[u8], step: WafStep) -> Vec<u8> {
    let hash = content_hash(program).to_vec();
    let step = WafStep { program: hash.clone(), ..step };
    let step = Step { plugin: "waf".to_owned(), config: step.encode_to_vec(), ..Step::default() };
    let parts = vec![Part { hash, data: program.to_vec() }];
    let snapshot = Snapshot { filter: "waf".to_owned(), global: vec![step], parts, ..Snapshot::default() };
    seal(&snapshot).encode_to_vec()
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
