//! Which of the nodes a report shows, and in which order.

use std::fmt;

use serde::Deserialize;

use xds::NodeStatus;

/// The query of `_nodes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodesQuery {
    /// Only nodes of this group.
    pub group: Option<String>,
    /// Only nodes that have a stream, or that have none.
    pub connected: Option<bool>,
    /// Only nodes that are behind, or that are not.
    pub behind: Option<bool>,
    /// What they are ordered by: `id` (the default), `group`, `since` or `behind_since`, with `:desc` the other way round.
    pub sorted: Option<String>,
}

/// An order that nodes have not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOrder(String);

impl fmt::Display for UnknownOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorted = self.0.escape_debug();
        write!(f, "nodes cannot be sorted by `{sorted}`; by id, group, since, behind_since, with :desc")
    }
}

impl std::error::Error for UnknownOrder {}

impl NodesQuery {
    /// The nodes that are asked for, in the order that is asked for.
    ///
    /// # Errors
    ///
    /// An order that is not known.
    pub fn apply(&self, mut nodes: Vec<NodeStatus>) -> Result<Vec<NodeStatus>, UnknownOrder> {
        nodes.retain(|node| {
            self.group.as_ref().is_none_or(|group| node.group == *group)
                && self.connected.is_none_or(|connected| node.connected == connected)
                && self.behind.is_none_or(|behind| node.behind == behind)
        });
        let sorted = self.sorted.as_deref().unwrap_or("id");
        let (field, descending) = match sorted.split_once(':') {
            None => (sorted, false),
            Some((field, "asc")) => (field, false),
            Some((field, "desc")) => (field, true),
            Some(_) => ("", false),
        };
        // Stable, and they come by id.
        match field {
            "id" => nodes.sort_by(|a, b| a.id.cmp(&b.id)),
            "group" => nodes.sort_by(|a, b| a.group.cmp(&b.group)),
            "since" => nodes.sort_by_key(|node| node.since),
            // Those that are not behind come last.
            "behind_since" => nodes.sort_by_key(|node| node.behind_since.unwrap_or(u64::MAX)),
            _ => {
                return Err(UnknownOrder(sorted.to_owned()));
            }
        }
        if descending {
            nodes.reverse();
        }
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_chosen_and_ordered() {
        let node = |id: &str, group: &str, behind_since: Option<u64>| NodeStatus {
            id: id.into(),
            group: group.into(),
            behind: behind_since.is_some(),
            behind_since,
            ..NodeStatus::default()
        };
        let all = vec![node("a", "eu", None), node("b", "us", Some(9)), node("c", "eu", Some(5))];
        let ids = |query: NodesQuery| {
            let nodes = query.apply(all.clone())?;
            Ok::<_, UnknownOrder>(nodes.into_iter().map(|node| node.id).collect::<Vec<_>>().join(""))
        };
        let sorted = |by: &str| NodesQuery { sorted: Some(by.into()), ..NodesQuery::default() };
        assert_eq!(ids(NodesQuery::default()).unwrap(), "abc");
        assert_eq!(ids(NodesQuery { group: Some("eu".into()), ..NodesQuery::default() }).unwrap(), "ac");
        assert_eq!(ids(NodesQuery { behind: Some(true), ..sorted("id:desc") }).unwrap(), "cb");
        assert_eq!(ids(NodesQuery { connected: Some(true), ..NodesQuery::default() }).unwrap(), "");
        assert_eq!(ids(sorted("behind_since")).unwrap(), "cba");
        assert_eq!(ids(sorted("group")).unwrap(), "acb");
        assert!(ids(sorted("colour")).unwrap_err().to_string().contains("`colour`"));
        assert!(ids(sorted("id:up")).is_err());
    }
}
