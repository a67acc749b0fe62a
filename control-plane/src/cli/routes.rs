//! `palisade routes import`: what an Envoy checks on routes, from its configuration.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;

use super::apply::{Color, Step, carry_out};
use super::error::CliError;
use super::output::say;
use super::target::{Outcome, Planned, PlannedChange, Target, TargetArgs};
use credentials::envoy::{self, MAX_BYTES};
use credentials::{RouteAction, RouteChange};
use entities::{Entity as _, Kind, Route, registry};

/// `palisade routes`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum RoutesCommand {
    /// Note on routes which of an Envoy's filters check credentials there; shows the differences.
    ///
    /// The file is a bootstrap, a listener, a file of `resources`, or the output of `config_dump`, as JSON or YAML. Exits with 0 on
    /// success, with 1 if --dry-run finds differences, with 2 after an error.
    Import(ImportCommand),
}

/// `palisade routes import`.
#[derive(Debug, clap::Args)]
pub(super) struct ImportCommand {
    /// The configuration of the Envoy; `-` reads standard input.
    file: PathBuf,

    /// Only the listener of this name.
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,

    #[command(flatten)]
    target: TargetArgs,

    /// Show and check the differences, and change nothing.
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON document instead of lines.
    #[arg(long)]
    json: bool,

    /// Whether the differences are coloured; by default on a terminal if NO_COLOR is not set.
    #[arg(long, value_enum, default_value = "auto")]
    color: Color,
}

impl RoutesCommand {
    pub(super) async fn run(self) -> Result<ExitCode, CliError> {
        let RoutesCommand::Import(command) = self;
        command.run().await
    }
}

impl ImportCommand {
    async fn run(self) -> Result<ExitCode, CliError> {
        let place = self.file.display().to_string();
        let bytes = read(&self.file)?;
        let imported = envoy::read(&bytes, self.listener.as_deref())
            .map_err(|error| CliError::Other(format!("{place}: {error}")))?;
        drop(bytes);
        let kind = registry::by_collection(Route::COLLECTION)
            .ok_or_else(|| CliError::Other("this release has no routes".to_owned()))?;
        let target = self.target.open().await?;
        let plan = credentials::plan(&imported, &target.list(kind).await?);
        let mut steps = Vec::with_capacity(plan.changes.len());
        for change in &plan.changes {
            steps.push(step(&target, kind, change).await?);
        }
        let outcome = if self.json {
            let answer = credentials::summary(&imported, &plan, self.dry_run);
            quietly(&target, &steps, self.dry_run, &answer).await
        } else {
            for warning in &imported.warnings {
                say(format_args!("warning: {place}: {warning}"))?;
            }
            if imported.more_warnings > 0 {
                say(format_args!("warning: {place}: and {} more", imported.more_warnings))?;
            }
            carry_out(&target, &steps, self.dry_run, self.color.is_on()).await
        };
        target.close().await?;
        outcome
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>, CliError> {
    let failed = |error| CliError::Io(format!("read {}", file.display()), error);
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if file.as_os_str() == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        std::fs::File::open(file).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    }
    Ok(bytes)
}

async fn step(target: &Target, kind: &'static Kind, change: &RouteChange) -> Result<Step, CliError> {
    let planned = match change.action {
        RouteAction::Create => PlannedChange::Create(change.value.clone()),
        RouteAction::Change => {
            let (_, revision) = target.get(kind, &change.id).await?;
            let patch = serde_json::from_value(change.patch()).map_err(|error| CliError::Other(error.to_string()))?;
            PlannedChange::Patch(patch, revision)
        }
    };
    let planned = Planned { kind, id: change.id.clone(), change: planned };
    Ok(Step { planned, file: None, differences: change.differences.clone() })
}

/// Makes the changes and prints the answer alone.
async fn quietly(target: &Target, steps: &[Step], dry_run: bool, answer: &Value) -> Result<ExitCode, CliError> {
    if !steps.is_empty() {
        let planned: Vec<&Planned> = steps.iter().map(|step| &step.planned).collect();
        let Outcome { results, .. } = target.write(&planned, dry_run).await?;
        let mut problems = Vec::new();
        for (step, result) in steps.iter().zip(&results) {
            let found = result.as_ref().err().into_iter().flatten();
            problems.extend(found.map(|problem| format!("{}: {problem}", step.name())));
        }
        if results.iter().any(Result::is_err) {
            return Err(CliError::Other(format!("{}; nothing was changed", problems.join("; "))));
        }
    }
    say(format_args!("{answer:#}"))?;
    Ok(if dry_run && !steps.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
