//! `palisade export`: the entities of a control plane as files.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::CliError;
use super::output::say;
use super::target::TargetArgs;
use entities::registry::KINDS;

/// `palisade export`.
#[derive(Debug, clap::Args)]
pub(super) struct ExportCommand {
    /// The folder: gets one file for each entity, as COLLECTION/ID.yaml. It must be empty or not exist.
    folder: PathBuf,

    #[command(flatten)]
    target: TargetArgs,

    /// The format of the files.
    #[arg(long, value_enum, default_value = "yaml")]
    format: Format,

    /// Write into a folder that is not empty: files of the same name are replaced, others are kept.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Yaml,
    Json,
}

impl ExportCommand {
    pub(super) async fn run(self) -> Result<(), CliError> {
        let fail = |what: &str, path: &Path, error| CliError::Io(format!("{what} {}", path.display()), error);
        let empty = match std::fs::read_dir(&self.folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(fail("read", &self.folder, error)),
        };
        if !empty && !self.force {
            let folder = self.folder.display();
            return Err(CliError::Other(format!("{folder} is not empty; choose another folder, or add --force")));
        }
        let target = self.target.open().await?;
        let mut all = Vec::new();
        for kind in KINDS.iter() {
            all.extend(target.list(kind).await?.into_iter().map(|document| (kind.collection, without_times(document))));
        }
        target.close().await?;
        for (collection, document) in &all {
            let id = document.get("id").and_then(Value::as_str).unwrap_or_default();
            // An id goes into a file's name as it is, and names that begin with a dot are not read again.
            if id.is_empty() || id.contains(['/', '\\', '\0']) {
                return Err(CliError::Other(format!(
                    "`{}` of {collection} cannot be a file's name",
                    id.escape_debug()
                )));
            }
            let dotted = if id.starts_with('.') { "_" } else { "" };
            let (text, extension) = written(document, self.format)?;
            let folder = self.folder.join(collection);
            std::fs::create_dir_all(&folder).map_err(|error| fail("make", &folder, error))?;
            let file = folder.join(format!("{dotted}{id}.{extension}"));
            std::fs::write(&file, text).map_err(|error| fail("write", &file, error))?;
        }
        say(format_args!("{}: {} entities", self.folder.display(), all.len()))
    }
}

/// The document without the times that the server keeps: they are not part of the configuration.
pub(super) fn without_times(mut document: Value) -> Value {
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("created_at");
        metadata.shift_remove("updated_at");
    }
    document
}

/// The text of a file, and its extension. What would not come back from YAML as it is, is written as JSON.
fn written(document: &Value, format: Format) -> Result<(String, &'static str), CliError> {
    if format == Format::Yaml
        && let Ok(text) = serde_saphyr::to_string(document)
        && serde_saphyr::from_str::<Value>(&text).is_ok_and(|back| back == *document)
    {
        return Ok((text, "yaml"));
    }
    let text = serde_json::to_string_pretty(document).map_err(|error| CliError::Other(error.to_string()))?;
    Ok((format!("{text}\n"), "json"))
}
