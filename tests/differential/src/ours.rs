//! The answers of our engine.

use std::collections::BTreeSet;
use std::sync::Arc;

use seclang::{Engine, Program, Transaction, TransactionStart};

use super::case::Case;
use super::compare::SCORES;
use super::rules::SCORES_RULE;

/// What an engine says about an exchange.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The rules that matched and are in the logs: libmodsecurity reports those that are to be in both of them.
    pub ids: BTreeSet<u64>,
    /// The scores at the end, as text.
    pub scores: String,
}

impl Answer {
    /// Whether both say the same of a rule; of [`SCORES`], whether the scores are the same.
    #[must_use]
    pub fn agrees(&self, other: &Self, rule: u64) -> bool {
        match rule {
            SCORES => self.scores == other.scores,
            _ => self.ids.contains(&rule) == other.ids.contains(&rule),
        }
    }
}

/// Our engine with a rule set.
#[derive(Debug, Clone)]
pub struct Ours(Arc<Engine>);

impl Ours {
    /// Builds the engine.
    ///
    /// # Errors
    ///
    /// What the engine does not take of the program.
    pub fn new(program: Program) -> Result<Self, String> {
        Ok(Self(Arc::new(Engine::new(program).map_err(|error| error.to_string())?)))
    }

    /// Takes an exchange through the five phases.
    #[must_use]
    pub fn answer(&self, case: &Case) -> Answer {
        let start = TransactionStart {
            unique_id: b"differential".to_vec(),
            now_millis: 1_750_000_000_000,
            random: 7,
            client_addr: case.client.clone().into_bytes(),
            client_port: 40_000,
            server_addr: b"198.51.100.1".to_vec(),
            server_port: 443,
        };
        let mut transaction = Transaction::new(Arc::clone(&self.0), start);
        // libmodsecurity reads documents with a document type.
        transaction.allow_xml_doctype(true);
        transaction.read_declared_bodies_only(case.declared_only);
        transaction.request_line(&case.method, &case.uri, case.protocol.as_bytes());
        for (name, value) in &case.headers {
            transaction.request_header(name, value);
        }
        transaction.request_headers();
        transaction.request_body(&case.body, true);
        transaction.response_line(case.status, b"HTTP/1.1");
        for (name, value) in &case.response_headers {
            transaction.response_header(name, value);
        }
        transaction.response_headers();
        transaction.response_body(&case.response_body, true);
        transaction.logging();
        let mut answer = Answer::default();
        for rule in transaction.matched_rules().iter().filter(|rule| rule.logged && rule.audited) {
            if rule.rule_id == SCORES_RULE {
                answer.scores = String::from_utf8_lossy(&rule.msg).into_owned();
            } else {
                answer.ids.insert(rule.rule_id);
            }
        }
        answer
    }
}
