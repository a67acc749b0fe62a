//! The schema language (specification of October 2021, section 3): from a text to the compiled form.

use std::collections::BTreeMap;

use super::document::Parser;
use super::lexer::{SyntaxError, Token};
use super::schema::Schema;
use crate::messages::{FieldRecord, Schema as SchemaRecord, TypeKind, TypeRecord};
use prost::Message as _;

/// Scalars that every schema has.
const SCALARS: [&str; 5] = ["Boolean", "Float", "ID", "Int", "String"];
/// Directives of documents that every schema has.
const DIRECTIVES: [&str; 2] = ["include", "skip"];

/// Compiles a schema.
///
/// # Errors
/// What is wrong, with its line.
pub(crate) fn compile(text: &str) -> Result<Vec<u8>, String> {
    let at_line = |error: SyntaxError| {
        let line = text.bytes().take(error.at).filter(|byte| *byte == b'\n').count() + 1;
        format!("line {line}: {}", error.what)
    };
    let mut compiler = Compiler::default();
    compiler.read(text).map_err(at_line)?;
    let record = compiler.finish()?;
    let bytes = record.encode_to_vec();
    // What is not declared is found as a filter would find it.
    Schema::open(&bytes)?;
    Ok(bytes)
}

#[derive(Default)]
struct Compiler {
    types: BTreeMap<String, TypeRecord>,
    roots: BTreeMap<&'static str, String>,
    directives: Vec<String>,
}

type Parsed<T> = Result<T, SyntaxError>;

impl Compiler {
    fn read(&mut self, text: &str) -> Parsed<()> {
        let mut parser = Parser::new(text)?;
        while parser.token != Token::End {
            description(&mut parser)?;
            let mut keyword = parser.name()?;
            let extends = keyword == "extend";
            if extends {
                keyword = parser.name()?;
            }
            match keyword {
                "schema" => self.schema(&mut parser)?,
                "directive" => self.directive(&mut parser)?,
                "scalar" => self.definition(&mut parser, TypeKind::Scalar, extends)?,
                "type" => self.definition(&mut parser, TypeKind::Object, extends)?,
                "interface" => self.definition(&mut parser, TypeKind::Interface, extends)?,
                "union" => self.definition(&mut parser, TypeKind::Union, extends)?,
                "enum" => self.definition(&mut parser, TypeKind::Enum, extends)?,
                "input" => self.definition(&mut parser, TypeKind::Input, extends)?,
                _ => return parser.wrong("expected a definition of a type before this"),
            }
        }
        Ok(())
    }

    fn schema(&mut self, parser: &mut Parser<'_>) -> Parsed<()> {
        parser.directives()?;
        if !parser.take(b'{')? {
            return Ok(());
        }
        while !parser.take(b'}')? {
            let root = match parser.name()? {
                "query" => "query",
                "mutation" => "mutation",
                "subscription" => "subscription",
                _ => return parser.wrong("expected `query`, `mutation` or `subscription` before this"),
            };
            parser.expect(b':', "expected the type of a root")?;
            self.roots.insert(root, parser.name()?.to_owned());
        }
        Ok(())
    }

    fn directive(&mut self, parser: &mut Parser<'_>) -> Parsed<()> {
        parser.expect(b'@', "expected the name of a directive")?;
        self.directives.push(parser.name()?.to_owned());
        arguments(parser)?;
        if parser.token == Token::Name("repeatable") {
            parser.advance()?;
        }
        if parser.token != Token::Name("on") {
            return parser.wrong("expected the places of a directive");
        }
        parser.advance()?;
        parser.take(b'|')?;
        parser.name()?;
        while parser.take(b'|')? {
            parser.name()?;
        }
        Ok(())
    }

    fn definition(&mut self, parser: &mut Parser<'_>, kind: TypeKind, extends: bool) -> Parsed<()> {
        let place = parser.start;
        let name = parser.name()?.to_owned();
        let mut record = TypeRecord { name: name.clone(), kind: kind.into(), ..TypeRecord::default() };
        if parser.token == Token::Name("implements") {
            parser.advance()?;
            parser.take(b'&')?;
            parser.name()?;
            while parser.take(b'&')? {
                parser.name()?;
            }
        }
        parser.directives()?;
        if kind == TypeKind::Union {
            if parser.take(b'=')? {
                parser.take(b'|')?;
                parser.name()?;
                while parser.take(b'|')? {
                    parser.name()?;
                }
            }
        } else if kind != TypeKind::Scalar && parser.take(b'{')? {
            while !parser.take(b'}')? {
                description(parser)?;
                if kind == TypeKind::Enum {
                    record.values.push(parser.name()?.to_owned());
                    parser.directives()?;
                } else {
                    record.fields.push(field(parser)?);
                }
            }
        }
        match self.types.get_mut(&name) {
            Some(known) if extends && known.kind == record.kind => {
                known.fields.extend(record.fields);
                known.values.extend(record.values);
            }
            Some(_) => return Err(SyntaxError { at: place, what: "a type is defined twice" }),
            None => {
                self.types.insert(name, record);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<SchemaRecord, String> {
        for scalar in SCALARS {
            let record = TypeRecord { name: scalar.to_owned(), kind: TypeKind::Scalar.into(), ..TypeRecord::default() };
            self.types.entry(scalar.to_owned()).or_insert(record);
        }
        let usual = [("query", "Query"), ("mutation", "Mutation"), ("subscription", "Subscription")];
        let mut roots = Vec::new();
        for (root, name) in usual {
            let declared = self.roots.get(root);
            let name = match declared {
                Some(declared) => declared.as_str(),
                None if self.roots.is_empty() => name,
                None => "",
            };
            let known = self.types.get(name).is_some_and(|found| found.kind() == TypeKind::Object);
            if !known && declared.is_some() {
                return Err(format!("the type `{name}` of the root `{root}` is not declared"));
            }
            roots.push(if known { name.to_owned() } else { String::new() });
        }
        if roots.first().is_some_and(String::is_empty) {
            return Err("the schema has no type for queries".to_owned());
        }
        self.directives.extend(DIRECTIVES.map(str::to_owned));
        Ok(SchemaRecord { types: self.types.into_values().collect(), roots, directives: self.directives })
    }
}

fn description(parser: &mut Parser<'_>) -> Parsed<()> {
    if parser.token == Token::String {
        parser.advance()?;
    }
    Ok(())
}

/// A field with its arguments, or an argument or input field with its default.
fn field(parser: &mut Parser<'_>) -> Parsed<FieldRecord> {
    let name = parser.name()?.to_owned();
    let arguments = arguments(parser)?;
    parser.expect(b':', "expected the type of a field")?;
    let of = parser.of_type(0)?.to_string();
    let defaulted = parser.take(b'=')?;
    if defaulted {
        parser.value(0)?;
    }
    parser.directives()?;
    Ok(FieldRecord { name, of, defaulted, arguments })
}

fn arguments(parser: &mut Parser<'_>) -> Parsed<Vec<FieldRecord>> {
    let mut found = Vec::new();
    if parser.take(b'(')? {
        while !parser.take(b')')? {
            description(parser)?;
            found.push(field(parser)?);
        }
    }
    Ok(found)
}
