//! Texts between noise.

/// The shortest text in noise that is inspected, in bytes: shorter ones occur by chance.
const SHORTEST: usize = 16;
/// The longest noise that does not end a text, in bytes.
const GAP: usize = 8;
/// The shortest text with gaps, in bytes, and the least number of its bytes for each gap.
const SHORTEST_JOINED: usize = 24;
const DENSITY: usize = 4;

fn is_noise(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t'..=b'\r') || byte == 0x7f
}

/// Whether bytes are text, but for a few.
pub(in crate::engine) fn is_text(bytes: &[u8]) -> bool {
    let controls = bytes.iter().filter(|byte| is_noise(**byte)).count();
    let invalid: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    (controls + invalid).saturating_mul(4) <= bytes.len()
}

/// A text in which a space replaces each run of noise.
pub(in crate::engine) fn without_noise(bytes: &[u8]) -> Vec<u8> {
    let (mut text, mut noise) = (Vec::with_capacity(bytes.len()), false);
    for chunk in bytes.utf8_chunks() {
        for &byte in chunk.valid().as_bytes() {
            if is_noise(byte) {
                noise = true;
                continue;
            }
            if std::mem::take(&mut noise) {
                text.push(b' ');
            }
            text.push(byte);
        }
        noise |= !chunk.invalid().is_empty();
    }
    text
}

/// The texts in noise: runs of characters, joined by a space where little noise is between them. Lines are one text.
pub(in crate::engine) fn texts(bytes: &[u8], mut sink: impl FnMut(&[u8])) {
    let mut joined = Joined::default();
    for chunk in bytes.utf8_chunks() {
        for run in chunk.valid().as_bytes().split_inclusive(|byte| is_noise(*byte)) {
            let (run, noise) = match run.split_last() {
                Some((last, run)) if is_noise(*last) => (run, 1),
                _ => (run, 0),
            };
            joined.run(run, &mut sink);
            joined.noise += noise;
        }
        joined.noise += chunk.invalid().len();
    }
    joined.end(&mut sink);
}

/// The text so far.
#[derive(Default)]
struct Joined {
    text: Vec<u8>,
    /// The positions of its runs of at least [`SHORTEST`] bytes.
    long: Vec<std::ops::Range<usize>>,
    gaps: usize,
    /// The length of the noise behind it.
    noise: usize,
}

impl Joined {
    fn run(&mut self, run: &[u8], sink: &mut impl FnMut(&[u8])) {
        if run.is_empty() {
            return;
        }
        if self.noise > GAP {
            self.end(sink);
        } else if self.noise > 0 && !self.text.is_empty() {
            self.gaps += 1;
            self.text.push(b' ');
        }
        self.noise = 0;
        let start = self.text.len();
        // Lines are one text, as the header of a part is none of a message.
        self.text.extend(run.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
        if run.len() >= SHORTEST {
            self.long.push(start..self.text.len());
        }
    }

    fn end(&mut self, sink: &mut impl FnMut(&[u8])) {
        let long = std::mem::take(&mut self.long);
        let characters = self.text.len().saturating_sub(self.gaps);
        let is_joined = characters >= SHORTEST_JOINED && self.gaps.saturating_mul(DENSITY) <= characters;
        if is_joined || self.gaps == 0 && characters >= SHORTEST {
            sink(&self.text);
        } else {
            long.into_iter().filter_map(|run| self.text.get(run)).for_each(sink);
        }
        self.text.clear();
        (self.gaps, self.noise) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        texts(bytes, |text| found.push(String::from_utf8_lossy(text).into_owned()));
        found
    }

    #[test]
    fn noise_has_no_texts_and_texts_may_have_some() {
        let mut seed = 7u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as u8
        })
        .take(100_000)
        .collect();
        assert_eq!(found(&noise), [""; 0]);
        assert!(!is_text(&noise) && is_text(b"1'\x0bUNION\xa0SELECT \x01 a") && is_text("größer".as_bytes()));
        assert_eq!(without_noise(b"\x01' or\xff\x001=1#\x01"), b" ' or 1=1#");
        let attack = b"1'\xa0UNION\xa0SELECT\x01password\0FROM users#";
        assert_eq!(found(attack), ["1' UNION SELECT password FROM users#"]);
        let within = [noise.as_slice(), b"\0\0\0\0\0\0\0\0\0", attack, &[0; 9], &noise].concat();
        assert_eq!(found(&within), ["1' UNION SELECT password FROM users#"]);
        let beside = [noise.as_slice(), b"\0a text of some length\0", &noise].concat();
        assert_eq!(found(&beside), ["a text of some length"]);
    }
}
