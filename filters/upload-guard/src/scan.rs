//! Scans of files by a malware scanner. The control plane calls it, and is sent the body.

use exchange::{Action, Answer, Ask, Category, Decision, Exchange, Host, Slot, Verdict};
use files::{Finding, Reason};

use crate::{ScanAnswer, ScanFiles, ScanVerdict, UploadGuard, observe, signal};

/// A scan that is waited for.
struct Waiting {
    /// Only the beginning of the body is scanned.
    partial: bool,
}

impl UploadGuard {
    /// Has the files of the body scanned, where there is a scanner.
    pub(crate) fn scan(&self, partial: bool, exchange: &Exchange, slot: &mut Slot) -> Verdict {
        if self.step.scanner.is_empty() {
            return Verdict::Pass;
        }
        let headers = &exchange.request.headers;
        let question = ScanFiles {
            scanner: self.step.scanner.clone(),
            content_type: headers.get("content-type").unwrap_or_default().to_vec(),
            content_encoding: exchange::codings::list(headers),
            json_fields: self.step.json_fields.clone(),
            body_limit: self.step.body_limit,
            max_files: self.step.max_files,
            millis: self.step.scan_millis,
            ip: exchange.caller.ip.clone(),
        };
        slot.put(Waiting { partial });
        Verdict::Ask(Ask::new(&question, self.step.scan_millis).with_body())
    }

    /// Acts on the answer to a scan.
    pub(crate) fn scanned(
        &self,
        answer: &Answer,
        exchange: &mut Exchange,
        slot: &mut Slot,
        host: &dyn Host,
    ) -> Verdict {
        let partial = slot.take::<Waiting>().is_some_and(|waiting| waiting.partial);
        let scanned = answer.read::<ScanFiles>();
        let verdict = match answer {
            Answer::Overrun => Some(ScanVerdict::Overrun),
            _ => scanned.as_ref().map(ScanAnswer::verdict),
        };
        let said = scanned.map(|scanned| scanned.detail).unwrap_or_default();
        let (reason, detail) = match verdict {
            Some(ScanVerdict::Infected) => (Reason::Malware, format!("a file is infected: {said}")),
            Some(ScanVerdict::Clean) if !partial => return Verdict::Pass,
            Some(ScanVerdict::Clean) => (Reason::ScanFailed, "the body is longer than what can be scanned".to_owned()),
            Some(ScanVerdict::Failed) => (Reason::ScanFailed, format!("the files could not be scanned: {said}")),
            Some(ScanVerdict::Overrun) => {
                let why = "too many are being scanned, or more of the body came than may wait";
                (Reason::ScanFailed, format!("the files could not be scanned: {why}"))
            }
            None => (Reason::ScanFailed, "the files could not be scanned: there was no answer in time".to_owned()),
        };
        // Callers bring an overrun about: it must be no way around the scan.
        let may_pass = self.step.allow_unscanned && verdict != Some(ScanVerdict::Overrun);
        if reason == Reason::ScanFailed && may_pass {
            exchange.score.add(signal("upload:scan_failed".into(), detail.clone(), 0.0, host));
            let message = format!("scan_failed: {detail}; the request went on, as `scan_failure_action` says");
            observe(Category::Dependency, &Decision::new(Action::Log, exchange.score.total(), message), exchange, host);
            return Verdict::Pass;
        }
        self.react(&[Finding { reason, detail }], partial, exchange, host).unwrap_or(Verdict::Pass)
    }
}
