//! The `palisade` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    palisade::cli::main()
}
