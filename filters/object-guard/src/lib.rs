//! The object guard: consumers that read more objects than they should.
//!
//! A request names an object by a declared path, by the matched operation of an API contract, or by an identifier in its path. Of each
//! consumer and kind of objects a node notices a surge of objects, a walk over numbers and an enumeration with denials; these are signals,
//! on which a threat response acts. A budget limits how many distinct objects a consumer may read in a window on all nodes together;
//! beyond it the guard refuses.

mod budget;
#[cfg(feature = "control")]
pub mod control;
mod messages;
mod object;
mod record;
mod report;
mod shape;
mod spelling;
mod template;
mod watch;

use exchange::{Answer, Build, Category, Exchange, Host, Plugin, PluginDefinition, Refusal, Role, Slot, Verdict};
use prost::Message as _;

use budget::{Budgets, Outcome, Spending, Uncounted};
pub use messages::{EnumerationLimits, ObjectGuardStep, ObjectPath, SurgeLimits, WalkLimits};
use object::{Kind, Naming};
use record::Limits;
use watch::{Place, Watch};

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("object-guard", build).role(Role::Detector);

/// The status of a refusal.
const TOO_MANY_REQUESTS: u16 = 429;
/// After how many seconds a request may be tried again that could not be counted.
const OVERRUN_RETRY: &str = "1";

struct ObjectGuard {
    naming: Naming,
    watch: Watch,
    limits: Limits,
    contribute: bool,
    budgets: Budgets,
    /// The budget of kinds without one of their own; 0 for none.
    budget: u32,
    budget_window_seconds: u32,
    /// What is beyond a budget is only reported.
    budget_logs: bool,
    denied: Vec<u16>,
}

/// What is remembered of one request for an object.
struct Asked {
    place: Place,
    kind: Kind,
    /// The tags that it has in the score.
    signalled: Vec<&'static str>,
    /// What a budget is asked for.
    spending: Option<Spending>,
    /// The request went on before the budget was known: it is asked again while the response is held.
    is_open: bool,
}

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = ObjectGuardStep::decode(config).map_err(|error| error.to_string())?;
    let missing = "the object guard has no limits";
    let limits = Limits {
        surge: step.surge.ok_or(missing)?,
        walk: step.walk.ok_or(missing)?,
        enumeration: step.enumeration.ok_or(missing)?,
    };
    let statuses = limits.enumeration.statuses.iter();
    Ok(Box::new(ObjectGuard {
        naming: Naming::new(&step.paths, step.auto_detect)?,
        watch: Watch::new(limits.clone(), step.max_keys),
        denied: statuses.filter_map(|status| u16::try_from(*status).ok()).collect(),
        limits,
        contribute: step.contribute,
        budgets: Budgets::new(step.budget_window_seconds)?,
        budget: step.budget,
        budget_window_seconds: step.budget_window_seconds,
        budget_logs: step.budget_logs,
    }))
}

impl Plugin for ObjectGuard {
    fn request(&self, exchange: &mut Exchange, _has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(consumer) = exchange.caller.identity().map(|identity| identity.key()) else { return Verdict::Pass };
        let read = self.naming.with_object(exchange, |mut object| {
            let member = object.member();
            let (patterns, place) = self.watch.read(&consumer, (&mut object, &member), exchange, host);
            let (limit, kind) = (object.budget.unwrap_or(self.budget), object.kind);
            let spent = (limit > 0).then(|| self.budgets.spend((&consumer, &kind.key), member, limit, host));
            (patterns, place, kind, spent)
        });
        let Some((patterns, place, kind, spent)) = read else { return Verdict::Pass };
        let mut signalled = Vec::new();
        self.tell(&patterns, &kind, &mut signalled, exchange, host);
        let (spending, outcome) = spent.unzip();
        slot.put(Asked { place, kind, signalled, spending, is_open: false });
        outcome.map_or(Verdict::Pass, |outcome| self.act(outcome, exchange, slot, host))
    }

    fn answered(&self, exchange: &mut Exchange, answer: Answer, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(spending) = slot.get::<Asked>().and_then(|asked| asked.spending.as_mut()) else {
            return Verdict::Pass;
        };
        let outcome = self.budgets.answered(spending, &answer, host);
        self.act(outcome, exchange, slot, host)
    }

    fn response(&self, exchange: &mut Exchange, _has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let status = exchange.response.as_ref().map(|response| response.status);
        // What a gateway has refused says nothing of the objects that there are.
        let Some(mut asked) = slot.take::<Asked>().filter(|_| !exchange.answered) else { return Verdict::Pass };
        if status.is_some_and(|status| self.denied.contains(&status)) {
            let patterns = self.watch.denied(&asked.place, host);
            self.tell(&patterns, &asked.kind, &mut asked.signalled, exchange, host);
            return Verdict::Pass;
        }
        // The object is in the response: what brings a question to its end in front of the backend is no way around the budget.
        match asked.spending.as_ref().filter(|_| asked.is_open) {
            Some(spending) => {
                let outcome = self.budgets.known(spending, host);
                slot.put(asked);
                self.act(outcome, exchange, slot, host)
            }
            None => Verdict::Pass,
        }
    }
}

impl ObjectGuard {
    /// Acts on what is known of a budget.
    fn act(&self, outcome: Outcome, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) -> Verdict {
        match outcome {
            Outcome::Within => return Verdict::Pass,
            Outcome::Ask(ask) => return Verdict::Ask(ask),
            Outcome::Unanswered(why) => {
                self.report_uncounted(why, exchange, host);
                return Verdict::Pass;
            }
            Outcome::Overrun => return self.overrun(exchange, slot, host),
            Outcome::Beyond => {}
        }
        let Some(asked) = slot.get::<Asked>() else { return Verdict::Pass };
        let Some(spending) = &asked.spending else { return Verdict::Pass };
        let ends_in = self.budgets.ends_in(spending, host);
        let (reason, about) = self.beyond(&asked.kind, (spending.limit, ends_in), exchange, host);
        if self.budget_logs {
            self.report_beyond((&reason, about), spending.key(), exchange, host);
            return Verdict::Pass;
        }
        slot.take::<Asked>();
        let refusal = Refusal::new(TOO_MANY_REQUESTS, Category::Objects, reason).about(about);
        Verdict::Refuse(refusal.header("retry-after", ends_in.to_string()))
    }

    /// The wait for the control plane was given up because of what callers send. A method that takes uploads is not refused for it:
    /// the budget is asked again before the response goes on, and only a second time decides.
    fn overrun(&self, exchange: &mut Exchange, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(asked) = slot.get::<Asked>() else { return Verdict::Pass };
        let may_upload = matches!(exchange.request.method.as_slice(), b"POST" | b"PUT" | b"PATCH");
        if exchange.response.is_none() && (may_upload || self.budget_logs) {
            asked.is_open = true;
            return Verdict::Pass;
        }
        if self.budget_logs {
            self.report_uncounted(Uncounted::Overrun, exchange, host);
            return Verdict::Pass;
        }
        let (reason, about) = self.uncounted(&asked.kind, exchange, host);
        slot.take::<Asked>();
        let refusal = Refusal::new(TOO_MANY_REQUESTS, Category::Objects, reason).about(about);
        Verdict::Refuse(refusal.header("retry-after", OVERRUN_RETRY.to_owned()))
    }
}

#[cfg(test)]
mod tests;
