//! Packs the OWASP core rule set into the binary, compressed, as the preset `crs`.
//!
//! The rule files are no part of this repository: `make crs` fetches them. What is packed is named by
//! `PALISADE_CRS_DIR`, else taken from `.cache/crs` at the root of the repository.
#![allow(
    clippy::print_stdout,
    clippy::panic,
    reason = "a build script speaks to cargo by printing, and fails by panicking"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-env-changed=PALISADE_CRS_DIR");
    println!("cargo::rerun-if-changed=build.rs");
    let folder = env::var_os("PALISADE_CRS_DIR").map_or_else(|| PathBuf::from("../../../.cache/crs"), PathBuf::from);
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = collect(&folder).unwrap_or_else(|why| {
        panic!("the OWASP core rule set is missing ({why}): run `make crs`, or name a folder in PALISADE_CRS_DIR")
    });
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("crs.pack");
    if let Err(error) = write(&out, &files) {
        panic!("{} cannot be written: {error}", out.display());
    }
}

/// The setup file, the version and every rule and data file, sorted by name; examples are left out.
fn collect(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let setup = ["crs-setup.conf", "crs-setup.conf.example"].map(|name| folder.join(name));
    let setup =
        setup.iter().find(|path| path.exists()).ok_or_else(|| format!("{} has no crs-setup.conf", folder.display()))?;
    let version = fs::read(folder.join("VERSION")).unwrap_or_else(|_| b"unknown".to_vec());
    let mut files = vec![("VERSION".to_owned(), version), ("crs-setup.conf".to_owned(), read(setup)?)];
    let rules = folder.join("rules");
    let listing = fs::read_dir(&rules).map_err(|error| format!("{}: {error}", rules.display()))?;
    let mut paths: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".conf") || name.ends_with(".data") {
            files.push((format!("rules/{name}"), read(&path)?));
        }
    }
    if files.len() < 10 {
        return Err(format!("{} has too few rule files to be the core rule set", rules.display()));
    }
    Ok(files)
}

/// Per file: the length of its name and of its content (u32, little endian), name, content; all of it in gzip.
fn write(out: &Path, files: &[(String, Vec<u8>)]) -> std::io::Result<()> {
    let mut pack = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for (name, content) in files {
        pack.write_all(&(name.len() as u32).to_le_bytes())?;
        pack.write_all(&(content.len() as u32).to_le_bytes())?;
        pack.write_all(name.as_bytes())?;
        pack.write_all(content)?;
    }
    fs::write(out, pack.finish()?)
}
