//! Whatever stands in a file: reading ends, and does not panic.

use std::io::Cursor;
use std::path::Path;

use recording::mask::{Mask, Secrets};
use recording::{Options, Recording};

/// More entries than any fixture could have.
const MANY: usize = 2_000;

fn read(name: &str, bytes: &[u8], mask: &Mask) {
    let options = Options { entry_limit: 1 << 20, ..Options::default() };
    let mut count = 0;
    for entry in Recording::of(name, Cursor::new(bytes.to_vec()), &options) {
        count += 1;
        assert!(count < MANY, "{name} has no end");
        match entry {
            Ok(mut entry) => mask.apply(&mut entry),
            Err(bad) => assert!(!bad.why.is_empty()),
        }
    }
}

fn mask() -> Mask {
    let field = || ["password".to_owned(), "price".to_owned(), "x".to_owned()].into();
    Mask::with_key(Secrets { query: field(), form: field(), json: field(), ..Secrets::default() }, [7; 32])
}

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut fixtures: Vec<_> = files
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect();
    fixtures.sort();
    assert!(fixtures.len() >= 9);
    fixtures
}

#[test]
fn files_that_are_cut_anywhere() {
    let mask = mask();
    for (name, bytes) in fixtures() {
        for end in 0..bytes.len() {
            read(&name, &bytes[..end], &mask);
        }
    }
}

#[test]
fn files_with_bytes_that_are_others() {
    let mask = mask();
    let mut seed = 1_u64;
    for (name, bytes) in fixtures() {
        for at in 0..bytes.len() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            for byte in [bytes[at] ^ 1 << (seed >> 60 & 7), [b'"', b'{', b'}', 0xff, 0][at % 5]] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                read(&name, &changed, &mask);
            }
        }
    }
}

#[test]
fn files_that_are_noise() {
    let mask = mask();
    let mut seed = 2_u64;
    for name in ["x.har", "x.jsonl", "x.http", "x.pb", "x.pb_length_delimited", "x.gz", "x"] {
        for length in 0..400 {
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    seed.to_be_bytes()[0]
                })
                .collect();
            read(name, &bytes, &mask);
        }
    }
}
