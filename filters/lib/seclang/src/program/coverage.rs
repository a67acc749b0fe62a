//! What a rule set can still do once its unconditional actions have run: a few lines at the wrong place switch off
//! everything behind them, and are valid all the same.

use std::collections::HashSet;

use super::wire::{self, ControlKind, Disruption};
use super::{EngineMode, Program};
use crate::id_set::IdSet;
use crate::operator::OperatorKind;
use crate::vocabulary::{Shape, Variable};

/// What the rules of a program do for an ordinary request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// The mode of the engine, as directives and unconditional rules set it.
    pub mode: EngineMode,
    /// The rule that switches the engine off for every request, by id; 0 for one without. `None` if none does.
    pub switched_off_by: Option<u64>,
    /// Whether request bodies are inspected.
    pub request_bodies: bool,
    /// Whether a rule that runs looks at anything but variables of the rules themselves (`TX`), and a match of it is
    /// denied, reported or counted.
    pub detects: bool,
    /// Whether a rule that runs denies.
    pub denies: bool,
}

/// The walk over the rules of a program.
struct Walk<'a> {
    program: &'a wire::Program,
    found: Coverage,
    removed_ids: IdSet,
    removed_tags: HashSet<&'a [u8]>,
}

impl Program {
    /// What the rules do for an ordinary request. Those of the sources `except` do not count: they guard the engine
    /// itself. Only rules without a condition are followed (`SecAction`, `@unconditionalMatch`, patterns that match
    /// everything); what happens after a match of any other rule is taken as meant.
    #[must_use]
    pub fn coverage(&self, except: &[&str]) -> Coverage {
        let settings = self.settings();
        let found = Coverage {
            mode: settings.mode,
            switched_off_by: None,
            request_bodies: settings.request_body_access,
            detects: false,
            denies: false,
        };
        let mut walk = Walk { program: &self.wire, found, removed_ids: IdSet::default(), removed_tags: HashSet::new() };
        for phase in 1..=4 {
            if walk.found.mode == EngineMode::Off || walk.phase(phase, except) == Rest::Skipped {
                break;
            }
        }
        walk.found
    }
}

/// Whether the phases behind one are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Run,
    Skipped,
}

impl<'a> Walk<'a> {
    fn phase(&mut self, phase: u32, except: &[&str]) -> Rest {
        let program = self.program;
        // The index to go on with, and the number of rules of the phase to leave out.
        let (mut next, mut skip) = (0, 0);
        for (index, rule) in (0_u32..).zip(&program.rules) {
            if rule.phase != phase || index < next || self.is_removed(rule) {
                continue;
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let disruption = Disruption::from_code(rule.disruption).unwrap_or(Disruption::Pass);
            if !self.is_from(rule, except) {
                self.found.denies |= disruption.blocks();
                let reports = rule.log || rule.audit_log || disruption.blocks();
                let counts = rule.links.iter().any(|link| !link.sets.is_empty());
                self.found.detects |=
                    (reports || counts) && (inspects(rule) || disruption.blocks() && is_certain(self.program, rule));
            }
            if !is_certain(program, rule) {
                continue;
            }
            for control in rule.links.iter().flat_map(|link| &link.controls) {
                self.control(control.kind.as_ref(), rule.id);
            }
            if self.found.mode == EngineMode::Off {
                return Rest::Skipped;
            }
            match disruption {
                Disruption::AllowPhase => return Rest::Run,
                // The phases of the response are run all the same, and do nothing for the request.
                Disruption::Allow | Disruption::AllowRequest => return Rest::Skipped,
                _ => {}
            }
            skip = rule.skip;
            next = next.max(rule.skip_to.saturating_sub(1));
        }
        Rest::Run
    }

    fn control(&mut self, control: Option<&'a ControlKind>, rule: u64) {
        match control {
            Some(ControlKind::RuleEngine(mode)) => {
                self.found.mode = EngineMode::from_code(*mode);
                if self.found.mode == EngineMode::Off {
                    self.found.switched_off_by = Some(rule);
                }
            }
            Some(ControlKind::RequestBodyAccess(access)) => self.found.request_bodies = *access,
            Some(ControlKind::RemoveById(range)) => self.removed_ids.insert(*range),
            Some(ControlKind::RemoveByTag(tag)) => _ = self.removed_tags.insert(tag),
            _ => {}
        }
    }

    fn is_removed(&self, rule: &wire::Rule) -> bool {
        let mut tags = rule.tags.iter().filter_map(|tag| self.string(*tag));
        self.removed_ids.contains(rule.id) || tags.any(|tag| self.removed_tags.contains(tag))
    }

    fn is_from(&self, rule: &wire::Rule, sources: &[&str]) -> bool {
        self.string(rule.origin).is_some_and(|origin| sources.iter().any(|source| source.as_bytes() == origin))
    }

    fn string(&self, index: u32) -> Option<&'a [u8]> {
        self.program.strings.get(usize::try_from(index).ok()?).map(Vec::as_slice)
    }
}

