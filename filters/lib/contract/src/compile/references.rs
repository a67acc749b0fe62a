//! References: JSON pointers (RFC 6901), anchors, and identifiers of schema resources (JSON Schema 2020-12 core, section 8).

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// Keywords whose members are schemas by names.
const BY_NAME: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Keywords that hold a schema or a list of schemas.
const SCHEMAS: [&str; 18] = [
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "items",
    "additionalItems",
    "prefixItems",
    "contains",
    "unevaluatedItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
    "$recursiveRef",
    "additionalItem",
];

/// A schema resource: a schema with an identifier, or the document.
#[derive(Debug, Default)]
pub(super) struct Resource {
    /// Its identifier, absolute where that is known.
    pub(super) uri: String,
    /// Where it is.
    pub(super) pointer: String,
    /// Its anchors and where they are; dynamic ones among them.
    anchors: HashMap<String, String>,
    /// Its dynamic anchors.
    pub(super) dynamic: BTreeMap<String, String>,
}

/// The resources of a document.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) list: Vec<Resource>,
    by_uri: HashMap<String, usize>,
    by_pointer: HashMap<String, usize>,
}

/// Where a reference leads.
pub(super) enum Target {
    /// To a place of the document; with the name of a dynamic anchor, where the fragment is one.
    Inside(String, Option<String>),
    /// Out of the document.
    Outside,
}

impl Resources {
    /// Of a document in which schemas have no identifiers.
    pub(super) fn plain() -> Self {
        Self { list: vec![Resource::default()], by_uri: HashMap::new(), by_pointer: HashMap::new() }
    }

    /// Finds those of a document, or of a schema alone.
    pub(super) fn find(root: &Value, is_schema: bool) -> Self {
        let mut resources = Self::plain();
        let mut pending = vec![(root, String::new(), 0, is_schema)];
        while let Some((value, pointer, resource, is_schema)) = pending.pop() {
            match value {
                Value::Array(list) => {
                    let all = list.iter().enumerate();
                    pending
                        .extend(all.map(|(place, value)| (value, format!("{pointer}/{place}"), resource, is_schema)));
                }
                Value::Object(object) if is_schema => {
                    let resource = resources.note(object, &pointer, resource);
                    for (key, child) in object {
                        let below = join(&pointer, key);
                        if BY_NAME.contains(&key.as_str()) {
                            let named = child.as_object().into_iter().flatten();
                            pending.extend(named.map(|(name, schema)| (schema, join(&below, name), resource, true)));
                        } else if SCHEMAS.contains(&key.as_str()) {
                            pending.push((child, below, resource, true));
                        }
                    }
                }
                Value::Object(object) => {
                    for (key, child) in object {
                        let below = join(&pointer, key);
                        let skipped =
                            key.starts_with("x-") || key == "example" || key == "examples" || key == "default";
                        if key == "schemas" && pointer == "/components" {
                            let named = child.as_object().into_iter().flatten();
                            pending.extend(named.map(|(name, schema)| (schema, join(&below, name), resource, true)));
                        } else if !skipped {
                            pending.push((child, below, resource, key == "schema"));
                        }
                    }
                }
                _ => {}
            }
        }
        resources
    }

    fn note(&mut self, schema: &serde_json::Map<String, Value>, pointer: &str, resource: usize) -> usize {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let mut own = resource;
        if let Some(id) = text("$id").map(|id| id.strip_suffix('#').unwrap_or(id)).filter(|id| !id.starts_with('#')) {
            let base = self.list.get(resource).map_or("", |resource| resource.uri.as_str());
            let uri = resolve(base, id);
            if pointer.is_empty() {
                if let Some(root) = self.list.first_mut() {
                    root.uri.clone_from(&uri);
                }
            } else {
                own = self.list.len();
                self.list.push(Resource { uri: uri.clone(), pointer: pointer.to_owned(), ..Resource::default() });
                self.by_pointer.insert(pointer.to_owned(), own);
            }
            self.by_uri.entry(uri).or_insert(own);
        }
        let Some(resource) = self.list.get_mut(own) else { return own };
        if let Some(anchor) = text("$anchor") {
            resource.anchors.insert(anchor.to_owned(), pointer.to_owned());
        }
        if let Some(anchor) = text("$dynamicAnchor") {
            resource.anchors.insert(anchor.to_owned(), pointer.to_owned());
            resource.dynamic.insert(anchor.to_owned(), pointer.to_owned());
        }
        own
    }

