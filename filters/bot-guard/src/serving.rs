//! Texts of the policy that are served in the backend's place.

use exchange::{Action, Decision, Exchange, Reply, Verdict};

use crate::matcher::Bots;
use crate::robots;

const LLMS: &[u8] = b"/llms.txt";
/// How long clients may use a copy: a change of the policy is soon met.
const CACHE: &[u8] = b"max-age=300";

/// A text that is served.
pub(crate) struct Served {
    /// It is the robots.txt.
    pub(crate) is_robots: bool,
    pub(crate) verdict: Verdict,
}

impl Bots {
    /// The answer to a request for one of the texts, by GET or HEAD; `None` for what goes on to the backend. It makes no event.
    pub(crate) fn serve(&self, exchange: &Exchange) -> Option<Served> {
        let request = &exchange.request;
        let (text, is_robots) = match request.path_only() {
            robots::PATH => (self.robots_txt.as_ref()?, true),
            LLMS => (self.llms_txt.as_ref()?, false),
            _ => return None,
        };
        if request.method != b"GET" && request.method != b"HEAD" {
            return None;
        }
        let headers = vec![
            ("content-type".to_owned(), b"text/plain; charset=utf-8".to_vec()),
            ("cache-control".to_owned(), CACHE.to_vec()),
            ("x-content-type-options".to_owned(), b"nosniff".to_vec()),
        ];
        // The gateway leaves the body out of the answer to HEAD.
        let reply = Some(Reply { status: 200, headers, body: text.clone() });
        let what = if is_robots { "robots.txt" } else { "llms.txt" };
        let decision = Decision::new(Action::Log, exchange.score.total(), format!("{what} of the bot policy"));
        Some(Served { is_robots, verdict: Verdict::Enforce { decision, hold_millis: 0, reply } })
    }
}
