//! How a request differs from what its endpoint takes.

/// A kind of mismatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mismatch {
    /// The body is over its limit, or in a coding that is not known.
    BodyTooLarge,
    /// The request is no GraphQL request, JSON-RPC message or MCP message.
    InvalidRequest,
    /// A batch is too long, or not allowed.
    Batch,
    /// The document is no GraphQL.
    Syntax,
    /// The document is too long.
    DocumentTooLarge,
    /// Fields are nested too deeply.
    Depth,
    /// Too many fields.
    Fields,
    /// Too many aliases.
    Aliases,
    /// Too many directives.
    Directives,
    /// The schema is asked for.
    Introspection,
    /// A mutation over GET.
    MutationOverGet,
    /// A reference to a stored document where there may be none, a text where there must be a reference, or a hash of another text.
    Persisted,
    /// The document does not match the schema.
    Schema,
    /// The method, or the tool, is not among those that are allowed.
    UnknownOperation,
    /// Parameters or arguments do not match their schema.
    Parameters,
    /// The HTTP method is none of the transport.
    HttpMethod,
}

/// One mismatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) kind: Mismatch,
    /// What is expected; without a value of the request.
    pub(crate) detail: String,
}

impl Mismatch {
    /// Its word, which tags have.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::BodyTooLarge => "query_body_too_large",
            Self::InvalidRequest => "query_invalid_request",
            Self::Batch => "query_batch",
            Self::Syntax => "query_syntax",
            Self::DocumentTooLarge => "query_document_too_large",
            Self::Depth => "query_depth",
            Self::Fields => "query_fields",
            Self::Aliases => "query_aliases",
            Self::Directives => "query_directives",
            Self::Introspection => "query_introspection",
            Self::MutationOverGet => "query_mutation_over_get",
            Self::Persisted => "query_persisted",
            Self::Schema => "query_schema",
            Self::UnknownOperation => "query_unknown_operation",
            Self::Parameters => "query_parameters",
            Self::HttpMethod => "query_http_method",
        }
    }

    /// The status of a refusal for it.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::BodyTooLarge => 413,
            Self::MutationOverGet | Self::HttpMethod => 405,
            Self::Introspection | Self::UnknownOperation => 403,
            _ => 400,
        }
    }
}

impl Violation {
    pub(crate) fn new(kind: Mismatch, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}
