//! Templates of paths as automata: which paths an operation has.

/// A template such as `/users/{id}.json`, position by position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Template {
    tokens: Vec<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    /// This byte.
    Byte(u8),
    /// Any byte of a segment.
    Segment,
    /// Any number of bytes of a segment.
    SegmentRest,
    /// Any number of bytes, slashes among them.
    Anything,
}

/// Where in a template a path may be, in order.
pub(crate) type Positions = Vec<u16>;

/// Templates that are preferred to one, at most.
const MAX_PREFERRED: usize = 64;
/// The bytes of a template that count, at most.
const MAX_TOKENS: usize = 4096;

// === impl Template ===

impl Template {
    /// The template of a contract: each `{name}` is one character or more of a segment.
    pub(crate) fn of_contract(text: &str) -> Template {
        let mut tokens = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((byte, after)) = rest.split_first() {
            if tokens.len() >= MAX_TOKENS {
                break;
            }
            let end = (*byte == b'{').then(|| after.iter().position(|byte| *byte == b'}')).flatten();
            match end {
                Some(end) => {
                    tokens.extend([Token::Segment, Token::SegmentRest]);
                    rest = after.get(end + 1..).unwrap_or_default();
                }
                // No request has what follows in its path.
                None if b"?#".contains(byte) => break,
                None => {
                    tokens.push(Token::Byte(*byte));
                    rest = after;
                }
            }
        }
        Template { tokens }
    }

    /// Every path.
    pub(crate) fn any() -> Template {
        Template { tokens: vec![Token::Byte(b'/'), Token::Anything] }
    }

    /// The templates of a sorted list that are preferred to it where a path has both, some of them if there are many: they have text
    /// where this one has a parameter. One that is left out makes more paths those of this template.
    pub(crate) fn preferred<'a>(&self, sorted: &'a [Template]) -> Vec<&'a Template> {
        let parameters = self.tokens.iter().enumerate().filter(|(_, token)| **token == Token::Segment);
        let at = |(index, _): (usize, &Token)| {
            let before = self.tokens.get(..index).unwrap_or_default();
            let first = sorted.partition_point(|other| other.tokens.as_slice() < before);
            // Text is sorted in front of parameters.
            let has_text = move |other: &&Template| {
                other.tokens.starts_with(before) && matches!(other.tokens.get(index), Some(Token::Byte(_)))
            };
            let from =
                sorted.get(first..).unwrap_or_default().iter().skip_while(move |other| other.tokens.len() == index);
            from.take_while(has_text).take(MAX_PREFERRED)
        };
        parameters.flat_map(at).take(MAX_PREFERRED).collect()
    }

    /// Whether `other` is preferred to it where a path has both.
    #[cfg(test)]
    fn yields_to(&self, other: &Template) -> bool {
        let differ = self.tokens.iter().zip(&other.tokens).find(|(own, others)| own != others);
        matches!(differ, Some((Token::Segment, Token::Byte(_))))
    }

    /// The bytes that it tells apart.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.tokens.iter().filter_map(|token| if let Token::Byte(byte) = token { Some(*byte) } else { None })
    }

    /// Where a path begins.
    pub(crate) fn start(&self) -> Positions {
        let mut positions = Vec::new();
        self.add(0, &mut positions);
        positions
    }

    /// Where a path may be after one more byte; nowhere if it cannot have the byte.
    pub(crate) fn step(&self, positions: &Positions, byte: u8) -> Positions {
        let mut after = Vec::new();
        for position in positions {
            match self.tokens.get(usize::from(*position)) {
                Some(Token::Byte(own)) if *own == byte => self.add(position + 1, &mut after),
                Some(Token::Segment) if byte != b'/' => self.add(position + 1, &mut after),
                Some(Token::SegmentRest) if byte != b'/' => self.add(*position, &mut after),
                Some(Token::Anything) => self.add(*position, &mut after),
                _ => {}
            }
        }
        after.sort_unstable();
        after.dedup();
        after
    }

    /// Whether a path may end there.
    pub(crate) fn ends(&self, positions: &Positions) -> bool {
        positions.iter().any(|position| usize::from(*position) == self.tokens.len())
    }

    fn add(&self, position: u16, positions: &mut Positions) {
        positions.push(position);
        if matches!(self.tokens.get(usize::from(position)), Some(Token::SegmentRest | Token::Anything)) {
            self.add(position + 1, positions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(template: &Template, path: &str) -> bool {
        template.ends(&path.bytes().fold(template.start(), |positions, byte| template.step(&positions, byte)))
    }

    #[test]
    fn paths_of_templates() {
        let template = Template::of_contract("/users/{id}.json/{name}");
        for path in ["/users/1.json/x", "/users/a.b.json/y.json", "/users/.json.json/x"] {
            assert!(has(&template, path), "{path}");
        }
        for path in ["/users/.json/x", "/users/1.json/", "/users/1.json/x/y", "/users/1/2.json/x", "/user/1.json/x"] {
            assert!(!has(&template, path), "{path}");
        }
        assert!(has(&Template::of_contract("/a{"), "/a{") && has(&Template::of_contract("/a#b"), "/a"));
        assert!(has(&Template::any(), "/") && has(&Template::any(), "/a/b") && !has(&Template::any(), "a"));
    }

    #[test]
    fn text_is_preferred_to_parameters() {
        let of = Template::of_contract;
        assert!(of("/users/{id}").yields_to(&of("/users/me")));
        assert!(of("/{a}/{b}").yields_to(&of("/x/{b}")));
        assert!(of("/{a}/{b}").yields_to(&of("/{a}/x")));
        assert!(!of("/users/me").yields_to(&of("/users/{id}")));
        assert!(!of("/users/{id}").yields_to(&of("/users/{name}")));
        assert!(!of("/users/{id}").yields_to(&of("/other/me")));
        let texts = [
            "/users/me",
            "/users/{id}",
            "/{a}/x",
            "/users",
            "/users/",
            "/users/me/{x}",
            "/users/{id}/x",
            "/other",
            "/{a}",
        ];
        let mut sorted: Vec<Template> = texts.map(of).to_vec();
        sorted.sort();
        for template in &sorted {
            let mut found: Vec<&Template> = template.preferred(&sorted);
            found.sort();
            let expected: Vec<&Template> = sorted.iter().filter(|other| template.yields_to(other)).collect();
            assert_eq!(found, expected, "{template:?}");
        }
        let many: Vec<Template> = (1_000..9_000).map(|number| of(&format!("/{number}"))).collect();
        assert_eq!(of("/{x}").preferred(&many).len(), MAX_PREFERRED);
    }
}
