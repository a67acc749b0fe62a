//! What a VM does when its time has come: timers, answers of clusters, exchanges that were held for too long.

use super::clusters::{Answer, Delivery, UNAVAILABLE, Word, unreachable};
use super::node::Mail;
use super::state::{CallKind, Incoming};
use super::vm::{Arrival, Vm};
use crate::traffic::{Fault, Headers};

impl Vm {
    /// Moves the node's clock on and runs what is due on its way, each at its time.
    ///
    /// # Errors
    ///
    /// The filter died of a timer; it was started anew.
    pub fn advance(&mut self, millis: u64) -> Result<(), Fault> {
        let end = self.node().now_millis().saturating_add(millis);
        while let Some(due) = self.next_event().filter(|due| *due <= end) {
            let now = self.node().now_millis().max(due);
            self.node().set_now_millis(now);
            self.run_due()?;
        }
        self.node().set_now_millis(end);
        Ok(())
    }

    /// When this VM has something to do by itself, in milliseconds since the Unix epoch; `None` for never.
    #[must_use]
    pub fn next_event(&self) -> Option<u64> {
        let held = || self.deadlines.iter().find(|(at, id)| self.waits(*id, *at)).map(|(at, _)| *at);
        let arrival = self.due.keys().next().map(|(at, _)| *at);
        [self.next_tick().map(|(due, _)| due), arrival, held()].into_iter().flatten().min()
    }

