//! `palisade-replay`: traffic and rule tests through the filters, with and without a gateway.

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use differential::command::Differential;

#[derive(Parser)]
#[command(name = "palisade-replay", version, about = "Traffic and rule tests through the filters")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    supervised: cli::Supervised,
}

#[derive(Subcommand)]
enum Command {
    /// Run recorded traffic and tell what the filters make of it
    Run(Box<cli::Run>),
    /// Compare two runs, or what two snapshots make of the same traffic
    Diff(Box<cli::Compare>),
    /// Turn traces and access logs into a recording without secrets
    Record(cli::Record),
    /// Run the regression suite of the OWASP Core Rule Set
    Ftw(cli::Ftw),
    /// Run requests of good intent against a core rule set that blocks
    Benign(cli::Benign),
    /// Compare the rule engine with libmodsecurity on generated exchanges
    Differential(Differential),
}

fn main() -> ExitCode {
    let Arguments { command, supervised } = Arguments::parse();
    if let Err(error) = supervised.begin() {
        eprintln!("palisade-replay: {error}");
        return ExitCode::from(2);
    }
    let outcome = match command {
        Command::Run(arguments) => cli::run(&arguments),
        Command::Diff(arguments) => cli::diff(&arguments),
        Command::Record(arguments) => cli::record(&arguments),
        Command::Ftw(arguments) => cli::ftw(&arguments),
        Command::Benign(arguments) => cli::benign(&arguments),
        Command::Differential(arguments) => differential::command::run(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("palisade-replay: {error}");
            ExitCode::from(2)
        }
    }
}
