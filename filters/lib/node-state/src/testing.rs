//! Workers that interleave in a reproducible order: each access to shared data is one step, and a seed says whose step is next.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Condvar, Mutex};

use crate::{Conflict, SharedData, WorkerMemory};

/// A generator of numbers that is the same in every run (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

struct Node {
    values: HashMap<String, (Vec<u8>, u32)>,
    /// As in a gateway, one number for all writes.
    writes: u32,
    random: Random,
    steps: u64,
    /// The worker whose step is next, and those that still run.
    turn: usize,
    running: Vec<bool>,
}

impl Node {
    fn pass_on(&mut self) {
        let running: Vec<usize> = (0..self.running.len()).filter(|worker| self.running[*worker]).collect();
        if !running.is_empty() {
            self.turn = running[self.random.below(running.len() as u64) as usize];
        }
    }
}

/// The shared data as one of several workers sees it.
pub(crate) struct Scheduled<'a> {
    node: &'a Mutex<Node>,
    turns: &'a Condvar,
    worker: usize,
    memory: Rc<WorkerMemory>,
    random: Cell<u64>,
}

impl Scheduled<'_> {
    /// How many steps all workers have made: a clock that all of them share.
    pub(crate) fn clock(&self) -> u64 {
        self.step(|node| node.steps)
    }

    fn step<R>(&self, run: impl FnOnce(&mut Node) -> R) -> R {
        let mut node = self.turns.wait_while(self.node.lock().unwrap(), |node| node.turn != self.worker).unwrap();
        node.steps += 1;
        let result = run(&mut node);
        node.pass_on();
        self.turns.notify_all();
        result
    }
}

impl Drop for Scheduled<'_> {
    /// The end of a worker is a step as well, also the end of one that failed: the order is the same in every run.
    fn drop(&mut self) {
        let worker = self.worker;
        self.step(|node| node.running[worker] = false);
    }
}

impl SharedData for Scheduled<'_> {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.step(|node| node.values.get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8], token: Option<u32>) -> Result<(), Conflict> {
        self.step(|node| {
            if let (Some(token), Some((_, held))) = (token, node.values.get(key))
                && token != *held
            {
                return Err(Conflict);
            }
            node.writes += 1;
            node.values.insert(key.to_owned(), (value.to_vec(), node.writes));
            Ok(())
        })
    }

    fn memory(&self) -> Rc<WorkerMemory> {
        Rc::clone(&self.memory)
    }

    fn random(&self) -> u64 {
        let mut random = Random(self.random.get());
        let number = random.next();
        self.random.set(random.0);
        number
    }
}

/// Runs a number of workers on one node, each in `run` with its number, and returns their results.
pub(crate) fn run<R: Send>(seed: u64, workers: usize, run: impl Fn(&Scheduled<'_>, usize) -> R + Sync) -> Vec<R> {
    let node = Mutex::new(Node {
        values: HashMap::new(),
        writes: 0,
        random: Random(seed),
        steps: 0,
        turn: 0,
        running: vec![true; workers],
    });
    let turns = Condvar::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|worker| {
                let (node, turns, run) = (&node, &turns, &run);
                scope.spawn(move || {
                    let data = Scheduled {
                        node,
                        turns,
                        worker,
                        memory: Rc::default(),
                        random: Cell::new(seed.wrapping_add(worker as u64)),
                    };
                    run(&data, worker)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a worker's test failed")).collect()
    })
}
