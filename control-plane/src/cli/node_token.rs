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
        NodeNames::parse(&self.node).map_err(|error| CliError::Other(error.to_string()))?;
        let failed = |error| CliError::Io(format!("add a token to {}", self.file.display()), error);
        if !NodeTokens::create_file(&self.file, &self.node).map_err(failed)? {
            let token = NodeTokens::fresh().map_err(failed)?;
            self.add(&token).map_err(failed)?;
        }
        self.show()
    }

    fn derive(&self) -> Result<(), CliError> {
        NodeNames::parse(&self.node).map_err(|error| CliError::Other(error.to_string()))?;
        let add = || self.add(&format!("{DERIVE}{}", NodeTokens::fresh()?));
        add().map_err(|error| CliError::Io(format!("add a secret to {}", self.file.display()), error))
    }

    /// Adds a line to the file. A running control plane may read it at any moment: it sees the old file or the new one.
    fn add(&self, token: &str) -> std::io::Result<()> {
        let mut text = match std::fs::read(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(format!("node={} {token}\n", self.node).as_bytes());
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
    use super::*;

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
