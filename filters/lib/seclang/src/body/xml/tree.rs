//! The elements of a document: what paths walk on.

use std::cell::OnceCell;
use std::ops::Range;

use super::super::Argument;
use super::super::names::Path as NamePath;
use super::Xml;
use super::namespaces::Namespaces;
use super::path::{Limits, Path};

/// The shape of a document: its elements in document order, without their texts, which are in [`Xml`].
#[derive(Debug, Default)]
pub struct Shape {
    pub(super) nodes: Vec<Node>,
    /// All names, one after the other.
    pub(super) names: Vec<u8>,
    pub(super) attributes: Vec<Attribute>,
    texts: Vec<Piece>,
    /// By element, in document order.
    pub(super) declarations: Vec<Declaration>,
    open: Vec<u32>,
}

/// An element.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: Range<usize>,
    /// The element after all that is in this one.
    pub(super) end: u32,
    /// The text of all that is in it, within the text of the document.
    pub(super) text: Range<usize>,
    pub(super) attributes: Range<usize>,
    /// The first and the last of its own texts.
    texts: Option<(usize, usize)>,
}

#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: Range<usize>,
    value: usize,
}

/// A text between two tags.
#[derive(Debug)]
struct Piece {
    place: Range<usize>,
    /// The next of the same element.
    next: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) element: u32,
    pub(super) prefix: Range<usize>,
    pub(super) namespace: Vec<u8>,
}

impl Shape {
    pub(super) fn begin(&mut self, name: &[u8], text: usize) {
        let at = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let name = self.named(name);
        let attributes = self.attributes.len()..self.attributes.len();
        self.nodes.push(Node { name, end: at + 1, text: text..text, attributes, texts: None });
        self.open.push(at);
    }

    pub(super) fn end(&mut self, text: usize) {
        let end = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        if let Some(node) = self.open.pop().and_then(|at| self.nodes.get_mut(at as usize)) {
            node.end = end;
            node.text.end = text;
        }
    }

    pub(super) fn attribute(&mut self, name: &[u8], value: usize) {
        let name = self.named(name);
        self.attributes.push(Attribute { name, value });
        if let Some(node) = self.nodes.last_mut() {
            node.attributes.end = self.attributes.len();
        }
    }

    pub(super) fn declare(&mut self, name: &[u8], namespace: Vec<u8>) {
        let prefix = self.named(name.strip_prefix(b"xmlns:").unwrap_or_default());
        let element = u32::try_from(self.nodes.len().saturating_sub(1)).unwrap_or(u32::MAX);
        self.declarations.push(Declaration { element, prefix, namespace });
    }

    pub(super) fn piece(&mut self, place: Range<usize>) {
        if place.is_empty() {
            return;
        }
        let Some(node) = self.open.last().and_then(|at| self.nodes.get_mut(*at as usize)) else { return };
        let at = self.texts.len();
        match &mut node.texts {
            Some((_, last)) => {
                if let Some(before) = self.texts.get_mut(*last) {
                    before.next = Some(at);
                }
                *last = at;
            }
            none => *none = Some((at, at)),
        }
        self.texts.push(Piece { place, next: None });
    }

    fn named(&mut self, name: &[u8]) -> Range<usize> {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        start..self.names.len()
    }
}

/// A shape with its texts. One is for all paths of a document: it keeps what they share.
pub struct Tree<'x> {
    shape: &'x Shape,
    xml: &'x Xml,
    /// Found for the first path that names a namespace.
    namespaces: OnceCell<Namespaces<'x>>,
}

/// An attribute of an element.
pub(super) struct Found<'x> {
    pub(super) name: &'x [u8],
    pub(super) value: &'x [u8],
    /// Its place among all attributes.
    at: usize,
}

impl<'x> Tree<'x> {
    /// The tree of a document, from what [`super::parse_tree`] returns of it.
    pub fn new(shape: &'x Shape, xml: &'x Xml) -> Self {
        Self { shape, xml, namespaces: OnceCell::new() }
    }

    /// The values that a path leads to, in document order; `None` if there are more than the limits allow.
    pub fn find(&self, path: &Path, limits: &Limits) -> Option<Vec<Vec<u8>>> {
        path.find(self, limits)
    }