/// Whether a rule looks at anything but variables of the rules themselves.
fn inspects(rule: &wire::Rule) -> bool {
    let own = Some(Variable::Tx);
    let targets = rule.links.iter().filter(|link| link.operator != 0).flat_map(|link| &link.targets);
    targets.into_iter().any(|target| variable(target) != own)
}

/// Whether a rule matches every request.
fn is_certain(program: &wire::Program, rule: &wire::Rule) -> bool {
    rule.links.iter().all(|link| {
        let Some(index) = link.operator.checked_sub(1) else { return true };
        let operator = usize::try_from(index).ok().and_then(|index| program.operators.get(index));
        // A collection may be empty, and an empty one matches nothing.
        let is_there = |target: &wire::Target| {
            target.count || variable(target).is_some_and(|variable| variable.shape() == Shape::Scalar)
        };
        !link.negated && operator.is_some_and(matches_all) && link.targets.iter().any(is_there)
    })
}

fn matches_all(operator: &wire::Operator) -> bool {
    let is = |kind: OperatorKind| operator.kind == u32::from(kind.code());
    let patterns: [&[u8]; 6] = [b"", b"^", b"$", b".*", b"^.*", b"^.*$"];
    is(OperatorKind::UnconditionalMatch) || (is(OperatorKind::Rx) && patterns.contains(&operator.text.as_slice()))
}

