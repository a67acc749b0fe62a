//! Events that are stored together: one compressed text. What they have in common, most of it, is stored once.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::NewEvent;

/// The most events of a block.
pub const MAX_BLOCK_EVENTS: usize = 64;
/// The text after which a block takes no further event, in bytes: one event is read by reading its block.
const MAX_BLOCK_BYTES: usize = 64 << 10;
/// The text that is read of a block, at most: what a server has may be anything.
const MAX_READ_BYTES: u64 = 64 << 20;

/// Some events in the order they came, compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Each with the number of its line in the text.
    pub(super) events: Vec<(usize, NewEvent)>,
    pub(super) body: Vec<u8>,
}

impl Block {
    /// Makes blocks of events.
    ///
    /// # Errors
    /// None in practice: it compresses in memory.
    pub fn pack(events: Vec<NewEvent>) -> io::Result<Vec<Block>> {
        let (mut blocks, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
        for event in events {
            bytes += event.line.len();
            part.push(event);
            if part.len() >= MAX_BLOCK_EVENTS || bytes >= MAX_BLOCK_BYTES {
                blocks.push(Block::of(std::mem::take(&mut part))?);
                bytes = 0;
            }
        }
        if !part.is_empty() {
            blocks.push(Block::of(part)?);
        }
        Ok(blocks)
    }

    fn of(events: Vec<NewEvent>) -> io::Result<Block> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        for event in &events {
            write!(encoder, "{} ", event.at_millis)?;
            encoder.write_all(&one_line(&event.line))?;
            encoder.write_all(b"\n")?;
        }
        Ok(Block { events: events.into_iter().enumerate().collect(), body: encoder.finish()? })
    }

    /// Reads a block that another control plane has packed. What cannot be read of it is left out.
    #[must_use]
    pub fn unpack(body: Vec<u8>) -> Block {
        let text = read(&body).unwrap_or_default();
        let numbered = lines(&text).enumerate();
        let events = numbered.filter_map(|(number, (at, line))| Some((number, NewEvent::ordered(&line.into(), at)?)));
        Block { events: events.collect(), body }
    }

    /// The compressed text.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The events, each one line of JSON.
    pub fn lines(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.events.iter().map(|(_, event)| &event.line)
    }
}

/// The text of a block.
pub(super) fn read(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    DeflateDecoder::new(body).take(MAX_READ_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// The events of a block's text, each with its time.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        let (at, rest) = line.split_at_checked(at)?;
        Some((std::str::from_utf8(at).ok()?.parse().ok()?, rest.get(1..)?))
    })
}

/// White space between tokens may hold line ends; within texts JSON escapes them.
fn one_line(line: &[u8]) -> Vec<u8> {
    line.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}
