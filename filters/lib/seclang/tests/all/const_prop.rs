//! Constant propagation and caches change no result: random rule sets that assign, copy, compare and skip, with `ctl`
//! and `allow` between, on an engine with and on one without them.

use std::sync::Arc;

use seclang::{DataFiles, Engine, Intervention, Source, Transaction, TransactionStart};

/// How many rule sets are tried.
const RULE_SETS: u64 = 3000;

const NAMES: [&str; 7] = ["level", "score", "limit", "mode", "count", "header_name", "0"];
const VALUES: [&str; 7] = ["0", "1", "2", "4", "", "Deep", "Deep level/2 deep red"];

struct NoFiles;

impl DataFiles for NoFiles {
    fn read(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

/// SplitMix64: enough for tests, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % below).unwrap()
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.next(list.len() as u64)]
    }
}

fn assignment(random: &mut Random) -> String {
    let (name, other, value) = (random.of(&NAMES), random.of(&NAMES), random.of(&VALUES));
    match random.next(15) {
        12 => format!("setvar:tx.{name}=%{{MATCHED_VAR}}"),
        13 => format!("setvar:tx.{name}=%{{MATCHED_VAR_NAME}}"),
        14 => "setvar:'tx.seen_%{MATCHED_VAR_NAME}=%{MATCHED_VAR}'".to_owned(),
        0 => format!("setvar:tx.{name}=%{{tx.{other}}}"),
        1 => format!("setvar:tx.{name}=+1"),
        2 => format!("setvar:tx.{name}=-%{{tx.{other}}}"),
        3 => format!("setvar:!tx.{name}"),
        4 => "setvar:tx.%{ARGS.name}=4".to_owned(),
        5 => "setvar:tx.header_%{ARGS.name}=1".to_owned(),
        6 => format!("setvar:tx.{name}=%{{ARGS.value}}"),
        _ => format!("setvar:tx.{name}={value}"),
    }
}

fn test(random: &mut Random) -> String {
    let (name, number) = (random.of(&NAMES), random.next(5));
    let kind = random.of(&["@eq", "@lt", "@ge", "!@eq", "@gt", "@le"]);
    match random.next(19) {
        18 => format!("ARGS|ARGS_NAMES|TX:{name} \"@within %{{tx.{}}}\"", random.of(&NAMES)),
        10 | 11 => format!("TX:{name} \"{kind} %{{tx.{}}}\"", random.of(&NAMES)),
        12 => {
            let counted =
                random.of(&["&ARGS:name", "&ARGS", "&REQUEST_HEADERS:user-agent", "&ARGS:/a/", "&REQUEST_COOKIES"]);
            format!("{counted} \"{kind} {number}\"")
        }
        13 => {
            let one =
                random.of(&["REQBODY_ERROR", "REMOTE_USER", "REQUEST_BODY_LENGTH", "DURATION", "ARGS_COMBINED_SIZE"]);
            format!("{one} \"{kind} %{{tx.{name}}}\"")
        }
        14 => format!("RESPONSE_STATUS \"{kind} {}\"", 199 + random.next(3)),
        15 => format!(
            "MATCHED_VARS_NAMES|MATCHED_VAR_NAME \"@rx {}\"",
            random.of(&["ARGS", "^TX:(?:level|mode)$", "value"])
        ),
        16 => format!("TX:/^seen_/|MATCHED_VARS|MATCHED_VAR \"{kind} {number}\""),
        17 => format!("ARGS|ARGS_NAMES|REQUEST_URI \"@contains {}\"", random.of(&["ee", "rx", "vel", "u\u{eb}"])),
        0..=3 => format!("TX:{name} \"{kind} {number}\""),
        4 | 5 => format!("&TX:{name} \"{kind} {}\"", random.next(2)),
        6 => format!("TX:/^(?:{name}|mode)$/ \"{kind} {number}\""),
        7 => {
            format!("ARGS|REQUEST_HEADERS:User-Agent \"@rx {}\"", random.of(&["deep", "(?i)deep", "Deep|level", "^$"]))
        }
        8 => format!("ARGS \"@contains {}\"", random.of(&["ee", "Deep", "l"])),
        _ => format!("ARGS_NAMES|ARGS \"@pm {}\"", random.of(&["deep red", "name level"])),
    }
}

fn control(random: &mut Random, rules: u64) -> String {
    let id = random.next(rules) + 1;
    match random.next(6) {
        0 | 1 => format!("ctl:ruleRemoveById={id}"),
        2 => format!("ctl:ruleRemoveByTag={}", random.of(&["odd", "even"])),
        3 if random.next(3) == 0 => {
            let target = random.of(&["RESPONSE_STATUS", "REQBODY_ERROR", "ARGS", "REQUEST_HEADERS:user-agent"]);
            format!("ctl:ruleRemoveTargetById={id};{target}")
        }
        3 => format!("ctl:ruleRemoveTargetById={id};TX:{}", random.of(&NAMES)),
        4 => format!("ctl:ruleRemoveTargetByTag={};ARGS:value", random.of(&["odd", "even"])),
        _ => format!("ctl:ruleEngine={}", random.of(&["DetectionOnly", "On", "Off", "DetectionOnly"])),
    }
}

