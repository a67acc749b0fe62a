//! Bodies that are longer than what is inspected, where that is no reason to refuse them.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

const RULES: &str = "SecRuleEngine On\nSecRequestBodyAccess On\n\
    SecRule ARGS \"@rx union\\s+select\" \"id:9,phase:2,deny,status:403,log,msg:'SQL'\"\n\
    SecRule ARGS:rest_of_body \"@validateByteRange 9,10,13,32-126\" \"id:10,phase:2,deny,status:406,log,msg:'noise'\"\n";

fn prefix() -> WafStep {
    WafStep { reject_oversize: false, input_body_limit: 1000, input_files_limit: 50_000, ..step() }
}

fn form_with(before: usize, attack: &str, behind: usize) -> Vec<u8> {
    format!("a={}&q={attack}&b={}", "x".repeat(before), "y".repeat(behind)).into_bytes()
}

/// Hands all of a request over as the host does, in pieces of so many bytes. The status of its refusal, and how many bytes
/// went to the backend before it.
fn send_all(
    plugin: &dyn Plugin,
    exchange: &mut Exchange,
    body: &[u8],
    piece: usize,
    slot: &mut Slot,
    host: &FakeHost,
) -> Option<(u16, usize)> {
    let Verdict::ReadBody(need) = plugin.request(exchange, true, slot, host) else { panic!("the body is not read") };
    let (held, passing) = body.split_at(need.limit.min(body.len()));
    let mut verdicts: Vec<Verdict> =
        held.chunks(piece).map(|piece| plugin.request_piece(exchange, piece, slot, host)).collect();
    let end = Body { bytes: b"", complete: passing.is_empty() };
    verdicts.push(plugin.request_body(exchange, end, slot, host));
    if let Some(refused) = verdicts.iter().find_map(status) {
        return Some((refused, 0));
    }
    assert_eq!(plugin.reads_rest(slot), !passing.is_empty());
    let mut passed = held.len();
    for piece in passing.chunks(piece) {
        let end = passed + piece.len() == body.len();
        if let Some(refused) = status(&plugin.request_rest(exchange, piece, end, slot, host)) {
            return Some((refused, passed));
        }
        passed += piece.len();
    }
    None
}

fn ask(step: WafStep, headers: Headers, body: &[u8], piece: usize) -> Option<(u16, usize)> {
    ask_rules(RULES, step, headers, body, piece)
}

fn ask_rules(rules: &str, step: WafStep, headers: Headers, body: &[u8], piece: usize) -> Option<(u16, usize)> {
    let (host, plugin, mut slot) = (FakeHost::at(0), plugin_of(rules, step), Slot::default());
    send_all(&*plugin, &mut exchange("/", headers), body, piece, &mut slot, &host)
}

#[test]
fn what_passes_behind_the_held_part_is_scanned() {
    for piece in [7, 1000, 65_536] {
        for before in [60_000, 150_000, 400_000] {
            let body = form_with(before, "union+%73elect", 90_000);
            let (refused, passed) = ask(prefix(), form(), &body, piece).expect("it is refused");
            assert_eq!(refused, 403, "{before} in pieces of {piece}");
            assert!(passed < body.len(), "the end is not sent");
        }
    }
    assert_eq!(ask(prefix(), form(), &form_with(150_000, "union", 90_000), 1000), None);
}

#[test]
fn what_a_transformation_hides_is_judged_behind_the_limit() {
    let rule = "SecRule ARGS \"@contains <script\" \"id:9,phase:2,deny,status:403,log,t:none,t:htmlEntityDecode\"";
    let rules = format!("SecRuleEngine On\nSecRequestBodyAccess On\n{rule}\n");
    for before in [500, 3000, 150_000] {
        let ask = |attack| ask_rules(&rules, prefix(), form(), &form_with(before, attack, 9000), 1000);
        assert_eq!(ask("%26lt;script").map(|(status, _)| status), Some(403), "{before}");
        assert_eq!(ask("fine"), None, "{before}");
    }
}

#[test]
fn a_literal_across_two_pieces_is_found_wherever_they_are_cut() {
    let attack = "union+%73elect";
    // Across what is inspected and the rest, and across what is held and what passes.
    for limit in [1000, 50_000] {
        for shift in 0..attack.len() + 2 {
            let body = form_with(limit - 5 - shift, attack, 100_000 - limit);
            assert_eq!(ask(prefix(), form(), &body, 100).map(|(status, _)| status), Some(403), "{limit} {shift}");
        }
    }
    let same = WafStep { input_body_limit: 50_000, ..prefix() };
    for shift in 0..attack.len() + 2 {
        let body = form_with(50_000 - 5 - shift, attack, 9000);
        assert_eq!(ask(same.clone(), form(), &body, 4096).map(|(status, _)| status), Some(403), "{shift}");
    }
}

