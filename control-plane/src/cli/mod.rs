//! The command line.

mod admin_key;
mod apply;
mod backup;
mod check;
mod client;
mod compile;
mod contract;
mod dial;
mod error;
mod export;
mod healthy;
mod migrate_store;
mod node_token;
mod operator;
mod output;
mod report;
mod report_text;
mod routes;
mod secret;
mod serve;
mod target;
mod told;
mod tune;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use events::EventFormat;

use crate::config::{Format, ServeConfig};
use crate::heap;

pub use error::CliError;
pub use serve::Parts;

/// Threat protection for Envoy-family gateways: the control plane.
#[derive(Debug, Parser)]
#[command(name = "palisade", version, about, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the control plane.
    Serve(Box<ServeConfig>),
    /// Ask a control plane on this machine whether it answers (`/healthz`), for health checks of containers; exits with 1 if not.
    Healthy(healthy::HealthyCommand),
    /// Create, list, expire and revoke the keys of the admin API.
    #[command(subcommand)]
    AdminKey(admin_key::AdminKeyCommand),
    /// Add, list and remove the operators of the console, and set their passwords.
    #[command(subcommand)]
    Operator(operator::OperatorCommand),
    /// Make and show the tokens that identify gateways.
    #[command(subcommand)]
    NodeToken(node_token::NodeTokenCommand),
    /// Print the index template for events in Elasticsearch or OpenSearch (`PUT _index_template/palisade-events`).
    EventsTemplate {
        /// The format of the events.
        #[arg(long, value_enum, default_value = "ecs")]
        format: Format,
    },
    /// Check the entities of a folder; prints each problem and exits with 1 if there is any.
    Check(check::CheckCommand),
    /// Replace the entities of a control plane by those of a folder, all at once; shows the differences.
    ///
    /// Exits with 0 on success, with 1 if --dry-run finds differences, with 2 after an error.
    Apply(apply::ApplyCommand),
    /// Import routes, and what checks credentials on them, from an Envoy.
    #[command(subcommand)]
    Routes(routes::RoutesCommand),
    /// Write the entities of a control plane to a folder, a file each.
    Export(export::ExportCommand),
    /// Copy the whole store into one file; works beside a running control plane.
    Backup(backup::BackupCommand),
    /// Replace the store by a backup while no control plane uses it; the old store is kept beside it.
    Restore(backup::RestoreCommand),
    /// Copy everything of a store to another, empty one: from a directory to a Redis or Valkey, or back.
    ///
    /// No control plane may use either of them meanwhile. What was written is read back and compared.
    MigrateStore(migrate_store::MigrateStoreCommand),
    /// Show what APIs are asked for, beside their contracts: calls, shadow and zombie endpoints, drift, credentials.
    ///
    /// Exits with 0, with 1 if --fail-on finds something, with 2 after an error.
    Report(report::ReportCommand),
    /// Compile the entities of a folder into the snapshot that a gateway without a control plane runs.
    Compile(compile::CompileCommand),
    /// Learn API contracts from traffic.
    #[command(subcommand)]
    Contract(contract::ContractCommand),
    /// Report what a WAF config would refuse of recorded traffic, and try the exclusions that end it.
    ///
    /// The report is that of a learning window (`learning/_report` of the console), without a gateway and a control plane.
    Tune(tune::TuneCommand),
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if matches!(cli.command, Command::Serve(_)) {
        heap::share_arenas();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(CliError::Io("start the runtime".to_owned(), error)),
    };
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Serve(config) => serve::run(*config).await,
            Command::Healthy(command) => command.run().await,
            Command::AdminKey(command) => command.run().await,
            Command::Operator(command) => command.run().await,
            Command::NodeToken(command) => command.run(),
            Command::EventsTemplate { format } => {
                output::say(format_args!("{}", EventFormat::from(format).index_template().trim_end()))
            }
            Command::Check(command) => command.run(),
            Command::Apply(command) => return Ok(code_of(command.run().await)),
            Command::Report(command) => return Ok(code_of(command.run().await)),
            Command::Routes(command) => return Ok(code_of(command.run().await)),
            Command::Backup(command) => command.run(),
            Command::Restore(command) => command.run(),
            Command::MigrateStore(command) => command.run().await,
            Command::Export(command) => command.run().await,
            Command::Compile(command) => command.run(),
            Command::Contract(command) => command.run(),
            Command::Tune(command) => command.run(),
        }
        .map(|()| ExitCode::SUCCESS)
    });
    // Who does not read our standard output holds up a thread of the runtime, and must not hold up the end of the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match outcome {
        Ok(code) => code,
        Err(error) => report(error),
    }
}

/// The exit code of a command that has one of its own for what it found: an error is 2.
fn code_of(outcome: Result<ExitCode, CliError>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        report(error);
        ExitCode::from(2)
    })
}

fn report(error: CliError) -> ExitCode {
    if !matches!(error, CliError::Reported) {
        // A closed standard error leaves nobody to tell.
        let _ = writeln!(std::io::stderr(), "palisade: {error}");
    }
    ExitCode::FAILURE
}
