//! The page: one document without anything from elsewhere, but for what a vendor's widget needs.

mod texts;
mod waiting;
mod widget;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use snapshot::Challenge;

use crate::wait::Wait;
use texts::Texts;
pub(crate) use widget::WidgetPage;

const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// The page of a provider.
pub(crate) struct Page {
    /// What the operator has written in the place of the built-in words, safe to stand in HTML.
    title: String,
    message: String,
    policy: String,
}

impl Page {
    pub(crate) fn new(settings: &Challenge) -> Self {
        // The styles come last: one more is added for a wait.
        let policy = format!(
            "default-src 'none'; script-src {}; worker-src blob:; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'self'; style-src {}",
            sha256_source(SCRIPT),
            sha256_source(STYLE)
        );
        Self { title: escape(&settings.title), message: escape(&settings.message), policy }
    }

    /// Its content security policy: this script, this style, workers of this script, and the way back.
    pub(crate) fn policy(&self, wait: Option<&Wait>) -> Vec<u8> {
        let wait = wait.map(|wait| format!(" {}", sha256_source(&waiting::style(wait)))).unwrap_or_default();
        format!("{}{wait}", self.policy).into_bytes()
    }

    /// The page with a puzzle. `repeats`: the browser can ask again by itself afterwards. `wait`: what takes the place of
    /// the puzzle where there is no JavaScript.
    pub(crate) fn render(
        &self,
        challenge: &str,
        bits: u32,
        repeats: bool,
        languages: &[u8],
        reference: &str,
        wait: Option<&Wait>,
    ) -> Vec<u8> {
        let texts = Texts::chosen(languages);
        let Texts {
            lang,
            title,
            message,
            progress,
            working,
            done,
            send_again,
            failed,
            cookies,
            retry,
            noscript,
            reference: word,
        } = texts;
        let title = or(&self.title, title);
        let message = or(&self.message, message);
        let reference = reference_line(word, reference);
        // Nothing happens by itself where there are no scripts.
        let hidden = if self.message.is_empty() { " hidden" } else { "" };
        let head = wait.map(waiting::head).unwrap_or_default();
        let noscript = match wait {
            Some(wait) => waiting::body(wait, texts, repeats),
            None => format!("<p class=n>{noscript}</p>"),
        };
        let repeats = u8::from(repeats);
        format!(
            "<!doctype html><html lang={lang}><head><meta charset=utf-8>\
             <meta name=viewport content=\"width=device-width,initial-scale=1\"><meta name=robots content=noindex>\
             <title>{title}</title><style>{STYLE}</style>{head}</head><body>\
             <main data-c=\"{challenge}\" data-d={bits} data-repeat={repeats} data-done=\"{done}\" \
             data-again=\"{send_again}\" data-failed=\"{failed}\" data-cookies=\"{cookies}\">\
             <svg viewBox=\"0 0 24 24\" aria-hidden=true><path d=\"M12 2 4 5v6c0 5 3.4 9.3 8 11 4.6-1.7 8-6 8-11V5z\"/>\
             <path d=\"m8.5 12 2.5 2.5 4.5-5\"/></svg>\
             <h1>{title}</h1><p id=m{hidden}>{message}</p>\
             <div id=b role=progressbar aria-label=\"{progress}\" aria-valuemin=0 aria-valuemax=100 aria-valuenow=0 hidden>\
             <i></i></div><p id=s role=status aria-live=polite hidden>{working}</p>\
             <button id=t type=button hidden>{retry}</button>\
             <noscript>{noscript}</noscript>{reference}</main>\
             <script>{SCRIPT}</script></body></html>"
        )
        .into_bytes()
    }
}

/// The line by which the operator finds the request; none where it has no id.
fn reference_line(word: &str, reference: &str) -> String {
    if reference.is_empty() { String::new() } else { format!("<p class=r>{word} <code>{reference}</code></p>") }
}

/// What lets an inline script or style pass a content security policy.
pub(crate) fn sha256_source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

fn or<'a>(own: &'a str, built_in: &'a str) -> &'a str {
    if own.is_empty() { built_in } else { own }
}

/// Text as it may stand in HTML, in a quoted attribute too.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
