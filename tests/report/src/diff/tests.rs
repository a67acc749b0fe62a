use std::io::{BufReader, Read};

use super::*;
use crate::fixture::{Dice, SharedOut, about, golden, rows, written};
use crate::row::{Row, Rule};
use crate::sink::{Json, Screen, Sink as _};
use crate::totals::Totals;

/// The document of a replay with these rows.
fn document(rows: &[Row]) -> String {
    let out = SharedOut::default();
    let (mut sink, mut totals) = (Box::new(Json::new(out.clone(), &about()).unwrap()), Totals::new());
    for row in rows {
        totals.add(row);
        sink.row(row).unwrap();
    }
    sink.end(&totals, &about()).unwrap();
    String::from_utf8(out.0.take()).unwrap()
}

fn reader(name: &str, text: &str) -> Reader<BufReader<Trickle>> {
    try_reader(name, text).unwrap()
}

fn try_reader(name: &str, text: &str) -> Result<Reader<BufReader<Trickle>>, Error> {
    Reader::new(name, BufReader::with_capacity(7, Trickle(text.as_bytes().to_vec(), 0)))
}

/// Gives a few bytes at a time, as pipes do.
struct Trickle(Vec<u8>, usize);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.0[self.1..];
        let taken = rest.len().min(buffer.len()).min(3);
        buffer[..taken].copy_from_slice(&rest[..taken]);
        self.1 += taken;
        Ok(taken)
    }
}

fn compared(a: &[Row], b: &[Row], options: &Options) -> Diff {
    diff(reader("a.json", &document(a)), reader("b.json", &document(b)), options).unwrap()
}

/// The error that comes of reading all of a document.
fn wrong(text: &str) -> String {
    let whole = try_reader("run.json", text).and_then(Reader::rest);
    whole.expect_err("this is not as a replay writes it").to_string()
}

fn row(id: u64) -> Row {
    let id = format!("a.har#{id}");
    Row { id, method: "GET".to_owned(), path: "/".to_owned(), action: "none".to_owned(), status: 200, ..Row::default() }
}

/// The rows of the fixture after a change of the rules.
fn later() -> Vec<Row> {
    let rule = |id, msg: &str| Rule { id, msg: msg.to_owned() };
    let mut rows = rows();
    rows[0] = Row { effect: Effect::Failed, status: 503, fault: Some("trap".to_owned()), ..rows[0].clone() };
    let rules = vec![rule(920_350, "Host header is a numeric IP address"), rule(942_100, "SQL <b>")];
    rows[1] =
        Row { effect: Effect::Blocked, status: 403, action: "deny".to_owned(), score: 8.0, rules, ..rows[1].clone() };
    rows[2] = Row {
        effect: Effect::Passed,
        status: 200,
        action: "none".to_owned(),
        score: 0.0,
        rules: vec![],
        ..rows[2].clone()
    };
    rows[3] = Row { action: "tarpit".to_owned(), ..rows[3].clone() };
    rows[4] = Row { score: 100.0, ..rows[4].clone() };
    let id = "shop.har#11\x1b[0m".to_owned();
    rows[5] = Row { id, path: "/new<script>".to_owned(), ..row(0) };
    rows
}

#[test]
fn a_document_is_read_as_it_was_written() {
    let text = written(|out| Box::new(Json::new(out, &about()).unwrap()));
    let mut reader = reader("run.json", &text);
    let mut read = Vec::new();
    while let Some(row) = reader.next_row().unwrap() {
        read.push(row);
    }
    assert_eq!(read, rows());
    assert_eq!(reader.next_row().unwrap(), None);
    let rest = reader.rest().unwrap();
    assert_eq!((rest.about, rest.totals.bad_entries.count), (about(), 1));
}

#[test]
fn a_document_may_be_laid_out_in_another_way() {
    let text = document(&rows());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap().replace('\n', "\r\n");
    let short = value.to_string();
    let mut fields: Vec<_> = value.as_object().unwrap().clone().into_iter().collect();
    fields.push(("new".to_owned(), serde_json::json!({"any": ["thing", 1.5, null, "]}\\\""]})));
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    let sorted = serde_json::Value::Object(fields.into_iter().collect()).to_string();
    for text in [pretty, short, sorted] {
        let diff = diff(reader("a", &text), reader("b", &document(&rows())), &Options::default()).unwrap();
        assert!(!diff.differs());
        assert_eq!(diff.counts.same, 7);
    }
}

