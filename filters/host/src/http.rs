//! One request: the gateway's callbacks on one side, a [`Run`] on the other.

mod early;
mod waiting;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use exchange::{Body, Chain, Flow, Metric, Opening, Reply, Request, Response, Run, Start};
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use snapshot::Trailers;

use crate::calls::{self, Buffer, Half, LogLevel, Map};
use crate::proxy_host::ProxyHost;
use crate::{held, proxy_host};
use waiting::Waiting;

/// The bytes in front of every gRPC message: whether it is compressed, and its length.
const GRPC_PREFIX: usize = 5;
/// How much of a body is read at once where it is read as it comes, in bytes.
const PIECE: usize = 64 * 1024;

thread_local! {
    /// This VM has logged that it could not read the headers of a response.
    static UNREADABLE_LOGGED: Cell<bool> = const { Cell::new(false) };
}

/// One HTTP stream in one filter.
pub(crate) struct HttpFilter {
    stream: Rc<RefCell<Stream>>,
}

/// The state of a stream; shared with the list of held requests, which outlives no stream for long.
pub(crate) struct Stream {
    context: u32,
    chain: Option<Rc<Chain>>,
    node: Rc<str>,
    /// Headers wait for the body that a step asks for. Otherwise the gateway cannot do that (it would never hand the body
    /// over), and they go ahead: only the body waits.
    hold_headers: bool,
    run: Option<Run>,
    /// What follows the request's headers.
    opening: Opening,
    /// A stream whose first bytes have not been inspected.
    awaits_first_bytes: bool,
    request: Buffered,
    response: Buffered,
    /// What is held until a time or an answer.
    waiting: Option<Waiting>,
    /// How many bytes might be there in a wait that is being given up.
    given_up: Option<usize>,
    /// The headers of the response came before the end of the request, and wait until no step waits for the request any more;
    /// whether the response ends with them.
    early: Option<bool>,
    /// The request's headers went on, while its body waits.
    head_sent: bool,
    /// Trailers of the request are there that no step has inspected.
    trailers: bool,
    /// The same of the response.
    response_trailers: bool,
}

/// What has arrived of one half of the stream, and what is held back of it.
#[derive(Debug, Clone, Copy)]
struct Buffered {
    state: Buffering,
    /// In bytes, as the gateway counted last.
    size: usize,
    /// Nothing follows.
    ended: bool,
}

/// Where one half of the stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buffering {
    /// Nothing is held back.
    Off,
    /// Headers and body are held back until more than so many bytes are there, or all of them.
    Until(usize),
    /// The same, and what is there was read up to so many bytes.
    Read { limit: usize, read: usize },
    /// Nothing is held back; what passes is read.
    Passing,
    /// A local reply was sent; nothing of this half matters any more.
    Answered,
    /// The response came before the end of the request: nothing more of this half goes to the backend.
    Withheld,
}

impl HttpFilter {
    pub(crate) fn new(context: u32, chain: Option<Rc<Chain>>, node: Rc<str>, hold_headers: bool) -> Self {
        let nothing = Buffered { state: Buffering::Off, size: 0, ended: false };
        let (request, response) = (nothing, nothing);
        let stream = Stream {
            context,
            chain,
            node,
            hold_headers,
            run: None,
            opening: Opening::default(),
            awaits_first_bytes: false,
            request,
            response,
            waiting: None,
            given_up: None,
            early: None,
            head_sent: false,
            trailers: false,
            response_trailers: false,
        };
        Self { stream: Rc::new(RefCell::new(stream)) }
    }

    /// Runs one callback. A second one inside the first cannot happen in this gateway; were it to, it would pass.
    fn with(&self, callback: impl FnOnce(&mut Stream, &Rc<RefCell<Stream>>) -> Action) -> Action {
        match self.stream.try_borrow_mut() {
            Ok(mut stream) => callback(&mut stream, &self.stream),
            Err(_) => Action::Continue,
        }
    }
}

impl Context for HttpFilter {}

