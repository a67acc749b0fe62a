//! What a VM's memory grows to.

use super::cases::Case;
use super::{NOW_MILLIS, SEED};
use proxy_host::{Module, Node, Vm};

/// How many requests there are between two readings.
pub const EVERY: usize = 10_000;
/// How often each case comes, by its name; the rest comes never. Long bodies are rare, as they are in traffic, but come.
const MIX: [(&str, usize); 8] = [
    ("get", 600),
    ("form-1k", 200),
    ("json-3k", 100),
    ("sqli", 60),
    ("args-10", 30),
    ("form-10k", 5),
    ("json-10k", 4),
    ("json-100k", 1),
];

/// Sends so many mixed requests through one VM and reads the size of its memory every ten thousand, in bytes; the first
/// reading is that before any request. Every request carries a value that no other has.
///
/// # Errors
///
/// The filter refuses the snapshot, or died.
pub fn measure(
    module: &Module,
    snapshot: &[u8],
    cases: &[Case],
    requests: usize,
    mut progress: impl FnMut(&str),
) -> Result<Vec<usize>, String> {
    let node = Node::new("bench", NOW_MILLIS, SEED);
    let mut vm = Vm::load(module, snapshot, &node).map_err(|error| error.to_string())?;
    let mut readings = vec![vm.memory_size()];
    let total: usize = MIX.iter().map(|(_, count)| count).sum();
    for number in 0..requests {
        // A step that shares no factor with the total visits every place of the mix before any comes again.
        let mut place = number * 617 % total;
        let chosen = MIX.iter().find(|(_, count)| {
            let here = place < *count;
            place = place.saturating_sub(*count);
            here
        });
        let case = chosen.and_then(|(name, _)| cases.iter().find(|case| case.name == *name));
        let Some(case) = case else { continue };
        let mut exchange = case.exchange.clone();
        if let Some((_, path)) = exchange.request.headers.iter_mut().find(|(name, _)| name == b":path") {
            let mark = if path.contains(&b'?') { '&' } else { '?' };
            path.extend_from_slice(format!("{mark}visit=n{:x}", number.wrapping_mul(0x9e37_79b9)).as_bytes());
        }
        if let Some(fault) = vm.pass(&exchange).fault {
            return Err(format!("the filter died of request {number}, {}: {}", case.name, fault.message));
        }
        if (number + 1) % EVERY == 0 {
            readings.push(vm.memory_size());
        }
        if number % 100 == 0 {
            progress(&format!("memory: {number} of {requests} requests, {} KiB", vm.memory_size() >> 10));
        }
    }
    Ok(readings)
}
