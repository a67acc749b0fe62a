//! A transaction: the state of one request and its response.

use std::rc::Rc;
use std::sync::Arc;

use super::arena::{Arena, EMPTY, Value};
use super::body::{BodyLimits, Incoming};
use super::budget::{Budget, BudgetLimits};
use super::build::Engine;
use super::captured::CapturedValues;
use super::collect::Item;
use super::lookups::{Lookups, Place};
use super::persist::Persistence;
use super::phase_summary::PhaseSummary;
use super::report::{ExceededLimit, Intervention, MatchedRule, Work};
use super::rules::{RuleFilter, Target};
use super::sanitise::Sanitised;
use super::store::{Collection, Entry, Matches, Memory, TxStore};
use super::uninspected::Uninspected;
use crate::body::{Charset, RestOfBody};
use crate::operator::{BACKTRACK_BUDGET, Captures};
use crate::program::{EngineMode, XmlArguments};
use crate::vocabulary::Variable;

/// An absent variable, as opposed to an empty one.
pub(super) const UNSET: Value = u32::MAX;

/// The data of the connection, present when a transaction begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionStart {
    /// UNIQUE_ID.
    pub unique_id: Vec<u8>,
    /// Now, milliseconds since 1970, UTC.
    pub now_millis: u64,
    /// A random number: the id of the transaction if `unique_id` is empty.
    pub random: u64,
    /// REMOTE_ADDR, as text.
    pub client_addr: Vec<u8>,
    /// REMOTE_PORT.
    pub client_port: u16,
    /// SERVER_ADDR, as text.
    pub server_addr: Vec<u8>,
    /// SERVER_PORT.
    pub server_port: u16,
}

/// Where an argument came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentSource {
    /// The query: ARGS_GET.
    Query,
    /// A form: ARGS_POST.
    Form,
    /// A JSON body: in ARGS alone, as in ModSecurity v3.
    Json,
}

/// How far `allow` reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    Nothing,
    /// Phases 1 and 2.
    Request,
    /// Phases 1 to 4.
    Everything,
}

/// One request and its response. Call the methods in the order of an exchange; each phase runs once.
pub struct Transaction {
    pub(super) engine: Arc<Engine>,
    pub(super) start: TransactionStart,
    pub(super) mode: EngineMode,
    pub(super) arena: Arena,
    pub(super) scalars: [Value; Variable::COUNT],
    pub(super) arguments: Vec<(ArgumentSource, Entry)>,
    /// Names of arguments that are too long to be kept with their values: see [`super::limits::NAME_LENGTH`].
    pub(super) long_names: Vec<(ArgumentSource, Entry)>,
    pub(super) request_headers: Collection,
    pub(super) response_headers: Collection,
    pub(super) cookies: Collection,
    pub(super) files: Collection,
    pub(super) file_sizes: Collection,
    pub(super) file_contents: Collection,
    pub(super) part_headers: Collection,
    pub(super) part_names: Collection,
    pub(super) part_filenames: Collection,
    pub(super) matched: Matches,
    pub(super) ip: Collection,
    pub(super) global: Collection,
    pub(super) session: Collection,
    pub(super) user: Collection,
    pub(super) resource: Collection,
    pub(super) environment: Collection,
    pub(super) persistence: Persistence,
    /// What the node knows of addresses.
    pub(super) lookups: Option<Rc<dyn Lookups>>,
    /// What `@geoLookup` found last, and its fields once a rule has read them.
    pub(super) place: Option<Place>,
    pub(super) geo: Collection,
    pub(super) sanitised: Sanitised,
    /// Milliseconds since 1970, as of the last [`Transaction::set_now`].
    pub(super) now_millis: u64,
    pub(super) tx: TxStore,
    pub(super) xml_text: Option<Value>,
    /// `REQUEST_BODY` is set whatever the body is parsed as.
    pub(super) force_request_body: bool,
    /// The undecoded body, for `FULL_REQUEST`.
    pub(super) raw_body: Option<Value>,
    pub(super) xml_attributes: Vec<Value>,
    /// The literals in the document type of an XML body.
    pub(super) xml_literals: Vec<Value>,
    /// XML bodies may have a document type that declares something.
    pub(super) xml_doctype: bool,
    pub(super) declared_bodies_only: bool,
    pub(super) full_request: Option<Value>,
    pub(super) body_seen: bool,
    pub(super) content_type: Value,
    /// The character set that the request names.
    pub(super) charset: Charset,
    pub(super) request_body_access: bool,
    pub(super) response_body_access: bool,
    /// In bytes.
    pub(super) request_body_limit: u64,
    /// Limits that the caller sets.
    pub(super) body_ceiling: BodyLimits,
    /// Exceeded limits do not refuse the request.
    pub(super) fails_open: bool,
    pub(super) incoming: Incoming,
    /// The state of the rest of a long body.
    pub(super) rest: RestOfBody,
    /// In bytes.
    pub(super) response_body_limit: u64,
    pub(super) xml_arguments: XmlArguments,
    /// The values that XPath expressions select, each with the index of its expression.
    pub(super) xml_nodes: Vec<(usize, Value)>,
    pub(super) highest_severity: u8,
    /// For each rule, whether a `ctl` removed it; empty while none did.
    pub(super) removed: Vec<bool>,
    /// The rule and the position of the `ctl` that removes a target.
    pub(super) removed_targets: Vec<RemovedTarget>,
    /// Whether a removed target is a name of TX.
    pub(super) names_removed: bool,
    pub(super) allowed: Allowed,
    pub(super) current_rule: Option<u32>,
    pub(super) in_rule_fields: bool,
    pub(super) captures: Captures,
    pub(super) scratch: Captures,
    pub(super) captured_values: CapturedValues,
    pub(super) items: Vec<Item>,
    pub(super) matched_rules: Vec<MatchedRule>,
    /// The indexes of all rules that matched, in order.
    pub(super) order: Vec<u32>,
    pub(super) intervention: Option<Intervention>,
    pub(super) would_block: Option<Intervention>,
    pub(super) work: Work,
    pub(super) exceeded: Vec<ExceededLimit>,
    /// Whether the phase ended at the ceiling of the budget.
    pub(super) overdrawn: bool,
    /// Whether the response has its own budget.
    pub(super) responding: bool,
    /// The number of the current test in the arena.
    pub(super) current_test: u32,
    pub(super) uninspected: Vec<Uninspected>,
    /// Whether the current test gave up at a limit.
    pub(super) gave_up: bool,
    pub(super) summary: PhaseSummary,
    /// The phase summary of the last phase is still valid.
    pub(super) summary_is_current: bool,
    /// The phase summary belongs to this transaction.
    pub(super) has_summary: bool,
    /// Buffers for expanded macros: the argument of an operator, the name of an assignment, its value.
    pub(super) argument: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) text: Vec<u8>,
    /// A buffer for names.
    pub(super) name: Vec<u8>,
    /// The phase that ran last; 0 before the first.
    pub(super) phases: u8,
    /// Whether the predictions of constant propagation hold: no rule and no name of TX they rely on was removed, no
    /// phase left out.
    pub(super) follows_prediction: bool,
}

