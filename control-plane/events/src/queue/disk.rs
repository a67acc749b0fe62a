//! Lines on disk, in the order in which they came.
//!
//! A folder has files of lines, named by number, and `position`: how far the oldest of them has been exported. What was appended survives
//! the end of the process, and a loss of power.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{Bounds, Line};
use crate::event::MAX_EVENT_BYTES;

const POSITION: &str = "position";
/// The position as it is written, before it has its name.
const POSITION_NEXT: &str = "position.new";
const LOCK: &str = "lock";
const EXTENSION: &str = "jsonl";
/// The number of the first file: there is room before it.
const FIRST: u64 = 1 << 32;
/// A file is ended when it has so many bytes, or an eighth of all.
const MAX_FILE: u64 = 16 << 20;
/// The longest line that is read back, with its end. Events are shorter; a longer line is damage.
const MAX_LINE: usize = 4 * MAX_EVENT_BYTES;

/// Files of lines in a folder. Its functions block.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    /// The oldest first; only this one is read.
    files: VecDeque<Lines>,
    /// The number of the next file.
    next: u64,
    max_bytes: u64,
    /// Held for as long as the folder is in use.
    _lock: File,
}

/// One file.
#[derive(Clone, Copy, Debug)]
struct Lines {
    number: u64,
    bytes: u64,
    /// Lines that were not read.
    unread: usize,
    /// Where the first of them begins.
    offset: u64,
    /// Nothing is appended any more.
    ended: bool,
}

/// A file cannot be read: what it still had is lost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) lines: usize,
    pub(crate) reason: String,
}

