//! XPath, as far as rules need it: `/a/b`, `//name`, `/a/*`, `/a/b[2]`, `/a/text()`, `//@id`, `/s:Envelope`.

use super::tree::{Found, Node, Tree};

/// How many steps a path may have.
pub const MAX_STEPS: usize = 32;

/// What a path finds at most in one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nodes. Default 10 000.
    pub nodes: usize,
    /// Bytes of all nodes: each element holds the text of all it contains. Default 8 MiB.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nodes: 10_000, bytes: 8 * 1024 * 1024 }
    }
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    steps: Vec<Step>,
    last: Last,
}

/// Why an expression is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    /// What is wrong.
    pub message: String,
    /// The byte of the expression.
    pub offset: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    /// `//`: at any depth.
    anywhere: bool,
    name: NameTest,
    tests: Vec<Test>,
}

/// Which names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NameTest {
    Any,
    /// A name in any namespace: what an attacker calls the default namespace must not hide an element.
    Local(Vec<u8>),
    /// A prefix of `xmlns`, resolved, and a name.
    Qualified(Vec<u8>, Vec<u8>),
}

/// What is in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    /// `[2]`.
    Position(usize),
    /// `[text()]`.
    HasText,
    /// `[@id]`, `[@id='x']`.
    Attribute(NameTest, Option<Vec<u8>>),
}

/// What a path gives of the elements its steps lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Last {
    Elements,
    /// `/text()`, `//text()`.
    Text {
        anywhere: bool,
    },
    /// `/@id`, `//@*`.
    Attributes {
        anywhere: bool,
        name: NameTest,
    },
}

impl Path {
    /// Parses an expression. `namespace` resolves a prefix.
    ///
    /// # Errors
    /// If the expression is none, or of more than what is supported.
    pub fn parse(text: &[u8], namespace: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Result<Self, PathError> {
        let mut parser = PathParser { text, at: 0, namespace: &namespace };
        let mut path = Self { steps: Vec::new(), last: Last::Elements };
        loop {
            if !parser.accept(b"/") {
                return parser.fail("a path begins with /");
            }
            let anywhere = parser.accept(b"/");
            if parser.accept(b"@") {
                path.last = Last::Attributes { anywhere, name: parser.name_test()? };
            } else if parser.accept(b"text()") {
                path.last = Last::Text { anywhere };
            } else {
                if path.steps.len() == MAX_STEPS {
                    return parser.fail("the path has too many steps");
                }
                let name = parser.name_test()?;
                let tests = parser.tests()?;
                path.steps.push(Step { anywhere, name, tests });
                if !parser.is_at_end() {
                    continue;
                }
            }
            return match parser.is_at_end() {
                true => Ok(path),
                false => parser.fail("nothing can follow here"),
            };
        }
    }

    /// The values the path leads to, in the order of the document. `None` if there are more than the limits allow.
    pub(super) fn find(&self, tree: &Tree, limits: &Limits) -> Option<Vec<Vec<u8>>> {
        // Nothing stands for the document itself, which has one child.
        let mut found: Option<Vec<u32>> = None;
        for step in &self.steps {
            found = Some(step.follow(tree, found.as_deref()));
        }
        let mut values = Values { limits, left: limits.bytes, found: Vec::new() };
        match &self.last {
            Last::Elements => {
                for node in found.unwrap_or_default().iter().filter_map(|at| tree.node(*at)) {
                    values.add(tree.text(node.text.clone()))?;
                }
            }
            Last::Text { anywhere } => {
                for at in scope(tree, found.as_deref(), *anywhere) {
                    for piece in tree.texts_of(at) {
                        values.add(tree.text(piece))?;
                    }
                }
            }
            Last::Attributes { anywhere, name } => {
                for at in scope(tree, found.as_deref(), *anywhere) {
                    for attribute in tree.attributes_of(at).filter(|attribute| name.accepts_attribute(tree, attribute))
                    {
                        values.add(attribute.value)?;
                    }
                }
            }
        }
        Some(values.found)
    }
}

struct Values<'l> {
    limits: &'l Limits,
    left: usize,
    found: Vec<Vec<u8>>,
}

impl Values<'_> {
    fn add(&mut self, value: &[u8]) -> Option<()> {
        self.left = self.left.checked_sub(value.len())?;
        (self.found.len() < self.limits.nodes).then(|| self.found.push(value.to_vec()))
    }
}

/// The elements themselves, or with all that is in them.
fn scope(tree: &Tree, found: Option<&[u32]>, anywhere: bool) -> Vec<u32> {
    match (found, anywhere) {
        (None, true) => (0..tree.len()).collect(),
        // The document has neither text nor attributes of its own.
        (None, false) => Vec::new(),
        (Some(found), false) => found.to_vec(),
        (Some(found), true) => {
            let mut all = Vec::new();
            let mut next = 0;
            for &at in found {
                let end = tree.node(at).map_or(at, |node| node.end);
                all.extend(at.max(next)..end.max(next));
                next = next.max(end);
            }
            all
        }
    }
}

