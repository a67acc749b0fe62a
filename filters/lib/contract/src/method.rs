//! Methods that a request names beside its own: Symfony, Laravel, Rack and others take them in place of `POST`.

use crate::check::Head;
use crate::compiled::Contract;
use crate::param::{Place, unescape};
use crate::query::{pairs, parted};
use crate::route::{Found, Matched};

/// The headers that name a method.
const HEADERS: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];
/// The query parameter that names one.
const PARAMETER: &[u8] = b"_method";
/// The methods that the parameter may name. An application may have given it another meaning, as it may not to the headers.
const METHODS: [&[u8]; 14] = [
    b"GET", b"HEAD", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"CONNECT", b"LINK", b"UNLINK", b"PURGE",
    b"COPY", b"MOVE", b"QUERY",
];

impl Contract {
    /// The methods of a path, where a `POST` request names another method that the path does not have. A header or a parameter that
    /// the operation declares is checked by its schema alone.
    #[must_use]
    pub fn overridden(&self, matched: &Matched<'_>, method: &[u8], path: &[u8], head: &Head<'_>) -> Option<String> {
        if method != b"POST" {
            return None;
        }
        let operation = self.operation(matched.operation)?;
        let declares = |place: Place, name: &[u8]| {
            let mut own = operation.parameters.iter().filter(|record| record.place == place as u32);
            own.any(|record| self.text(record.name) == name)
        };
        let mut named: Vec<Vec<u8>> = Vec::new();
        let mut add = |value: &[u8]| {
            let value = value.trim_ascii().to_ascii_uppercase();
            if !value.is_empty() && value != b"POST" && !named.contains(&value) {
                named.push(value);
            }
        };
        for header in HEADERS.iter().filter(|header| !declares(Place::Header, header.as_bytes())) {
            if let Some(values) = (head.header)(header) {
                values.split(|byte| *byte == b',').for_each(&mut add);
            }
        }
        if !declares(Place::Query, PARAMETER) {
            let all = pairs(head.query).into_iter().chain(parted(head.query).behind);
            for (_, value) in all.filter(|(name, _)| name.as_ref() == PARAMETER) {
                let value = unescape(value, true).trim_ascii().to_ascii_uppercase();
                // Backends that part a query at `;` read no further.
                let value = value.split(|byte| *byte == b';').next().unwrap_or_default();
                if METHODS.contains(&value) {
                    add(value);
                }
            }
        }
        named.iter().find_map(|method| match self.find(method, path, false) {
            Found::MethodNotAllowed(allow) => Some(allow),
            _ => None,
        })
    }
}
