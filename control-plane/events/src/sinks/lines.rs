//! Lines into a file or a pipe, so that none is torn.

use std::io::{self, Write};

use crate::queue::Line;

/// The outcome of a batch.
#[derive(Debug)]
pub(super) struct Outcome {
    /// So many lines are written to their ends.
    pub(super) lines: usize,
    /// So many bytes are written, those of a torn line included.
    pub(super) bytes: u64,
    /// So many of them are those of a torn line.
    pub(super) torn: u64,
    pub(super) result: io::Result<()>,
}

/// Writes each line and its end. The writer must not keep back what it has taken.
pub(super) fn write(out: &mut impl Write, lines: &[Line]) -> Outcome {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    let mut written = 0;
    let result = loop {
        let rest = text.get(written..).unwrap_or_default();
        if rest.is_empty() {
            break Ok(());
        }
        match out.write(rest) {
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    let (mut whole, mut end) = (0, 0);
    for line in lines {
        if end + line.len() + 1 > written {
            break;
        }
        end += line.len() + 1;
        whole += 1;
    }
    Outcome { lines: whole, bytes: written as u64, torn: (written - end) as u64, result }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Takes three bytes at a time, and so many in all.
    pub(crate) struct Small {
        pub(crate) content: Vec<u8>,
        pub(crate) room: usize,
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(3).min(self.room - self.content.len());
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.content.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn it_is_known_which_lines_are_whole() {
        let lines: Vec<Line> = ["aaaa", "bbbb", "cccc"].map(|line| line.as_bytes().into()).to_vec();
        for (room, whole, torn) in [(0, 0, 0), (4, 0, 4), (5, 1, 0), (8, 1, 3), (14, 2, 4), (15, 3, 0), (99, 3, 0)] {
            let mut out = Small { content: Vec::new(), room };
            let Outcome { lines, bytes, torn: rest, result } = write(&mut out, &lines);
            assert_eq!((lines, rest, bytes), (whole, torn, out.content.len() as u64), "room for {room}");
            assert_eq!(result.is_ok(), whole == 3);
        }
    }
}
