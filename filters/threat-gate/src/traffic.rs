//! How many requests each route has, for the overview of the control plane.
//!
//! The gate begins every exchange. A request that meets two of them, of the global chain and of the route, is counted once. Counts lie in
//! the worker's memory and outlive snapshots; a report says what was added since the last one. What is lost with a link is missing from the
//! numbers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use exchange::{Exchange, Host, Timer, Workers};
use prost::Message;

/// The kind of the reports.
pub const TRAFFIC: &str = "traffic";

/// The time between two reports, in milliseconds.
const PERIOD: u32 = 5_000;
/// The most routes of a worker that are told apart; requests of further ones count as those without a route.
const MAX_ROUTES: usize = 4_096;
/// The most routes of a report: with ids of 64 bytes a third of what the link takes.
const MAX_OF_REPORT: usize = 300;
/// The longest id of a route, in bytes.
const MAX_ID: usize = 128;

/// Requests of a worker since its last report.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TrafficReport {
    /// The routes that had requests.
    #[prost(message, repeated, tag = "1")]
    pub routes: Vec<RouteTraffic>,
}

/// Requests of a route.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RouteTraffic {
    /// Id of the route entity; empty for requests that no route entity covers.
    #[prost(string, tag = "1")]
    pub route: String,
    /// How many.
    #[prost(uint64, tag = "2")]
    pub requests: u64,
}

/// What a worker has counted.
#[derive(Debug, Default)]
struct Traffic(RefCell<HashMap<Rc<str>, u64>>);

/// When [`report`] is to run.
pub(crate) const TIMER: Timer = Timer { millis: PERIOD, on: Workers::All };

/// Counts a request, unless another gate has.
pub(crate) fn count(exchange: &mut Exchange, host: &dyn Host) {
    if std::mem::replace(&mut exchange.is_counted, true) {
        return;
    }
    let traffic: Rc<Traffic> = host.shared().memory().beside();
    // Nothing else holds it: neither counting nor reporting calls into a plugin.
    let Ok(mut routes) = traffic.0.try_borrow_mut() else { return };
    let id = &exchange.route.id;
    if let Some(requests) = routes.get_mut(id) {
        *requests = requests.saturating_add(1);
        return;
    }
    let id = if routes.len() < MAX_ROUTES && id.len() <= MAX_ID { Rc::clone(id) } else { Rc::default() };
    let requests = routes.entry(id).or_default();
    *requests = requests.saturating_add(1);
}

/// Sends what was counted since the last report.
pub(crate) fn report(host: &dyn Host) {
    let traffic: Rc<Traffic> = host.shared().memory().beside();
    let Ok(counted) = traffic.0.try_borrow_mut().map(|mut routes| std::mem::take(&mut *routes)) else { return };
    let mut routes: Vec<_> =
        counted.into_iter().map(|(route, requests)| RouteTraffic { route: route.to_string(), requests }).collect();
    while !routes.is_empty() {
        let rest = routes.split_off(routes.len().min(MAX_OF_REPORT));
        let report = TrafficReport { routes: std::mem::replace(&mut routes, rest) };
        host.send_report(TRAFFIC, report.encode_to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exchange::fake::FakeHost;

    fn exchange(route: &str) -> Exchange {
        let mut exchange = Exchange::default();
        exchange.route.id = route.into();
        exchange
    }

    /// Routes of all reports since the last call, by id.
    fn reported(host: &FakeHost) -> Vec<(String, u64)> {
        report(host);
        let reports = host.reports.take();
        let decoded = reports.iter().flat_map(|(kind, data)| {
            assert_eq!((*kind, data.len() <= exchange::MAX_REPORT), (TRAFFIC, true));
            TrafficReport::decode(&data[..]).unwrap().routes
        });
        let mut routes: Vec<_> = decoded.map(|route| (route.route, route.requests)).collect();
        routes.sort();
        routes
    }

    #[test]
    fn requests_are_counted_by_route_and_reported_once() {
        let host = FakeHost::at(1_000);
        for route in ["shop", "", "shop", "api"] {
            let mut exchange = exchange(route);
            // By the gate of the global chain and that of the route.
            count(&mut exchange, &host);
            count(&mut exchange, &host);
        }
        assert_eq!(reported(&host), [(String::new(), 1), ("api".to_owned(), 1), ("shop".to_owned(), 2)]);
        assert_eq!(reported(&host), []);
        count(&mut exchange("api"), &host);
        assert_eq!(reported(&host), [("api".to_owned(), 1)]);
    }

    #[test]
    fn more_routes_than_are_told_apart_take_bounded_memory_and_every_request_counts() {
        let host = FakeHost::at(1_000);
        let all = MAX_ROUTES as u64 + 1_000;
        for number in 0..all {
            count(&mut exchange(&format!("{number:0>100}")), &host);
        }
        count(&mut exchange(&"x".repeat(MAX_ID + 1)), &host);
        let routes = reported(&host);
        assert_eq!(routes.len(), MAX_ROUTES + 1);
        assert_eq!(routes[0], (String::new(), 1_001));
        assert_eq!(routes.iter().map(|(_, requests)| requests).sum::<u64>(), all + 1);
    }
}
