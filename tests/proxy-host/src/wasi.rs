//! The few calls of `wasi_snapshot_preview1` that a filter's standard library needs.

use wasmtime::{Caller, Linker};

use super::abi::{Answer, Refusal};
use super::calls::{read, write, write_u32};
use super::state::State;

/// Success.
const SUCCESS: i32 = 0;
/// Bad file descriptor.
const BAD_DESCRIPTOR: i32 = 8;
/// Bad address.
const FAULT: i32 = 21;

type Call<'a> = Caller<'a, State>;

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let module = "wasi_snapshot_preview1";
    linker
        .func_wrap(module, "environ_get", |_: u32, _: u32| SUCCESS)?
        .func_wrap(module, "args_get", |_: u32, _: u32| SUCCESS)?
        .func_wrap(module, "environ_sizes_get", |mut call: Call<'_>, count: u32, size: u32| {
            errno(write_u32(&mut call, count, 0).and_then(|()| write_u32(&mut call, size, 0)))
        })?
        .func_wrap(module, "args_sizes_get", |mut call: Call<'_>, count: u32, size: u32| {
            errno(write_u32(&mut call, count, 0).and_then(|()| write_u32(&mut call, size, 0)))
        })?
        .func_wrap(module, "clock_time_get", |mut call: Call<'_>, _clock: u32, _precision: u64, out: u32| {
            let now = call.data().node.now_nanos();
            errno(write(&mut call, out, &now.to_le_bytes()))
        })?
        .func_wrap(module, "random_get", |mut call: Call<'_>, at: u32, size: u32| {
            let answer = read(&mut call, at, size).and_then(|mut bytes| {
                call.data().node.random(&mut bytes);
                write(&mut call, at, &bytes)
            });
            errno(answer)
        })?
        .func_wrap(module, "fd_write", |mut call: Call<'_>, fd: u32, vectors: u32, count: u32, out: u32| {
            // Standard output is information, standard error an error, as the gateway logs them.
            let level = match fd {
                1 => 2,
                2 => 4,
                _ => return Ok(BAD_DESCRIPTOR),
            };
            errno(gather(&mut call, vectors, count).and_then(|text| {
                let written = u32::try_from(text.len()).unwrap_or(u32::MAX);
                let text = String::from_utf8_lossy(&text).trim_end().to_owned();
                call.data_mut().log(level, text);
                write_u32(&mut call, out, written)
            }))
        })?
        .func_wrap(module, "proc_exit", |code: i32| -> wasmtime::Result<()> {
            Err(wasmtime::Error::msg(format!("the filter ended itself with exit code {code}")))
        })?;
    Ok(())
}

/// The bytes of a list of places and sizes.
fn gather(call: &mut Call<'_>, vectors: u32, count: u32) -> Answer<Vec<u8>> {
    let list = read(call, vectors, count.saturating_mul(8))?;
    let mut text = Vec::new();
    for vector in list.as_chunks::<8>().0 {
        let [a, b, c, d, e, f, g, h] = *vector;
        text.extend(read(call, u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))?);
    }
    Ok(text)
}

fn errno(answer: Answer) -> wasmtime::Result<i32> {
    match answer {
        Ok(()) => Ok(SUCCESS),
        Err(Refusal::Status(_)) => Ok(FAULT),
        Err(Refusal::Trap(error)) => Err(error),
    }
}
