//! A schema in a filter: types by name, with references between them resolved.

use std::collections::{HashMap, HashSet};

use prost::Message as _;

use super::document::{OperationKind, Parser, Type};
use crate::messages;
use crate::messages::TypeKind;

/// A schema.
#[derive(Debug)]
pub(crate) struct Schema {
    types: Vec<TypeDefinition>,
    by_name: HashMap<String, usize>,
    roots: [Option<usize>; 3],
    directives: HashSet<String>,
}

/// A type.
#[derive(Debug)]
pub(crate) struct TypeDefinition {
    pub(crate) name: String,
    pub(crate) kind: TypeKind,
    fields: HashMap<String, FieldDefinition>,
    values: HashSet<String>,
}

/// A field, or an argument.
#[derive(Debug)]
pub(crate) struct FieldDefinition {
    pub(crate) of: TypeRef,
    /// It has a default, so that it may be left out.
    pub(crate) defaulted: bool,
    arguments: HashMap<String, FieldDefinition>,
}

/// A type where it is used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TypeRef {
    Named(usize),
    List(Box<TypeRef>),
    NonNull(Box<TypeRef>),
}

impl Schema {
    /// Takes the compiled form.
    ///
    /// # Errors
    /// It is damaged, or a type is not declared.
    pub(crate) fn open(bytes: &[u8]) -> Result<Self, String> {
        let record =
            messages::Schema::decode(bytes).map_err(|error| format!("a GraphQL schema is damaged: {error}"))?;
        let by_name: HashMap<String, usize> =
            record.types.iter().enumerate().map(|(place, found)| (found.name.clone(), place)).collect();
        let root = |place: usize| record.roots.get(place).and_then(|name| by_name.get(name)).copied();
        let roots = [root(0), root(1), root(2)];
        let define = |found: messages::TypeRecord| {
            let fields = fields(&found.fields, &by_name)?;
            let values = found.values.iter().cloned().collect();
            Ok::<_, String>(TypeDefinition { kind: found.kind(), name: found.name, fields, values })
        };
        let types = record.types.into_iter().map(define).collect::<Result<_, _>>()?;
        Ok(Self { types, by_name, roots, directives: record.directives.into_iter().collect() })
    }

    pub(crate) fn root(&self, kind: OperationKind) -> Option<usize> {
        let [query, mutation, subscription] = self.roots;
        match kind {
            OperationKind::Query => query,
            OperationKind::Mutation => mutation,
            OperationKind::Subscription => subscription,
        }
    }

    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn get(&self, place: usize) -> Option<&TypeDefinition> {
        self.types.get(place)
    }

    pub(crate) fn has_directive(&self, name: &str) -> bool {
        self.directives.contains(name)
    }

    /// A type as a document writes it.
    pub(crate) fn resolve(&self, of: &Type<'_>) -> Option<TypeRef> {
        resolve(of, &self.by_name)
    }
}

impl TypeDefinition {
    pub(crate) fn field(&self, name: &str) -> Option<&FieldDefinition> {
        self.fields.get(name)
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &FieldDefinition)> {
        self.fields.iter().map(|(name, field)| (name.as_str(), field))
    }

    pub(crate) fn has_value(&self, name: &str) -> bool {
        self.values.contains(name)
    }

    /// It has fields to select from.
    pub(crate) fn is_composite(&self) -> bool {
        matches!(self.kind, TypeKind::Object | TypeKind::Interface | TypeKind::Union)
    }
}

impl FieldDefinition {
    pub(crate) fn argument(&self, name: &str) -> Option<&FieldDefinition> {
        self.arguments.get(name)
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = (&str, &FieldDefinition)> {
        self.arguments.iter().map(|(name, argument)| (name.as_str(), argument))
    }

    /// It must be given.
    pub(crate) fn is_required(&self) -> bool {
        matches!(self.of, TypeRef::NonNull(_)) && !self.defaulted
    }
}

impl TypeRef {
    /// The type in its lists.
    pub(crate) fn base(&self) -> usize {
        match self {
            Self::Named(place) => *place,
            Self::List(inner) | Self::NonNull(inner) => inner.base(),
        }
    }

    /// Whether a variable of a type may stand where `self` is expected (specification, section 5.8.5).
    pub(crate) fn takes(&self, given: &Self, has_default: bool) -> bool {
        match (self, given) {
            (Self::NonNull(expected), Self::NonNull(given)) => expected.takes(given, false),
            (Self::NonNull(expected), given) => has_default && expected.takes(given, false),
            (expected, Self::NonNull(given)) => expected.takes(given, false),
            (Self::List(expected), Self::List(given)) => expected.takes(given, false),
            (Self::Named(expected), Self::Named(given)) => expected == given,
            _ => false,
        }
    }
}

fn fields(
    records: &[messages::FieldRecord],
    by_name: &HashMap<String, usize>,
) -> Result<HashMap<String, FieldDefinition>, String> {
    let define = |record: &messages::FieldRecord| {
        let mut parser = Parser::new(&record.of).map_err(|error| error.what.to_owned())?;
        let written = parser.of_type(0).map_err(|error| error.what.to_owned())?;
        let of = resolve(&written, by_name)
            .ok_or_else(|| format!("the type `{}` of `{}` is not declared", record.of, record.name))?;
        let arguments = fields(&record.arguments, by_name)?;
        Ok((record.name.clone(), FieldDefinition { of, defaulted: record.defaulted, arguments }))
    };
    records.iter().map(define).collect()
}

fn resolve(of: &Type<'_>, by_name: &HashMap<String, usize>) -> Option<TypeRef> {
    Some(match of {
        Type::Named(name) => TypeRef::Named(*by_name.get(*name)?),
        Type::List(inner) => TypeRef::List(Box::new(resolve(inner, by_name)?)),
        Type::NonNull(inner) => TypeRef::NonNull(Box::new(resolve(inner, by_name)?)),
    })
}
