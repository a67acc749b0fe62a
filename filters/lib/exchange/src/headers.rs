//! A header map as bytes.

/// The headers of a request or a response in their order, pseudo headers (`:path`, `:status`, ...) included.
///
/// Names are in lower case, as Envoy gives them; values are bytes and never assumed to be UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(Vec<u8>, Vec<u8>)>);

impl Headers {
    /// Takes the map as the gateway gave it.
    #[must_use]
    pub fn new(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        Self(pairs)
    }

    /// The value of the first header of that name; `name` in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The values of all headers of that name, in order; `name` in lower case.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(key, _)| key == name.as_bytes()).map(|(_, value)| value.as_slice())
    }

    /// Every header but the pseudo headers, in order.
    pub fn regular(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0
            .iter()
            .filter(|(name, _)| name.first() != Some(&b':'))
            .map(|(name, value)| (name.as_slice(), value.as_slice()))
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>, const C: usize> From<[(N, V); C]> for Headers {
    fn from(pairs: [(N, V); C]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.as_ref().to_vec(), value.as_ref().to_vec())).collect())
    }
}
