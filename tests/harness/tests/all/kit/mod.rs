//! What the integration tests share.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proxy_host::Module;

/// A fixed time.
#[allow(dead_code, reason = "some tests need none")]
pub(crate) const NOW_MILLIS: u64 = 1_750_000_000_000;

/// A folder beside this crate's manifest.
pub(crate) fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The shipped WAF filter.
#[allow(dead_code, reason = "some tests need another one")]
pub(crate) fn waf() -> &'static Module {
    static WAF: OnceLock<Module> = OnceLock::new();
    WAF.get_or_init(|| Module::compile(&filter("waf")).unwrap())
}

/// A module that `make filters` has built.
#[allow(dead_code, reason = "some tests need its path alone")]
pub(crate) fn filter(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("PALISADE_FILTERS").map_or_else(|| own("../../target/filters"), PathBuf::from);
    let path = folder.join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}: run `make filters` first", path.display()))
}

/// The Core Rule Set that `make crs` has fetched.
#[allow(dead_code, reason = "some tests need none")]
pub(crate) fn crs() -> PathBuf {
    std::env::var_os("PALISADE_CRS_DIR").map_or_else(|| own("../../.cache/crs"), PathBuf::from)
}
