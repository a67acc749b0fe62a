//! OpenAPI documents (3.0.4, 3.1.1): paths, operations, parameters, bodies and responses.

use serde_json::{Map, Value};

use super::references::join;
use super::routes::{Segment, Tree, names, segments};
use super::schema::Compiler;
use super::shape::shape;
use super::{CompileError, Compiled, Dialect, MAX_OPERATIONS, Options, write};
use crate::param::{Place, Style, kind};
use crate::record::{BodyRecord, MediaRecord, OperationRecord, ParameterRecord, ResponseRecord, types};

/// Methods that a path item names.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
/// The most base paths that the variables of one server make.
const MAX_BASES: usize = 16;

/// An operation, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationSummary {
    /// Its method, in capital letters.
    pub method: String,
    /// Its path, without the base path.
    pub path: String,
    /// Its `operationId`; empty where it has none.
    pub operation_id: String,
    /// Its parameters: place and name.
    pub parameters: Vec<(&'static str, String)>,
    /// Whether its body is required, and its media types; `None` where it has none.
    pub body: Option<(bool, Vec<String>)>,
    /// The statuses that it answers with, as the document has them.
    pub responses: Vec<String>,
}

struct Reader<'d> {
    compiler: Compiler<'d>,
    options: Options,
    tree: Tree,
    operations: Vec<OperationRecord>,
    listed: Vec<OperationSummary>,
}

pub(super) fn compile(root: &Value, base_path: &str, options: Options) -> Result<Compiled, CompileError> {
    let failed = |pointer: &str, message: String| CompileError { pointer: pointer.to_owned(), message };
    let document = root.as_object().ok_or_else(|| failed("", "the document is no object".to_owned()))?;
    if document.contains_key("swagger") {
        return Err(failed("/swagger", "a Swagger 2 document; convert it to OpenAPI 3.0 or 3.1 first".to_owned()));
    }
    let version = match document.get("openapi") {
        Some(Value::String(version)) => version.clone(),
        // YAML reads `3.1` without quotes as a number.
        Some(Value::Number(version)) => version.to_string(),
        _ => return Err(failed("/openapi", "the document has no version; `3.0.x` or `3.1.x` is expected".to_owned())),
    };
    let is = |minor: &str| version == minor || version.starts_with(&format!("{minor}."));
    let dialect = match () {
        () if is("3.0") => Dialect::Version30,
        () if is("3.1") => Dialect::Version31,
        () => return Err(failed("/openapi", format!("version `{version}`; `3.0.x` or `3.1.x` is expected"))),
    };
    let mut compiler = Compiler::new(root, dialect, false);
    if let Some(named) = document.get("jsonSchemaDialect").and_then(Value::as_str)
        && dialect == Dialect::Version31
        && !named.contains("draft/2020-12")
        && !named.contains("spec.openapis.org/oas/3.1")
    {
        let shown: String = named.chars().take(200).collect();
        compiler.warnings.add("/jsonSchemaDialect", format!("`{shown}` is not known; schemas are read as 2020-12"));
    }
    let mut reader = Reader { compiler, options, tree: Tree::default(), operations: Vec::new(), listed: Vec::new() };
    let own = Some(base_path.trim_end_matches('/')).filter(|_| !base_path.is_empty());
    let (bases, shown) = match own {
        Some(base) => (vec![base.to_owned()], base.to_owned()),
        None => bases(document.get("servers")),
    };
    let paths = match document.get("paths") {
        Some(Value::Object(paths)) => Some(paths),
        None => None,
        Some(_) => return Err(failed("/paths", "an object of paths is expected".to_owned())),
    };
    for (path, item) in paths.into_iter().flatten().filter(|(path, _)| !path.starts_with("x-")) {
        let pointer = join("/paths", path);
        if !path.starts_with('/') {
            reader.compiler.warnings.add(&pointer, "the path does not begin with /, so that no request has it");
            continue;
        }
        if path.contains(['#', '?']) {
            reader.compiler.warnings.add(&pointer, "the path has a `#` or `?`, so that no request has it");
        }
        let servers = item.get("servers").filter(|_| own.is_none());
        let bases = servers.map_or_else(|| bases.clone(), |servers| self::bases(Some(servers)).0);
        reader.item(path, &pointer, &bases, own.is_none())?;
    }
    reader.compiler.finish_schemas()?;
    let Reader { mut compiler, tree, operations, listed, .. } = reader;
    let routes = tree.finish(&mut compiler);
    let warnings = std::mem::take(&mut compiler.warnings).finish();
    let image = write(compiler, routes, operations, &[])?;
    Ok(Compiled { image, version, base_path: shown, operations: listed, warnings })
}

