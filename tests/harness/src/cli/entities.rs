//! A snapshot from a folder of entities, with the control plane's own program.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program's name.
const PROGRAM: &str = "palisade";

/// A compiled snapshot. The file goes with it.
pub(super) struct Compiled {
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Compiled {
    /// The snapshot's file.
    pub(super) fn path(&self) -> &Path {
        &self.file
    }
}

/// Runs `palisade compile`, for a filter where one is named.
pub(super) fn compile(folder: &Path, filter: Option<&str>) -> Result<Compiled, String> {
    let program = find()?;
    let place = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let mut command = Command::new(&program);
    command.arg("compile").arg("--link").arg("--entities").arg(folder).arg("--out").arg(place.path().join("snapshot"));
    if let Some(filter) = filter {
        command.args(["--filter", filter]);
    }
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    // It tells problems and warnings on standard output, which is not its result's.
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).trim_end().to_owned());
    if !output.status.success() {
        let said = said.iter().filter(|text| !text.is_empty()).fold(String::new(), |all, text| all + "\n" + text);
        return Err(format!("{}: `palisade compile` failed{said}", folder.display()));
    }
    for warning in said.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("warning: ")) {
        eprintln!("palisade-replay: {}: {warning}", folder.display());
    }
    Ok(Compiled { file: place.path().join("snapshot"), _folder: place })
}

/// PALISADE_BIN, else the program beside this one, else the one on the PATH.
fn find() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("PALISADE_BIN").map(PathBuf::from) {
        let missing = format!("PALISADE_BIN names {}, which is no file", named.display());
        return Some(named).filter(|path| path.is_file()).ok_or(missing);
    }
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(PROGRAM)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    beside.into_iter().chain(on_path).find(|path| path.is_file()).ok_or_else(|| {
        "--entities needs the program `palisade`, which is neither beside this one nor on the PATH: build it with \
         `cargo build -p palisade` and name it by PALISADE_BIN, or compile a snapshot and give --snapshot"
            .to_owned()
    })
}
