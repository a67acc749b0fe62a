//! What the control plane is configured to demand of logins, and which ways to log in there are.

use oidc::{Provider, SecondFactorAt};

use accounts::{FactorKeys, Operator, RelyingParty, Session, Via};

/// How operators log in.
#[derive(Clone, Debug, Default)]
pub struct LoginRules {
    /// Every operator needs a second factor; those without one have their own account and nothing else.
    pub requires_second_factor: bool,
    /// The OpenID Connect provider, if there is one.
    pub provider: Option<Provider>,
    /// The keys that secrets of second factors are encrypted with; none by default.
    pub factor_keys: FactorKeys,
    /// The site that passkeys are for; `None` where it has no host name.
    pub site: Option<RelyingParty>,
}

impl LoginRules {
    /// Whether a login at the provider counts as both factors.
    pub(super) fn trusts_provider(&self) -> bool {
        self.provider.as_ref().is_some_and(|provider| provider.settings().second_factor == SecondFactorAt::Provider)
    }

    /// Whether an operator with this session has to add a second factor before anything else.
    pub(super) fn lacks_second_factor(&self, operator: &Operator, session: &Session) -> bool {
        let shown = session.origin.via == Via::Oidc && self.trusts_provider();
        self.requires_second_factor && !operator.has_second_factor() && !shown
    }
}
