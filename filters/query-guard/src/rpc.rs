//! JSON-RPC 2.0 messages, and those of the Model Context Protocol, which are such messages.

use contract::{BodyResult, Contract, Found};
use exchange::Headers;

use crate::json::Json;
use crate::violation::{Mismatch, Violation};

/// The longest name of a method or a tool that is shown, in bytes.
const MAX_NAME: usize = 64;
/// The names of a message.
const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
/// The names of the parameters of a call of a tool.
const CALL: &[&str] = &["name", "arguments"];

/// What an endpoint takes.
pub(crate) struct RpcRules<'r> {
    /// The Model Context Protocol: methods are known, and `allowed` is about tools.
    pub(crate) mcp: bool,
    /// The most messages of a batch; 0 refuses batches.
    pub(crate) batch: u32,
    /// Methods, or tools; empty for all.
    pub(crate) allowed: &'r [String],
    /// The names with a schema.
    pub(crate) names: &'r [String],
    /// Only names with a schema are taken.
    pub(crate) closed: bool,
    /// The schemas: the operation `POST /N` for the name of place N.
    pub(crate) schemas: Option<&'r Contract>,
    /// What the headers of the request say that its method and its tool are.
    pub(crate) said: Said,
}

/// The headers `Mcp-Method` and `Mcp-Name`, by which what is in front of a server may route requests; several are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    method: Option<Vec<u8>>,
    name: Option<Vec<u8>>,
}

impl Said {
    pub(crate) fn of(headers: &Headers) -> Self {
        let all = |name: &str| {
            let values: Vec<&[u8]> = headers.all(name).map(<[u8]>::trim_ascii).collect();
            (!values.is_empty()).then(|| values.join(b",".as_slice()))
        };
        Self { method: all("mcp-method"), name: all("mcp-name") }
    }

    fn has_other_method(&self, method: &str) -> bool {
        self.method.as_ref().is_some_and(|said| said != method.as_bytes())
    }

    /// A name may be coded (`=?base64?...?=`), which says nothing here.
    fn has_other_name(&self, name: &str) -> bool {
        self.name.as_ref().is_some_and(|said| said != name.as_bytes() && !said.starts_with(b"=?"))
    }
}

/// A message, for the inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

/// Judges a body: its messages, each with what does not match.
pub(crate) fn judge(body: &Json, rules: &RpcRules<'_>) -> Result<Vec<(Message, Vec<Violation>)>, Violation> {
    match body {
        Json::Array(messages) => {
            let most = usize::try_from(rules.batch).unwrap_or(usize::MAX);
            if messages.is_empty() {
                return Err(Violation::new(Mismatch::InvalidRequest, "an empty batch"));
            }
            if messages.len() > most {
                let detail = format!("a batch of {} messages, and {most} are allowed", messages.len());
                return Err(Violation::new(Mismatch::Batch, detail));
            }
            Ok(messages.iter().filter_map(|message| one(message, rules)).collect())
        }
        message => Ok(one(message, rules).into_iter().collect()),
    }
}

/// `None` for an answer, which clients of MCP send too.
fn one(message: &Json, rules: &RpcRules<'_>) -> Option<(Message, Vec<Violation>)> {
    let invalid = |detail: &str| {
        let name = Message { kind: "method", name: "(invalid)".to_owned() };
        Some((name, vec![Violation::new(Mismatch::InvalidRequest, detail)]))
    };
    if !matches!(message, Json::Object(_)) {
        return invalid("expected a message as an object");
    }
    if let Some(name) = message.lookalike(ENVELOPE) {
        return invalid(&format!("expected `{name}` in this spelling"));
    }
    if message.get("jsonrpc").and_then(Json::text) != Some("2.0") {
        return invalid("expected `jsonrpc` to be \"2.0\"");
    }
    match message.get("id") {
        None | Some(Json::Null | Json::String(_) | Json::Number(_)) => {}
        Some(_) => return invalid("expected a text or a number as `id`"),
    }
    let Some(method) = message.get("method") else {
        let answer = message.get("result").is_some() || message.get("error").is_some();
        return if rules.mcp && answer { None } else { invalid("the message has no `method`") };
    };
    let Some(method) = method.text() else { return invalid("expected a text as `method`") };
    match message.get("params") {
        None | Some(Json::Object(_) | Json::Null) => {}
        Some(array @ Json::Array(_)) if !rules.mcp || array.is_empty_array() => {}
        Some(_) => return invalid("expected an object as `params`"),
    }
    let params = message.get("params").filter(|params| !params.is_null());
    if rules.mcp { Some(mcp(method, params, rules)) } else { Some(method_call(method, params, rules)) }
}

fn method_call(method: &str, params: Option<&Json>, rules: &RpcRules<'_>) -> (Message, Vec<Violation>) {
    let named = Message { kind: "method", name: shown(method) };
    let mut found = Vec::new();
    if !is_allowed(method, rules) {
        found.push(Violation::new(Mismatch::UnknownOperation, "the method is not among those that are allowed"));
    } else if let Err(detail) = parameters(method, params, rules) {
        found.push(Violation::new(Mismatch::Parameters, format!("parameters of {}: {detail}", named.name)));
    }
    (named, found)
}

