//! What is known of parameters: of a path, a query, a header, or a form.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::Room;
use crate::names::{is_name, is_sensitive};
use crate::number::Numbers;
use crate::schema::{NAMED, confidence, mark};
use crate::text::Texts;

/// The parameters of one kind that an operation keeps at once.
const MAX_PARAMETERS: usize = 64;
/// The values of one parameter of one request that are looked at.
const MAX_VALUES: usize = 64;

/// The texts of one parameter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameter {
    /// Requests that have it.
    pub(crate) carriers: u64,
    /// Requests that have it more than once.
    repeated: u64,
    /// Texts that are integers.
    integers: u64,
    booleans: u64,
    /// `null`
    nulls: u64,
    /// Integers between commas, or one integer.
    integer_lists: u64,
    /// Not UTF-8.
    binary: u64,
    /// Parts of a form that are files.
    pub(crate) files: u64,
    numbers: Numbers,
    /// Integers of lists.
    listed: Numbers,
    texts: Texts,
}

/// The parameters of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    pub(crate) known: BTreeMap<String, Parameter>,
    /// What was not kept: rare names, and names that are values.
    pub(crate) gone: u64,
}

impl Parameter {
    /// Takes a value, which is decoded.
    pub(crate) fn observe(&mut self, value: &[u8], times: u64) {
        let Ok(text) = std::str::from_utf8(value) else {
            self.binary += times;
            self.texts.observe(&String::from_utf8_lossy(value), times);
            return;
        };
        self.texts.observe(text, times);
        if is_number(value) {
            let plain = !value.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
            self.numbers.observe(text.parse().unwrap_or(f64::MAX), times);
            if plain {
                self.integers += times;
            }
        }
        match text {
            "true" | "false" => self.booleans += times,
            "null" => self.nulls += times,
            _ => {}
        }
        let integer = |part: &[u8]| is_number(part) && !part.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        if value.split(|byte| *byte == b',').all(integer) {
            self.integer_lists += times;
            for part in text.split(',').take(MAX_VALUES) {
                self.listed.observe(part.parse().unwrap_or(f64::MAX), times);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.carriers += other.carriers;
        self.repeated += other.repeated;
        self.integers += other.integers;
        self.booleans += other.booleans;
        self.nulls += other.nulls;
        self.integer_lists += other.integer_lists;
        self.binary += other.binary;
        self.files += other.files;
        self.numbers.merge(other.numbers);
        self.listed.merge(other.listed);
        self.texts.merge(other.texts);
    }

    /// The schema of its values, and whether it is a list between commas.
    pub(crate) fn schema(&self, evidence: u64, sensitive: bool) -> (Value, bool) {
        let mut commas = false;
        let mut out = Map::new();
        let count = self.texts.count;
        let absent = self.nulls + self.texts.empty;
        let filled = count.saturating_sub(absent);
        let typed = |name: &str, out: &mut Map<String, Value>| {
            out.insert("type".to_owned(), if absent > 0 { json!([name, "null"]) } else { json!(name) });
        };
        if self.files > 0 {
            return (json!({ "type": "string", "format": "binary", "x-evidence": count }), false);
        }
        if self.binary > 0 || count == 0 {
            // Anything.
        } else if filled > 0 && self.booleans == filled {
            typed("boolean", &mut out);
        } else if filled > 0 && self.integers == filled {
            typed("integer", &mut out);
            self.numbers.describe(&mut out, evidence, sensitive);
        } else if filled > 0 && self.numbers.count == filled {
            typed("number", &mut out);
            self.numbers.describe(&mut out, evidence, sensitive);
        } else if self.integer_lists == count {
            commas = true;
            let mut items = Map::new();
            items.insert("type".to_owned(), json!("integer"));
            self.listed.describe(&mut items, evidence, sensitive);
            out.insert("type".to_owned(), json!("array"));
            out.insert("items".to_owned(), Value::Object(items));
        } else {
            out.insert("type".to_owned(), json!("string"));
            self.texts.describe(&mut out, evidence, sensitive);
        }
        mark(&mut out, count);
        let item = Value::Object(out);
        if self.repeated > 0 { (json!({ "type": "array", "items": item }), false) } else { (item, commas) }
    }

    /// A word for what it is, for the name of a parameter of a path.
    pub(crate) fn is_identifier(&self) -> bool {
        self.integers == self.texts.count || self.texts.format() == Some("uuid")
    }
}

impl Parameters {
    /// Takes the pairs of one request; names and values are decoded.
    pub(crate) fn observe<'a>(&mut self, pairs: &[(String, std::borrow::Cow<'a, [u8]>)], room: &mut Room) {
        for (place, (name, value)) in pairs.iter().enumerate().take(4 * MAX_PARAMETERS) {
            let Some(parameter) = self.of(name, room) else { continue };
            let before = pairs.get(..place).unwrap_or_default().iter().filter(|(other, _)| other == name).count();
            match before {
                0 => parameter.carriers += 1,
                1 => parameter.repeated += 1,
                _ => {}
            }
            if before < MAX_VALUES {
                parameter.observe(value, 1);
            }
        }
    }

    fn of(&mut self, name: &str, room: &mut Room) -> Option<&mut Parameter> {
        if !self.known.contains_key(name) {
            if !is_name(name) || !room.take() {
                self.gone += 1;
                return None;
            }
            if self.known.len() >= MAX_PARAMETERS {
                self.shrink(room);
            }
        }
        Some(self.known.entry(name.to_owned()).or_default())
    }

    fn shrink(&mut self, room: &mut Room) {
        let mut counts: Vec<u64> = self.known.values().map(|parameter| parameter.carriers).collect();
        counts.sort_unstable();
        let bar = counts.get(counts.len() / 2).copied().unwrap_or_default();
        let before = self.known.len();
        self.known.retain(|_, parameter| parameter.carriers > bar);
        let gone = before - self.known.len();
        room.give(gone);
        self.gone += u64::try_from(gone).unwrap_or(u64::MAX);
    }

    pub(crate) fn merge(&mut self, other: Self, room: &mut Room) {
        self.gone += other.gone;
        for (name, parameter) in other.known {
            if self.known.len() >= MAX_PARAMETERS && !self.known.contains_key(&name) {
                self.shrink(room);
            }
            if self.known.contains_key(&name) {
                room.give(1);
            }
            self.known.entry(name).or_default().merge(parameter);
        }
    }

    /// Parameter objects. One is required if all of `requests` have it.
    pub(crate) fn describe(&self, place: &str, requests: u64, evidence: u64) -> Vec<Value> {
        let shown = self.known.iter().filter(|(_, parameter)| parameter.carriers >= NAMED);
        let described = shown.map(|(name, parameter)| {
            let (schema, commas) = parameter.schema(evidence, is_sensitive(name));
            let required = parameter.carriers == requests && requests >= evidence;
            let mut out = Map::new();
            out.insert("name".to_owned(), json!(name));
            out.insert("in".to_owned(), json!(place));
            out.insert("required".to_owned(), json!(required));
            if commas && place == "query" {
                out.insert("explode".to_owned(), json!(false));
            }
            out.insert("schema".to_owned(), schema);
            out.insert("x-evidence".to_owned(), json!(parameter.carriers));
            if required {
                out.insert("x-confidence".to_owned(), confidence(requests));
            }
            Value::Object(out)
        });
        described.collect()
    }

    /// The schema of a form.
    pub(crate) fn form(&self, forms: u64, evidence: u64) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, parameter) in self.known.iter().filter(|(_, parameter)| parameter.carriers >= NAMED) {
            properties.insert(name.clone(), parameter.schema(evidence, is_sensitive(name)).0);
            if parameter.carriers == forms && forms >= evidence {
                required.push(name);
            }
        }
        let mut out = Map::new();
        out.insert("type".to_owned(), json!("object"));
        out.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
        mark(&mut out, forms);
        Value::Object(out)
    }
}

/// RFC 8259, section 6.
fn is_number(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with(b"0")) {
        return false;
    }
    let mut rest = rest.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = fraction.get(count..).unwrap_or_default();
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let exponent = exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}
