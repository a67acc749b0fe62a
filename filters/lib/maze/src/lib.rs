//! The maze: generated pages whose links lead to more of them, in the place of what a caller asked for.
//!
//! A page takes the gateway some microseconds and no memory afterwards. The caller waits for it, stores and parses it, and has
//! some twenty more addresses to fetch. Budgets in pages, bytes and processor time bound that, for each caller and for a node
//! (module `budget`); where one is used up there is no page, and the plugin refuses instead.
//!
//! A plugin decides who is shown one. Crawlers that obey robots.txt and verified ones never are: see [`may_be_obedient`].

mod budget;
#[cfg(feature = "control")]
mod control;
mod messages;
mod page;
mod words;

use exchange::{Action, Category, Exchange, Host, Refusal, ReplyBody, Request};

#[cfg(feature = "control")]
pub use control::MazeSettings;
pub use messages::{MazeBudget, MazeLimits};
pub use page::generate;

/// The status of a page.
pub const STATUS: u16 = 200;
/// The tag of a signal by which the bot guard says that a caller is not to be shown a page, before the name of the bot.
pub const SPARED: &str = "bot:spared:";
/// The least and the most bytes of a page.
pub const PAGE_BYTES: std::ops::RangeInclusive<u32> = 1024..=32_768;
/// The longest path that pages link to, in bytes.
pub const MAX_PATH: usize = 64;

/// Generated pages, and what they may cost.
#[derive(Debug)]
pub struct Maze {
    limits: MazeLimits,
}

/// A generated page, which its caller has been charged with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its HTML.
    pub html: Vec<u8>,
    /// How long the caller waits for it, in milliseconds.
    pub hold_millis: u32,
}

impl Maze {
    /// A maze within these limits.
    ///
    /// # Errors
    ///
    /// The path is none that pages can link to.
    pub fn new(limits: MazeLimits) -> Result<Self, String> {
        match is_path(&limits.path) && PAGE_BYTES.contains(&limits.page_bytes) {
            true => Ok(Self { limits }),
            false => Err("the maze has a path or a size of pages that this filter cannot use".to_owned()),
        }
    }

    /// A page for this request. `None` if it is neither GET nor HEAD, or if a budget is used up.
    #[must_use]
    pub fn page(&self, exchange: &Exchange, host: &dyn Host) -> Option<Page> {
        let Exchange { request, caller, .. } = exchange;
        let caller = caller.identity().filter(|_| reads(request))?.key();
        budget::take(&self.limits, caller.as_bytes(), host).then(|| Page {
            html: page::generate(&self.limits, request.path_only()),
            hold_millis: self.limits.hold_millis,
        })
    }

    /// Whether the request follows a link of a page that this caller was shown within the last hour.
    #[must_use]
    pub fn is_inside(&self, exchange: &Exchange, host: &dyn Host) -> bool {
        let Exchange { request, caller, .. } = exchange;
        request.path_only().starts_with(self.limits.path.as_bytes())
            && caller.identity().is_some_and(|caller| budget::has_pages(caller.key().as_bytes(), host))
    }
}

impl Page {
    /// The refusal that answers with this page. `reason` is for the operator.
    #[must_use]
    pub fn refusal(self, reason: impl Into<String>) -> Refusal {
        Refusal::new(STATUS, Category::Threat, reason)
            .action(Action::Maze)
            .held(self.hold_millis)
            .header("x-robots-tag", "noindex, nofollow")
            .header("x-content-type-options", "nosniff")
            .body(ReplyBody::Html(self.html))
    }
}

/// Whether a signal says that the caller is a verified bot, may be one, or obeys robots.txt. Such callers are not shown a page.
#[must_use]
pub fn may_be_obedient(exchange: &Exchange) -> bool {
    let says = |tag: &str| tag.starts_with("bot:verified:") || tag.starts_with(SPARED) || tag == "bot:signed";
    exchange.score.signals().iter().any(|signal| says(&signal.tag))
}

/// Whether pages can link to paths below this one: a path of at most [`MAX_PATH`] letters, digits, `-`, `_` and `/`, with a slash at
/// both ends and something between.
#[must_use]
pub fn is_path(path: &str) -> bool {
    let plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte));
    let ends = path.starts_with('/') && path.ends_with('/') && !path.contains("//");
    (3..=MAX_PATH).contains(&path.len()) && plain && ends
}

fn reads(request: &Request) -> bool {
    request.method == b"GET" || request.method == b"HEAD"
}

#[cfg(test)]
mod tests;