    /// Reports the text of each element that has any, or that holds no other, with its path: `xml.order.item`. At most
    /// `limit` of them, and names of at most `name_length` bytes; false if there are more.
    pub fn arguments(&self, limit: usize, name_length: usize, mut sink: impl FnMut(Argument<'_>)) -> bool {
        // The path to each open element, and where that ends.
        let mut path = NamePath::new(b"xml");
        let mut open: Vec<(u32, usize)> = Vec::new();
        let mut count = 0;
        for (node, at) in self.shape.nodes.iter().zip(0u32..) {
            while let Some((_, length)) = open.pop_if(|(end, _)| *end <= at) {
                path.truncate(length);
            }
            open.push((node.end, path.len()));
            let name = self.name(node);
            let local = name.iter().position(|&byte| byte == b':').and_then(|at| name.get(at + 1..)).unwrap_or(name);
            path.push(local);
            let own: Vec<u8> = self.texts_of(at).flat_map(|piece| self.text(piece)).copied().collect();
            if node.end > at + 1 && own.trim_ascii().is_empty() {
                continue;
            }
            if count == limit || path.len() > name_length {
                return false;
            }
            count += 1;
            sink(path.argument(&own));
        }
        true
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.shape.nodes.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn node(&self, at: u32) -> Option<&'x Node> {
        self.shape.nodes.get(at as usize)
    }

    pub(super) fn name(&self, node: &Node) -> &'x [u8] {
        self.shape.names.get(node.name.clone()).unwrap_or_default()
    }

    pub(super) fn text(&self, place: Range<usize>) -> &'x [u8] {
        self.xml.text.get(place).unwrap_or_default()
    }

    pub(super) fn children(&self, parent: u32) -> impl Iterator<Item = u32> + 'x {
        let shape = self.shape;
        let end = shape.nodes.get(parent as usize).map_or(0, |node| node.end);
        let mut next = parent + 1;
        std::iter::from_fn(move || {
            let at = next;
            next = shape.nodes.get(at as usize)?.end;
            (at < end).then_some(at)
        })
    }

    /// The places of the texts that an element holds itself.
    pub(super) fn texts_of(&self, at: u32) -> impl Iterator<Item = Range<usize>> + 'x {
        let shape = self.shape;
        let mut next = self.node(at).and_then(|node| node.texts).map(|(first, _)| first);
        std::iter::from_fn(move || {
            let piece = shape.texts.get(next?)?;
            next = piece.next;
            Some(piece.place.clone())
        })
    }

    pub(super) fn attributes_of(&self, at: u32) -> impl Iterator<Item = Found<'x>> + 'x {
        let (shape, xml) = (self.shape, self.xml);
        let range = self.node(at).map_or(0..0, |node| node.attributes.clone());
        let attributes = shape.attributes.get(range.clone()).unwrap_or_default().iter().zip(range);
        attributes.map(move |(attribute, at)| Found {
            name: shape.names.get(attribute.name.clone()).unwrap_or_default(),
            value: xml.attributes.get(attribute.value).map(Vec::as_slice).unwrap_or_default(),
            at,
        })
    }

    /// The namespace of an element.
    pub(super) fn namespace(&self, element: u32) -> Option<&'x [u8]> {
        self.namespaces().elements.get(element as usize).copied().flatten()
    }

    /// The namespace of an attribute. The default namespace is for elements only.
    pub(super) fn namespace_of_attribute(&self, attribute: &Found<'_>) -> Option<&'x [u8]> {
        self.namespaces().attributes.get(attribute.at).copied().flatten()
    }

    fn namespaces(&self) -> &Namespaces<'x> {
        self.namespaces.get_or_init(|| Namespaces::of(self.shape))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits as XmlLimits, parse_tree};
    use super::*;

    fn arguments(document: &str, limit: usize) -> (Vec<String>, bool) {
        let (xml, shape, error) = parse_tree(document.as_bytes(), &XmlLimits::default());
        assert_eq!(error, None);
        let mut found = Vec::new();
        let whole = Tree::new(&shape, &xml).arguments(limit, 100, |argument| {
            let [name, value] = [argument.name, argument.value].map(String::from_utf8_lossy);
            found.push(format!("{name}={value}"));
        });
        (found, whole)
    }

    #[test]
    fn elements_become_arguments() {
        let document = "<o>\n <i>1</i><s:i>2</s:i><g><e/>mixed<f>x<![CDATA[<y>]]></f></g></o>";
        let all = ["xml.o.i=1", "xml.o.i=2", "xml.o.g=mixed", "xml.o.g.e=", "xml.o.g.f=x<y>"];
        assert_eq!(arguments(document, 5), (all.map(String::from).to_vec(), true));
        assert!(!arguments(document, 4).1);
        let long = format!("<{0}><b/></{0}>", "n".repeat(95));
        assert_eq!(arguments(&long, 5), (Vec::new(), false), "the name is too long");
    }
}
