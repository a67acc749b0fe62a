//! Values that match a schema, mostly: what does not is left out.

use serde_json::{Map, Value, json};

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

const WORDS: &[&str] = &[
    "the",
    "branch",
    "release",
    "of",
    "a",
    "Fix",
    "build",
    "when",
    "token",
    "is",
    "missing",
    "update",
    "docs/readme.md",
    "and",
    "caf\u{e9}",
    "review",
    "needs",
    "\"quoted\"",
    "line\nbreak",
    "2024-05-17",
    "https://example.com/a/b?c=d",
    "v1.2.3",
];

pub(crate) struct Maker<'d, 'r> {
    pub(crate) document: &'d Value,
    pub(crate) random: &'r mut Random,
}

impl<'d> Maker<'d, '_> {
    /// What is behind references.
    pub(crate) fn follow(&self, value: &'d Value) -> &'d Value {
        let mut value = value;
        for _ in 0..32 {
            match value["$ref"].as_str().and_then(|reference| self.document.pointer(reference.strip_prefix('#')?)) {
                Some(target) => value = target,
                None => break,
            }
        }
        value
    }

    /// A target: the path with values in place of its parameters, and some of the query.
    pub(crate) fn target(&mut self, path: &str, item: &'d Value, operation: &'d Value) -> Option<String> {
        let mut target = path.to_owned();
        let mut query: Vec<String> = Vec::new();
        for list in [&operation["parameters"], &item["parameters"]] {
            for parameter in list.as_array().into_iter().flatten() {
                let parameter = self.follow(parameter);
                let name = parameter["name"].as_str()?;
                let value = match self.value(&parameter["schema"], 0) {
                    Value::String(text) => text,
                    Value::Array(_) | Value::Object(_) | Value::Null => continue,
                    other => other.to_string(),
                };
                let escaped: String = value
                    .bytes()
                    .map(|byte| match byte {
                        byte if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) => char::from(byte).to_string(),
                        byte => format!("%{byte:02X}"),
                    })
                    .collect();
                match parameter["in"].as_str()? {
                    "path" => {
                        target = target.replace(&format!("{{{name}}}"), if escaped.is_empty() { "x" } else { &escaped })
                    }
                    "query" if parameter["required"] == true || self.random.below(3) == 0 => {
                        query.push(format!("{name}={escaped}"))
                    }
                    _ => {}
                }
            }
        }
        if !query.is_empty() {
            target = format!("{target}?{}", query.join("&"));
        }
        Some(target)
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| WORDS[self.random.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
    }

    /// A value.
    pub(crate) fn value(&mut self, schema: &'d Value, depth: usize) -> Value {
        let schema = self.follow(schema);
        if let Some(values) = schema["enum"].as_array() {
            return values[self.random.below(values.len())].clone();
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(branches) = schema[key].as_array() {
                let branch = &branches[self.random.below(branches.len())];
                let mut value = self.value(branch, depth + 1);
                if let (Value::Object(all), true) = (&mut value, schema["properties"].is_object()) {
                    let own = self.object(schema, depth);
                    own.into_iter().for_each(|(name, value)| {
                        all.entry(name).or_insert(value);
                    });
                }
                return value;
            }
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut all = Map::new();
            for part in parts {
                if let Value::Object(part) = self.value(part, depth + 1) {
                    all.extend(part);
                }
            }
            return Value::Object(all);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[0].as_str(),
            kind => kind.as_str(),
        };
        match kind {
            Some("integer" | "number") => {
                let low = schema["minimum"].as_i64().unwrap_or(1);
                let high = schema["maximum"].as_i64().unwrap_or(low + 100_000);
                json!(low + i64::try_from(self.random.below(usize::try_from(high - low + 1).unwrap_or(1))).unwrap())
            }
            Some("boolean") => json!(self.random.below(2) == 0),
            Some("array") => {
                let least = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).unwrap();
                let count = least.max(if depth > 5 { 0 } else { 1 + self.random.below(3) });
                Value::Array((0..count).map(|_| self.value(&schema["items"], depth + 1)).collect())
            }
            Some("string") => {
                if let Some(example) = schema["example"].as_str().filter(|_| schema["pattern"].is_string()) {
                    return json!(example);
                }
                let (day, hex) = (1 + self.random.below(28), self.random.next());
                match schema["format"].as_str() {
                    Some("date-time") => json!(format!("2024-03-{day:02}T10:{:02}:07Z", self.random.below(60))),
                    Some("date") => json!(format!("2024-03-{day:02}")),
                    Some("uri" | "url") => json!(format!("https://api.example.com/repos/{hex:x}")),
                    Some("email") => json!(format!("user{hex:x}@example.com")),
                    Some("uuid") => json!(format!("{:08x}-1111-4222-8333-{:012x}", hex >> 32, hex & 0xffff_ffff_ffff)),
                    _ => {
                        let words = 1 + self.random.below(8);
                        let text = self.text(words);
                        let most = usize::try_from(schema["maxLength"].as_u64().unwrap_or(1000)).unwrap();
                        json!(text.chars().take(most).collect::<String>())
                    }
                }
            }
            _ if schema["properties"].is_object() || kind == Some("object") => {
                Value::Object(self.object(schema, depth))
            }
            _ => json!(self.text(3)),
        }
    }

    fn object(&mut self, schema: &'d Value, depth: usize) -> Map<String, Value> {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut all = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if required.contains(&name.as_str()) || (depth < 6 && self.random.below(4) > 0) {
                all.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        all
    }

    /// A value of about a length: with more elements in its arrays, or with longer texts where it has none.
    pub(crate) fn large(&mut self, schema: &'d Value, length: usize) -> Option<Value> {
        let mut value = self.value(schema, 0);
        for _ in 0..4000 {
            let size = value.to_string().len();
            if size >= length {
                return (size < length + length / 5).then_some(value);
            }
            let missing = length - size;
            let grown = self.grow(schema, &mut value, missing, 0);
            if !grown {
                return None;
            }
        }
        None
    }

    /// Adds a part of what is missing.
    fn grow(&mut self, schema: &'d Value, value: &mut Value, missing: usize, depth: usize) -> bool {
        let schema = self.follow(schema);
        if depth > 8 || schema["oneOf"].is_array() || schema["anyOf"].is_array() || schema["allOf"].is_array() {
            return false;
        }
        match value {
            Value::Array(list) if !schema["maxItems"].is_u64() && schema["items"].is_object() => {
                let mut added = 0;
                while added < missing.min(4000) {
                    let item = self.value(&schema["items"], depth + 1);
                    added += item.to_string().len() + 1;
                    list.push(item);
                }
                true
            }
            Value::Object(members) => {
                let properties = schema["properties"].as_object();
                let names: Vec<String> = members.keys().cloned().collect();
                let start = self.random.below(names.len());
                // Arrays are tried first.
                for arrays in [true, false] {
                    for name in names.iter().cycle().skip(start).take(names.len()) {
                        let (Some(own), Some(member)) =
                            (properties.and_then(|all| all.get(name)), members.get_mut(name))
                        else {
                            continue;
                        };
                        if (member.is_array() || member.is_object()) == arrays
                            && self.grow(own, member, missing, depth + 1)
                        {
                            return true;
                        }
                    }
                }
                false
            }
            Value::String(text) => {
                let free = ["enum", "format", "pattern", "maxLength"].iter().all(|key| schema[*key].is_null());
                if free {
                    let words = 1 + missing.min(6000) / 7;
                    text.push(' ');
                    text.push_str(&self.text(words));
                }
                free
            }
            _ => false,
        }
    }
}
