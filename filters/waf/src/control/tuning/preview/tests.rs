use kit::{Collection, EntitySource, Head, Item, RecordedExchange, RecordedTraffic, Slot, TrafficSource, View};

use super::super::exclusion::ExclusionKind;
use super::super::shape::{Condition, Shape};
use super::attacks::INJECTED;
use super::*;
use crate::control::config::WafConfig;
use crate::samples::messages::{SampledHeader, ValueShape};

/// No entities.
struct Nothing;

impl EntitySource for Nothing {
    fn slot(&self, _collection: &str, _id: &str) -> Option<&Slot> {
        None
    }

    fn collection(&self, _collection: &str) -> Option<&Arc<Collection>> {
        None
    }
}

const EAGER: &str = "SecRule ARGS \"@contains zebra crossing\" \"id:10050,phase:2,deny,status:403,log,msg:'a zebra'\"";

const IN_XML: &str =
    "SecRule XML:/* \"@contains zebra crossing\" \"id:10051,phase:2,deny,status:403,log,msg:'a zebra'\"";

fn config() -> Item<WafConfig> {
    let rules = vec!["@import_preset crs".to_owned(), EAGER.to_owned(), IN_XML.to_owned()];
    let head = Head { id: "shop".to_owned(), ..Head::default() };
    Item { head, body: WafConfig { rules, block: false, ..WafConfig::default() } }
}

