//! SecLang: parse, check, compile, evaluate
