//! Every format, as it comes.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use recording::traffic::Headers;
use recording::{BadEntry, Entry, Format, Options, Recording};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(name: &str) -> Vec<Result<Entry, BadEntry>> {
    recording::open(&[data(name)], &Options::default()).unwrap().collect()
}

fn of(name: &str, bytes: impl Into<Vec<u8>>) -> Vec<Result<Entry, BadEntry>> {
    Recording::of(name, Cursor::new(bytes.into()), &Options::default()).collect()
}

fn pairs(list: &[(&str, &str)]) -> Headers {
    list.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

#[test]
fn a_browsers_archive_is_what_went_over_the_network() {
    let mut recording = recording::open(&[data("chromium.har")], &Options::default()).unwrap();
    let entries: Vec<Entry> = recording.by_ref().map(Result::unwrap).collect();
    let progress = recording.progress();
    assert_eq!((progress.skipped, progress.bytes_read), (4, progress.bytes_total));
    assert_eq!(entries.iter().map(|entry| entry.place.number).collect::<Vec<_>>(), [1, 6]);
    let login = &entries[0];
    assert_eq!((login.at_millis, login.status), (Some(1_772_359_200_125), Some(302)));
    let request = &login.exchange.request;
    let expected = [
        (":method", "POST"),
        (":path", "/login?next=%2Fcart"),
        (":authority", "shop.example"),
        (":scheme", "https"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("content-length", "26"),
        ("cookie", "sid=5up3rs3cr3t; lang=de"),
    ];
    assert_eq!(request.headers, pairs(&expected));
    assert_eq!(
        (request.body.as_slice(), request.protocol.as_slice()),
        (&b"user=eve&password=hunter22"[..], &b"HTTP/2"[..])
    );
    assert_eq!(request.local, "192.0.2.7:443");
    assert_eq!(login.notes, ["the request's body has 26 bytes, 25 were announced: the length is corrected"]);
    let response = &login.exchange.response;
    let expected = [
        ("set-cookie", "sid=n3wsess10n; Path=/; HttpOnly"),
        ("set-cookie", "seen=1"),
        ("content-length", "5"),
        ("location", "/cart?token=abcdef123456"),
    ];
    assert_eq!((response.status, &response.headers, response.body.as_slice()), (302, &pairs(&expected), &b"hello"[..]));
    let live = &entries[1].exchange.request;
    let expected = [
        (":method", "GET"),
        (":path", "/live"),
        (":authority", "shop.example"),
        (":scheme", "https"),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
    ];
    assert_eq!(live.headers, pairs(&expected));
}

#[test]
fn an_element_that_is_wrong_does_not_end_an_archive() {
    let entries = read("firefox.har");
    let put = entries[0].as_ref().unwrap();
    assert_eq!((put.at_millis, put.notes.len()), (Some(1_772_359_200_001), 0));
    let expected = [
        (":method", "PUT"),
        (":path", "/items/7"),
        (":authority", "api.example:8080"),
        (":scheme", "http"),
        ("content-type", "application/json"),
        ("content-length", "14"),
    ];
    assert_eq!(put.exchange.request.headers, pairs(&expected));
    assert_eq!(put.exchange.response.headers, pairs(&[("content-type", "application/json")]));
    let bad = entries[1].as_ref().unwrap_err();
    assert_eq!(bad.place.number, 2);
    assert_eq!(bad.why, "`response.status`: invalid type: string, expected f64 (line 1 of the entry)");
    assert_eq!(entries[2].as_ref().unwrap().exchange.request.protocol, b"HTTP/3");
    assert_eq!(entries.len(), 3);
}

#[test]
fn an_archive_that_breaks_off_gives_what_is_whole() {
    let text = std::fs::read(data("firefox.har")).unwrap();
    let entries = of("x", &text[..text.len() - 100]);
    let ok: Vec<bool> = entries.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, false, false]);
    let bad = entries[2].as_ref().unwrap_err();
    assert_eq!(bad.place.number, 3);
    assert!(bad.why.contains(&format!("breaks off at byte {}", text.len() - 100)), "{bad}");
    // After the last element nothing is missing but the end of the file.
    let entries = of("x", &text[..text.len() - 4]);
    assert_eq!((entries.len(), entries[2].is_ok()), (4, true));
}

