//! `palisade-replay benign`

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use ftw::corpus::{Corpus, Verdict};
use ftw::rules::{Setup, compile_crs};
use serde_json::json;

use super::engines::Engines;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Benign {
    /// The requests: a folder of YAML files and their clients.yaml
    #[arg(long, default_value = "tests/corpus/benign", value_name = "DIR")]
    corpus: PathBuf,
    /// The rule set: a folder with rules/ and crs-setup.conf (or crs-setup.conf.example)
    #[arg(long, env = "PALISADE_CRS_DIR", value_name = "DIR")]
    crs: PathBuf,
    #[command(flatten)]
    engines: Engines,
    /// The paranoia level at which it blocks
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    paranoia: u8,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Whether only those were denied that are known to be.
pub(crate) fn benign(arguments: &Benign) -> Result<bool, String> {
    let corpus = Corpus::read(&arguments.corpus)?;
    let compiled = compile_crs(&arguments.crs, Setup::Default(arguments.paranoia))?;
    let runs = arguments.engines.each(&compiled.snapshot, |engine| (engine.name(), corpus.run(engine)))?;
    let mut fine = true;
    let mut out = std::io::stdout().lock();
    for (engine, verdicts) in runs {
        let denied: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.denied).collect();
        let surprises: Vec<&&Verdict> = denied.iter().filter(|verdict| !verdict.is_known()).collect();
        let mut rules: BTreeMap<u64, usize> = BTreeMap::new();
        denied.iter().flat_map(|verdict| &verdict.ids).for_each(|id| *rules.entry(*id).or_default() += 1);
        fine &= surprises.is_empty();
        let written = if arguments.json {
            let entry =
                |verdict: &&Verdict| json!({ "request": verdict.name, "status": verdict.status, "ids": verdict.ids });
            let document = json!({
                "engine": engine,
                "paranoia": arguments.paranoia,
                "ran": verdicts.len(),
                "denied": denied.iter().map(entry).collect::<Vec<_>>(),
                "known": denied.len() - surprises.len(),
                "rules": rules.iter().map(|(id, count)| (id.to_string(), json!(count))).collect::<serde_json::Map<_, _>>(),
            });
            writeln!(out, "{document:#}")
        } else {
            denied
                .iter()
                .try_for_each(|verdict| {
                    let known = if verdict.is_known() { ", known" } else { "" };
                    writeln!(out, "denied {} with {} by {:?}{known}", verdict.name, verdict.status, verdict.ids)
                })
                .and_then(|()| {
                    let (ran, count, surprises) = (verdicts.len(), denied.len(), surprises.len());
                    let level = arguments.paranoia;
                    writeln!(
                        out,
                        "{engine} at paranoia {level}: {ran} requests, {count} denied, {surprises} of them not known"
                    )
                })
        };
        written.map_err(|error| format!("standard output: {error}"))?;
    }
    Ok(fine)
}