/// Rules in the manner of a real set: defaults first, then levels that skip, then tests.
fn rules(random: &mut Random) -> String {
    let count = 8 + random.next(30) as u64;
    let mut text = String::from("SecRuleEngine On\nSecRequestBodyAccess On\nSecResponseBodyAccess On\n");
    for id in 1..=count {
        let phase = match random.next(8) {
            0..=2 => 1,
            3..=5 => 2,
            other => other - 3,
        };
        let mut actions = vec![format!("id:{id}"), format!("phase:{phase}"), random.of(&["nolog", "log"]).to_owned()];
        actions.push(format!("tag:{}", if id % 2 == 0 { "even" } else { "odd" }));
        actions.push(
            random
                .of(&["pass", "pass", "pass", "pass", "pass", "pass", "deny", "allow", "allow:phase", "allow:request"])
                .into(),
        );
        (0..random.next(3)).for_each(|_| actions.push(assignment(random)));
        match random.next(10) {
            0 | 1 => actions.push(format!("skipAfter:END-{}", random.next(4))),
            2 => actions.push(format!("skip:{}", 1 + random.next(4))),
            3 | 4 if random.next(2) == 0 => actions.push(control(random, count)),
            _ => {}
        }
        let transform = random.of(&[
            "",
            "t:lowercase",
            "t:none,t:urlDecodeUni,t:lowercase",
            "t:none",
            "t:uppercase",
            "t:urlDecodeUni,t:removeWhitespace,t:base64Decode",
            "t:base64Decode,t:cmdLine,multiMatch",
            "t:normalizePath,t:jsDecode,t:lowercase,multiMatch",
        ]);
        if !transform.is_empty() && random.next(2) == 0 {
            actions.push(transform.to_owned());
        }
        if random.next(3) == 0 {
            actions.push("capture".to_owned());
        }
        let chained = random.next(6) == 0;
        match random.next(4) {
            0 if !chained => text += &format!("SecAction \"{}\"\n", actions.join(",")),
            _ => {
                if chained {
                    actions.push("chain".to_owned());
                }
                text += &format!("SecRule {} \"{}\"\n", test(random), actions.join(","));
                if chained {
                    text += &format!("SecRule {} \"{}\"\n", test(random), assignment(random));
                }
            }
        }
        if random.next(5) == 0 {
            text += &format!("SecMarker END-{}\n", random.next(4));
        }
    }
    (0..4).for_each(|marker| text += &format!("SecMarker END-{marker}\n"));
    text
}

/// What one transaction ends in: the rules that matched, TX, what blocked, and the reports.
type Outcome = (Vec<u64>, Vec<Option<Vec<u8>>>, Vec<Option<Intervention>>, Vec<(u64, Vec<u8>, Vec<u8>)>);

fn run(engine: &Arc<Engine>, query: &str, agent: &[u8], without_phase: usize) -> Outcome {
    let mut transaction = Transaction::new(Arc::clone(engine), TransactionStart::default());
    transaction.request_line(b"GET", format!("/?{query}").as_bytes(), b"HTTP/1.1");
    transaction.request_header(b"User-Agent", agent);
    let mut interventions = Vec::new();
    if without_phase != 1 {
        interventions.push(transaction.request_headers());
    }
    if without_phase != 2 {
        interventions.push(transaction.request_body(b"", true));
    }
    transaction.response_line(200, b"HTTP/1.1");
    if without_phase != 3 {
        interventions.push(transaction.response_headers());
    }
    interventions.push(transaction.response_body(b"", true));
    transaction.logging();
    let reports = transaction.matched_rules().iter();
    let reports = reports.map(|rule| (rule.rule_id, rule.variable.clone(), rule.value.clone())).collect();
    let names = NAMES.iter().map(|name| transaction.variable(b"TX", name.as_bytes())).collect();
    (transaction.matched_ids().collect(), names, interventions, reports)
}

#[test]
fn constant_propagation_and_caches_change_nothing() {
    let mut random = Random(7);
    let (mut matched, mut denied, mut compiled) = (0, 0, 0);
    for number in 0..RULE_SETS {
        let text = rules(&mut random);
        let Ok(program) = seclang::compile(&[Source::new("rules", text.as_str())], &NoFiles) else { continue };
        compiled += 1;
        let ahead = Arc::new(Engine::new(program.clone()).unwrap());
        let plain = Arc::new(Engine::without_prefilter(program).unwrap());
        // Several transactions on one engine: repeated values are cached from one to the next.
        for _ in 0..6 {
            let values = [
                "0",
                "2",
                "Deep",
                "DEEP",
                "deep%20red",
                "level",
                "",
                "RGVlcA==",
                "ZGVl%25cA==",
                "le%5Cvel",
                "a/../Deep",
            ];
            let name = if random.next(4) == 0 { "name" } else { random.of(&NAMES) };
            let value = random.of(&values);
            let query = format!("name={name}&value={value}&again={value}");
            let agent = random.of(&["Deep", "deep", "Tester/1.0", ""]).as_bytes();
            // Now and then a phase is left out.
            let without = if random.next(6) == 0 { 1 + random.next(3) } else { 0 };
            let (with, reference) = (run(&ahead, &query, agent, without), run(&plain, &query, agent, without));
            assert!(
                with == reference,
                "rule set {number}, ?{query}, without phase {without}\nahead: {with:?}\nplain: {reference:?}\n{text}"
            );
            matched += reference.0.len();
            denied += reference.2.iter().flatten().count();
        }
    }
    // The rule sets are worth something: most can be compiled, and they do things.
    assert!(compiled > RULE_SETS * 9 / 10, "{compiled}");
    assert!(matched > 50_000 && denied > 500, "{matched} {denied}");
}
