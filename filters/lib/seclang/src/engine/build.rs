//! The engine: the executable form of a program.

use std::sync::OnceLock;

use super::automata::Grown;
use super::builder::Builder;
use super::const_prop::ConstProp;
use super::names::Names;
use super::plan::Plan;
use super::prefilter::{FirstTest, TargetTable};
use super::prepare::Preparation;
use super::rules::{BuiltOperator, Rule};
use super::scanner::Scanner;
use super::store::Pool;
use super::suspicion::Suspicion;
use crate::body::xml;
use crate::program::{Program, Settings};
use crate::vocabulary::Variable;

/// Rules ready to run. Immutable except for what operators build on first use; shared between transactions.
pub struct Engine {
    pub(super) settings: Settings,
    pub(super) rules: Vec<Rule>,
    /// For each phase all rules, and those that remain after constant propagation, valid while no `ctl` removes a rule
    /// they rely on.
    pub(super) full_plans: [Plan; 5],
    pub(super) pruned_plans: [Plan; 5],
    pub(super) const_prop: ConstProp,
    pub(super) operators: Vec<BuiltOperator>,
    pub(super) strings: Vec<Box<[u8]>>,
    pub(super) names: Names,
    pub(super) scanner: Scanner,
    /// Made for the first window of a body's rest.
    pub(super) suspicion: OnceLock<Suspicion>,
    pub(super) target_table: TargetTable,
    /// The values that every transaction has; see [`super::arena::Arena::with_constants`].
    pub(super) constants: Vec<Box<[u8]>>,
    pub(super) pool: Pool,
    /// The XPath expressions of rules for XML bodies, by their text.
    pub(super) paths: Vec<(Box<[u8]>, xml::Path)>,
    uses: [bool; Variable::COUNT],
    pub(super) prepared: Preparation,
    pub(super) grown: Grown,
}

impl Engine {
    /// Builds what a program describes. Patterns are compiled when a value first needs them.
    ///
    /// # Errors
    /// If the program was not made by [`crate::compile()`]: an unknown code, an index out of its table.
    pub fn new(program: Program) -> Result<Self, String> {
        Self::build(program, true)
    }

    /// An engine without prefilter, caches and constant propagation, which runs every operator on every value. Tests
    /// compare the other one with it.
    #[doc(hidden)]
    pub fn without_prefilter(program: Program) -> Result<Self, String> {
        Self::build(program, false)
    }

    fn build(program: Program, with_prefilter: bool) -> Result<Self, String> {
        let settings = program.settings();
        let wire = program.wire;
        let mut builder = Builder::new(&wire, with_prefilter);
        let operators = wire.operators.iter().map(|operator| builder.operator(operator));
        let mut operators: Vec<BuiltOperator> = operators.collect::<Result<_, _>>()?;
        let mut rules: Vec<Rule> = wire.rules.iter().map(|rule| builder.rule(rule)).collect::<Result<_, _>>()?;
        let phases = phases(&mut rules)?;
        let const_prop = match with_prefilter {
            true => ConstProp::new(&rules, &phases, &operators, &builder.names, &builder.constants.list),
            false => ConstProp::default(),
        };
        builder.names_without_slots(&mut rules);
        builder.number_tests(&mut rules, &operators, &wire);
        let (scanner, target_table) = builder.add_prefilters(&wire, &mut operators, &mut rules, &const_prop)?;
        let first_test = |rule: u32| match rules.get(rule as usize).and_then(|rule| rule.links.first()) {
            Some(link) if with_prefilter => FirstTest::of(link, &operators),
            _ => FirstTest::Unknown,
        };
        Ok(Self {
            settings,
            full_plans: phases.each_ref().map(|phase| Plan::full(phase, &rules, scanner.words(), first_test)),
            pruned_plans: phases
                .each_ref()
                .map(|phase| Plan::pruned(phase, &const_prop, &rules, scanner.words(), first_test)),
            const_prop,
            pool: Pool::default(),
            constants: builder.constants.list,
            operators,
            rules,
            names: builder.names,
            scanner,
            suspicion: OnceLock::new(),
            target_table,
            uses: builder.uses,
            prepared: Preparation::default(),
            grown: Grown::default(),
            paths: builder.paths,
            strings: wire.strings.into_iter().map(Into::into).collect(),
        })
    }

    /// What the directives set: the mode, access to bodies, limits, media types.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many rules there are; a chain is one rule.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// Whether any rule looks at the variable or expands it.
    pub fn uses(&self, variable: Variable) -> bool {
        self.uses.get(usize::from(variable.code())).copied().unwrap_or_default()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let prefilters = self.operators.iter().filter(|operator| operator.prefilter.is_some()).count();
        f.debug_struct("Engine")
            .field("rules", &self.rules.len())
            .field("operators", &self.operators.len())
            .field("prefilters", &prefilters)
            .field("sets of bytes", &self.scanner.sets())
            .finish_non_exhaustive()
    }
}

/// For each phase its rules in order. Resolves relative skips to the rule they lead to.
fn phases(rules: &mut [Rule]) -> Result<[Vec<u32>; 5], String> {
    let mut phases: [Vec<u32>; 5] = Default::default();
    for (at, rule) in rules.iter().enumerate() {
        let phase = phases.get_mut(usize::from(rule.phase).wrapping_sub(1));
        let at = u32::try_from(at).map_err(|_| "too many rules".to_owned())?;
        phase.ok_or_else(|| format!("rule {}: there is no phase {}", rule.id, rule.phase))?.push(at);
    }
    for phase in &phases {
        for (position, &at) in phase.iter().enumerate() {
            if let Some(rule) = rules.get_mut(at as usize).filter(|rule| rule.skip > 0 && rule.skip_to.is_none()) {
                let after = position.saturating_add(rule.skip as usize).saturating_add(1);
                rule.skip_to = Some(phase.get(after).copied().unwrap_or(u32::MAX));
            }
        }
    }
    Ok(phases)
}
