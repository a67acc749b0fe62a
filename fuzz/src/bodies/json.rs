//! JSON bodies: a byte of limits, and the text. serde_json says what is JSON and what is not.

use seclang::body::json::{Limits, parse};
use serde::de::IgnoredAny;

use super::{repeated, split_byte};

/// serde_json refuses deeper texts.
const ORACLE_DEPTH: usize = 127;

pub fn run(data: &[u8]) {
    let Some((choice, body)) = split_byte(data) else { return };
    let long;
    let body = match choice & 0x80 {
        0 => body,
        _ => {
            long = [b"[", repeated(&[body, b","].concat()).as_slice(), b"0]"].concat();
            long.as_slice()
        }
    };
    let limits = match choice % 4 {
        0 => Limits { depth: 3, arguments: 5, name_length: 32 },
        1 => Limits { depth: 600, ..Limits::default() },
        _ => Limits { depth: ORACLE_DEPTH, arguments: 1000, name_length: usize::MAX },
    };
    let mut reported = 0;
    let outcome = parse(body, &limits, |argument| {
        let (name, value) = (argument.name, argument.value);
        reported += 1;
        assert!(name.starts_with(b"json"), "{name:?}");
        assert!(name.len() <= limits.name_length, "a name of {} bytes", name.len());
        assert!(value.len() <= body.len(), "a value of {} bytes in {}", value.len(), body.len());
        assert!(argument.unseen.is_none_or(|unseen| name.len() > 256 && name.ends_with(unseen)));
    });
    assert!(reported <= limits.arguments, "{reported} arguments");
    match &outcome {
        Ok(outcome) => assert_eq!(outcome.arguments, reported),
        Err(error) => assert!(error.offset <= body.len(), "{error} in {} bytes", body.len()),
    }
    if choice % 4 >= 2 && std::str::from_utf8(body).is_ok() {
        let oracle = serde_json::from_slice::<IgnoredAny>(body);
        let too_deep = oracle.as_ref().is_err_and(|error| error.to_string().contains("recursion limit"));
        if !too_deep {
            assert_eq!(outcome.is_ok(), oracle.is_ok(), "{outcome:?}, {oracle:?}");
        }
    }
}