#[test]
fn a_form_is_made_from_its_parameters() {
    let har = |kind: &str, params: &str| {
        let text = format!(
            r#"{{"log": {{"entries": [{{"request": {{"method": "POST", "url": "http://a/", "headers": [],
            "postData": {{"mimeType": "{kind}", "params": {params}}}}}, "response": null}}]}}}}"#
        );
        of("x", text).remove(0).unwrap()
    };
    let entry =
        har("application/x-www-form-urlencoded", r#"[{"name": "a b", "value": "ü"}, {"name": "c", "value": "%41"}]"#);
    assert_eq!(entry.exchange.request.body, b"a+b=%C3%BC&c=%41");
    assert_eq!(entry.notes.len(), 3, "{:?}", entry.notes);
    let params = r#"[{"name": "f", "fileName": "a.txt", "contentType": "text/plain", "value": "hi"}]"#;
    let entry = har("multipart/form-data; boundary=xx", params);
    let expected = "--xx\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\ncontent-type: text/plain\r\n\r\nhi\r\n--xx--\r\n";
    assert_eq!(entry.exchange.request.body, expected.as_bytes());
}

/// What all fixtures of the tap filter have: they were recorded by an Envoy, whose routes rewrite `/rewrite`.
fn check_rewrite(entry: &Entry) {
    let request = &entry.exchange.request;
    assert_eq!(request.header(":path"), Some(&b"/rewrite/a?x=1"[..]));
    assert!(request.header(":authority").unwrap().starts_with(b"127.0.0.1:184"));
    assert_eq!(request.header("x-b"), Some(&b"v"[..]));
    assert!(request.header("x-request-id").is_some());
    assert!(request.headers.iter().all(|(name, _)| !name.starts_with(b"x-envoy")));
    assert_eq!((entry.exchange.response.body.as_slice(), entry.status), (&b"hi"[..], Some(200)));
}

fn check_big(entry: &Entry) {
    assert_eq!(entry.exchange.request.body, b"user=a&password=hunter2");
    assert_eq!(entry.exchange.request.header("content-length"), Some(&b"23"[..]));
    assert_eq!(entry.exchange.response.body.len(), 64);
    let length = entry.exchange.response.headers.iter().find(|(name, _)| name == b"content-length").unwrap();
    assert_eq!(length.1, b"64");
    assert_eq!(entry.notes[0], "the recorder cut the response's body after 64 bytes");
}

#[test]
fn buffered_traces_are_read() {
    let entries: Vec<Entry> = read("tap-buffered.json").into_iter().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 2);
    // In the order of time, not of the file.
    check_rewrite(&entries[1]);
    check_big(&entries[0]);
    for entry in &entries {
        assert!(entry.at_millis.is_some());
        assert!(entry.exchange.request.peer.starts_with("127.0.0.1:"), "{}", entry.exchange.request.peer);
        assert_ne!(entry.exchange.request.peer, "127.0.0.1:40000");
        assert!(entry.exchange.request.local.starts_with("127.0.0.1:"), "{}", entry.exchange.request.local);
        assert_ne!(entry.exchange.request.local, "127.0.0.1:80");
    }
    let single = read("tap.pb").remove(0).unwrap();
    check_rewrite(&single);
    assert_eq!((single.at_millis, single.exchange.request.peer.as_str()), (Some(1_795_296_764_408), "127.0.0.1:37180"));
}

#[test]
fn streamed_traces_are_put_together() {
    let entries: Vec<Entry> = read("tap-streamed.json").into_iter().map(Result::unwrap).collect();
    assert_eq!(entries.iter().map(|entry| entry.place.number).collect::<Vec<_>>(), [1, 2]);
    check_rewrite(&entries[0]);
    assert_eq!(entries[1].exchange.request.body, b"user=a&password=hunter2");
    assert_eq!(entries[1].exchange.response.body.len(), 64);
    let entries: Vec<Entry> = read("tap.pb_length_delimited").into_iter().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].exchange.request.body, b"user=a&password=hunter2");
    assert_eq!(entries[0].exchange.response.body.len(), 64);
}

