//! Scanners of response bodies, shared by the plugins that look at what a backend shows.
//!
//! A body passes three layers. [`Inspection`] decides by the head of the response whether there is a text to scan, and undoes
//! content codings and UTF-16. [`literals`] and `blocks` are prefilters: they read 16 bytes at a time and skip all that cannot be
//! part of a match. [`leakage`] and [`sensitive`] check the few places that the prefilters name, with bounded scans.
//!
//! All scans are linear in the body: a place is checked within a fixed distance, and a run of digits is read once.

mod blocks;
mod escapes;
mod guard;
mod inspection;
pub mod leakage;
pub mod literals;
pub mod sensitive;

pub use guard::{Head, NO_PARTS, NO_PARTS_REASON, Responses};
pub use inspection::{Inspection, Text, content_types_problem, is_inspected_type};

/// Where in a text something was found, as events name it: never the exact place, which would help to find the value.
#[must_use]
pub fn offset_class(at: usize) -> &'static str {
    match at {
        0..4096 => "in the first 4 KiB",
        4096..65_536 => "in the first 64 KiB",
        _ => "beyond the first 64 KiB",
    }
}
