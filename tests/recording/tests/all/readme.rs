//! The example in the README.

use std::io::Cursor;

use recording::{Entry, Options, Recording};

#[test]
fn the_example_is_read() {
    let readme = include_str!("../../README.md");
    let example = readme.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let input = Cursor::new(example.as_bytes().to_vec());
    let entries: Vec<Entry> = Recording::of("README.md", input, &Options::default()).map(Result::unwrap).collect();
    assert_eq!(entries.len(), 2);
    let request = &entries[0].exchange.request;
    assert_eq!((entries[0].at_millis, entries[0].status), (Some(1_772_355_600_500), Some(403)));
    assert_eq!(request.header(":authority"), Some(&b"shop.example"[..]));
    assert_eq!(request.header("x-bytes"), Some(&b"caf\xe9"[..]));
    assert_eq!((request.peer.as_str(), request.route.as_str()), ("198.51.100.9:5000", "shop"));
    assert_eq!(request.local, "198.51.100.1:443");
    assert_eq!(entries[1].exchange.request.local, "127.0.0.1:80");
    assert_eq!(entries[0].exchange.response.body, b"\xff\xff");
    assert_eq!(entries[1].exchange.request.peer, "127.0.0.1:40000");
}

#[test]
fn the_limits_are_what_the_readme_says() {
    let options = Options::default();
    assert_eq!((options.entry_limit, options.files_at_once), (32 << 20, 64));
}
