//! The snapshot that the suite runs on.

use std::path::{Path, PathBuf};

use seclang::{DataFiles, ENGINE_CONF, Source};
use snapshot::{Message as _, Part, Snapshot, Step, WafStep, content_hash, seal};

/// What the suite adds to the rule set's setup: detection only, paranoia level 4, and limits that its tests reach.
const TEST_SETUP: &str = r#"
SecAction "id:900005,phase:1,nolog,pass,ctl:ruleEngine=DetectionOnly,ctl:ruleRemoveById=910000,\
  setvar:tx.blocking_paranoia_level=4,setvar:tx.crs_validate_utf8_encoding=1,setvar:tx.arg_name_length=100,\
  setvar:tx.arg_length=400,setvar:tx.total_arg_length=64000,setvar:tx.max_num_args=255,\
  setvar:tx.max_file_size=64100,setvar:tx.combined_file_sizes=65535"
"#;

/// The most bytes of a body that are inspected: more than any test has.
const BODY_LIMIT: u64 = 4 << 20;

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

/// Compiles a rule set as the suite wants it. The folder has `rules/` and `crs-setup.conf`, or the example of one.
///
/// # Errors
///
/// A file that cannot be read, or every diagnostic of the compiler.
pub fn compile_crs(folder: &Path) -> Result<Compiled, String> {
    let setups = ["crs-setup.conf.example", "crs-setup.conf"].map(|name| folder.join(name));
    let setup = setups
        .iter()
        .find(|path| path.exists())
        .ok_or_else(|| format!("{} has no crs-setup.conf: give the folder of a core rule set", folder.display()))?;
    let rules = folder.join("rules");
    let listed = std::fs::read_dir(&rules).map_err(|error| format!("{}: {error}", rules.display()))?;
    let mut paths: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
    paths.sort();
    let mut sources = vec![Source::new("crs-setup.conf", read(setup)?), Source::new("test-setup.conf", TEST_SETUP)];
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sources.push(Source::new(name, read(&path)?));
    }
    compile(sources, rules)
}

/// Compiles rules that need no other file. The engine's own configuration goes in front of them.
///
/// # Errors
///
/// Every diagnostic of the compiler.
pub fn compile_text(name: &str, rules: &str) -> Result<Compiled, String> {
    compile(vec![Source::new(name, rules)], PathBuf::new())
}

fn compile(mut sources: Vec<Source>, data: PathBuf) -> Result<Compiled, String> {
    sources.insert(0, Source::new("engine.conf", ENGINE_CONF));
    let program = seclang::compile(&sources, &Folder(data))
        .map_err(|diagnostics| diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"))?;
    let rules = program.rule_count();
    let data = program.encode();
    let hash = content_hash(&data).to_vec();
    let step = WafStep {
        id: "ftw".to_owned(),
        name: "ftw".to_owned(),
        program: hash.clone(),
        inspect_input_body: true,
        input_body_limit: BODY_LIMIT,
        inspect_output_body: true,
        output_body_limit: BODY_LIMIT,
        decompressed_input_body_limit: BODY_LIMIT,
        max_input_compression_ratio: 100,
        inspect_undecodable: true,
        ..WafStep::default()
    };
    let step = Step { plugin: "waf".to_owned(), config: step.encode_to_vec(), ..Step::default() };
    let parts = vec![Part { hash, data }];
    let snapshot = Snapshot { filter: "waf".to_owned(), global: vec![step], parts, ..Snapshot::default() };
    Ok(Compiled { snapshot: seal(&snapshot).encode_to_vec(), rules })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
