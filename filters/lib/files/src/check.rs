//! Names against a policy: those of files, and those of the entries of archives.

use std::fmt;

use crate::{Findings, Name, Policy, Reading, Reason};

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A file of a request.
    File,
    /// An entry of an archive.
    Entry,
}

/// A subject by its name, for people.
struct Named<'a>(Subject, &'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(Subject::File, shown) => write!(f, "the name `{shown}`"),
            Self(Subject::Entry, shown) => write!(f, "the entry `{shown}` of an archive"),
        }
    }
}

/// Checks the name of a file in one of its readings.
pub(crate) fn file(name: &Name, policy: &Policy, findings: &mut Findings) {
    let shown = &name.shown;
    if name.null_byte {
        findings.add(Reason::NullByte, format!("the name `{shown}` holds a NUL byte"));
    }
    if name.leaves_folder {
        findings.add(Reason::ZipSlip, format!("the name `{shown}` has a path out of its folder"));
    }
    extensions(Subject::File, name, policy, findings);
    if name.undecodable {
        findings.add(Reason::UndecodableBody, format!("the character set of the name `{shown}` is not read"));
    }
    if !policy.allows_extension(name.extension().unwrap_or_default()) {
        not_allowed(shown, findings);
    }
    for other in name.others.iter().filter(|other| !other.reduced) {
        if !policy.allows_extension(other.extension().unwrap_or_default()) {
            not_allowed(shown, findings);
        }
    }
}

fn not_allowed(shown: &str, findings: &mut Findings) {
    findings.add(Reason::ExtensionNotAllowed, format!("the extension of `{shown}` is none of those allowed"));
}

/// Checks the extensions of a name, for all who read it in another way, and whether they are shown as they are.
pub(crate) fn extensions(subject: Subject, name: &Name, policy: &Policy, findings: &mut Findings) {
    let named = Named(subject, &name.shown);
    if name.reordered {
        findings.add(Reason::DoubleExtension, format!("{named} holds characters that hide its extension"));
    }
    let whole = name.whole.trim_start_matches('.');
    if let Some(extension) = name.extension().filter(|extension| policy.denies_extension(extension)) {
        findings.add(Reason::DeniedExtension, format!("{named} has the denied extension {extension}"));
    } else if policy.denies_extension(whole) && name.whole.contains('.') {
        findings.add(Reason::DeniedExtension, format!("{named} is denied"));
    }
    let inner = name.extensions.split_last().map(|(_, inner)| inner).unwrap_or_default();
    if let Some(extension) = inner.iter().find(|extension| policy.denies_inner(extension)) {
        let detail = format!("{named} has the denied extension {extension} in front of its last one");
        findings.add(Reason::DoubleExtension, detail);
    }
    for other in &name.others {
        reading(&named, other, policy, findings);
    }
}

/// Checks what a name is for others.
fn reading(named: &Named<'_>, other: &Reading, policy: &Policy, findings: &mut Findings) {
    let whole = other.whole.trim_start_matches('.');
    if let Some(extension) = other.extension().filter(|extension| policy.denies_extension(extension)) {
        let detail = format!("{named} has the denied extension {extension} in another reading");
        findings.add(Reason::DeniedExtension, detail);
    } else if policy.denies_extension(whole) && other.whole.contains('.') {
        findings.add(Reason::DeniedExtension, format!("{named} is denied in another reading"));
    }
    // Without the signs and letters that are removed, words of ordinary names are extensions in front of the last one:
    // `Guide (setup.exe).pdf`. Those of PHP alone count there.
    let inner = other.extensions.split_last().map(|(_, inner)| inner).unwrap_or_default();
    let denied =
        |extension: &&String| policy.denies_inner(extension) && (!other.reduced || extension.starts_with("ph"));
    if let Some(extension) = inner.iter().find(denied) {
        let detail = format!("{named} has the denied extension {extension} in front of its last one");
        findings.add(Reason::DoubleExtension, detail);
    }
}
