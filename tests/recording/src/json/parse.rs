//! Values, and what is wrong with them.

/// A value of a type, or the path of the field that is wrong and why. No value from the text stands in the error: it could
/// be a secret.
pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(text: &'a [u8]) -> Result<T, Fault> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| Fault {
        path: error.path().to_string(),
        line: error.inner().line(),
        column: error.inner().column(),
        why: without_value(&error.inner().to_string()),
    })?;
    json.end().map_err(|error| Fault {
        path: ".".to_owned(),
        line: error.line(),
        column: error.column(),
        why: "there is something behind the value".to_owned(),
    })?;
    Ok(value)
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The field (`request.headers[2]`); `.` for the value as a whole.
    pub(crate) path: String,
    /// From 1, counted from where the value begins.
    pub(crate) line: usize,
    /// From 1.
    pub(crate) column: usize,
    /// In a few words.
    pub(crate) why: String,
}

/// The library's words without the value that it quotes and without the place, which stands elsewhere.
fn without_value(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    if let Some(wrong) = message.strip_prefix("invalid ")
        && let Some((found, expected)) = wrong.rsplit_once(", expected ")
    {
        let kind = found.split([' ', '`', '"']).take(2).collect::<Vec<_>>().join(" ");
        return format!("invalid {kind}, expected {expected}");
    }
    message.to_owned()
}
