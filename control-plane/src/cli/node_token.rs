//! `palisade node-token`: the tokens by which gateways are let in.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{CliError, say};
use crate::access::{DERIVE, NodeNames, NodeTokens};
use crate::xds::bootstrap::NODE_TOKEN_SECRET;

/// `palisade node-token`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum NodeTokenCommand {
    /// Add a fresh token for a gateway to a file (which is made where there is none) and print it.
    Create(At),
    /// Add a fresh secret to a file (which is made where there is none) of which each of these gateways has a token of its own.
    Derive(At),
    /// Print the token that a file has for a gateway, or that is derived for it.
    Show(At),
    /// Print the token that a file has for a gateway as the secret that Envoy reads (envoy/node-token.yaml).
    Secret(At),
}

/// Which gateway, and which file.
#[derive(Debug, clap::Args)]
pub(super) struct At {
    /// The file of `palisade serve --node-token-file`.
    #[arg(long, env = "PALISADE_NODE_TOKEN_FILE", value_name = "FILE")]
    file: PathBuf,

    /// The gateway's `node.id`; `edge-*` for all whose ids begin so.
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
        NodeNames::parse(&self.node).map_err(CliError::Other)?;
        let failed = |error| CliError::Io(format!("add a token to {}", self.file.display()), error);
        if !NodeTokens::create_file(&self.file, &self.node).map_err(failed)? {
            let token = NodeTokens::fresh().map_err(failed)?;
            self.add(&token).map_err(failed)?;
        }
        self.show()
    }

    fn derive(&self) -> Result<(), CliError> {
        NodeNames::parse(&self.node).map_err(CliError::Other)?;
        let add = || self.add(&format!("{DERIVE}{}", NodeTokens::fresh()?));
        add().map_err(|error| CliError::Io(format!("add a secret to {}", self.file.display()), error))
    }

    /// Adds a line to the file. A running control plane may read it at any moment: it sees the old file or the new one.
    fn add(&self, token: &str) -> std::io::Result<()> {
        let text = match std::fs::read_to_string(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let fresh = self.file.with_extension(format!("{}.tmp", std::process::id()));
        let mut out = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
        out.write_all(format!("{text}{end}node={} {token}\n", self.node).as_bytes())?;
        out.sync_all()?;
        std::fs::rename(&fresh, &self.file)
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
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| CliError::Io(format!("read {}", file.display()), error))?;
    let of_node = |line: &str| {
        let (name, token) = line.trim().strip_prefix("node=")?.split_once(char::is_whitespace)?;
        let fits = NodeNames::parse(name).is_ok_and(|names| names.admit(node)) || name == node;
        let token = fits.then_some(token.trim())?;
        match token.strip_prefix(DERIVE) {
            Some(secret) => (!node.contains('*')).then(|| NodeTokens::derived(secret.as_bytes(), node)),
            None => Some(token.to_owned()),
        }
    };
    let found = text.lines().rev().find_map(of_node);
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
    }
}
