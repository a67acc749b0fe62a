//! A filter that does nothing: the yardstick of the benchmarks, and the module of the xDS tests.
//!
//! It takes every configuration and lets every request pass. A configuration whose bytes hold `palisade-refuse-me` is
//! refused, so that tests have something for Envoy to refuse.

#![allow(missing_docs, reason = "the SDK's macro exports an entry point without documentation")]

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{ContextType, LogLevel};

const REFUSED: &[u8] = b"palisade-refuse-me";

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Warn);
    proxy_wasm::set_root_context(|_| Box::new(Root));
}}

struct Root;

struct Request;

impl Context for Root {}

impl RootContext for Root {
    fn on_configure(&mut self, _size: usize) -> bool {
        let configuration = self.get_plugin_configuration().unwrap_or_default();
        !configuration.windows(REFUSED.len()).any(|window| window == REFUSED)
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _context_id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Request))
    }
}

impl Context for Request {}

impl HttpContext for Request {}
