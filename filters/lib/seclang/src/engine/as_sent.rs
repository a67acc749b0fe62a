//! The other reading of a compressed body: its bytes as they were sent, for applications that ignore
//! `Content-Encoding`.
//!
//! Compressed data is noise to every parser. Readable text in it was put there on purpose: in the comment of a gzip
//! member, in stored blocks, in a code that spells something. Whole documents are parsed, and runs of text that the
//! decoded body does not contain become arguments.

use memchr::memmem;

use super::transaction::{ArgumentSource, Transaction};
use crate::body::{json, multipart, xml};
use crate::vocabulary::Variable;

/// The most runs of text that are inspected; a MiB of noise has one or two.
const RUNS: usize = 64;
/// How far from where a run is expected it is searched first, in bytes.
const NEAR: usize = 16;
/// The length of a stored block's head in a deflated stream (RFC 1951, section 3.2.4), the bits before it aside.
const BLOCK_HEAD: usize = 5;
/// How many bytes of the decoded body are searched for pairs, and for runs out of order.
const SEARCHED: usize = 16 * 1024 * 1024;
const RUNS_SEARCHED: usize = 4 * 1024 * 1024;
/// The most pairs of a form that are inspected; a MiB of noise has a few.
const PAIRS: usize = 64;
/// The shortest pair between two separators, in bytes.
const SHORTEST_PAIR: usize = 6;
/// The name of runs among the arguments, if they have no names of their own.
const NAME: &[u8] = b"body_as_sent";

impl Transaction {
    /// Inspects the undecoded bytes of a body, before [`Transaction::request_body`] gets the decoded ones.
    pub fn request_body_as_sent(&mut self, sent: &[u8], decoded: &[u8]) {
        if !self.runs() || !self.request_body_access || sent == decoded {
            return;
        }
        self.arena.budget.add_paid(|budget| {
            budget.charge_decoding(sent.len(), decoded.len());
            budget.charge_parsing(sent.len());
        });
        let processor = self.scalar(Variable::ReqbodyProcessor);
        let processor = self.arena.get(processor).to_vec();
        match processor.as_slice() {
            b"JSON" => self.json_as_sent(sent),
            b"XML" => self.xml_as_sent(sent),
            b"MULTIPART" => self.multipart_as_sent(sent),
            _ => {}
        }
        let form = processor == b"URLENCODED";
        if form {
            self.pairs_as_sent(sent, decoded);
        }
        let (mut runs, mut searched) = (0, 0);
        // Where the run before ended, in the decoded bytes and as sent.
        let (mut place, mut behind) = (0_usize, 0);
        for run in texts(sent) {
            let at = run.as_ptr().addr().saturating_sub(sent.as_ptr().addr());
            let expected = place.saturating_add(at.saturating_sub(behind));
            (place, behind) = (expected.saturating_add(run.len()), at.saturating_add(run.len()));
            // Stored blocks are in order: a run is as far behind the one before as it was sent, or the head of a block less. To
            // compare it there is faster than to begin a search.
            let stored = [0, BLOCK_HEAD].into_iter().filter_map(|head| expected.checked_sub(head));
            let is_there = |start: &usize| decoded.get(*start..).is_some_and(|rest| rest.starts_with(run));
            self.arena.budget.add_paid(|budget| budget.charge_copy(run.len()));
            if let Some(start) = stored.into_iter().find(is_there) {
                place = start + run.len();
                continue;
            }
            let from = expected.saturating_sub(NEAR);
            let near = decoded.get(from..).unwrap_or_default();
            let near = near.get(..run.len().saturating_add(2 * NEAR)).unwrap_or(near);
            self.arena.budget.add_paid(|budget| budget.charge_search(near.len()));
            if let Some(found) = memmem::find(near, run) {
                place = from + found + run.len();
                continue;
            }
            if searched < RUNS_SEARCHED {
                searched += decoded.len();
                self.arena.budget.charge_search(decoded.len());
                if let Some(found) = memmem::find(decoded, run) {
                    place = found + run.len();
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
        let mut arguments = self.arguments_to_add();
        // Text behind a document ends it for some parsers, and is an error for others.
        let parsed = json::parse(sent, &limits, |argument| arguments.add(ArgumentSource::Form, argument));
        if parsed.is_ok_and(|outcome| outcome.limit_exceeded) {
            self.too_many_arguments("ARGS");
        }
    }

    /// Pairs of a form between the separators: a name and a value of text each, or the beginning of a value that is.
    fn pairs_as_sent(&mut self, sent: &[u8], decoded: &[u8]) {
        let separator = self.engine.settings.argument_separator;
        let shortest = shortest(sent.len());
        self.arena.budget.charge_parsing(sent.len());
        let (mut pairs, mut searched) = (0, 0);
        let mut pieces = sent.split(|byte| *byte == separator).peekable();
        while let Some(piece) = pieces.next() {
            let text = piece.iter().take_while(|byte| is_text(**byte) || **byte >= 0x80).count();
            let whole = text == piece.len() && pieces.peek().is_some();
            let text = piece.get(..text).unwrap_or(piece);
            let name = text.iter().take_while(|byte| **byte != b'=').collect::<Vec<_>>();
            let named = !name.is_empty() && name.len() < text.len() && name.iter().all(|byte| byte.is_ascii_graphic());
            if !named || text.len() < if whole { SHORTEST_PAIR } else { shortest } {
                continue;
            }
            // Beyond this limit a pair counts as absent from the decoded body: it is inspected.
            if searched < SEARCHED {
                searched += decoded.len();
                self.arena.budget.charge_search(decoded.len());
                if memmem::find(decoded, text).is_some() {
                    continue;
                }
            }
            pairs += 1;
            if pairs > PAIRS {
                self.left_out("ARGS_POST", "pairs in a compressed body", PAIRS);
                return;
            }
            self.form_arguments(text, ArgumentSource::Form);
        }
    }

    fn xml_as_sent(&mut self, sent: &[u8]) {
        let (found, error) = xml::parse(sent, &xml::Limits { doctype: true, ..xml::Limits::default() });
        if error.is_none() {
            self.xml_texts(found);
        }
    }

    fn multipart_as_sent(&mut self, sent: &[u8]) {
        let found = multipart::parse(self.arena.get(self.content_type), sent, &multipart::Limits::default());
        if let Some(limit) = found.limit {
            self.left_out("MULTIPART_NAME", limit.what, limit.most);
        }
        for part in found.parts {
            if !part.is_file() || part.also_field {
                self.argument_as_sent(&part.name, &part.value);
            }
            let name = self.arena.push(&part.name);
            for filename in part.filename.into_iter().chain(part.extended_filename) {
                let filename = self.arena.push(filename);
                self.files.push(name, filename);
                self.part_filenames.push(filename, filename);
            }
        }
    }
}

/// The runs of text in noise that are too long for chance: the longer the noise, the longer they have to be.
fn texts(noise: &[u8]) -> impl Iterator<Item = &[u8]> {
    let shortest = shortest(noise.len());
    noise.split(move |byte| !is_text(*byte)).filter(move |run| run.len() >= shortest)
}

/// The length from which a run of text in noise of this length is no chance.
fn shortest(noise: usize) -> usize {
    match noise {
        ..256 => 8,
        256..1024 => 10,
        1024..16_384 => 12,
        16_384..262_144 => 15,
        _ => 18,
    }
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

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
