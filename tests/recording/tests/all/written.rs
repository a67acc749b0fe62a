//! What is written is read back; what is secret is not written.

use std::io::Cursor;
use std::path::Path;
use std::sync::{Arc, Mutex};

use recording::mask::{Mask, Secrets};
use recording::traffic::{Exchange, Headers, Request, Response};
use recording::write::Writer;
use recording::{Entry, Options, Place, Recording};

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()].clone()
    }

    /// Text, often with what JSON escapes, and bytes that are no text.
    fn bytes(&mut self) -> Vec<u8> {
        let pieces: [&[u8]; 9] =
            [b"a", b"\"", b"\\", b"\n", "ü".as_bytes(), b"\xff", b"\0", b"{\"base64\": 1}", b" b=c"];
        (0..self.below(5)).flat_map(|_| self.pick(&pieces).to_vec()).collect()
    }

    fn headers(&mut self, names: &[&str]) -> Headers {
        (0..self.below(5)).map(|_| (self.pick(names).into(), self.bytes())).collect()
    }

    fn entry(&mut self) -> Entry {
        let mut headers = Headers::new();
        for name in [":method", ":path", ":authority", ":scheme"] {
            if self.below(5) > 0 {
                headers.push((name.into(), self.bytes()));
            }
        }
        headers.append(&mut self.headers(&[
            "host",
            "cookie",
            "x-a",
            "content-length",
            ":protocol",
            ":path",
            "connection",
            "x-ü",
        ]));
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let request = Request {
            headers,
            body: self.bytes(),
            trailers: self.headers(&["x-end", "host"]),
            protocol: self.pick(&[b"HTTP/2".to_vec(), b"HTTP/1.1".to_vec(), Vec::new(), vec![0xff]]),
            peer: self.pick(&["192.0.2.1:5".to_owned(), "[2001:db8::1]:6".to_owned(), String::new()]),
            local: self.pick(&["192.0.2.9:443".to_owned(), "[2001:db8::9]:443".to_owned(), String::new()]),
            route: text(self.bytes()),
            wire: self.bytes(),
        };
        let status = u16::try_from(self.below(1 << 16)).unwrap();
        let response = Response {
            status,
            headers: self.headers(&["set-cookie", "x"]),
            body: self.bytes(),
            trailers: self.headers(&["t"]),
        };
        let at = self.pick(&[None, Some(0), Some(1_772_359_200_125), Some(u64::MAX)]);
        Entry {
            place: Place { file: "x.jsonl".into(), number: 0 },
            at_millis: at,
            status: self.pick(&[None, Some(status)]),
            notes: (0..self.below(3)).map(|_| text(self.bytes())).collect(),
            exchange: Exchange { request, response },
        }
    }
}

/// What a writer wrote.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn written(entries: &[Entry]) -> Vec<u8> {
    let shared = Shared::default();
    let mut writer = Writer::new(shared.clone());
    entries.iter().for_each(|entry| writer.write(entry).unwrap());
    writer.finish().unwrap();
    std::mem::take(&mut shared.0.lock().unwrap())
}

#[test]
fn what_is_written_is_read_back() {
    let mut random = Random(11);
    let entries: Vec<Entry> =
        (1..=2_000).map(|number| Entry { place: Place { file: "x.jsonl".into(), number }, ..random.entry() }).collect();
    let read: Vec<_> = Recording::of("x.jsonl", Cursor::new(written(&entries)), &Options::default()).collect();
    assert_eq!(read.len(), entries.len());
    for (read, entry) in read.into_iter().zip(entries) {
        assert_eq!(read.unwrap(), entry);
    }
}

#[test]
fn a_recording_is_compressed_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, begin) in [("a.jsonl", b"{\"".as_slice()), ("a.jsonl.gz", b"\x1f\x8b")] {
        let path = folder.path().join(name);
        let mut writer = Writer::create(&path).unwrap();
        let entry = Random(5).entry();
        writer.write(&entry).unwrap();
        writer.finish().unwrap();
        assert!(std::fs::read(&path).unwrap().starts_with(begin));
        // Secrets may be in it.
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap()) & 0o777, 0o600);
        let read = recording::open(&[path], &Options::default()).unwrap().next().unwrap().unwrap();
        assert_eq!(read.exchange, entry.exchange);
    }
}

