//! How the C library keeps memory: that of libraries in C alone where the control plane has an allocator of its own (see `main.rs`).

/// Lets threads share arenas of the heap, one for each core and two at least, in place of eight for each core. To be called before other
/// threads run. Where `MALLOC_ARENA_MAX` is set, that counts; other C libraries have no such arenas.
///
/// What a thread frees stays in the arena that it came from. With an arena for nearly each of the threads that wait for disks, the control plane
/// had twice the memory that it needs.
#[cfg(target_env = "gnu")]
pub(crate) fn share_arenas() {
    if std::env::var_os("MALLOC_ARENA_MAX").is_some() {
        return;
    }
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let arenas = libc::c_int::try_from(cores.max(2)).unwrap_or(libc::c_int::MAX);
    #[expect(unsafe_code, reason = "the C library is told in no other way")]
    // SAFETY: it takes two numbers and may be called at any time. Where it fails, nothing changes.
    let _done = unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) };
}

/// Does nothing: this C library has no arenas for threads.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn share_arenas() {}
