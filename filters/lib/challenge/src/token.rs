//! The tokens of a vendor's widget: asked for, submitted, and verified by the control plane, which has the key for it.

use exchange::{Ask, Exchange, Host, MAX_SCORE, Reply, Verdict};
use serde_json::{Value, json};
use snapshot::VerifyToken;

use crate::binding::Binding;
use crate::flow::Confirmation;
use crate::page::WidgetPage;
use crate::present::{json_reply, navigation, page_reply, reference};
use crate::puzzle::{self, ClearanceClaim, Failure, whole};
use crate::{Challenges, HEADER, flow};

/// How long a submission waits for the control plane, in milliseconds: a second more than the control plane waits for the
/// vendor.
const ASK_MILLIS: u32 = 5000;
/// The longest header of a submission that is looked at, in bytes: every byte of a token may be escaped, and the id of a provider stands
/// beside it.
const MAX_SUBMISSION: usize = 2 * MAX_TOKEN + 512;
/// The longest token, in bytes.
const MAX_TOKEN: usize = 4096;
/// The longest host name, in bytes.
const MAX_HOST: usize = 255;

impl Challenges {
    /// Asks a caller for the token of the widget, with this status.
    pub(crate) fn present_widget(&self, page: &WidgetPage, exchange: &Exchange, status: u16, host: &dyn Host) -> Reply {
        let reference = reference(&exchange.request.id);
        match navigation(exchange) {
            Some(repeats) => {
                let nonce = format!("{:016x}{:016x}", host.random(), host.random());
                let languages = exchange.request.headers.get("accept-language").unwrap_or_default();
                let shows = page.render(&nonce, repeats, languages, reference);
                // Vendors look at the origin of who asks.
                page_reply(status, page.policy(&nonce), b"strict-origin-when-cross-origin", shows)
            }
            None => {
                let widget = self.settings.widget.clone().unwrap_or_default();
                json_reply(
                    status,
                    &json!({
                        "error": "challenge_required",
                        "kind": "vendor",
                        "by": self.settings.provider,
                        "site_key": widget.site_key,
                        "widget_script_url": widget.script_url,
                        "response_field": widget.response_field,
                        "header": HEADER,
                        "reference": reference,
                    }),
                )
            }
        }
    }

    /// The verdict on a request that may submit a token. A puzzle, and a token that names another provider, is left to later steps, unless
    /// `last`.
    pub(crate) fn access_token(&self, module: &str, last: bool, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        match self.submitted_token(exchange) {
            None => Verdict::Pass,
            Some(Err(Failure::OfAnother)) if !last => Verdict::Pass,
            Some(Err(failure)) => flow::refuse(failure, module, exchange, host),
            // The vendor is not asked again by a second step of the provider.
            Some(Ok(token)) if exchange.rejected_by.contains(&self.settings.provider) => {
                self.reject(&token, Failure::Unvouched, module, exchange, host)
            }
            Some(Ok(Token { token, .. })) => {
                let provider = self.settings.provider.clone();
                let (ip, name) = (exchange.caller.ip.clone(), host_name(exchange));
                let question = VerifyToken { provider, token, ip, host: name };
                Verdict::Ask(Ask::new(&question, ASK_MILLIS))
            }
        }
    }

    /// The verdict once the control plane has said what the token is worth. Where it has not, nothing is earned: nobody
    /// else can tell a token from any other text.
    pub(crate) fn token_answered(
        &self,
        module: &str,
        answer: Confirmation,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let token = match self.submitted_token(exchange) {
            None => return Verdict::Pass,
            Some(Err(failure)) => return flow::refuse(failure, module, exchange, host),
            Some(Ok(token)) => token,
        };
        match answer {
            Confirmation::Yes => {
                let reason = "the vendor vouches for the token of the widget; the caller has clearance".to_owned();
                let decision = flow::passed("a token of the widget".to_owned(), reason, module, exchange, host);
                let Binding { ip, ua } = Binding::of(&self.settings, exchange);
                // A widget asks the same of everybody, whatever the score.
                let earned = ClearanceClaim { score: whole(MAX_SCORE), ip, ua };
                self.hand_over(earned, decision, exchange, host)
            }
            Confirmation::No => self.reject(&token, Failure::Unvouched, module, exchange, host),
            Confirmation::Overrun => flow::refuse(Failure::Overrun, module, exchange, host),
            Confirmation::Unavailable | Confirmation::NoControlPlane => {
                let provider = &self.settings.provider;
                let reason = format!(
                    "a token of the challenge provider `{provider}` could not be verified: the control plane or the vendor cannot be reached"
                );
                flow::emit_dependency_event(reason, module, exchange, host);
                self.reject(&token, Failure::Unverified, module, exchange, host)
            }
        }
    }

    /// The verdict on a token for which the vendor does not vouch, or cannot be asked. One that names no provider may be for that of a
    /// later step.
    fn reject(
        &self,
        token: &Token,
        failure: Failure,
        module: &str,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        if token.by.is_some() || !exchange.is_judged_later {
            return flow::refuse(failure, module, exchange, host);
        }
        if !exchange.rejected_by.contains(&self.settings.provider) {
            exchange.rejected_by.push(self.settings.provider.clone());
        }
        Verdict::Pass
    }

    /// The token that a request submits; `None` where it is no submission.
    fn submitted_token(&self, exchange: &Exchange) -> Option<Result<Token, Failure>> {
        if exchange.request.method != b"POST" {
            return None;
        }
        let header = exchange.request.headers.get(HEADER)?;
        Some(match read(header) {
            Some(token) if token.by.as_ref().is_some_and(|by| *by != self.settings.provider) => Err(Failure::OfAnother),
            Some(token) => Ok(token),
            None if puzzle::read(header).is_some() => Err(Failure::OfAnother),
            None => Err(Failure::Malformed),
        })
    }
}

/// A token as it is submitted.
pub(crate) struct Token {
    token: String,
    /// The id of the provider that it is for, where the submission names one.
    by: Option<String>,
}

/// The token of a submission; `None` where there is none that could be one.
pub(crate) fn read(header: &[u8]) -> Option<Token> {
    if header.len() > MAX_SUBMISSION {
        return None;
    }
    let Value::Object(mut fields) = serde_json::from_slice(header).ok()? else { return None };
    let Some(Value::String(token)) = fields.remove("token") else { return None };
    let plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let by = match fields.remove("by") {
        None => None,
        Some(Value::String(by)) => Some(by),
        Some(_) => return None,
    };
    ((1..=MAX_TOKEN).contains(&token.len()) && token.bytes().all(plain)).then_some(Token { token, by })
}

/// The host name that a request is for, without its port; empty where it is none.
fn host_name(exchange: &Exchange) -> String {
    let headers = &exchange.request.headers;
    let authority = headers.get(":authority").or_else(|| headers.get("host")).unwrap_or_default();
    // An IPv6 address has colons of its own, in brackets.
    let end = match authority.iter().position(|byte| *byte == b']') {
        Some(place) => place.saturating_add(1),
        None => authority.iter().position(|byte| *byte == b':').unwrap_or(authority.len()),
    };
    let name = authority.get(..end).unwrap_or_default();
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(byte);
    if name.len() > MAX_HOST || !name.iter().all(known) {
        return String::new();
    }
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
