//! What the runner makes of programs: a failure of a test must not get lost.

use std::fs;
use std::process::{Command, Output};

/// The output of a module whose `_start` is `body`, started with one argument.
fn run(name: &str, body: &str) -> Output {
    let module = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "path_open"
              (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (func (export "_start") {body}))"#
    );
    let program = std::env::temp_dir().join(format!("palisade-run-wasi-{}-{name}.wasm", std::process::id()));
    fs::write(&program, wat::parse_str(module).unwrap()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_palisade-run-wasi")).arg(&program).arg("argument").output().unwrap();
    fs::remove_file(program).unwrap();
    output
}

#[test]
fn a_program_that_returns_has_passed() {
    assert_eq!(run("returns", "").status.code(), Some(0));
}

#[test]
fn the_exit_code_is_the_programs() {
    assert_eq!(run("exit", "(call $exit (i32.const 7))").status.code(), Some(7));
    assert_eq!(run("exit-0", "(call $exit (i32.const 0))").status.code(), Some(0));
    // None that a process cannot end with reads as success.
    assert_eq!(run("exit-256", "(call $exit (i32.const 256))").status.code(), Some(101));
}

#[test]
fn a_trap_is_a_failure() {
    let output = run("trap", "unreachable");
    assert_eq!(output.status.code(), Some(101));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unreachable"));
}

#[test]
fn arguments_arrive_and_output_leaves() {
    // Two strings; the second begins where the second place says. Its eight bytes are written with one vector.
    let output = run(
        "arguments",
        "(drop (call $args_sizes (i32.const 0) (i32.const 4)))
         (if (i32.ne (i32.load (i32.const 0)) (i32.const 2)) (then unreachable))
         (drop (call $args (i32.const 16) (i32.const 1024)))
         (i32.store (i32.const 32) (i32.load (i32.const 20)))
         (i32.store (i32.const 36) (i32.const 8))
         (drop (call $write (i32.const 1) (i32.const 32) (i32.const 1) (i32.const 40)))
         (call $exit (i32.load (i32.const 40)))",
    );
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(8), b"argument".as_slice()));
}

#[test]
fn there_are_no_files() {
    let open = "(call $exit (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0)
        (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 8)))";
    assert_eq!(run("open", open).status.code(), Some(8));
}

#[test]
fn what_is_no_program_is_unusable() {
    let output = Command::new(env!("CARGO_BIN_EXE_palisade-run-wasi")).arg("/no/such.wasm").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such.wasm"));
    assert_eq!(Command::new(env!("CARGO_BIN_EXE_palisade-run-wasi")).status().unwrap().code(), Some(2));
}
