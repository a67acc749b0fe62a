//! Archives, opened as streams under limits and a budget.
//!
//! ZIP, 7z, tar, gzip, bzip2, xz, lzip, LZMA and zstd are opened, in each other as deep as the limit says. Of RAR, and of 7z where its
//! content is packed in a way that is not undone here, the headers are read: for names, for lengths over the limits, for encryption. Their
//! content, and that of others, cannot be read.

mod coding;
mod gzip;
mod links;
mod opaque;
mod rar;
mod seven_zip;
mod stream;
mod tar;
mod unpack;
mod zip;

use flate2::Decompress;

use crate::check::{self, Subject};
use crate::name;
use crate::policy::{RATIO_FREE, WORK_BYTES, WORK_MEMORY, WORK_STEPS};
use crate::{Family, Findings, Format, Name, Policy, Reason, identify_plain};

use coding::Coding;
use links::Links;
pub(crate) use tar::is_tar;
pub(crate) use zip::{is_appended as is_appended_zip, kind_of as kind_of_zip};

/// What opening archives of one request has taken so far.
#[derive(Debug, Clone)]
pub struct Work {
    /// Bytes that may still be decompressed.
    bytes: u64,
    /// Bytes of archives within archives that may still be in memory.
    memory: u64,
    /// Entries and headers that may still be read.
    steps: u64,
    /// Entries of all archives.
    entries: u64,
    /// Bytes that opening has written, or that archives say it would write.
    expanded: u64,
}

impl Default for Work {
    fn default() -> Self {
        Self { bytes: WORK_BYTES, memory: WORK_MEMORY, steps: WORK_STEPS, entries: 0, expanded: 0 }
    }
}

impl Work {
    /// The bytes that may still be decompressed.
    pub(crate) fn budget(&mut self) -> &mut u64 {
        &mut self.bytes
    }

    /// The bytes that were decompressed.
    #[must_use]
    pub fn done(&self) -> u64 {
        WORK_BYTES.saturating_sub(self.bytes)
    }
}

/// Why an archive is not opened further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A limit or the budget is reached: nothing of the upload is opened any more. The finding is there.
    Over,
    /// This archive cannot be read further. The finding is there.
    Unreadable,
}

/// Opens an uploaded file's archives.
pub(crate) struct Opener<'a> {
    policy: &'a Policy,
    work: &'a mut Work,
    findings: &'a mut Findings,
    /// The length of the uploaded file, in bytes.
    length: u64,
    /// The bytes of `work` at the beginning of this file.
    before: u64,
    /// The paths of links in the archives that are open, the innermost last.
    links: Vec<Links>,
    /// What decompresses one stream after the other: to make it anew for each entry would take longer than most entries do.
    decoder: Decompress,
    chunk: Vec<u8>,
}

impl<'a> Opener<'a> {
    pub(crate) fn new(policy: &'a Policy, work: &'a mut Work, findings: &'a mut Findings, length: usize) -> Self {
        let before = work.expanded;
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let links = Vec::new();
        Self {
            policy,
            work,
            findings,
            length,
            before,
            links,
            decoder: Decompress::new(false),
            chunk: vec![0; unpack::CHUNK],
        }
    }

    /// Opens an archive at a depth, from 1 on. `complete` is false where the end of the upload is missing.
    pub(crate) fn open(&mut self, bytes: &[u8], format: Format, depth: u32, complete: bool) -> Result<(), Stop> {
        self.within(depth, |opener| opener.open_as(bytes, format, depth, complete))
    }