impl HttpContext for HttpFilter {
    fn on_http_request_headers(&mut self, _count: usize, end_of_stream: bool) -> Action {
        self.with(|stream, this| stream.request_headers(end_of_stream, this))
    }

    fn on_http_request_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        self.with(|stream, this| stream.body(Half::Request, size, end_of_stream, this))
    }

    fn on_http_request_trailers(&mut self, _count: usize) -> Action {
        self.with(|stream, this| stream.request_trailers(this))
    }

    fn on_http_response_headers(&mut self, _count: usize, end_of_stream: bool) -> Action {
        self.with(|stream, this| stream.response_headers(end_of_stream, this))
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        self.with(|stream, this| stream.body(Half::Response, size, end_of_stream, this))
    }

    fn on_http_response_trailers(&mut self, _count: usize) -> Action {
        self.with(|stream, this| stream.response_trailers(this))
    }

    fn on_log(&mut self) {
        self.with(|stream, _| {
            if let Some(run) = &mut stream.run {
                run.finish(&ProxyHost::default());
            }
            Action::Continue
        });
    }
}

impl Drop for HttpFilter {
    fn drop(&mut self) {
        if let Ok(stream) = self.stream.try_borrow()
            && stream.waiting.is_some()
        {
            held::forget(stream.context);
        }
    }
}

impl Stream {
    fn request_headers(&mut self, end_of_stream: bool, this: &Rc<RefCell<Self>>) -> Action {
        let Some(chain) = self.chain.clone() else {
            return Action::Continue;
        };
        let Some(headers) = calls::headers(Map::RequestHeaders) else {
            // What cannot be read cannot be checked, so it does not go on.
            calls::log(LogLevel::Warn, "palisade: a request with more headers than can be read was refused");
            return self.unreadable_headers(&chain, this);
        };
        let route = calls::property(&["xds", "route_name"]).unwrap_or_default();
        let protocol = calls::property(&["request", "protocol"]).unwrap_or_default();
        let (request, opening) = Request::read(headers, protocol, chain.may_be_grpc(&route));
        self.opening = opening;
        self.awaits_first_bytes = opening.grpc && !end_of_stream;
        let peer = calls::property(&["source", "address"]).unwrap_or_default();
        let start = Start { request, route: &route, peer: &peer, node: &self.node };
        let host = ProxyHost::default();
        let mut run = Run::new(&chain, start, &host);
        let flow = run.request_headers(!end_of_stream, &host);
        self.run = Some(run);
        let action = self.act(flow, Half::Request, this);
        self.at_headers(Half::Request, action)
    }

    /// The event has only what single properties give.
    fn unreadable_headers(&mut self, chain: &Chain, this: &Rc<RefCell<Self>>) -> Action {
        let property = |name| calls::property(&["request", name]).unwrap_or_default();
        let request = Request {
            id: property("id"),
            method: property("method"),
            path: property("path"),
            authority: property("host"),
            protocol: property("protocol"),
            ..Request::default()
        };
        let route = calls::property(&["xds", "route_name"]).unwrap_or_default();
        let peer = calls::property(&["source", "address"]).unwrap_or_default();
        let host = ProxyHost::default();
        let mut run = Run::new(chain, Start { request, route: &route, peer: &peer, node: &self.node }, &host);
        let flow = run.unreadable_headers(&host);
        self.run = Some(run);
        self.act(flow, Half::Request, this)
    }

    fn response_headers(&mut self, end_of_stream: bool, this: &Rc<RefCell<Self>>) -> Action {
        let Some(run) = &mut self.run else {
            return Action::Continue;
        };
        if self.request.state == Buffering::Answered {
            return Action::Continue;
        }
        let awaits_body = matches!(self.request.state, Buffering::Until(_) | Buffering::Read { .. });
        if awaits_body || self.waiting.is_some_and(|waiting| waiting.half == Half::Request) {
            self.early = Some(end_of_stream);
            let headers = calls::headers(Map::ResponseHeaders);
            let status = headers.map_or(0, |headers| Response::read(headers, self.opening).status);
            return match run.overtaken(status, self.head_sent, &ProxyHost::default()) {
                None => Action::Pause,
                Some(flow) => self.overtake(flow, this),
            };
        }
        self.judge_response(end_of_stream, this)
    }