#[test]
fn an_attack_hides_behind_no_amount_of_what_only_looks_like_one() {
    let decoys = "union+of+workers,+please+select+one.+".repeat(12_000);
    for length in [30_000, decoys.len()] {
        let body = form_with(0, &format!("{}union+select", &decoys[..length]), 10);
        assert_eq!(ask(prefix(), form(), &body, 65_536).map(|(status, _)| status), Some(403), "{length}");
    }
    assert_eq!(ask(prefix(), form(), &form_with(0, &decoys, 10), 65_536), None);
}

#[test]
fn the_content_of_files_is_no_text_to_the_rules_and_fields_behind_it_are() {
    let headers = || Headers::from([("content-type", "multipart/form-data; boundary=b")]);
    let disposition = "--b\r\nContent-Disposition: form-data; name=";
    let upload = |field: &str| {
        let mut body = format!("{disposition}\"f\"; filename=\"f.bin\"\r\n\r\n").into_bytes();
        let mut seed = 7u64;
        body.extend(
            std::iter::repeat_with(|| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 40) as u8
            })
            .take(200_000),
        );
        body.extend(format!("\r\n{disposition}\"q\"\r\n\r\n{field}\r\n--b--\r\n").into_bytes());
        body
    };
    assert_eq!(ask(prefix(), headers(), &upload("fine"), 1000), None);
    assert_eq!(ask(prefix(), headers(), &upload("1 union select 2"), 1000).map(|(status, _)| status), Some(403));
}

