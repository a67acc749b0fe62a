//! The other reading of a compressed body: its bytes as they were sent, for applications that do not heed
//! `Content-Encoding`.
//!
//! Compressed data is noise to every parser. What can be read in it all the same was put there: in the comment of a gzip
//! member, in stored blocks, in a code that spells something. Whole documents are parsed, and runs of text that are not
//! in the decoded body as well become arguments.

use memchr::memmem;

use super::transaction::{ArgumentSource, Transaction};
use crate::body::{json, multipart, xml};
use crate::vocabulary::Variable;

/// How many runs of text are inspected; noise of a MiB has one or two.
const RUNS: usize = 64;
/// How many bytes are searched for runs that are in the decoded body as well.
const SEARCHED: usize = 16 * 1024 * 1024;
/// What a run is called among the arguments, where it has no names of its own.
const NAME: &[u8] = b"body_as_sent";

impl Transaction {
    /// Inspects the bytes of a body that was decoded, ahead of [`Transaction::request_body`] with what they were decoded to.
    pub fn request_body_as_sent(&mut self, sent: &[u8], decoded: &[u8]) {
        if !self.runs() || !self.request_body_access || sent == decoded {
            return;
        }
        let processor = self.scalar(Variable::ReqbodyProcessor);
        let processor = self.arena.get(processor).to_vec();
        match processor.as_slice() {
            b"JSON" => self.json_as_sent(sent),
            b"XML" => self.xml_as_sent(sent),
            b"MULTIPART" => self.multipart_as_sent(sent),
            _ => {}
        }
        self.arena.budget.charge_parsing(sent.len());
        let form = processor == b"URLENCODED";
        let (mut runs, mut searched) = (0, 0);
        for run in texts(sent) {
            if searched < SEARCHED {
                searched += decoded.len();
                self.arena.budget.charge_copy(decoded.len());
                if memmem::find(decoded, run).is_some() {
                    continue;
                }
            }
            runs += 1;
            if runs > RUNS {
                self.left_out("ARGS_POST", "texts in a compressed body", RUNS);
                break;
            }
            match form {
                true => self.form_arguments(run, ArgumentSource::Form),
                false => self.argument_as_sent(NAME, run),
            }
        }
    }

    fn argument_as_sent(&mut self, name: &[u8], value: &[u8]) {
        if self.room() == 0 {
            self.too_many_arguments("ARGS_POST");
            return;
        }
        self.arguments_to_add().add_named(ArgumentSource::Form, name, value);
    }

    fn json_as_sent(&mut self, sent: &[u8]) {
        let limits = json::Limits { arguments: self.room(), ..json::Limits::default() };
        let mut found = Vec::new();
        let parsed = json::parse(sent, &limits, |found_one| {
            found.push((found_one.name.to_vec(), found_one.value.to_vec()));
        });
        if parsed.is_ok() {
            for (name, value) in found {
                self.argument_as_sent(&name, &value);
            }
        }
    }

    fn xml_as_sent(&mut self, sent: &[u8]) {
        let (found, error) = xml::parse(sent, &xml::Limits { doctype: true, ..xml::Limits::default() });
        if error.is_none() {
            for text in [found.text].into_iter().chain(found.attributes).chain(found.literals) {
                let value = self.arena.push(text);
                self.xml_literals.push(value);
            }
        }
    }

    fn multipart_as_sent(&mut self, sent: &[u8]) {
        let found = multipart::parse(self.arena.get(self.content_type), sent, &multipart::Limits::default());
        for part in found.parts.into_iter().filter(|part| !part.is_file()) {
            self.argument_as_sent(&part.name, &part.value);
        }
    }
}

/// The runs of text in noise that are too long to be there by chance. The longer the noise, the longer they are.
fn texts(noise: &[u8]) -> impl Iterator<Item = &[u8]> {
    let shortest = match noise.len() {
        ..256 => 8,
        256..1024 => 10,
        1024..16_384 => 12,
        16_384..262_144 => 15,
        _ => 18,
    };
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t'..=b'\r');
    noise.split(move |byte| !is_text(byte)).filter(move |run| run.len() >= shortest)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "unknown")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn noise_has_no_texts() {
        // A linear congruential generator: as even as compressed data.
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let mut noise: Vec<u8> = (0..100_000).map(|_| next()).collect();
        assert_eq!(texts(&noise).count(), 0);
        noise.splice(500..500, *b"\0q=<script>alert(1)</script>\0");
        assert_eq!(texts(&noise).collect::<Vec<_>>(), [b"q=<script>alert(1)</script>"]);
    }
}