    /// Shows the response's headers to the run.
    fn judge_response(&mut self, end_of_stream: bool, this: &Rc<RefCell<Self>>) -> Action {
        let Some(run) = &mut self.run else {
            return Action::Continue;
        };
        // Headers that cannot be read come from the backend or the gateway itself: the response goes on unchecked.
        let Some(headers) = calls::headers(Map::ResponseHeaders) else {
            proxy_host::count(Metric::PluginFailures, 1);
            if !UNREADABLE_LOGGED.replace(true) {
                calls::log(LogLevel::Warn, "palisade: a response with more headers than can be read was not checked");
            }
            return Action::Continue;
        };
        let response = Response::read(headers, self.opening);
        let flow = run.response_headers(response, !end_of_stream, &ProxyHost::default());
        let action = self.act(flow, Half::Response, this);
        // Headers that were held longer may have had their body meanwhile.
        match self.response.size > 0 || self.response.ended {
            true => self.with_what_came(Half::Response, action, this),
            false => self.at_headers(Half::Response, action),
        }
    }

    /// Whether headers wait for the body.
    fn at_headers(&mut self, half: Half, action: Action) -> Action {
        if !self.hold_headers && matches!(self.half(half).state, Buffering::Until(_) | Buffering::Read { .. }) {
            self.change_headers(half);
            self.head_sent |= half == Half::Request;
            return Action::Continue;
        }
        action
    }

    /// More of a body came, or its end.
    fn body(&mut self, half: Half, size: usize, end_of_stream: bool, this: &Rc<RefCell<Self>>) -> Action {
        let buffered = self.half(half);
        buffered.size = size;
        buffered.ended |= end_of_stream;
        let state = buffered.state;
        match state {
            Buffering::Until(_) | Buffering::Read { .. } => self.hand_over(half, this),
            Buffering::Passing => self.read_passing(0, this),
            Buffering::Off if self.is_held(half) => self.more_of(half, this),
            Buffering::Off if self.awaits_first_bytes && half == Half::Request => self.open_stream(this),
            Buffering::Off => Action::Continue,
            Buffering::Answered => Action::Pause,
            Buffering::Withheld => self.withhold(),
        }
    }

    /// Trailers end a body as well.
    fn body_ends(&mut self, half: Half, this: &Rc<RefCell<Self>>) -> Action {
        let buffered = self.half(half);
        // What has passed is not there any more.
        let size = if buffered.state == Buffering::Passing { 0 } else { buffered.size };
        self.body(half, size, true, this)
    }

    /// The request's trailers: taken away at once, or judged when all in front of them may go on.
    fn request_trailers(&mut self, this: &Rc<RefCell<Self>>) -> Action {
        let (Some(chain), Some(run)) = (&self.chain, &self.run) else {
            return self.body_ends(Half::Request, this);
        };
        if run.drops_trailers(chain) {
            calls::clear(Map::RequestTrailers);
        } else {
            self.trailers = chain.trailers == Trailers::Inspect;
        }
        let action = self.body_ends(Half::Request, this);
        self.inspect_trailers(action, this)
    }

    /// Inspects trailers that wait, where everything in front of them goes on.
    fn inspect_trailers(&mut self, action: Action, this: &Rc<RefCell<Self>>) -> Action {
        if action == Action::Pause || !std::mem::take(&mut self.trailers) {
            return action;
        }
        let Some(trailers) = calls::headers(Map::RequestTrailers) else {
            calls::log(LogLevel::Warn, "palisade: a request with more trailers than can be read was refused");
            let flow = self.run.as_mut().map(|run| run.unreadable_trailers(&ProxyHost::default()));
            return self.act(flow.unwrap_or(Flow::Continue), Half::Request, this);
        };
        let flow = self.run.as_mut().map(|run| run.request_trailers(&trailers, &ProxyHost::default()));
        self.act(flow.unwrap_or(Flow::Continue), Half::Request, this)
    }