#[test]
fn a_long_body_is_a_signal_and_what_is_in_its_rest_is_told_once() {
    let told = |step: WafStep, body: &[u8]| {
        let (host, plugin, mut slot) = (FakeHost::at(0), plugin_of(RULES, step), Slot::default());
        let mut exchange = exchange("/", form());
        assert_eq!(send_all(&*plugin, &mut exchange, body, 4096, &mut slot, &host), None);
        plugin.finish(&mut exchange, &mut slot, &host);
        exchange.score.tags().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let tags = told(prefix(), &form_with(100_000, "fine", 9000));
    assert_eq!(tags, ["waf:limit"]);
    let watching = WafStep { block: false, ..prefix() };
    let attacks = "union+select+".repeat(40_000);
    let tags = told(watching, &form_with(60_000, &attacks, 10));
    assert_eq!(tags.iter().filter(|tag| *tag == "waf:match").count(), 1, "{tags:?}");
}

/// Rules that read JSON and XML, and white space as databases do.
const READERS: &str = "SecRuleEngine On\nSecRequestBodyAccess On\n\
    SecRule REQUEST_HEADERS:Content-Type \"@contains json\" \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n\
    SecRule REQUEST_HEADERS:Content-Type \"@contains xml\" \"id:2,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\n\
    SecRule ARGS|XML:/* \"@rx union(?:[\\s\\x00-\\x20\\xa0]|/\\*[^*]*\\*/)+select\" \"id:9,phase:2,deny,status:403,log,msg:'SQL'\"\n";

fn read(kind: &str, body: &[u8], piece: usize) -> Option<u16> {
    let (host, plugin, mut slot) = (FakeHost::at(0), plugin_of(READERS, prefix()), Slot::default());
    let mut exchange = exchange("/", Headers::from([("content-type", kind)]));
    send_all(&*plugin, &mut exchange, body, piece, &mut slot, &host).map(|(status, _)| status)
}

/// Documents of each kind with this text behind so much of another one.
fn documents(before: usize, json: &str, xml: &str, part: &str) -> [(&'static str, Vec<u8>); 3] {
    let pad = "lorem ipsum ".repeat(before / 12);
    let head = "content-disposition: form-data; name=";
    [
        ("application/json", format!("{{\"pad\": \"{pad}\", \"q\": \"{json}\"}}")),
        ("text/xml", format!("<a><pad>{pad}</pad><q>{xml}</q></a>")),
        (
            "multipart/form-data; boundary=b",
            format!("--b\r\n{head}\"pad\"\r\n\r\n{pad}\r\n--b\r\n{head}\"q\"{part}\r\n--b--\r\n"),
        ),
    ]
    .map(|(kind, body)| (kind, body.into_bytes()))
}

#[test]
fn escapes_of_the_format_hide_nothing_in_the_rest() {
    let json = r"1' \u0075nion \u0073elect";
    let base64 = "\r\ncontent-transfer-encoding: base64\r\n\r\nMScgdW5pb24g\r\nc2VsZWN0";
    let quoted = "\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n1' =75nion=20sel=\r\nect";
    let escaped = format!("\r\ncontent-type: application/json\r\n\r\n{{\"q\": \"{json}\"}}");
    for before in [0, 960, 2000, 9000, 60_000] {
        for part in [base64, quoted, &escaped] {
            for (kind, body) in documents(before, json, "1' &#x75;nion<![CDATA[ ]]>&#115;elect", part) {
                for piece in [13, 4096] {
                    assert_eq!(read(kind, &body, piece), Some(403), "{kind} behind {before}: {part}");
                }
            }
        }
    }
    for (kind, body) in documents(60_000, r"f\u00fcr \n \u0041lle", "f&#xfc;r &lt; alle", "\r\n\r\nf\u{fc}r alle") {
        assert_eq!(read(kind, &body, 4096), None, "{kind}");
    }
}

#[test]
fn noise_and_long_white_space_part_nothing_in_the_rest() {
    let part = |text: &[u8], before: usize| {
        let [_, _, (kind, body)] = documents(before, "", "", "\r\n\r\n%");
        let at = body.iter().rposition(|byte| *byte == b'%').unwrap();
        (kind, [&body[..at], text, &body[at + 1..]].concat())
    };
    let gaps: [&[u8]; 6] = [b"\xa0", b"\x0b", b"\x1f", b"\0", b" ", b"\t\n"];
    for gap in gaps {
        for repeat in [1, 3, 5000] {
            if repeat > 3 && !gap[0].is_ascii_whitespace() && gap[0] != 0x0b {
                continue;
            }
            let text = [b"1'".as_slice(), gap, b"union", &gap.repeat(repeat), b"select"].concat();
            let (kind, body) = part(&text, 60_000);
            assert_eq!(read(kind, &body, 4096), Some(403), "{} {repeat}", gap.escape_ascii());
        }
    }
    let comment = format!("1' union/*{}*/select", "a".repeat(5000));
    let blank = format!("1' union{}select", " ".repeat(5000));
    for text in [comment, blank] {
        for (kind, body) in documents(60_000, &text, &text, &format!("\r\n\r\n{text}")) {
            assert_eq!(read(kind, &body, 4096), Some(403), "{kind}");
        }
        let form = form_with(60_000, &text.replace(' ', "+"), 10);
        assert_eq!(read("application/x-www-form-urlencoded", &form, 4096), Some(403));
    }
}

#[test]
fn what_a_parser_left_unread_in_front_of_the_limit_is_scanned() {
    let long = "x".repeat(90_000);
    let part = "--b\r\ncontent-disposition: form-data; name=";
    for (kind, body) in [
        // The value that is cut.
        ("application/json", format!("{{\"q\": \"1' union select {long}\"}}")),
        ("text/xml", format!("<a q=\"1' union select {long}\"/>")),
        ("text/xml", format!("<a><!-- 1' union select {long} --></a>")),
        ("multipart/form-data; boundary=b", format!("{part}\"q\"\r\n\r\n1' union select\r\n{long}\r\n--b--\r\n")),
        // What is behind an error.
        ("application/json", format!("{{\"a\": 1,, \"q\": \"1' union select\", \"b\": \"{long}\"}}")),
        ("text/xml", format!("<a><b></c><q>1' union select</q><b>{long}</b></a>")),
        (
            "multipart/form-data; boundary=b",
            format!(
                "{part}\"a\"; x\r\n\r\n1\r\n{part}\"q\"\r\n\r\n1' union select\r\n{part}\"c\"\r\n\r\n{long}\r\n--b--\r\n"
            ),
        ),
    ] {
        assert_eq!(read(kind, body.as_bytes(), 4096), Some(403), "{body:.60}");
        assert_eq!(read(kind, body.replace("union", "fine").as_bytes(), 4096), None, "{body:.60}");
    }
}

/// Rules that find nothing, and work for what is suspicious.
const COSTLY: &str = "SecRuleEngine On\nSecRequestBodyAccess On\n\
    SecRule ARGS \"@rx union\\s+select\" \"id:9,phase:2,deny,chain\"\n\
    SecRule ARGS \"@rx (?:nothing|like)\\s+it$\"\n";

/// Text of so many bytes in which rules look for something everywhere.
fn costly(length: usize) -> Vec<u8> {
    "union select ".repeat(length / 13).into_bytes()
}

/// The same in a gzip file: as long as it is, or as short as it can be.
fn gzip(text: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn stored(text: &[u8]) -> Vec<u8> {
    gzip(text, Compression::none())
}

struct Asked {
    status: Option<u16>,
    /// The units that judging the rest has taken.
    work: u64,
    /// The limits that each trail event names.
    trails: Vec<(Vec<String>, usize)>,
    score: f64,
    failures: u64,
}

fn ask_costly(step: WafStep, encoding: &str, body: &[u8]) -> Asked {
    let headers = Headers::from([("content-type", "text/plain"), ("content-encoding", encoding)]);
    let step = WafStep { input_files_limit: 500_000, decompressed_input_body_limit: 1 << 24, ..step };
    let step = WafStep { max_input_compression_ratio: 10_000, ..step };
    let (host, plugin, mut slot) = (FakeHost::at(0), plugin_of(COSTLY, step), Slot::default());
    let mut exchange = exchange("/", headers);
    let verdict = send(&*plugin, &mut exchange, Body { bytes: body, complete: true }, &mut slot, &host);
    plugin.finish(&mut exchange, &mut slot, &host);
    let names = |event: &serde_json::Value| {
        let limits = event["uninspected"].as_array().unwrap().iter();
        let limits = limits.map(|limit| limit["limit"].as_str().unwrap().to_owned()).collect();
        (limits, event["limits"].as_array().unwrap().len())
    };
    Asked {
        status: status(&verdict),
        work: slot.get::<State>().unwrap().transaction.rest_of_body().work,
        trails: host.events_json().iter().filter(|event| event["@type"] == "SvcWafTrailEvent").map(names).collect(),
        score: exchange.score.total(),
        failures: host.counts.borrow().get(&Metric::PluginFailures).copied().unwrap_or_default(),
    }
}

fn with_budget(work: u64, work_per_byte: u64) -> WafStep {
    let budget = crate::WafBudget { work, work_per_byte, memory: 1 << 24, memory_per_byte: 3 };
    WafStep { budget: Some(budget), ..prefix() }
}

const WORK: &str = "units of work for the rest of a body";

#[test]
fn the_rest_of_a_compressed_body_has_the_work_of_one_that_is_inspected() {
    let (text, step) = (costly(450_000), || with_budget(2_000_000, 40));
    let plain = ask_costly(step(), "identity", &text);
    assert_eq!((plain.status, plain.failures), (None, 0));
    assert!(plain.work > 4_000_000, "{}", plain.work);
    // All of it is judged in one call: no more of it counts than of a body that is inspected.
    let ceiling = 2_000_000 + 1000 * 40;
    let refused = ask_costly(step(), "gzip", &stored(&text));
    assert_eq!((refused.status, refused.failures), (Some(503), 1));
    assert!(refused.work > ceiling && refused.work < ceiling + ceiling / 4, "{}", refused.work);
    assert_eq!(refused.trails[0], (vec![WORK.to_owned()], 1));
    // Where nothing is denied it passes, and that is told once.
    for watching in [WafStep { block: false, ..step() }, WafStep { fail_open: true, ..step() }] {
        let passed = ask_costly(watching, "gzip", &stored(&text));
        assert_eq!((passed.status, passed.failures), (None, 1));
        assert!(passed.work < ceiling + ceiling / 4, "nothing is judged behind it: {}", passed.work);
        let told = passed.trails.iter().filter(|(limits, _)| limits.iter().any(|limit| limit == WORK)).count();
        assert_eq!((told, passed.score), (1, 2.0 * 20.0), "{:?}", passed.trails);
    }
}

#[test]
fn a_limit_that_each_part_of_the_rest_meets_is_told_once() {
    // Each batch goes beyond what it may take for itself.
    let watching = WafStep { block: false, ..with_budget(400_000, 1) };
    let passed = ask_costly(watching, "identity", &costly(450_000));
    // The part that is judged with the beginning of the body tells of its own.
    assert_eq!((passed.status, passed.failures, passed.score), (None, 2, 3.0 * 20.0));
    assert_eq!(passed.trails.iter().filter(|(_, limits)| *limits > 0).count(), 2, "{:?}", passed.trails);
}

#[test]
fn a_body_that_unpacks_to_more_than_is_inspected_is_refused_or_told() {
    let text = costly(600_000);
    let step = || with_budget(1 << 40, 0);
    let refused = ask_costly(step(), "gzip", &gzip(&text, Compression::best()));
    let limit = "bytes of the decoded body".to_owned();
    assert_eq!((refused.status, &refused.trails[0].0), (Some(413), &vec![limit.clone()]));
    // What is in front of it is inspected where nothing is denied.
    let passed = ask_costly(WafStep { block: false, ..step() }, "gzip", &gzip(&text, Compression::best()));
    assert_eq!(passed.status, None);
    assert!(passed.work > 4_000_000 && passed.trails.iter().any(|(limits, _)| limits.contains(&limit)));
    let passed = ask_costly(WafStep { inspect_undecodable: true, ..step() }, "gzip", &gzip(&text, Compression::best()));
    assert!(passed.status.is_none() && passed.work > 4_000_000);
}
