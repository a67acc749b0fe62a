//! SecLang: parse, check, compile, evaluate
pub mod body;
pub mod operator;
pub mod transform;
