//! The core rule set for tests: that of `PALISADE_CRS_DIR`, or of `.cache/crs` at the root of the repository
//! (`make crs`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use seclang::{DataFiles, ENGINE_CONF, Engine, Source};

/// The data files of a folder.
pub(crate) struct Folder(pub(crate) PathBuf);

impl DataFiles for Folder {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(name)).ok()
    }
}

/// Where the core rule set lies.
fn root() -> PathBuf {
    let cached = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.cache/crs");
    std::env::var_os("PALISADE_CRS_DIR").map_or(cached, Into::into)
}

/// The engine's own settings, the setup of the rule set, an operator's directives, and the rules in their order.
pub(crate) fn sources(directives: &str) -> Vec<Source> {
    let crs = root();
    let read = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let setup = ["crs-setup.conf.example", "crs-setup.conf"].map(|name| crs.join(name));
    let setup = setup.iter().find(|path| path.exists()).expect("the core rule set: make crs");
    let mut sources = vec![
        Source::new("engine.conf", ENGINE_CONF),
        Source::new("crs-setup.conf", read(setup)),
        Source::new("own.conf", directives),
    ];
    let entries = std::fs::read_dir(crs.join("rules")).expect("the folder of the rules");
    let mut rules: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    rules.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
    rules.sort();
    sources.extend(rules.iter().map(|path| Source::new(path.file_name().unwrap().to_string_lossy(), read(path))));
    sources
}

/// The data files of the core rule set.
pub(crate) fn files() -> Folder {
    Folder(root().join("rules"))
}

/// The core rule set behind directives of an operator.
pub(crate) fn engine(directives: &str) -> Arc<Engine> {
    let program = seclang::compile(&sources(directives), &files()).unwrap_or_else(|errors| panic!("{}", errors[0]));
    Arc::new(Engine::new(program).expect("an engine"))
}

/// Directives for a paranoia level at which the rules only detect: so all of them run.
pub(crate) fn detection(level: u8) -> String {
    let levels = ["blocking_paranoia_level", "detection_paranoia_level"];
    let levels = levels.map(|name| format!("setvar:tx.{name}={level}")).join(",");
    format!("SecRuleEngine DetectionOnly\nSecAction \"id:1,phase:1,nolog,pass,{levels}\"")
}