    /// Opens an archive at a depth, which has links of its own.
    fn within(&mut self, depth: u32, open: impl FnOnce(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        if depth > self.policy.limits.depth {
            let most = self.policy.limits.depth;
            self.findings.add(Reason::ArchiveDepth, format!("archives lie in each other more than {most} deep"));
            return Err(Stop::Over);
        }
        self.links.push(Links::default());
        let opened = open(self);
        self.links.pop();
        opened
    }

    fn open_as(&mut self, bytes: &[u8], format: Format, depth: u32, complete: bool) -> Result<(), Stop> {
        if let Some(coding) = Coding::of(format) {
            return stream::open(self, bytes, (format, coding), depth, complete);
        }
        match format {
            format if format.is_zip() => zip::open(self, None, bytes, depth, complete),
            Format::Tar => tar::open(self, bytes, depth, complete),
            Format::Gzip => gzip::open(self, bytes, depth, complete),
            Format::SevenZip => seven_zip::open(self, bytes, depth, complete),
            Format::Rar => rar::open(self, bytes, complete),
            format if format.family() == Family::Archive => opaque::open(self, format),
            _ => Ok(()),
        }
    }

    /// Opens what an entry holds, if that is an archive, and checks its type where the policy says so.
    fn content(&mut self, name: &Name, content: &[u8], depth: u32, complete: bool) -> Result<(), Stop> {
        let opened = match identify_plain(content) {
            // Which kind of ZIP file it is, is found out when it is opened.
            Format::Zip => self.within(depth + 1, |opener| zip::open(opener, Some(name), content, depth + 1, complete)),
            format => {
                self.kind(name, format);
                let format = match format {
                    format if is_opened(format) => format,
                    // A program may be a tar file as well, by the name of its first entry.
                    _ if is_tar(content) => Format::Tar,
                    _ => return Ok(()),
                };
                self.open(content, format, depth + 1, complete)
            }
        };
        match opened {
            // The entry cannot be read, the others may be.
            Err(Stop::Unreadable) | Ok(()) => Ok(()),
            over => over,
        }
    }

    /// The type of an entry that is not opened, by its beginning.
    fn kind_of_start(&mut self, name: &Name, start: &[u8]) {
        if self.policy.check_entries {
            let format = match identify_plain(start) {
                Format::Zip => zip::kind_of_beginning(start, &mut self.work.bytes).unwrap_or(Format::Macro),
                format => format,
            };
            self.kind(name, format);
        }
    }

    /// The type of an entry.
    fn kind(&mut self, name: &Name, format: Format) {
        if self.policy.check_entries && self.policy.denies_type(format) {
            let shown = &name.shown;
            self.findings
                .add(Reason::DeniedType, format!("the entry `{shown}` of an archive is of the denied type {format}"));
        }
    }

    /// Counts an entry and checks its name.
    fn entry(&mut self, raw: &[u8], checks_extension: bool) -> Result<Name, Stop> {
        self.step()?;
        self.work.entries = self.work.entries.saturating_add(1);
        let most = self.policy.limits.entries;
        if self.work.entries > most {
            self.findings.add(Reason::ArchiveEntries, format!("archives have more than {most} entries"));
            return Err(Stop::Over);
        }
        Ok(self.named(raw, checks_extension))
    }

    /// Checks a name that readers may give an entry: its path, its extension, and whether a link is on the way.
    fn named(&mut self, raw: &[u8], checks_extension: bool) -> Name {
        let name = Name::read(raw);
        self.path(&name, raw);
        if self.links.last().is_some_and(|links| links.lead_to(raw)) {
            let raw = raw.get(..128).unwrap_or(raw).escape_ascii();
            let detail = format!("the entry `{raw}` of an archive is written through a link of it, or lies too deep");
            self.findings.add(Reason::ZipSlip, detail);
        }
        if checks_extension && self.policy.check_entries {
            // With and without percent escapes, as the names of files are read.
            for name in std::iter::once(&name).chain(&Name::unescaped(raw)) {
                check::extensions(Subject::Entry, name, self.policy, self.findings);
            }
        }
        name
    }

    /// A link of an archive by all of its names, and where it leads by all of its targets: from the folder that it is in, or from the
    /// archive's own where it is a hard link.
    fn link(&mut self, names: &[&[u8]], targets: &[&[u8]], hard: bool) {
        let depth = links::depth(names);
        let from = if hard { 0 } else { depth };
        let (mut ups, mut symbolic) = (0, !hard);
        for target in targets {
            let name = Name::read(target);
            let read = name::path(target);
            let stays = links::stays_inside(from, target) && links::stays_inside(from, read.as_bytes());
            // A hard link to a symbolic one is another of the same target, which leads elsewhere from another folder.
            let (mut known, mut through) = (None, false);
            if let Some(links) = self.links.last().filter(|_| hard) {
                (known, through) = (links.ups(target), links.lead_to(target));
            }
            ups = ups.max(if hard { known.unwrap_or(0) } else { links::ups(target).max(links::ups(read.as_bytes())) });
            if name.absolute || name.null_byte || !stays || through || known.is_some_and(|ups| ups > depth) {
                let target = target.get(..128).unwrap_or(target).escape_ascii();
                let detail = format!("a link to `{target}` of an archive leads out of its folder");
                self.findings.add(Reason::ZipSlip, detail);
            }
            symbolic |= known.is_some();
        }
        if let Some(links) = self.links.last_mut().filter(|_| symbolic) {
            names.iter().for_each(|name| links.add(name, targets, ups));
        }
    }

    /// A path that an archive writes to.
    fn path(&mut self, name: &Name, raw: &[u8]) {
        if name.null_byte {
            let detail = format!("the entry `{}` of an archive has a NUL byte in its name", name.shown);
            self.findings.add(Reason::NullByte, detail);
        }
        if name.leaves_folder || name.absolute {
            let raw = raw.get(..128).unwrap_or(raw).escape_ascii();
            self.findings.add(Reason::ZipSlip, format!("the entry `{raw}` of an archive leads out of its folder"));
        }
    }

    /// Works on so many bytes of content that are in memory meanwhile.
    fn holding<T>(&mut self, length: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let before = self.work.memory;
        self.work.memory = before.saturating_sub(length);
        let done = work(self);
        self.work.memory = before;
        done
    }

    fn step(&mut self) -> Result<(), Stop> {
        match self.work.steps.checked_sub(1) {
            Some(left) => {
                self.work.steps = left;
                Ok(())
            }
            None => Err(self.over_budget()),
        }
    }

    /// What opening writes, or says that it would.
    fn expand(&mut self, bytes: u64) -> Result<(), Stop> {
        self.work.expanded = self.work.expanded.saturating_add(bytes);
        self.bomb(self.work.expanded.saturating_sub(self.before), self.work.expanded)
    }

    /// What an archive says that it would write in all.
    fn declares(&mut self, bytes: u64) -> Result<(), Stop> {
        let of_file = self.work.expanded.saturating_sub(self.before).max(bytes);
        self.bomb(of_file, self.work.expanded.max(bytes))
    }

    fn bomb(&mut self, of_file: u64, of_all: u64) -> Result<(), Stop> {
        let (most, ratio) = (self.policy.limits.expanded, self.policy.limits.ratio);
        if of_all > most {
            self.findings.add(Reason::ArchiveBomb, format!("archives expand to more than {most} bytes"));
            return Err(Stop::Over);
        }
        if of_file > RATIO_FREE && of_file > self.length.saturating_mul(ratio) {
            self.findings.add(Reason::ArchiveBomb, format!("an archive expands to more than {ratio} times its length"));
            return Err(Stop::Over);
        }
        Ok(())
    }

    fn over_budget(&mut self) -> Stop {
        self.unreadable("opening the archive takes more work than is allowed");
        Stop::Over
    }

    /// Notes that something cannot be read. The archive goes on unless the caller stops it.
    fn unreadable(&mut self, why: impl Into<String>) -> Stop {
        if self.policy.reject_unreadable {
            self.findings.add(Reason::UnreadableArchive, why);
        }
        Stop::Unreadable
    }
}

/// Whether content is opened that begins so.
fn opens(start: &[u8]) -> bool {
    is_opened(identify_plain(start)) || is_tar(start)
}

/// Whether files of a format are opened wherever they are.
pub(crate) fn is_opened(format: Format) -> bool {
    format.is_zip() || format.family() == Family::Archive
}