#[test]
fn a_trace_that_is_wrong_does_not_end_a_stream() {
    let good = r#"{"http_buffered_trace": {"request": {"headers": [{"key": ":method", "value": "GET"}, {"key": ":path", "value": "/"}]}}}"#;
    let text = format!(
        "{good}\n{{\"http_buffered_trace\": {{\"request\": {{\"headers\": [{{\"key\": 5}}]}}}}}}\n{{\"socket_buffered_trace\": {{}}}}\n}}}}\n{good}"
    );
    let entries = of("x", text);
    let ok: Vec<bool> = entries.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, false, false, false, true]);
    let why: Vec<String> = entries[1..4].iter().map(|bad| bad.as_ref().unwrap_err().to_string()).collect();
    assert_eq!(
        why[0],
        "x#2: line 2: `http_buffered_trace.request.headers[0].key`: invalid type: integer, expected a string"
    );
    assert_eq!(why[1], "x#3: a trace of a socket: only traces of HTTP are read");
    assert!(why[2].starts_with("x#4: line 4: expected a value"), "{}", why[2]);
}

#[test]
fn a_trace_that_breaks_off_takes_none_with_it() {
    let trace = |path: &str| {
        let headers = format!(r#"[{{"key": ":method", "value": "GET"}}, {{"key": ":path", "value": "{path}"}}]"#);
        format!("{{\"http_buffered_trace\": {{\n \"request\": {{\"headers\": {headers}}}}}}}\n")
    };
    let (one, two, three) = (trace("/1"), trace("/2"), trace("/3"));
    // Cut within a string, and within an object.
    for cut in [two.len() - 12, two.len() - 4] {
        let entries = of("x", format!("{one}{}\n{three}", &two[..cut]));
        let ok: Vec<bool> = entries.iter().map(Result::is_ok).collect();
        assert_eq!(ok, [true, false, true]);
        let bad = entries[1].as_ref().unwrap_err();
        assert!(bad.why.starts_with("line "), "{bad}");
    }
}

#[test]
fn messages_after_their_lengths_are_skipped_where_they_are_too_long() {
    let one = std::fs::read(data("tap.pb")).unwrap();
    let length = |bytes: usize| vec![u8::try_from(bytes % 128).unwrap() | 0x80, u8::try_from(bytes / 128).unwrap()];
    let long = vec![0_u8; 5_000];
    let file = [length(one.len()), one.clone(), length(long.len()), long, length(one.len()), one].concat();
    let options = Options { entry_limit: 4_000, ..Options::default() };
    let entries: Vec<_> = Recording::of("x.pb_length_delimited", Cursor::new(file), &options).collect();
    assert_eq!(entries.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let why = "the entry has 5000 bytes, 4000 are allowed: raise the limit, or record less of the bodies";
    assert_eq!(entries[1].as_ref().unwrap_err().why, why);
    check_rewrite(entries[2].as_ref().unwrap());
}

#[test]
fn a_recording_can_be_read_on_another_thread() {
    let recording = recording::open(&[data("own.jsonl")], &Options::default()).unwrap();
    let meter = recording.meter();
    assert_eq!(std::thread::spawn(move || recording.count()).join().unwrap(), 7);
    assert_eq!(meter.progress().bytes_read, meter.progress().bytes_total);
}

#[test]
fn requests_on_the_wire_are_read() {
    let chunked = read("chunked.raw").remove(0).unwrap();
    let request = &chunked.exchange.request;
    let expected = [
        (":method", "POST"),
        (":path", "/search?q=a b"),
        (":authority", "other.example"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    assert_eq!(request.headers, pairs(&expected));
    assert_eq!((request.body.as_slice(), &request.trailers), (&b"a=1&b=2"[..], &pairs(&[("x-sum", "7")])));
    assert_eq!(request.wire, std::fs::read(data("chunked.raw")).unwrap());

    let login = read("login.http").remove(0).unwrap();
    let request = &login.exchange.request;
    assert_eq!(request.body, b"user=eve&a=1");
    assert_eq!(request.header("x-folded"), Some(&b"one two"[..]));
    assert_eq!(request.header("x-bytes"), Some(&b"caf\xe9"[..]));
    assert_eq!(request.header(":authority"), Some(&b"shop.example"[..]));
    assert_eq!(login.notes, ["line 4 continues a header; the two are joined"]);
    assert!(request.wire.is_empty(), "its lines do not end as on the wire");
}

#[test]
fn what_no_request_can_hold_is_told_with_its_line() {
    let why = |text: &str| of("x.http", text).remove(0).unwrap_err().why;
    assert_eq!(
        why("GET / HTTP/1.1\r\nno colon here: no\r\nreally none\r\n\r\n"),
        "line 3: a header needs a colon; an empty line ends the headers"
    );
    assert_eq!(why("GET / HTTP/1.1\r\n: x\r\n\r\n"), "line 2: a header needs a name before its colon");
    assert_eq!(
        why("\r\n\r\nGET\r\n"),
        "line 3: no request line: it needs a method, a target and a version, with blanks between them"
    );
    assert_eq!(why(""), "line 1: there is no request line");
    assert!(why("What to do next:\n- nothing\n").starts_with("line 1: no request line"));
    let odd = of("x.http", "GET / HTTP/1.1\r\nhost : a\r\ncontent-length: 9\r\n\r\nabc").remove(0).unwrap();
    assert_eq!((odd.notes.len(), odd.exchange.request.header("content-length")), (2, Some(&b"3"[..])));
    let old = of("x.http", "GET /?<script>\r\n").remove(0).unwrap();
    assert_eq!(old.exchange.request.protocol, b"HTTP/0.9");
    let cut = of("x.http", "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab").remove(0).unwrap();
    assert_eq!((cut.exchange.request.body.as_slice(), cut.notes.len()), (&b"ab"[..], 1));
}

#[test]
fn our_own_lines_are_read_and_their_faults_told() {
    let entries: Vec<_> = read("own.jsonl");
    let mut good = entries.iter().filter_map(|entry| entry.as_ref().ok());
    // Without a time, a line keeps its place behind the one before.
    let pay = good.next().unwrap();
    assert_eq!(
        (pay.at_millis, pay.status, pay.notes.as_slice()),
        (Some(1_772_355_600_500), Some(403), &["by hand".to_owned()][..])
    );
    let request = &pay.exchange.request;
    let mut expected =
        pairs(&[(":method", "POST"), (":path", "/pay?card=1"), (":authority", "shop.example"), (":scheme", "https")]);
    expected.push((b"x-bytes".to_vec(), b"caf\xe9".to_vec()));
    assert_eq!(request.headers, expected);
    assert_eq!((request.peer.as_str(), request.route.as_str()), ("198.51.100.9:5000", "shop"));
    assert_eq!((request.body.as_slice(), &request.trailers), (&b"a=1"[..], &pairs(&[("x-end", "1")])));
    assert_eq!((pay.exchange.response.status, pay.exchange.response.body.as_slice()), (503, &b"\xff\xff"[..]));
    let why: Vec<&str> = entries.iter().filter_map(|entry| Some(entry.as_ref().err()?.why.as_str())).collect();
    let expected = [
        "line 4: there is no field `request.metod`; did you mean `method`? (column 54)",
        "line 5: there is no field `reqest`; did you mean `request`? (column 30)",
        "line 6: `at` is no RFC 3339 time (2026-01-02T03:04:05.678Z) after 1970",
        "line 7: `request.headers[0][1]`: invalid type: integer, expected a string or {\"base64\": ...} (column 45)",
    ];
    assert_eq!(why, expected);
    assert_eq!(entries.len(), 7);
}

#[test]
fn an_access_log_writes_what_is_missing_as_null() {
    let line = r#"{"at":"2026-11-21T22:07:28.734Z","peer":"127.0.0.1:59834","route":null,"status":503,"request":{"headers":[["accept","*/*"],["cookie",null]],"host":"shop.test","method":"GET","path":"/a?x=1","protocol":"HTTP/1.1","scheme":"http"}}"#;
    let entry = of("access.jsonl", line).remove(0).unwrap();
    let request = &entry.exchange.request;
    let host = (":authority", "shop.test");
    let expected = [(":method", "GET"), (":path", "/a?x=1"), host, (":scheme", "http"), ("accept", "*/*")];
    assert_eq!((request.headers.clone(), request.route.as_str()), (pairs(&expected), ""));
    assert_eq!((entry.at_millis, entry.status), (Some(1_795_298_848_734), Some(503)));
}

/// Bytes that come one after the other, and say so.
struct Dripping(Vec<u8>, std::sync::mpsc::Sender<usize>);

impl std::io::Read for Dripping {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(into.len()).min(7);
        into[..count].copy_from_slice(&self.0[..count]);
        self.0.drain(..count);
        self.1.send(self.0.len()).unwrap();
        Ok(count)
    }
}

#[test]
fn a_stream_that_goes_on_is_waited_for_no_longer_than_for_one_entry() {
    let line = br#"{"request": {"path": "/"}}"#;
    let trace = std::fs::read(data("tap-buffered.json")).unwrap();
    for first in [[line.as_slice(), b"\n"].concat(), trace] {
        let (left, was_left) = std::sync::mpsc::channel();
        let in_one = of("a file", first.clone()).len();
        let rest = first.repeat(3);
        let mut entries = recording::live("a socket", Dripping(rest, left), &Options::default());
        assert!(entries.next().unwrap().is_ok());
        let left = was_left.try_iter().last().unwrap();
        assert!(left + 8 >= 2 * first.len(), "{left} of {} bytes were left", 3 * first.len());
        assert_eq!(entries.count(), 3 * in_one - 1);
    }
}

#[test]
fn a_format_can_be_forced_and_an_unknown_one_is_told() {
    let bad = of("x.bin", [1, 2, 3]).remove(0).unwrap_err();
    assert_eq!(bad.place.number, 0);
    assert!(bad.why.contains("tried: har, tap-json, tap-pb, tap-pb-delimited, http, jsonl"), "{bad}");
    let options = Options { format: Some(Format::Http), ..Options::default() };
    let forced = Recording::of("x.bin", Cursor::new(b"GET / HTTP/1.1\r\n\r\n".to_vec()), &options).next().unwrap();
    assert_eq!(forced.unwrap().exchange.request.header(":path"), Some(&b"/"[..]));
}

#[test]
fn anything_may_be_compressed() {
    use std::io::Write as _;
    for name in ["chromium.har", "tap-streamed.json", "tap.pb", "tap.pb_length_delimited", "chunked.raw", "own.jsonl"] {
        let plain = std::fs::read(data(name)).unwrap();
        // Two members, as of a log that was appended to.
        let mut packed = Vec::new();
        for part in plain.chunks(plain.len() / 2 + 1) {
            let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            member.write_all(part).unwrap();
            packed.extend_from_slice(&member.finish().unwrap());
        }
        assert_eq!(of(name, packed.clone()), of(name, plain), "{name}");
        let cut = of(name, &packed[..packed.len() * 3 / 4]);
        let told = |bad: &BadEntry| bad.why.contains("breaks off in its compressed data");
        assert!(cut.iter().filter_map(|entry| entry.as_ref().err()).any(told), "{name}: {cut:?}");
    }
}

/// A format from elsewhere: every line is a path.
#[derive(Debug)]
struct Paths;

impl recording::Reader for Paths {
    fn name(&self) -> &'static str {
        "paths"
    }

    fn knows(&self, path: &Path, _: &[u8]) -> bool {
        path.extension().is_some_and(|ending| ending == "paths")
    }

    fn read(&self, input: recording::Input) -> recording::Entries {
        let place = input.place(1);
        let entries = std::io::BufRead::lines(input.bytes).map(move |line| {
            let exchange = recording::traffic::Exchange {
                request: recording::traffic::Request::get(&line.unwrap()),
                ..Default::default()
            };
            Ok(Entry { place: place.clone(), at_millis: None, status: None, notes: Vec::new(), exchange })
        });
        Box::new(entries)
    }
}

#[test]
fn formats_from_elsewhere_are_asked_first() {
    let options = Options { other: vec![std::sync::Arc::new(Paths)], ..Options::default() };
    let entries: Vec<_> = Recording::of("a.paths", Cursor::new(b"/a\n/b\n".to_vec()), &options).collect();
    assert_eq!(entries.len(), 2);
    let bad = Recording::of("a.yaml", Cursor::new(b"x: y".to_vec()), &options).next().unwrap().unwrap_err();
    assert!(bad.why.contains("jsonl, paths"), "{bad}");
}
