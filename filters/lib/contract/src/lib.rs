//! API contracts: OpenAPI 3.0 and 3.1.
//!
//! The control plane compiles a document into a compact form (feature `compile`). A filter opens that form, which costs a check of
//! bounds, finds the operation of a request, and checks parameters and bodies. What an operation needs is decoded when it is needed
//! first.
//!
//! All work is bounded: the size of the form, the memory of patterns, the nesting of JSON, and the steps of each check. A check that
//! is given up judges nothing.

mod check;
mod choice;
#[cfg(feature = "compile")]
pub mod compile;
mod compiled;
mod format;
mod image;
mod json;
mod media;
mod method;
mod named;
mod number;
mod opened;
mod param;
mod pattern;
mod percent;
mod query;
mod record;
mod route;
mod schema;

pub use check::{BodyCheck, BodyResult, Head, Mismatch, Violation, missing_body};
pub use compiled::Contract;
pub use image::MAX_IMAGE;
pub use method::{Forms, METHOD_HEADERS, Others, is_preflight, methods_of_header, methods_of_query};
pub use route::{Found, Matched};

// Bodies of fuzz targets, which tests run too, name the crate.
#[cfg(test)]
extern crate self as contract;
#[cfg(test)]
mod tests;
