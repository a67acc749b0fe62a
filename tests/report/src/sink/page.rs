//! What all HTML outputs have in common: one file that needs nothing else, and is whole without its script.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Narrows a long list down to what holds a text. Its hash stands in the page's policy: no other script runs.
const SCRIPT: &str = include_str!("page.js");
/// The SHA-256 of the script, in base64; a test holds it against the script.
const SCRIPT_HASH: &str = "1Uak4JqwFfC2Psg3wtPZ+S6n3sz5JN7j6RRtT99pgyw=";
const STYLE: &str = include_str!("page.css");

/// A page. `body` is what comes between the page's head and its end.
pub(crate) fn page(title: &str, body: &Markup) -> Markup {
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{SCRIPT_HASH}'; \
         base-uri 'none'; form-action 'none'"
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (crate::text::escaped(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (body) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// A list of more rows than this can be narrowed down.
pub(crate) const FILTERED: usize = 10;

/// A table that scrolls by itself where the page is too narrow. `heads` that begin with `>` are over numbers, those with
/// `~` take what room there is. With an `id`, the script shows a field that narrows it down.
pub(crate) fn grid(id: Option<&str>, label: &str, heads: &[&str], rows: impl Iterator<Item = Vec<Markup>>) -> Markup {
    let class = |place: usize| match heads.get(place) {
        Some(head) if head.starts_with('>') => Some("number"),
        Some(head) if head.starts_with('~') => Some("wide"),
        _ => None,
    };
    html! {
        @if let Some(id) = id {
            p.filter hidden data-rows=(id) {
                label { "Only rows with " input type="search" autocomplete="off" spellcheck="false"; }
                " " output {}
            }
        }
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table id=[id] {
                thead { tr {
                    @for (place, head) in heads.iter().enumerate() {
                        th scope="col" class=[class(place)] { (head.trim_start_matches(['>', '~'])) }
                    }
                } }
                tbody {
                    @for row in rows {
                        tr { @for (place, cell) in row.iter().enumerate() { td class=[class(place)] { (cell) } } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn the_policy_allows_the_script_and_no_other() {
        assert_eq!(SCRIPT_HASH, STANDARD.encode(Sha256::digest(SCRIPT)), "put the script's hash into SCRIPT_HASH");
        let text = page("<b>\u{202e}", &html! {}).into_string();
        assert!(text.contains("<title>&lt;b&gt;\\u{202e}</title>"));
        // Between the tags stands what was hashed, byte for byte.
        let (_, script) = text.split_once("<script>").unwrap();
        assert_eq!(script.split_once("</script>").unwrap().0, SCRIPT);
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</") && !STYLE.contains("url("));
    }
}
