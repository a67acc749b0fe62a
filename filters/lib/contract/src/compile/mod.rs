//! The control-plane side: from a document to the compiled form.

mod document;
mod methods;
mod read;
mod reduce;
mod references;
mod routes;
mod schema;
mod shape;
mod sides;

use serde_json::Value;

use crate::image::{ImageWriter, Table};
use prost::Message as _;

pub use document::OperationSummary;

/// The most operations of a document.
pub const MAX_OPERATIONS: usize = 50_000;
/// The most schemas of a document, each place of one counted once.
const MAX_SCHEMAS: usize = 1_000_000;
/// The most warnings that are listed.
const MAX_WARNINGS: usize = 100;

/// A document that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// Where in the document, as a JSON pointer.
    pub pointer: String,
    /// What is wrong, and what is expected.
    pub message: String,
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.pointer, self.message)
        }
    }
}

/// What is compiled of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Responses as well as requests.
    pub responses: bool,
}

/// A compiled document.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The compiled form, for [`crate::Contract::open`].
    pub image: Vec<u8>,
    /// The version of OpenAPI that the document names.
    pub version: String,
    /// The prefix of its paths.
    pub base_path: String,
    /// Its operations, in its order.
    pub operations: Vec<OperationSummary>,
    /// What checks nothing, each with a JSON pointer.
    pub warnings: Vec<String>,
}

/// The dialect of schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAPI 3.0.
    Version30,
    /// JSON Schema 2020-12.
    Version31,
}

/// Compiles a document: OpenAPI 3.0 or 3.1 as JSON or YAML. An empty `base_path` means the path of the first server.
///
/// # Errors
///
/// The text is no such document, or larger than the limits.
pub fn compile(text: &str, base_path: &str, options: Options) -> Result<Compiled, CompileError> {
    let root = read::read(text)?;
    document::compile(&root, base_path, options)
}

/// Reads the text of a document, JSON or YAML, without a look at what it says.
///
/// # Errors
///
/// The text is neither, or larger than the limits.
pub fn read_text(text: &str) -> Result<Value, CompileError> {
    read::read(text)
}

/// Compiles a schema alone, for tests and for fuzzing: the compiled form and its only schema, 0.
///
/// # Errors
///
/// As of [`compile`].
#[doc(hidden)]
pub fn compile_schema(schema: &Value, version_31: bool) -> Result<(Vec<u8>, Vec<String>), CompileError> {
    let dialect = if version_31 { Dialect::Version31 } else { Dialect::Version30 };
    let mut compiler = schema::Compiler::new(schema, dialect, true);
    compiler.schema_at("")?;
    compiler.finish_schemas()?;
    let warnings = std::mem::take(&mut compiler.warnings);
    let image = write(compiler, Vec::new(), Vec::new(), &[0])?;
    Ok((image, warnings.finish()))
}

/// Puts the records into an image. `roots` are schemas that no operation needs.
fn write(
    compiler: schema::Compiler<'_>,
    routes: Vec<crate::record::RouteRecord>,
    mut operations: Vec<crate::record::OperationRecord>,
    roots: &[u32],
) -> Result<Vec<u8>, CompileError> {
    let mut writer = ImageWriter::default();
    let failed = |message| CompileError { pointer: String::new(), message };
    let (texts, schemas, mut resources) = compiler.into_records();
    let schemas = reduce::reduce(schemas, &mut resources, &mut operations, roots);
    for text in texts {
        writer.push(Table::Texts, text).map_err(failed)?;
    }
    for schema in schemas {
        writer.push(Table::Schemas, schema.encode_to_vec()).map_err(failed)?;
    }
    for resource in resources {
        writer.push(Table::Resources, resource.encode_to_vec()).map_err(failed)?;
    }
    for route in routes {
        writer.push(Table::Routes, route.encode_to_vec()).map_err(failed)?;
    }
    for operation in operations {
        writer.push(Table::Operations, operation.encode_to_vec()).map_err(failed)?;
    }
    writer.finish().map_err(failed)
}

/// Warnings, each once, up to a limit.
#[derive(Default)]
pub(crate) struct Warnings {
    listed: Vec<String>,
    more: usize,
}

impl Warnings {
    /// Adds one about a place of the document.
    pub(crate) fn add(&mut self, pointer: &str, message: impl std::fmt::Display) {
        if self.listed.len() >= MAX_WARNINGS {
            self.more += 1;
            return;
        }
        let warning = format!("{pointer}: {message}");
        if !self.listed.contains(&warning) {
            self.listed.push(warning);
        }
    }

    /// All of them.
    pub(crate) fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.listed.push(format!("{} more warnings are not listed", self.more));
        }
        self.listed
    }
}
