//! Theme and language of the page, which a browser keeps in two cookies. Written into the page: a script would have to read the cookies
//! first, for which a browser asks another process.

use std::borrow::Cow;

use axum::http::{HeaderMap, header};
use console_files::{Coding, File, Representation};

use crate::console::session::cookie_of;

/// How the built page begins, with neither theme nor language chosen.
const PLAIN: &str = r#"<html lang="en">"#;

/// What a browser wants. The default is English and the system's theme, which the built page has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Choices {
    is_german: bool,
    theme: Option<&'static str>,
}

impl Choices {
    /// The choices that are kept; without a language, the one that the browser prefers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let theme = match cookie_of(headers, "palisade_theme").as_deref() {
            Some("light") => Some("light"),
            Some("dark") => Some("dark"),
            _ => None,
        };
        let is_german = match cookie_of(headers, "palisade_language").as_deref() {
            Some("de") => true,
            Some("en") => false,
            _ => prefers_german(headers),
        };
        Self { is_german, theme }
    }

    /// The page with the choices in it, which is not compressed: it is small, and there is one for each choice.
    pub(super) fn apply<'a>(self, file: &'a File, form: &'a Representation) -> Cow<'a, Representation> {
        let plain = file.representations.iter().find(|form| form.coding == Coding::Identity);
        let text = plain.and_then(|form| std::str::from_utf8(&form.bytes).ok());
        let Some((before, after)) = text.filter(|_| self != Self::default()).and_then(|text| text.split_once(PLAIN))
        else {
            return Cow::Borrowed(form);
        };
        let language = if self.is_german { "de" } else { "en" };
        let theme = self.theme.map_or(String::new(), |theme| format!(" data-theme=\"{theme}\""));
        let bytes = format!("{before}<html lang=\"{language}\"{theme}>{after}").into_bytes().into();
        let etag = format!("\"{}-{language}-{}\"", form.etag.trim_matches('"'), self.theme.unwrap_or("system"));
        Cow::Owned(Representation { coding: Coding::Identity, bytes, etag })
    }
}

/// Whether the first language that a browser names is German, whatever the region. Browsers name the preferred one first.
fn prefers_german(headers: &HeaderMap) -> bool {
    let first = headers.get(header::ACCEPT_LANGUAGE).and_then(|line| line.to_str().ok()).unwrap_or_default();
    first.trim_start().get(..2).is_some_and(|language| language.eq_ignore_ascii_case("de"))
}
