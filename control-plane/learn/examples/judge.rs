//! What a contract says of recorded requests, for `make learn-traffic`: one JSON line with the numbers.
//!
//! `judge --contract FILE --valid RECORDING --invalid RECORDING [--original FILE] [--show N]`. The original is the document that the
//! requests were made from: it says which of the invalid requests any contract could refuse. `--show` prints N requests that are judged
//! wrongly, with what was expected.

use std::borrow::Cow;
use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;

use contract::{BodyCheck, BodyResult, Contract, Found, Head, Violation, missing_body};
use recording::traffic::Request;
use serde_json::json;

#[derive(Default)]
struct Arguments {
    contract: PathBuf,
    original: Option<PathBuf>,
    valid: PathBuf,
    invalid: PathBuf,
    show: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut given = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| format!("{option} has no value"))?;
        match option.as_str() {
            "--contract" => given.contract = value.into(),
            "--original" => given.original = Some(value.into()),
            "--valid" => given.valid = value.into(),
            "--invalid" => given.invalid = value.into(),
            "--show" => given.show = value.parse()?,
            _ => return Err(format!("{option} is not an option").into()),
        }
    }
    let contract = open(&given.contract)?;
    let original = given.original.as_ref().map(open).transpose()?;
    let mut shown = given.show;
    let mut out = std::io::stdout().lock();
    let mut show = |request: &Request, what: &str| -> Result<(), std::io::Error> {
        if shown > 0 {
            shown -= 1;
            let line: String = request.line().chars().take(200).collect();
            let body: String = String::from_utf8_lossy(&request.body).chars().take(300).collect();
            writeln!(out, "{what}\n    {line}\n    {body}")?;
        }
        Ok(())
    };
    let (mut valid, mut accepted) = (0_u64, 0_u64);
    for request in requests(&given.valid)? {
        valid += 1;
        match judge(&contract, &request, false) {
            None => accepted += 1,
            Some(found) => {
                show(
                    &request,
                    &format!("valid, and refused: {} {}: {}", found.kind.word(), found.place, found.detail),
                )?;
            }
        }
    }
    let (mut invalid, mut refused, mut strictly) = (0_u64, 0_u64, 0_u64);
    let (mut refusable, mut refused_too) = (0_u64, 0_u64);
    for request in requests(&given.invalid)? {
        invalid += 1;
        let found = judge(&contract, &request, false);
        strictly += u64::from(judge(&contract, &request, true).is_some());
        let wrong = original.as_ref().and_then(|original| judge(original, &request, false));
        refused += u64::from(found.is_some());
        refusable += u64::from(wrong.is_some());
        refused_too += u64::from(wrong.is_some() && found.is_some());
        if let (None, Some(wrong)) = (&found, &wrong) {
            show(&request, &format!("invalid, and accepted: {} {}: {}", wrong.kind.word(), wrong.place, wrong.detail))?;
        }
    }
    let line = json!({
        "valid": valid, "accepted": accepted, "invalid": invalid, "refused": refused, "refused_strictly": strictly,
        "original_refuses": refusable, "of_these_refused": refused_too,
    });
    writeln!(out, "{line}")?;
    Ok(())
}

fn open(path: &PathBuf) -> Result<Contract, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let compiled = contract::compile::compile(&text, "", contract::compile::Options::default())
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Contract::open(&compiled.image)?)
}

fn requests(path: &PathBuf) -> Result<Vec<Request>, Box<dyn Error>> {
    let recording = recording::open(std::slice::from_ref(path), &recording::Options::default())?;
    Ok(recording.map(|entry| entry.map(|entry| entry.exchange.request)).collect::<Result<_, _>>()?)
}

/// The first mismatch, as the filter would find it; `strict` is `reject_unknown_query_params`.
fn judge(contract: &Contract, request: &Request, strict: bool) -> Option<Violation> {
    let target = request.header(":path").unwrap_or_default();
    let at = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at_checked(at)?;
    let method = request.header(":method").unwrap_or_default();
    let matched = match contract.find(method, path, false) {
        Found::Operation(matched) => matched,
        Found::Preflight => return None,
        Found::UnknownPath => {
            return Some(Violation::new(contract::Mismatch::UnknownPath, "path", "no operation has it"));
        }
        Found::MethodNotAllowed(allow) => {
            return Some(Violation::new(contract::Mismatch::MethodNotAllowed, "method", allow));
        }
    };
    let header = |name: &str| {
        let values: Vec<&[u8]> = request
            .headers
            .iter()
            .filter(|(own, _)| own == name.as_bytes())
            .map(|(_, value)| value.as_slice())
            .collect();
        (!values.is_empty()).then(|| Cow::Owned(values.join(b",".as_slice())))
    };
    let query = query.strip_prefix(b"?").unwrap_or_default();
    let head = Head { query, header: &header, reject_unknown: strict };
    if let Some(found) = contract.check_parameters(&matched, &head).into_iter().next() {
        return Some(found);
    }
    let kind = header("content-type");
    let schema = match contract.request_body(matched.operation, kind.as_deref(), !request.body.is_empty()) {
        BodyCheck::Wrong(found) => return Some(found),
        BodyCheck::Required(_) if request.body.is_empty() => return Some(missing_body()),
        BodyCheck::Json(schema) | BodyCheck::Required(Some(schema)) => schema,
        BodyCheck::None | BodyCheck::Required(None) => return None,
    };
    match contract.check_body(schema, &request.body, false) {
        BodyResult::Invalid(found) => found.into_iter().next(),
        BodyResult::Valid | BodyResult::Unjudged => None,
    }
}