impl Disk {
    /// Opens a folder, which is made if it is missing, and finds what an earlier process has left there. All files together have at most
    /// `max_bytes`.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or another process uses it.
    pub(crate) fn open(folder: &Path, max_bytes: u64) -> io::Result<Disk> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(folder.join(LOCK))?;
        lock.try_lock().map_err(|_| io::Error::new(io::ErrorKind::ResourceBusy, "another process uses it"))?;
        let mut disk = Disk { folder: folder.to_owned(), files: VecDeque::new(), next: FIRST, max_bytes, _lock: lock };
        disk.find()?;
        Ok(disk)
    }

    /// How many lines are to be read.
    pub(crate) fn unread(&self) -> usize {
        self.files.iter().map(|file| file.unread).sum()
    }

    /// Appends lines; how many of the oldest had to go for them.
    ///
    /// # Errors
    ///
    /// They could not be written, none of them is there.
    pub(crate) fn append(&mut self, lines: &[Line]) -> io::Result<usize> {
        let room = (self.max_bytes / 8).min(MAX_FILE);
        let last = self.files.back().filter(|file| !file.ended && file.bytes < room).copied();
        let (number, length) = last.map_or((self.next, 0), |file| (file.number, file.bytes));
        let content = joined(lines);
        let is_new = last.is_none();
        if let Err(error) = self.write(number, length, &content) {
            // A part of it may be there: the file ends where it did, or is not used any more.
            let path = self.path(number);
            if is_new {
                let _ = fs::remove_file(path);
            } else if OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(length)).is_err() {
                self.files.back_mut().into_iter().for_each(|file| file.ended = true);
            }
            return Err(error);
        }
        if is_new {
            self.files.push_back(Lines { number, bytes: 0, unread: 0, offset: 0, ended: false });
            self.next = number + 1;
        }
        if let Some(file) = self.files.back_mut() {
            file.bytes += content.len() as u64;
            file.unread += lines.len();
        }
        Ok(self.make_room())
    }

    /// Puts lines before all others.
    ///
    /// # Errors
    ///
    /// They could not be written, none of them is there.
    pub(crate) fn prepend(&mut self, lines: &[Line]) -> io::Result<()> {
        let number = self.files.front().map_or(self.next, |file| file.number).saturating_sub(1);
        let content = joined(lines);
        let written = self.precede(number).and_then(|()| self.write(number, 0, &content));
        if let Err(error) = written {
            let _ = fs::remove_file(self.path(number));
            // Best effort: without it the next process reads some lines twice.
            let _ = self.commit();
            return Err(error);
        }
        let bytes = content.len() as u64;
        self.files.push_front(Lines { number, bytes, unread: lines.len(), offset: 0, ended: true });
        self.commit()
    }

    /// Notes that a file which is not written yet is the oldest. The next process would remove it otherwise, as one that was read, if this
    /// one ended before the position is noted; so it reads some lines twice at worst.
    fn precede(&self, number: u64) -> io::Result<()> {
        self.note(number, 0)?;
        File::open(&self.folder)?.sync_all()
    }

    /// Takes the oldest lines, as many as `most` allows and at least one, if there are any. They are read again by the next process unless
    /// [`Disk::commit`] is called.
    ///
    /// # Errors
    ///
    /// [`Damage`]: the oldest file cannot be read, and is given up.
    pub(crate) fn read(&mut self, most: Bounds) -> Result<Vec<Line>, Damage> {
        let Some(file) = self.files.front().copied().filter(|file| file.unread > 0) else { return Ok(Vec::new()) };
        let taken = self.content(file, most.bytes.max(MAX_LINE)).map(|content| {
            let (mut lines, mut bytes) = (Vec::new(), 0);
            for line in content.split_inclusive(|byte| *byte == b'\n') {
                let Some(text) = line.strip_suffix(b"\n") else { break };
                let is_full = lines.len() >= most.lines || bytes + text.len() > most.bytes;
                if lines.len() >= file.unread || (is_full && !lines.is_empty()) {
                    break;
                }
                bytes += text.len();
                lines.push(Line::from(text));
            }
            (bytes + lines.len(), lines)
        });
        match (taken, self.files.front_mut()) {
            (Ok((bytes, lines)), Some(file)) if !lines.is_empty() => {
                file.offset += bytes as u64;
                file.unread -= lines.len().min(file.unread);
                Ok(lines)
            }
            (taken, _) => {
                let reason = taken.err().map_or_else(|| "lines are missing".to_owned(), |error| error.to_string());
                let _ = fs::remove_file(self.path(file.number));
                self.files.pop_front();
                Err(Damage { lines: file.unread, reason: format!("{}: {reason}", self.path(file.number).display()) })
            }
        }
    }

    /// What was read is not read again, also by the next process.
    ///
    /// # Errors
    ///
    /// It could not be noted: the next process reads it again.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        let mut removed = Ok(());
        // A file that cannot be removed is not in the way of the next one.
        while let Some(file) = self.files.pop_front_if(|file| file.unread == 0) {
            removed = removed.and(remove(&self.path(file.number)));
        }
        let noted = match self.files.front() {
            Some(file) => self.note(file.number, file.offset),
            None => remove(&self.folder.join(POSITION)),
        };
        removed.and(noted)
    }

    /// Notes the oldest file and where its first unread line begins: wholly, or not at all.
    fn note(&self, number: u64, offset: u64) -> io::Result<()> {
        let next = self.folder.join(POSITION_NEXT);
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&next)?;
        file.write_all(format!("{number} {offset}\n").as_bytes())?;
        file.sync_data()?;
        fs::rename(next, self.folder.join(POSITION))
    }

    /// Reads the folder.
    fn find(&mut self) -> io::Result<()> {
        let position = fs::read_to_string(self.folder.join(POSITION)).unwrap_or_default();
        let mut numbers = position.split_whitespace().map_while(|number| number.parse::<u64>().ok());
        let (first, offset) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let stem = path.extension().is_some_and(|extension| extension == EXTENSION).then(|| path.file_stem());
            found.extend(stem.flatten().and_then(|stem| stem.to_str()?.parse::<u64>().ok()));
        }
        found.sort_unstable();
        // A process that was killed between the removal of the last file and that of the position: numbers begin anew where no file is
        // left, and the position would hold for another file.
        let (first, offset) = match found.contains(&first) {
            true => (first, offset),
            false => remove(&self.folder.join(POSITION)).map(|()| (0, 0))?,
        };
        for number in found {
            let path = self.path(number);
            let offset = if number == first { offset } else { 0 };
            self.next = self.next.max(number + 1);
            let (unread, end) = if number < first { (0, 0) } else { count(&path, offset)? };
            if unread == 0 {
                remove(&path)?;
                continue;
            }
            // A line without its end was not appended completely.
            OpenOptions::new().write(true).open(&path)?.set_len(end)?;
            self.files.push_back(Lines { number, bytes: end, unread, offset, ended: false });
        }
        Ok(())
    }

    /// Lets the oldest files go, but for the last one, until the rest fits; how many lines they still had.
    fn make_room(&mut self) -> usize {
        let mut lost = 0;
        while self.files.len() > 1 && self.files.iter().map(|file| file.bytes).sum::<u64>() > self.max_bytes {
            let Some(oldest) = self.files.pop_front() else { break };
            lost += oldest.unread;
            if let Err(error) = remove(&self.path(oldest.number)) {
                tracing::warn!(%error, file = %self.path(oldest.number).display(), "a file of events cannot be removed");
            }
        }
        lost
    }

    fn write(&self, number: u64, at: u64, content: &[u8]) -> io::Result<()> {
        let path = self.path(number);
        // A file of that number that could not be removed has nothing that is still to be read.
        let mut file = OpenOptions::new().create(true).truncate(at == 0).write(true).mode(0o600).open(path)?;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(content)?;
        file.sync_data()?;
        // The name of a new file must last, too.
        if at == 0 { File::open(&self.folder)?.sync_all() } else { Ok(()) }
    }

    fn content(&self, file: Lines, most: usize) -> io::Result<Vec<u8>> {
        let mut opened = File::open(self.path(file.number))?;
        opened.seek(SeekFrom::Start(file.offset))?;
        let mut content = Vec::new();
        opened.take(most as u64).read_to_end(&mut content)?;
        Ok(content)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:020}.{EXTENSION}"))
    }
}

fn joined(lines: &[Line]) -> Vec<u8> {
    let mut content = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        content.extend_from_slice(line);
        content.push(b'\n');
    }
    content
}

/// How many lines a file has from an offset on, and where the last of them ends.
fn count(path: &Path, offset: u64) -> io::Result<(usize, u64)> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let (mut lines, mut at, mut end) = (0, offset, offset);
    let mut part = vec![0; 1 << 16];
    loop {
        let length = file.read(&mut part)?;
        let Some(read) = part.get(..length).filter(|read| !read.is_empty()) else { return Ok((lines, end)) };
        lines += read.iter().filter(|byte| **byte == b'\n').count();
        if let Some(last) = read.iter().rposition(|byte| *byte == b'\n') {
            end = at + last as u64 + 1;
        }
        at += length as u64;
    }
}

/// Removes a file that may be missing.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests;
