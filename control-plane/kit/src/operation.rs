//! Endpoints of the console that belong to plugins.

use std::any::Any;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{EntitySource, FieldProblem, Runtime, Tools, TrafficSource, Writing, schema, typed};

/// An endpoint of the console that belongs to a plugin: `POST` with a JSON object, or `GET`, answered with JSON. Only operators with a session
/// reach it. The console reads the body, runs the work off its async threads, and describes the endpoint in the API's document.
#[derive(Debug)]
pub struct Operation {
    /// Its path below the console's namespace, such as `/utils/_compile`.
    pub path: &'static str,
    /// How it is called.
    pub method: OperationMethod,
    /// Its id, unique among the operations of all plugins; it stays the same over releases, because generated clients name their
    /// functions by it.
    pub id: &'static str,
    /// The operations that the description shows it with.
    pub group: &'static OperationGroup,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// More than the summary says, CommonMark; may be empty.
    pub description: &'static str,
    /// The type of the body, which has the work. That of a `GET` is read from `{}`.
    pub body: BodyKind,
    /// What the body has and how large it may be, in a sentence. Of a `GET` none is shown, nor are the fields that follow and belong to it.
    pub body_text: &'static str,
    /// The bytes of a body, at most.
    pub max_body: usize,
    /// An example of the body.
    pub example: fn() -> Value,
    /// What [`OperationAnswer::Done`] says, in a sentence.
    pub answer_text: &'static str,
    /// The schema of [`OperationAnswer::Done`].
    pub answer: fn() -> Value,
    /// Schemas that the one of the answer refers to, see [`NamedSchema::reference`].
    pub schemas: &'static [NamedSchema],
    /// How a body that does not fit is answered; `None` for the errors that the whole API has.
    pub refusal: Option<BodyRefusal>,
    /// Why a call has to wait for its turn, without the end of the sentence. Two calls of a plugin are at work at a time, two that are
    /// done at once, and two that only read.
    pub busy: &'static str,
    /// It is done at once, and what takes long must not keep it waiting: it has turns of its own.
    pub at_once: bool,
    /// What operators are told of a call that does something; `None` for one that changes nothing.
    pub audit: Option<OperationAudit>,
}

/// What the audit of a call says, beside who made it.
#[derive(Clone, Copy, Debug)]
pub struct OperationAudit {
    /// The word for what was done, unique among those of the control plane.
    pub action: &'static str,
    /// What it was done to, from the body: an entity as `collection/id`.
    pub of: fn(&Value) -> Option<String>,
    /// More about it, for people, from the answer; `None` where nothing was done, which is not told.
    pub detail: fn(&Value) -> Option<String>,
}

/// How an operation is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationMethod {
    /// Without a body; it changes nothing.
    Get,
    /// With a body.
    Post,
}

/// Operations that belong together.
#[derive(Debug)]
pub struct OperationGroup {
    /// The name.
    pub name: &'static str,
    /// What it is about; a sentence or a few, CommonMark.
    pub about: &'static str,
}

/// The body of an operation, and the work. It should refuse unknown fields. Its JSON Schema is derived from its serde attributes; the
/// comments of its fields are the descriptions that people read there.
pub trait OperationBody: DeserializeOwned + JsonSchema + Send + 'static {
    /// The name of its schema, unique among those of the API.
    const SCHEMA: &'static str;

    /// Does the work. It may take seconds: the console runs it in a thread that may block, and gives up waiting after 30 seconds.
    fn run(self, context: &OperationContext<'_>) -> OperationAnswer;
}

/// What is at hand while an operation runs.
pub struct OperationContext<'a> {
    /// The entities as they are now.
    pub entities: &'a dyn EntitySource,
    /// What plugins keep from one call to the next. They are not those of compilations, and no pass over entities ends in them.
    pub tools: &'a Tools,
    /// What the plugin has at work, see [`OperationContext::runtime`].
    pub at_work: Option<&'a Runtime>,
    /// The time, in milliseconds since 1970.
    pub now_millis: u64,
    /// Writes entities; `None` where the caller only reads.
    pub writing: Option<Writing<'a>>,
    /// Recorded traffic; `None` where the caller has none.
    pub traffic: Option<&'a dyn TrafficSource>,
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationAnswer {
    /// 200.
    Done(Value),
    /// 400: the body is of the right type and still cannot be used. The same shape as of [`Operation::refusal`].
    Refused(Value),
    /// 409: it cannot be done as things are. The shape is that of [`BodyRefusal::conflict`].
    Conflict(Value),
}

/// The type of an operation's body, forgotten.
#[derive(Clone, Copy, Debug)]
pub struct BodyKind {
    /// Its schema.
    pub schema: NamedSchema,
    read: fn(Value) -> Result<Work, FieldProblem>,
}