/// The position of a `ctl:ruleRemoveTarget*` that took effect: rule, link, control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemovedTarget {
    pub(super) rule: u32,
    pub(super) link: u32,
    pub(super) control: u32,
}

impl RemovedTarget {
    pub(super) fn resolve(self, engine: &Engine) -> Option<(&RuleFilter, &Target)> {
        let link = engine.rules.get(self.rule as usize)?.links.get(self.link as usize)?;
        match link.controls.get(self.control as usize)? {
            super::rules::Control::RemoveTarget(filter, target) => Some((filter, target)),
            _ => None,
        }
    }
}

impl Transaction {
    /// A transaction before its request.
    pub fn new(engine: Arc<Engine>, start: TransactionStart) -> Self {
        let settings = &engine.settings;
        let mut memory = engine.pool.take(&engine.constants);
        memory.tx.reset(&engine.names);
        memory.arena.budget = Budget::default();
        let Memory { arena, summary, items, name, arguments, long_names, request_headers, response_headers, .. } =
            memory;
        let Memory { cookies, matched, tx, order, argument, key, text, .. } = memory;
        let mut transaction = Self {
            mode: settings.mode,
            request_body_access: settings.request_body_access,
            response_body_access: settings.response_body_access,
            request_body_limit: settings.request_body_limit,
            body_ceiling: BodyLimits::default(),
            fails_open: false,
            incoming: Incoming::default(),
            rest: RestOfBody::default(),
            response_body_limit: settings.response_body_limit,
            xml_arguments: settings.xml_arguments,
            xml_nodes: Vec::new(),
            tx,
            arena,
            scalars: [EMPTY; Variable::COUNT],
            arguments,
            long_names,
            request_headers,
            response_headers,
            cookies,
            files: Collection::default(),
            file_sizes: Collection::default(),
            file_contents: Collection::default(),
            part_headers: Collection::default(),
            part_names: Collection::default(),
            part_filenames: Collection::default(),
            matched,
            ip: Collection::default(),
            global: Collection::default(),
            session: Collection::default(),
            user: Collection::default(),
            resource: Collection::default(),
            environment: Collection::default(),
            persistence: Persistence::default(),
            lookups: None,
            place: None,
            geo: Collection::default(),
            sanitised: Sanitised::default(),
            now_millis: start.now_millis,
            start,
            xml_text: None,
            force_request_body: false,
            raw_body: None,
            xml_attributes: Vec::new(),
            xml_literals: Vec::new(),
            xml_doctype: false,
            declared_bodies_only: false,
            full_request: None,
            body_seen: false,
            content_type: EMPTY,
            charset: Charset::Unnamed,
            highest_severity: 255,
            removed: Vec::new(),
            removed_targets: Vec::new(),
            names_removed: false,
            allowed: Allowed::Nothing,
            current_rule: None,
            in_rule_fields: false,
            captures: Captures::new(),
            scratch: Captures::new(),
            captured_values: CapturedValues::default(),
            items,
            matched_rules: Vec::new(),
            order,
            intervention: None,
            would_block: None,
            work: Work::default(),
            exceeded: Vec::new(),
            uninspected: Vec::new(),
            gave_up: false,
            current_test: 0,
            overdrawn: false,
            responding: false,
            summary,
            argument,
            key,
            text,
            summary_is_current: false,
            has_summary: false,
            name,
            phases: 0,
            follows_prediction: true,
            engine,
        };
        transaction.set_connection();
        transaction
    }

