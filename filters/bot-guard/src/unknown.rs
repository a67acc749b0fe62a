//! User agents of programs that are no browser and that no signature knows.

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;

/// The word of nearly all crawlers.
const BOT: &[u8] = b"bot";
/// What programs call themselves beside it, in lower case: crawlers by their trade, libraries and tools by their names.
const WORDS: [&[u8]; 31] = [
    b"crawl",
    b"spider",
    b"scrap",
    b"slurp",
    b"fetcher",
    b"archiver",
    b"scanner",
    b"+http",
    b"curl/",
    b"wget/",
    b"libwww",
    b"lwp::",
    b"python-",
    b"python/",
    b"aiohttp",
    b"httpx/",
    b"go-http-client",
    b"java/",
    b"apache-httpclient",
    b"okhttp",
    b"axios/",
    b"node-fetch",
    b"undici",
    b"guzzlehttp",
    b"ruby",
    b"php/",
    b"reqwest",
    b"headless",
    b"phantomjs",
    b"puppeteer",
    b"playwright",
];

/// The words of unknown bots, looked for.
pub(crate) struct UnknownBots(NFA);

impl UnknownBots {
    /// # Errors
    ///
    /// None in practice: the words are constants.
    pub(crate) fn new() -> Result<Self, String> {
        NFA::new(std::iter::once(BOT).chain(WORDS)).map(Self).map_err(|error| error.to_string())
    }

    /// Whether a user agent is that of an unknown bot: it has one of the words, or a word that ends with `bot` (`CUBOT`, a maker of
    /// phones, is none). An empty one is as well: browsers always send theirs.
    pub(crate) fn has(&self, user_agent: &[u8]) -> bool {
        let text = user_agent.trim_ascii();
        let Ok(mut state) = self.0.start_state(Anchored::No) else { return false };
        text.is_empty()
            || text.iter().enumerate().any(|(at, byte)| {
                state = self.0.next_state(Anchored::No, state, byte.to_ascii_lowercase());
                // No word ends with another one.
                self.0.is_match(state)
                    && (self.0.match_pattern(state, 0).as_usize() != 0 || is_word(text, at.saturating_add(1)))
            })
    }
}

/// Whether the `bot` that ends before a place ends a word, and that word is not `cubot`.
fn is_word(text: &[u8], end: usize) -> bool {
    let goes_on = text.get(end).is_some_and(u8::is_ascii_alphabetic);
    let word = end.checked_sub(5).and_then(|start| text.get(start..end));
    !goes_on && !word.is_some_and(|word| word.eq_ignore_ascii_case(b"cubot"))
}
