use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

use super::*;
use crate::fixture::{Dice, SharedOut, about, bad, golden, rows, written};
use crate::row::Effect;
use crate::totals::Summary;

const TERMINAL: Screen = Screen { width: 120, colour: true, terminal: true, rows: 10 };

fn json() -> String {
    written(|out| Box::new(Json::new(out, &about()).unwrap()))
}

fn junit(fail_on: FailOn) -> String {
    written(|out| Box::new(Junit::new(out, fail_on)))
}

#[test]
fn the_table_is_as_it_was() {
    golden("table.txt", &written(|out| Box::new(Table::new(out, Screen::plain(100)))));
    golden("table-terminal.txt", &written(|out| Box::new(Table::new(out, TERMINAL))));
}

#[test]
fn the_table_is_fit_for_a_terminal() {
    for width in [0, 40, 80, 200] {
        let text = written(|out| Box::new(Table::new(out, Screen::plain(width))));
        assert!(text.chars().all(|c| c == '\n' || c.is_ascii_graphic() || c == ' '), "{text}");
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
        let long: Vec<_> = text.lines().filter(|line| line.len() > width.max(86)).collect();
        assert!(long.is_empty(), "{long:#?}");
    }
    // With colours, escapes are ours alone.
    let text = written(|out| Box::new(Table::new(out, TERMINAL)));
    let foreign = text.replace("\x1b[0m", "").replace("\x1b[1m", "").replace("\x1b[2m", "");
    let foreign =
        ["31", "32", "33", "36"].iter().fold(foreign, |text, code| text.replace(&format!("\x1b[{code}m"), ""));
    assert!(!foreign.contains(['\x1b', '\u{202e}', '\x07', '\r']));
}

#[test]
fn the_table_keeps_no_more_than_it_shows() {
    let mut table = Table::new(Vec::new(), Screen { rows: 3, ..Screen::plain(80) });
    for _ in 0..50 {
        rows().iter().for_each(|row| table.row(row).unwrap());
    }
    assert_eq!(table.kept(), 6);
}

#[test]
fn the_json_document_is_as_it_was() {
    golden("run.json", &json());
}

#[test]
fn the_json_document_has_everything() {
    let document: Value = serde_json::from_str(&json()).unwrap();
    assert_eq!(document["palisade_replay"], 1);
    let requests: Vec<Row> = serde_json::from_value(document["requests"].clone()).unwrap();
    assert_eq!(requests, rows());
    let entries: Vec<BadEntryText> = serde_json::from_value(document["bad_entries"].clone()).unwrap();
    assert_eq!(entries, [bad()]);
    assert_eq!(serde_json::from_value::<About>(document["about"].clone()).unwrap(), about());
    let summary: Summary = serde_json::from_value(document["totals"].clone()).unwrap();
    assert_eq!((summary.requests, summary.bad_entries.count), (7, 1));
}

#[test]
fn a_json_document_of_nothing_is_one() {
    let out = crate::fixture::SharedOut::default();
    let sink = Box::new(Json::new(out.clone(), &About::default()).unwrap());
    sink.end(&Totals::new(), &About::default()).unwrap();
    let document: Value = serde_json::from_slice(&out.0.borrow()).unwrap();
    assert_eq!((&document["requests"], &document["bad_entries"]), (&Value::from([0; 0]), &Value::from([0; 0])));
}

#[test]
fn a_score_without_end_is_still_a_number() {
    let row = Row { score: f64::INFINITY, ..Row::default() };
    let read: Row = serde_json::from_str(&serde_json::to_string(&row).unwrap()).unwrap();
    assert_eq!(read.score, f64::MAX);
}

#[test]
fn junit_is_as_it_was() {
    golden("junit.xml", &junit(FailOn { blocked: true, changed: true }));
}

/// The counts of the root and those of the elements.
fn counted(xml: &str) -> ([u64; 4], [u64; 4]) {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let (mut said, mut found) = ([0; 4], [0; 4]);
    let names = ["tests", "failures", "errors", "skipped"];
    let elements = ["testcase", "failure", "error", "skipped"];
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => return (said, found),
            Event::Start(element) | Event::Empty(element) => {
                let name = element.name().as_ref().to_owned();
                if let Some(place) = elements.iter().position(|element| *element == name) {
                    found[place] += 1;
                }
                for attribute in element.attributes() {
                    let attribute = attribute.unwrap();
                    let value = attribute.value.into_owned();
                    quick_xml::escape::unescape(&value).unwrap();
                    let place = names.iter().position(|name| *name == attribute.key.as_ref());
                    if let (Some(place), true) = (place, name == "testsuites") {
                        said[place] = value.parse().unwrap();
                    }
                }
            }
            _ => {}
        }
    }
}

