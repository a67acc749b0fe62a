//! The answer to a gateway's question: the files of a body, each by the scanner.

use std::time::Duration;

use kit::{AskedBody, SourceHealth};
use snapshot::MAX_ASK_BODY;
use tokio::time::{Instant, timeout_at};

use super::gather::subject;
use super::scanner::Scanner;
use super::{Scanners, Verdict, extract};
use crate::{ScanAnswer, ScanFiles, ScanVerdict};

/// How long before the gateway gives up an answer is sent at the latest.
const MARGIN: Duration = Duration::from_millis(200);

/// Has the files of a body scanned. There always is an answer, which says why there is no verdict.
pub(super) async fn answer(
    scanners: &Scanners,
    question: &ScanFiles,
    body: Box<dyn AskedBody>,
    health: &dyn SourceHealth,
    now: u64,
) -> ScanAnswer {
    let end = Instant::now() + Duration::from_millis(u64::from(question.millis)).saturating_sub(MARGIN);
    let (word, verdict, detail) = match verdict(scanners, question, body, health, now, end).await {
        Ok(Verdict::Clean) => ("clean", ScanVerdict::Clean, String::new()),
        Ok(Verdict::Infected(threat)) => ("infected", ScanVerdict::Infected, threat),
        Err(Failure::Overrun) => ("failed", ScanVerdict::Overrun, String::new()),
        Err(Failure::Other(why)) => ("failed", ScanVerdict::Failed, why),
    };
    metrics::counter!("palisade_upload_scans_total", "outcome" => word).increment(1);
    ScanAnswer { verdict: verdict.into(), detail }
}

/// Why there is no verdict.
enum Failure {
    /// There was no room in memory until the end: callers send more than is scanned at once.
    Overrun,
    Other(String),
}

async fn verdict(
    scanners: &Scanners,
    question: &ScanFiles,
    body: Box<dyn AskedBody>,
    health: &dyn SourceHealth,
    now: u64,
    end: Instant,
) -> Result<Verdict, Failure> {
    let id = question.scanner.as_str();
    let Some(scanner) = scanners.get(id) else {
        return Err(Failure::Other(format!("there is no scanner `{}` that is enabled", super::shown(id))));
    };
    // A body is in memory; of a coded one its decoded form as well, and files in base64.
    let forms = if question.content_encoding.is_empty() && question.json_fields.is_empty() { 1 } else { 3 };
    let bytes = body.length().saturating_mul(forms);
    let Ok(_room) = timeout_at(end, scanners.memory.take(&question.ip, bytes)).await else {
        return Err(Failure::Overrun);
    };
    match timeout_at(end, scanned(&scanner, question, body, health, now, end)).await {
        Ok(outcome) => outcome.map_err(Failure::Other),
        Err(_) => Err(Failure::Other(format!("the scan has not ended within {} ms", question.millis))),
    }
}

/// The verdict of a scanner on the files of a body.
async fn scanned(
    scanner: &Scanner,
    question: &ScanFiles,
    body: Box<dyn AskedBody>,
    health: &dyn SourceHealth,
    now: u64,
    end: Instant,
) -> Result<Verdict, String> {
    let complete = body.is_complete();
    let Some(bytes) = body.collect(MAX_ASK_BODY).await else {
        return Err("the gateway has not sent all of the body".to_owned());
    };
    let asked = question.clone();
    let finding = tokio::task::spawn_blocking(move || {
        let files = extract::files(&asked, &bytes, complete);
        (bytes, files)
    });
    let (bytes, files) = finding.await.map_err(|error| error.to_string())?;
    for file in files? {
        let content = file.content(&bytes);
        // That is no fault of the scanner.
        if let Some(why) = scanner.too_long(content) {
            return Err(why);
        }
        let left = end.saturating_duration_since(Instant::now());
        match scanner.verdict(content, file.digest, now, left).await {
            Ok(Verdict::Clean) => {}
            Ok(infected) => return Ok(infected),
            Err(why) => {
                health.fails(&subject(&question.scanner), &why);
                return Err(why);
            }
        }
    }
    Ok(Verdict::Clean)
}
