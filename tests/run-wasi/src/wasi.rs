//! The calls of `wasi_snapshot_preview1` that a test program makes: arguments, environment, clocks, random bytes, standard input and output.
//! There are no files: each call about one says that the descriptor is bad.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasmtime::{Caller, Linker};

const SUCCESS: i32 = 0;
const BAD_DESCRIPTOR: i32 = 8;
const INVALID: i32 = 28;
const IO: i32 = 29;
const NOT_A_FILE: i32 = 70;

/// The type of a descriptor that is a terminal or a pipe.
const CHARACTER_DEVICE: u8 = 2;

type Call<'a> = Caller<'a, Process>;
type Answer = wasmtime::Result<i32>;

/// What a program is told of its process.
#[derive(Debug)]
pub(crate) struct Process {
    arguments: Vec<String>,
    /// `NAME=value`.
    environment: Vec<String>,
    started: Instant,
}

/// The program ended itself.
#[derive(Debug)]
pub(crate) struct Exit(pub(crate) i32);

impl Process {
    pub(crate) fn new(arguments: Vec<String>, environment: Vec<String>) -> Self {
        Self { arguments, environment, started: Instant::now() }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program ended with exit code {}", self.0)
    }
}

impl std::error::Error for Exit {}

/// Adds the calls to what a program may import.
pub(crate) fn link(linker: &mut Linker<Process>) -> wasmtime::Result<()> {
    let module = "wasi_snapshot_preview1";
    linker
        .func_wrap(module, "args_sizes_get", |mut call: Call<'_>, count: u32, size: u32| {
            let list = call.data().arguments.clone();
            sizes(&mut call, &list, count, size)
        })?
        .func_wrap(module, "args_get", |mut call: Call<'_>, at: u32, text: u32| {
            let list = call.data().arguments.clone();
            strings(&mut call, &list, at, text)
        })?
        .func_wrap(module, "environ_sizes_get", |mut call: Call<'_>, count: u32, size: u32| {
            let list = call.data().environment.clone();
            sizes(&mut call, &list, count, size)
        })?
        .func_wrap(module, "environ_get", |mut call: Call<'_>, at: u32, text: u32| {
            let list = call.data().environment.clone();
            strings(&mut call, &list, at, text)
        })?
        .func_wrap(module, "clock_time_get", clock_time)?
        .func_wrap(module, "random_get", random)?
        .func_wrap(module, "sched_yield", || SUCCESS)?
        .func_wrap(module, "proc_exit", |code: i32| -> wasmtime::Result<()> { Err(wasmtime::Error::new(Exit(code))) })?
        .func_wrap(module, "fd_write", standard_output)?
        .func_wrap(module, "fd_fdstat_get", |mut call: Call<'_>, fd: u32, out: u32| -> Answer {
            if fd > 2 {
                return Ok(BAD_DESCRIPTOR);
            }
            let mut stat = [0_u8; 24];
            stat[0] = CHARACTER_DEVICE;
            write(&mut call, out, &stat)
        })?
        .func_wrap(module, "fd_read", standard_input)?
        .func_wrap(
            module,
            "fd_seek",
            |fd: u32, _: i64, _: u32, _: u32| if fd > 2 { BAD_DESCRIPTOR } else { NOT_A_FILE },
        )?
        .func_wrap(module, "fd_close", |_: u32| BAD_DESCRIPTOR)?
        .func_wrap(module, "fd_filestat_get", |_: u32, _: u32| BAD_DESCRIPTOR)?
        .func_wrap(module, "fd_prestat_get", |_: u32, _: u32| BAD_DESCRIPTOR)?
        .func_wrap(module, "fd_prestat_dir_name", |_: u32, _: u32, _: u32| BAD_DESCRIPTOR)?
        .func_wrap(module, "fd_readdir", |_: u32, _: u32, _: u32, _: u64, _: u32| BAD_DESCRIPTOR)?
        .func_wrap(module, "path_filestat_get", |_: u32, _: u32, _: u32, _: u32, _: u32| BAD_DESCRIPTOR)?
        .func_wrap(module, "path_open", |_: u32, _: u32, _: u32, _: u32, _: u32, _: u64, _: u64, _: u32, _: u32| {
            BAD_DESCRIPTOR
        })?;
    Ok(())
}

