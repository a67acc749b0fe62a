//! robots.txt as a policy has it (RFC 9309): served, and compared with what its readers take.

use std::collections::HashMap;
use std::net::IpAddr;

use exchange::shared_counts::Window;
use exchange::{Host, spelling};
use memchr::memmem;

/// The path at which it is served.
pub(crate) const PATH: &[u8] = b"/robots.txt";
/// The rules of a file that are compared with requests, at most; those behind are not.
const MAX_RULES: usize = 512;
/// The bytes of a path, and of the pattern of a rule, that are compared. A rule with a longer pattern is left out.
const MAX_PATH: usize = 2048;
/// The asterisks of a rule, at most; one with more is left out. A path is searched once for what is behind each.
const MAX_ASTERISKS: usize = 16;
/// How long it is remembered who has read it, in milliseconds: crawlers may use a copy for a day (RFC 9309, section 2.4).
const REMEMBERED: u64 = 86_400_000;
/// The readers that a node remembers, at most.
const MAX_READERS: u32 = 20_000;

/// The rules of a robots.txt.
pub(crate) struct Robots {
    groups: Vec<Vec<RobotsRule>>,
    /// The groups of each user agent, in lower case.
    agents: HashMap<Vec<u8>, Vec<usize>>,
}

struct RobotsRule {
    allow: bool,
    /// What is between its asterisks; normalized.
    parts: Vec<Vec<u8>>,
    /// The same with further escapes undone ([`Form::Spelt`]); `None` where that is the same.
    spelt: Option<Vec<Vec<u8>>>,
    /// It ends with `$`.
    anchored: bool,
    /// The bytes of the pattern: of the rules that match the longest holds.
    length: usize,
}

/// How a path and a pattern are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As RFC 9309 says: escapes of unreserved characters are undone.
    Literal,
    /// As lenient backends read a path, of which [`spelling`] has undone the escapes: those of visible ASCII characters are undone in
    /// patterns and queries too, but for `/`, `\`, `?`, `#`, `%` and `;`, which would change its structure, or another escape.
    Spelt,
}

/// Who has read a robots.txt, by network and class of agent; shared by all nodes.
pub(crate) struct Readers(Window);

// === impl Robots ===