#[test]
fn every_fixture_can_be_written() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let entries: Vec<Entry> = recording::open(&[data], &Options::default()).unwrap().filter_map(Result::ok).collect();
    assert!(entries.len() > 10);
    let read = Recording::of("x", Cursor::new(written(&entries)), &Options::default());
    for (read, entry) in read.zip(&entries) {
        assert_eq!(read.unwrap().exchange, entry.exchange);
    }
}

fn mask(secrets: Secrets) -> Mask {
    Mask::with_key(secrets, [3; 32])
}

fn names(names: &[&str]) -> std::collections::BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn entry(headers: &[(&str, &str)], body: &str) -> Entry {
    let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let request = Request { headers, body: body.into(), wire: b"raw".to_vec(), ..Request::default() };
    let exchange = Exchange { request, ..Exchange::default() };
    Entry { place: Place { file: "x".into(), number: 1 }, at_millis: None, status: None, notes: Vec::new(), exchange }
}

fn header(entry: &Entry, name: &str) -> String {
    String::from_utf8(entry.exchange.request.header(name).unwrap().to_vec()).unwrap()
}

/// Nothing of an entry that is written has the text in it.
fn assert_gone(entry: &Entry, secrets: &[&str]) {
    let text = String::from_utf8(written(std::slice::from_ref(entry))).unwrap();
    for secret in secrets {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
}

#[test]
fn the_usual_secrets_are_masked_and_their_shape_is_kept() {
    let mask = mask(Secrets::default());
    let mut one = entry(
        &[
            (":path", "/a?sid=5up3rs3cr3t"),
            ("cookie", "sid=5up3rs3cr3t; lang=de; pin=1234567890; odd"),
            ("authorization", "Bearer eyJhbGciOi.eyJzdWIi"),
            ("x-api-key", "k-0123456789"),
            ("x-trace", "about 5up3rs3cr3t and more"),
        ],
        "{\"echo\": \"5up3rs3cr3t\"}",
    );
    one.notes.push("it said 5up3rs3cr3t".to_owned());
    one.exchange.response.headers = vec![(b"set-cookie".to_vec(), b"sid=5up3rs3cr3t; Path=/; HttpOnly".to_vec())];
    one.exchange.request.headers.push((b"content-length".to_vec(), b"23".to_vec()));
    mask.apply(&mut one);
    assert_gone(&one, &["5up3rs3cr3t", "eyJ", "0123456789", "1234567890", "odd\"", "cmF3"]);
    let cookie = header(&one, "cookie");
    let values: Vec<&str> = cookie.split("; ").filter_map(|pair| Some(pair.split_once('=')?.1)).collect();
    let sid = values[0];
    assert!(cookie.starts_with("sid=") && cookie.contains("; lang=") && cookie.contains("; pin="), "{cookie}");
    assert_eq!(values.iter().map(|value| value.len()).collect::<Vec<_>>(), [16, 8, 16]);
    assert!(
        sid.bytes().all(|byte| byte.is_ascii_alphanumeric()) && values[2].bytes().all(|byte| byte.is_ascii_digit())
    );
    // The same everywhere, and the length of the body is right again.
    assert_eq!(header(&one, ":path"), format!("/a?sid={sid}"));
    assert_eq!(one.exchange.request.body, format!("{{\"echo\": \"{sid}\"}}").as_bytes());
    assert_eq!(header(&one, "content-length"), one.exchange.request.body.len().to_string());
    assert_eq!(one.exchange.response.headers[0].1, format!("sid={sid}; Path=/; HttpOnly").as_bytes());
    let authorization = header(&one, "authorization");
    assert!(authorization.starts_with("Bearer ") && authorization.contains('-'), "{authorization}");
    let note = "masked: header `authorization`, header `cookie`, header `set-cookie`, header `x-api-key`";
    assert_eq!(one.notes, [format!("it said {sid}"), note.to_owned()]);
    // Another entry: equal values are equal, others are not. Another key: nothing is.
    let mut two = entry(&[("cookie", "sid=5up3rs3cr3t; x=5up3rs3cr3u")], "");
    mask.apply(&mut two);
    assert!(header(&two, "cookie").starts_with(&format!("sid={sid}; x=")) && !header(&two, "cookie").ends_with(sid));
    let mut three = entry(&[("cookie", "sid=5up3rs3cr3t")], "");
    Mask::new(Secrets::default()).unwrap().apply(&mut three);
    assert_ne!(header(&three, "cookie"), format!("sid={sid}"));
}

#[test]
fn user_and_password_stay_apart() {
    let mut entry = entry(&[("authorization", "Basic ZXZlOmh1bnRlcjI=")], "");
    mask(Secrets::default()).apply(&mut entry);
    let value = header(&entry, "authorization");
    let packed = value.strip_prefix("Basic ").unwrap();
    let both = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, packed).unwrap();
    let (user, password) = std::str::from_utf8(&both).unwrap().split_once(':').unwrap();
    assert_eq!((user.len(), password.len()), (8, 8));
    assert!(user != "eve" && password != "hunter2");
}