    /// The response's trailers: shown to steps when all in front of them goes on.
    fn response_trailers(&mut self, this: &Rc<RefCell<Self>>) -> Action {
        self.response_trailers = true;
        let action = self.body_ends(Half::Response, this);
        self.show_response_trailers(action);
        action
    }

    /// Shows trailers that wait to the run, where everything in front of them goes on.
    fn show_response_trailers(&mut self, action: Action) {
        if action == Action::Pause || !std::mem::take(&mut self.response_trailers) {
            return;
        }
        if let Some(run) = self.run.as_mut().filter(|run| run.wants_response_trailers())
            && let Some(trailers) = calls::headers(Map::ResponseTrailers)
        {
            run.response_trailers(&trailers, &ProxyHost::default());
        }
    }

    /// Gives the run the body that it waits for, as soon as it is there. A run may wait for more of it afterwards, and
    /// more of it may be there already: then no further callback would come.
    fn hand_over(&mut self, half: Half, this: &Rc<RefCell<Self>>) -> Action {
        loop {
            let action = match self.half(half).state {
                Buffering::Until(_) => self.hand_over_whole(half, this),
                Buffering::Read { limit, read } => self.hand_over_pieces(limit, read, this),
                _ => return Action::Continue,
            };
            if let Some(action) = action {
                return action;
            }
        }
    }

    /// Reads what has come of the request's body; `None` where a step behind wants the body as well.
    fn hand_over_pieces(&mut self, limit: usize, mut read: usize, this: &Rc<RefCell<Self>>) -> Option<Action> {
        let Buffered { size, ended, .. } = self.request;
        let Some(run) = &mut self.run else {
            return Some(Action::Continue);
        };
        let mut flow = Flow::Read { limit };
        while matches!(flow, Flow::Read { .. }) && read < size.min(limit) {
            let bytes = calls::buffer_from(Buffer::RequestBody, read, PIECE.min(limit - read)).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            read = read.saturating_add(bytes.len());
            flow = run.request_piece(&bytes, &ProxyHost::default());
        }
        if matches!(flow, Flow::Read { .. }) {
            if !ended && size <= limit {
                self.request.state = Buffering::Read { limit, read };
                return Some(Action::Pause);
            }
            // What could not be read is as if it were beyond the limit.
            flow = run.request_end(ended && read >= size, &ProxyHost::default());
        }
        let action = self.act(flow, Half::Request, this);
        match self.request.state {
            Buffering::Until(_) | Buffering::Read { .. } => None,
            _ => Some(action),
        }
    }

    fn hand_over_whole(&mut self, half: Half, this: &Rc<RefCell<Self>>) -> Option<Action> {
        while let Buffered { state: Buffering::Until(limit), size, ended } = *self.half(half) {
            // A body of exactly the limit may be all of it.
            if !ended && size <= limit {
                return Some(Action::Pause);
            }
            let Some(run) = &mut self.run else {
                return Some(Action::Continue);
            };
            let buffer = if half == Half::Request { Buffer::RequestBody } else { Buffer::ResponseBody };
            let bytes = calls::buffer(buffer, limit.saturating_add(1)).unwrap_or_default();
            let complete = ended && bytes.len() <= limit;
            let body = Body { bytes: bytes.get(..limit).unwrap_or(&bytes), complete };
            let flow = match half {
                Half::Request => run.request_body(body, &ProxyHost::default()),
                Half::Response => run.response_body(body, &ProxyHost::default()),
            };
            let action = self.act(flow, half, this);
            if !matches!(self.half(half).state, Buffering::Until(_) | Buffering::Read { .. }) {
                return Some(action);
            }
        }
        None
    }