fn sample(content: &str) -> SampledRequest {
    let header = |name: &str, value: &str| SampledHeader { name: name.into(), value: value.into() };
    let body = format!("content={content}&page=1");
    SampledRequest {
        method: "POST".to_owned(),
        uri: b"/posts/1".to_vec(),
        protocol: "HTTP/1.1".to_owned(),
        headers: vec![
            header("host", "shop.example"),
            header("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
            header("accept", "*/*"),
            header("content-type", "application/x-www-form-urlencoded"),
            header("content-length", &body.len().to_string()),
        ],
        body: body.into_bytes(),
        ..SampledRequest::default()
    }
}

fn with_bench(work: impl FnOnce(Bench<'_>)) {
    with_bench_at(1, work);
}

fn with_bench_at(paranoia_level: u32, work: impl FnOnce(Bench<'_>)) {
    let (mut config, view) = (config(), View::new(&Nothing));
    config.body.crs.paranoia_level = paranoia_level;
    work(bench_of(&config, &view));
}

fn bench_of<'b>(config: &'b Item<WafConfig>, view: &'b View<'b>) -> Bench<'b> {
    Bench {
        view,
        config,
        engines: Arc::default(),
        bases: Arc::default(),
        at_work: None,
        now_millis: 1_700_000_000_000,
        threads: 2,
        traffic: None,
    }
}

/// Recorded traffic, or why there is none.
struct Traffic(Result<Option<Arc<RecordedTraffic>>, String>);

impl TrafficSource for Traffic {
    fn latest(&self) -> Result<Option<Arc<RecordedTraffic>>, String> {
        self.0.clone()
    }
}

fn recorded(path: &str, content: &str) -> RecordedExchange {
    let sample = sample(content);
    let pseudo = [(":method", "POST"), (":path", path), (":authority", "shop.example")];
    let pseudo = pseudo.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    let headers = sample.headers.iter().filter(|header| header.name != b"host");
    let headers = pseudo.chain(headers.map(|header| (header.name.clone(), header.value.clone()))).collect();
    RecordedExchange { headers, body: sample.body, ..RecordedExchange::default() }
}

#[test]
fn recorded_traffic_is_replayed() {
    let exchanges = [
        recorded("/posts/1", "a+day"),
        recorded("/posts/2", "the+zebra+crossing"),
        recorded("/drafts/2", "the+zebra+crossing"),
        recorded("/posts/3", "a+zebra+crossing+1%27+UNION+SELECT+password+FROM+users--+-"),
        recorded("/posts/3", "1%27+UNION+SELECT+password+FROM+users--+-"),
        RecordedExchange::default(),
    ];
    let traffic = RecordedTraffic { id: "r".into(), name: "a day".into(), exchanges: exchanges.into(), total: 7 };
    let source = Traffic(Ok(Some(Arc::new(traffic))));
    let expected = |refused_after, matched_after| TrafficOutcome {
        id: "r".to_owned(),
        name: "a day".to_owned(),
        total: 7,
        requests: 5,
        refused_before: 4,
        refused_after,
        matched_before: 3,
        matched_after,
    };
    with_bench(|bench| {
        let bench = Bench { traffic: Some(&source), ..bench };
        let sample = sample("the+zebra+crossing");
        let previews = Previews::new(bench, place(10_050, "ARGS:content"), Some(&sample), &[]).unwrap();
        for (kind, refused, matched) in [(ExclusionKind::ScopedTarget, 3, 1), (ExclusionKind::UpdateTarget, 2, 0)] {
            let exclusion = Exclusion::new(kind, &previews.place, 50_000).unwrap();
            let preview = previews.preview_exclusion(&exclusion);
            assert_eq!(preview.recording, Some(expected(refused, matched)), "{kind:?}");
            assert!(preview.safe && preview.recording_error.is_none());
            // What a person has written may change any rule, so that everything is run again.
            assert_eq!(previews.preview(&exclusion.seclang).recording, preview.recording, "{kind:?}");
        }
        assert_eq!(previews.preview(OFF).recording, Some(expected(0, 0)));
        assert_eq!(previews.preview("SecRule").recording, None, "it does not compile");
    });
    for (source, error) in [(Traffic(Ok(None)), None), (Traffic(Err("no disk".into())), Some("no disk".to_owned()))] {
        with_bench(|bench| {
            let bench = Bench { traffic: Some(&source), ..bench };
            let sample = sample("the+zebra+crossing");
            let previews = Previews::new(bench, place(10_050, "ARGS:content"), Some(&sample), &[]).unwrap();
            let preview = previews.preview(EXCLUDED);
            assert_eq!((preview.recording, preview.recording_error), (None, error));
            assert!(preview.safe);
        });
    }
}

const OFF: &str = "SecAction \"id:50000,phase:1,pass,nolog,ctl:ruleEngine=Off\"";
const EXCLUDED: &str = "SecRuleUpdateTargetById 10050 \"!ARGS:content\"";

fn place(rule_id: u64, target: &str) -> Place {
    Place { rule_id, target: Target::parse(target.as_bytes()).unwrap(), path: "/posts/{id}".to_owned() }
}

fn with_previews(rule_id: u64, sample: &SampledRequest, work: impl FnOnce(&Previews<'_>)) {
    with_bench(|bench| work(&Previews::new(bench, place(rule_id, "ARGS:content"), Some(sample), &[]).unwrap()));
}

/// Behind a switch an exclusion is what it is as it is written.
#[test]
fn a_trial_on_the_engine_of_all_says_what_the_engine_of_one_says() {
    for (rule_id, content) in [(10_050, "the+zebra+crossing"), (942_100, "1%27+UNION+SELECT+password+FROM+users--+-")] {
        for kind in [ExclusionKind::ScopedTarget, ExclusionKind::UpdateTarget] {
            let (mut alone, mut together) = (Preview::default(), Preview::default());
            with_previews(rule_id, &sample(content), |previews| {
                alone = previews.preview_exclusion(&Exclusion::new(kind, &previews.place, 50_000).unwrap());
            });
            with_bench(|bench| {
                let choice =
                    Choice { place: place(rule_id, "ARGS:content"), sample: sample(content), conditions: [None; 2] };
                together = Together::new(bench, vec![choice], &[50_000, 50_001, 50_002]).unwrap().preview(0, kind);
            });
            assert_eq!(together, alone, "{rule_id} {kind:?}");
        }
    }
}

#[test]
fn what_matches_in_xml_is_tried_like_other_inputs() {
    let mut of_xml = sample("");
    of_xml.body = b"<post><title>a day</title><text>the zebra crossing</text></post>".to_vec();
    for header in &mut of_xml.headers {
        match header.name.as_slice() {
            b"content-type" => header.value = b"text/xml".to_vec(),
            b"content-length" => header.value = of_xml.body.len().to_string().into_bytes(),
            _ => {}
        }
    }
    with_bench(|bench| {
        let choice = Choice { place: place(10_051, "XML:/*"), sample: of_xml, conditions: [None; 2] };
        let mut together = Together::new(bench, vec![choice], &[50_000, 50_001, 50_002]).unwrap();
        for kind in [ExclusionKind::ScopedTarget, ExclusionKind::UpdateTarget] {
            let preview = together.preview(0, kind);
            assert!(preview.reproduced && preview.safe, "{:?}", preview.regressions);
            assert!(preview.corpus.injected > 1000, "{:?}", preview.corpus);
        }
        together.accept(0, ExclusionKind::ScopedTarget);
        let place = &together.choice(0).unwrap().place;
        for kind in [ExclusionKind::ScopedTarget, ExclusionKind::UpdateTarget] {
            let written = Exclusion::new(kind, place, 50_000).unwrap().seclang;
            assert!(together.confirm(&[(0, written.clone())]).unwrap().is_empty(), "{written}");
        }
    });
}

/// A request that is refused for one input says nothing about attacks at another one.
#[test]
fn attacks_count_as_caught_for_their_own_sake_alone() {
    let noisy = SampledRequest { uri: b"/posts/1?note=the+zebra+crossing".to_vec(), ..sample("the+zebra+crossing") };
    with_bench(|bench| {
        let choice = |target| Choice { place: place(10_050, target), sample: noisy.clone(), conditions: [None; 2] };
        let mut together = Together::new(
            bench,
            vec![choice("ARGS:content"), choice("ARGS:note")],
            &[50_000, 50_001, 50_002, 50_003, 50_004, 50_005],
        )
        .unwrap();
        let first = together.preview(0, ExclusionKind::ScopedTarget);
        assert!(first.safe, "{:?}", first.regressions);
        let injected = |preview: &Preview| (preview.corpus.injected, preview.corpus.caught_before);
        assert!(injected(&first).1 < first.corpus.attacks, "some pass by themselves: {:?}", first.corpus);
        together.accept(0, ExclusionKind::ScopedTarget);
        let second = together.preview(1, ExclusionKind::ScopedTarget);
        assert!(second.safe, "{:?}", second.regressions);
        assert_eq!(second.sample_after.as_ref().map(|after| after.blocked), Some(false), "both are on");
        together.accept(1, ExclusionKind::ScopedTarget);
        let written = [0, 1].map(|at| {
            let place = &together.choice(at).unwrap().place;
            Exclusion::new(ExclusionKind::ScopedTarget, place, 50_000 + at as u64).unwrap().seclang
        });
        let [first, second] = written;
        assert!(together.confirm(&[(0, first.clone()), (1, second)]).unwrap().is_empty());
        let useless = first.replace("ARGS:content", "ARGS:other");
        assert_eq!(together.confirm(&[(0, useless)]).unwrap(), BTreeSet::from([0, 1]));
    });
}

/// On paths that both select, no attack runs.
#[test]
fn an_exclusion_whose_path_crosses_that_of_an_accepted_one_is_not_covered() {
    let choice = |path: &str, uri: &str| Choice {
        place: Place { path: path.to_owned(), ..place(10_050, "ARGS:content") },
        sample: SampledRequest { uri: uri.into(), ..sample("the+zebra+crossing") },
        conditions: [None; 2],
    };
    with_bench(|bench| {
        let choices =
            vec![choice("/posts/{slug}/notes", "/posts/ann/notes"), choice("/{slug}/bob/notes", "/pages/bob/notes")];
        let numbers: Vec<u64> = (50_000..50_006).collect();
        let mut together = Together::new(bench, choices, &numbers).unwrap();
        let judged = |together: &mut Together<'_>, at: usize| {
            let preview = together.preview(at, ExclusionKind::ScopedTarget);
            (preview.effective, preview.is_covered, preview.safe)
        };
        assert_eq!([judged(&mut together, 0), judged(&mut together, 1)], [(true, true, true); 2], "each by itself");
        together.accept(0, ExclusionKind::ScopedTarget);
        assert_eq!(judged(&mut together, 1), (true, false, false));
    });
}

/// Patterns of rules take `^` and `$` for the bounds of lines, and a path may have some.
#[test]
fn an_exclusion_for_a_path_does_not_hold_for_one_that_has_it_as_a_line() {
    let exclusion = Exclusion::new(ExclusionKind::ScopedTarget, &place(10_050, "ARGS:content"), 50_000).unwrap();
    with_bench(|bench| {
        let built = bench.build(Some(&exclusion.seclang)).unwrap();
        let matches = |uri: &str| {
            let request = SampledRequest { uri: uri.into(), ..sample("the+zebra+crossing") };
            seen(&bench.trial(&built), &read(&request), b"").unwrap().rules.contains(&10_050)
        };
        assert!(!matches("/posts/1") && matches("/posts/1/2"));
        for uri in ["/other%0a/posts/1", "/posts/1%0a/other", "/other%0a/posts/1%0a/other"] {
            assert!(matches(uri), "{uri}");
        }
    });
}

/// A token may have the letters of a comparison in it, `'` and blanks aside.
#[test]
fn an_exclusion_for_the_shape_of_a_token_is_safe_where_one_for_all_values_is_not() {
    let of_rule = |rule_id: u64, content: &str| {
        let values = [content, content, content].into_iter().zip(1..);
        let shapes: Vec<_> = values.map(|(value, caller)| ValueShape::of(caller, value.as_bytes())).collect();
        let target = Target::parse(b"ARGS:content").unwrap();
        let shape = Shape::of(&shapes, &target, |callers| callers.len() >= 3);
        let conditions = [shape.map(|shape| Condition { shape, phase: 2 }); 2];
        Choice { place: place(rule_id, "ARGS:content"), sample: sample(content), conditions }
    };
    // The rule finds `/etc/passwd`, and the token has a part of a path that it takes for such a file.
    with_bench_at(2, |bench| {
        let token = of_rule(930_120, "site/.htaccess");
        let numbers: Vec<u64> = (50_000..50_005).collect();
        let mut together = Together::new(bench, vec![token], &numbers).unwrap();
        let kinds = [ExclusionKind::ScopedTarget, ExclusionKind::ScopedShape, ExclusionKind::Shape];
        let safe = kinds.map(|kind| together.preview(0, kind)).map(|preview| (preview.effective, preview.safe));
        assert_eq!(safe, [(true, false); 3], "files are named with these characters");
    });
    with_bench_at(2, |bench| {
        let token = of_rule(942_120, "cm9vdA==");
        let numbers: Vec<u64> = (50_000..50_005).collect();
        let mut together = Together::new(bench, vec![token], &numbers).unwrap();
        let kinds = [ExclusionKind::ScopedTarget, ExclusionKind::ScopedShape, ExclusionKind::Shape];
        let previews = kinds.map(|kind| together.preview(0, kind));
        let safe = previews.each_ref().map(|preview| (preview.effective, preview.safe));
        assert_eq!(safe, [(true, false), (true, true), (true, true)], "{:?}", previews[1].regressions);
        together.accept(0, ExclusionKind::ScopedShape);
        let written = together.choice(0).unwrap().exclusion(ExclusionKind::ScopedShape, 50_000).unwrap().seclang;
        assert!(together.confirm(&[(0, written.clone())]).unwrap().is_empty(), "{written}");
    });
}

/// Nor is an exclusion safe because attacks were put into a request that is refused whatever they are.
#[test]
fn attacks_are_put_into_a_request_that_is_not_refused_for_something_else() {
    let noisy = SampledRequest {
        uri: b"/posts/1?note=the+zebra+crossing".to_vec(),
        ..sample("1%27+UNION+SELECT+password+FROM+users--+-")
    };
    with_bench(|bench| {
        let place = place(942_100, "ARGS:content");
        let choice = Choice { place, sample: noisy.clone(), conditions: [None; 2] };
        let mut together = Together::new(bench, vec![choice], &[50_000, 50_001, 50_002]).unwrap();
        for kind in [ExclusionKind::ScopedTarget, ExclusionKind::UpdateTarget] {
            let preview = together.preview(0, kind);
            assert!(preview.effective && preview.is_covered && !preview.safe, "{:?}", preview.corpus);
        }
    });
    with_previews(942_100, &noisy, |previews| {
        let preview =
            previews.preview_exclusion(&Exclusion::new(ExclusionKind::ScopedTarget, &previews.place, 50_000).unwrap());
        assert!(preview.effective && preview.is_covered && !preview.safe, "{:?}", preview.corpus);
    });
    // A rule that refuses everything.
    let (mut config, view) = (config(), View::new(&Nothing));
    config.body.rules.push("SecAction \"id:10060,phase:2,deny,status:403,log\"".to_owned());
    let previews = Previews::new(
        bench_of(&config, &view),
        place(10_050, "ARGS:content"),
        Some(&sample("the+zebra+crossing")),
        &[],
    );
    let preview = previews.unwrap().preview("SecRuleUpdateTargetById 10050 \"!ARGS:content\"");
    assert!(preview.reproduced && preview.effective && !preview.is_covered && !preview.safe, "{:?}", preview.corpus);
}

#[test]
fn an_exclusion_of_a_rule_that_catches_no_attack_is_safe_and_one_of_all_rules_is_not() {
    with_previews(10_050, &sample("the+zebra+crossing"), |previews| {
        let safe = previews.preview("SecRuleUpdateTargetById 10050 \"!ARGS:content\"");
        assert!(safe.reproduced && safe.effective && safe.safe, "{:?} {:?}", safe.error, safe.regressions);
        assert!(safe.corpus.injected > 1000 && safe.corpus.caught_before > 1500, "{:?}", safe.corpus);
        assert_eq!(safe.corpus.caught_before, safe.corpus.caught_after);
        assert_eq!((safe.sample_before.unwrap().blocked, safe.sample_after.unwrap().blocked), (true, false));
        let wide = previews.preview("SecRuleUpdateTargetByTag OWASP_CRS \"!ARGS:content\"\nSecRuleRemoveById 10050");
        assert!(wide.effective && !wide.safe && wide.regressions.len() == MAX_LISTED, "{:?}", wide.error);
        assert!(wide.regressions.iter().all(|one| one.at == INJECTED), "only at the input");
        let broken = previews.preview("SecRuleUpdateTargetById");
        assert!(!broken.compiles && !broken.safe && broken.error.is_some());
        let useless = previews.preview("SecRuleUpdateTargetById 10050 \"!ARGS:other\"");
        assert!(useless.reproduced && !useless.effective && !useless.safe);
    });
}

#[test]
fn what_attackers_send_often_is_not_excluded_as_safe() {
    // As 200 addresses may send it for a week.
    let sample = sample("1%27+UNION+SELECT+password+FROM+users--+-");
    with_previews(942_100, &sample, |previews| {
        let preview = previews.preview("SecRuleUpdateTargetById 942100 \"!ARGS:content\"");
        assert!(preview.reproduced && preview.effective && !preview.safe, "{:?}", preview.corpus);
        assert!(preview.regressions.iter().any(|one| one.category == "sqli" && one.at == INJECTED));
    });
}

#[test]
fn what_the_rule_does_not_match_need_not_run_again() {
    for (rule_id, content) in [
        (10_050, "the+zebra+crossing"),
        (942_100, "1%27+UNION+SELECT+password+FROM+users--+-"),
        (941_110, "%3Cscript%3Ealert(1)%3C/script%3E"),
        (920_272, "a%08b"),
    ] {
        with_previews(rule_id, &sample(content), |previews| {
            for exclusion in Exclusion::candidates(&previews.place, 50_000) {
                let whole = previews.preview(&exclusion.seclang);
                assert_eq!(previews.preview_exclusion(&exclusion), whole, "{}", exclusion.seclang);
            }
        });
    }
}

#[test]
fn a_body_that_is_cut_carries_no_attack_on_another_input() {
    let cut = SampledRequest { cut: true, ..sample("zebra") };
    let place = |target: &str| Place {
        rule_id: 1,
        target: Target::parse(target.as_bytes()).unwrap(),
        path: "/posts/{id}".to_owned(),
    };
    let carrier = |sample, place: Place| carrier(sample, &place.target, &place.path);
    let of_cookie = carrier(Some(&cut), place("REQUEST_COOKIES:a"));
    assert!(of_cookie.method == "GET" && of_cookie.body.is_empty());
    assert!(of_cookie.headers.iter().all(|header| !header.name.starts_with(b"content-")));
    assert_eq!(carrier(Some(&cut), place("ARGS:content")), cut);
    let none = carrier(None, place("ARGS:content"));
    assert_eq!((none.method.as_str(), none.uri.as_slice()), ("GET", b"/posts/id".as_slice()));
}

/// Points that something else in the request has are not the attack's.
#[test]
fn attacks_are_put_into_a_request_without_points() {
    let points = |id: u64, rest: &str| {
        format!("SecRule {rest} \"id:{id},phase:2,pass,log,msg:'points',setvar:'tx.anomaly_score=+5'\"")
    };
    let (mut config, view) = (config(), View::new(&Nothing));
    config.body.rules = vec![
        "SecAction \"id:10070,phase:1,pass,nolog,setvar:tx.anomaly_score=0\"".to_owned(),
        points(10_071, "ARGS:q \"@rx (?i)union\""),
        points(10_072, "ARGS:q \"@rx (?i)select\""),
        points(10_073, "REQUEST_HEADERS:x-odd \"@streq odd\""),
        "SecRule TX:anomaly_score \"@ge 10\" \"id:10074,phase:2,deny,status:403,log\"".to_owned(),
    ];
    let header = |name: &str, value: &str| SampledHeader { name: name.into(), value: value.into() };
    let odd = SampledRequest {
        uri: b"/posts/1?q=union+select".to_vec(),
        headers: sample("").headers.into_iter().chain([header("x-odd", "odd")]).collect(),
        ..sample("a")
    };
    for rule in [10_071, 10_072] {
        let place = place(rule, "ARGS:q");
        let exclusion = Exclusion::new(ExclusionKind::ScopedTarget, &place, 50_000).unwrap();
        let previews = Previews::new(bench_of(&config, &view), place.clone(), Some(&odd), &[]).unwrap();
        let alone = previews.preview_exclusion(&exclusion);
        assert!(alone.effective && alone.is_covered && !alone.safe, "{rule} {:?}", alone.corpus);
        let choice = Choice { place, sample: odd.clone(), conditions: [None; 2] };
        let numbers = [50_000, 50_001, 50_002];
        let mut together = Together::new(bench_of(&config, &view), vec![choice], &numbers).unwrap();
        let preview = together.preview(0, ExclusionKind::ScopedTarget);
        assert!(preview.effective && preview.is_covered && !preview.safe, "{rule} {:?}", preview.corpus);
    }
}

/// At every paranoia level there is a request that attacks at the target of requests can be put into.
#[test]
fn a_plain_request_has_no_points() {
    for level in 1..=4 {
        with_bench_at(level, |bench| {
            let built = bench.build(None).unwrap();
            let trial = bench.trial(&built);
            for (target, path) in [
                ("ARGS:q", "/"),
                ("REQUEST_URI", "/shop"),
                ("REQUEST_URI_RAW", "/items/{id}"),
                ("REQUEST_FILENAME", "/shop"),
                ("REQUEST_METHOD:PUT", "/items/{id}"),
            ] {
                let target = Target::parse(target.as_bytes()).unwrap();
                let clean = clean_carrier((&trial, b""), std::iter::empty(), (&target, path), &[]);
                assert!(clean.is_some(), "level {level}: {target} {path}");
            }
        });
    }
}

/// A method that no application takes is no reason for an exclusion, and no exclusion lets a program be written.
#[test]
fn an_exclusion_of_a_method_is_safe_where_it_is_used_and_writes_no_program() {
    let put = |method: &str, uri: &str| SampledRequest { method: method.to_owned(), uri: uri.into(), ..sample("a") };
    let place = |method: &str, path: &str| {
        let target = Target::parse(format!("REQUEST_METHOD:{method}").as_bytes()).unwrap();
        Place { rule_id: 911_100, target, path: path.to_owned() }
    };
    let preview = |place: &Place, sample: &SampledRequest, callers: usize, seclang: Option<&str>| {
        let mut preview = Preview::default();
        with_bench(|bench| {
            let previews = Previews::new(bench, place.clone(), Some(sample), &[]).unwrap().with_callers(callers);
            let exclusion = Exclusion::new(ExclusionKind::ScopedTarget, place, 50_000).unwrap();
            preview = match seclang {
                Some(seclang) => previews.preview(seclang),
                None => previews.preview_exclusion(&exclusion),
            };
        });
        preview
    };
    for (method, path, uri) in [
        ("PUT", "/files/{id}", "/files/1"),
        ("PUT", "/profile", "/profile"),
        // What is behind a program is its argument.
        ("PUT", "/remote.php/dav/files/{id}", "/remote.php/dav/files/1"),
        ("DELETE", "/files/{id}.txt", "/files/1.txt"),
    ] {
        let (place, sample) = (place(method, path), put(method, uri));
        let used = preview(&place, &sample, 3, None);
        assert!(
            used.effective && used.safe && used.corpus.injected > 5,
            "{path} {:?} {:?}",
            used.corpus,
            used.regressions
        );
        let unused = preview(&place, &sample, 0, None);
        assert!(unused.effective && !unused.is_covered && !unused.safe, "{path}");
        // What asks for the method alone.
        let wide = format!(
            "SecRule REQUEST_METHOD \"@streq {method}\" \"id:50000,phase:1,pass,nolog,ctl:ruleRemoveTargetById=911100;REQUEST_METHOD\""
        );
        let wide = preview(&place, &sample, 3, Some(&wide));
        assert!(wide.effective && !wide.safe && !wide.regressions.is_empty(), "{path} {:?}", wide.corpus);
    }
    let program = preview(&place("PUT", "/uploads/shell.jsp"), &put("PUT", "/uploads/shell.jsp"), 3, None);
    assert!(program.reproduced && !program.effective && !program.safe, "{program:?}");
}
