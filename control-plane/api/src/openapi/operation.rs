//! What one method of one path is for, takes and answers.

use std::collections::BTreeMap;

use axum::http::{HeaderName, Method, StatusCode};
use serde_json::{Map, Value, json};

use accounts::Role;

/// `application/json`.
pub const JSON: &str = "application/json";
/// One line of JSON for each entry of the array that the schema describes.
pub const NDJSON: &str = "application/x-ndjson";

/// Operations that belong together, as the page shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name, unique among the groups.
    pub name: String,
    /// What it is about; a sentence or a few, CommonMark.
    pub about: String,
}

/// What a caller has to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Nothing.
    #[default]
    Open,
    /// An admin key with this scope.
    AdminKey(&'static str),
    /// The cookie of a console session; `csrf` where the header against forged requests is needed as well.
    Session {
        /// Whether the header is needed.
        csrf: bool,
    },
}

/// One method of one path. Made with [`Operation::new`] and the methods that add to it.
#[derive(Clone, Debug)]
pub struct Operation {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) id: String,
    pub(super) group: Group,
    pub(super) summary: String,
    pub(super) description: String,
    pub(super) parameters: Vec<Value>,
    /// What further names of query parameters begin with.
    pub(super) query_prefixes: Vec<&'static str>,
    /// Parameters of the query that are not described are left to others.
    pub(super) takes_any_query: bool,
    pub(super) body: Option<Value>,
    pub(super) answers: BTreeMap<u16, Answer>,
    pub(super) security: Security,
    /// The role of operators that it needs, in the console.
    pub(super) role: Option<Role>,
    /// What of it needs a higher one.
    pub(super) role_note: String,
}

/// What comes with one status.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) texts: Vec<String>,
    /// The media type and the schema of the body.
    pub(super) content: Vec<(&'static str, Value)>,
    /// The words that `error` can be; a body of the common shape.
    pub(super) words: Vec<&'static str>,
    pub(super) headers: Map<String, Value>,
    pub(super) links: Map<String, Value>,
}

/// The schema of this name among the document's components.
#[must_use]
pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

impl Operation {
    /// `method` of `path`, whose parameters stand in braces as in axum's own. `id` is unique and stays the same over
    /// releases: generated clients call their functions so.
    #[must_use]
    pub fn new(
        method: Method,
        path: impl Into<String>,
        id: impl Into<String>,
        group: Group,
        summary: &str,
    ) -> Operation {
        Operation {
            method,
            path: path.into(),
            id: id.into(),
            group,
            summary: summary.to_owned(),
            description: String::new(),
            parameters: Vec::new(),
            query_prefixes: Vec::new(),
            takes_any_query: false,
            body: None,
            answers: BTreeMap::new(),
            security: Security::default(),
            role: None,
            role_note: String::new(),
        }
    }

    /// More than the summary says; CommonMark.
    #[must_use]
    pub fn describe(mut self, text: impl Into<String>) -> Operation {
        self.description = text.into();
        self
    }

    /// A parameter of the path.
    #[must_use]
    pub fn in_path(self, name: &str, schema: Value, text: &str) -> Operation {
        self.parameter(json!({ "name": name, "in": "path", "required": true, "description": text, "schema": schema }))
    }

    /// A parameter of the query, which may be left out.
    #[must_use]
    pub fn in_query(self, name: &str, schema: Value, text: &str) -> Operation {
        self.parameter(json!({ "name": name, "in": "query", "description": text, "schema": schema }))
    }

    /// Further parameters of the query, whose names begin with `prefix`. The handler checks what follows it.
    #[must_use]
    pub fn in_query_from(mut self, prefix: &'static str) -> Operation {
        self.query_prefixes.push(prefix);
        self
    }

    /// Parameters of the query that are not described are ignored instead of refused: for callers that add their own, such
    /// as probes.
    #[must_use]
    pub fn takes_any_query(mut self) -> Operation {
        self.takes_any_query = true;
        self
    }

    /// A switch of the query, off where it is left out.
    #[must_use]
    pub fn switch(self, name: &str, text: &str) -> Operation {
        let schema =
            json!({ "type": "string", "enum": ["true", "false", "1", "0", "yes", "no", ""], "default": "false" });
        self.in_query(name, schema, &format!("{text} Without a value it is on."))
    }

    /// A header of the request, which may be left out.
    #[must_use]
    pub fn in_header(self, name: &str, schema: Value, text: &str) -> Operation {
        self.parameter(json!({ "name": name, "in": "header", "description": text, "schema": schema }))
    }

