//! The one crate that touches proxy-wasm.
//!
//! Its lowest layer (`calls`) is the only place with `unsafe` code and the only one that speaks to the gateway; every
//! call there takes bytes and answers with an `Option` or a `Result`, whatever the gateway says. Above it, `root` owns
//! a configuration, `http` one request, `link` the stream to the control plane, `held` the requests that wait.
//!
//! A module is one line:
//!
//! ```text
//! host::filter!("waf", preset::REGISTRY);
//! ```

mod calls;
mod held;
mod http;
mod link;
mod proxy_host;
mod reports;
mod root;
mod roots;
mod shared;
mod tables;
mod tarpit;

pub use proxy_wasm;
pub use root::start;

/// Makes a module of a filter: its name, and the plugins that it knows.
#[macro_export]
macro_rules! filter {
    ($name:literal, $registry:expr) => {
        $crate::proxy_wasm::main! {{
            $crate::start($name, $registry);
        }}
    };
}
