//! The `palisade` command.

use std::process::ExitCode;

/// Events are read on one thread and freed on another, thousands a second: the system's allocator keeps far more memory than is in use,
/// and takes half of the processor time.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    palisade::cli::main()
}
