//! Documents beside a schema (specification of October 2021, section 5): fields, arguments, fragments, variables and their values. Each
//! fragment is checked once. What is said names fields and types, never values.

use std::collections::{HashMap, HashSet};

use super::document::{Directive, Document, Fragment, Operation, Selection, Value};
use super::schema::{FieldDefinition, Schema, TypeDefinition, TypeRef};
use super::uses::{Declared, Needs, Uses};
use crate::json::Json;
use crate::messages::TypeKind;
use crate::rpc::shown;

/// Fields that every type has, and those of a query's root.
const TYPENAME: &str = "__typename";
const INTROSPECTION: [&str; 2] = ["__schema", "__type"];

/// Checks all of a document.
pub(crate) struct Validator<'s, 'd, 'a> {
    schema: &'s Schema,
    document: &'d Document<'a>,
    by_name: HashMap<&'a str, usize>,
}

type Checked = Result<(), String>;

impl<'s, 'd, 'a> Validator<'s, 'd, 'a> {
    pub(crate) fn new(schema: &'s Schema, document: &'d Document<'a>) -> Self {
        let by_name = document.fragments.iter().enumerate().map(|(place, fragment)| (fragment.name, place)).collect();
        Self { schema, document, by_name }
    }

    /// Checks everything; `selected` is the operation that `variables` are for. A document without cycles comes in. How many uses of
    /// variables were compared with their declarations.
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn check(&self, selected: usize, variables: Option<&Json>) -> Result<usize, String> {
        let fragments = self.document.fragments.iter().map(|fragment| self.fragment(fragment));
        let uses = Uses::new(fragments.collect::<Result<Vec<_>, _>>()?);
        let mut compared = 0_usize;
        for (place, operation) in self.document.operations.iter().enumerate() {
            let needs = self.operation(operation)?;
            let declared = self.declared(operation)?;
            compared = compared.saturating_add(uses.fit(&declared, &needs)?);
            if place == selected {
                self.given(operation, &declared, variables)?;
            }
        }
        Ok(compared)
    }

    fn fragment(&self, fragment: &'d Fragment<'a>) -> Result<Needs<'s, 'a>, String> {
        let mut needs = Needs::default();
        let parent = self.condition(fragment.on)?;
        self.directives(&fragment.directives, &mut needs)?;
        self.selection(parent, &fragment.selection, false, &mut needs)?;
        Ok(needs)
    }

    fn operation(&self, operation: &'d Operation<'a>) -> Result<Needs<'s, 'a>, String> {
        let mut needs = Needs::default();
        let root = self.schema.root(operation.kind).and_then(|place| self.schema.get(place));
        let root = root.ok_or_else(|| format!("the schema has no {}", operation.kind.word()))?;
        self.directives(&operation.directives, &mut needs)?;
        for variable in &operation.variables {
            self.directives(&variable.directives, &mut needs)?;
        }
        let is_query = operation.kind == super::document::OperationKind::Query;
        self.selection(root, &operation.selection, is_query, &mut needs)?;
        Ok(needs)
    }