/// What an operation does with a body.
pub type Work = Box<dyn FnOnce(&OperationContext<'_>) -> OperationAnswer + Send>;

/// A JSON Schema (2020-12) with a name of its own in the description of the API.
#[derive(Clone, Copy, Debug)]
pub struct NamedSchema {
    /// The name, unique among those of the API.
    pub name: &'static str,
    /// The schema; its `$defs` get names of their own.
    pub schema: fn() -> Value,
}

/// How a body that cannot be read is answered, with the status 400, 408, 413 or 415.
#[derive(Clone, Copy, Debug)]
pub struct BodyRefusal {
    /// It is answered with 200 instead, as all else that cannot be done.
    pub as_done: bool,
    /// The schema of the answer.
    pub schema: NamedSchema,
    /// The schema of [`OperationAnswer::Conflict`]; `None` where an operation has none.
    pub conflict: Option<NamedSchema>,
    /// Makes the answer of what is wrong, a sentence without its end.
    pub answer: fn(&str) -> Value,
}

// === impl OperationContext ===

impl OperationContext<'_> {
    /// What the plugin has at work, see [`Plugin::runtime`](crate::Plugin::runtime); `None` where it has none of that type.
    #[must_use]
    pub fn runtime<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.at_work?).downcast().ok()
    }
}

// === impl OperationAnswer ===

impl OperationAnswer {
    /// [`OperationAnswer::Refused`] for a field, in the shape of the API's errors.
    #[must_use]
    pub fn invalid(problem: &FieldProblem) -> OperationAnswer {
        OperationAnswer::Refused(json!({ "error": "invalid_body", "error_description": problem.to_string() }))
    }
}

// === impl BodyKind ===

impl BodyKind {
    /// The kind of a type.
    #[must_use]
    pub const fn of<T: OperationBody>() -> BodyKind {
        BodyKind {
            schema: NamedSchema { name: T::SCHEMA, schema: schema::plain::<T> },
            read: |value| {
                let body: T = typed(value)?;
                Ok(Box::new(move |context| body.run(context)))
            },
        }
    }

    /// Reads a body; the result does the work.
    ///
    /// # Errors
    /// The first field that is not what the type has.
    pub fn read(&self, value: Value) -> Result<Work, FieldProblem> {
        (self.read)(value)
    }
}

// === impl NamedSchema ===

impl NamedSchema {
    /// A schema that stands for this one.
    #[must_use]
    pub fn reference(&self) -> Value {
        json!({ "$ref": format!("#/$defs/{}", self.name) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::Deserialize;

    use super::*;
    use crate::{Collection, Slot};

    /// A number to add to.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sum {
        /// What is added to the time.
        number: u64,
    }

    struct Nothing;

    impl OperationBody for Sum {
        const SCHEMA: &'static str = "Sum";

        fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
            match context.now_millis.checked_add(self.number) {
                Some(sum) => OperationAnswer::Done(json!(sum)),
                None => OperationAnswer::invalid(&FieldProblem::new("/number", "too large").expected("less")),
            }
        }
    }

    impl EntitySource for Nothing {
        fn slot(&self, _collection: &str, _id: &str) -> Option<&Slot> {
            None
        }

        fn collection(&self, _collection: &str) -> Option<&Arc<Collection>> {
            None
        }
    }

    #[test]
    fn a_body_is_read_as_its_type_before_its_work_is_done() {
        let kind = BodyKind::of::<Sum>();
        let context = OperationContext {
            entities: &Nothing,
            tools: &Tools::default(),
            at_work: None,
            now_millis: 40,
            writing: None,
            traffic: None,
        };
        let run = |number: u64| kind.read(json!({ "number": number })).unwrap()(&context);
        assert_eq!(run(2), OperationAnswer::Done(json!(42)));
        let refused = json!({ "error": "invalid_body", "error_description": "/number: too large (expected less)" });
        assert_eq!(run(u64::MAX), OperationAnswer::Refused(refused));
        for (wrong, pointer) in [(json!({ "number": "2" }), "/number"), (json!({ "nubmer": 2 }), "/nubmer")] {
            assert_eq!(kind.read(wrong).err().unwrap().pointer, pointer);
        }
    }

    #[test]
    fn the_schema_of_a_body_is_that_of_its_type() {
        let NamedSchema { name, schema } = BodyKind::of::<Sum>().schema;
        let schema = schema();
        assert_eq!((name, &schema["description"]), ("Sum", &json!("A number to add to.")));
        assert_eq!(schema["properties"]["number"]["description"], "What is added to the time.");
        assert_eq!(BodyKind::of::<Sum>().schema.reference(), json!({ "$ref": "#/$defs/Sum" }));
    }
}
