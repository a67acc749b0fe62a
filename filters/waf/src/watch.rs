//! A dry run: the plugin with rules that are built already, and what its engine knows at the end of an exchange.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::WafStep;
use exchange::{Build, Plugin, Slot};
use seclang::{Engine, Intervention, Transaction};

use crate::lookups::NodeTables;
use crate::{State, Waf};

/// Where the outcome of an exchange goes.
pub(crate) type Seen = Rc<RefCell<Option<Watched>>>;

/// An exchange at its end, as the engine has it.
pub struct Watched {
    /// The transaction, after phase 5.
    pub transaction: Transaction,
    /// What was refused, by a rule or by a limit (then the rule is 0).
    pub blocked: Option<Intervention>,
    /// The refusal by a limit that was not made, because nothing is refused in this exchange.
    pub unenforced: Option<Intervention>,
    /// The last of the phases 1 to 4 that has begun. What was refused was refused there.
    pub phase: u8,
}

/// The plugin with this engine. What `step` says of a program is not read. `seen` gets the outcome of each exchange at its
/// end.
///
/// # Errors
/// The tables that the rules use cannot be had.
pub fn watched(
    step: WafStep,
    engine: Arc<Engine>,
    build: &Build<'_>,
    seen: Rc<RefCell<Option<Watched>>>,
) -> Result<Box<dyn Plugin>, String> {
    let tables = NodeTables::new(&step, build)?;
    Ok(Box::new(Waf::new(step, engine, tables, Some(seen))))
}

/// Moves what is known of an exchange to the one who watches.
pub(crate) fn hand_over(seen: &Seen, slot: &mut Slot) {
    let watched = slot.take::<State>().map(|state| Watched {
        transaction: state.transaction,
        blocked: state.blocked,
        unenforced: state.unenforced,
        phase: state.phase,
    });
    seen.replace(watched);
}
