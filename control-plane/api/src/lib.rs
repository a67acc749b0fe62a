//! The admin API over HTTP: entities and reports for admin keys ([`rest`]), the console for operators ([`console`]), who may
//! call which of them ([`access`]), and the description of all routes ([`openapi`]).

pub mod access;
pub mod console;
pub mod error;
pub mod names;
pub mod openapi;
mod query;
pub mod rest;

pub use error::ApiError;
