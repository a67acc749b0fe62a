//! `palisade apply`: makes the entities of a control plane those of a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use super::error::CliError;
use super::export::without_times;
use super::output::{say, warn, warn_of_files};
use super::target::{Outcome, Planned, PlannedChange, Target, TargetArgs};
use credentials::{Difference, differences};
use entities::registry::KINDS;
use entities::{FileEntity, Kind};

/// `palisade apply`.
#[derive(Debug, clap::Args)]
pub(super) struct ApplyCommand {
    /// The folder: one entity in each .yaml, .yml or .json file.
    folder: PathBuf,

    #[command(flatten)]
    target: TargetArgs,

    /// Show and check the differences, and change nothing.
    #[arg(long)]
    dry_run: bool,

    /// Delete what is not in the folder, in those collections that the folder has entities of.
    #[arg(long)]
    prune: bool,

    /// With --prune: in every collection.
    #[arg(long, requires = "prune")]
    all: bool,

    /// With --prune: also of a folder without any entity, whose entities are all deleted with --all.
    #[arg(long, requires = "prune")]
    allow_empty: bool,

    /// Whether the differences are coloured; by default on a terminal if NO_COLOR is not set.
    #[arg(long, value_enum, default_value = "auto")]
    color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

/// One step: the change, the file that asks for it, and how it is shown.
pub(super) struct Step {
    pub(super) planned: Planned,
    pub(super) file: Option<PathBuf>,
    pub(super) differences: Vec<Difference>,
}

impl Color {
    /// Whether colours are shown.
    pub(super) fn is_on(self) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
            }
        }
    }
}

impl Step {
    /// The collection and the id.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.planned.kind.collection, self.planned.id)
    }
}

impl ApplyCommand {
    pub(super) async fn run(self) -> Result<ExitCode, CliError> {
        let files = match FileEntity::read_dir(&self.folder) {
            Ok(files) => files,
            Err(problems) => {
                for problem in &problems {
                    say(format_args!("{problem}"))?;
                }
                return Err(CliError::Other(format!("{} is not in order; nothing was changed", self.folder.display())));
            }
        };
        warn_of_files(&self.folder, !files.is_empty())?;
        if files.is_empty() && self.prune && !self.allow_empty {
            return Err(CliError::Other(format!(
                "{} has no entities, and --prune would delete what is not in it: nothing was changed; --allow-empty does it all the same",
                self.folder.display()
            )));
        }
        let colored = self.color.is_on();
        let target = self.target.open().await?;
        let steps = plan(&target, &files, self.prune, self.all).await?;
        let outcome = carry_out(&target, &steps, self.dry_run, colored).await;
        target.close().await?;
        outcome
    }
}

/// Shows the steps and takes them, all or none.
pub(super) async fn carry_out(
    target: &Target,
    steps: &[Step],
    dry_run: bool,
    colored: bool,
) -> Result<ExitCode, CliError> {
    if steps.is_empty() {
        say(format_args!("nothing to do"))?;
        return Ok(ExitCode::SUCCESS);
    }
    for step in steps {
        show(step, colored)?;
    }
    let planned: Vec<&Planned> = steps.iter().map(|step| &step.planned).collect();
    let Outcome { results, warnings } = target.write(&planned, dry_run).await?;
    let mut refused = 0;
    for (step, result) in steps.iter().zip(&results) {
        let Err(problems) = result else { continue };
        refused += problems.len();
        let place = match &step.file {
            Some(file) => file.display().to_string(),
            None => step.name(),
        };
        for problem in problems {
            say(format_args!("{place}: {problem}"))?;
        }
    }
    if refused > 0 || results.iter().any(Result::is_err) {
        let plural = if refused == 1 { "" } else { "s" };
        return Err(CliError::Other(format!("{refused} problem{plural}; nothing was changed")));
    }
    let files: BTreeMap<String, &Path> =
        steps.iter().filter_map(|step| Some((step.name(), step.file.as_deref()?))).collect();
    warn(&warnings, |name| files.get(name).copied())?;
    let count = |wanted: fn(&PlannedChange) -> bool| steps.iter().filter(|step| wanted(&step.planned.change)).count();
    let created = count(|change| matches!(change, PlannedChange::Create(_)));
    let changed = count(|change| matches!(change, PlannedChange::Patch(..)));
    let deleted = count(|change| matches!(change, PlannedChange::Delete(_)));
    if dry_run {
        say(format_args!("would create {created}, change {changed}, delete {deleted}"))?;
        return Ok(ExitCode::from(1));
    }
    say(format_args!("created {created}, changed {changed}, deleted {deleted}"))?;
    Ok(ExitCode::SUCCESS)
}