    /// The headers of a message go on: changes of them are carried out now, or never.
    fn change_headers(&mut self, half: Half) {
        let (of, map) = match half {
            Half::Request => (exchange::Half::Request, Map::RequestHeaders),
            Half::Response => (exchange::Half::Response, Map::ResponseHeaders),
        };
        let changes = self.run.as_mut().map(|run| run.take_changes(of)).unwrap_or_default();
        changes.iter().for_each(|change| calls::change_header(map, change));
    }

    /// Shows the run what passes, from a byte of what is there on.
    fn read_passing(&mut self, mut from: usize, this: &Rc<RefCell<Self>>) -> Action {
        let Buffered { size, ended, .. } = self.request;
        loop {
            let bytes = match from < size {
                true => calls::buffer_from(Buffer::RequestBody, from, PIECE.min(size - from)).unwrap_or_default(),
                false => Vec::new(),
            };
            from = from.saturating_add(bytes.len());
            let end = ended && (from >= size || bytes.is_empty());
            let Some(run) = self.run.as_mut().filter(|_| end || !bytes.is_empty()) else {
                return Action::Continue;
            };
            let flow = run.request_rest(&bytes, end, &ProxyHost::default());
            if flow != Flow::Continue {
                return self.act(flow, Half::Request, this);
            }
            if end {
                return Action::Continue;
            }
        }
    }

    /// Shows the beginning of a stream to the run: enough to see whether it is what its headers say.
    fn open_stream(&mut self, this: &Rc<RefCell<Self>>) -> Action {
        if self.request.size < GRPC_PREFIX && !self.request.ended {
            return Action::Pause;
        }
        self.awaits_first_bytes = false;
        let bytes = calls::buffer(Buffer::RequestBody, GRPC_PREFIX).unwrap_or_default();
        let flow = self.run.as_mut().map_or(Flow::Continue, |run| run.stream_start(&bytes, &ProxyHost::default()));
        self.act(flow, Half::Request, this)
    }

    fn act(&mut self, flow: Flow, half: Half, this: &Rc<RefCell<Self>>) -> Action {
        if half == Half::Request
            && let Some(codings) = self.run.as_mut().and_then(Run::take_accept_encoding)
        {
            calls::set_header(Map::RequestHeaders, "accept-encoding", &codings);
        }
        match flow {
            Flow::Continue => {
                // Only now: while a message waits, steps behind may still read the body that came, or hold it. And before the
                // headers: a length that is not that of the body would be request smuggling.
                if let Some(body) = self.run.as_mut().and_then(Run::take_replaced_body) {
                    let buffer = if half == Half::Request { Buffer::RequestBody } else { Buffer::ResponseBody };
                    if !calls::replace_buffer(buffer, &body)
                        && let Some(run) = &mut self.run
                    {
                        let flow = run.replacement_refused(&ProxyHost::default());
                        return self.act(flow, half, this);
                    }
                }
                self.change_headers(half);
                let rest = self.run.as_ref().filter(|_| half == Half::Request).and_then(Run::rest_from);
                self.set_buffering(half, if rest.is_some() { Buffering::Passing } else { Buffering::Off });
                rest.map_or(Action::Continue, |from| self.read_passing(from, this))
            }
            Flow::Buffer { limit } => {
                self.set_buffering(half, Buffering::Until(limit));
                Action::Pause
            }
            Flow::Read { limit } => {
                self.set_buffering(half, Buffering::Read { limit, read: 0 });
                Action::Pause
            }
            Flow::Hold { millis } => self.hold(half, millis, this),
            Flow::Ask(ask) => self.ask(half, ask, this),
            Flow::Answer(reply) => self.answer(half, &reply),
        }
    }

    fn answer(&mut self, half: Half, reply: &Reply) -> Action {
        self.set_buffering(half, Buffering::Answered);
        calls::send_local_response(reply.status, "palisade", &reply.headers, &reply.body);
        Action::Pause
    }

    fn half(&mut self, half: Half) -> &mut Buffered {
        if half == Half::Request { &mut self.request } else { &mut self.response }
    }

    fn set_buffering(&mut self, half: Half, state: Buffering) {
        self.half(half).state = state;
    }
}
