//! Names of values in a tree: the path that leads to each, which most of them share with the one before.

/// How many bytes of a path are a name by themselves. What is beyond is reported apart from the values, once.
pub(crate) const WHOLE: usize = 256;

/// A value of a tree, and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument<'a> {
    /// The path to the value, all of it.
    pub name: &'a [u8],
    /// Where the path is longer than 256 bytes, the names at its end that were not reported with a value before.
    pub unseen: Option<&'a [u8]>,
    /// The end of the path from the first name on that the sender chose and that was not reported with a value before.
    pub new: Option<&'a [u8]>,
    /// The value.
    pub value: &'a [u8],
}

/// The path to the current value.
#[derive(Debug)]
pub(super) struct Path {
    text: Vec<u8>,
    /// Where names begin that go beyond [`WHOLE`] and were not reported.
    unseen: Option<usize>,
    /// Where names begin that were not reported, however long the path.
    new: Option<usize>,
}

impl Path {
    pub(super) fn new(root: &[u8]) -> Self {
        Self { text: root.to_vec(), unseen: None, new: None }
    }

    /// The length in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Goes back to where the path had this length.
    pub(super) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
        self.unseen = self.unseen.filter(|start| *start < length);
        self.new = self.new.filter(|start| *start < length);
    }

    /// Adds a name that the sender chose.
    pub(super) fn push(&mut self, name: &[u8]) {
        self.push_index(name);
        if self.text.len() > WHOLE && self.unseen.is_none() {
            self.unseen = Some(self.text.len() - name.len());
        }
        self.new.get_or_insert(self.text.len() - name.len());
    }

    /// The end of the path from the first name on that the sender chose and that was not reported with a value before.
    pub(super) fn new_names(&self) -> Option<&[u8]> {
        self.new.and_then(|start| self.text.get(start..))
    }

    /// The names of [`Path::new_names`] were reported with another value.
    pub(super) fn names_are_known(&mut self) {
        self.new = None;
    }

    /// Adds a name that the position among others makes.
    pub(super) fn push_index(&mut self, name: &[u8]) {
        self.text.push(b'.');
        self.text.extend_from_slice(name);
    }

    /// A value with this path.
    pub(super) fn argument<'a>(&'a mut self, value: &'a [u8]) -> Argument<'a> {
        let unseen = self.unseen.take().and_then(|start| self.text.get(start..));
        let new = self.new.take().and_then(|start| self.text.get(start..));
        Argument { name: &self.text, unseen, new, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_a_name_is_reported_once() {
        let mut path = Path::new(b"json");
        path.push(&[b'a'; 100]);
        assert_eq!(path.argument(b"1").unseen, None);
        let short = path.len();
        path.push(&[b'b'; 200]);
        let long = path.len();
        path.push_index(b"array_0");
        let seen = path.argument(b"2");
        assert_eq!((seen.name.len(), seen.value), (4 + 101 + 201 + 8, &b"2"[..]));
        assert_eq!(seen.unseen, Some(&[[b'b'; 200].as_slice(), b".array_0"].concat()[..]));
        path.truncate(long);
        path.push_index(b"array_1");
        assert_eq!(path.argument(b"3").unseen, None);
        path.truncate(long);
        path.push(b"c");
        path.push(b"d");
        assert_eq!(path.argument(b"4").unseen, Some(&b"c.d"[..]));
        // What no value followed is not reported.
        path.push(b"e");
        path.truncate(short);
        assert_eq!(path.argument(b"5").unseen, None);
    }
}
