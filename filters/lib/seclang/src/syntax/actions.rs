//! The third argument of a rule: `id:1,phase:2,msg:'a, b',setvar:tx.n=+1`.

use super::{SyntaxError, offset_in};

/// An action as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    /// The byte where the name begins.
    pub(crate) offset: usize,
    /// The name, in lower case.
    pub(crate) name: String,
    /// What follows the colon, without quotes.
    pub(crate) value: Option<Vec<u8>>,
    /// The byte where the value begins.
    pub(crate) value_offset: usize,
}

/// All actions.
pub(crate) fn actions(text: &[u8]) -> Result<Vec<Action>, SyntaxError> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        // Empty items come from a comma at the end of the list: harmless, and common.
        if let Some(after) = rest.strip_prefix(b",") {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Ok(found);
        }
        let (after, action) = action(text, rest)?;
        found.push(action);
        rest = after;
    }
}

fn action<'a>(text: &'a [u8], input: &'a [u8]) -> Result<(&'a [u8], Action), SyntaxError> {
    let end = input.iter().position(|byte| matches!(byte, b':' | b',')).unwrap_or(input.len());
    let (name, rest) = input.split_at_checked(end).unwrap_or((input, &[]));
    let name = name.trim_ascii();
    if name.is_empty() || !name.iter().all(u8::is_ascii_alphanumeric) {
        return Err(SyntaxError::new(offset_in(text, input), "the name of an action was expected here")
            .help("actions are separated by commas; put values with commas in single quotes: msg:'a, b'"));
    }
    let mut action = Action {
        offset: offset_in(text, input),
        name: String::from_utf8_lossy(name).to_ascii_lowercase(),
        value: None,
        value_offset: offset_in(text, rest),
    };
    let Some(value) = rest.strip_prefix(b":") else {
        return Ok((rest, action));
    };
    let value = value.trim_ascii_start();
    action.value_offset = offset_in(text, value);
    let (rest, found) = match value.strip_prefix(b"'") {
        Some(quoted) => {
            action.value_offset += 1;
            let quoted = closed(quoted).ok_or_else(|| unclosed(text, value))?;
            let after = quoted.0.trim_ascii_start();
            if after.first().is_some_and(|&byte| byte != b',') {
                return Err(SyntaxError::new(offset_in(text, after), "a comma was expected after the closing quote")
                    .help("write \\' for a single quote within single quotes"));
            }
            (after, quoted.1)
        }
        None => bare(text, value)?,
    };
    action.value = Some(found);
    Ok((rest, action))
}

/// A value without quotes around it, up to the comma. A quote that opens right after `=` covers commas too:
/// `setvar:tx.a='b,c'`.
fn bare<'a>(text: &'a [u8], value: &'a [u8]) -> Result<(&'a [u8], Vec<u8>), SyntaxError> {
    let mut found = Vec::new();
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b',' {
            break;
        }
        if byte == b'\'' && found.last() == Some(&b'=') {
            let (after, inner) = closed(after).ok_or_else(|| unclosed(text, rest))?;
            found.extend(inner);
            rest = after;
            continue;
        }
        found.push(byte);
        rest = after;
    }
    found.truncate(found.trim_ascii_end().len());
    Ok((rest, found))
}

/// The text up to the closing quote; `\'` becomes `'`.
fn closed(input: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = input;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\'' => return Some((rest, found)),
            b'\\' if rest.first() == Some(&b'\'') => {
                found.push(b'\'');
                rest = rest.get(1..).unwrap_or_default();
            }
            _ => found.push(byte),
        }
    }
    None
}

fn unclosed(text: &[u8], at: &[u8]) -> SyntaxError {
    SyntaxError::new(offset_in(text, at), "this quote is never closed")
        .help("write \\' for a single quote within single quotes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Option<String>)> {
        let found = actions(text.as_bytes()).unwrap().into_iter();
        found.map(|action| (action.name, action.value.map(|value| String::from_utf8(value).unwrap()))).collect()
    }

    #[test]
    fn reads_quoted_and_bare_values() {
        let found = read("id:'200000', phase:2,\tPASS,msg:'it\\'s a, b',t:none,setvar:tx.n=+%{tx.m},chain,");
        assert_eq!(found[0], ("id".into(), Some("200000".into())));
        assert_eq!(found[2], ("pass".into(), None));
        assert_eq!(found[3].1.as_deref(), Some("it's a, b"));
        assert_eq!(found[5].1.as_deref(), Some("tx.n=+%{tx.m}"));
        assert_eq!(found.len(), 7);
    }

    #[test]
    fn reads_a_quote_after_the_equals_sign() {
        assert_eq!(read("setvar:tx.a='b,c',log")[0].1.as_deref(), Some("tx.a=b,c"));
        assert_eq!(read("setvar:'tx.a=b,c'")[0].1.as_deref(), Some("tx.a=b,c"));
    }

    #[test]
    fn says_where_it_stops_understanding() {
        assert_eq!(actions(b"id:1,msg:'a").unwrap_err().offset, 9);
        assert_eq!(actions(b"id:1,msg:'a'b").unwrap_err().offset, 12);
        assert_eq!(actions(b"id:1,@@").unwrap_err().offset, 5);
    }
}
