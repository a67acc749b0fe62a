//! What a request has for the parameters of its path, by name.

use crate::compiled::Contract;
use crate::percent::decode;
use crate::route::Matched;

impl Contract {
    /// The path of an operation as the document has it, without the base path, and the parameters of a request's path: their names and
    /// values, without percent escapes, in the order of the path.
    #[must_use]
    pub fn named(&self, matched: &Matched<'_>) -> (String, Vec<(String, Vec<u8>)>) {
        let Some(operation) = self.operation(matched.operation) else { return Default::default() };
        // The last values are those of the path; what is in front belongs to the base path.
        let of_base = matched.values.len().saturating_sub(operation.names.len());
        let values = matched.values.iter().skip(of_base);
        let parameters =
            operation.names.iter().zip(values).map(|(name, value)| (self.shown(*name), decode(value).into_owned()));
        (self.shown(operation.path), parameters.collect())
    }
}