/// How many strings there are, and their bytes, each with a zero behind it.
fn sizes(call: &mut Call<'_>, list: &[String], count: u32, size: u32) -> Answer {
    write(call, count, &length(list.len()).to_le_bytes())?;
    write(call, size, &length(list.iter().map(|text| text.len() + 1).sum()).to_le_bytes())
}

/// Writes strings, and the places where they begin.
fn strings(call: &mut Call<'_>, list: &[String], mut at: u32, mut text: u32) -> Answer {
    for string in list {
        write(call, at, &text.to_le_bytes())?;
        write(call, text, string.as_bytes())?;
        at += 4;
        text += length(string.len());
        write(call, text, &[0])?;
        text += 1;
    }
    Ok(SUCCESS)
}

fn clock_time(mut call: Call<'_>, clock: u32, _precision: u64, out: u32) -> Answer {
    let now = match clock {
        0 => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO),
        1 => call.data().started.elapsed(),
        _ => return Ok(INVALID),
    };
    write(&mut call, out, &u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).to_le_bytes())
}

fn random(mut call: Call<'_>, at: u32, size: u32) -> Answer {
    let mut bytes = vec![0; size as usize];
    // Each hasher has new keys.
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&RandomState::new().hash_one(0).to_le_bytes()[..chunk.len()]);
    }
    write(&mut call, at, &bytes)
}

fn standard_output(mut call: Call<'_>, fd: u32, vectors: u32, count: u32, out: u32) -> Answer {
    let mut text = Vec::new();
    for vector in 0..count {
        let (at, size) = (word(&mut call, vectors + 8 * vector)?, word(&mut call, vectors + 8 * vector + 4)?);
        text.extend(read(&mut call, at, size)?);
    }
    let written = match fd {
        1 => io::stdout().write_all(&text).and_then(|()| io::stdout().flush()),
        2 => io::stderr().write_all(&text),
        _ => return Ok(BAD_DESCRIPTOR),
    };
    if written.is_err() {
        return Ok(IO);
    }
    write(&mut call, out, &length(text.len()).to_le_bytes())
}

/// Fills the first of the vectors, which is what a read may do.
fn standard_input(mut call: Call<'_>, fd: u32, vectors: u32, count: u32, out: u32) -> Answer {
    if fd != 0 {
        return Ok(BAD_DESCRIPTOR);
    }
    let (at, size) = if count > 0 { (word(&mut call, vectors)?, word(&mut call, vectors + 4)?) } else { (0, 0) };
    let mut bytes = vec![0; size as usize];
    let Ok(taken) = io::stdin().read(&mut bytes) else { return Ok(IO) };
    write(&mut call, at, bytes.get(..taken).unwrap_or_default())?;
    write(&mut call, out, &length(taken).to_le_bytes())
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn word(call: &mut Call<'_>, at: u32) -> wasmtime::Result<u32> {
    let mut word = [0; 4];
    word.copy_from_slice(&read(call, at, 4)?);
    Ok(u32::from_le_bytes(word))
}

fn read(call: &mut Call<'_>, at: u32, size: u32) -> wasmtime::Result<Vec<u8>> {
    let mut bytes = vec![0; size as usize];
    memory(call)?.read(call, at as usize, &mut bytes)?;
    Ok(bytes)
}

fn write(call: &mut Call<'_>, at: u32, bytes: &[u8]) -> Answer {
    memory(call)?.write(call, at as usize, bytes)?;
    Ok(SUCCESS)
}

fn memory(call: &mut Call<'_>) -> wasmtime::Result<wasmtime::Memory> {
    let memory = call.get_export("memory").and_then(wasmtime::Extern::into_memory);
    memory.ok_or_else(|| wasmtime::Error::msg("the program exports no memory"))
}
