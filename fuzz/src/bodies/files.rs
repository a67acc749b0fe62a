//! Uploaded files: a byte of choices, the name up to the first line feed, the content. And the readers that find files in requests.

use files::json::{self, Field};
use files::{File, Findings, Policy, Reason, WORK_BYTES, Work, disposition, identify, inspect, mime};

pub fn run(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (name, content) = (&rest[..line], &rest[line..]);
    let content = content.strip_prefix(b"\n").unwrap_or(content);
    let names = [name.to_vec()];
    let policy = Policy { reject_unreadable: choice & 1 == 0, check_entries: choice & 2 != 0, ..Policy::default() };
    let complete = choice & 4 == 0;
    let file = File { names: &names, media_type: None, content, complete, length: None };
    let (mut work, mut findings) = (Work::default(), Findings::default());
    let format = inspect(&file, &policy, &mut work, &mut findings);
    assert!(work.done() <= WORK_BYTES, "{} bytes of work", work.done());
    assert!(policy.reject_unreadable || !findings.has(Reason::UnreadableArchive), "{findings:?}");
    assert_eq!(findings.list().is_empty(), findings.first().is_none());
    // The same file gives the same.
    let (mut work, mut again) = (Work::default(), Findings::default());
    assert_eq!((inspect(&file, &policy, &mut work, &mut again), &again), (format, &findings));
    let _ = identify(content);

    let readings = disposition::names(content, "filename");
    assert!(readings.len() <= 32 && readings.iter().all(|name| !name.is_empty()), "{readings:?}");
    let fields = [Field::parse("a[].b", "n").unwrap(), Field::parse("c", "").unwrap()];
    assert!(json::find(content, &fields, 5).len() <= 5);
    if let Ok(parts) = mime::parts(b"multipart/mixed; boundary=b", content, complete) {
        let total: usize = parts.iter().map(|part| part.content.len()).sum();
        assert!(total <= content.len(), "{total} bytes of {}", content.len());
    }
}
