//! The fields of an event while it is mapped.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

/// The fields that have no place yet. What is left at the end is unmapped.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn new(event: Map<String, Value>) -> Fields {
        Fields(event)
    }

    /// A field, which stays.
    pub(super) fn get(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(*first)?, |value, name| value.get(name))
    }

    /// A text, which stays; `None` where it is empty.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        self.get(path)?.as_str().filter(|text| !text.is_empty())
    }

    /// Takes a field out where it can be read; it stays where not.
    pub(super) fn take<T>(&mut self, path: &[&str], read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        let read = read(self.get(path)?)?;
        let (last, before) = path.split_last()?;
        let mut object = &mut self.0;
        for name in before {
            object = object.get_mut(*name)?.as_object_mut()?;
        }
        object.shift_remove(*last);
        Some(read)
    }

    /// Takes out a text that is not empty.
    pub(super) fn take_text(&mut self, path: &[&str]) -> Option<String> {
        self.take(path, |value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned))
    }

    /// Takes out the address of the caller, as an endpoint of the network.
    pub(super) fn take_source(&mut self) -> Option<Value> {
        let address = self.take(&["source", "ip"], |value| value.as_str()?.parse::<IpAddr>().ok())?;
        Some(json!({ "ip": address }))
    }

    /// Takes out who the caller is, as a user: an id of a key is that of a credential.
    pub(super) fn take_user(&mut self) -> Option<Value> {
        let name = self.take_text(&["user", "name"]).or_else(|| self.take_text(&["source", "user"]));
        // An operator is named twice.
        self.take(&["source", "user"], |value| {
            value.as_str().filter(|text| Some(*text) == name.as_deref()).map(|_| ())
        });
        let key = self.take_text(&["source", "apikey"]);
        // A user has a name or an id; an address alone is none.
        if name.is_none() && key.is_none() {
            return None;
        }
        let email =
            self.take(&["user", "email"], |value| value.as_str().filter(|text| is_email(text)).map(str::to_owned));
        let id = key.as_ref().filter(|_| name.is_none());
        Some(json!({ "name": name, "uid": id, "credential_uid": key, "email_addr": email }))
    }

    /// What is left, without what is empty.
    pub(super) fn rest(self) -> Map<String, Value> {
        let mut rest = self.0;
        prune(&mut rest);
        rest
    }
}

/// Removes what is null, and objects and lists that are empty.
pub(super) fn prune(object: &mut Map<String, Value>) {
    object.retain(|_, value| {
        if let Some(inner) = value.as_object_mut() {
            prune(inner);
        }
        match value {
            Value::Null => false,
            Value::Object(inner) => !inner.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        }
    });
}

/// Whether OCSF's type `hostname_t` has it: labels of letters, digits and hyphens.
pub(super) fn is_hostname(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.split('.').all(is_label)
}

/// Whether OCSF's type `email_t` has it.
fn is_email(text: &str) -> bool {
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte);
    let is_domain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let Some((local, domain)) = text.split_once('@') else { return false };
    let has_dot = domain.split_once('.').is_some_and(|(first, rest)| !first.is_empty() && !rest.is_empty());
    !local.is_empty() && local.bytes().all(is_local) && has_dot && domain.bytes().all(is_domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_stays() {
        let event = json!({ "source": { "ip": "nowhere", "user": 7, "apikey": "" }, "a": { "b": null }, "list": [] });
        let mut fields = Fields::new(event.as_object().unwrap().clone());
        assert_eq!((fields.take_source(), fields.take_user(), fields.take_text(&["a", "c"])), (None, None, None));
        let rest = Value::Object(fields.rest());
        assert_eq!(rest, json!({ "source": { "ip": "nowhere", "user": 7, "apikey": "" } }));
    }

    #[test]
    fn names_are_those_of_the_schema() {
        for (text, hostname) in
            [("shop.test", true), ("a-1", true), ("-a", false), ("a..b", false), ("", false), ("(hidden)", false)]
        {
            assert_eq!(is_hostname(text), hostname, "{text}");
        }
        for (text, email) in
            [("a.b@shop.test", true), ("a@test", false), ("@a.b", false), ("a b@c.d", false), ("a@.d", false)]
        {
            assert_eq!(is_email(text), email, "{text}");
        }
    }
}
