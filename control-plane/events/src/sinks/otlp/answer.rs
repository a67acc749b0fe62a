//! What an OTLP server answers.

use axum::http::{StatusCode, header};
use prost::Message as _;
use serde_json::Value;

use super::proto::{ExportLogsPartialSuccess, ExportLogsServiceResponse, Status};
use crate::sinks::Then;
use crate::sinks::parts::{Settled, Unsent};
use crate::sinks::server::{Answer, retry, shown};

/// What was taken of a request with `events` events. An answer that is not one of OTLP is no success: another server may be at that address.
pub(super) fn settled(answer: &Answer, events: usize) -> Result<Settled, Unsent> {
    answer.judge_part().map_err(|unsent| explained(answer, unsent))?;
    answer.check_length(events)?;
    let partial = partial_success(answer);
    let partial = partial.ok_or_else(|| retry("the answer is not one of OTLP".to_owned(), None))?;
    let refused = usize::try_from(partial.rejected_log_records).unwrap_or_default().min(events);
    if refused == 0 && !partial.error_message.is_empty() {
        tracing::debug!(message = shown(&partial.error_message), "the OTLP server warns");
    }
    let refusal = (refused > 0).then(|| match partial.error_message.as_str() {
        "" => "the server has rejected log records and does not say why".to_owned(),
        message => shown(&format!("the server has rejected log records: {message}")),
    });
    Ok(Settled { first: events, refused, refusal, failure: None })
}

/// A failure with what the server says about it. Only 429, 502, 503 and 504 may be retried (OTLP specification, "Retryable Response
/// Codes"), beside those that an operator mends.
fn explained(answer: &Answer, unsent: Unsent) -> Unsent {
    let Unsent::Failed(mut failure) = unsent else { return unsent };
    let is_final = matches!(answer.status, StatusCode::REQUEST_TIMEOUT)
        || answer.status.is_server_error()
            && !matches!(
                answer.status,
                StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
            );
    if is_final {
        failure.then = Then::Drop;
    }
    if let Some(message) = status_message(answer) {
        failure.reason = format!("{}: {}", failure.reason, shown(&message));
    }
    Unsent::Failed(failure)
}

/// Nothing is rejected where the body is empty. Some servers answer a binary request in JSON, against the specification.
fn partial_success(answer: &Answer) -> Option<ExportLogsPartialSuccess> {
    let body = answer.body.as_deref()?;
    if !is_json(answer) {
        return Some(ExportLogsServiceResponse::decode(body).ok()?.partial_success.unwrap_or_default());
    }
    let json: Value = serde_json::from_slice(body).ok()?;
    let partial = json.as_object()?.get("partialSuccess");
    // The JSON encoding of protobuf has 64-bit integers as text.
    let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let rejected = partial.and_then(|partial| partial.get("rejectedLogRecords")).and_then(number);
    let message = partial.and_then(|partial| partial.get("errorMessage")).and_then(Value::as_str);
    Some(ExportLogsPartialSuccess {
        rejected_log_records: rejected.unwrap_or_default(),
        error_message: message.unwrap_or_default().to_owned(),
    })
}

/// The message of a `google.rpc.Status`, where there is one.
fn status_message(answer: &Answer) -> Option<String> {
    let body = answer.body.as_deref()?;
    let message = match is_json(answer) {
        true => serde_json::from_slice::<Value>(body).ok()?.get("message")?.as_str()?.to_owned(),
        false => Status::decode(body).ok()?.message,
    };
    (!message.is_empty()).then_some(message)
}

fn is_json(answer: &Answer) -> bool {
    let kind = answer.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json"))
}
