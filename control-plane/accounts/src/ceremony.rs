//! Ceremonies: exchanges with a browser that the control plane has begun and whose end it waits for.

/// How long a login at the provider may take, in milliseconds: ten minutes.
pub const OIDC_MILLIS: u64 = 600_000;

/// What a ceremony is for. One of one kind is never accepted as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CeremonyKind {
    /// A login at an OpenID Connect provider.
    Oidc,
    /// A new passkey.
    PasskeyAdd,
    /// A login by a passkey.
    PasskeyLogin,
    /// A passkey that shows that an operator with a session is still there.
    PasskeyConfirm,
}

/// A ceremony as it is kept. It ends once, with the first answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceremony {
    /// SHA-256 of what the browser brings back: the `state`, or the challenge.
    pub sha256: [u8; 32],
    /// What it is for.
    pub kind: CeremonyKind,
    /// The name of the operator; empty while it is not known.
    pub operator: String,
    /// What the one who has begun it needs at the end.
    pub data: String,
    /// From when on it is refused, in milliseconds since 1970.
    pub until_millis: u64,
}

// === impl CeremonyKind ===

impl CeremonyKind {
    /// The word for it in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CeremonyKind::Oidc => "oidc",
            CeremonyKind::PasskeyAdd => "passkey-add",
            CeremonyKind::PasskeyLogin => "passkey-login",
            CeremonyKind::PasskeyConfirm => "passkey-confirm",
        }
    }
}
