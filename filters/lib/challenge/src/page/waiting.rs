//! What the page has for browsers without JavaScript: how long to wait, and a way to go on.

use super::texts::Texts;
use crate::wait::Wait;

/// The words of one language. They stand in HTML as they are; `{n}` stands for a number of seconds above one.
struct Words {
    /// The language's tag.
    lang: &'static str,
    takes: &'static str,
    /// It takes longer than usual.
    crowded: &'static str,
    /// What was asked is nothing that a browser repeats by itself.
    form: &'static str,
    by_hand: &'static str,
}

/// The first one is for every language that is none of them.
const LANGUAGES: [Words; 4] = [
    Words {
        lang: "en",
        takes: "Without JavaScript this check takes {n} seconds. After that the page continues by itself; your browser only has to accept cookies.",
        crowded: "Somebody else from your network was let in just now, so it takes a little longer.",
        form: "Your form was not sent: please go back afterwards and send it again.",
        by_hand: "Nothing happens? Continue by hand",
    },
    Words {
        lang: "fr",
        takes: "Sans JavaScript, cette vérification prend {n} secondes. La page continue ensuite toute seule ; votre navigateur doit seulement accepter les cookies.",
        crowded: "Une autre personne de votre réseau vient d’être admise ; cela prend donc un peu plus de temps.",
        form: "Votre formulaire n’a pas été envoyé : revenez ensuite en arrière et envoyez-le de nouveau.",
        by_hand: "Rien ne se passe ? Continuer manuellement",
    },
    Words {
        lang: "de",
        takes: "Ohne JavaScript dauert diese Prüfung {n} Sekunden. Danach geht es von selbst weiter; Ihr Browser muss nur Cookies annehmen.",
        crowded: "Gerade wurde schon jemand aus Ihrem Netz eingelassen, deshalb dauert es etwas länger.",
        form: "Ihr Formular wurde nicht gesendet: Bitte gehen Sie danach zurück und senden Sie es noch einmal.",
        by_hand: "Es geht nicht weiter? Von Hand fortfahren",
    },
    Words {
        lang: "es",
        takes: "Sin JavaScript, esta comprobación tarda {n} segundos. Después la página continúa sola; su navegador solo tiene que aceptar cookies.",
        crowded: "Acaba de pasar otra persona de su red, por lo que tarda un poco más.",
        form: "Su formulario no se ha enviado: vuelva después atrás y envíelo de nuevo.",
        by_hand: "¿No ocurre nada? Continuar manualmente",
    },
];

/// What stands in the head: the URL is loaded again when the wait is over. It has no URL in it, so it stays the one shown.
pub(super) fn head(wait: &Wait) -> String {
    format!("<noscript><meta http-equiv=refresh content={}><style>{}</style></noscript>", wait.seconds, style(wait))
}

/// The part of the style that depends on the wait: how long the bar takes to fill.
pub(super) fn style(wait: &Wait) -> String {
    format!(":root{{--w:{}s}}", wait.seconds)
}

/// What stands in the body. `repeats`: the browser can ask again by itself.
pub(super) fn body(wait: &Wait, texts: &Texts, repeats: bool) -> String {
    let [english, ..] = &LANGUAGES;
    let words = LANGUAGES.iter().find(|words| words.lang == texts.lang).unwrap_or(english);
    let takes = words.takes.replace("{n}", &wait.seconds.to_string());
    let crowded = if wait.crowded { format!("<p>{}</p>", words.crowded) } else { String::new() };
    let form = if repeats { String::new() } else { format!("<p class=n>{}</p>", words.form) };
    let (progress, by_hand) = (texts.progress, words.by_hand);
    format!(
        "<p class=n>{takes}</p>{crowded}{form}<div class=w role=progressbar aria-label=\"{progress}\"><i></i></div>\
         <p><a href=\"\">{by_hand}</a></p>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_says_everything_and_no_words_break_out_of_their_place() {
        for words in &LANGUAGES {
            let all = [words.takes, words.crowded, words.form, words.by_hand];
            assert!(all.iter().all(|text| !text.is_empty() && !text.contains(['<', '&', '\'', '"'])), "{}", words.lang);
            assert_eq!(words.takes.matches("{n}").count(), 1, "{}", words.lang);
            assert_eq!(Texts::chosen(words.lang.as_bytes()).lang, words.lang, "the page speaks it");
        }
    }
}
