//! Credentials of routes: what checks them in front of the filters, and whether that is what contracts ask for.
//!
//! [`Credentials`] is a field of routes: checks that its owner states, and those that [`envoy::read`] finds in the
//! configuration of an Envoy. [`findings`] compares them with the security requirements of each route's contract. This is an
//! audit of configurations: nothing here looks at a request.

mod audit;
mod contract;
mod difference;
pub mod envoy;
mod facts;
mod findings;
mod import;
mod schemes;
mod scopes;
mod template;

pub use audit::{Finding, FindingKind, Severity};
pub use difference::{Difference, differences};
pub use facts::{CredentialCheck, CredentialKind, Credentials, EnvoyRoute};
pub use findings::{Counts, RouteAudit, ShownCheck, audit_routes, findings};
pub use import::{ImportPlan, RouteAction, RouteChange, plan, summary};

#[cfg(test)]
mod tests;
