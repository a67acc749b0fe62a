//! The order of entries that come from many files, and how far reading is.

use std::fs;
use std::path::Path;

use recording::{Entry, Options, Recording};

fn line(at: Option<u64>, path: &str) -> String {
    let at = at.map_or_else(String::new, |at| format!("\"at\": {at}, "));
    format!("{{{at}\"request\": {{\"path\": \"{path}\"}}}}\n")
}

fn open(folder: &Path, options: &Options) -> Recording {
    recording::open(&[folder.to_owned()], options).unwrap()
}

fn paths(recording: Recording) -> Vec<String> {
    recording.map(|entry| path(&entry.unwrap())).collect()
}

fn path(entry: &Entry) -> String {
    String::from_utf8(entry.exchange.request.header(":path").unwrap().to_vec()).unwrap()
}

/// Large files are streams: they keep their own order.
fn large(entries: &[(Option<u64>, &str)]) -> String {
    let mut text: String = entries.iter().map(|(at, path)| line(*at, path)).collect();
    text.push_str(&" ".repeat(1 << 20));
    text
}

#[test]
fn small_files_come_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    // As Envoy's tap filter writes them: a file for each, and names that say nothing.
    for number in 0..300_u64 {
        let name = format!("t_{:x}.jsonl", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        fs::write(folder.path().join(name), line(Some(1_000 + number), &format!("/{number}"))).unwrap();
    }
    let expected: Vec<String> = (0..300).map(|number| format!("/{number}")).collect();
    assert_eq!(paths(open(folder.path(), &Options::default())), expected);
    // A file is not opened before its time.
    let mut recording = open(folder.path(), &Options::default());
    recording.next().unwrap().unwrap();
    let progress = recording.progress();
    assert!(progress.bytes_read * 100 < progress.bytes_total, "{progress:?}");
    // Files that do not overlap need no more than one at a time.
    let one = Options { files_at_once: 1, ..Options::default() };
    assert_eq!(paths(open(folder.path(), &one)), expected);
}

#[test]
fn large_and_small_files_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    put(
        "a.jsonl",
        large(&[(Some(10), "/a10"), (None, "/a10b"), (Some(30), "/a30"), (Some(25), "/a25"), (Some(50), "/a50")]),
    );
    put("b.jsonl", large(&[(None, "/b20a"), (Some(20), "/b20"), (Some(40), "/b40")]));
    // Small: put in order by itself; what has no time stays behind the one before.
    put("c.jsonl", [line(Some(45), "/c45"), line(None, "/c45b"), line(Some(15), "/c15")].concat());
    let expected = ["/a10", "/a10b", "/c15", "/b20a", "/b20", "/a30", "/a25", "/b40", "/c45", "/c45b", "/a50"];
    assert_eq!(paths(open(folder.path(), &Options::default())), expected);
    // With one file at a time, a file begins where the one before it ends.
    let one = Options { files_at_once: 1, ..Options::default() };
    let expected = ["/a10", "/a10b", "/a30", "/a25", "/a50", "/c15", "/c45", "/c45b", "/b20a", "/b20", "/b40"];
    assert_eq!(paths(open(folder.path(), &one)), expected);
}

#[test]
fn files_without_times_keep_their_order_and_hidden_ones_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.http", "a.http", "sub/a.http", "sub/.hidden.http", ".git/x.http"] {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("GET /{name} HTTP/1.1\r\n\r\n")).unwrap();
    }
    assert_eq!(paths(open(folder.path(), &Options::default())), ["/a.http", "/b.http", "/sub/a.http"]);
    let named: Vec<_> = ["b.http", "a.http"].iter().map(|name| folder.path().join(name)).collect();
    assert_eq!(paths(recording::open(&named, &Options::default()).unwrap()), ["/b.http", "/a.http"]);
}

#[test]
fn a_file_that_is_no_recording_is_told_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("README.md"), "# What this is").unwrap();
    fs::write(folder.path().join("x.jsonl"), line(None, "/x")).unwrap();
    std::os::unix::fs::symlink("gone", folder.path().join("y.jsonl")).unwrap();
    let entries: Vec<_> = open(folder.path(), &Options::default()).collect();
    let why: Vec<String> = entries.iter().filter_map(|entry| Some(entry.as_ref().err()?.to_string())).collect();
    assert_eq!((entries.len(), why.len()), (3, 2));
    assert!(why[0].contains("y.jsonl#0: cannot be looked at"), "{why:?}");
    assert!(why[1].contains("README.md#0: the file is of no known format"), "{why:?}");
}

#[test]
fn what_is_not_there_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let error = recording::open(&[folder.path().join("x")], &Options::default()).unwrap_err();
    assert!(error.to_string().contains("/x: cannot be read"), "{error}");
    let error = recording::open(&[folder.path().to_owned()], &Options::default()).unwrap_err();
    assert!(error.why.contains("no files"), "{error}");
}

#[test]
fn progress_ends_where_the_files_end() {
    let folder = tempfile::tempdir().unwrap();
    let text = large(&[(Some(1), "/1"), (Some(2), "/2")]);
    fs::write(folder.path().join("a.jsonl"), &text).unwrap();
    // An archive is left where its entries end.
    let har = format!("{{\"log\": {{\"entries\": [], \"x\": \"{}\"}}}}", "y".repeat(3 << 20));
    fs::write(folder.path().join("b.har"), &har).unwrap();
    let mut recording = open(folder.path(), &Options::default());
    let meter = recording.meter();
    let total = u64::try_from(text.len() + har.len()).unwrap();
    assert_eq!((meter.progress().bytes_read, meter.progress().bytes_total), (0, total));
    recording.next().unwrap().unwrap();
    assert!((1..total).contains(&meter.progress().bytes_read));
    assert_eq!(recording.by_ref().count(), 1);
    assert_eq!(meter.progress().bytes_read, total);
}