#[test]
fn a_document_that_is_cut_off_says_where() {
    let text = document(&rows());
    // Wherever it is cut, it is an error that names the file and the last line.
    for end in 0..text.trim_end().len() {
        if text.is_char_boundary(end) {
            let (part, error) = (&text[..end], wrong(&text[..end]));
            let line = part.bytes().filter(|byte| *byte == b'\n').count() + 1;
            assert!(error.starts_with(&format!("run.json, line {line}: ")), "{error} at {end}");
        }
    }
    let cut = text.find("shop.har#5").unwrap();
    assert_eq!(
        wrong(&text[..cut]),
        "run.json, line 7: the document ends in or before request 4: it was cut off; let the replay come to its end"
    );
}

#[test]
fn a_document_that_is_odd_says_what_is_wrong_and_where() {
    let text = document(&rows());
    let odd = |from: &str, to: &str| wrong(&text.replacen(from, to, 1));
    assert_eq!(wrong("[]"), "run.json, line 1: this is no document of palisade-replay: it does not begin with {");
    assert_eq!(wrong(""), "run.json, line 1: this is no document of palisade-replay: it does not begin with {");
    assert_eq!(wrong("{}"), "run.json, line 1: this is no document of palisade-replay: it has no `requests`");
    assert_eq!(
        wrong("\n{\"requests\": []}"),
        "run.json, line 2: this is no document of palisade-replay: `palisade_replay` does not come before `requests`"
    );
    assert_eq!(
        odd("\"palisade_replay\": 1", "\"palisade_replay\": 2"),
        "run.json, line 1: the document has version 2, and only 1 is known: use a newer tool"
    );
    assert_eq!(
        odd("\"status\":403", "\"status\":\"403\""),
        "run.json, line 6: request 3, field `status`: invalid type: string \"403\", expected u16"
    );
    assert!(
        odd("\"effect\":\"slowed\"", "\"effect\":\"eaten\"")
            .starts_with("run.json, line 7: request 4, field `effect`: unknown variant `eaten`")
    );
    assert!(odd("\"method\":", "\"method\"").starts_with("run.json, line 4: request 1"));
    assert_eq!(
        odd("},\n{\"id\":\"shop.har#2", "}\n{\"id\":\"shop.har#2"),
        "run.json, line 5: a comma or the end of `requests` is missing before request 2"
    );
    assert_eq!(odd("\n],\n\"bad", ",\n],\n\"bad"), "run.json, line 11: nothing comes after a comma in `requests`");
    assert_eq!(wrong(&format!("{text}x")), "run.json, line 16: something comes after the document's end");
    assert!(
        odd("\"totals\":", "\"total\":")
            .ends_with("line 16: the document ends without `totals`: it is not as palisade-replay writes it")
    );
    assert!(odd("{\"id\":\"shop.har#1\"", "{\"id\":\"x\",\"id\":\"shop.har#1\"").contains("line 4: request 1"));
    assert_eq!(odd("\"bad_entries\": [", "\"requests\": ["), "run.json, line 12: `requests` is there twice");
    let key = "x".repeat(2_000);
    assert_eq!(wrong(&format!("{{\"{key}\": 1}}")), "run.json, line 1: the name of a field is longer than 1024 bytes");
    let lost = text.lines().filter(|line| !line.contains("shop.har#5")).collect::<Vec<_>>().join("\n");
    assert!(
        wrong(&lost).ends_with("it has 6 requests, but its totals are those of 7: something was taken out or put in")
    );
}

#[test]
fn lines_are_counted_within_requests_as_well() {
    let value: serde_json::Value = serde_json::from_str(&document(&rows())).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    let odd = pretty.replace("\"score\": 120.0", "\"score\": \"much\"");
    let line = odd.lines().position(|line| line.contains("much")).unwrap() + 1;
    let expected =
        format!("run.json, line {line}: request 5, field `score`: invalid type: string \"much\", expected f64");
    assert_eq!(wrong(&odd), expected);
    let cut = &pretty[..pretty.find("more/api.json#1").unwrap()];
    assert!(wrong(cut).starts_with(&format!("run.json, line {}: the document ends", cut.lines().count())));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Reader::open(std::path::Path::new("/nowhere/run.json")).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/run.json, line 1: cannot be opened: "), "{error}");
}

#[test]
fn every_kind_of_difference_is_found() {
    let diff = compared(&rows(), &later(), &Options::default());
    let expected = Counts {
        compared: 6,
        same: 1,
        failed: 1,
        blocked: 1,
        unblocked: 1,
        answer: 1,
        score: 1,
        rules: 0,
        only_a: 1,
        only_b: 1,
    };
    assert_eq!(diff.counts, expected);
    let ids: Vec<_> = diff.changed.iter().map(|changed| changed.id.as_str()).collect();
    assert_eq!(ids, ["shop.har#1", "shop.har#2", "shop.har#3", "shop.har#5", "shop.har#9"]);
    assert_eq!((&*diff.only_a[0].id, &*diff.only_b[0].id), ("shop.har#10", "shop.har#11\x1b[0m"));
    assert_eq!(diff.changed[1].rules_added, [942_100]);
    assert_eq!(diff.changed[2].rules_removed, [941_110, 949_110]);
    assert_eq!((&*diff.rules_added.entries[0].label, diff.rules_added.entries[0].blocked), ("SQL <b>", 1));
    assert_eq!((diff.rules_removed.distinct, diff.differs(), diff.word()), (2, true, "differs"));
}

