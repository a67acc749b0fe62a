//! The page with a vendor's widget: our frame around it, the vendor's script, and nothing else from elsewhere.

mod texts;

use snapshot::{Challenge, Widget};

use super::texts::Texts;
use super::{STYLE, escape, or, reference_line, sha256_source};
use texts::WidgetTexts;

const SCRIPT: &str = include_str!("widget.js");

/// The page of a provider whose challenge is a widget.
pub(crate) struct WidgetPage {
    /// What the operator has written in the place of the built-in words, safe to stand in HTML.
    title: String,
    message: String,
    /// The operator's own HTML, the public key in its place.
    html: String,
    /// Safe to stand in a quoted attribute, and so is what follows.
    field: String,
    /// The id of the provider.
    by: String,
    script_url: String,
    /// A module does not run as a classic script.
    script_type: &'static str,
    /// The content security policy around the nonce.
    policy: (String, String),
}

impl WidgetPage {
    pub(crate) fn new(settings: &Challenge, widget: &Widget) -> Self {
        let is_module =
            [".mjs", ".module.js", ".module.min.js"].iter().any(|end| path(&widget.script_url).ends_with(end));
        Self {
            title: escape(&settings.title),
            message: escape(&settings.message),
            html: widget.html.replace("{site_key}", &escape(&widget.site_key)),
            field: escape(&widget.response_field),
            by: escape(&settings.provider),
            script_url: escape(&widget.script_url),
            script_type: if is_module { " type=module" } else { "" },
            policy: policy(widget),
        }
    }

    /// The content security policy of a page with this nonce: our script and our style, what the widget needs, and the
    /// way back.
    pub(crate) fn policy(&self, nonce: &str) -> Vec<u8> {
        let (before, behind) = &self.policy;
        format!("{before}{nonce}{behind}").into_bytes()
    }

    /// The page. `repeats`: the browser can ask again by itself afterwards.
    pub(crate) fn render(&self, nonce: &str, repeats: bool, languages: &[u8], reference: &str) -> Vec<u8> {
        let texts = Texts::chosen(languages);
        let Texts { lang, title, done, send_again, failed, cookies, retry, reference: word, .. } = texts;
        let WidgetTexts { message, region, verifying, unavailable, noscript } = WidgetTexts::of(texts);
        let title = or(&self.title, title);
        let message = or(&self.message, message);
        let reference = reference_line(word, reference);
        let widget = self.html.replace("{nonce}", nonce).replace("{lang}", lang);
        let Self { field, by, script_url, script_type, .. } = self;
        let repeats = u8::from(repeats);
        // Our script comes before the widget and its script: what they call has to be there.
        format!(
            "<!doctype html><html lang={lang}><head><meta charset=utf-8>\
             <meta name=viewport content=\"width=device-width,initial-scale=1\"><meta name=robots content=noindex>\
             <title>{title}</title><style>{STYLE}</style></head><body>\
             <main data-field=\"{field}\" data-by=\"{by}\" data-repeat={repeats} data-verifying=\"{verifying}\" data-done=\"{done}\" \
             data-again=\"{send_again}\" data-failed=\"{failed}\" data-cookies=\"{cookies}\" data-gone=\"{unavailable}\">\
             <h1>{title}</h1><p>{message}</p><p id=s role=status aria-live=polite hidden></p>\
             <button id=t type=button hidden>{retry}</button>\
             <noscript><p class=n>{noscript}</p></noscript>\
             <script>{SCRIPT}</script><form id=w aria-label=\"{region}\">{widget}</form>{reference}</main>\
             <script id=v nonce={nonce}{script_type} src=\"{script_url}\" async defer></script></body></html>"
        )
        .into_bytes()
    }
}

/// What stands in the policy before and behind the nonce.
fn policy(widget: &Widget) -> (String, String) {
    let list = |sources: &[String]| sources.iter().map(|source| format!(" {source}")).collect::<String>();
    let (wasm, workers) = match widget.computes {
        true => (" 'wasm-unsafe-eval'", "; worker-src blob:; child-src blob:"),
        false => ("", ""),
    };
    // Beside a hash, a browser does not heed the permission for every style on the page.
    let own_style = match widget.style_sources.iter().any(|source| source == "'unsafe-inline'") {
        true => String::new(),
        false => format!(" {}", sha256_source(STYLE)),
    };
    let before = format!("default-src 'none'; script-src {}{wasm} 'nonce-", sha256_source(SCRIPT));
    let frames = match widget.frame_sources.as_slice() {
        [] => String::new(),
        sources => format!("; frame-src{}", list(sources)),
    };
    let behind = format!(
        "'{}; style-src{own_style}{}; connect-src 'self'{}{frames}{workers}; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'self'",
        list(&widget.script_sources),
        list(&widget.style_sources),
        list(&widget.connect_sources),
    );
    (before, behind)
}

/// A URL without its query and fragment.
fn path(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}