fn variable(target: &wire::Target) -> Option<Variable> {
    Variable::from_code(u8::try_from(target.variable).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, compile};

    struct NoFiles;

    impl crate::DataFiles for NoFiles {
        fn read(&self, _name: &str) -> Option<Vec<u8>> {
            None
        }
    }

    const ATTACK: &str = "SecRule ARGS \"@contains attack\" \"id:100,phase:2,deny,status:403,tag:'a'\"\n";
    const GUARD: &str = "SecRule REQBODY_ERROR \"!@eq 0\" \"id:200000,phase:2,deny\"\n";

    fn of(text: &str) -> Coverage {
        let sources = [Source::new("guard.conf", GUARD), Source::new("rules", format!("SecRuleEngine On\n{text}"))];
        compile(&sources, &NoFiles).unwrap_or_else(|errors| panic!("{text}: {errors:?}")).coverage(&["guard.conf"])
    }

    #[test]
    fn rules_that_run_are_found() {
        let all =
            Coverage { mode: EngineMode::On, switched_off_by: None, request_bodies: true, detects: true, denies: true };
        assert_eq!(of(ATTACK), all);
        assert_eq!(of("SecAction \"id:1,phase:1,deny\""), all, "a closed door");
        assert_eq!(of(&ATTACK.replace("deny,status:403", "pass,log")), Coverage { denies: false, ..all });
        // What counts a score, and what denies by it.
        let scoring = "SecRule ARGS \"@contains a\" \"id:1,phase:2,pass,nolog,setvar:'tx.s=+5'\"\n\
                       SecRule TX:S \"@ge 5\" \"id:2,phase:2,deny\"";
        assert_eq!(of(scoring), all);
        // Conditions are meant.
        for honest in [
            "SecRule REQUEST_URI \"@beginsWith /health\" \"id:1,phase:1,pass,nolog,ctl:ruleEngine=Off\"\n",
            "SecRule REMOTE_ADDR \"@ipMatch 192.0.2.1\" \"id:1,phase:1,allow,nolog\"\n",
            "SecRule ARGS:x \"@rx .*\" \"id:1,phase:1,pass,nolog,ctl:ruleRemoveById=100\"\n",
            "SecRule TX:LEVEL \"@lt 1\" \"id:1,phase:2,pass,nolog,skipAfter:END\"\n",
            "SecAction \"id:1,phase:2,pass,nolog,skipAfter:NEAR\"\nSecMarker NEAR\n",
            "SecAction \"id:1,phase:2,pass,nolog,skip:1\"\nSecAction \"id:2,phase:2,pass\"\n",
            "SecAction \"id:1,phase:1,allow:phase,nolog\"\n",
            "SecAction \"id:1,phase:1,pass,nolog,ctl:ruleRemoveById=7\"\n",
        ] {
            assert_eq!(of(&format!("{honest}{ATTACK}SecMarker END")), all, "{honest}");
        }
    }

    #[test]
    fn rules_that_never_run_are_not() {
        for dead in [
            "",
            "SecRule TX:S \"@ge 5\" \"id:2,phase:2,deny\"",
            "SecAction \"id:1,phase:1,pass,nolog,setvar:'tx.s=1'\"",
            "SecAction \"id:1,phase:2,pass,nolog,skipAfter:END\"\nRULE\nSecMarker END",
            "SecAction \"id:1,phase:2,pass,nolog,skip:1\"\nRULE",
            "SecAction \"id:1,phase:1,allow,nolog\"\nRULE",
            "SecAction \"id:1,phase:1,allow:request,nolog\"\nRULE",
            "SecAction \"id:1,phase:2,allow:phase,nolog\"\nRULE",
            "SecAction \"id:1,phase:1,pass,nolog,ctl:ruleRemoveById=1-999999\"\nRULE",
            "SecAction \"id:1,phase:1,pass,nolog,ctl:ruleRemoveByTag=a\"\nRULE",
            "RULE\nSecRuleRemoveById 1-999999",
            "RULE\nSecRuleRemoveByTag a",
        ] {
            let found = of(&dead.replace("RULE\n", ATTACK).replace("RULE", ATTACK));
            assert!(!found.detects, "{dead}: {found:?}");
        }
    }

    #[test]
    fn what_switches_everything_off_is_named() {
        for condition in [
            "SecAction \"",
            "SecRule REMOTE_ADDR \"@unconditionalMatch\" \"",
            "SecRule REQUEST_URI|ARGS \"@rx .*\" \"",
            "SecRule &ARGS \"@unconditionalMatch\" \"",
        ] {
            let off = of(&format!("{condition}id:7,phase:1,pass,nolog,ctl:ruleEngine=Off\"\n{ATTACK}"));
            assert_eq!((off.mode, off.switched_off_by, off.detects), (EngineMode::Off, Some(7), false), "{condition}");
        }
        let directive = of(&format!("{ATTACK}SecRuleEngine Off"));
        assert_eq!((directive.mode, directive.switched_off_by), (EngineMode::Off, None));
        let dry = of(&format!("SecAction \"id:7,phase:1,pass,ctl:ruleEngine=DetectionOnly\"\n{ATTACK}"));
        assert_eq!((dry.mode, dry.detects), (EngineMode::DetectionOnly, true));
        for off in ["SecRequestBodyAccess Off", "SecAction \"id:7,phase:1,pass,ctl:requestBodyAccess=Off\""] {
            let found = of(&format!("{ATTACK}{off}"));
            assert_eq!((found.request_bodies, found.detects), (false, true), "{off}");
        }
    }
}
