//! What is measured: a compiled contract, requests, bodies. Lists of texts, each with its length in front.

/// A workload.
pub(crate) struct Workload {
    /// The compiled form of the request side.
    pub(crate) image: Vec<u8>,
    /// Methods and targets, one for each operation, several times with other values.
    pub(crate) requests: Vec<(Vec<u8>, Vec<u8>)>,
    /// Places in `requests`, and bodies of about 23 KB that match.
    pub(crate) bodies: Vec<(usize, Vec<u8>)>,
    /// Places in `requests`, and small bodies that match.
    pub(crate) small: Vec<(usize, Vec<u8>)>,
}

impl Workload {
    /// Reads one.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut rest = bytes;
        let image = text(&mut rest);
        let requests = (0..number(&mut rest)).map(|_| (text(&mut rest), text(&mut rest))).collect();
        let bodies = (0..number(&mut rest)).map(|_| (number(&mut rest), text(&mut rest))).collect();
        let small = (0..number(&mut rest)).map(|_| (number(&mut rest), text(&mut rest))).collect();
        Self { image, requests, bodies, small }
    }

    /// Writes it.
    #[cfg(feature = "compile")]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let number = |number: usize, out: &mut Vec<u8>| out.extend(u32::try_from(number).unwrap().to_le_bytes());
        let text = |text: &[u8], out: &mut Vec<u8>| {
            number(text.len(), out);
            out.extend(text);
        };
        text(&self.image, &mut out);
        number(self.requests.len(), &mut out);
        for (method, target) in &self.requests {
            text(method, &mut out);
            text(target, &mut out);
        }
        for list in [&self.bodies, &self.small] {
            number(list.len(), &mut out);
            for (request, body) in list {
                number(*request, &mut out);
                text(body, &mut out);
            }
        }
        out
    }
}

fn number(rest: &mut &[u8]) -> usize {
    let (bytes, behind) = rest.split_first_chunk::<4>().unwrap();
    *rest = behind;
    usize::try_from(u32::from_le_bytes(*bytes)).unwrap()
}

fn text(rest: &mut &[u8]) -> Vec<u8> {
    let length = number(rest);
    let (text, behind) = rest.split_at(length);
    *rest = behind;
    text.to_vec()
}
