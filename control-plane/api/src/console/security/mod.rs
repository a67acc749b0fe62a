//! `security/…`: what the decision fabric remembers, and what operators change of it.
//!
//! A call that asks for something impossible is answered with 200 and `done: false`; other statuses are for calls that did
//! not get that far. `docs/console.md` describes the shapes.

mod alerts;
mod bans;
mod call;
mod describe;
mod incidents;
mod ledger;
mod paging;
mod shapes;
mod status;

use axum::extract::DefaultBodyLimit;

use super::guard::protect;
use super::state::Console;
use crate::openapi::Routes;
use ::alerts::Alerts;
use fabric::Fabric;
use xds::Hub;

/// The bytes of a body, at most.
const MAX_BODY: usize = 64 * 1024;

/// The endpoints of this module, for those with a session of `console`. `hub` knows the gateways.
pub fn router(console: &Console, fabric: Fabric, hub: Hub, alerts: Alerts) -> Routes {
    let limit = || DefaultBodyLimit::max(MAX_BODY);
    let tests = alerts::routes().layered(|router| router.layer(limit())).with_state(alerts);
    let status = status::routes().layered(|router| router.layer(limit())).with_state((fabric.clone(), hub));
    let routes = Routes::new()
        .merge(bans::routes())
        .merge(incidents::routes())
        .merge(ledger::routes())
        .layered(|router| router.layer(limit()));
    protect(status.merge(describe::schemas(routes).with_state(fabric)).merge(tests), console.clone())
}
