//! What the page of a widget says beyond what every page says, in the same languages.

use super::Texts;

/// The words of one language. They stand in HTML and in quoted attributes as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WidgetTexts {
    pub(super) message: &'static str,
    /// What the widget's place is called to those who do not see it.
    pub(super) region: &'static str,
    pub(super) verifying: &'static str,
    /// The vendor's script does not load.
    pub(super) unavailable: &'static str,
    pub(super) noscript: &'static str,
}

/// By language; the first one is for a language that has none here.
const LANGUAGES: [(&str, WidgetTexts); 4] = [
    (
        "en",
        WidgetTexts {
            message: "Please complete the check below. The page then loads by itself.",
            region: "Check",
            verifying: "Your answer is being checked…",
            unavailable: "The check could not be loaded. Something in your browser or your network may be blocking it. Please try again.",
            noscript: "This check needs JavaScript. Please switch it on for this site and load the page again. If you cannot, contact the operator of this site and quote the reference below.",
        },
    ),
    (
        "fr",
        WidgetTexts {
            message: "Veuillez effectuer la vérification ci-dessous. La page se charge ensuite toute seule.",
            region: "Vérification",
            verifying: "Votre réponse est en cours de vérification…",
            unavailable: "La vérification n’a pas pu être chargée. Votre navigateur ou votre réseau la bloque peut-être. Veuillez réessayer.",
            noscript: "Cette vérification nécessite JavaScript. Activez-le pour ce site, puis rechargez la page. Si ce n’est pas possible, contactez l’exploitant du site en indiquant la référence ci-dessous.",
        },
    ),
    (
        "de",
        WidgetTexts {
            message: "Bitte bestehen Sie die Prüfung unten. Danach lädt die Seite von selbst.",
            region: "Prüfung",
            verifying: "Ihre Antwort wird geprüft…",
            unavailable: "Die Prüfung konnte nicht geladen werden. Vielleicht blockiert sie etwas in Ihrem Browser oder Ihrem Netz. Bitte versuchen Sie es noch einmal.",
            noscript: "Diese Prüfung braucht JavaScript. Bitte schalten Sie es für diese Seite ein und laden Sie sie neu. Falls das nicht geht, wenden Sie sich an den Betreiber und nennen Sie die Referenz unten.",
        },
    ),
    (
        "es",
        WidgetTexts {
            message: "Complete la comprobación de abajo. Después la página se carga sola.",
            region: "Comprobación",
            verifying: "Estamos comprobando su respuesta…",
            unavailable: "No se ha podido cargar la comprobación. Puede que su navegador o su red la bloqueen. Inténtelo de nuevo.",
            noscript: "Esta comprobación necesita JavaScript. Actívelo para este sitio y vuelva a cargar la página. Si no es posible, póngase en contacto con el responsable del sitio e indique la referencia de abajo.",
        },
    ),
];

impl WidgetTexts {
    /// The words beside those of a page.
    pub(super) fn of(texts: &Texts) -> &'static Self {
        let [(_, english), ..] = &LANGUAGES;
        LANGUAGES.iter().find(|(lang, _)| *lang == texts.lang).map_or(english, |(_, words)| words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_words_that_stay_in_their_place() {
        for (lang, texts) in &LANGUAGES {
            assert_eq!(WidgetTexts::of(Texts::chosen(lang.as_bytes())), texts);
            let all = format!("{texts:?}");
            assert!(!all.contains(['<', '&', '\'']) && !all.contains("\\\""), "{all}");
        }
    }
}
