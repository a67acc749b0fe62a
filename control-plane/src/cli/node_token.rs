//! `palisade node-token`: the tokens by which gateways are let in.

use std::path::{Path, PathBuf};

use super::error::CliError;
use super::output::say;
use base::atomic_file::{self, Readers};
use listen::{DERIVE, NodeNames, NodeTokens};
use xds::bootstrap::NODE_TOKEN_SECRET;

/// `palisade node-token`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum NodeTokenCommand {
    /// Add a fresh token for a gateway to a file (made if it does not exist) and print it.
    Create(At),
    /// Add a fresh secret (a line `node=ID derive=SECRET`) to a file (made if it does not exist), from which each of these
    /// gateways has a token of its own.
    Derive(At),
    /// Print the newest token that a file has for a gateway, or that is derived for it.
    Show(At),
    /// Print the same token as the secret that Envoy reads (envoy/node-token.yaml).
    Secret(At),
}

/// Which gateway, and which file.
#[derive(Debug, clap::Args)]
pub(super) struct At {
    /// The file of `palisade serve --node-token-file`.
    #[arg(long, env = "PALISADE_NODE_TOKEN_FILE", value_name = "FILE")]
    file: PathBuf,

    /// The gateway's `node.id`; with a `*` at one end for all whose ids begin or end alike (`edge-*`, `*.example`).
    #[arg(long, value_name = "ID")]
    node: String,
}

impl NodeTokenCommand {
    pub(super) fn run(self) -> Result<(), CliError> {
        match self {
            NodeTokenCommand::Create(at) => at.create(),
            NodeTokenCommand::Derive(at) => at.derive(),
            NodeTokenCommand::Show(at) => at.show(),
            NodeTokenCommand::Secret(at) => at.secret(),
        }
    }
}

impl At {
    fn create(&self) -> Result<(), CliError> {
        let token = self.add("")?;
        say(format_args!("{token}"))
    }

    fn derive(&self) -> Result<(), CliError> {
        self.add(DERIVE).map(drop)
    }

    /// Adds a line with a fresh secret to the file, and returns the secret. A running control plane may read the file at any
    /// moment: it sees the old one or the new one. Several commands wait for each other.
    fn add(&self, kind: &str) -> Result<String, CliError> {
        NodeNames::parse(&self.node).map_err(|error| CliError::Other(error.to_string()))?;
        let add = || {
            let _lock = atomic_file::lock(&self.file)?;
            let fresh = NodeTokens::fresh()?;
            let line = format!("node={} {kind}{fresh}\n", self.node);
            // A control plane that starts makes the file as well: one of the two is first.
            if !atomic_file::create(&self.file, format!("{}{line}", NodeTokens::HEAD).as_bytes())? {
                self.append(&line)?;
            }
            Ok(fresh)
        };
        add().map_err(|error| CliError::Io(format!("add a token to {}", self.file.display()), error))
    }

    fn append(&self, line: &str) -> std::io::Result<()> {
        let mut text = std::fs::read(&self.file)?;
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(line.as_bytes());
        atomic_file::replace(&self.file, &text, Readers::Owner)
    }

    fn show(&self) -> Result<(), CliError> {
        let token = last_of(&self.file, &self.node)?;
        say(format_args!("{token}"))
    }

    fn secret(&self) -> Result<(), CliError> {
        let token = last_of(&self.file, &self.node)?;
        let kind = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
        say(format_args!(
            "resources:\n  - \"@type\": {kind}\n    name: {NODE_TOKEN_SECRET}\n    generic_secret:\n      secret: {{ inline_string: \
             \"{token}\" }}"
        ))
    }
}

/// The newest token of a file that is for these nodes; for one node also the one that is derived for it.
fn last_of(file: &Path, node: &str) -> Result<String, CliError> {
    let bytes = std::fs::read(file).map_err(|error| CliError::Io(format!("read {}", file.display()), error))?;
    let found = NodeTokens::newest(file, &bytes, node).map_err(|error| CliError::Other(error.to_string()))?;
    found.ok_or_else(|| CliError::Other(format!("{}: there is no token for the gateway `{node}`", file.display())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::{MetadataExt as _, chown};

    use super::*;

    #[test]
    fn commands_at_one_time_lose_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let at = At { file: folder.path().join("tokens"), node: "edge-1".into() };
        let told: BTreeSet<String> = std::thread::scope(|scope| {
            let commands: Vec<_> = (0..20).map(|_| scope.spawn(|| at.add("").unwrap())).collect();
            commands.into_iter().map(|command| command.join().unwrap()).collect()
        });
        let text = std::fs::read_to_string(&at.file).unwrap();
        let kept: BTreeSet<String> =
            text.lines().filter_map(|line| line.strip_prefix("node=edge-1 ")).map(str::to_owned).collect();
        assert_eq!((told.len(), &told), (20, &kept), "each is told its own");
    }

    #[test]
    fn the_services_user_still_reads_a_file_that_root_has_added_to() {
        let folder = tempfile::tempdir().unwrap();
        if std::fs::metadata(folder.path()).unwrap().uid() != 0 {
            return;
        }
        let at = At { file: folder.path().join("tokens"), node: "edge-1".into() };
        let owner = || std::fs::metadata(&at.file).map(|there| (there.uid(), there.gid())).unwrap();
        chown(folder.path(), Some(65_532), Some(65_532)).unwrap();
        at.create().unwrap();
        assert_eq!(owner(), (65_532, 65_532));
        chown(&at.file, Some(65_530), Some(65_531)).unwrap();
        at.create().unwrap();
        at.derive().unwrap();
        assert_eq!(owner(), (65_530, 65_531));
    }

    #[test]
    fn tokens_are_added_and_found_by_their_gateway() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let at = |node: &str| At { file: file.clone(), node: node.into() };
        for node in ["edge-1", "core-*", "edge-1"] {
            at(node).create().unwrap();
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let tokens: Vec<&str> = text.lines().filter_map(|line| line.rsplit_once(' ')).map(|(_, token)| token).collect();
        assert_eq!(text.lines().filter(|line| line.starts_with("node=")).count(), 3, "{text}");
        let kept = NodeTokens::open(file.clone()).unwrap();
        let newest = last_of(&file, "edge-1").unwrap();
        assert_eq!(newest, *tokens.last().unwrap());
        assert!(kept.current().admit(newest.as_bytes()).unwrap().nodes().unwrap().admit("edge-1"));
        let core = last_of(&file, "core-7").unwrap();
        assert!(kept.current().admit(core.as_bytes()).unwrap().nodes().unwrap().admit("core-9"));
        assert!(last_of(&file, "edge-2").is_err());
        at("edge-*").derive().unwrap();
        let (two, three) = (last_of(&file, "edge-2").unwrap(), last_of(&file, "edge-3").unwrap());
        assert!(two != three && last_of(&file, "edge-*").is_err(), "each has one of its own");
        let kept = NodeTokens::open(file.clone()).unwrap();
        assert!(kept.current().admit(two.as_bytes()).unwrap().nodes().unwrap().names("edge-2"));
        assert!(at("a b").create().is_err());
        // As the server reads the file: with the mark of UTF-8 before it, and with a line that it would refuse.
        std::fs::write(&file, format!("\u{feff}{text}")).unwrap();
        assert_eq!(last_of(&file, "edge-1").unwrap(), newest);
        std::fs::write(&file, format!("{text}node=edge-1 two words\n")).unwrap();
        assert!(matches!(last_of(&file, "edge-1"), Err(CliError::Other(why)) if why.contains("a token has no spaces")));
    }
}
