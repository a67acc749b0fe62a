//! What the laxest of backends may take an ambiguous path for.
//!
//! [`PathReadings`](crate::PathReadings) names the readings that backends agree on, and calls a path ambiguous where they do not. For a
//! plugin that guards a few paths this module answers whether one of them may be meant: it assumes that a backend undoes every escape,
//! cuts whatever it may cut and resolves dot segments whenever that helps. So it may take a path for a target that no backend does, and
//! never the other way round.

use crate::path::has_lookalike;
use crate::spelling::{decode, shortened};

/// How often escapes are undone. A path that still has some may be anything.
const ROUNDS: usize = 4;

/// How near a path may come to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// No backend takes it for the target, nor for a path below it.
    Elsewhere,
    /// It may be a path below the target (`/target/x`), or the target with a format at its end (`/target.json`).
    Below,
    /// It may be the target itself.
    Exact,
}

/// A path with its escapes undone, as the texts that it may stand for.
#[derive(Debug)]
pub struct LaxPath {
    /// It may be anything: it has escapes of escapes of escapes.
    anything: bool,
    /// One, or several if it has characters that backends take for others, or bytes that are no UTF-8.
    texts: Vec<Text>,
}

/// A text in lower case, taken apart.
#[derive(Debug)]
struct Text {
    segments: Vec<Segment>,
    /// How many segments at the beginning may be the scheme and the host of a URL.
    authority: usize,
}

/// A segment in lower case, without parameters and without what is cut off at its end.
#[derive(Debug)]
enum Segment {
    /// `..`, or what Windows takes for it.
    Up,
    Name(Vec<u8>),
    /// Here some backends end the path: a NUL, `?`, `#`.
    End,
}

/// What is known of the segments of a target that were found so far.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// They are all that there is.
    clean: bool,
    /// There are other names behind them, and a `..` that may take those away.
    up: bool,
    /// There are other names behind them.
    more: bool,
}

impl LaxPath {
    /// Takes a path without its query apart. Linear in its length.
    #[must_use]
    pub fn of(path: &[u8]) -> Self {
        let mut text = path.to_ascii_lowercase();
        let mut rounds = 0;
        while let Some(decoded) = decode(&text) {
            text = decoded.to_ascii_lowercase();
            rounds += 1;
            if rounds > ROUNDS {
                return Self { anything: true, texts: Vec::new() };
            }
        }
        let texts = if has_lookalike(&text) { lookalikes(text) } else { vec![text] };
        Self { anything: false, texts: texts.iter().map(|text| Text::of(text)).collect() }
    }

    /// How near the path may come to a target, which is a path in plain text; a slash at its end does not count. Linear in the path
    /// for each segment of the target.
    #[must_use]
    pub fn reach(&self, target: &[u8]) -> Reach {
        if self.anything {
            return Reach::Exact;
        }
        let target = target.to_ascii_lowercase();
        let target = decode(&target).unwrap_or(target);
        let names: Vec<&[u8]> = target.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        self.texts.iter().map(|text| text.reach(&names)).max().unwrap_or(Reach::Elsewhere)
    }
}

impl Text {
    fn of(text: &[u8]) -> Self {
        let is_slash = |byte: Option<&u8>| matches!(byte, Some(b'/' | b'\\'));
        let authority = match (is_slash(text.first()), is_slash(text.get(1))) {
            (true, true) => 1,
            (true, false) => 0,
            (false, _) => 2,
        };
        let mut segments = Vec::new();
        for segment in text.split(|byte| matches!(byte, b'/' | b'\\')) {
            let ends = |byte: &u8| matches!(byte, 0 | b'?' | b'#');
            let kept = segment.split(ends).next().unwrap_or_default();
            segments.extend(Segment::of(kept));
            if kept.len() < segment.len() {
                segments.push(Segment::End);
            }
        }
        Self { segments, authority }
    }

