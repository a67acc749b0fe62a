//! A filter that replaces every body: no plugin of the suite does so yet in a way that a test could steer, and a wrong
//! content-length after it is request smuggling.
//!
//! A request body or a response body that begins with `cut:` loses that mark, one with `grow:` is doubled. A second plugin, `wait`,
//! holds the request or wants more of the body.
// The SDK's entry macro exports unmangled functions, which the gateway calls.
#![allow(unsafe_code, missing_docs)]

mod plugins;

host::filter!("rewrite", plugins::PLUGINS);
