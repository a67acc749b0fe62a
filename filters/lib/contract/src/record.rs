//! The records of a compiled contract. Texts are numbers of entries of the image's table of texts, schemas those of its schemas.

use prost::Message;

/// Bits of [`SchemaRecord::types`].
pub(crate) mod types {
    pub(crate) const NULL: u32 = 1;
    pub(crate) const BOOLEAN: u32 = 2;
    pub(crate) const OBJECT: u32 = 4;
    pub(crate) const ARRAY: u32 = 8;
    pub(crate) const NUMBER: u32 = 16;
    pub(crate) const STRING: u32 = 32;
    pub(crate) const INTEGER: u32 = 64;
    /// Integers are written without a fraction (OpenAPI 3.0).
    pub(crate) const STRICT_INTEGER: u32 = 128;
    /// What a value may be where nothing is said.
    #[cfg(feature = "compile")]
    pub(crate) const ANY: u32 = NULL | BOOLEAN | OBJECT | ARRAY | NUMBER | STRING | INTEGER;
}

/// A schema.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchemaRecord {
    /// The types that a value may have; 0 for all.
    #[prost(uint32, tag = "1")]
    pub(crate) types: u32,
    /// `false`: no value is valid.
    #[prost(bool, tag = "2")]
    pub(crate) never: bool,
    /// Null is valid, whatever else is asked for.
    #[prost(bool, tag = "3")]
    pub(crate) nullable: bool,
    /// A JSON array of the values of `enum`, or of the one of `const`.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(crate) values: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub(crate) minimum: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(crate) maximum: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub(crate) above: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(crate) below: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "9")]
    pub(crate) multiple_of: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "10")]
    pub(crate) min_length: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(crate) max_length: Option<u64>,
    #[prost(uint64, optional, tag = "12")]
    pub(crate) min_items: Option<u64>,
    #[prost(uint64, optional, tag = "13")]
    pub(crate) max_items: Option<u64>,
    #[prost(uint64, optional, tag = "14")]
    pub(crate) min_properties: Option<u64>,
    #[prost(uint64, optional, tag = "15")]
    pub(crate) max_properties: Option<u64>,
    /// A pattern in the syntax of the engine.
    #[prost(uint32, optional, tag = "16")]
    pub(crate) pattern: Option<u32>,
    /// A number of [`crate::format::Format`].
    #[prost(uint32, tag = "17")]
    pub(crate) format: u32,
    /// In the order of their names' bytes.
    #[prost(message, repeated, tag = "18")]
    pub(crate) properties: Vec<NamedSchema>,
    #[prost(message, repeated, tag = "19")]
    pub(crate) pattern_properties: Vec<NamedSchema>,
    #[prost(uint32, optional, tag = "20")]
    pub(crate) additional_properties: Option<u32>,
    #[prost(uint32, optional, tag = "21")]
    pub(crate) property_names: Option<u32>,
    /// What a request must have.
    #[prost(uint32, repeated, tag = "22")]
    pub(crate) required: Vec<u32>,
    /// What a request need not have, and a response must (`readOnly`).
    #[prost(uint32, repeated, tag = "23")]
    pub(crate) required_read: Vec<u32>,
    /// What a response need not have, and a request must (`writeOnly`).
    #[prost(uint32, repeated, tag = "24")]
    pub(crate) required_write: Vec<u32>,
    #[prost(message, repeated, tag = "25")]
    pub(crate) dependent_required: Vec<Dependent>,
    #[prost(message, repeated, tag = "26")]
    pub(crate) dependent_schemas: Vec<NamedSchema>,
    #[prost(uint32, repeated, tag = "27")]
    pub(crate) prefix_items: Vec<u32>,
    #[prost(uint32, optional, tag = "28")]
    pub(crate) items: Option<u32>,
    #[prost(uint32, optional, tag = "29")]
    pub(crate) contains: Option<u32>,
    #[prost(uint64, optional, tag = "30")]
    pub(crate) min_contains: Option<u64>,
    #[prost(uint64, optional, tag = "31")]
    pub(crate) max_contains: Option<u64>,
    #[prost(bool, tag = "32")]
    pub(crate) unique_items: bool,
    #[prost(uint32, repeated, tag = "33")]
    pub(crate) all_of: Vec<u32>,
    #[prost(uint32, repeated, tag = "34")]
    pub(crate) any_of: Vec<u32>,
    #[prost(uint32, repeated, tag = "35")]
    pub(crate) one_of: Vec<u32>,
    #[prost(uint32, optional, tag = "36")]
    pub(crate) not: Option<u32>,
    #[prost(uint32, optional, tag = "37")]
    pub(crate) condition: Option<u32>,
    #[prost(uint32, optional, tag = "38")]
    pub(crate) then: Option<u32>,
    #[prost(uint32, optional, tag = "39")]
    pub(crate) otherwise: Option<u32>,
    #[prost(uint32, optional, tag = "40")]
    pub(crate) reference: Option<u32>,
    /// The target of `$dynamicRef` where no resource of the dynamic scope has the anchor.
    #[prost(uint32, optional, tag = "41")]
    pub(crate) dynamic_reference: Option<u32>,
    /// The anchor of `$dynamicRef`; absent where it is a plain reference.
    #[prost(uint32, optional, tag = "42")]
    pub(crate) dynamic_anchor: Option<u32>,
    #[prost(uint32, optional, tag = "43")]
    pub(crate) unevaluated_properties: Option<u32>,
    #[prost(uint32, optional, tag = "44")]
    pub(crate) unevaluated_items: Option<u32>,
    /// The property by whose value a branch of `oneOf` or `anyOf` is chosen.
    #[prost(uint32, optional, tag = "45")]
    pub(crate) discriminator: Option<u32>,
    /// Values of that property, and the branches that they choose.
    #[prost(message, repeated, tag = "46")]
    pub(crate) mapping: Vec<NamedSchema>,
    /// The schema resource that it is in.
    #[prost(uint32, tag = "47")]
    pub(crate) resource: u32,
}