    /// How near it may come to a target of these names.
    fn reach(&self, names: &[&[u8]]) -> Reach {
        // The states behind no name of the target, behind the first, and so on.
        let mut states = vec![State::default(); names.len() + 1];
        states.first_mut().into_iter().for_each(|first| first.clean = true);
        let mut authority = self.authority;
        let mut ended = false;
        for segment in &self.segments {
            match segment {
                Segment::Up => states.iter_mut().for_each(|state| state.up |= state.clean || state.more),
                Segment::End => ended |= states.last().is_some_and(|last| last.is_all()),
                Segment::Name(found) => {
                    step(&mut states, names, found, authority > 0);
                    authority = authority.saturating_sub(1);
                }
            }
        }
        match states.last() {
            _ if ended => Reach::Exact,
            Some(last) if last.is_all() => Reach::Exact,
            // Below the root is everything.
            Some(last) if last.more && !names.is_empty() => Reach::Below,
            _ => Reach::Elsewhere,
        }
    }
}

impl State {
    /// Whether a backend may see nothing behind the names.
    fn is_all(self) -> bool {
        self.clean || self.up
    }
}

impl Segment {
    fn of(text: &[u8]) -> Option<Self> {
        let name = text.split(|byte| *byte == b';').next().unwrap_or_default();
        // Some leave control bytes out.
        let name: Vec<u8> = name.iter().filter(|byte| !byte.is_ascii_control()).copied().collect();
        let name = name.trim_ascii();
        let dots = name.iter().filter(|byte| matches!(byte, b'.' | b' ')).count();
        match name.iter().rposition(|byte| !matches!(byte, b'.' | b' ')) {
            Some(last) => Some(Self::Name(name.get(..=last).unwrap_or_default().to_vec())),
            None => (dots > 1).then_some(Self::Up),
        }
    }
}

/// Takes a name into the states. `authority` is whether it may be left out.
fn step(states: &mut [State], names: &[&[u8]], found: &[u8], authority: bool) {
    // From the last one on, so that a name counts once.
    for place in (0..states.len()).rev() {
        let Some(state) = states.get(place).copied() else { continue };
        let wanted = names.get(place).filter(|_| state.is_all());
        if let Some(behind) = wanted.and_then(|wanted| found.strip_prefix(*wanted))
            && let Some(next) = states.get_mut(place + 1)
        {
            next.clean |= behind.is_empty();
            // A format, which only the last name may have.
            next.more |= behind.starts_with(b".") && place + 1 == names.len();
        }
        if let Some(state) = states.get_mut(place)
            && state.clean
            && !(authority && place == 0)
        {
            (state.clean, state.more) = (false, true);
        }
    }
}

/// The texts that one with odd characters may stand for, each once: as it is; with overlong forms as ASCII; and the latter without the
/// bytes that are no UTF-8, with characters as the ASCII that they look like, and with characters cut to their lowest byte. All in lower
/// case.
fn lookalikes(text: Vec<u8>) -> Vec<Vec<u8>> {
    let short = shortened(&text).unwrap_or_else(|| text.clone());
    let valid: Vec<u8> = short.utf8_chunks().flat_map(|chunk| chunk.valid().bytes()).collect();
    let characters = String::from_utf8_lossy(&short);
    // What would end a path, or be left out of it, makes no dot segment, for which characters are cut.
    let is_kept = |byte: u8| byte == b' ' || (byte.is_ascii_graphic() && !b"?#;".contains(&byte));
    let lowest = |letter: char| match u32::from(letter).to_le_bytes() {
        [byte, ..] if letter.is_ascii() || is_kept(byte) => byte,
        _ => 0xff,
    };
    let cut: Vec<u8> = characters.chars().map(lowest).collect();
    let mut plain: Vec<u8> = Vec::with_capacity(short.len());
    for letter in characters.chars() {
        match letter {
            '\u{ff01}'..='\u{ff5e}' => plain.extend(u8::try_from(u32::from(letter) - 0xfee0).ok()),
            '\u{2488}'..='\u{249b}' => plain.extend_from_slice(format!("{}.", u32::from(letter) - 0x2487).as_bytes()),
            _ => match looks_like(letter) {
                Some(ascii) => plain.extend_from_slice(ascii),
                None => plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            },
        }
    }
    let mut texts = vec![text];
    for other in [&short, &valid, &plain, &cut] {
        let other = other.to_ascii_lowercase();
        if !texts.contains(&other) {
            texts.push(other);
        }
    }
    texts
}

