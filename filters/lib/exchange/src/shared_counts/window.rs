//! Counts in a sliding window.

use std::rc::Rc;

use node_state::{ClusterCount, Slices};
use snapshot::{CountGroup, CountKind, CountNow};

use super::{CAP, Shared, describe};
use crate::{Answer, Ask, Host};

/// How often something happened within the last minutes or hours on all nodes, for each key.
///
/// A count stays for the length of the window, and for up to one slice more. Slices are aligned to the control plane's clock.
#[derive(Debug, Clone)]
pub struct Window(pub(super) Rc<Shared>);

impl Window {
    /// A window of `span_millis` milliseconds in `slices` slices (1 to [`snapshot::MAX_COUNT_SLICES`]). Nodes count together what has
    /// the same name (`login.failures`), span and slices.
    ///
    /// # Errors
    ///
    /// What is out of its bounds.
    pub fn new(name: &str, span_millis: u64, slices: u8) -> Result<Self, String> {
        Ok(Self(Shared::new(describe(name, CountKind::Window, span_millis, slices, CAP)?)))
    }

    /// The same with room for so many keys on a node; 50,000 otherwise. Of more, those with the smallest counts give way.
    #[must_use]
    pub fn max_keys(self, max_keys: u32) -> Self {
        Self(Shared::new(CountGroup { max_keys, ..self.0.described.clone() }))
    }

    /// The same where a key is sent to every node from this total of all nodes on, also to one that has not counted it. Otherwise a
    /// node learns of a key with its own first count.
    #[must_use]
    pub fn everywhere_from(self, total: u32) -> Self {
        Self(Shared::new(CountGroup { everywhere_from: total, ..self.0.described.clone() }))
    }

    /// The same where other nodes believe at most so much of one node for a key in a slice; 1,000,000 otherwise.
    #[must_use]
    pub fn cap(self, cap: u32) -> Self {
        Self(Shared::new(CountGroup { cap: cap.max(1), ..self.0.described.clone() }))
    }

    /// Adds to the count of a key; the count with it.
    pub fn add(&self, host: &dyn Host, key: &[u8], by: u32) -> ClusterCount {
        let on = self.0.on(host);
        let Some(windows) = self.0.windows() else { return ClusterCount::default() };
        let hash = on.key(key);
        let (count, _lost) = windows.add(on.data, hash, by, on.now);
        on.changed(host, (hash, 0), (key, b"", by));
        count
    }

    /// The count of a key.
    #[must_use]
    pub fn get(&self, host: &dyn Host, key: &[u8]) -> ClusterCount {
        let on = self.0.on(host);
        self.0.windows().map_or(ClusterCount::default(), |windows| windows.get(on.data, on.key(key), on.now))
    }

    /// The number of the newest slice of the window in which a key was counted, and its count there; `None` without one. A number that
    /// has gone up never goes down while anything that was counted before is in the window.
    #[must_use]
    pub fn newest(&self, host: &dyn Host, key: &[u8]) -> Option<(u64, u32)> {
        let on = self.0.on(host);
        self.0.windows()?.newest(on.data, on.key(key), on.now)
    }

    /// Asks how often a key was counted on all nodes up to now; to be called after [`Window::add`]. Of nodes that ask about one key
    /// at once, the one whose question is taken last gets the count of all. The message waits at most `millis` milliseconds.
    #[must_use]
    pub fn ask(&self, host: &dyn Host, key: &[u8], millis: u32) -> Ask {
        let on = self.0.on(host);
        let own = self.0.own_count(on.data, on.key(key), on.now);
        let group = Some(self.0.described.clone());
        on.ask(&CountNow { group, incarnation: on.cluster.incarnation, own: Some(own) }, millis)
    }

    /// The count of a key after the answer to [`Window::ask`]; `None` if there is none, when [`Window::get`] has what this node
    /// knows.
    pub fn answered(&self, host: &dyn Host, key: &[u8], answer: &Answer) -> Option<ClusterCount> {
        let counted = answer.read::<CountNow>()?;
        let (on, windows) = (self.0.on(host), self.0.windows()?);
        let key = on.key(key);
        if let Some(others) = counted.others.filter(|others| others.key == key) {
            windows.learn(on.data, key, &Slices { newest: others.newest, counts: others.counts }, on.now);
        }
        Some(windows.get(on.data, key, on.now))
    }
}