impl Step {
    fn follow(&self, tree: &Tree, from: Option<&[u32]>) -> Vec<u32> {
        let mut found = Vec::new();
        if from.is_none() {
            // The child of the document is its root.
            self.choose(tree, [0], &mut found);
        }
        if from.is_some() || self.anywhere {
            for parent in scope(tree, from, self.anywhere) {
                self.choose(tree, tree.children(parent), &mut found);
            }
        }
        found.sort_unstable();
        found
    }

    /// Those of the children of one element that the step leads to: positions are counted among them.
    fn choose(&self, tree: &Tree, children: impl IntoIterator<Item = u32>, found: &mut Vec<u32>) {
        let named = children.into_iter().filter(|at| tree.node(*at).is_some_and(|node| self.accepts(tree, *at, node)));
        let mut chosen: Vec<u32> = Vec::new();
        match self.tests.as_slice() {
            [] => {
                found.extend(named);
                return;
            }
            _ => chosen.extend(named),
        }
        for test in &self.tests {
            match test {
                Test::Position(position) => {
                    chosen = position.checked_sub(1).and_then(|at| chosen.get(at)).copied().into_iter().collect();
                }
                Test::HasText => chosen.retain(|at| tree.texts_of(*at).next().is_some()),
                Test::Attribute(name, value) => chosen.retain(|at| {
                    tree.attributes_of(*at).any(|attribute| {
                        name.accepts_attribute(tree, &attribute)
                            && value.as_ref().is_none_or(|value| value == attribute.value)
                    })
                }),
            }
        }
        found.extend(chosen);
    }

    fn accepts(&self, tree: &Tree, at: u32, node: &Node) -> bool {
        self.name.accepts(tree.name(node), || tree.namespace(at))
    }
}

impl NameTest {
    fn accepts_attribute(&self, tree: &Tree, attribute: &Found<'_>) -> bool {
        self.accepts(attribute.name, || tree.namespace_of_attribute(attribute))
    }

    /// Whether it accepts the name, as written, of an element or an attribute.
    fn accepts<'x>(&self, written: &[u8], namespace_of: impl FnOnce() -> Option<&'x [u8]>) -> bool {
        let colon = memchr::memchr(b':', written);
        let local = colon.and_then(|at| written.get(at + 1..)).unwrap_or(written);
        match self {
            Self::Any => true,
            Self::Local(name) => name == local,
            Self::Qualified(namespace, name) => name == local && namespace_of() == Some(namespace.as_slice()),
        }
    }
}

struct PathParser<'a> {
    text: &'a [u8],
    at: usize,
    namespace: &'a dyn Fn(&[u8]) -> Option<Vec<u8>>,
}

impl<'a> PathParser<'a> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, PathError> {
        Err(PathError { message: message.into(), offset: self.at.min(self.text.len()) })
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    fn accept(&mut self, text: &[u8]) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn name_test(&mut self) -> Result<NameTest, PathError> {
        if self.accept(b"*") {
            return Ok(NameTest::Any);
        }
        let start = self.at;
        let name = self.name()?;
        if self.rest().first() == Some(&b'(') {
            self.at = start;
            return self.fail("functions are not supported, but for text() at the end");
        }
        if self.rest().starts_with(b"::") {
            self.at = start;
            return self.fail("axes are not supported: write /name, //name or /@name");
        }
        if !self.accept(b":") {
            return Ok(NameTest::Local(name.to_vec()));
        }
        let Some(namespace) = (self.namespace)(name) else {
            self.at = start;
            return self.fail(format!("the prefix '{}' is not declared", String::from_utf8_lossy(name)));
        };
        Ok(NameTest::Qualified(namespace, self.name()?.to_vec()))
    }

