//! What the page says, in the languages that it speaks.

/// The most entries of `accept-language` that are looked at.
const MAX_LANGUAGES: usize = 16;

/// The words of one language. They stand in HTML and in quoted attributes as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Texts {
    /// The language's tag.
    pub(super) lang: &'static str,
    pub(super) title: &'static str,
    pub(super) message: &'static str,
    pub(super) progress: &'static str,
    pub(super) working: &'static str,
    pub(super) done: &'static str,
    /// Where the browser cannot ask again by itself.
    pub(super) send_again: &'static str,
    pub(super) failed: &'static str,
    pub(super) cookies: &'static str,
    pub(super) retry: &'static str,
    pub(super) noscript: &'static str,
    /// Stands in front of the request's id.
    pub(super) reference: &'static str,
}

/// The first one is for everybody who asks for none of them.
const LANGUAGES: [Texts; 4] = [
    Texts {
        lang: "en",
        title: "One moment, please",
        message: "We are checking your browser. This takes a few seconds and happens by itself; there is nothing you need to do.",
        progress: "Progress of the check",
        working: "Checking…",
        done: "Done. The page is loading…",
        send_again: "Done. Your form was not sent: please go back and send it again.",
        failed: "The check did not succeed. Please try again.",
        cookies: "The check succeeded, but your browser did not keep its cookie. Please allow cookies for this site and try again.",
        retry: "Try again",
        noscript: "This check needs JavaScript. Please switch it on for this site and load the page again. If you cannot, contact the operator of this site and quote the reference below.",
        reference: "Reference:",
    },
    Texts {
        lang: "fr",
        title: "Un instant, s’il vous plaît",
        message: "Nous vérifions votre navigateur. Cela prend quelques secondes et se fait tout seul ; vous n’avez rien à faire.",
        progress: "Progression de la vérification",
        working: "Vérification en cours…",
        done: "Terminé. La page se charge…",
        send_again: "Terminé. Votre formulaire n’a pas été envoyé : revenez en arrière et envoyez-le de nouveau.",
        failed: "La vérification n’a pas abouti. Veuillez réessayer.",
        cookies: "La vérification a réussi, mais votre navigateur n’a pas conservé son cookie. Autorisez les cookies pour ce site, puis réessayez.",
        retry: "Réessayer",
        noscript: "Cette vérification nécessite JavaScript. Activez-le pour ce site, puis rechargez la page. Si ce n’est pas possible, contactez l’exploitant du site en indiquant la référence ci-dessous.",
        reference: "Référence :",
    },
    Texts {
        lang: "de",
        title: "Einen Moment, bitte",
        message: "Wir prüfen Ihren Browser. Das dauert einige Sekunden und geschieht von selbst; Sie müssen nichts tun.",
        progress: "Fortschritt der Prüfung",
        working: "Prüfung läuft…",
        done: "Fertig. Die Seite wird geladen…",
        send_again: "Fertig. Ihr Formular wurde nicht gesendet: Bitte gehen Sie zurück und senden Sie es noch einmal.",
        failed: "Die Prüfung ist fehlgeschlagen. Bitte versuchen Sie es noch einmal.",
        cookies: "Die Prüfung war erfolgreich, aber Ihr Browser hat das Cookie nicht behalten. Bitte erlauben Sie Cookies für diese Seite und versuchen Sie es noch einmal.",
        retry: "Noch einmal versuchen",
        noscript: "Diese Prüfung braucht JavaScript. Bitte schalten Sie es für diese Seite ein und laden Sie sie neu. Falls das nicht geht, wenden Sie sich an den Betreiber und nennen Sie die Referenz unten.",
        reference: "Referenz:",
    },
    Texts {
        lang: "es",
        title: "Un momento, por favor",
        message: "Estamos comprobando su navegador. Tarda unos segundos y se hace solo; no tiene que hacer nada.",
        progress: "Progreso de la comprobación",
        working: "Comprobando…",
        done: "Listo. La página se está cargando…",
        send_again: "Listo. Su formulario no se ha enviado: vuelva atrás y envíelo de nuevo.",
        failed: "La comprobación no ha tenido éxito. Inténtelo de nuevo.",
        cookies: "La comprobación ha tenido éxito, pero su navegador no ha guardado la cookie. Permita las cookies de este sitio e inténtelo de nuevo.",
        retry: "Intentar de nuevo",
        noscript: "Esta comprobación necesita JavaScript. Actívelo para este sitio y vuelva a cargar la página. Si no es posible, póngase en contacto con el responsable del sitio e indique la referencia de abajo.",
        reference: "Referencia:",
    },
];

impl Texts {
    /// The words for a caller with this `accept-language`: of the languages that are spoken here the most wanted one, the
    /// earlier of two alike.
    pub(super) fn chosen(accept_language: &[u8]) -> &'static Self {
        let [english, ..] = &LANGUAGES;
        let entries = accept_language.split(|byte| *byte == b',').take(MAX_LANGUAGES);
        let mut best: Option<(&'static Self, u16)> = None;
        for entry in entries {
            let mut parts = entry.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let tag = parts.next().unwrap_or_default();
            let primary = tag.split(|byte| *byte == b'-').next().unwrap_or_default();
            let Some(texts) = LANGUAGES.iter().find(|texts| primary.eq_ignore_ascii_case(texts.lang.as_bytes())) else {
                continue;
            };
            let quality = parts.find_map(|part| part.strip_prefix(b"q=")).map_or(1000, thousandths);
            if quality > best.map_or(0, |(_, quality)| quality) {
                best = Some((texts, quality));
            }
        }
        best.map_or(english, |(texts, _)| texts)
    }
}

/// A weight such as `0.8` in thousandths; 0 for what is none.
fn thousandths(weight: &[u8]) -> u16 {
    let weight = std::str::from_utf8(weight).ok().and_then(|text| text.trim().parse::<f32>().ok());
    // A saturating conversion; what is no number is 0.
    weight.map_or(0, |weight| (weight.clamp(0.0, 1.0) * 1000.0) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_wanted_language_is_spoken() {
        let lang = |header: &str| Texts::chosen(header.as_bytes()).lang;
        assert_eq!(lang("de-CH,de;q=0.9,en;q=0.8"), "de");
        assert_eq!(lang("en;q=0.5, FR-be ; q=0.8"), "fr");
        assert_eq!(lang("ja, es;q=0.1"), "es");
        assert_eq!(lang("ja,*;q=0.5"), "en");
        assert_eq!(lang("fr;q=0, de;q=x"), "en");
        assert_eq!(lang(""), "en");
        assert_eq!(Texts::chosen(b"\xff;q=\xff,de").lang, "de");
        assert_eq!(lang(&"xx,".repeat(MAX_LANGUAGES).replace("xx,xx,", "xx,fr;q=0.2,")), "fr");
    }

    #[test]
    fn no_words_break_out_of_their_place() {
        for texts in &LANGUAGES {
            let all = format!("{texts:?}");
            assert!(!all.contains(['<', '&', '\'']) && !all.contains("\\\""), "{all}");
        }
    }
}