#[test]
fn junit_counts_what_the_caller_calls_a_failure() {
    for (blocked, changed, failures) in [(false, false, 0), (true, false, 2), (false, true, 4), (true, true, 4)] {
        let xml = junit(FailOn { blocked, changed });
        assert_eq!(counted(&xml), ([8, failures, 1, 1], [8, failures, 1, 1]), "{blocked} {changed}");
    }
}

#[test]
fn a_timer_that_died_is_in_every_output() {
    let made = |make: &dyn Fn(SharedOut) -> Box<dyn Sink>| {
        let out = SharedOut::default();
        let (mut sink, mut totals) = (make(out.clone()), Totals::new());
        for row in rows() {
            totals.add(&row);
            sink.row(&row).unwrap();
        }
        totals.timer_fault("on_tick <1>", "unreachable\n  backtrace");
        sink.end(&totals, &about()).unwrap();
        String::from_utf8(out.0.take()).unwrap()
    };
    let xml = made(&|out| Box::new(Junit::new(out, FailOn { blocked: true, changed: false })));
    let without = rows().len() as u64;
    assert_eq!(counted(&xml), ([without + 1, 2, 2, 0], [without + 1, 2, 2, 0]), "{xml}");
    assert!(xml.contains("classname=\"timers\"") && xml.contains("on_tick &lt;1&gt;"), "{xml}");
    let json = made(&|out| Box::new(Json::new(out, &about()).unwrap()));
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["totals"]["timer_faults"]["count"], 1);
    let table = made(&|out| Box::new(Table::new(out, Screen::plain(100))));
    assert!(table.contains("Timers that died") && table.contains("on_tick <1>"), "{table}");
    let page = made(&|out| Box::new(Html::new(out)));
    assert!(page.contains("Timers that died") && page.contains("on_tick &lt;1&gt;"));
}

