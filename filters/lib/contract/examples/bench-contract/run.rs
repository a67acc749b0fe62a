//! The measurements. All of the input is used in each round, so that no cache holds an answer. Of several rounds the shortest time of
//! each body, and of each hundred requests, counts: others have waited for a processor that was busy with something else.

use std::hint::black_box;
use std::time::Instant;

use contract::{BodyCheck, BodyResult, Contract, Found, Head};

use crate::workload::Workload;

const ROUNDS: usize = 15;

pub(crate) fn measure(workload: &Workload) {
    println!(
        "compact form: {} bytes; {} requests, {} bodies",
        workload.image.len(),
        workload.requests.len(),
        workload.bodies.len()
    );
    let filled = fill();
    let before = memory();
    let mut loads: Vec<f64> = (0..ROUNDS).map(|_| timed(|| drop(Contract::open(&workload.image).unwrap()))).collect();
    let began = Instant::now();
    let contract = Contract::open(&workload.image).unwrap();
    println!("load: first {:.2} ms, median {:.2} ms", began.elapsed().as_secs_f64() * 1e3, median(&mut loads) * 1e3);

    // The first use of each operation: its path is found, its parameters are read, and its body, where there is one, is checked.
    let mut bodies = vec![None; workload.requests.len()];
    for (request, body) in &workload.small {
        bodies[*request] = Some(body.as_slice());
    }
    let mut first_uses = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (request, body) in workload.requests.iter().zip(&bodies) {
        let began = Instant::now();
        let operation = whole(&contract, request, *body);
        let time = began.elapsed().as_secs_f64();
        if seen.insert(operation) {
            first_uses.push((time, operation));
        }
    }
    first_uses.sort_by(|one, two| one.0.total_cmp(&two.0));
    let at = |share: f64| first_uses[((first_uses.len() - 1) as f64 * share) as usize].0 * 1e3;
    for (time, operation) in first_uses.iter().rev().take(3) {
        println!("    {:.3} ms: {}", time * 1e3, contract.label(*operation));
    }
    println!(
        "first use of {} operations: median {:.3} ms, 99 % {:.3} ms, longest {:.3} ms",
        first_uses.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );

    let find = shortest(&workload.requests, |(method, target)| {
        black_box(contract.find(method, black_box(path(target)), false));
    });
    println!("matching: {:.3} us", find * 1e6);
    let checked = shortest(&workload.requests, |request| {
        black_box(whole(&contract, request, None));
    });
    println!("matching and parameters: {:.3} us", checked * 1e6);

    let due: Vec<(u32, &[u8])> = workload
        .bodies
        .iter()
        .map(|(request, body)| (schema(&contract, &workload.requests[*request]), body.as_slice()))
        .collect();
    let mut single = vec![f64::MAX; due.len()];
    for _ in 0..ROUNDS {
        for (least, (schema, body)) in single.iter_mut().zip(&due) {
            let time = timed(|| assert_eq!(contract.check_body(*schema, black_box(body), false), BodyResult::Valid));
            *least = least.min(time);
        }
    }
    let bytes = due.iter().map(|(_, body)| body.len()).sum::<usize>() as f64 / due.len() as f64;
    let mean = single.iter().sum::<f64>() / single.len() as f64;
    let costliest = single.iter().zip(&due).max_by(|one, two| one.0.total_cmp(two.0)).unwrap();
    println!(
        "the costliest body: {:.1} us, {}",
        costliest.0 * 1e6,
        String::from_utf8_lossy(costliest.1.1).chars().take(160).collect::<String>()
    );
    single.sort_by(f64::total_cmp);
    let at = |share: f64| single[((single.len() - 1) as f64 * share) as usize] * 1e6;
    println!(
        "bodies of {bytes:.0} bytes: mean {:.1} us, median {:.1} us, 90 % {:.1} us, longest {:.1} us",
        mean * 1e6,
        at(0.5),
        at(0.9),
        at(1.0)
    );
    if let (Some(before), Some(now)) = (before, memory()) {
        println!(
            "memory: {:.1} MiB more than before, with every operation used and the bodies of this run",
            (now - before) as f64 / 1024.0 / 1024.0
        );
    }
    drop(filled);
}

fn path(target: &[u8]) -> &[u8] {
    target.split(|byte| *byte == b'?').next().unwrap()
}

fn whole(contract: &Contract, (method, target): &(Vec<u8>, Vec<u8>), body: Option<&[u8]>) -> u32 {
    let path = path(target);
    let Found::Operation(matched) = contract.find(method, path, false) else {
        panic!("{} is not found", String::from_utf8_lossy(target))
    };
    let query = target.get(path.len() + 1..).unwrap_or_default();
    let found = contract.check_parameters(&matched, &Head { query, header: &|_| None, reject_unknown: true });
    assert!(found.is_empty(), "{}: {found:?}", String::from_utf8_lossy(target));
    if let Some(body) = body
        && let BodyCheck::Json(schema) | BodyCheck::Required(Some(schema)) =
            contract.request_body(matched.operation, Some(b"application/json"), true)
    {
        assert_eq!(contract.check_body(schema, body, false), BodyResult::Valid);
    }
    matched.operation
}

fn schema(contract: &Contract, (method, target): &(Vec<u8>, Vec<u8>)) -> u32 {
    let Found::Operation(matched) = contract.find(method, path(target), false) else { panic!() };
    match contract.request_body(matched.operation, Some(b"application/json"), true) {
        BodyCheck::Json(schema) | BodyCheck::Required(Some(schema)) => schema,
        other => panic!("{other:?}"),
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

/// The time for one of many, in seconds.
fn shortest<T>(all: &[T], mut work: impl FnMut(&T)) -> f64 {
    let mut least = vec![f64::MAX; all.len().div_ceil(100)];
    for _ in 0..ROUNDS {
        for (least, some) in least.iter_mut().zip(all.chunks(100)) {
            *least = least.min(timed(|| some.iter().for_each(&mut work)));
        }
    }
    least.iter().sum::<f64>() / all.len() as f64
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Takes what is free in the VM's memory, so that all that is used from now on makes it grow.
fn fill() -> Vec<Vec<u8>> {
    let mut taken = Vec::with_capacity(1 << 16);
    for size in [1 << 20, 1 << 16, 1 << 12, 1 << 8] {
        let before = memory();
        while memory().is_some() && memory() == before {
            taken.push(vec![1; size]);
        }
    }
    taken
}

/// The bytes of the VM's memory; natively nothing.
fn memory() -> Option<usize> {
    #[cfg(target_arch = "wasm32")]
    return Some(core::arch::wasm32::memory_size(0) << 16);
    #[cfg(not(target_arch = "wasm32"))]
    None
}