/// What must be done, in the order of the collections and ids.
async fn plan(target: &Target, files: &[FileEntity], prune: bool, all: bool) -> Result<Vec<Step>, CliError> {
    let mut steps = Vec::new();
    for kind in KINDS.iter() {
        let wanted: BTreeMap<&str, &FileEntity> = files
            .iter()
            .filter(|file| file.kind.collection == kind.collection)
            .map(|file| (file.entity.head().id.as_str(), file))
            .collect();
        let pruned = prune && kind.singleton.is_none() && (all || !wanted.is_empty());
        if wanted.is_empty() && !pruned {
            continue;
        }
        let list = target.list(kind).await?;
        let ids: BTreeSet<&str> = list.iter().filter_map(|document| document.get("id")?.as_str()).collect();
        for (id, file) in &wanted {
            // With its secrets: they are what is to be set.
            let after = without_times(file.entity.stored());
            if !ids.contains(id) {
                steps.push(Step {
                    planned: Planned { kind, id: (*id).to_owned(), change: PlannedChange::Create(after) },
                    file: Some(file.file.clone()),
                    differences: Vec::new(),
                });
                continue;
            }
            let listed = list.iter().find(|document| document.get("id").and_then(Value::as_str) == Some(id));
            if listed.is_some_and(|listed| without_times(listed.clone()) == after) {
                continue;
            }
            steps.extend(change(target, kind, id, file, after).await?);
        }
        for id in ids.into_iter().filter(|id| pruned && !wanted.contains_key(id)) {
            let (_, revision) = target.get(kind, id).await?;
            let planned = Planned { kind, id: id.to_owned(), change: PlannedChange::Delete(revision) };
            steps.push(Step { planned, file: None, differences: Vec::new() });
        }
    }
    Ok(steps)
}

async fn change(
    target: &Target,
    kind: &'static Kind,
    id: &str,
    file: &FileEntity,
    after: Value,
) -> Result<Option<Step>, CliError> {
    let (before, revision) = target.get(kind, id).await?;
    let before = without_times(before);
    let shown = without_times(file.entity.shown());
    let mut differences = differences(&before, &shown);
    if shown != after {
        // Nobody can see whether the secrets there are the same.
        differences.push(Difference {
            pointer: "secrets".to_owned(),
            before: None,
            after: Some("what the file has".to_owned()),
        });
    }
    let patch = json_patch::diff(&before, &after);
    let planned = Planned { kind, id: id.to_owned(), change: PlannedChange::Patch(patch, revision) };
    let step = Step { planned, file: Some(file.file.clone()), differences };
    Ok(Some(step).filter(|step| !step.differences.is_empty()))
}

fn show(step: &Step, colored: bool) -> Result<(), CliError> {
    let paint = |color: AnsiColor, text: &str| match colored {
        true => {
            let style = Style::new().fg_color(Some(color.into()));
            format!("{style}{text}{style:#}")
        }
        false => text.to_owned(),
    };
    let name = step.name();
    match &step.planned.change {
        PlannedChange::Create(_) => say(format_args!("{}", paint(AnsiColor::Green, &format!("+ {name}")))),
        PlannedChange::Delete(_) => say(format_args!("{}", paint(AnsiColor::Red, &format!("- {name}")))),
        PlannedChange::Patch(..) => {
            say(format_args!("{}", paint(AnsiColor::Yellow, &format!("~ {name}"))))?;
            for Difference { pointer, before, after } in &step.differences {
                let old = before.as_ref().map(|text| paint(AnsiColor::Red, text));
                let new = after.as_ref().map(|text| paint(AnsiColor::Green, text));
                match (old, new) {
                    (Some(old), Some(new)) => say(format_args!("    {pointer}: {old} -> {new}"))?,
                    (Some(old), None) => say(format_args!("    {pointer}: {old} is taken away"))?,
                    (None, Some(new)) => say(format_args!("    {pointer}: {new} is added"))?,
                    (None, None) => {}
                }
            }
            Ok(())
        }
    }
}
