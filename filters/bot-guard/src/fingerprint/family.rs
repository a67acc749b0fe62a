//! Families of agents: the software that a `User-Agent` says it is.

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;

/// The words of all families, in the order of their bits.
pub const FAMILIES: [&str; 17] = [
    "chrome", "edge", "opera", "samsung", "firefox", "safari", "curl", "wget", "python", "go", "node", "java",
    "okhttp", "php", "ruby", "rust", "perl",
];

/// The families with Chromium's TLS: they have the same fingerprints, so that one is never taken for another.
const CHROMIUM: u32 = 0b1111;

/// What agents of no family have in them: bots that call themselves browsers as well. These come first.
const NONE: [&str; 4] = ["bot/", "crawl", "spider", "+http"];

/// What agents of a family have in them, in lower case, and its place in [`FAMILIES`]. Of several the first one counts: `Edg/` is behind
/// `Chrome/` in an agent, that behind `Safari/`. Browsers on iOS have the TLS of the system, and so of Safari.
const TOKENS: [(&str, u8); 31] = [
    ("curl/", 6),
    ("wget/", 7),
    ("python", 8),
    ("aiohttp", 8),
    ("httpx/", 8),
    ("go-http-client", 9),
    ("node-fetch", 10),
    ("undici", 10),
    ("axios/", 10),
    ("node.js", 10),
    ("okhttp", 12),
    ("java/", 11),
    ("java-http-client", 11),
    ("apache-httpclient", 11),
    ("guzzlehttp", 13),
    ("php/", 13),
    ("ruby", 14),
    ("reqwest", 15),
    ("libwww-perl", 16),
    ("lwp::", 16),
    ("crios/", 5),
    ("fxios/", 5),
    ("edgios/", 5),
    ("edg/", 1),
    ("edga/", 1),
    ("opr/", 2),
    ("samsungbrowser/", 3),
    ("firefox/", 4),
    ("chrome/", 0),
    ("chromium/", 0),
    ("safari/", 5),
];
/// What agents of Node itself are, without a version.
const NODE: (&[u8], u8) = (b"node", 10);
/// Where `Safari/` is Safari: other browsers of the same engine have the TLS of other systems.
const APPLE: &str = "mac os x";
const SAFARI: u8 = 5;

/// A family of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family(u8);

/// The tokens of all families, looked for.
pub(crate) struct Families(NFA);

// === impl Family ===

impl Family {
    /// The family of a word.
    #[must_use]
    pub fn read(word: &str) -> Option<Self> {
        let place = FAMILIES.iter().position(|known| *known == word)?;
        u8::try_from(place).ok().map(Self)
    }

    /// The first family of these bits.
    #[must_use]
    pub fn first(bits: u32) -> Option<Self> {
        let place = u8::try_from(bits.trailing_zeros()).ok()?;
        (usize::from(place) < FAMILIES.len()).then_some(Self(place))
    }

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        FAMILIES.get(usize::from(self.0)).copied().unwrap_or_default()
    }

    /// Its bit.
    #[must_use]
    pub fn bit(self) -> u32 {
        1_u32.checked_shl(u32::from(self.0)).unwrap_or(0)
    }

    /// The bits of all families that have its TLS.
    #[must_use]
    pub fn kin(self) -> u32 {
        if self.bit() & CHROMIUM == 0 { self.bit() } else { CHROMIUM }
    }
}

// === impl Families ===

impl Families {
    /// # Errors
    ///
    /// None in practice: the tokens are constants.
    pub(crate) fn new() -> Result<Self, String> {
        let tokens = NONE.into_iter().chain(TOKENS.iter().map(|(token, _)| *token)).chain([APPLE]);
        NFA::new(tokens).map(Self).map_err(|error| error.to_string())
    }

    /// The family of these user agents; `None` for one that is not known. One pass over each, in any case of ASCII letters.
    pub(crate) fn of(&self, agents: &[&[u8]]) -> Option<Family> {
        if agents.iter().any(|agent| agent.eq_ignore_ascii_case(NODE.0)) {
            return Some(Family(NODE.1));
        }
        let start = self.0.start_state(Anchored::No).ok()?;
        let (mut first, mut is_apple) = (usize::MAX, false);
        for agent in agents {
            let mut state = start;
            for byte in *agent {
                state = self.0.next_state(Anchored::No, state, byte.to_ascii_lowercase());
                if !self.0.is_match(state) {
                    continue;
                }
                for place in 0..self.0.match_len(state) {
                    let token = self.0.match_pattern(state, place).as_usize();
                    is_apple |= token == NONE.len() + TOKENS.len();
                    first = first.min(token);
                }
            }
        }
        let (_, family) = TOKENS.get(first.checked_sub(NONE.len())?)?;
        (*family != SAFARI || is_apple).then_some(Family(*family))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_of_the_software_that_they_say() {
        let families = Families::new().unwrap();
        let cases: [(&str, Option<&str>); 24] = [
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
                Some("chrome"),
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0",
                Some("edge"),
            ),
            ("Mozilla/5.0 (X11) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 OPR/120.0", Some("opera")),
            (
                "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 SamsungBrowser/28.0 Chrome/130.0 Mobile Safari/537.36",
                Some("samsung"),
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", Some("firefox")),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15",
                Some("safari"),
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15",
                None,
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 CriOS/140.0 Mobile Safari/604.1",
                Some("safari"),
            ),
            ("Mozilla/5.0 (X11) AppleWebKit/537.36 HeadlessChrome/140.0 Safari/537.36", Some("chrome")),
            ("curl/8.5.0", Some("curl")),
            ("Wget/1.21", Some("wget")),
            ("Python-urllib/3.12", Some("python")),
            ("Python/3.12 aiohttp/3.9", Some("python")),
            ("Go-http-client/2.0", Some("go")),
            ("node", Some("node")),
            ("axios/1.7", Some("node")),
            ("okhttp/4.12", Some("okhttp")),
            ("Java/21", Some("java")),
            ("PHP/8.3", Some("php")),
            ("libwww-perl/6.7", Some("perl")),
            ("Mozilla/5.0 (compatible; Foobot/1.0; +http://foo.example) Chrome/140.0 Safari/537.36", None),
            ("FooCrawler Chrome/140.0", None),
            ("nodes", None),
            ("", None),
        ];
        for (agent, word) in cases {
            assert_eq!(families.of(&[agent.as_bytes()]).map(Family::word), word, "{agent}");
            assert_eq!(families.of(&[agent.to_ascii_uppercase().as_bytes()]).map(Family::word), word, "{agent}");
        }
        assert_eq!(families.of(&[b"\xff\xfe", b"Chrome/1"]).map(Family::word), Some("chrome"), "a second header");
        assert_eq!(families.of(&[]), None);
    }

    #[test]
    fn families_with_the_same_tls_are_kin_and_words_are_bits() {
        let kin = |one: &str, other: &str| Family::read(one).unwrap().kin() & Family::read(other).unwrap().bit() != 0;
        assert!(
            kin("chrome", "edge") && kin("opera", "samsung") && !kin("chrome", "firefox") && !kin("curl", "python")
        );
        for word in FAMILIES {
            let family = Family::read(word).unwrap();
            assert_eq!((family.word(), Family::first(family.bit())), (word, Some(family)));
        }
        assert_eq!((Family::read("netscape"), Family::first(0), Family::first(1 << 31)), (None, None, None));
        assert!(
            TOKENS
                .iter()
                .all(|(token, place)| usize::from(*place) < FAMILIES.len() && *token == token.to_ascii_lowercase())
        );
    }
}