#[test]
fn junit_holds_only_what_xml_can() {
    let out = crate::fixture::SharedOut::default();
    let mut sink = Box::new(Junit::new(out.clone(), FailOn { blocked: true, changed: true }));
    let every: String = (0..=0x0001_0000).filter_map(char::from_u32).collect();
    let hostile = Row { id: format!("{every}#1"), path: every, effect: Effect::Blocked, ..Row::default() };
    sink.row(&hostile).unwrap();
    sink.end(&Totals::new(), &about()).unwrap();
    let text = String::from_utf8(out.0.take()).unwrap();
    let odd: Vec<_> =
        text.chars().filter(|c| (c.is_control() && *c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}')).collect();
    assert!(odd.is_empty(), "{odd:?}");
    assert_eq!(counted(&text).1, [1, 1, 0, 0]);
}

#[test]
fn the_page_is_as_it_was() {
    golden("run.html", &written(|out| Box::new(Html::new(out))));
}

#[test]
fn nothing_in_the_page_comes_from_a_recording_but_text() {
    let page = written(|out| Box::new(Html::new(out)));
    assert_eq!(page.matches("<script>").count(), 1, "only the page's own");
    assert!(page.contains("q=&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;amp;x="));
    assert!(!page.contains(['\x1b', '\u{202e}', '\x07', '\r']));
    for outside in ["http:", "https:", "src=", "@import", "url(", "<link", "<img", "javascript:", "onclick"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-"));
}

#[test]
fn the_page_is_one_that_everybody_can_read() {
    let page = written(|out| Box::new(Html::new(out)));
    let images = page.matches("<svg ").count();
    assert!(images == 3 && page.matches("role=\"img\"").count() == images && page.matches("<desc ").count() == images);
    assert_eq!(page.matches("<table").count(), page.matches("<thead>").count());
    assert!(page.matches("<th ").count() == page.matches("scope=\"col\"").count());
    for tag in ["section", "table", "tbody", "tr", "td", "details", "div", "svg", "g", "dl", "ul", "span", "p"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    // A coordinate that is no number would be a hole in a plot.
    assert!(!page.contains("NaN") && !page.contains("=\"inf"));
}

#[test]
fn the_page_says_what_it_leaves_out() {
    let out = crate::fixture::SharedOut::default();
    let (mut sink, mut totals) = (Box::new(Html::new(out.clone())), Totals::new());
    for _ in 0..1_500 {
        for row in rows() {
            totals.add(&row);
            sink.row(&row).unwrap();
        }
    }
    sink.end(&totals, &about()).unwrap();
    let page = String::from_utf8(out.0.take()).unwrap();
    assert_eq!(page.matches("<td class=\"request\">").count(), 4_000);
    // 4,500 requests are blocked or failed, and as many have another status.
    assert_eq!(page.matches("The first 2,000 are listed, 2,500 are left out here").count(), 2);
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(Json::new(Full, &about()).is_err());
    let sinks: [Box<dyn Sink>; 3] = [
        Box::new(Table::new(Full, Screen::plain(80))),
        Box::new(Junit::new(Full, FailOn::default())),
        Box::new(Html::new(Full)),
    ];
    for sink in sinks {
        assert_eq!(sink.end(&Totals::new(), &about()).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

/// All outputs of these rows: table, JSON, JUnit, page.
fn all(rows: &[Row]) -> [String; 4] {
    let outs: [crate::fixture::SharedOut; 4] = Default::default();
    let [table, json, junit, page] = outs.clone();
    let mut sinks: [Box<dyn Sink>; 4] = [
        Box::new(Table::new(table, Screen::plain(80))),
        Box::new(Json::new(json, &about()).unwrap()),
        Box::new(Junit::new(junit, FailOn { blocked: true, changed: true })),
        Box::new(Html::new(page)),
    ];
    let mut totals = Totals::new();
    for row in rows {
        totals.add(row);
        sinks.iter_mut().for_each(|sink| sink.row(row).unwrap());
    }
    sinks.into_iter().for_each(|sink| sink.end(&totals, &about()).unwrap());
    outs.map(|out| String::from_utf8(out.0.take()).unwrap())
}

/// Elements that are opened and closed, by their names.
fn balance(page: &str) -> Vec<(String, i64)> {
    let mut open = std::collections::BTreeMap::<String, i64>::new();
    for tag in page.split('<').skip(1) {
        let name: String = tag.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '/').collect();
        let closes = name.starts_with('/');
        *open.entry(name.trim_start_matches('/').to_owned()).or_default() += if closes { -1 } else { 1 };
    }
    open.retain(|name, count| *count != 0 && !matches!(name.as_str(), "meta" | "input" | "br" | ""));
    open.into_iter().collect()
}

#[test]
fn nothing_at_all_can_be_shown() {
    let [table, json, junit, page] = all(&[]);
    assert!(table.ends_with("\n0 requests: 0 blocked\n"), "{table}");
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["totals"]["requests"], 0);
    assert_eq!(counted(&junit), ([0; 4], [0; 4]));
    assert!(balance(&page).is_empty() && !page.contains("NaN") && page.matches("<svg").count() == 0);
}

#[test]
fn whatever_requests_hold_outputs_stay_whole() {
    let mut dice = Dice(77);
    let pieces = [
        "<",
        ">",
        "&",
        "\"",
        "'",
        "]]>",
        "<!--",
        "</script>",
        "\0",
        "\x1b[2J",
        "\u{202e}",
        "\u{ffff}",
        "\n",
        "\r",
        "%",
        "{",
        "}",
        "\\",
        "\u{4e2d}",
        "\u{1f600}",
        "a",
        "/",
        "?",
        "#",
        "</svg>",
        "</style>",
        " ",
        "\t",
        "\u{85}",
        "\u{2028}",
    ];
    for _ in 0..60 {
        let mut text =
            |most| (0..dice.below(most)).map(|_| pieces[dice.below(pieces.len() as u64) as usize]).collect::<String>();
        let mut rows = Vec::new();
        for _ in 0..12 {
            let rules = vec![crate::Rule { id: 7, msg: text(9) }, crate::Rule { id: 8, msg: text(40) }];
            let signals = vec![crate::Signal { name: text(5), weight: 1.5 }];
            let row =
                Row { id: text(9), method: text(4), host: text(9), path: text(90), caller: text(9), ..Row::default() };
            rows.push(Row {
                action: text(4),
                reason: text(20),
                notes: vec![text(9)],
                fault: Some(text(50)),
                rules,
                signals,
                ..row
            });
        }
        for row in &mut rows {
            row.effect = Effect::ALL[dice.below(5) as usize];
            row.status = dice.below(600) as u16;
            row.recorded_status = (dice.below(2) == 0).then_some(200);
            row.score = dice.below(130) as f64;
            row.at = dice.next() >> dice.below(64);
        }
        let [table, json, junit, page] = all(&rows);
        assert!(table.chars().all(|c| c == '\n' || !c.is_control()));
        let document: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::from_value::<Vec<Row>>(document["requests"].clone()).unwrap(), rows);
        let (said, found) = counted(&junit);
        assert_eq!(said, found);
        assert_eq!((balance(&page), page.matches("<script").count()), (Vec::new(), 1));
    }
}
