//! What the laxest of backends may take an ambiguous path for.
//!
//! [`PathReadings`](crate::PathReadings) names the readings that backends agree on, and calls a path ambiguous where they do not. For a
//! plugin that guards a few paths this module answers whether one of them may be meant: it assumes that a backend undoes every escape,
//! cuts whatever it may cut and resolves dot segments whenever that helps. So it may take a path for a target that no backend does, and
//! never the other way round.

use crate::path::{escaped, has_lookalike};

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

/// A path with its escapes undone, taken apart.
#[derive(Debug)]
pub struct LaxPath {
    /// It may be anything: it has escapes of escapes of escapes.
    anything: bool,
    /// Texts that it may stand for, in lower case, if it has characters that backends take for others or bytes that are no UTF-8.
    odd: Vec<Vec<u8>>,
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
                return Self { anything: true, odd: Vec::new(), segments: Vec::new(), authority: 0 };
            }
        }
        let odd = if has_lookalike(&text) { lookalikes(text.clone()) } else { Vec::new() };
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
        Self { anything: false, odd, segments, authority }
    }

    /// How near the path may come to a target, which is a path in plain text; a slash at its end does not count. Linear in the path
    /// for each segment of the target.
    #[must_use]
    pub fn reach(&self, target: &[u8]) -> Reach {
        let target = target.to_ascii_lowercase();
        let target = decode(&target).unwrap_or(target);
        let names: Vec<&[u8]> = target.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        let odd = |text: &Vec<u8>| if names.is_empty() { may_be_root(text) } else { has_in_turn(text, &names) };
        if self.anything || self.odd.iter().any(odd) {
            return Reach::Exact;
        }
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
                    step(&mut states, &names, found, authority > 0);
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

/// Undoes `%41` and `%u0041`; `None` where there is no such escape.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.contains(&b'%') {
        return None;
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut found = false;
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            decoded.push(*byte);
        } else if let Some((value, behind)) = escaped(rest) {
            decoded.push(value);
            (rest, found) = (behind, true);
        } else if let Some((letter, behind)) = wide(rest) {
            decoded.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            (rest, found) = (behind, true);
        } else {
            decoded.push(*byte);
        }
    }
    found.then_some(decoded)
}

/// The character of `u0041`, which is behind a percent sign.
fn wide(text: &[u8]) -> Option<(char, &[u8])> {
    let digits = text.strip_prefix(b"u").or_else(|| text.strip_prefix(b"U"))?;
    let (high, behind) = escaped(digits)?;
    let (low, behind) = escaped(behind)?;
    Some((char::from_u32(u32::from(high) << 8 | u32::from(low))?, behind))
}

/// The texts that one with odd characters may stand for: as it is, with wide letters as ASCII, with characters cut to their lowest
/// byte, with overlong forms as ASCII. All in lower case.
fn lookalikes(text: Vec<u8>) -> Vec<Vec<u8>> {
    let characters = String::from_utf8_lossy(&text);
    let narrow = |letter: char| match letter {
        '\u{ff01}'..='\u{ff5e}' => [u8::try_from(u32::from(letter) - 0xfee0).ok(), None],
        // Leaders, and full stops in other forms.
        '\u{2025}' | '\u{2026}' | '\u{fe19}' => [Some(b'.'); 2],
        '\u{2024}' | '\u{2488}'..='\u{249b}' | '\u{3002}' | '\u{fe52}' | '\u{ff61}' | '\u{1f100}' => [Some(b'.'), None],
        other => [Some(u8::try_from(other).unwrap_or(b'?')), None],
    };
    let lowest = |letter: char| u32::from(letter).to_le_bytes().first().copied().unwrap_or_default();
    let wide: Vec<u8> = characters.chars().flat_map(narrow).flatten().collect();
    let cut: Vec<u8> = characters.chars().map(lowest).collect();
    let short = shortened(&text);
    [wide.to_ascii_lowercase(), cut.to_ascii_lowercase(), short.to_ascii_lowercase(), text].into()
}

/// A text with the ASCII characters in one byte that are written in several, which is no UTF-8.
fn shortened(text: &[u8]) -> Vec<u8> {
    let mut short = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        let more = match byte {
            0xc0 | 0xc1 => 1,
            0xe0 => 2,
            0xf0 => 3,
            0xf8 => 4,
            0xfc => 5,
            _ => 0,
        };
        let tail = behind.get(..more).filter(|tail| more > 0 && tail.iter().all(|byte| byte & 0xc0 == 0x80));
        let value =
            tail.map(|tail| tail.iter().fold(u32::from(byte & 1), |all, byte| all << 6 | u32::from(byte & 0x3f)));
        match value.and_then(|value| u8::try_from(value).ok()).filter(u8::is_ascii) {
            Some(value) => {
                short.push(value);
                rest = behind.get(more..).unwrap_or_default();
            }
            None => {
                short.push(*byte);
                rest = behind;
            }
        }
    }
    short
}

/// Whether a text may be the path `/`: something leads up, or nothing has a name.
fn may_be_root(text: &[u8]) -> bool {
    text.windows(2).any(|pair| pair == b"..") || !text.iter().any(u8::is_ascii_alphanumeric)
}

/// Whether a text has all names, one behind the other.
fn has_in_turn(text: &[u8], names: &[&[u8]]) -> bool {
    let mut rest = text;
    names.iter().all(|name| {
        let found = rest.windows(name.len().max(1)).position(|window| window == *name);
        rest = found.and_then(|at| rest.get(at + name.len()..)).unwrap_or_default();
        found.is_some()
    })
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
        ] {
            assert_eq!(reach(path.as_bytes(), "/graphql"), Reach::Exact, "{path}");
            assert_eq!(reach(path.as_bytes(), "/GraphQL/"), Reach::Exact, "{path}");
        }
        assert_eq!(reach(b"/api//v1%2f/rpc", "/api/v1/rpc/"), Reach::Exact);
        assert_eq!(reach(b"/x/../api/y/../v1/rpc", "/api/v1/rpc"), Reach::Exact);
        assert_eq!(reach(b"/a//b c", "/a/b%20c"), Reach::Exact);
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