impl Robots {
    /// Reads a file. What is no line of RFC 9309 is skipped.
    pub(crate) fn new(text: &[u8]) -> Self {
        let mut robots = Self { groups: Vec::new(), agents: HashMap::new() };
        let (mut rules, mut naming) = (0_usize, false);
        for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = line.split_at(colon);
            let (name, value) = (name.trim_ascii(), value.get(1..).unwrap_or_default().trim_ascii());
            if name.eq_ignore_ascii_case(b"user-agent") {
                if !naming {
                    robots.groups.push(Vec::new());
                }
                naming = true;
                let place = robots.groups.len().saturating_sub(1);
                robots.agents.entry(value.to_ascii_lowercase()).or_default().push(place);
                continue;
            }
            let allow = name.eq_ignore_ascii_case(b"allow");
            if !allow && !name.eq_ignore_ascii_case(b"disallow") {
                continue;
            }
            naming = false;
            // An empty pattern matches nothing.
            let Some(group) = robots.groups.last_mut() else { continue };
            let asterisks = value.iter().filter(|byte| **byte == b'*').count();
            let bounded = value.len() <= MAX_PATH && asterisks <= MAX_ASTERISKS && rules < MAX_RULES;
            if !value.is_empty() && bounded {
                group.push(RobotsRule::new(allow, value));
                rules += 1;
            }
        }
        robots
    }

    /// The groups that are for an agent of this name: its own, or those for all.
    pub(crate) fn groups_of(&self, name: &[u8]) -> Vec<usize> {
        let own = self.agents.get(&name.to_ascii_lowercase());
        own.or_else(|| self.agents.get(&b"*"[..])).cloned().unwrap_or_default()
    }

    /// Whether these groups forbid a path with its query, as it was sent or in any spelling that some backend undoes: a crawler that
    /// asks for `/x/..%2fprivate` means `/private`. The longest pattern holds, of two as long the one that allows.
    pub(crate) fn forbid(&self, groups: &[usize], target: &[u8]) -> bool {
        let rules: Vec<&RobotsRule> = groups.iter().filter_map(|group| self.groups.get(*group)).flatten().collect();
        let (path, query) = target.split_at(target.iter().position(|byte| *byte == b'?').unwrap_or(target.len()));
        if rules.is_empty() {
            return false;
        }
        let undone: Vec<Vec<u8>> = spelling::decoded(path).collect();
        let readings = || std::iter::once(path).chain(undone.iter().map(Vec::as_slice));
        let canonical: Vec<Vec<u8>> = readings().map(spelling::canonical).collect();
        // The file itself. What leads to it through dot segments may be what is forbidden for a backend that does not resolve them.
        let climbs = |path: &[u8]| memmem::find(path, b"..").is_some();
        if canonical.iter().all(|spelt| spelt == PATH) && !readings().any(climbs) {
            return false;
        }
        let forbids = |path: &[u8], form: Form| {
            let path = normalized(path.get(..MAX_PATH).unwrap_or(path), form);
            let matching = rules.iter().filter(|rule| rule.matches(&path, form));
            matching.max_by_key(|rule| (rule.length, rule.allow)).is_some_and(|rule| !rule.allow)
        };
        if forbids(target, Form::Literal) {
            return true;
        }
        let same = undone.is_empty() && !query.contains(&b'%') && rules.iter().all(|rule| rule.spelt.is_none());
        canonical.iter().any(|spelt| {
            // What is compared like the literal path is not compared again.
            let differs = spelt != PATH && !(same && spelt == path);
            differs && forbids(&[spelt.as_slice(), query].concat(), Form::Spelt)
        })
    }
}

// === impl RobotsRule ===

impl RobotsRule {
    fn new(allow: bool, pattern: &[u8]) -> Self {
        let whole = pattern.strip_suffix(b"$");
        let parts =
            |form| whole.unwrap_or(pattern).split(|byte| *byte == b'*').map(|part| normalized(part, form)).collect();
        let (literal, spelt): (Vec<_>, Vec<_>) = (parts(Form::Literal), parts(Form::Spelt));
        let spelt = (spelt != literal).then_some(spelt);
        Self { allow, parts: literal, spelt, anchored: whole.is_some(), length: pattern.len() }
    }

    /// Whether it matches a path that is normalized in a form.
    fn matches(&self, path: &[u8], form: Form) -> bool {
        let parts = self.spelt.as_ref().filter(|_| form == Form::Spelt).unwrap_or(&self.parts);
        let Some((first, others)) = parts.split_first() else { return false };
        let Some(mut rest) = path.strip_prefix(first.as_slice()) else { return false };
        let Some((last, between)) = others.split_last() else { return !self.anchored || rest.is_empty() };
        for part in between {
            let Some(place) = memmem::find(rest, part) else { return false };
            rest = rest.get(place.saturating_add(part.len())..).unwrap_or_default();
        }
        if self.anchored { rest.ends_with(last) } else { memmem::find(rest, last).is_some() }
    }
}

impl Form {
    /// Whether the escape of a byte is undone.
    fn undoes(self, value: u8) -> bool {
        match self {
            Self::Literal => value.is_ascii_alphanumeric() || b"-._~".contains(&value),
            Self::Spelt => value.is_ascii_graphic() && !b"/\\?#%;".contains(&value),
        }
    }
}

