//! Texts of attackers, made harmless and short.

/// One line without control characters, without characters that turn the direction of writing or are not seen, without what
/// a client makes a link or a template of; at most `most` characters, the last of which is `…` where something is missing.
pub(super) fn plain(text: &str, most: usize) -> String {
    cut(&text.chars().filter_map(shown).collect::<String>().replace("://", "[:]//").replace("{{", "{ {"), most)
}

/// The first `most` characters, the last of which is `…` where something is missing.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn shown(letter: char) -> Option<char> {
    match letter {
        letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') => Some(' '),
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => None,
        '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => None,
        letter => Some(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_mislead_is_gone() {
        assert_eq!(plain("a\r\nb\u{1b}[31m\u{202e}c\u{200b}d", 99), "a  b [31mcd");
        assert_eq!(plain("see http://evil.test/{{DATE(x)}}", 99), "see http[:]//evil.test/{ {DATE(x)}}");
        assert_eq!(plain("http:\u{200b}//evil", 99), "http[:]//evil", "hidden characters go first");
    }

    #[test]
    fn long_texts_are_cut_where_a_character_ends() {
        assert_eq!((cut("äöü", 3), cut("äöüß", 3)), ("äöü".to_owned(), "äö…".to_owned()));
    }
}
