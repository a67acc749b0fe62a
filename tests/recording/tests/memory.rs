//! Recordings of any size are read in little memory. One test, since the memory is that of the process.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use recording::{Options, Recording};

/// Knows how much is taken, and how much it was at most.
struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it hands everything on to the system's allocator, and counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = TAKEN.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(taken, Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// `head`, then `part` so many times, then `tail`; nothing of it is ever there as a whole.
struct Repeated {
    parts: [Vec<u8>; 3],
    times: usize,
    at: (usize, usize),
}

impl Read for Repeated {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.at.0 < self.times + 2 {
            let part = match self.at.0 {
                0 => 0,
                index if index <= self.times => 1,
                _ => 2,
            };
            let rest = &self.parts[part][self.at.1..];
            let count = rest.len().min(into.len());
            if count > 0 {
                into[..count].copy_from_slice(&rest[..count]);
                self.at.1 += count;
                return Ok(count);
            }
            self.at = (self.at.0 + 1, 0);
        }
        Ok(0)
    }
}

/// Reads all of it; tells how many entries there were, how many were bad, and the memory that it took at most.
fn most(name: &str, parts: [String; 3], times: usize, limit: usize) -> (usize, usize, usize) {
    let total = parts[1].len() * times;
    assert!(total > 200 << 20, "{total} bytes are not large");
    let input = Repeated { parts: parts.map(String::into_bytes), times, at: (0, 0) };
    let options = Options { entry_limit: limit, ..Options::default() };
    let before = TAKEN.load(Relaxed);
    MOST.store(before, Relaxed);
    let (mut entries, mut bad) = (0, 0);
    for entry in Recording::of(name, input, &options) {
        match entry {
            Ok(_) => entries += 1,
            Err(_) => bad += 1,
        }
    }
    (entries, bad, MOST.load(Relaxed) - before)
}

#[test]
fn memory_does_not_grow_with_a_recording() {
    let body = "x".repeat(500_000);
    let element = format!(
        r#"{{"startedDateTime": "2026-01-01T00:00:00Z", "request": {{"method": "POST", "url": "http://a/", "headers": [], "postData": {{"text": "{body}"}}}}, "response": {{"status": 200, "headers": []}}}},"#
    );
    let last = element.trim_end_matches(',').to_owned() + "]}}";
    let head = format!("{{\"log\": {{\"pages\": [\"{}\"], \"entries\": [", "y".repeat(10 << 20));
    let (entries, bad, memory) = most("x.har", [head, element.clone(), last], 450, 32 << 20);
    assert_eq!((entries, bad), (451, 0));
    assert!(memory < 8 << 20, "an archive took {memory} bytes");

    let line = format!("{{\"request\": {{\"path\": \"/\", \"body\": \"{body}\"}}}}\n");
    let (entries, bad, memory) = most("x.jsonl", [String::new(), line, String::new()], 450, 32 << 20);
    assert_eq!((entries, bad), (450, 0));
    assert!(memory < 8 << 20, "lines took {memory} bytes");

    // One entry of 200 MB is none, and what follows it is read.
    let head = "{\"request\": {\"path\": \"/\", \"body\": \"".to_owned();
    let tail = "\"}}\n{\"request\": {\"path\": \"/\"}}\n".to_owned();
    let (entries, bad, memory) = most("x.jsonl", [head, body, tail], 450, 1 << 20);
    assert_eq!((entries, bad), (1, 1));
    assert!(memory < 8 << 20, "a long line took {memory} bytes");
}