/// A secret comes in one place and is echoed in others, each in a writing of its own.
#[test]
fn no_secret_is_left_anywhere() {
    let mut random = Random(21);
    let secrets = Secrets { query: names(&["k"]), form: names(&["k"]), json: names(&["k"]), ..Secrets::default() };
    let mask = mask(secrets);
    let urls = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    for _ in 0..2_000 {
        let letters = ["q", "7", "Z", "-", " ", "+", "/", "%", "ü", "\"", "\\", "'", "<", "."];
        let middle: String = (0..random.below(12)).map(|_| random.pick(&letters)).collect();
        let secret = format!("qz7{middle}7zq");
        let quoted = serde_json::to_string(&secret).unwrap();
        let place = random.below(6);
        let cookie = secret.replace(';', "");
        let (name, value, body) = match place {
            0 => ("cookie", format!("a=1; sid={cookie}"), String::new()),
            1 => ("authorization", format!("Bearer {secret}"), String::new()),
            2 => (":path", format!("/?a=1&k={}", urls(&secret)), String::new()),
            3 => ("x-api-key", secret.clone(), String::new()),
            4 => ("content-type", "application/json".to_owned(), format!("{{\"k\": {quoted}}}")),
            _ => ("content-type", "application/x-www-form-urlencoded".to_owned(), format!("k={}&b=2", urls(&secret))),
        };
        let mut masked = entry(&[(name, &value), ("referer", &format!("/x/{}", urls(&secret)))], &body);
        masked.notes.push(format!("it was {secret}"));
        masked.exchange.response.body = format!("{{\"echo\": {quoted}, \"plain\": \"{secret}\"}}").into_bytes();
        mask.apply(&mut masked);
        let exchange = &masked.exchange;
        let headers = exchange.request.headers.iter().map(|(_, value)| value.clone());
        let notes = masked.notes.iter().map(|note| note.clone().into_bytes());
        let all = headers.chain(notes).chain([exchange.request.body.clone(), exchange.response.body.clone()]);
        for text in all.map(|text| String::from_utf8_lossy(&text).into_owned()) {
            for writing in [&secret, &urls(&secret), quoted.trim_matches('"')] {
                assert!(!text.contains(writing), "place {place}: {writing} is in {text}");
            }
        }
    }
}

#[test]
fn a_word_that_happens_to_be_a_secret_does_not_change_how_a_message_is_read() {
    let kind = "application/json";
    let mut entry =
        entry(&[(":method", "OPTIONS"), ("content-type", kind), ("cookie", "a=application; b=OPTIONS")], "");
    mask(Secrets::default()).apply(&mut entry);
    assert_eq!((header(&entry, ":method").as_str(), header(&entry, "content-type").as_str()), ("OPTIONS", kind));
    assert!(!header(&entry, "cookie").contains("OPTIONS"));
}