    /// Continues the budget of another transaction for the same request.
    pub fn share_budget(&mut self, other: &Self) {
        self.arena.budget.go_on_from(&other.arena.budget);
    }

    fn set_connection(&mut self) {
        let id = match self.start.unique_id.is_empty() {
            true => format!("{}{:016x}", self.start.now_millis, self.start.random).into_bytes(),
            false => self.start.unique_id.clone(),
        };
        let client = self.arena.push(&self.start.client_addr);
        self.set_scalar(Variable::RemoteAddr, client);
        self.set_scalar(Variable::RemoteHost, client);
        self.set_scalar(Variable::RemoteUser, UNSET);
        for (variable, bytes) in [
            (Variable::UniqueId, id),
            (Variable::RemotePort, self.start.client_port.to_string().into_bytes()),
            (Variable::ServerAddr, self.start.server_addr.clone()),
            (Variable::ServerPort, self.start.server_port.to_string().into_bytes()),
            (Variable::ModsecBuild, b"030015100".to_vec()),
            (Variable::WebAppId, self.engine.settings.web_app_id.clone()),
        ] {
            self.set_scalar_bytes(variable, bytes);
        }
        let zero = self.arena.number(0);
        for variable in [
            Variable::Duration,
            Variable::MscPcreError,
            Variable::MscPcreLimitsExceeded,
            Variable::InboundDataError,
            Variable::OutboundDataError,
        ] {
            self.set_scalar(variable, zero);
        }
    }

    /// Sets the time, milliseconds since 1970, for DURATION and the age of records; until the first call it is the
    /// start. Never goes back.
    pub fn set_now(&mut self, now_millis: u64) {
        self.now_millis = self.now_millis.max(now_millis);
        let duration = self.now_millis.saturating_sub(self.start.now_millis);
        self.set_scalar_bytes(Variable::Duration, duration.to_string());
    }

    /// Whether an XML body may have a document type that declares entities or refers to another file. By default such a
    /// document type is an error of the body. Either way its literals are among `XML:/*`.
    pub fn allow_xml_doctype(&mut self, allow: bool) {
        self.xml_doctype = allow;
    }

    /// Whether a body is parsed only as its declared type, and nothing in a way that only some applications have: for comparisons with
    /// other engines.
    pub fn read_declared_bodies_only(&mut self, only: bool) {
        self.declared_bodies_only = only;
    }

    pub(super) fn set_scalar(&mut self, variable: Variable, value: Value) {
        if let Some(cell) = self.scalars.get_mut(usize::from(variable.code())) {
            *cell = value;
        }
    }

    pub(super) fn set_scalar_bytes(&mut self, variable: Variable, bytes: impl AsRef<[u8]>) {
        let value = self.arena.push(bytes);
        self.set_scalar(variable, value);
    }

    /// Sets the ceilings of the budget, before anything else is done.
    pub fn set_budget(&mut self, limits: BudgetLimits) {
        self.arena.budget.set_limits(limits);
    }

    /// Runs phase 5. Nothing can be blocked any more.
    pub fn logging(&mut self) {
        self.arena.budget.renew_for_last_phase();
        self.run_phase(5);
        self.mask_reports();
    }

    /// The rules that matched so far and that are logged, audited or disruptive, in order, at most
    /// [`super::limits::MATCHED_RULES`].
    pub fn matched_rules(&self) -> &[MatchedRule] {
        &self.matched_rules
    }

    /// The ids of all rules that matched so far, in order, including those that are not logged: most matches only
    /// assign variables. At most [`super::limits::MATCHED_IDS`].
    pub fn matched_ids(&self) -> impl Iterator<Item = u64> {
        self.order.iter().filter_map(|at| self.engine.rules.get(*at as usize)).map(|rule| rule.id)
    }

