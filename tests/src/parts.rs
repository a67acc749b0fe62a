//! Where the real parts are that tests run against. A missing one is an error that says how to get it.

use std::path::{Path, PathBuf};

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository").to_path_buf()
}

/// The Envoy binary: `PALISADE_ENVOY`, or what `make envoy` fetched.
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn envoy() -> PathBuf {
    part("PALISADE_ENVOY", &[".cache/envoy/envoy"], "Envoy", "make envoy")
}

/// The control plane's binary: `PALISADE_BIN`, or the newest of this checkout's builds.
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn palisade() -> PathBuf {
    part(
        "PALISADE_BIN",
        &["target/debug/palisade", "target/release/palisade"],
        "the control plane's binary",
        "cargo build -p palisade",
    )
}

/// The folder of Redis, with `bin` and `lib`: `PALISADE_REDIS`, or what `make redis` fetched.
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn redis() -> PathBuf {
    part("PALISADE_REDIS", &[".cache/redis"], "Redis", "make redis")
}

/// The library that gives a process another clock: in the folder of `PALISADE_FAKETIME`, or in that which `make faketime` fetched. `None`
/// where there is none for this system.
#[must_use]
pub fn faketime() -> Option<PathBuf> {
    let folder = std::env::var_os("PALISADE_FAKETIME").map_or_else(|| root().join(".cache/faketime"), PathBuf::from);
    Some(folder.join("lib/libfaketimeMT.so.1")).filter(|library| library.exists())
}

/// The folder of the .wasm filters: `PALISADE_FILTERS`, or what `make filters` built.
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn filters() -> PathBuf {
    part("PALISADE_FILTERS", &["target/filters"], "the folder of the .wasm filters", "make filters")
}

/// A schema or linter for the deployment examples (`hadolint`, `compose.json`, ...): of `PALISADE_SCHEMAS`, or of what
/// `make schemas` fetched.
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn schema(name: &str) -> PathBuf {
    let path = part("PALISADE_SCHEMAS", &[".cache/schemas"], "the folder of schemas", "make schemas").join(name);
    assert!(path.exists(), "{} is missing; run `make schemas`", path.display());
    path
}

/// The folder of Helm for Python: `PALISADE_HELM`, or what `make helm` fetched. It has a file `MISSING` where there is no Helm for
/// this platform.
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn helm() -> PathBuf {
    part("PALISADE_HELM", &[".cache/helm"], "Helm", "make helm")
}

/// One .wasm filter by its name (`waf`, `noop`, ...).
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn filter(name: &str) -> PathBuf {
    let path = filters().join(format!("{name}.wasm"));
    assert!(path.is_file(), "{} is missing; run `make filters`", path.display());
    path
}

/// The Core Rule Set: `PALISADE_CRS_DIR`, or what `make crs` fetched.
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn crs() -> PathBuf {
    part("PALISADE_CRS_DIR", &[".cache/crs"], "the Core Rule Set", "make crs")
}

/// The Core Rule Set's 3.3 line: `PALISADE_CRS3_DIR`, or what `make crs-3` fetched.
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn crs3() -> PathBuf {
    part("PALISADE_CRS3_DIR", &[".cache/crs-3"], "the Core Rule Set's 3.3 line", "make crs-3")
}

fn part(variable: &str, defaults: &[&str], what: &str, target: &str) -> PathBuf {
    if let Some(given) = std::env::var_os(variable) {
        let path = PathBuf::from(given);
        assert!(path.exists(), "{variable} names {}, where {what} is missing; run `{target}`", path.display());
        return path;
    }
    let newest = defaults
        .iter()
        .map(|default| root().join(default))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .max();
    match newest {
        Some((_, path)) => path,
        None => panic!("{what} is missing ({}); run `{target}`", defaults.join(", ")),
    }
}
