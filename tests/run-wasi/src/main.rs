//! Runs a program that was built for wasm32-wasip1: `palisade-run-wasi PROGRAM.wasm [ARGUMENT...]`.
//!
//! For unit tests, which see no folder and no network. The exit code is theirs; 101 where they trapped, which is how a test that
//! panics ends, and 2 where the program cannot be run at all.

mod wasi;

use std::env;
use std::process::ExitCode;

use wasmtime::{Engine, Linker, Module, Store};

use crate::wasi::{Exit, Process};

/// What a native test program that panics ends with.
const PANICKED: u8 = 101;
/// The program cannot be run.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(program) = arguments.first().cloned() else {
        eprintln!("palisade-run-wasi PROGRAM.wasm [ARGUMENT...]: no program is given");
        return ExitCode::from(UNUSABLE);
    };
    match run(&program, arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::from(UNUSABLE)
        }
    }
}

/// The exit code of a program.
fn run(program: &str, arguments: Vec<String>) -> wasmtime::Result<u8> {
    let engine = Engine::default();
    let module = Module::from_file(&engine, program)?;
    let mut linker = Linker::new(&engine);
    wasi::link(&mut linker)?;
    let environment = env::vars().map(|(name, value)| format!("{name}={value}")).collect();
    let mut store = Store::new(&engine, Process::new(arguments, environment));
    let start = linker.instantiate(&mut store, &module)?.get_typed_func::<(), ()>(&mut store, "_start")?;
    match start.call(&mut store, ()) {
        Ok(()) => Ok(0),
        Err(error) => match error.downcast_ref::<Exit>() {
            Some(Exit(code)) => Ok(u8::try_from(*code).unwrap_or(PANICKED)),
            None => {
                eprintln!("{error:?}");
                Ok(PANICKED)
            }
        },
    }
}
