//! The tree of paths.

use std::collections::BTreeMap;

use super::schema::Compiler;
use crate::record::{NamedSchema, PartialSegment, RouteRecord};

/// Grows the tree.
#[derive(Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    literals: BTreeMap<Vec<u8>, usize>,
    partials: Vec<(Vec<String>, usize)>,
    parameter: Option<usize>,
    methods: Vec<(String, u32)>,
}

/// A segment of a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// Text.
    Literal(Vec<u8>),
    /// A parameter.
    Parameter(String),
    /// Parameters with text in front, between and behind.
    Partial(Vec<String>, Vec<String>),
}

/// Takes a template of a path apart, whose first byte is a slash.
pub(super) fn segments(template: &str) -> Vec<Segment> {
    template.strip_prefix('/').unwrap_or(template).split('/').map(segment).collect()
}

fn segment(text: &str) -> Segment {
    let (mut texts, mut names) = (Vec::new(), Vec::new());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else { break };
        texts.push(before.to_owned());
        names.push(name.to_owned());
        rest = after;
    }
    if names.is_empty() {
        return Segment::Literal(crate::percent::decode(text.as_bytes()).into_owned());
    }
    texts.push(rest.to_owned());
    match names.as_slice() {
        [name] if texts.iter().all(String::is_empty) => Segment::Parameter(name.clone()),
        _ => Segment::Partial(texts, names),
    }
}

/// The names of the parameters, in order.
pub(super) fn names(segments: &[Segment]) -> Vec<&str> {
    let mut names = Vec::new();
    for segment in segments {
        match segment {
            Segment::Literal(_) => {}
            Segment::Parameter(name) => names.push(name.as_str()),
            Segment::Partial(_, all) => names.extend(all.iter().map(String::as_str)),
        }
    }
    names
}

impl Tree {
    /// Adds an operation; false where another one has the same path and method.
    pub(super) fn add(&mut self, segments: &[Segment], method: &str, operation: u32) -> bool {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let mut at = 0;
        for segment in segments {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else { return false };
            at = match segment {
                Segment::Literal(text) => *node.literals.entry(text.clone()).or_insert(next),
                Segment::Parameter(_) => *node.parameter.get_or_insert(next),
                Segment::Partial(texts, _) => match node.partials.iter().find(|(known, _)| known == texts) {
                    Some((_, child)) => *child,
                    None => {
                        node.partials.push((texts.clone(), next));
                        next
                    }
                },
            };
            if at == next {
                self.nodes.push(Node::default());
            }
        }
        let Some(node) = self.nodes.get_mut(at) else { return false };
        let known = node.methods.iter().any(|(known, _)| known == method);
        if !known {
            node.methods.push((method.to_owned(), operation));
        }
        !known
    }

    /// The records.
    pub(super) fn finish(self, compiler: &mut Compiler<'_>) -> Vec<RouteRecord> {
        let short = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let made = self.nodes.into_iter().map(|mut node| {
            // Those with more text are tried first.
            node.partials.sort_by_key(|(texts, _)| std::cmp::Reverse(texts.iter().map(String::len).sum::<usize>()));
            let literals = node.literals.iter();
            let literals = literals
                .map(|(text, child)| NamedSchema { name: compiler.text(text), schema: short(*child) })
                .collect();
            let partials = node.partials.iter().map(|(texts, child)| PartialSegment {
                texts: texts.iter().map(|text| compiler.text(text.as_bytes())).collect(),
                child: short(*child),
            });
            let partials = partials.collect();
            let methods = node.methods.iter();
            let methods = methods
                .map(|(method, operation)| NamedSchema { name: compiler.text(method.as_bytes()), schema: *operation })
                .collect();
            RouteRecord { literals, partials, parameter: node.parameter.map(short), methods }
        });
        made.collect()
    }
}
