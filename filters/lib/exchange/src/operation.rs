//! The operation of an API contract that a request was matched with, for the steps behind the contract's check.

use snapshot::{content_hash, hex};

/// The longest template that is kept, in bytes; a longer one is cut.
const MAX_TEMPLATE: usize = 512;
/// The most parameters that are kept.
const MAX_PARAMETERS: usize = 16;
/// The longest value that is kept, in bytes; a longer one is replaced by its SHA-256 in hexadecimal digits.
const MAX_VALUE: usize = 256;

/// The path of an operation as its contract declares it, and the values that a request has for its parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatchedOperation {
    template: String,
    parameters: Vec<(String, Vec<u8>)>,
}

impl MatchedOperation {
    /// `template` is the path without the base path of the contract (`/items/{id}`). `parameters` are those of the path, by name, in its
    /// order and without their percent escapes. Both are kept within bounds.
    #[must_use]
    pub fn new(mut template: String, mut parameters: Vec<(String, Vec<u8>)>) -> Self {
        let mut end = template.len().min(MAX_TEMPLATE);
        while !template.is_char_boundary(end) {
            end -= 1;
        }
        template.truncate(end);
        parameters.truncate(MAX_PARAMETERS);
        for (_, value) in parameters.iter_mut().filter(|(_, value)| value.len() > MAX_VALUE) {
            *value = hex(&content_hash(value)).into_bytes();
        }
        Self { template, parameters }
    }

    /// The path as the contract declares it, without its base path.
    #[must_use]
    pub fn template(&self) -> &str {
        &self.template
    }

    /// The parameters of the path, by name, in its order; without their percent escapes.
    #[must_use]
    pub fn parameters(&self) -> &[(String, Vec<u8>)] {
        &self.parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_and_two_long_values_stay_two() {
        let of = |value: Vec<u8>| MatchedOperation::new("/é".repeat(300), vec![("id".to_owned(), value); 20]);
        let (one, other) = (of(vec![b'a'; 60_000]), of([vec![b'a'; 59_999], vec![b'b']].concat()));
        assert!((510..=512).contains(&one.template().len()));
        assert_eq!((one.parameters().len(), one.parameters()[0].1.len()), (16, 64));
        assert_ne!(one.parameters()[0].1, other.parameters()[0].1);
        assert_eq!(of(vec![b'a'; 256]).parameters()[0].1, vec![b'a'; 256]);
    }
}
