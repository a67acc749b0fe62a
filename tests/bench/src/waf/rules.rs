//! One rule set for all engines.

use std::fs;
use std::path::{Path, PathBuf};

use seclang::{ENGINE_CONF, Source};
use waf::WafStep;

use ftw::rules::{CrsFiles, inspecting_step, program, waf_snapshot};

/// What goes behind the rules. Transactions with many arguments are to be evaluated, not refused for their number.
const LAST: &str = "\
SecRuleEngine On
SecAuditEngine Off
SecArgumentsLimit 100000
SecRuleRemoveById 200007
";

/// A rule set in the forms that the engines take.
#[derive(Debug, Clone)]
pub struct RuleSet {
    /// The encoded program, for the engine linked in.
    pub program: Vec<u8>,
    /// The snapshot of filter `waf` in its envelope.
    pub snapshot: Vec<u8>,
    /// The files in their order, for libmodsecurity.
    pub files: Vec<PathBuf>,
    /// How many rules there are.
    pub rules: usize,
}

/// Compiles the core rule set in a folder (`rules/` and `crs-setup.conf`, or its example) at a paranoia level, 1 to 4.
/// What the engine is configured by is written into the folder `out`, for engines that read files.
///
/// # Errors
///
/// A file that cannot be read or written, or every diagnostic of the compiler.
pub fn compile(crs: &Path, paranoia: u8, out: &Path) -> Result<RuleSet, String> {
    let found = CrsFiles::find(crs)?;
    let level = level(paranoia);
    let mut sources = found.sources(Source::new("paranoia.conf", level.as_str()))?;
    sources.push(Source::new("last.conf", LAST));
    let program = program(sources, crs.join("rules"))?;

    let write = |name: String, text: &str| {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok::<_, String>(path)
    };
    let mut files = vec![write("engine.conf".into(), ENGINE_CONF)?, found.setup];
    files.push(write(format!("paranoia-{paranoia}.conf"), &level)?);
    files.extend(found.rules);
    files.push(write("last.conf".into(), LAST)?);

    let encoded = program.encode();
    Ok(RuleSet { snapshot: snapshot(&encoded), files, rules: program.rule_count(), program: encoded })
}

/// A snapshot of the same rules with others behind them, and with another step.
///
/// # Errors
///
/// A file that cannot be read, or every diagnostic of the compiler.
pub fn snapshot_with(
    crs: &Path,
    paranoia: u8,
    more: &str,
    change: impl FnOnce(WafStep) -> WafStep,
) -> Result<Vec<u8>, String> {
    let mut sources = CrsFiles::find(crs)?.sources(Source::new("paranoia.conf", level(paranoia)))?;
    sources.push(Source::new("last.conf", format!("{LAST}{more}")));
    let program = program(sources, crs.join("rules"))?.encode();
    Ok(waf_snapshot(&program, change(blocking_step())))
}

/// A snapshot without any rule: what is left is what everything around the engine costs.
///
/// # Errors
///
/// Every diagnostic of the compiler.
pub fn without_rules() -> Result<Vec<u8>, String> {
    let rules = "SecRuleRemoveById 1-999999\n";
    Ok(snapshot(&program(vec![Source::new("none.conf", rules)], PathBuf::new())?.encode()))
}

fn level(paranoia: u8) -> String {
    format!(
        "SecAction \"id:900000,phase:1,nolog,pass,t:none,setvar:tx.blocking_paranoia_level={paranoia},\
         setvar:tx.paranoia_level={paranoia}\"\n"
    )
}

/// The step as a blocking WAF config of the control plane is compiled.
fn blocking_step() -> WafStep {
    WafStep { block: true, contribute: true, block_weight: 50.0, match_weight: 20.0, ..inspecting_step("bench") }
}

fn snapshot(program: &[u8]) -> Vec<u8> {
    waf_snapshot(program, blocking_step())
}