    /// The first intervention that a rule demanded, or would have demanded outside detection-only mode.
    pub fn would_block(&self) -> Option<&Intervention> {
        self.would_block.as_ref()
    }

    /// How much was evaluated so far.
    pub fn work(&self) -> Work {
        let spent = |captures: &Captures| BACKTRACK_BUDGET.saturating_sub(captures.backtracks_left());
        let backtracks = u64::try_from(spent(&self.captures) + spent(&self.scratch)).unwrap_or(u64::MAX);
        let budget = &self.arena.budget;
        Work {
            backtracks,
            transformed: budget.transformed,
            scanned: budget.scanned,
            searched: budget.searched,
            values: budget.values,
            name_bytes: budget.name_bytes,
            spent: budget.spent(),
            ..self.work
        }
    }

    /// The rules that gave up at a limit so far, each once, at most [`super::limits::EXCEEDED_RULES`]. It is unknown
    /// whether they match.
    pub fn exceeded_limits(&self) -> &[ExceededLimit] {
        &self.exceeded
    }

    /// The mode the transaction is in: the engine's, unless a rule changed it.
    pub fn mode(&self) -> EngineMode {
        self.mode
    }

    /// The first value of a variable (`REQUEST_URI`, with an empty key) or of a name in a collection (`TX`, `score`).
    pub fn variable(&self, collection: &[u8], key: &[u8]) -> Option<Vec<u8>> {
        let variable = Variable::from_name(std::str::from_utf8(collection).ok()?)?;
        let same = |entry: &&Entry| self.arena.get(entry.name).eq_ignore_ascii_case(key);
        let value = match variable {
            Variable::Tx => match self.engine.names.slot(key) {
                Some(slot) => self.tx.get(slot)?,
                None => self.tx.dynamic.iter().find(same)?.value,
            },
            Variable::Args => self.arguments.iter().map(|(_, entry)| entry).find(same)?.value,
            Variable::RequestHeaders => self.request_headers.entries.iter().find(same)?.value,
            Variable::ResponseHeaders => self.response_headers.entries.iter().find(same)?.value,
            Variable::RequestCookies => self.cookies.entries.iter().find(same)?.value,
            Variable::Files => self.files.entries.iter().find(same)?.value,
            Variable::Ip => self.ip.entries.iter().find(same)?.value,
            Variable::Global => self.global.entries.iter().find(same)?.value,
            Variable::Session => self.session.entries.iter().find(same)?.value,
            Variable::User => self.user.entries.iter().find(same)?.value,
            Variable::Resource => self.resource.entries.iter().find(same)?.value,
            Variable::Env => self.environment.entries.iter().find(same)?.value,
            Variable::Geo => {
                let place = self.place.as_ref()?;
                let found = place.fields().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(key))?;
                return Some(found.1.into());
            }
            Variable::HighestSeverity => return Some(self.highest_severity.to_string().into_bytes()),
            _ if key.is_empty() => self.scalars.get(usize::from(variable.code())).copied()?,
            _ => return None,
        };
        (value != UNSET).then(|| self.arena.get(value).to_vec())
    }
}

impl Transaction {
    /// Borrows a hot cache from the engine, until [`Transaction::return_hot_cache`].
    pub(super) fn borrow_hot_cache(&mut self) {
        if !self.arena.hot_cache.is_enabled() {
            self.arena.hot_cache = self.engine.pool.lend_hot_cache();
        }
    }

    /// Returns the hot cache to the engine.
    pub(super) fn return_hot_cache(&mut self) {
        if self.arena.hot_cache.is_enabled() {
            self.engine.pool.take_back_hot_cache(std::mem::take(&mut self.arena.hot_cache));
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.return_hot_cache();
        self.engine.bound_automata(self.arena.budget.spent().work);
        self.engine.pool.give_back(Memory {
            arena: std::mem::take(&mut self.arena),
            summary: std::mem::take(&mut self.summary),
            items: std::mem::take(&mut self.items),
            name: std::mem::take(&mut self.name),
            arguments: std::mem::take(&mut self.arguments),
            long_names: std::mem::take(&mut self.long_names),
            request_headers: std::mem::take(&mut self.request_headers),
            response_headers: std::mem::take(&mut self.response_headers),
            cookies: std::mem::take(&mut self.cookies),
            matched: std::mem::take(&mut self.matched),
            tx: std::mem::take(&mut self.tx),
            order: std::mem::take(&mut self.order),
            argument: std::mem::take(&mut self.argument),
            key: std::mem::take(&mut self.key),
            text: std::mem::take(&mut self.text),
        });
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("matched_rules", &self.matched_rules.len()).finish_non_exhaustive()
    }
}