/// Whether parameters match the schema of a method. Servers take absent ones, an empty array and an empty object for the same, and
/// libraries write one for the other (PHP an empty object as `[]`).
fn parameters(method: &str, params: Option<&Json>, rules: &RpcRules<'_>) -> Result<(), String> {
    let (array, object) = (Json::Array(Vec::new()), Json::Object(Vec::new()));
    let forms: &[&Json] = match params {
        None => &[&object, &array, &Json::Null],
        Some(params) if params.is_empty_array() => &[params, &object],
        Some(params) => &[params],
    };
    let mut found = forms.iter().map(|form| schema(method, form, rules));
    let first = found.next().unwrap_or(Ok(()));
    if first.is_err() && found.any(|found| found.is_ok()) { Ok(()) } else { first }
}

/// The methods of the protocol (specifications up to 2026-07-28). A call of a tool counts as the tool.
fn mcp(method: &str, params: Option<&Json>, rules: &RpcRules<'_>) -> (Message, Vec<Violation>) {
    let mut named = Message { kind: "method", name: shown(method) };
    let mut found = Vec::new();
    let of = |name: &str| params.and_then(|params| params.get(name));
    let mut expect = |kind: Mismatch, fits: bool, detail: &str| {
        if !fits {
            found.push(Violation::new(kind, detail));
        }
    };
    let is_text = |name: &str| of(name).is_some_and(|value| value.text().is_some());
    if rules.said.has_other_method(method) {
        expect(Mismatch::InvalidRequest, false, "the header `Mcp-Method` names another method");
        return (named, found);
    }
    match method {
        "initialize" => {
            let capabilities = of("capabilities").is_some_and(Json::is_object_or_empty);
            let fits = is_text("protocolVersion") && capabilities;
            expect(Mismatch::Parameters, fits, "`initialize` needs `protocolVersion` and `capabilities`");
        }
        "tools/call" => {
            if let Some(name) = params.and_then(|params| params.lookalike(CALL)) {
                let detail = format!("expected `{name}` of `tools/call` in this spelling");
                expect(Mismatch::InvalidRequest, false, &detail);
                return (named, found);
            }
            let Some(tool) = of("name").and_then(Json::text) else {
                expect(Mismatch::Parameters, false, "`tools/call` needs the `name` of a tool");
                return (named, found);
            };
            named = Message { kind: "tool", name: shown(tool) };
            if rules.said.has_other_name(tool) {
                expect(Mismatch::InvalidRequest, false, "the header `Mcp-Name` names another tool");
                return (named, found);
            }
            let empty = Json::Object(Vec::new());
            let given = |arguments: &&Json| !arguments.is_null() && !arguments.is_empty_array();
            let arguments = of("arguments").filter(given).unwrap_or(&empty);
            if !is_allowed(tool, rules) {
                expect(Mismatch::UnknownOperation, false, "the tool is not among those that are allowed");
            } else if !matches!(arguments, Json::Object(_)) {
                expect(Mismatch::Parameters, false, "expected an object as `arguments`");
            } else if let Err(detail) = schema(tool, arguments, rules) {
                let detail = format!("arguments of {}: {detail}", named.name);
                expect(Mismatch::Parameters, false, &detail);
            }
        }
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            expect(Mismatch::Parameters, is_text("uri"), "the method needs the `uri` of a resource");
        }
        "prompts/get" => expect(Mismatch::Parameters, is_text("name"), "`prompts/get` needs the `name` of a prompt"),
        "ping"
        | "tools/list"
        | "resources/list"
        | "resources/templates/list"
        | "prompts/list"
        | "logging/setLevel"
        | "completion/complete"
        | "server/discover"
        | "subscriptions/listen"
        | "tasks/list"
        | "tasks/get"
        | "tasks/result"
        | "tasks/update"
        | "tasks/cancel" => {}
        _ if method.starts_with("notifications/") => {}
        _ => expect(Mismatch::UnknownOperation, false, "the method is none of the Model Context Protocol"),
    }
    (named, found)
}

fn is_allowed(name: &str, rules: &RpcRules<'_>) -> bool {
    let listed = rules.allowed.is_empty()
        || rules.allowed.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => allowed == name,
        });
    listed && (!rules.closed || rules.names.iter().any(|known| known == name))
}

/// Whether a value matches the schema of a name, if it has one.
fn schema(name: &str, value: &Json, rules: &RpcRules<'_>) -> Result<(), String> {
    let Some(contract) = rules.schemas else { return Ok(()) };
    // Some servers find methods in any case, and without the blanks around them.
    let is_like = |known: &String| names::equal(known.as_bytes(), name.trim().as_bytes());
    let place = rules.names.iter().position(|known| known == name).or_else(|| rules.names.iter().position(is_like));
    let Some(place) = place else { return Ok(()) };
    let path = format!("/{place}");
    let Found::Operation(matched) = contract.find(b"POST", path.as_bytes(), false) else { return Ok(()) };
    let schema = match contract.request_body(matched.operation, Some(b"application/json"), true) {
        contract::BodyCheck::Json(schema) | contract::BodyCheck::Required(Some(schema)) => schema,
        _ => return Ok(()),
    };
    let text = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    match contract.check_body(schema, &text, false) {
        BodyResult::Invalid(violations) => {
            let Some(violation) = violations.first() else { return Err(String::from("it does not match its schema")) };
            let place = violation.place.strip_prefix("body:").unwrap_or_default();
            Err(format!("{place} {}", violation.detail).trim_start().to_owned())
        }
        BodyResult::Valid | BodyResult::Unjudged => Ok(()),
    }
}

/// A name, which a client chose, for people: printable, and of a limited length.
pub(crate) fn shown(name: &str) -> String {
    name.chars().filter(|character| character.is_ascii_graphic()).take(MAX_NAME).collect()
}