    /// Nothing is under way and nothing is on its way: timers alone can make anything happen.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ways.is_empty() && self.due.is_empty()
    }

    /// When the VM last did anything that could be seen outside of its memory: a log line, a changed value, a metric, a
    /// message, a call. In milliseconds since the Unix epoch.
    #[must_use]
    pub fn last_effect(&self) -> u64 {
        self.last_effect.0
    }

    /// Leaves out the ticks before the last one that is due until `end`; how many. The others keep their times.
    pub fn skip_ticks(&mut self, end: u64) -> u64 {
        if self.callbacks.tick.is_none() {
            return 0;
        }
        let timers = self.store.data_mut().timers.values_mut().filter(|timer| timer.period > 0);
        let skipped = timers.map(|timer| {
            let period = u64::from(timer.period);
            let skipped = end.saturating_sub(timer.next) / period;
            timer.next += skipped * period;
            skipped
        });
        skipped.sum()
    }

    /// Runs all that is due by now.
    ///
    /// # Errors
    ///
    /// The filter died outside of an exchange; it was started anew.
    pub fn run_due(&mut self) -> Result<(), Fault> {
        loop {
            let result = self.run_first_due();
            let went_on = self.guard(result)?;
            self.settle();
            self.note_effects();
            if !went_on {
                return Ok(());
            }
        }
    }

    /// Hears what was said and lets exchanges go on that may, until there is nothing of either.
    pub(super) fn settle(&mut self) {
        loop {
            self.listen();
            self.collect_mail();
            let Some(context) = self.store.data_mut().touched.pop_front() else { return };
            self.look_after(context);
        }
    }

    pub(super) fn note_effects(&mut self) {
        let effects = self.store.data().effects;
        if effects != self.last_effect.1 {
            self.last_effect = (self.node().now_millis(), effects);
        }
    }

    /// Takes what the filter has said to where it is heard.
    pub(super) fn listen(&mut self) {
        let (worker, now) = (self.worker(), self.node().now_millis());
        while let Some(word) = self.store.data_mut().words.pop_front() {
            let answers = match &mut self.clusters {
                Some(clusters) => clusters.hear(worker, now, word),
                None => unheard(worker, word),
            };
            for Answer { worker: to, token, after_millis, delivery } in answers {
                let at = now.saturating_add(after_millis.max(1));
                if to == worker {
                    self.expect(at, Arrival::Answer(token, delivery));
                } else {
                    self.node().post(to, Mail::Answer(at, token, delivery));
                }
            }
        }
        if self.clusters.is_some() {
            self.store.data_mut().grpc.retain(|stream| !stream.closed);
        }
    }

    /// Takes what other workers have left for this one.
    pub fn collect_mail(&mut self) {
        let (node, worker) = (self.node().clone(), self.worker());
        while let Some(mail) = node.mail(worker) {
            match mail {
                Mail::Answer(at, token, delivery) => self.expect(at, Arrival::Answer(token, delivery)),
                Mail::Queue(id) => self.expect(node.now_millis().saturating_add(1), Arrival::Queue(id)),
            }
        }
    }

    fn expect(&mut self, at: u64, arrival: Arrival) {
        self.arrivals += 1;
        self.due.insert((at, self.arrivals), arrival);
    }

    /// One of what is due; whether there was any. Answers come before the timer, the timer before deadlines.
    fn run_first_due(&mut self) -> Result<bool, Fault> {
        let now = self.node().now_millis();
        if let Some(first) = self.due.first_entry().filter(|first| first.key().0 <= now) {
            let arrival = first.remove();
            return self.arrive(arrival).map(|()| true);
        }
        if let Some((_, root)) = self.next_tick().filter(|(due, _)| *due <= now) {
            return self.tick(root, now).map(|()| true);
        }
        while let Some((at, context)) = self.deadlines.front().copied() {
            if self.waits(context, at) && at > now {
                return Ok(false);
            }
            self.deadlines.pop_front();
            if self.waits(context, at) {
                self.give_up(context);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Once however late it is: the gateway sets the timer again after it ran.
    fn tick(&mut self, root: u32, now: u64) -> Result<(), Fault> {
        if let Some(tick) = self.callbacks.tick.clone() {
            self.call(&tick, "on_tick", root, root)?;
        }
        if let Some(timer) = self.store.data_mut().timers.get_mut(&root) {
            timer.next = now.saturating_add(u64::from(timer.period));
        }
        Ok(())
    }

    /// When the next timer is due, and of which root context.
    fn next_tick(&self) -> Option<(u64, u32)> {
        let timers = self.store.data().timers.iter().filter(|(_, timer)| timer.period > 0);
        let next = timers.map(|(root, timer)| (timer.next, *root)).min();
        next.filter(|_| self.callbacks.tick.is_some())
    }

    /// Tells the filter.
    pub(super) fn arrive(&mut self, arrival: Arrival) -> Result<(), Fault> {
        match arrival {
            Arrival::Queue(id) => self.call_by_name("proxy_on_queue_ready", self.root(), (self.root(), id)),
            Arrival::Answer(token, delivery) => {
                let state = self.store.data_mut();
                let call = state.calls.get(&token).copied();
                let stream = state.grpc.iter().find(|stream| stream.token == token && !stream.closed);
                let stream = stream.map(|stream| stream.context);
                let result = match (call, stream) {
                    (Some((context, kind)), _) => self.answer_call(token, context, kind, delivery),
                    (None, Some(context)) => self.tell_stream(token, context, delivery),
                    // It was given up in the meantime.
                    (None, None) => Ok(()),
                };
                self.store.data_mut().incoming = Incoming::default();
                result
            }
        }
    }

    fn answer_call(&mut self, token: u32, context: u32, kind: CallKind, delivery: Delivery) -> Result<(), Fault> {
        let state = self.store.data_mut();
        state.calls.remove(&token);
        state.incoming.kind = Some(kind);
        let incoming = &mut state.incoming;
        match (kind, delivery) {
            (CallKind::Http, Delivery::Response { headers, body, trailers }) => {
                let counts = (number(headers.len()), number(body.len()), number(trailers.len()));
                (incoming.headers, incoming.body, incoming.trailers) = (Some(headers), Some(body), Some(trailers));
                let (headers, body, trailers) = counts;
                self.call_by_name("proxy_on_http_call_response", context, (context, token, headers, body, trailers))
            }
            (CallKind::Http, _) => {
                self.call_by_name("proxy_on_http_call_response", context, (context, token, 0_u32, 0_u32, 0_u32))
            }
            (CallKind::Grpc, Delivery::Message(message)) => {
                let size = number(message.len());
                incoming.body = Some(message);
                self.call_by_name("proxy_on_grpc_receive", context, (context, token, size))
            }
            (CallKind::Grpc, Delivery::Close(status, message)) => {
                incoming.status = (status, message);
                self.call_by_name("proxy_on_grpc_close", context, (context, token, status))
            }
            (CallKind::Grpc, _) => self.call_by_name("proxy_on_grpc_close", context, (context, token, UNAVAILABLE)),
        }
    }

    fn tell_stream(&mut self, token: u32, context: u32, delivery: Delivery) -> Result<(), Fault> {
        let state = self.store.data_mut();
        state.incoming.kind = Some(CallKind::Grpc);
        match delivery {
            Delivery::Metadata(headers) => {
                let count = number(headers.len());
                state.incoming.headers = Some(headers);
                self.call_by_name("proxy_on_grpc_receive_initial_metadata", context, (context, token, count))
            }
            Delivery::Message(message) => {
                let size = number(message.len());
                state.incoming.body = Some(message);
                self.call_by_name("proxy_on_grpc_receive", context, (context, token, size))
            }
            Delivery::Close(status, message) => {
                state.incoming.status = (status, message);
                // The gateway tells the trailers of every stream that ends, be there none.
                state.incoming.trailers = Some(Headers::new());
                let trailers = "proxy_on_grpc_receive_trailing_metadata";
                self.call_by_name(trailers, context, (context, token, 0_u32))?;
                let state = self.store.data_mut();
                if let Some(stream) = state.grpc.iter_mut().find(|stream| stream.token == token) {
                    stream.closed = true;
                }
                self.call_by_name("proxy_on_grpc_close", context, (context, token, status))
            }
            // No answer of a stream.
            Delivery::Response { .. } => Ok(()),
        }
    }
}

/// Calls fail where nobody listens.
fn unheard(worker: u32, word: Word) -> Vec<Answer> {
    let (token, grpc) = match word {
        Word::Http { token, .. } => (token, false),
        Word::Grpc { token, .. } => (token, true),
        _ => return Vec::new(),
    };
    vec![Answer { worker, token, after_millis: 0, delivery: unreachable(grpc) }]
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// No headers at all: how the gateway tells that a call was reset.
pub const fn reset() -> Delivery {
    Delivery::Response { headers: Headers::new(), body: Vec::new(), trailers: Headers::new() }
}
