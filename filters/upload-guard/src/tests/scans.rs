//! Scans: what is asked, and what each answer leads to.

use exchange::Question;

use super::*;

/// Sends a body, and answers the question that it leads to.
fn scanned(step: &UploadStep, bytes: &[u8], complete: bool, answer: Answer) -> (Option<ScanFiles>, Outcome) {
    let global = vec![Step { plugin: PLUGIN.name.into(), config: step.encode_to_vec(), ..Step::default() }];
    let snapshot = Snapshot { filter: "preset".into(), global, ..Snapshot::default() };
    let chain = Chain::load(&snapshot, &[PLUGIN]).unwrap();
    let host = FakeHost::at(0);
    let headers = Headers::from([("content-type", FORM), ("content-encoding", "identity")]);
    let request = Request { method: b"POST".to_vec(), path: b"/".to_vec(), headers, ..Request::default() };
    let start = Start { request, route: b"", peer: b"192.0.2.7:1", node: &"node".into() };
    let mut run = Run::new(&chain, start, &host);
    let _ = run.request_headers(true, &host);
    let mut flow = run.request_body(Body { bytes, complete }, &host);
    let mut asked = None;
    if let Flow::Ask(ask) = &flow {
        assert!(ask.body && ask.millis == step.scan_millis, "the body goes along");
        asked = ask.question.read::<ScanFiles>();
        assert_eq!(ask.question, Question::new(asked.as_ref().unwrap()));
        flow = run.answered(answer, &host);
    }
    let tags = run.exchange().score.tags().into_iter().map(str::to_owned).collect();
    (asked, Outcome { flow, host, tags })
}

fn scanning() -> UploadStep {
    UploadStep { scanner: "clam".into(), scan_millis: 5000, ..step() }
}

fn says(verdict: ScanVerdict, detail: &str) -> Answer {
    Answer::Data(ScanAnswer { verdict: verdict.into(), detail: detail.to_owned() }.encode_to_vec())
}

#[test]
fn files_that_pass_are_scanned() {
    let form = form("a.png", PNG);
    let (asked, outcome) = scanned(&scanning(), &form, true, says(ScanVerdict::Clean, ""));
    let expected = ScanFiles {
        scanner: "clam".into(),
        content_type: FORM.as_bytes().to_vec(),
        content_encoding: b"identity".to_vec(),
        body_limit: 1 << 20,
        max_files: 100,
        millis: 5000,
        ip: "192.0.2.7".into(),
        ..ScanFiles::default()
    };
    assert_eq!((asked, outcome.verdict(), outcome.tags.len()), (Some(expected), passed(), 0));
    let (_, outcome) = scanned(&scanning(), &form, true, says(ScanVerdict::Infected, "Eicar"));
    assert_eq!((outcome.verdict(), outcome.tags.clone()), (refused(403, "malware"), vec!["upload:malware".to_owned()]));
    assert!(String::from_utf8_lossy(&outcome.reply().body).contains("a file is infected: Eicar"));
    let monitor = UploadStep { monitor: true, ..scanning() };
    let (_, outcome) = scanned(&monitor, &form, true, says(ScanVerdict::Infected, "Eicar"));
    assert_eq!(outcome.verdict(), passed());
    let message = outcome.host.events_json()[0]["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with("the request would have been refused with 403"), "{message}");
}

#[test]
fn nothing_is_asked_without_need() {
    let clean = || says(ScanVerdict::Clean, "");
    assert!(scanned(&step(), &form("a.png", PNG), true, clean()).0.is_none(), "there is no scanner");
    let (asked, outcome) = scanned(&scanning(), &form("a.php", PNG), true, clean());
    assert_eq!((asked, outcome.verdict().0), (None, 415), "it is refused already");
    let field = b"--cut\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n--cut--\r\n";
    assert!(scanned(&scanning(), field, true, clean()).0.is_none(), "there is no file");
}

#[test]
fn a_scan_without_a_verdict_follows_its_action() {
    let form = form("a.png", PNG);
    for (answer, complete, why) in [
        (says(ScanVerdict::Failed, "clamd closed"), true, "the files could not be scanned: clamd closed"),
        (Answer::Unavailable, true, "there was no answer in time"),
        (Answer::NoControlPlane, true, "there was no answer in time"),
        (Answer::Data(b"\xff".to_vec()), true, "there was no answer in time"),
        (says(ScanVerdict::Clean, ""), false, "the body is longer than what can be scanned"),
    ] {
        let (_, outcome) = scanned(&scanning(), &form, complete, answer.clone());
        assert_eq!(outcome.verdict(), refused(503, "scan_failed"), "{why}");
        assert!(String::from_utf8_lossy(&outcome.reply().body).contains(why), "{why}");
        let (_, outcome) = scanned(&UploadStep { allow_unscanned: true, ..scanning() }, &form, complete, answer);
        assert_eq!(outcome.verdict(), passed());
        let event = &outcome.host.events_json()[0];
        assert_eq!(
            (&event["event"]["category"], &event["event"]["outcome"]),
            (&json!("dependency"), &json!("observed"))
        );
        assert!(event["message"].as_str().unwrap().contains(why), "{event}");
        assert!(outcome.tags.contains(&"upload:scan_failed".to_owned()));
    }
    // Malware in the part that was scanned is refused all the same.
    let (_, outcome) = scanned(&scanning(), &form, false, says(ScanVerdict::Infected, "Eicar"));
    assert_eq!(outcome.verdict(), refused(403, "malware"));
}

#[test]
fn an_overrun_lets_nothing_pass_unscanned() {
    let form = form("a.png", PNG);
    for answer in [Answer::Overrun, says(ScanVerdict::Overrun, "")] {
        for allow_unscanned in [false, true] {
            let step = UploadStep { allow_unscanned, ..scanning() };
            let (_, outcome) = scanned(&step, &form, true, answer.clone());
            assert_eq!(outcome.verdict(), refused(503, "scan_failed"), "{answer:?}");
            assert!(String::from_utf8_lossy(&outcome.reply().body).contains("too many are being scanned"));
        }
    }
}
