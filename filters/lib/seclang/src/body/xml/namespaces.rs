//! The namespaces of elements and attributes.
//!
//! Found in one pass over the document: many elements, deep in others that declare many prefixes, would each ask all of them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::tree::Shape;

/// The namespace of each element and each attribute, where its prefix is declared.
pub(super) struct Namespaces<'x> {
    pub(super) elements: Vec<Option<&'x [u8]>>,
    pub(super) attributes: Vec<Option<&'x [u8]>>,
}

/// What is declared at one place of the document.
struct Scope<'x> {
    shape: &'x Shape,
    /// For each prefix what it stands for, the innermost last.
    declared: BTreeMap<&'x [u8], Vec<&'x [u8]>>,
    /// Where each open element with declarations ends, and these.
    open: Vec<(u32, Range<usize>)>,
}

impl<'x> Namespaces<'x> {
    pub(super) fn of(shape: &'x Shape) -> Self {
        let mut scope = Scope { shape, declared: BTreeMap::new(), open: Vec::new() };
        let mut all = Self { elements: Vec::new(), attributes: Vec::new() };
        let mut next = 0;
        for (node, at) in shape.nodes.iter().zip(0..) {
            scope.leave(at);
            let rest = shape.declarations.get(next..).unwrap_or_default();
            let here = next..next + rest.iter().take_while(|declared| declared.element == at).count();
            next = here.end;
            scope.enter(node.end, here);
            all.elements.push(scope.namespace(&node.name, true));
            let attributes = shape.attributes.get(node.attributes.clone()).unwrap_or_default().iter();
            all.attributes.extend(attributes.map(|attribute| scope.namespace(&attribute.name, false)));
        }
        all
    }
}

impl<'x> Scope<'x> {
    fn text(&self, range: &Range<usize>) -> &'x [u8] {
        self.shape.names.get(range.clone()).unwrap_or_default()
    }

    /// The declarations of an element begin to count.
    fn enter(&mut self, end: u32, declarations: Range<usize>) {
        for declared in self.shape.declarations.get(declarations.clone()).unwrap_or_default() {
            let prefix = self.text(&declared.prefix);
            self.declared.entry(prefix).or_default().push(&declared.namespace);
        }
        if !declarations.is_empty() {
            self.open.push((end, declarations));
        }
    }

    /// Those of elements that end before this one count no more.
    fn leave(&mut self, at: u32) {
        while let Some((_, declarations)) = self.open.pop_if(|(end, _)| *end <= at) {
            for declared in self.shape.declarations.get(declarations).unwrap_or_default() {
                if let Some(known) = self.declared.get_mut(self.text(&declared.prefix)) {
                    known.pop();
                }
            }
        }
    }

    /// What the prefix of a name stands for; of a name without one the default namespace, where that counts.
    fn namespace(&self, name: &Range<usize>, default: bool) -> Option<&'x [u8]> {
        let name = self.text(name);
        let prefix = match memchr::memchr(b':', name) {
            Some(colon) => name.get(..colon)?,
            None if default => b"",
            None => return None,
        };
        self.declared.get(prefix)?.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Path, PathLimits, Tree, parse_tree};

    fn found(document: &str, path: &str) -> Vec<String> {
        let (xml, shape, error) = parse_tree(document.as_bytes(), &Limits::default());
        assert_eq!(error, None);
        let path = Path::parse(path.as_bytes(), |_| Some(b"urn:p".to_vec())).unwrap();
        let values = Tree::new(&shape, &xml).find(&path, &PathLimits::default()).unwrap();
        values.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
    }

    #[test]
    fn the_innermost_declaration_counts_as_far_as_its_element_goes() {
        let document = "<r xmlns:a='urn:p'><a:b>1</a:b><c xmlns:a='u' xmlns='urn:p'><a:b>2</a:b><b a:k='x' k='y'>3</b></c>\
            <a:b xmlns:d='urn:p' d:k='z'>4</a:b><b>5</b><d:b>6</d:b><e xmlns='urn:p'/><b>7</b></r>";
        assert_eq!(found(document, "//p:b"), ["1", "3", "4"]);
        assert_eq!(found(document, "//@p:k"), ["z"]);
        assert_eq!(found(document, "//p:b[@p:k]"), ["4"]);
    }

    #[test]
    fn elements_deep_among_declarations_are_not_compared_with_all_of_them() {
        let level = |level: usize| (0..200).map(|at| format!(" xmlns:d{level}_{at}='u'")).collect::<String>();
        let before = (0..200).map(|at| format!("<r{}>", level(at))).collect::<String>();
        let elements = (0..50_000).map(|at| format!("<p{at}:a/>")).collect::<String>();
        let document = format!("{before}{elements}<x:a xmlns:x='urn:p'>1</x:a>{}", "</r>".repeat(200));
        let (xml, shape, error) = parse_tree(document.as_bytes(), &Limits::default());
        // The names of namespaces are a few: of each only the last ones are kept.
        assert_eq!((error, xml.literals.len()), (None, 2));
        let path = Path::parse(b"//p:a", |_| Some(b"urn:p".to_vec())).unwrap();
        #[expect(clippy::disallowed_methods, reason = "it measures")]
        let start = std::time::Instant::now();
        let values = Tree::new(&shape, &xml).find(&path, &PathLimits::default()).unwrap();
        assert_eq!(values, [b"1"]);
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}
