//! JSON, with fields at any depth.

use serde_json::Value;

use super::{Credentials, Fields};

/// The most values that are looked at.
const MAX_VALUES: usize = 4096;

pub(super) fn read(body: &[u8], fields: &Fields, found: &mut Credentials) {
    let Ok(document) = serde_json::from_slice::<Value>(body) else { return };
    // Fields of the outer objects come first.
    let mut level = vec![&document];
    let mut left = MAX_VALUES;
    while !level.is_empty() && (found.user.is_none() || found.password.is_none()) {
        let mut below = Vec::new();
        for value in level {
            let Some(rest) = left.checked_sub(1) else { return };
            left = rest;
            match value {
                Value::Array(values) => below.extend(values),
                Value::Object(members) => {
                    for (name, value) in members {
                        match value {
                            Value::String(text) => fields.take(name.as_bytes(), text.as_bytes(), found),
                            Value::Number(number) => fields.take(name.as_bytes(), number.to_string().as_bytes(), found),
                            _ => below.push(value),
                        }
                    }
                }
                _ => {}
            }
        }
        level = below;
    }
}