#[test]
fn rules_and_scores_alone_are_differences() {
    let rules = |ids: &[u64]| ids.iter().map(|id| Rule { id: *id, msg: String::new() }).collect::<Vec<_>>();
    let a = [Row { rules: rules(&[1, 2]), ..row(1) }, Row { score: 5.0, ..row(2) }];
    let b = [Row { rules: rules(&[2, 1, 2]), ..row(1) }, Row { score: 7.0, ..row(2) }];
    assert_eq!(compared(&a, &b, &Options::default()).counts.score, 1);
    assert_eq!(compared(&a, &b, &Options { score: 2.0, ..Options::default() }).word(), "same");
    let b = [Row { rules: rules(&[2]), ..row(1) }, a[1].clone()];
    let diff = compared(&a, &b, &Options::default());
    assert_eq!((diff.counts.rules, diff.changed[0].rules_removed.as_slice()), (1, [1_u64].as_slice()));
}

#[test]
fn a_hold_and_the_plugin_are_differences() {
    let held = |millis| {
        let (effect, action) = (Effect::Slowed, "tarpit".to_owned());
        [Row { effect, action, held_millis: millis, plugin: "threat-response".to_owned(), ..row(1) }]
    };
    let of = |a: &[Row], b: &[Row]| compared(a, b, &Options::default());
    // What is held goes on at a tick.
    assert_eq!(of(&held(100), &held(300)).word(), "same");
    let diff = of(&held(100), &held(30_000));
    assert_eq!((diff.counts.answer, diff.counts.same), (1, 0));
    let changed = &diff.changed[0];
    assert_eq!((changed.kind, changed.before.held_millis, changed.after.held_millis), (Kind::Answer, 100, 30_000));
    let mut table = Vec::new();
    diff.table(&mut table, &Screen::plain(110)).unwrap();
    let table = String::from_utf8(table).unwrap();
    assert!(table.contains("slowed 200 held 100 ms") && table.contains("slowed 200 held 30"), "{table}");
    let other = [Row { plugin: "bot-guard".to_owned(), ..held(100)[0].clone() }];
    let diff = of(&held(100), &other);
    assert_eq!((diff.counts.rules, &*diff.changed[0].before.plugin), (1, "threat-response"));
}

#[test]
fn entries_that_cannot_be_read_are_counted_beside_the_result() {
    let with = |bad: u64| {
        let out = SharedOut::default();
        let (mut sink, mut totals) = (Box::new(Json::new(out.clone(), &about()).unwrap()), Totals::new());
        totals.add(&row(1));
        sink.row(&row(1)).unwrap();
        for number in 0..bad {
            let bad = crate::BadEntryText { id: format!("a.har#{number}"), why: "no method".to_owned() };
            totals.bad(&bad);
            sink.bad(&bad).unwrap();
        }
        sink.end(&totals, &about()).unwrap();
        String::from_utf8(out.0.take()).unwrap()
    };
    let diff = diff(reader("a", &with(0)), reader("b", &with(3)), &Options::default()).unwrap();
    let mut json = Vec::new();
    diff.json(&mut json).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&document["result"], &document["bad_entries"]), (&"same".into(), &serde_json::json!({"a": 0, "b": 3})));
}

#[test]
fn the_order_of_requests_does_not_matter() {
    let mut dice = Dice(13);
    let a: Vec<_> = (0..2_000).map(row).collect();
    let mut b: Vec<_> = a.iter().skip(5).cloned().chain((9_000..9_003).map(row)).collect();
    b[100].status = 403;
    b[200].effect = Effect::Blocked;
    let in_step = compared(&a, &b, &Options::default());
    let shuffled = {
        let mut b = b.clone();
        (1..b.len()).rev().for_each(|place| b.swap(place, dice.below(place as u64 + 1) as usize));
        b
    };
    let reversed = b.iter().rev().cloned().collect::<Vec<_>>();
    for b in [shuffled, reversed] {
        let diff = compared(&a, &b, &Options::default());
        assert_eq!(diff.counts, in_step.counts);
        assert_eq!(diff.changed, in_step.changed);
        assert_eq!(diff.only_a, in_step.only_a);
    }
    let expected =
        Counts { compared: 1_995, same: 1_993, blocked: 1, answer: 1, only_a: 5, only_b: 3, ..Counts::default() };
    assert_eq!(in_step.counts, expected);
    let back = compared(&b, &a, &Options::default());
    assert_eq!((back.counts.unblocked, back.counts.only_a, back.counts.only_b), (1, 3, 5));
}