    fn condition(&self, name: &str) -> Result<&'s TypeDefinition, String> {
        let found = self.schema.named(name).and_then(|place| self.schema.get(place));
        let found = found.ok_or_else(|| format!("the type {} of a fragment is not declared", quoted(name)))?;
        if found.is_composite() {
            Ok(found)
        } else {
            Err(format!("a fragment on {}, which has no fields", quoted(name)))
        }
    }

    fn selection(
        &self,
        parent: &'s TypeDefinition,
        selection: &'d [Selection<'a>],
        is_root: bool,
        needs: &mut Needs<'s, 'a>,
    ) -> Checked {
        for part in selection {
            match part {
                Selection::Field(field) => {
                    self.directives(&field.directives, needs)?;
                    if field.name == TYPENAME {
                        continue;
                    }
                    // What it has is decided by whether it is allowed, not by the schema; a fragment on the root may have it too.
                    if INTROSPECTION.contains(&field.name) && (is_root || self.is_query_root(parent)) {
                        continue;
                    }
                    let definition = parent.field(field.name).filter(|_| parent.kind != TypeKind::Union);
                    let definition =
                        definition.ok_or_else(|| format!("{} has no field {}", parent.name, quoted(field.name)))?;
                    self.arguments(definition, &field.arguments, (&parent.name, field.name), needs)?;
                    let Some(inner) = self.schema.get(definition.of.base()) else { continue };
                    match (inner.is_composite(), field.selection.is_empty()) {
                        (true, true) => {
                            return Err(format!(
                                "the field {} of {} needs a selection",
                                quoted(field.name),
                                parent.name
                            ));
                        }
                        (false, false) => {
                            return Err(format!("the field {} of {} has no fields", quoted(field.name), parent.name));
                        }
                        (true, false) => self.selection(inner, &field.selection, false, needs)?,
                        (false, true) => {}
                    }
                }
                Selection::Spread { name, directives } => {
                    self.directives(directives, needs)?;
                    let place =
                        self.by_name.get(name).ok_or_else(|| format!("there is no fragment {}", quoted(name)))?;
                    needs.fragment(*place);
                }
                Selection::Inline { on, directives, selection } => {
                    self.directives(directives, needs)?;
                    let inner = match on {
                        Some(name) => self.condition(name)?,
                        None => parent,
                    };
                    self.selection(inner, selection, is_root && on.is_none(), needs)?;
                }
            }
        }
        Ok(())
    }

    fn is_query_root(&self, of: &TypeDefinition) -> bool {
        let root = self.schema.root(super::document::OperationKind::Query).and_then(|place| self.schema.get(place));
        root.is_some_and(|root| root.name == of.name)
    }

    fn directives(&self, directives: &'d [Directive<'a>], needs: &mut Needs<'s, 'a>) -> Checked {
        for directive in directives {
            if !self.schema.has_directive(directive.name) {
                return Err(format!("the directive {} is not declared", quoted(directive.name)));
            }
            for (_, value) in &directive.arguments {
                needs.loose(value);
            }
        }
        Ok(())
    }

    fn arguments(
        &self,
        definition: &'s FieldDefinition,
        given: &'d [(&'a str, Value<'a>)],
        (parent, field): (&str, &str),
        needs: &mut Needs<'s, 'a>,
    ) -> Checked {
        let at = |name: &str| format!("the argument {} of {parent}.{}", quoted(name), quoted(field));
        let mut names = HashSet::new();
        for (name, value) in given {
            let argument = definition.argument(name).ok_or_else(|| format!("{} is not declared", at(name)))?;
            if !names.insert(*name) {
                return Err(format!("{} comes twice", at(name)));
            }
            self.value(&argument.of, value, argument.defaulted, needs)
                .map_err(|what| format!("{}: expected {what}", at(name)))?;
        }
        match definition.arguments().find(|(name, argument)| argument.is_required() && !names.contains(name)) {
            Some((name, _)) => Err(format!("{} is missing", at(name))),
            None => Ok(()),
        }
    }

    /// Whether a literal fits; what is expected otherwise.
    fn value(&self, of: &'s TypeRef, value: &Value<'a>, defaulted: bool, needs: &mut Needs<'s, 'a>) -> Checked {
        if let Value::Variable(name) = value {
            needs.typed(name, of, defaulted);
            return Ok(());
        }
        match (of, value) {
            (TypeRef::NonNull(_), Value::Null) => Err("a value".to_owned()),
            (TypeRef::NonNull(inner), value) => self.value(inner, value, false, needs),
            (_, Value::Null) => Ok(()),
            (TypeRef::List(inner), Value::List(elements)) => {
                elements.iter().try_for_each(|element| self.value(inner, element, false, needs))
            }
            (TypeRef::List(inner), value) => self.value(inner, value, false, needs),
            (TypeRef::Named(place), value) => {
                let Some(named) = self.schema.get(*place) else { return Ok(()) };
                self.named(named, value, needs)
            }
        }
    }

    fn named(&self, named: &'s TypeDefinition, value: &Value<'a>, needs: &mut Needs<'s, 'a>) -> Checked {
        let expected = || Err(format!("the type {}", named.name));
        match (named.kind, value) {
            (TypeKind::Enum, Value::Enum(name)) => {
                if named.has_value(name) {
                    Ok(())
                } else {
                    Err(format!("a value of {}", named.name))
                }
            }
            (TypeKind::Input, Value::Object(members)) => {
                let mut names = HashSet::new();
                for (name, value) in members {
                    let field =
                        named.field(name).ok_or_else(|| format!("no field {} in {}", quoted(name), named.name))?;
                    if !names.insert(*name) {
                        return Err(format!("the field {} of {} once", quoted(name), named.name));
                    }
                    self.value(&field.of, value, field.defaulted, needs)?;
                }
                match named.fields().find(|(name, field)| field.is_required() && !names.contains(name)) {
                    Some((name, _)) => Err(format!("the field {name} of {}", named.name)),
                    None => Ok(()),
                }
            }
            (TypeKind::Scalar, value) => {
                let fits = match (named.name.as_str(), value) {
                    ("Int", Value::Int(text)) => text.parse::<i32>().is_ok(),
                    ("Float", Value::Int(_) | Value::Float)
                    | ("String" | "ID", Value::String)
                    | ("ID", Value::Int(_))
                    | ("Boolean", Value::Boolean) => true,
                    ("Int" | "Float" | "String" | "ID" | "Boolean", _) => false,
                    // A scalar of the backend's own takes what it takes.
                    _ => {
                        needs.loose(value);
                        true
                    }
                };
                if fits { Ok(()) } else { expected() }
            }
            _ => expected(),
        }
    }

    /// The variables of an operation with their types.
    fn declared(&self, operation: &Operation<'a>) -> Result<HashMap<&'a str, Declared>, String> {
        let mut declared = HashMap::with_capacity(operation.variables.len());
        for variable in &operation.variables {
            let of = self.schema.resolve(&variable.of);
            let of = of.ok_or_else(|| format!("the type of the variable {} is not declared", quoted(variable.name)))?;
            if self.schema.get(of.base()).is_some_and(TypeDefinition::is_composite) {
                return Err(format!("the variable {} has a type that is no input", quoted(variable.name)));
            }
            let has_default = variable.default.as_ref().is_some_and(|value| *value != Value::Null);
            if declared.insert(variable.name, Declared { of, has_default }).is_some() {
                return Err(format!("the variable {} is declared twice", quoted(variable.name)));
            }
        }
        Ok(declared)
    }

    /// Whether the values of variables fit.
    fn given(
        &self,
        operation: &Operation<'a>,
        declared: &HashMap<&'a str, Declared>,
        variables: Option<&Json>,
    ) -> Checked {
        let values: HashMap<&str, &Json> = match variables {
            Some(Json::Object(members)) => members.iter().map(|(name, value)| (name.as_str(), value)).collect(),
            _ => HashMap::new(),
        };
        for variable in &operation.variables {
            let Some(Declared { of, .. }) = declared.get(variable.name) else { continue };
            match values.get(variable.name) {
                Some(value) => self
                    .json(of, value)
                    .map_err(|what| format!("the variable {}: expected {what}", quoted(variable.name)))?,
                None if matches!(of, TypeRef::NonNull(_)) && variable.default.is_none() => {
                    return Err(format!("the variable {} is missing", quoted(variable.name)));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn json(&self, of: &TypeRef, value: &Json) -> Checked {
        match (of, value) {
            (TypeRef::NonNull(_), Json::Null) => Err("a value".to_owned()),
            (TypeRef::NonNull(inner), value) => self.json(inner, value),
            (_, Json::Null) => Ok(()),
            (TypeRef::List(inner), Json::Array(elements)) => {
                elements.iter().try_for_each(|element| self.json(inner, element))
            }
            (TypeRef::List(inner), value) => self.json(inner, value),
            (TypeRef::Named(place), value) => {
                let Some(named) = self.schema.get(*place) else { return Ok(()) };
                self.json_named(named, value)
            }
        }
    }

    fn json_named(&self, named: &TypeDefinition, value: &Json) -> Checked {
        let fits = match (named.kind, value) {
            (TypeKind::Enum, Json::String(name)) => named.has_value(name),
            (TypeKind::Input, Json::Object(members)) => {
                for (name, value) in members {
                    let field = named.field(name).ok_or_else(|| format!("no other field in {}", named.name))?;
                    self.json(&field.of, value)?;
                }
                let given = |name: &str| members.iter().any(|(own, _)| own == name);
                if let Some((name, _)) = named.fields().find(|(name, field)| field.is_required() && !given(name)) {
                    return Err(format!("the field {name} of {}", named.name));
                }
                true
            }
            (TypeKind::Scalar, value) => match (named.name.as_str(), value) {
                ("Int", Json::Number(number)) => whole(number).is_some_and(|number| i32::try_from(number).is_ok()),
                ("ID", Json::Number(number)) => whole(number).is_some(),
                ("Float", Json::Number(_)) | ("String" | "ID", Json::String(_)) | ("Boolean", Json::Bool(_)) => true,
                ("Int" | "Float" | "String" | "ID" | "Boolean", _) => false,
                _ => true,
            },
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("the type {}", named.name)) }
    }
}

/// A number without a fraction: `1.0` is one too.
fn whole(number: &serde_json::Number) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "whole and within the range")]
    let of_float = |value: f64| (value.fract() == 0.0 && value.abs() < 9.0e15).then_some(value as i64);
    number.as_i64().or_else(|| number.as_f64().and_then(of_float))
}

/// A name, which a client chose, within a text for people.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", shown(name))
}