    fn parameter(mut self, parameter: Value) -> Operation {
        self.parameters.push(parameter);
        self
    }

    /// A body that must be there, in one of these media types.
    #[must_use]
    pub fn takes<'a>(mut self, text: &str, content: impl IntoIterator<Item = (&'a str, Value)>) -> Operation {
        let content: Map<String, Value> = content
            .into_iter()
            .map(|(media_type, schema)| (media_type.to_owned(), json!({ "schema": schema })))
            .collect();
        self.body = Some(json!({ "description": text, "required": true, "content": content }));
        self
    }

    /// An example of the body in the first of its media types.
    #[must_use]
    pub fn example(mut self, example: Value) -> Operation {
        let content = self.body.as_mut().and_then(|body| body.get_mut("content")).and_then(Value::as_object_mut);
        if let Some(first) = content.and_then(|content| content.values_mut().next()).and_then(Value::as_object_mut) {
            first.insert("example".to_owned(), example);
        }
        self
    }

    /// An answer with JSON of this schema.
    #[must_use]
    pub fn answers(self, status: StatusCode, text: &str, schema: Value) -> Operation {
        self.answers_as(status, text, JSON, schema)
    }

    /// An answer of another media type.
    #[must_use]
    pub fn answers_as(mut self, status: StatusCode, text: &str, media_type: &'static str, schema: Value) -> Operation {
        let answer = self.answer(status, text);
        answer.content.push((media_type, schema));
        self
    }

    /// An answer without a body.
    #[must_use]
    pub fn answers_nothing(mut self, status: StatusCode, text: &str) -> Operation {
        self.answer(status, text);
        self
    }

    /// An error of the common shape, with the word that its `error` is, and when it comes.
    #[must_use]
    pub fn fails(mut self, status: StatusCode, word: &'static str, when: &str) -> Operation {
        let answer = self.answer(status, &format!("`{word}`: {when}"));
        if !answer.words.contains(&word) {
            answer.words.push(word);
        }
        self
    }

    /// A header that answers of this status have: always, or now and then. It is one of the document's components.
    #[must_use]
    pub fn with_header(mut self, status: StatusCode, name: &HeaderName, always: bool) -> Operation {
        let component = if always { name.as_str().to_owned() } else { format!("{name}.optional") };
        let header = json!({ "$ref": format!("#/components/headers/{component}") });
        self.answers.entry(status.as_u16()).or_default().headers.insert(name.as_str().to_owned(), header);
        self
    }

    /// What to do with an answer: the operation `to`, whose path parameter `parameter` is at `pointer` in the body.
    #[must_use]
    pub fn leads_to(mut self, status: StatusCode, to: &str, parameter: &str, pointer: &str) -> Operation {
        let link = json!({ "operationId": to, "parameters": { parameter: format!("$response.body#{pointer}") } });
        self.answers.entry(status.as_u16()).or_default().links.insert(to.to_owned(), link);
        self
    }

    /// Sets the credentials that a caller needs, unless they are set already: called by the layers that check them.
    #[must_use]
    pub fn demands(mut self, security: Security) -> Operation {
        if self.security == Security::Open {
            self.security = security;
        }
        self
    }

    /// The least role that may call it, and what of it needs more; CommonMark, may be empty.
    #[must_use]
    pub fn for_role(mut self, role: Role, more: &str) -> Operation {
        self.role = Some(role);
        self.role_note = more.to_owned();
        self
    }

    /// The names of the described parameters of the query.
    pub(super) fn query_names(&self) -> impl Iterator<Item = &str> {
        let text = |parameter: &'_ Value, name: &str| parameter.get(name).and_then(Value::as_str).map(str::to_owned);
        let described = self.parameters.iter().filter(move |own| text(own, "in").as_deref() == Some("query"));
        described.filter_map(|own| own.get("name")?.as_str())
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path, as it was given.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Every status that is described so far.
    #[must_use]
    pub fn statuses(&self) -> Vec<StatusCode> {
        self.answers.keys().filter_map(|status| StatusCode::from_u16(*status).ok()).collect()
    }

    fn answer(&mut self, status: StatusCode, text: &str) -> &mut Answer {
        let answer = self.answers.entry(status.as_u16()).or_default();
        if !answer.texts.iter().any(|known| known == text) {
            answer.texts.push(text.to_owned());
        }
        answer
    }
}