#[test]
fn fields_that_are_named_are_masked() {
    let secrets = || Secrets {
        query: names(&["Token", "a b"]),
        form: names(&["password", "upload"]),
        json: names(&["password", "pin", "keys"]),
        ..Secrets::none()
    };
    let mask = mask(secrets());
    let referer = "https://a/?x=1&token=abcdef1#token=zzzzzz1";
    let mut query =
        entry(&[(":path", "/p?tok%65n=abcdef1&a+b=qwerty7&c=3"), ("referer", referer), ("cookie", "a=b")], "");
    mask.apply(&mut query);
    assert_gone(&query, &["abcdef1", "zzzzzz1", "qwerty7"]);
    let path = header(&query, ":path");
    assert!(path.starts_with("/p?tok%65n=") && path.ends_with("&c=3") && path.contains("&a+b="), "{path}");
    assert_eq!(header(&query, "cookie"), "a=b");
    assert_eq!(query.notes, ["masked: query parameter `a b`, query parameter `token`"]);

    let mut form =
        entry(&[("content-type", "application/x-www-form-urlencoded")], "user=eve&password=p%40ss+word&x='or 1=1");
    form.exchange.response.body = b"wrong: p@ss word, \"p%40ss+word\"".to_vec();
    mask.apply(&mut form);
    assert_gone(&form, &["p%40ss", "p@ss"]);
    let body = String::from_utf8(form.exchange.request.body).unwrap();
    assert!(body.starts_with("user=eve&password=") && body.ends_with("&x='or 1=1"), "{body}");

    let text = r#"{"a": [{"Password" : "s3\"cr3t!"}], "pin":4711, "keys": ["k1", {"x": "}"}], "none": null, broken"#;
    let mut json = entry(&[("content-type", "application/json")], text);
    json.exchange.response.body = br#"no: s3"cr3t!"#.to_vec();
    mask.apply(&mut json);
    assert_gone(&json, &["cr3t!", "4711", "k1"]);
    let body = String::from_utf8(json.exchange.request.body).unwrap();
    assert!(body.starts_with(r#"{"a": [{"Password" : ""#) && body.ends_with(r#""none": null, broken"#), "{body}");
    let pin = body.split(r#""pin":"#).nth(1).unwrap().split(',').next().unwrap();
    assert_eq!((pin.len(), pin.bytes().all(|byte| byte.is_ascii_digit())), (8, true));

    let parts = "--b\r\ncontent-disposition: form-data; name=\"password\"\r\n\r\nhunter22\r\n--b\r\nContent-Disposition: form-data; \
                 name=\"x\"; filename=\"password\"\r\n\r\nkept\r\n--b--\r\n";
    let mut multipart = entry(&[("content-type", "multipart/form-data; boundary=b")], parts);
    mask.apply(&mut multipart);
    assert_gone(&multipart, &["hunter22"]);
    let body = String::from_utf8(multipart.exchange.request.body).unwrap();
    assert!(body.contains("kept") && body.ends_with("\r\n--b--\r\n") && body.len() == parts.len(), "{body}");

    let mut packed = entry(&[("content-encoding", "gzip")], "whatever");
    mask.apply(&mut packed);
    assert_eq!(packed.exchange.request.body, b"");
    assert_eq!(packed.notes, ["the request's body is compressed and may hold secrets: it is left out"]);
}

#[test]
fn nothing_is_masked_where_nothing_is_secret() {
    let mut random = Random(9);
    for _ in 0..200 {
        let entry = random.entry();
        let mut masked = entry.clone();
        mask(Secrets::none()).apply(&mut masked);
        assert_eq!(masked, entry);
    }
}

#[test]
fn faults_in_a_file_do_not_tell_values() {
    let lines = [
        r#"{"at": "hunter2secret", "request": {"path": "/"}}"#,
        r#"{"request": {"path": "/", "headers": "hunter2secret"}}"#,
        r#"{"request": {"path": "/", "body_base64": "hunter2secret!"}}"#,
        r#"{"request": {"path": "/", "headers": [["authorization", {"base64": "hunter2secret!"}]]}}"#,
        r#"{"request": "hunter2secret"}"#,
        r#"{"status": "hunter2secret", "request": {"path": "/"}}"#,
        r#"{"notes": [], "request": {"path": "/", "headers": [["authorization", "hunter2secret]]}}"#,
    ];
    for bad in Recording::of("x.jsonl", Cursor::new(lines.join("\n").into_bytes()), &Options::default()) {
        let why = bad.unwrap_err().why;
        assert!(!why.contains("hunter2"), "{why}");
    }
    let http = "POST / HTTP/1.1\r\nhunter2secret\r\n\r\n".as_bytes().to_vec();
    let bad = Recording::of("x.http", Cursor::new(http), &Options::default()).next().unwrap().unwrap_err();
    assert!(!bad.why.contains("hunter2"), "{bad}");
}
