//! A header map as bytes.

use std::fmt;

/// The headers of a request or a response in their order, pseudo headers (`:path`, `:status`, ...) included.
///
/// Names are in lower case, as Envoy gives them; values are bytes and never assumed to be UTF-8.
///
/// The map stays in the one buffer that the gateway hands it over in: how many pairs there are, the two lengths of each
/// (all u32, little endian), then every name and value with a NUL behind it. A map of dozens of short strings would cost
/// an allocation for each of them, in every request.
#[derive(Clone, Default)]
pub struct Headers(Vec<u8>);

impl Headers {
    /// Takes the map as the gateway gave it; `None` where the bytes are none.
    #[must_use]
    pub fn read(bytes: Vec<u8>) -> Option<Self> {
        let Some((count, _)) = bytes.split_first_chunk() else {
            return bytes.is_empty().then(Self::default);
        };
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        let headers = Self(bytes);
        (headers.pairs().count() == count).then_some(headers)
    }

    /// Makes a map of pairs.
    #[must_use]
    pub fn new<N: AsRef<[u8]>, V: AsRef<[u8]>>(pairs: &[(N, V)]) -> Self {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = u32::try_from(pairs.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
        for (name, value) in pairs {
            bytes.extend_from_slice(&length(name.as_ref()));
            bytes.extend_from_slice(&length(value.as_ref()));
        }
        for (name, value) in pairs {
            bytes.extend_from_slice(name.as_ref());
            bytes.push(0);
            bytes.extend_from_slice(value.as_ref());
            bytes.push(0);
        }
        Self(bytes)
    }

    /// The value of the first header of that name; `name` in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The values of all headers of that name, in order; `name` in lower case.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.pairs().filter(move |(key, _)| *key == name.as_bytes()).map(|(_, value)| value)
    }

    /// Every header but the pseudo headers, in order.
    pub fn regular(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.pairs().filter(|(name, _)| name.first() != Some(&b':'))
    }

    /// Names and values as far as the buffer holds what its lengths say.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (lengths, mut strings) = self.parts().unwrap_or_default();
        let mut next = move |length: &[u8; 4]| {
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (string, behind) = strings.split_at_checked(length)?;
            strings = behind.get(1..)?;
            Some(string)
        };
        lengths.as_chunks::<8>().0.iter().map_while(move |pair| {
            let (name, value) = pair.split_first_chunk()?;
            Some((next(name)?, next(value.first_chunk()?)?))
        })
    }

    /// The lengths, and the strings behind them.
    fn parts(&self) -> Option<(&[u8], &[u8])> {
        let (count, rest) = self.0.split_first_chunk()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        rest.split_at_checked(count.checked_mul(8)?)
    }
}

impl PartialEq for Headers {
    fn eq(&self, other: &Self) -> bool {
        self.pairs().eq(other.pairs())
    }
}

impl Eq for Headers {}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        f.debug_map().entries(self.pairs().map(|(name, value)| (text(name), text(value)))).finish()
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>, const C: usize> From<[(N, V); C]> for Headers {
    fn from(pairs: [(N, V); C]) -> Self {
        Self::new(&pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_found_in_the_gateways_own_form() {
        let bytes = b"\x03\0\0\0\x05\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0:path\0/\0a\0\0b\0\xff\0\0";
        let headers = Headers::read(bytes.to_vec()).unwrap();
        assert_eq!(headers, Headers::from([(":path", b"/".as_slice()), ("a", b""), ("b", b"\xff\0")]));
        assert_eq!(headers.get(":path"), Some(b"/".as_slice()));
        assert_eq!(headers.regular().collect::<Vec<_>>(), [(b"a".as_slice(), b"".as_slice()), (b"b", b"\xff\0")]);
        assert_eq!(Headers::from([("a", "1"), ("b", "2"), ("a", "3")]).all("a").collect::<Vec<_>>(), [b"1", b"3"]);
    }

    #[test]
    fn bytes_that_are_no_map_are_refused_and_nothing_is_an_empty_one() {
        assert_eq!(Headers::read(Vec::new()), Some(Headers::default()));
        assert_eq!(Headers::read(vec![0; 4]), Some(Headers::default()));
        let whole = Headers::from([("name", "value")]).0;
        for length in 1..whole.len() {
            assert_eq!(Headers::read(whole.get(..length).unwrap().to_vec()), None, "{length}");
        }
        assert_eq!(Headers::read(b"\xff\xff\xff\xff\0\0\0\0".to_vec()), None);
        assert_eq!(Headers::read(b"\x01\0\0\0\xff\xff\xff\xff\0\0\0\0name\0\0".to_vec()), None);
    }
}