/// A path in the form that rules are compared in: bytes that need no escape have none, all others have one in upper case.
fn normalized(path: &[u8], form: Form) -> Vec<u8> {
    let mut normal = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match spelling::escaped(rest).filter(|_| *byte == b'%') {
            Some((value, behind)) => {
                rest = behind;
                if form.undoes(value) {
                    normal.push(value);
                } else {
                    normal.extend_from_slice(format!("%{value:02X}").as_bytes());
                }
            }
            None if byte.is_ascii_graphic() => normal.push(*byte),
            None => normal.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    normal
}

// === impl Readers ===

impl Readers {
    pub(crate) fn new() -> Result<Self, String> {
        // A node that has served no text to a bot is asked for what is forbidden as well.
        Ok(Self(Window::new("bots.robots", REMEMBERED, 8)?.max_keys(MAX_READERS).everywhere_from(1)))
    }

    /// Remembers that an agent has read the file.
    pub(crate) fn note(&self, class: &str, address: &str, host: &dyn Host) {
        if let Some(key) = reader(class, address) {
            self.0.add(host, &key, 1);
        }
    }

    /// Whether it has read the file within the last day.
    pub(crate) fn has(&self, class: &str, address: &str, host: &dyn Host) -> bool {
        reader(class, address).is_some_and(|key| {
            let count = self.0.get(host, &key);
            count.own > 0 || count.others > 0
        })
    }
}

/// The key of a reader. Crawlers fetch from many addresses of an IPv6 network: the first 64 bits count.
fn reader(class: &str, address: &str) -> Option<Vec<u8>> {
    let network = match address.parse::<IpAddr>().ok()?.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().into_iter().take(8).collect(),
    };
    Some([network.as_slice(), class.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbids(text: &str, agent: &str, path: &str) -> bool {
        let robots = Robots::new(text.as_bytes());
        robots.forbid(&robots.groups_of(agent.as_bytes()), path.as_bytes())
    }

    #[test]
    fn an_agent_obeys_its_own_groups_or_those_for_all() {
        let text = "User-agent: a\nUser-Agent: B\nDisallow: /ab\n\nuser-agent: *\nDisallow: /all # x\n\nUSER-AGENT: a\n\
                    disallow : /second\r\nSitemap: https://x.example/\nDisallow: /third\n";
        for (agent, path, forbidden) in [
            ("A", "/ab/c?x", true),
            ("b", "/ab", true),
            ("a", "/second", true),
            ("a", "/third", true),
            ("b", "/second", false),
            ("a", "/all", false),
            ("c", "/all", true),
            ("c", "/ab", false),
            ("c", "/robots.txt?x", false),
        ] {
            assert_eq!(forbids(text, agent, path), forbidden, "{agent} {path}");
        }
        assert!(forbids("User-agent: *\nDisallow: /\n", "x", "/"));
        assert!(!forbids("User-agent: *\nDisallow: /\n", "x", "/robots.txt"), "everyone may read the file itself");
        for none in ["", "Disallow: /\n", "User-agent: *\nDisallow:\n", "User-agent\nDisallow /\n", "\u{0}\u{ff}:"] {
            assert!(!forbids(none, "x", "/"), "{none}");
        }
    }

    #[test]
    fn the_longest_rule_holds_and_of_two_the_one_that_allows() {
        let all = |rules: &str| format!("User-agent: *\n{rules}");
        for (rules, path, forbidden) in [
            ("Disallow: /a\nAllow: /a/b", "/a/b/c", false),
            ("Disallow: /a\nAllow: /a/b", "/a/c", true),
            ("Allow: /a\nDisallow: /a", "/a", false),
            ("Disallow: /*.gif$", "/x/y.gif", true),
            ("Disallow: /*.gif$", "/x/y.gif?z", false),
            ("Disallow: /a*b*c", "/a-b-c-d", true),
            ("Disallow: /a*b*c", "/a-c-b", false),
            ("Disallow: /a*b$", "/ab-b", true),
            ("Disallow: /a*b$", "/a", false),
            ("Disallow: *", "/", true),
            ("Disallow: /$", "/", true),
            ("Disallow: /$", "/a", false),
            ("Disallow: /%7Euser/%e4", "/~user/\u{0}", false),
            ("Disallow: /~user/%e4%2f", "/%7euser/%E4%2F", true),
            ("Disallow: /\u{e4}", "/%C3%A4", true),
            ("Disallow: /%", "/%zz", true),
        ] {
            assert_eq!(forbids(&all(rules), "x", path), forbidden, "{rules} {path}");
        }
    }

    #[test]
    fn what_is_forbidden_is_so_in_every_spelling() {
        let text = "User-agent: *\nDisallow: /private/\nDisallow: /a(b)\nDisallow: /c%5Bd%5d\nDisallow: /e%2Ff\nDisallow: /*?id=(1)\n\
                    Disallow: /exact$\nAllow: /private/open\n";
        let forbidden = [
            "/private/x",
            "/%70rivate/x",
            "/%2570rivate/x",
            "//private/x",
            "/./private/x",
            "/x/../private/x",
            "/x/%2e%2e/private/x",
            "/x/..%2fprivate%2fx",
            "/x/..%252Fprivate/x",
            "/private%2fx",
            "/private%2Fx?y",
            "/private;v=1/x",
            "/;/private/x",
            "/x/..;/private/x",
            "\\private\\x",
            "/private/open/../x",
            "/private/open%2f..%2fx",
            "/private./x",
            "/private%20/x",
            "/private%09/x",
            "/%u0070rivate/x",
            "http://host/private/x",
            "/a%28b%29",
            "/c[d]",
            "/c%5bd%5D",
            "/e%2ff",
            "/x?id=%281%29",
            "/exact",
            "/./exact",
            "/%65xact",
            &format!("{}private/x", "/./".repeat(MAX_PATH)),
        ];
        for path in forbidden {
            assert!(forbids(text, "x", path), "{path}");
        }
        for path in [
            "/",
            "/privately",
            "/private",
            "/private/open/x",
            "/x/../private/open",
            "/public/../open",
            "/e/f",
            "/e/../f",
            "/x?id=(2)",
            "/x/../robots.txt",
            "/exact/",
            "/x%2fprivate%2f",
            "/100%",
            "",
        ] {
            assert!(!forbids(text, "x", path), "{path}");
        }
        let all = "User-agent: *\nDisallow: /\n";
        for path in ["//robots.txt", "/robots.txt;x=1", "/./robots.txt?x=.."] {
            assert!(!forbids(all, "x", path), "{path}");
        }
        for path in ["/x/../robots.txt", "/..\\robots.txt", "/robots.txt;x=%2f..%2fprivate%2fx"] {
            assert!(forbids(all, "x", path), "{path}");
        }
        for path in ["/private/../robots.txt", "/private/..;/robots.txt?y", "/robots.txt;x=%252f..%252fprivate%252fx"] {
            assert!(forbids(text, "x", path), "{path}: the file itself is elsewhere");
        }
    }

    #[test]
    fn what_is_compared_is_bounded() {
        let many = |count: usize| format!("User-agent: *\n{}Disallow: /last\n", "Disallow: /x\n".repeat(count));
        assert!(forbids(&many(MAX_RULES - 1), "x", "/last"));
        assert!(!forbids(&many(MAX_RULES), "x", "/last"));
        let long = |length: usize| format!("User-agent: *\nDisallow: /{}\n", "a".repeat(length));
        let path = format!("/{}", "a".repeat(2 * MAX_PATH));
        assert!(forbids(&long(MAX_PATH - 1), "x", &path));
        assert!(!forbids(&long(MAX_PATH), "x", &path));
        let stars = |count: usize| format!("User-agent: *\nDisallow: /{}\n", "a*".repeat(count));
        assert!(forbids(&stars(MAX_ASTERISKS), "x", &path));
        assert!(!forbids(&stars(MAX_ASTERISKS + 1), "x", &path));
    }
}