/// The base paths that the first server makes, as templates, and how it is shown.
fn bases(servers: Option<&Value>) -> (Vec<String>, String) {
    let Some(server) = servers.and_then(|servers| servers.get(0)) else { return (vec![String::new()], String::new()) };
    let url = server.get("url").and_then(Value::as_str).unwrap_or_default();
    let variables = server.get("variables").and_then(Value::as_object);
    let mut made = vec![url.to_owned()];
    let mut shown = url.to_owned();
    for (name, variable) in variables.into_iter().flatten() {
        let placeholder = format!("{{{name}}}");
        if !url.contains(&placeholder) {
            continue;
        }
        let default = variable.get("default").map(text_of).unwrap_or_default();
        let listed: Vec<String> = match variable.get("enum").and_then(Value::as_array) {
            Some(values) if !values.is_empty() => values.iter().map(text_of).collect(),
            // What is free and is a segment of its own stays a parameter.
            _ if url.contains(&format!("/{placeholder}"))
                && !default.contains('/')
                && path_of(url).contains(&placeholder) =>
            {
                vec![placeholder.clone()]
            }
            _ => vec![default.clone()],
        };
        shown = shown.replace(&placeholder, &default);
        made = made
            .iter()
            .flat_map(|url| listed.iter().map(|value| url.replace(&placeholder, value)))
            .take(MAX_BASES)
            .collect();
    }
    let mut made: Vec<String> = made.iter().map(|url| path_of(url).to_owned()).collect();
    made.dedup();
    (made, path_of(&shown).to_owned())
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The path of a URL, without a slash at its end.
fn path_of(url: &str) -> &str {
    let rest = url.split(['?', '#']).next().unwrap_or_default();
    let path = match rest.split_once("://").map(|(_, rest)| rest).or_else(|| rest.strip_prefix("//")) {
        Some(rest) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default(),
        None if rest.starts_with('/') => rest,
        None => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default(),
    };
    path.trim_end_matches('/')
}

impl<'d> Reader<'d> {
    fn item(&mut self, path: &str, pointer: &str, bases: &[String], servers: bool) -> Result<(), CompileError> {
        let Some((place, item)) = self.compiler.object_at(pointer) else { return Ok(()) };
        for method in METHODS {
            let Some(operation) = item.get(method).and_then(Value::as_object) else { continue };
            let below = join(&place, method);
            if self.operations.len() >= MAX_OPERATIONS {
                let message = format!("the document has more than {MAX_OPERATIONS} operations");
                return Err(CompileError { pointer: below, message });
            }
            let own = operation.get("servers").filter(|_| servers).map(|servers| self::bases(Some(servers)).0);
            self.operation(
                path,
                &method.to_ascii_uppercase(),
                (operation, &below),
                &place,
                own.as_deref().unwrap_or(bases),
            )?;
        }
        Ok(())
    }

    fn operation(
        &mut self,
        path: &str,
        method: &str,
        (operation, pointer): (&Map<String, Value>, &str),
        item: &str,
        bases: &[String],
    ) -> Result<(), CompileError> {
        let number = u32::try_from(self.operations.len()).unwrap_or(u32::MAX);
        let own: Vec<Segment> = segments(path);
        let id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default();
        let mut record = OperationRecord {
            method: self.compiler.text(method.as_bytes()),
            path: self.compiler.text(path.as_bytes()),
            id: self.compiler.text(id.as_bytes()),
            names: names(&own).into_iter().map(|name| self.compiler.text(name.as_bytes())).collect(),
            ..OperationRecord::default()
        };
        let mut listed = OperationSummary {
            method: method.to_owned(),
            path: path.to_owned(),
            operation_id: id.to_owned(),
            parameters: Vec::new(),
            body: None,
            responses: Vec::new(),
        };
        self.parameters(&[pointer, item], &mut record, &mut listed)?;
        self.keys_in_query(operation, &mut record);
        if let Some((place, body)) = self.body(pointer) {
            let required = body.get("required") == Some(&Value::Bool(true));
            let media = self.media(&place, body)?;
            let methods = self.compiler.declared_methods(&place, body);
            let shown = body.get("content").and_then(Value::as_object).into_iter().flatten();
            listed.body = Some((required, shown.map(|(range, _)| range.clone()).collect()));
            record.body = Some(BodyRecord { required, media, methods });
        }
        self.responses(pointer, operation, &mut record, &mut listed)?;
        for base in bases {
            let prefix: Vec<Segment> = if base.is_empty() { Vec::new() } else { segments(base) };
            let all: Vec<Segment> = prefix.into_iter().chain(segments(path)).collect();
            if !self.tree.add(&all, method, number) {
                self.compiler
                    .warnings
                    .add(pointer, "another operation has the same path and method; this one is never reached");
            }
            if path == "/" && !base.is_empty() {
                self.tree.add(&segments(base), method, number);
            }
        }
        self.operations.push(record);
        self.listed.push(listed);
        Ok(())
    }

    fn parameters(
        &mut self,
        owners: &[&str],
        record: &mut OperationRecord,
        listed: &mut OperationSummary,
    ) -> Result<(), CompileError> {
        for owner in owners {
            let list = self.compiler.at(owner).and_then(|owner| owner.get("parameters")?.as_array());
            for place in 0..list.map_or(0, Vec::len) {
                let Some((pointer, parameter)) = self.compiler.object_at(&format!("{owner}/parameters/{place}")) else {
                    continue;
                };
                let text = |key: &str| parameter.get(key).and_then(Value::as_str);
                let (Some(name), Some(at)) = (text("name"), text("in")) else { continue };
                let Some(at) = Place::named(at) else { continue };
                // Those of an operation come first, and replace those of its path item.
                if listed.parameters.iter().any(|known| *known == (at.name(), name.to_owned())) {
                    continue;
                }
                listed.parameters.push((at.name(), name.to_owned()));
                let ignored = ["accept", "content-type", "authorization"];
                if at == Place::Cookie || (at == Place::Header && ignored.contains(&name.to_ascii_lowercase().as_str()))
                {
                    continue;
                }
                let made = self.parameter(&pointer, parameter, name, at)?;
                record.open_query |= at == Place::Query
                    && made.open
                    && made.explode
                    && made.style == Style::Form as u32
                    && made.kind & kind::OBJECT != 0
                    && made.kind & kind::SINGLE == 0;
                record.parameters.push(made);
            }
        }
        Ok(())
    }

    /// API keys that a security scheme has in the query are declared, and checked by what reads them.
    fn keys_in_query(&mut self, operation: &Map<String, Value>, record: &mut OperationRecord) {
        let required = operation.get("security").or_else(|| self.compiler.root.get("security"));
        let required = required.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
        for scheme in required.flat_map(Map::keys) {
            let place = join("/components/securitySchemes", scheme);
            let Some((_, scheme)) = self.compiler.object_at(&place) else { continue };
            let text = |key: &str| scheme.get(key).and_then(Value::as_str);
            if let (Some("apiKey"), Some("query"), Some(name)) = (text("type"), text("in"), text("name")) {
                let name = self.compiler.text(name.as_bytes());
                let place = Place::Query as u32;
                record.parameters.push(ParameterRecord { name, place, ..ParameterRecord::default() });
            }
        }
    }

    fn parameter(
        &mut self,
        pointer: &str,
        parameter: &Map<String, Value>,
        name: &str,
        at: Place,
    ) -> Result<ParameterRecord, CompileError> {
        let is = |key: &str| parameter.get(key) == Some(&Value::Bool(true));
        let mut style = match parameter.get("style").and_then(Value::as_str).and_then(Style::named) {
            Some(style) => style,
            None if at == Place::Query => Style::Form,
            None => Style::Simple,
        };
        let explode = parameter.get("explode").and_then(Value::as_bool).unwrap_or(style == Style::Form);
        let mut place = parameter.contains_key("schema").then(|| join(pointer, "schema"));
        if let Some((range, _)) = parameter.get("content").and_then(Value::as_object).and_then(|all| all.iter().next())
        {
            style = Style::Content;
            let schema = join(&join(&join(pointer, "content"), range), "schema");
            let json = crate::media::is_json(&crate::media::essence(range.as_bytes()));
            place = Some(schema).filter(|schema| json && self.compiler.at(schema).is_some());
        }
        let shown = match at {
            Place::Header => name.to_ascii_lowercase(),
            _ => name.to_owned(),
        };
        let mut record = ParameterRecord {
            name: self.compiler.text(shown.as_bytes()),
            place: at as u32,
            style: style as u32,
            explode,
            required: is("required") || at == Place::Path,
            allow_empty: is("allowEmptyValue"),
            ..ParameterRecord::default()
        };
        if let Some(place) = place {
            let shape = shape(&mut self.compiler, &place);
            let single = shape.types & !(types::ARRAY | types::OBJECT);
            let all = [(types::ARRAY, kind::LIST), (types::OBJECT, kind::OBJECT)];
            record.kind = all.iter().filter(|(bit, _)| shape.types & bit != 0).fold(0, |all, (_, kind)| all | kind);
            // Null alone beside a list is `nullable`.
            if single & !types::NULL & !types::STRICT_INTEGER != 0 || record.kind == 0 {
                record.kind |= kind::SINGLE;
            }
            record.types = single;
            record.items = shape.items;
            record.fields = shape.fields;
            record.open = shape.open;
            record.schema = Some(self.compiler.schema_at(&place)?);
        }
        Ok(record)
    }

    fn body(&mut self, pointer: &str) -> Option<(String, &'d Map<String, Value>)> {
        let place = join(pointer, "requestBody");
        self.compiler.at(&place)?;
        self.compiler.object_at(&place)
    }

    /// The media types of a body or a response at a place.
    fn media(&mut self, pointer: &str, owner: &Map<String, Value>) -> Result<Vec<MediaRecord>, CompileError> {
        let mut media = Vec::new();
        for (range, content) in owner.get("content").and_then(Value::as_object).into_iter().flatten() {
            let essence = crate::media::essence(range.as_bytes());
            let place = join(&join(&join(pointer, "content"), range), "schema");
            // A range may take JSON too.
            let checked = crate::media::is_json(&essence) || essence.ends_with(b"*");
            let schema =
                if checked && content.get("schema").is_some() { Some(self.compiler.schema_at(&place)?) } else { None };
            media.push(MediaRecord { range: self.compiler.text(&essence), schema });
        }
        Ok(media)
    }

    fn responses(
        &mut self,
        pointer: &str,
        operation: &Map<String, Value>,
        record: &mut OperationRecord,
        listed: &mut OperationSummary,
    ) -> Result<(), CompileError> {
        for (status, _) in operation.get("responses").and_then(Value::as_object).into_iter().flatten() {
            if status.starts_with("x-") {
                continue;
            }
            listed.responses.push(status.clone());
            if !self.options.responses {
                continue;
            }
            let number = match status.as_bytes() {
                b"default" => 0,
                [class @ b'1'..=b'5', b'X' | b'x', b'X' | b'x'] => u32::from(class - b'0'),
                _ => match status.parse::<u32>() {
                    Ok(number) if (100..600).contains(&number) => number,
                    _ => continue,
                },
            };
            let place = join(&join(pointer, "responses"), status);
            let Some((place, response)) = self.compiler.object_at(&place) else {
                record.responses.push(ResponseRecord { status: number, media: Vec::new() });
                continue;
            };
            let media = self.media(&place, response)?;
            record.responses.push(ResponseRecord { status: number, media });
        }
        Ok(())
    }
}
