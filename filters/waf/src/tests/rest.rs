//! Bodies that are longer than what is inspected, where that is no reason to refuse them.

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
    let (host, plugin, mut slot) = (FakeHost::at(0), plugin_of(RULES, step), Slot::default());
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
