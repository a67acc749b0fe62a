//! What rules look up about addresses.

use super::Program;
use crate::operator::OperatorKind;
use crate::vocabulary::Variable;

/// What the rules of a program look up about addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleLookups {
    /// A rule has `@geoLookup`.
    pub places: bool,
    /// The zones that rules name in `@rbl`, each once, in the order of their names.
    pub zones: Vec<String>,
    /// A rule has GEO among its targets.
    pub reads_geo: bool,
}

impl Program {
    /// What the rules look up.
    pub fn lookups(&self) -> RuleLookups {
        let used = self.wire.rules.iter().flat_map(|rule| &rule.links).filter_map(|link| link.operator.checked_sub(1));
        let operators = used.filter_map(|at| self.wire.operators.get(at as usize));
        let mut found = RuleLookups::default();
        for operator in operators {
            match u8::try_from(operator.kind).ok().and_then(OperatorKind::from_code) {
                Some(OperatorKind::GeoLookup) => found.places = true,
                Some(OperatorKind::Rbl) => found.zones.push(String::from_utf8_lossy(&operator.text).into_owned()),
                _ => {}
            }
        }
        let mut targets = self.wire.rules.iter().flat_map(|rule| &rule.links).flat_map(|link| &link.targets);
        found.reads_geo = targets.any(|target| target.variable == u32::from(Variable::Geo.code()));
        found.zones.sort_unstable();
        found.zones.dedup();
        found
    }
}
