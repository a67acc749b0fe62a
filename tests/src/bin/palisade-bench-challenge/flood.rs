//! One solution, submitted many times at once over two nodes.

use std::time::Instant;

use palisade_tests::bootstrap::shipped;
use palisade_tests::challenge::{at_once, solve};
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT};
use palisade_tests::http::Request;
use palisade_tests::process::wait_for;

use crate::PATIENCE;
use palisade_tests::figures::{Figures, Target, quantile};

/// Some thousand tries: what is measured is not the work.
const BITS: u32 = 12;

pub(crate) fn measure(submissions: usize, rounds: usize, figures: &mut Figures) -> Result<(), String> {
    let gateway = crate::gateway(BITS, None);
    // The kernel divides connections between the two: both listen on the one port.
    let ports = [(WRITTEN_XDS_PORT, gateway.control.xds().port()), (WRITTEN_ADMIN_PORT, 0)];
    let other = Envoy::start_with(&shipped("xds.yaml", &ports), 2, None)?;
    let served = |envoy: &Envoy, statuses: &str| -> u64 {
        envoy.stats(&format!("^http.*downstream_rq_{statuses}")).values().sum()
    };
    wait_for("requests on both nodes", PATIENCE, || {
        let _ = Request::get("/").send(gateway.address);
        (served(&other, "2xx") > 0).then_some(())
    })?;
    let program = |method: &str| Request::new(method, "/?probe=1").header("user-agent", "program/1");
    let (mut cleared, mut refused, mut errors, mut unanswered) = (Vec::new(), Vec::new(), 0, 0);
    let mut times = Vec::new();
    for round in 0..rounds {
        let solution = solve(&gateway.send(&program("GET").header("accept", "application/json")))?;
        let before = (served(&gateway.envoy, "4xx"), served(&other, "4xx"));
        let submission = program("POST").header("x-svc-challenge", solution).body("");
        let start = Instant::now();
        let counts = at_once(&submission, gateway.address, submissions);
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        let after = (served(&gateway.envoy, "4xx"), served(&other, "4xx"));
        println!("round {round}: {counts:?}; refused by each node: {} and {}", after.0 - before.0, after.1 - before.1);
        let count = |status| counts.get(&status).copied().unwrap_or_default();
        cleared.push(count(204) as f64);
        refused.push(count(403) as f64);
        errors += counts.range(500..).map(|(_, count)| count).sum::<usize>();
        unanswered += count(0);
    }
    let (least, most) = (quantile(&mut cleared, 0.0), quantile(&mut cleared, 1.0));
    let wanted = submissions.saturating_sub(1) as f64;
    let what = |what: &str| format!("of {submissions} at once on two nodes, {what}");
    figures.add(&what("cleared: least"), least, "", Target::AtLeast(1.0));
    figures.add(&what("cleared: most"), most, "", Target::AtMost(1.0));
    figures.add(&what("refused with 403: least"), quantile(&mut refused, 0.0), "", Target::AtLeast(wanted));
    figures.add(&what("answered with 5xx"), errors as f64, "", Target::AtMost(0.0));
    figures.add(&what("not answered"), unanswered as f64, "", Target::AtMost(0.0));
    figures.add(&what("all answered after, median"), quantile(&mut times, 0.5), "ms", Target::None);
    Ok(())
}
