//! Which routes answer to which domain.
//!
//! Envoy picks a virtual host first: the one with the host's own name, else the longest with the host's end (`*.example`), else
//! the longest with its beginning (`shop.*`), else `*`. Then it takes the first route in it that matches, and never looks at
//! another virtual host. So every domain gets the routes of its own, longest prefix first, and after them those of each
//! wider domain in that order: a route for any host keeps working on a host that some other route names.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use super::input::RouteInput;

/// A route at one of its prefixes, in the routes of a virtual host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry<'a> {
    /// The path prefix.
    pub(super) path: &'a str,
    /// The route's place among the routes of the gateway.
    pub(super) route: usize,
    /// It answers only to hosts of the virtual host that begin so.
    pub(super) host_begins: Option<&'a str>,
}

/// The domains of the routes of a gateway, in lower case.
pub(super) struct Domains<'a>(BTreeMap<String, Vec<Entry<'a>>>);

impl<'a> Domains<'a> {
    pub(super) fn of(routes: &'a [RouteInput]) -> Self {
        let mut domains: BTreeMap<String, Vec<Entry<'a>>> = BTreeMap::new();
        for (index, route) in routes.iter().enumerate() {
            for host in hosts(route) {
                let entries = domains.entry(host).or_default();
                entries.extend(paths(route).into_iter().map(|path| Entry { path, route: index, host_begins: None }));
            }
        }
        for entries in domains.values_mut() {
            // Stable: routes with an equal prefix keep their listed order.
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.path.len()));
        }
        Self(domains)
    }

    /// The virtual hosts: domains with the same routes are one. Each has its entries in order.
    pub(super) fn virtual_hosts(&self) -> BTreeMap<Vec<Entry<'_>>, Vec<String>> {
        let ends: BTreeSet<&str> = self.0.keys().filter_map(|domain| domain.strip_prefix('*')).collect();
        let begins: BTreeSet<&str> =
            self.0.keys().filter(|domain| *domain != "*").filter_map(|d| d.strip_suffix('*')).collect();
        let mut hosts: BTreeMap<Vec<Entry<'_>>, Vec<String>> = BTreeMap::new();
        for domain in self.0.keys() {
            let chain = covering(domain, &ends, &begins);
            let entries = chain.into_iter().flat_map(|(wider, host_begins)| {
                self.0.get(&wider).into_iter().flatten().map(move |entry| Entry { host_begins, ..*entry })
            });
            hosts.entry(unshadowed(entries)).or_default().push(domain.clone());
        }
        hosts
    }
}

/// A domain and all that answer to its hosts as well, in Envoy's order; beside each what hosts begin with for which alone
/// that holds.
fn covering<'b>(domain: &str, ends: &BTreeSet<&str>, begins: &BTreeSet<&'b str>) -> Vec<(String, Option<&'b str>)> {
    let mut all = vec![(domain.to_owned(), None)];
    let longest_first = |begins: &BTreeSet<&'b str>| {
        let mut begins: Vec<&'b str> = begins.iter().copied().collect();
        begins.sort_by_key(|begin| std::cmp::Reverse(begin.len()));
        begins
    };
    let shorter_ends = |name: &str| {
        let ends = (1..name.len()).filter_map(|at| name.get(at..)).filter(|end| ends.contains(end));
        ends.map(|end| (format!("*{end}"), None)).collect::<Vec<_>>()
    };
    let shorter_begins = |name: &str| {
        let begins = (1..name.len()).rev().filter_map(|at| name.get(..at)).filter(|begin| begins.contains(begin));
        begins.map(|begin| (format!("{begin}*"), None)).collect::<Vec<_>>()
    };
    if domain == "*" {
        return all;
    }
    if let Some(end) = domain.strip_prefix('*') {
        all.extend(shorter_ends(end));
        // Some of its hosts begin so, and would have been answered there were this domain not.
        all.extend(longest_first(begins).into_iter().map(|begin| (format!("{begin}*"), Some(begin))));
    } else if let Some(begin) = domain.strip_suffix('*') {
        all.extend(shorter_begins(begin));
    } else {
        all.extend(shorter_ends(domain));
        all.extend(shorter_begins(domain));
    }
    all.push(("*".to_owned(), None));
    all
}

/// Leaves out what can never match, because the same prefix or `/` stands before it.
fn unshadowed<'a>(chain: impl Iterator<Item = Entry<'a>>) -> Vec<Entry<'a>> {
    let mut seen = BTreeSet::new();
    let mut open = true;
    let mut kept = Vec::new();
    for entry in chain {
        if open && !seen.contains(&(entry.path, None)) && seen.insert((entry.path, entry.host_begins)) {
            kept.push(entry);
            open = entry.path != "/" || entry.host_begins.is_some();
        }
    }
    kept
}

/// The hosts of a route as domains: in lower case, each once. Envoy compares text: an IPv6 address is there in full as well.
pub(super) fn hosts(route: &RouteInput) -> BTreeSet<String> {
    match route.hosts.is_empty() {
        true => BTreeSet::from(["*".to_owned()]),
        false => route.hosts.iter().flat_map(|host| spellings(host.to_ascii_lowercase())).collect(),
    }
}

/// A host, and where it is an IPv6 address how else clients write it: without `::`, also with all zeros, and IPv4 in it
/// in hexadecimal digits.
fn spellings(host: String) -> Vec<String> {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let Some(address) = address.and_then(|text| text.parse::<Ipv6Addr>().ok()) else { return vec![host] };
    let groups = address.segments();
    let joined = |write: fn(&u16) -> String| format!("[{}]", groups.iter().map(write).collect::<Vec<_>>().join(":"));
    let mut all = vec![joined(|group| format!("{group:x}")), joined(|group| format!("{group:04x}"))];
    if address.to_ipv4_mapped().is_some()
        && let [.., high, low] = groups
    {
        all.push(format!("[::ffff:{high:x}:{low:x}]"));
    }
    if !all.contains(&host) {
        all.push(host);
    }
    all
}

/// The prefixes of a route.
pub(super) fn paths(route: &RouteInput) -> Vec<&str> {
    match route.paths.is_empty() {
        true => vec!["/"],
        false => route.paths.iter().map(String::as_str).collect(),
    }
}
