//! JUnit XML, as CI systems read it.

use std::io::{self, BufWriter, Seek as _, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use tempfile::SpooledTempFile;

use super::{FailOn, Screen, Sink, table};
use crate::about::{About, BadEntryText};
use crate::row::{Effect, Row};
use crate::text::{escaped, head, score};
use crate::totals::{Change, Totals};

/// Bytes of test cases that are held in memory; what is more goes to a temporary file.
const SPOOL: usize = 1 << 20;
/// Bytes of a request line in a test case's name.
const NAME: usize = 512;
/// Bytes of a fault's backtrace.
const FAULT: usize = 16 << 10;

/// Writes a `testsuites` with one `testsuite`, and in it a `testcase` per request: `classname` is the recording's file,
/// `name` the id and the request line. An entry that cannot be read is a skipped one, a timer that died an error of the class
/// `timers`. The counts stand in the head, so
/// the cases wait in a temporary file.
pub struct Junit<W: Write> {
    out: BufWriter<W>,
    fail_on: FailOn,
    cases: Writer<BufWriter<SpooledTempFile>>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
    micros: u64,
}

impl<W: Write> Junit<W> {
    /// Writes to `out` at the end.
    pub fn new(out: W, fail_on: FailOn) -> Self {
        let cases = Writer::new_with_indent(BufWriter::new(SpooledTempFile::new(SPOOL)), b' ', 2);
        Self { out: BufWriter::new(out), fail_on, cases, counts: Counts::default() }
    }

    fn case(&mut self, id: &str, line: &str, micros: u64, verdict: Option<&Verdict>) -> io::Result<()> {
        let file = id.rsplit_once('#').map_or(id, |(file, _)| file);
        let name = if line.is_empty() { id.to_owned() } else { format!("{id} {}", head(line, NAME)) };
        let case = self.cases.create_element("testcase").with_attributes([
            ("classname", &*clean(file)),
            ("name", &*clean(&name)),
            ("time", &*seconds(micros)),
        ]);
        let Some(verdict) = verdict else {
            case.write_empty()?;
            return Ok(());
        };
        case.write_inner_content(|case| {
            let mut element =
                case.create_element(verdict.element).with_attribute(("message", &*clean(&verdict.message)));
            if !verdict.kind.is_empty() {
                element = element.with_attribute(("type", verdict.kind));
            }
            if verdict.text.is_empty() {
                element.write_empty()?;
            } else {
                element.write_text_content(BytesText::new(&clean_lines(&verdict.text)))?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn verdict(&self, row: &Row) -> Option<Verdict> {
        let kind = self.fail_on.failure(row)?;
        let element = if row.effect == Effect::Failed { "error" } else { "failure" };
        Some(Verdict { element, kind, message: message(row), text: text(row) })
    }
}

/// What is said about a test case that did not pass.
struct Verdict {
    element: &'static str,
    kind: &'static str,
    message: String,
    text: String,
}

impl<W: Write> Sink for Junit<W> {
    fn row(&mut self, row: &Row) -> io::Result<()> {
        let verdict = self.verdict(row);
        self.counts.tests += 1;
        self.counts.micros = self.counts.micros.saturating_add(row.micros);
        match verdict.as_ref().map(|verdict| verdict.element) {
            Some("error") => self.counts.errors += 1,
            Some(_) => self.counts.failures += 1,
            None => {}
        }
        self.case(&row.id, &format!("{} {}", row.method, row.path), row.micros, verdict.as_ref())
    }

    fn bad(&mut self, bad: &BadEntryText) -> io::Result<()> {
        self.counts.tests += 1;
        self.counts.skipped += 1;
        let message = format!("cannot be read: {}", bad.why);
        self.case(&bad.id, "", 0, Some(&Verdict { element: "skipped", kind: "", message, text: String::new() }))
    }

    fn end(mut self: Box<Self>, totals: &Totals, about: &About) -> io::Result<()> {
        let summary = totals.summary();
        for (number, fault) in (1..).zip(&summary.timer_faults.first) {
            self.counts.tests += 1;
            self.counts.errors += 1;
            let message = fault.what.lines().next().unwrap_or_default().to_owned();
            let verdict = Verdict { element: "error", kind: "failed", message, text: fault.what.clone() };
            self.case(&format!("timers#{number}"), &fault.id, 0, Some(&verdict))?;
        }
        let title = if about.title.is_empty() { "palisade-replay" } else { &about.title };
        let Counts { tests, failures, errors, skipped, micros } = &self.counts;
        let (title, time) = (clean(title), seconds(*micros));
        let [tests, failures, errors, skipped] = [tests, failures, errors, skipped].map(u64::to_string);
        let attributes = [
            ("name", &*title),
            ("tests", &*tests),
            ("failures", &*failures),
            ("errors", &*errors),
            ("skipped", &*skipped),
            ("time", &*time),
        ];
        let mut spool = self.cases.into_inner().into_inner().map_err(io::IntoInnerError::into_error)?;
        spool.rewind()?;
        let mut out = Writer::new_with_indent(&mut self.out, b' ', 2);
        out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        out.create_element("testsuites").with_attributes(attributes).write_inner_content(|suites| {
            suites.create_element("testsuite").with_attributes(attributes).write_inner_content(|suite| {
                suite.get_mut().write_all(b"\n")?;
                io::copy(&mut spool, suite.get_mut())?;
                let mut text = Vec::new();
                table::totals(&mut text, &summary, about, &Screen::plain(100))?;
                let text = String::from_utf8_lossy(&text);
                suite.create_element("system-out").write_text_content(BytesText::new(&clean_lines(&text)))?;
                Ok(())
            })?;
            Ok(())
        })?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

/// `403, score 15, rules 942100, 949110`.
fn message(row: &Row) -> String {
    let mut out = format!("{} {}", row.effect.word(), row.status);
    if let Some(change) = Change::of(row) {
        out += &format!(", {} (recorded {})", change.words(), row.recorded_status.unwrap_or_default());
    }
    if row.score != 0.0 {
        out += &format!(", score {}", score(row.score));
    }
    if !row.rules.is_empty() {
        let ids: Vec<_> = row.rules.iter().map(|rule| rule.id.to_string()).collect();
        out += &format!(", {} {}", if ids.len() == 1 { "rule" } else { "rules" }, ids.join(", "));
    }
    out
}

/// The rest of what is known, a line each.
fn text(row: &Row) -> String {
    let mut lines =
        vec![format!("host: {}", row.host), format!("caller: {}", row.caller), format!("action: {}", row.action)];
    if !row.reason.is_empty() {
        lines.push(format!("reason: {}", row.reason));
    }
    lines.extend(row.signals.iter().map(|signal| format!("signal: {} {}", signal.name, score(signal.weight))));
    lines.extend(row.rules.iter().map(|rule| format!("rule: {} {}", rule.id, rule.msg)));
    lines.extend(row.notes.iter().map(|note| format!("note: {note}")));
    let mut out: Vec<_> = lines.iter().map(|line| escaped(line).trim_end().to_owned()).collect();
    if let Some(fault) = &row.fault {
        out.push(format!("fault: {}", head(fault, FAULT)));
    }
    out.join("\n")
}

fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// The text without what XML cannot hold, in one line.
fn clean(text: &str) -> String {
    // Neither is a control character, and XML 1.0 has neither.
    escaped(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// The same, line by line.
fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}