/// A name and its schema.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct NamedSchema {
    #[prost(uint32, tag = "1")]
    pub(crate) name: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) schema: u32,
}

/// A property, and those that an object with it must have.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Dependent {
    #[prost(uint32, tag = "1")]
    pub(crate) name: u32,
    #[prost(uint32, repeated, tag = "2")]
    pub(crate) required: Vec<u32>,
}

/// A schema resource: its dynamic anchors.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ResourceRecord {
    #[prost(message, repeated, tag = "1")]
    pub(crate) anchors: Vec<NamedSchema>,
}

/// A node of the tree of paths.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RouteRecord {
    /// Literal segments, decoded, in the order of their bytes; the schema is the node below.
    #[prost(message, repeated, tag = "1")]
    pub(crate) literals: Vec<NamedSchema>,
    /// Segments with text and parameters, those with more text first.
    #[prost(message, repeated, tag = "2")]
    pub(crate) partials: Vec<PartialSegment>,
    /// A segment that is a parameter.
    #[prost(uint32, optional, tag = "3")]
    pub(crate) parameter: Option<u32>,
    /// The methods of the path that ends here, and their operations.
    #[prost(message, repeated, tag = "4")]
    pub(crate) methods: Vec<NamedSchema>,
}

/// A segment such as `{a}.{b}`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct PartialSegment {
    /// What is in front of, between and behind the parameters.
    #[prost(uint32, repeated, tag = "1")]
    pub(crate) texts: Vec<u32>,
    #[prost(uint32, tag = "2")]
    pub(crate) child: u32,
}

/// An operation.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct OperationRecord {
    #[prost(uint32, tag = "1")]
    pub(crate) method: u32,
    /// The path as the document has it.
    #[prost(uint32, tag = "2")]
    pub(crate) path: u32,
    #[prost(uint32, tag = "3")]
    pub(crate) id: u32,
    /// The names of the parameters of its path, in order, without those of a base path.
    #[prost(uint32, repeated, tag = "4")]
    pub(crate) names: Vec<u32>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) parameters: Vec<ParameterRecord>,
    #[prost(message, optional, tag = "6")]
    pub(crate) body: Option<BodyRecord>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) responses: Vec<ResponseRecord>,
    /// A query parameter takes any name: an object in the style `form`, exploded.
    #[prost(bool, tag = "8")]
    pub(crate) open_query: bool,
}

/// A parameter.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ParameterRecord {
    #[prost(uint32, tag = "1")]
    pub(crate) name: u32,
    /// A number of [`crate::param::Place`].
    #[prost(uint32, tag = "2")]
    pub(crate) place: u32,
    /// A number of [`crate::param::Style`].
    #[prost(uint32, tag = "3")]
    pub(crate) style: u32,
    #[prost(bool, tag = "4")]
    pub(crate) explode: bool,
    #[prost(bool, tag = "5")]
    pub(crate) required: bool,
    #[prost(bool, tag = "6")]
    pub(crate) allow_empty: bool,
    #[prost(uint32, optional, tag = "7")]
    pub(crate) schema: Option<u32>,
    /// Bits of [`crate::param::kind`].
    #[prost(uint32, tag = "8")]
    pub(crate) kind: u32,
    /// The types of a single value.
    #[prost(uint32, tag = "9")]
    pub(crate) types: u32,
    /// The types of items.
    #[prost(uint32, tag = "12")]
    pub(crate) items: u32,
    #[prost(message, repeated, tag = "10")]
    pub(crate) fields: Vec<FieldTypes>,
    /// It takes properties that `fields` does not name.
    #[prost(bool, tag = "11")]
    pub(crate) open: bool,
}

/// The types of a property of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct FieldTypes {
    #[prost(uint32, tag = "1")]
    pub(crate) name: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) types: u32,
    /// It is a list.
    #[prost(bool, tag = "3")]
    pub(crate) list: bool,
}

/// A request body.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct BodyRecord {
    #[prost(bool, tag = "1")]
    pub(crate) required: bool,
    #[prost(message, repeated, tag = "2")]
    pub(crate) media: Vec<MediaRecord>,
    /// The methods that a declared field `_method` may name, in upper case.
    #[prost(uint32, repeated, tag = "3")]
    pub(crate) methods: Vec<u32>,
}

/// A media type.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct MediaRecord {
    /// In lower case, without parameters; `*` stands for any type or subtype.
    #[prost(uint32, tag = "1")]
    pub(crate) range: u32,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) schema: Option<u32>,
}

/// A response.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ResponseRecord {
    /// A status, a class (1 to 5), or 0 for all others.
    #[prost(uint32, tag = "1")]
    pub(crate) status: u32,
    #[prost(message, repeated, tag = "2")]
    pub(crate) media: Vec<MediaRecord>,
}
