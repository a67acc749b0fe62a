//! Machine code of modules, kept from run to run.
//!
//! A filter takes seconds to compile, and each test is a process of its own. Where `PALISADE_MODULE_CACHE` names a folder, what was
//! compiled is kept there. No other user may be able to write to it: what it holds is run.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process;

use snapshot::{content_hash, hex};
use wasmtime::{Engine, Module};

/// The variable that names the folder.
const FOLDER: &str = "PALISADE_MODULE_CACHE";

/// The module of these bytes, compiled or kept.
pub(super) fn module(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Module> {
    match env::var_os(FOLDER) {
        Some(folder) if !folder.is_empty() => kept(engine, bytes, &PathBuf::from(folder)),
        _ => Module::new(engine, bytes),
    }
}

/// The module as it is kept in a folder. What cannot be read or written there is compiled.
fn kept(engine: &Engine, bytes: &[u8], folder: &Path) -> wasmtime::Result<Module> {
    let mut settings = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut settings);
    let name = format!("{}-{:016x}", hex(&content_hash(bytes)), settings.finish());
    let file = folder.join(&name);
    if let Some(module) = read(engine, &file) {
        return Ok(module);
    }
    let module = Module::new(engine, bytes)?;
    // Renamed into place: another process sees all of it or nothing.
    let part = folder.join(format!(".{name}.{}", process::id()));
    let written = module.serialize().is_ok_and(|code| {
        fs::create_dir_all(folder).and_then(|()| fs::write(&part, code)).and_then(|()| fs::rename(&part, &file)).is_ok()
    });
    if !written {
        let _ = fs::remove_file(&part);
    }
    Ok(module)
}

#[expect(unsafe_code, reason = "machine code is taken from a file")]
fn read(engine: &Engine, file: &Path) -> Option<Module> {
    // SAFETY: the file was written by `kept`, in a folder of the user's own, and is not changed once it has its name. Wasmtime
    // refuses what another version, or another configuration, has made.
    file.is_file().then(|| unsafe { Module::deserialize_file(engine, file) }.ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_compiled_once_for_each_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = wat::parse_str("(module (func (export \"f\") (result i32) (i32.const 7)))").unwrap();
        let mut metered = wasmtime::Config::new();
        metered.consume_fuel(true);
        for engine in [Engine::default(), Engine::new(&metered).unwrap()] {
            let files = || fs::read_dir(folder.path()).unwrap().count();
            let before = files();
            for _ in 0..2 {
                let module = kept(&engine, &bytes, folder.path()).unwrap();
                let mut store = wasmtime::Store::new(&engine, ());
                store.set_fuel(1000).ok();
                let instance = wasmtime::Instance::new(&mut store, &module, &[]).unwrap();
                let answer = instance.get_typed_func::<(), i32>(&mut store, "f").unwrap().call(&mut store, ()).unwrap();
                assert_eq!((answer, files()), (7, before + 1));
            }
        }
    }

    #[test]
    fn a_file_that_is_damaged_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = wat::parse_str("(module)").unwrap();
        let engine = Engine::default();
        kept(&engine, &bytes, folder.path()).unwrap();
        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let whole = fs::read(&file).unwrap();
        for damaged in [b"".as_slice(), b"no code"] {
            fs::write(&file, damaged).unwrap();
            kept(&engine, &bytes, folder.path()).unwrap();
            assert_eq!(fs::read(&file).unwrap().len(), whole.len());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_no_error() {
        let bytes = wat::parse_str("(module)").unwrap();
        assert!(kept(&Engine::default(), &bytes, Path::new("/dev/null/folder")).is_ok());
        assert!(kept(&Engine::default(), b"no module", Path::new("/dev/null/folder")).is_err());
    }
}