    /// The resource that a place is in.
    pub(super) fn of(&self, pointer: &str) -> usize {
        if self.by_pointer.is_empty() {
            return 0;
        }
        let mut place = pointer;
        loop {
            if let Some(resource) = self.by_pointer.get(place) {
                return *resource;
            }
            match place.rfind('/') {
                Some(end) => place = place.get(..end).unwrap_or_default(),
                None => return 0,
            }
        }
    }

    /// Where a reference from a place leads.
    pub(super) fn target(&self, reference: &str, from: &str) -> Target {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let here = self.of(from);
        let resource = if uri.is_empty() {
            here
        } else {
            let base = self.list.get(here).map_or("", |resource| resource.uri.as_str());
            match self.by_uri.get(&resolve(base, uri)) {
                Some(found) => *found,
                None => return Target::Outside,
            }
        };
        let Some(resource) = self.list.get(resource) else { return Target::Outside };
        let fragment = unescape_percent(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            // Pointers of OpenAPI documents count from the document, whatever identifiers schemas have.
            return Target::Inside(format!("{}{fragment}", resource.pointer), None);
        }
        match resource.anchors.get(&fragment) {
            Some(pointer) => {
                let dynamic = resource.dynamic.contains_key(&fragment).then_some(fragment);
                Target::Inside(pointer.clone(), dynamic)
            }
            None => Target::Outside,
        }
    }
}

/// A pointer with one more token.
pub(super) fn join(pointer: &str, token: &str) -> String {
    if token.contains(['~', '/']) {
        format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
    } else {
        format!("{pointer}/{token}")
    }
}

/// The last token of a pointer, without escapes.
pub(super) fn last(pointer: &str) -> String {
    pointer.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~")
}

fn unescape_percent(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    String::from_utf8_lossy(&crate::percent::decode(text.as_bytes())).into_owned()
}

/// Resolves a reference (RFC 3986, section 5.2), without its fragment.
fn resolve(base: &str, reference: &str) -> String {
    let scheme_of = |uri: &str| {
        let end = uri.find(':')?;
        let scheme = uri.get(..end)?;
        let right = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        right.then_some(end + 1)
    };
    if scheme_of(reference).is_some() {
        return reference.to_owned();
    }
    let Some(scheme) = scheme_of(base) else {
        return if reference.starts_with('/') || !base.contains('/') {
            reference.to_owned()
        } else {
            let folder = base.rfind('/').and_then(|end| base.get(..=end)).unwrap_or_default();
            format!("{folder}{reference}")
        };
    };
    if reference.starts_with("//") {
        return format!("{}{reference}", base.get(..scheme).unwrap_or_default());
    }
    let rest = base.get(scheme..).unwrap_or_default();
    let host_end = match rest.strip_prefix("//") {
        Some(rest) => scheme + 2 + rest.find('/').unwrap_or(rest.len()),
        None => scheme,
    };
    let (host, path) = base.split_at_checked(host_end).unwrap_or((base, ""));
    let path = path.split('?').next().unwrap_or_default();
    if reference.starts_with('?') {
        return format!("{host}{path}{reference}");
    }
    let (reference, query) = match reference.find('?') {
        Some(at) => reference.split_at_checked(at).unwrap_or((reference, "")),
        None => (reference, ""),
    };
    let merged = if reference.starts_with('/') {
        reference.to_owned()
    } else {
        let folder = path.rfind('/').and_then(|end| path.get(..=end)).unwrap_or("/");
        format!("{folder}{reference}")
    };
    let mut segments: Vec<&str> = Vec::new();
    let parts: Vec<&str> = merged.split('/').collect();
    for (place, part) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        match *part {
            "." if is_last => segments.push(""),
            "." => {}
            ".." => {
                if segments.len() > 1 {
                    segments.pop();
                }
                if is_last {
                    segments.push("");
                }
            }
            part => segments.push(part),
        }
    }
    format!("{host}{}{query}", segments.join("/"))
}
