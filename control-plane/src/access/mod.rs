//! Who may call the control plane: admin keys and their scopes, the tokens of nodes.

mod basic;
mod guard;
mod host;
mod keys;
mod node_names;
mod node_tokens;
mod throttle;
mod token_lines;

pub use guard::{Access, Caller, guard};
pub use host::only_hosts;
pub use keys::{AdminKey, IssuedKey, Refusal, Scope};
pub use node_names::NodeNames;
pub use node_tokens::{NodeToken, NodeTokens};
pub use throttle::{MAX_FAILURES, MAX_SOURCES, Throttle, WINDOW_MILLIS, Wait};
pub(crate) use token_lines::DERIVE;
