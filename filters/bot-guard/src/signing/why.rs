//! Why a signature was not verified.

/// Why a signature was not verified. None of it says that the caller is not the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    NoSignature,
    Algorithm,
    NotBound,
    Host,
    NoTimes,
    LivesTooLong,
    FromTheFuture,
    Expired,
    NoNonce,
    Replayed,
    Component,
    TooLong,
    UnknownKey,
    KeyTime,
    Caller,
    /// The keys of the directory are not there (yet).
    Directory,
    /// The worker has verified enough in this second.
    Worker,
}

impl Why {
    /// Whether the gateway lacks something, and not the request.
    pub(crate) fn is_of_gateway(self) -> bool {
        matches!(self, Why::Directory | Why::Worker)
    }

    /// For people.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Why::NoSignature => "the header `Signature` has none under its label",
            Why::Algorithm => "it is not one of Ed25519",
            Why::NotBound => "it covers neither `@authority` nor `@target-uri`",
            Why::Host => "it is for a host that the policy does not name",
            Why::NoTimes => "it lacks `created` or `expires`, or they make no sense",
            Why::LivesTooLong => "it lives for longer than the policy accepts",
            Why::FromTheFuture => "it was created in the future",
            Why::Expired => "it has expired",
            Why::NoNonce => "it has no nonce, or one of no use",
            Why::Replayed => "its nonce was used before",
            Why::Component => "it covers what is not there or not supported",
            Why::TooLong => "what it covers is too long",
            Why::UnknownKey => "the directory has no such key",
            Why::KeyTime => "its key does not count now",
            Why::Caller => "the caller has sent too many wrong ones",
            Why::Directory => "the keys of the directory are not there",
            Why::Worker => "there are too many to verify in this second",
        }
    }
}
