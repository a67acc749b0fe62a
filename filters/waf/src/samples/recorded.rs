//! What a recorded exchange counts for, where nothing is reported to a control plane.

use std::rc::Rc;
use std::sync::Arc;

use exchange::{Build, Host, Plugin};
use seclang::Engine;

use super::messages::{Matched, Parameter, Totals};
use super::{Counted, Samples};
use crate::lookups::NodeTables;
use crate::{Waf, WafStep};

/// The plugin with this engine, and what it counts. What `step` says of a program is not read.
///
/// # Errors
/// The tables that the rules use cannot be had.
pub(crate) fn counting(
    step: WafStep,
    engine: Arc<Engine>,
    build: &Build<'_>,
) -> Result<(Box<dyn Plugin>, Rc<Counted>), String> {
    let tables = NodeTables::new(&step, build)?;
    let waf = Waf::new(step, engine, tables, None);
    let counted = Rc::clone(&waf.counted);
    Ok((Box::new(waf), counted))
}

/// All matches that were sampled on this host since the last call.
pub(crate) fn take_matches(host: &dyn Host) -> Vec<Matched> {
    let samples = Samples::of(host);
    samples.0.try_borrow_mut().map(|mut sampler| sampler.drain(host.now())).unwrap_or_default()
}

/// All parameters that were looked at on this host since the last call.
pub(crate) fn take_parameters(host: &dyn Host) -> Vec<Parameter> {
    let samples = Samples::of(host);
    samples.0.try_borrow_mut().map(|mut sampler| sampler.drain_parameters()).unwrap_or_default()
}

/// From now on secrets are not masked in the samples of this host, so that matches at them can be had again. The samples stay in the process.
pub(crate) fn keep_secrets(host: &dyn Host) {
    if let Ok(mut sampler) = Samples::of(host).0.try_borrow_mut() {
        sampler.keeps_secrets = true;
    }
}

/// Whether the next exchange finds room for its samples.
pub(crate) fn has_room(host: &dyn Host) -> bool {
    Samples::of(host).0.try_borrow().is_ok_and(|sampler| sampler.has_room())
}

/// The exchanges that were counted since the last call; `None` for none.
pub(crate) fn take_totals(counted: &Counted, config: &str) -> Option<Totals> {
    counted.take(config)
}