#[test]
fn an_id_that_waits_twice_is_an_error() {
    let (a, b) = (document(&[row(1), row(1), row(2)]), document(&[row(3), row(4), row(5)]));
    let error = diff(reader("a.json", &a), reader("b.json", &b), &Options::default()).unwrap_err().to_string();
    assert!(error.starts_with("a.json, line 5: `a.har#1` is there twice"), "{error}");
    let both = document(&[row(1), row(1), row(2)]);
    assert!(!diff(reader("a", &both), reader("b", &both), &Options::default()).unwrap().differs());
}

#[test]
fn lists_have_a_cap_and_counts_have_none() {
    let a: Vec<_> = (0..50).map(row).collect();
    let b: Vec<_> = a.iter().map(|row| Row { effect: Effect::Blocked, ..row.clone() }).collect();
    let diff = compared(&a, &b, &Options { listed: 3, ..Options::default() });
    assert_eq!((diff.counts.blocked, diff.changed.len()), (50, 3));
    let mut text = Vec::new();
    diff.table(&mut text, &Screen::plain(80)).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("Newly blocked (the first 3 of 50)"));
}

#[test]
fn the_outputs_are_as_they_were() {
    let diff = compared(&rows(), &later(), &Options::default());
    let (mut table, mut json, mut html) = (Vec::new(), Vec::new(), Vec::new());
    diff.table(&mut table, &Screen::plain(110)).unwrap();
    diff.json(&mut json).unwrap();
    diff.html(&mut html).unwrap();
    let [table, json, html] = [table, json, html].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(table.chars().all(|c| c == '\n' || c.is_ascii_graphic() || c == ' '), "{table}");
    assert!(!html.contains(['\x1b', '\u{202e}', '\r']) && html.matches("<script>").count() == 1);
    assert!(html.contains("/new&lt;script&gt;") && html.contains("SQL &lt;b&gt;"));
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&document["palisade_diff"], &document["result"]), (&1.into(), &"differs".into()));
    assert_eq!(serde_json::from_str::<Diff>(&json).unwrap(), diff);
    golden("diff.txt", &table);
    golden("diff.json", &json);
    golden("diff.html", &html);
}

#[test]
fn two_of_the_same_say_so() {
    let diff = compared(&rows(), &rows(), &Options::default());
    let (mut table, mut html) = (Vec::new(), Vec::new());
    diff.table(&mut table, &Screen::plain(80)).unwrap();
    diff.html(&mut html).unwrap();
    assert_eq!((diff.word(), diff.differs()), ("same", false));
    assert!(String::from_utf8(table).unwrap().ends_with("\nThe two do not differ.\n"));
    assert!(String::from_utf8(html).unwrap().contains("The two do not differ."));
}

/// Names of all fields in a value.
fn fields(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        serde_json::Value::Object(items) => {
            for (name, item) in items {
                found.push(name.clone());
                if name != "statuses" && name != "actions" {
                    fields(item, found);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_documented_document_is_one_and_all_fields_are_documented() {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme.split_once("```json\n").unwrap();
    let (example, prose) = rest.split_once("```").unwrap();
    let mut documented = reader("README.md", example);
    let (mut rows, mut totals) = (Vec::new(), Totals::new());
    while let Some(row) = documented.next_row().unwrap() {
        totals.add(&row);
        rows.push(row);
    }
    let rest = documented.rest().unwrap();
    totals.bad(&crate::BadEntryText {
        id: "shop.har#2".to_owned(),
        why: "line 120: the request has no method; record it again".to_owned(),
    });
    totals.took(std::time::Duration::from_millis(4));
    // The example's totals are those of its requests.
    assert_eq!(totals.summary(), rest.totals);

    let mut row = crate::fixture::rows()[5].clone();
    (row.micros, row.reason, row.notes) = (5, "r".to_owned(), vec!["n".to_owned()]);
    rows.push(row);
    let mut names = Vec::new();
    fields(&serde_json::from_str(&document(&rows)).unwrap(), &mut names);
    names.extend(["why", "latency", "elapsed_millis", "what"].map(str::to_owned));
    for name in names {
        assert!(prose.contains(&format!("`{name}`")), "{name} is not documented");
    }
}
