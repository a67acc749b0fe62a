//! What a node counts together with all other nodes: its own part, and the sum of theirs.
//!
//! Both lie in one entry, so a request is answered from the node's own shared data alone, and waits for no other node. The
//! values of a slice of time only grow: to send or to learn one for the second time changes nothing, and of two that come
//! in the wrong order the larger one stands.

mod counts;
mod key;
mod members;

pub use counts::{ClusterCount, ClusterWindows, Slices};
pub use key::ClusterKey;
pub use members::{ClusterSets, Joined};
