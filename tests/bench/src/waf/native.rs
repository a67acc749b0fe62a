//! The engine linked in.

use std::sync::Arc;
use std::time::Duration;

use seclang::body::decode::decode;
use seclang::{Program, Transaction, TransactionStart, Work};

use super::{Engine, NOW_MILLIS, SEED, Verdict, rule_headers, timed, word};
use crate::waf::cases::Case;
use proxy_host::traffic::Exchange;

/// The engine alone, without a plugin around it: what libmodsecurity is to a gateway's connector.
pub struct Native<'a> {
    engine: Arc<seclang::Engine>,
    cases: &'a [Case],
}

impl<'a> Native<'a> {
    /// Builds the engine of an encoded program.
    ///
    /// # Errors
    ///
    /// The bytes are no program.
    pub fn load(program: &[u8], cases: &'a [Case]) -> Result<Self, String> {
        let engine = seclang::Engine::new(Program::decode(program)?)?;
        Ok(Self { engine: Arc::new(engine), cases })
    }

    /// What the engine evaluates in a case.
    #[must_use]
    pub fn work(&self, case: usize) -> Work {
        self.run(case).0.work()
    }

    /// What an exchange is charged with, up to the first intervention. A body that can be decoded is.
    #[must_use]
    pub fn charged(&self, exchange: &Exchange) -> Work {
        let mut exchange = exchange.clone();
        let body = &mut exchange.request.body;
        let encoding = exchange.request.headers.iter().find(|(name, _)| name == b"content-encoding");
        if let Some(decoded) = encoding.and_then(|(_, encoding)| decode(encoding, body, usize::MAX, u32::MAX).ok()) {
            *body = decoded;
        }
        self.pass(&exchange).0.work()
    }

    fn run(&self, case: usize) -> (Transaction, Option<u16>) {
        self.pass(&self.cases[case].exchange)
    }

    fn pass(&self, exchange: &Exchange) -> (Transaction, Option<u16>) {
        let mut transaction = Transaction::new(Arc::clone(&self.engine), start(exchange));
        let refused = phases(&mut transaction, exchange);
        transaction.logging();
        (transaction, refused)
    }
}

impl Engine for Native<'_> {
    fn name(&self) -> &'static str {
        "native"
    }

    fn judge(&mut self, case: usize) -> Result<Verdict, String> {
        let (transaction, refused) = self.run(case);
        let logged = transaction.matched_rules().iter().filter(|rule| rule.logged);
        Ok(Verdict::new(refused, logged.map(|rule| rule.rule_id).collect()))
    }

    fn measure(&mut self, case: usize, count: usize, budget: Duration) -> Result<Vec<u64>, String> {
        Ok(timed(count, budget, || drop(self.run(case))))
    }
}

fn start(exchange: &Exchange) -> TransactionStart {
    let (address, port) = exchange.request.peer.rsplit_once(':').unwrap_or_default();
    TransactionStart {
        unique_id: b"bench".to_vec(),
        now_millis: NOW_MILLIS,
        random: SEED,
        client_addr: address.into(),
        client_port: port.parse().unwrap_or(0),
        server_addr: b"198.51.100.1".to_vec(),
        server_port: 443,
    }
}

/// The phases up to the first intervention, whose status it gives.
fn phases(transaction: &mut Transaction, exchange: &Exchange) -> Option<u16> {
    let (request, response) = (&exchange.request, &exchange.response);
    transaction.request_line(word(exchange, ":method"), word(exchange, ":path"), &request.protocol);
    for (name, value) in rule_headers(exchange) {
        transaction.request_header(name, value);
    }
    if let Some(intervention) = transaction.request_headers() {
        return Some(intervention.status);
    }
    if let Some(intervention) = transaction.request_body(&request.body, true) {
        return Some(intervention.status);
    }
    transaction.response_line(response.status, &request.protocol);
    for (name, value) in &response.headers {
        transaction.response_header(name, value);
    }
    if let Some(intervention) = transaction.response_headers() {
        return Some(intervention.status);
    }
    transaction.response_body(&response.body, true).map(|intervention| intervention.status)
}