    fn name(&mut self) -> Result<&'a [u8], PathError> {
        let rest = self.rest();
        let length = rest.iter().take_while(|byte| super::is_name(**byte) && **byte != b':').count();
        let name = rest.get(..length).unwrap_or_default();
        if matches!(name.first(), None | Some(b'-' | b'.' | b'0'..=b'9')) {
            return self.fail("a name, * or @ was expected");
        }
        self.at += length;
        Ok(name)
    }

    fn tests(&mut self) -> Result<Vec<Test>, PathError> {
        let mut tests = Vec::new();
        while self.accept(b"[") {
            let start = self.at;
            if self.accept(b"text()") {
                tests.push(Test::HasText);
            } else if self.accept(b"@") {
                let name = self.name_test()?;
                let value = if self.accept(b"=") { Some(self.quoted()?) } else { None };
                tests.push(Test::Attribute(name, value));
            } else {
                let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = self.rest().get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
                let Some(position) = number.and_then(|text| text.parse().ok()).filter(|position| *position > 0) else {
                    return self.fail("a position, text() or an attribute was expected");
                };
                self.at += digits;
                tests.push(Test::Position(position));
            }
            if !self.accept(b"]") {
                self.at = start;
                return self.fail("this condition is not supported: write [2], [text()], [@id] or [@id='x']");
            }
        }
        Ok(tests)
    }

    fn quoted(&mut self) -> Result<Vec<u8>, PathError> {
        let quote = self.rest().first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
        let text = quote.and_then(|quote| self.rest().get(1..)?.split(|&byte| byte == quote).next());
        let Some(text) = text.filter(|text| self.rest().len() > text.len() + 1) else {
            return self.fail("a value in quotes was expected");
        };
        self.at += text.len() + 2;
        Ok(text.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits as XmlLimits, parse_tree};
    use super::*;

    const DOCUMENT: &str = "<shop xmlns='urn:d' xmlns:x='urn:x' id='1'><book lang='en'>A<price>1</price></book>\
        <book lang='de' x:k='q'>B<price>2</price><price>3</price></book>\
        <x:note>n<x:deep><price>4</price></x:deep></x:note><note/>tail</shop>";

    fn path(text: &str) -> Result<Path, PathError> {
        Path::parse(text.as_bytes(), |prefix| match prefix {
            b"p" => Some(b"urn:x".to_vec()),
            b"d" => Some(b"urn:d".to_vec()),
            _ => None,
        })
    }

    fn found(text: &str) -> Vec<String> {
        let (xml, shape, error) = parse_tree(DOCUMENT.as_bytes(), &XmlLimits::default());
        assert_eq!(error, None);
        let values = Tree::new(&shape, &xml).find(&path(text).unwrap(), &Limits::default()).unwrap();
        values.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
    }

    #[test]
    fn paths_lead_to_elements_texts_and_attributes() {
        let cases: &[(&str, &[&str])] = &[
            ("/shop/book/price", &["1", "2", "3"]),
            ("/shop/book", &["A1", "B23"]),
            ("/*", &["A1B23n4tail"]),
            ("/book", &[]),
            ("//price", &["1", "2", "3", "4"]),
            ("/shop//price", &["1", "2", "3", "4"]),
            ("/shop/book//price", &["1", "2", "3"]),
            ("//shop//note//price", &["4"]),
            ("/shop/*/price", &["1", "2", "3"]),
            ("/shop/book[2]/price[1]", &["2"]),
            ("//price[1]", &["1", "2", "4"]),
            ("/shop/book[3]", &[]),
            ("/shop/book/text()", &["A", "B"]),
            ("/shop/text()", &["tail"]),
            ("/shop/book[2]//text()", &["B", "2", "3"]),
            ("//@lang", &["en", "de"]),
            ("/shop/@id", &["1"]),
            ("/shop/book/@*", &["en", "de", "q"]),
            ("//@*", &["1", "en", "de", "q"]),
            ("//@k", &["q"]),
            ("//@p:k", &["q"]),
            ("/shop/@*", &["1"]),
            ("/shop/book[@lang='de']/price", &["2", "3"]),
            ("/shop/book[@p:k]/text()", &["B"]),
            ("/shop/note[text()]", &["n4"]),
            ("/shop/note", &["n4", ""]),
            ("/shop/p:note", &["n4"]),
            ("/d:shop/d:note", &[""]),
            ("/p:shop", &[]),
            ("//p:deep/d:price", &["4"]),
        ];
        for (text, values) in cases {
            assert_eq!(found(text), *values, "{text}");
        }
    }

    #[test]
    fn what_is_not_supported_is_refused_with_its_place() {
        for (text, offset, part) in [
            ("a/b", 0, "begins with /"),
            ("/", 1, "a name"),
            ("/a/", 3, "a name"),
            ("/count(//a)", 1, "functions"),
            ("/a/child::b", 3, "axes"),
            ("/a[last()]", 3, "a position"),
            ("/a[0]", 3, "a position"),
            ("/a[1", 3, "not supported"),
            ("/a[@b=c]", 6, "in quotes"),
            ("/a[@b='c]", 6, "in quotes"),
            ("/z:a", 1, "prefix 'z'"),
            ("/@id/b", 4, "nothing can follow"),
            ("/a/text()/b", 9, "nothing can follow"),
            ("/a b", 2, "begins with /"),
        ] {
            let error = path(text).expect_err(text);
            assert_eq!(error.offset, offset, "{text}: {}", error.message);
            assert!(error.message.contains(part), "{text}: {}", error.message);
        }
        assert!(path(&"/a".repeat(MAX_STEPS)).is_ok());
        assert!(path(&"/a".repeat(MAX_STEPS + 1)).is_err());
    }

    #[test]
    fn limits_hold() {
        let nested = format!("{}x{}", "<a>".repeat(200), "</a>".repeat(200));
        let (xml, shape, error) = parse_tree(nested.as_bytes(), &XmlLimits::default());
        assert_eq!(error, None);
        let (tree, all) = (Tree::new(&shape, &xml), path("//a").unwrap());
        assert_eq!(tree.find(&all, &Limits { nodes: 200, bytes: 200 }).unwrap().len(), 200);
        assert_eq!(tree.find(&all, &Limits { nodes: 199, bytes: 200 }), None);
        assert_eq!(tree.find(&all, &Limits { nodes: 200, bytes: 199 }), None);
    }
}