/// What normalization or a best fit makes of a character, if it is one that [`has_lookalike`] looks for, but for wide letters and for
/// numbers from 1 on with a full stop.
fn looks_like(letter: char) -> Option<&'static [u8]> {
    let ascii: &'static [u8] = match letter {
        '\u{2024}' | '\u{3002}' | '\u{fe52}' | '\u{ff61}' => b".",
        '\u{2025}' => b"..",
        '\u{2026}' | '\u{fe19}' => b"...",
        '\u{1f100}' => b"0.",
        '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{2571}' => b"/",
        '\u{a5}' | '\u{20a9}' | '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{2572}' | '\u{fe68}' | '\u{ffe5}'
        | '\u{ffe6}' => b"\\",
        '\u{2100}' => b"a/c",
        '\u{2101}' => b"a/s",
        '\u{2105}' => b"c/o",
        '\u{2106}' => b"c/u",
        '\u{bc}' => b"1/4",
        '\u{bd}' => b"1/2",
        '\u{be}' => b"3/4",
        '\u{2150}' => b"1/7",
        '\u{2151}' => b"1/9",
        '\u{2152}' => b"1/10",
        '\u{2153}' => b"1/3",
        '\u{2154}' => b"2/3",
        '\u{2155}' => b"1/5",
        '\u{2156}' => b"2/5",
        '\u{2157}' => b"3/5",
        '\u{2158}' => b"4/5",
        '\u{2159}' => b"1/6",
        '\u{215a}' => b"5/6",
        '\u{215b}' => b"1/8",
        '\u{215c}' => b"3/8",
        '\u{215d}' => b"5/8",
        '\u{215e}' => b"7/8",
        '\u{215f}' => b"1/",
        '\u{2189}' => b"0/3",
        _ => return None,
    };
    Some(ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(path: &[u8], target: &str) -> Reach {
        LaxPath::of(path).reach(target.as_bytes())
    }

    #[test]
    fn what_some_backend_takes_for_the_target_is_exact() {
        for path in [
            "/graphql",
            "/GraphQL/",
            "//graphql",
            "//host/graphql",
            "\\\\host\\graphql",
            "http://host/graphql",
            "graphql",
            "/graphql//",
            "/./graphql",
            "/x/../graphql",
            "/x/y/..%2f../graphql",
            "/x%2fy/../graph%71l",
            "/..;/graphql",
            "/;x/graphql;y=1",
            "/graphql/x/..",
            "/graphql/..;/graphql",
            "/graphql%2f",
            "/graphql%00.js",
            "/graphql%23/x",
            "/graphql%3fx=/y",
            "/graphql.",
            "/graphql%20/",
            "/gra%09phql",
            "/%2567raphql",
            "/%25252567raphql",
            "/%u0067raphql",
            "/x/.../graphql",
            "/x\\..\\graphql",
            "/static/..%c0%afgraphql",
            "/static/..%e0%80%afgraphql",
            "/static/..%ef%bc%8f\u{ff47}raphql",
            "/\u{42e}\u{42e}/\u{167}raphql",
            "/x/\u{2025}/graphql",
            "/%2525252525252567raphql",
            "/caf%e9/../graphql",
            "/static/..\u{2215}graphql",
            "/static/..%e2%88%96graphql",
            "/static/%e2%80%a6\u{a5}graphql/",
            "/static/..%c0%af\u{ff27}raphql",
            "/\u{2044}graphql%f8%80%80%80%af",
            "/\u{3002}\u{3002}/graphql\u{ff0f}",
            "/static/..%ff/graphql",
            "/gra%ffphql",
        ] {
            assert_eq!(reach(path.as_bytes(), "/graphql"), Reach::Exact, "{path}");
            assert_eq!(reach(path.as_bytes(), "/GraphQL/"), Reach::Exact, "{path}");
        }
        assert_eq!(reach(b"/api//v1%2f/rpc", "/api/v1/rpc/"), Reach::Exact);
        assert_eq!(reach(b"/x/../api/y/../v1/rpc", "/api/v1/rpc"), Reach::Exact);
        assert_eq!(reach(b"/a//b c", "/a/b%20c"), Reach::Exact);
        assert_eq!(reach("/v\u{215f}rpc".as_bytes(), "/v1/rpc"), Reach::Exact);
        assert_eq!(reach("/\u{2100}".as_bytes(), "/a/c"), Reach::Exact);
        for path in ["/v\u{2488}/rpc", "/v\u{2491}/../v\u{2488}/rpc"] {
            assert_eq!(reach(path.as_bytes(), "/v1/rpc"), Reach::Exact, "{path}");
        }
        assert_eq!(reach("/v\u{249b}/x\u{1f100}".as_bytes(), "/v20/x0"), Reach::Exact);
        for path in [
            "",
            "//",
            "/x/..",
            "/./",
            "/%23x",
            "/%00",
            "/x/\u{2025}",
            "/x/%c0%ae%c0%ae",
            "/x/\u{42e}\u{42e}",
            "/\u{2215}",
        ] {
            assert_eq!(reach(path.as_bytes(), "/"), Reach::Exact, "{path}");
        }
    }

    #[test]
    fn what_may_be_below_the_target_is_below() {
        for path in
            ["//graphql/x", "/graphql//x.js", "/graphql.json//", "/graphql./x", "//host/graphql/x", "/graphql/x%2f"]
        {
            assert_eq!(reach(path.as_bytes(), "/graphql"), Reach::Below, "{path}");
        }
        assert_eq!(reach(b"/api//v1/x", "/api"), Reach::Below);
        for path in ["/api/caf%e9-rapide", "/api/\u{bd}.jpg", "/api/x%c0%afy", "/x/..%c0%afapi/caf%e9", "/api\u{2215}x"]
        {
            assert_eq!(reach(path.as_bytes(), "/api"), Reach::Below, "{path}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_not_the_target() {
        for path in [
            "/static//x.js",
            "/static//graphql.js",
            "/docs//graphql/intro.html",
            "/docs/./graphql",
            "/a%2fb",
            "/graphqlx//",
            "/x-graphql//",
            "/static//caf\u{e9}-graphql",
            "/static/..%c0%af",
            "/a%252fb",
            "/%00",
            "*",
        ] {
            assert_eq!(reach(path.as_bytes(), "/graphql"), Reach::Elsewhere, "{path}");
        }
        for path in ["//x", "/static//x.js", "/x%2f", "/\u{bd}.jpg", "/caf%e9.html"] {
            assert_eq!(
                reach(path.as_bytes(), "/"),
                if path == "//x" { Reach::Exact } else { Reach::Elsewhere },
                "{path}"
            );
        }
        for path in [
            "/produits/caf%e9-rapide",
            "/caf%e9-api",
            "/apis/caf%e9",
            "/x/api/caf%e9.html",
            "/\u{3002}api",
            "/prix/10\u{20a9}api",
            "/%e3%80%82/api-\u{bd}",
            "/graphi\u{2024}api",
        ] {
            assert_eq!(reach(path.as_bytes(), "/api"), Reach::Elsewhere, "{path}");
        }
        for path in ["/prix/\u{a5}100", "/caf%e9/x", "/\u{43f}\u{440}\u{438}/%e9"] {
            assert_eq!(reach(path.as_bytes(), "/"), Reach::Elsewhere, "{path}");
        }
        assert_eq!(reach(b"/v1//api/rpc", "/api/v1/rpc"), Reach::Elsewhere);
        assert_eq!(reach(b"/api//rpc", "/api/v1/rpc"), Reach::Elsewhere);
    }

    #[test]
    fn long_paths_take_linear_time() {
        for part in ["/graphql", "%25", "/..", "//", "%c0%af", "/x/..", "\u{2025}graph"] {
            let path = part.repeat(60_000 / part.len());
            reach(path.as_bytes(), "/graphql/graphql/graphql/v1");
        }
    }
}
