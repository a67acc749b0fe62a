//! What the compiler knows beside the entities.

use std::path::PathBuf;

use kit::ChallengeRoot;

/// What the compiler must know of the gateways beyond the entities.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The folder of the `.wasm` modules, as the gateways see it.
    pub filters_dir: PathBuf,
    /// Gateways have a control plane: filters link to it.
    pub link: bool,
    /// What the keys of challenge providers without a secret are made of.
    pub challenge_root: ChallengeRoot,
}
