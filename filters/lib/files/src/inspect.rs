//! One file: its names, its length, its type, its archives.

use crate::archive::{Opener, Work, is_opened};
use crate::{Family, Findings, Format, Name, Policy, Reading, Reason, cfb, check, ends, identify_within, magic, text};

/// Extensions of texts that may begin with tags of HTML.
const PLAIN: [&str; 7] = ["md", "markdown", "mdx", "rst", "txt", "csv", "log"];

/// Extensions of mails, which hold pages.
const MAIL: [&str; 3] = ["eml", "emlx", "mbox"];

/// A file of a request.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Its name in every reading of what the request says; empty if it has none.
    pub names: &'a [Vec<u8>],
    /// The media type that the request gives it.
    pub media_type: Option<&'a [u8]>,
    /// Its bytes, as far as they are there.
    pub content: &'a [u8],
    /// All of its bytes are there.
    pub complete: bool,
    /// Its length, where that is known although bytes are missing.
    pub length: Option<u64>,
}

/// Inspects a file; its format. `work` is what the files of a request may take together.
pub fn inspect(file: &File<'_>, policy: &Policy, work: &mut Work, findings: &mut Findings) -> Format {
    let names: Vec<Name> = file.names.iter().map(|name| Name::read(name)).collect();
    for name in &names {
        check::file(name, policy, findings);
    }
    let there = u64::try_from(file.content.len()).unwrap_or(u64::MAX);
    let length = file.length.unwrap_or(there).max(there);
    if policy.max_file_size > 0 && length > policy.max_file_size {
        let most = policy.max_file_size;
        findings.add(Reason::FileTooLarge, format!("a file has {length} bytes, more than {most}"));
    }
    let format = as_named(kind(file.content, &names, policy, work, findings), &names, file);
    check_type(format, &names, policy, findings);
    if format != Format::Empty {
        check_media_type(file, policy, findings);
    }
    if policy.check_mismatch {
        check_mismatch(format, &names, file, findings);
    }
    if let Some(how) = ends::polyglot(file.content, format, file.complete) {
        findings.add(Reason::Polyglot, how);
    }
    if matches!(format, Format::Ole | Format::Macro) && policy.reject_unreadable && cfb::read(file.content).encrypted {
        findings.add(Reason::UnreadableArchive, "an office document is encrypted");
    }
    if is_opened(format) || magic::binary(file.content) == Format::Zip {
        // Documents with macros are ZIP files as well.
        let opened = if is_opened(format) { format } else { Format::Zip };
        // What stops it is among the findings.
        let _ = Opener::new(policy, work, findings, file.content.len()).open(file.content, opened, 1, file.complete);
    }
    format
}

/// The format of a file by its content. What it takes to find out which kind of ZIP file it is belongs to the work.
fn kind(content: &[u8], names: &[Name], policy: &Policy, work: &mut Work, findings: &mut Findings) -> Format {
    let found = identify_within(content, policy.limits.entries, work.budget());
    found.unwrap_or_else(|| {
        if !policy.reject_unreadable {
            return Format::Macro;
        }
        let detail = "to find out whether an office document has macros takes more work than is allowed";
        findings.add(Reason::UnreadableArchive, detail);
        let named = names.iter().filter_map(Name::extension).flat_map(Format::of_extension);
        named.into_iter().find(|format| format.is_zip()).unwrap_or(Format::Zip)
    })
}

/// Inspects a body as it was sent, whose content codings are undone otherwise: whether it is something that is run, as some applications
/// store it. `work` is that of the files of the request.
pub fn inspect_coded(content: &[u8], policy: &Policy, work: &mut Work, findings: &mut Findings) {
    let format = kind(content, &[], policy, work, findings);
    let runs = matches!(format.family(), Family::Executable | Family::Script | Family::Html | Family::Svg);
    if runs && policy.denies_type(format) {
        let family = format.family().word();
        let detail = format!("the coded bytes of the body are of the denied type {format} ({family})");
        findings.add(Reason::DeniedType, detail);
    }
    // The bytes of a coding may be those of any format by chance, but for long texts.
    let script = text::tags::in_binary(content).filter(|_| !runs && format.family() != Family::Archive);
    if let Some(script) = script {
        findings.add(Reason::Polyglot, format!("the coded bytes of the body hold a script of the type {script}"));
    }
}

/// Checks the type that the request gives to a file: applications store it, and browsers act on it.
fn check_media_type(file: &File<'_>, policy: &Policy, findings: &mut Findings) {
    for media in file.media_type.unwrap_or_default().split(|byte| *byte == b',') {
        let media = essence(media);
        if let Some(format) = format_of(&media).filter(|format| policy.denies_type(*format)) {
            let family = format.family().word();
            findings
                .add(Reason::DeniedType, format!("the media type {media} is of the denied type {format} ({family})"));
        }
    }
}

/// A media type without its parameters, in lower case.
fn essence(media: &[u8]) -> String {
    let media = media.split(|byte| *byte == b';').next().unwrap_or_default();
    String::from_utf8_lossy(media.trim_ascii()).to_ascii_lowercase()
}

/// The format of a media type that browsers or servers run.
fn format_of(media: &str) -> Option<Format> {
    Some(match media {
        "text/html" | "application/xhtml+xml" | "application/vnd.wap.xhtml+xml" => Format::Html,
        "image/svg+xml" | "image/svg" => Format::Svg,
        "text/javascript"
        | "text/x-javascript"
        | "text/ecmascript"
        | "text/x-ecmascript"
        | "text/jscript"
        | "text/livescript"
        | "text/vbscript"
        | "application/javascript"
        | "application/x-javascript"
        | "application/ecmascript"
        | "application/x-ecmascript"
        | "application/hta" => Format::WindowsScript,
        "text/php" | "text/x-php" | "application/php" | "application/x-php" | "application/x-httpd-php" => Format::Php,
        "text/x-sh" | "text/x-shellscript" | "application/x-sh" | "application/x-shellscript" => Format::Shell,
        _ => return None,
    })
}

fn check_type(format: Format, names: &[Name], policy: &Policy, findings: &mut Findings) {
    if policy.denies_type(format) {
        let family = format.family().word();
        findings.add(Reason::DeniedType, format!("a file is of the denied type {format} ({family})"));
    }
    if !policy.allows_type(format) && format != Format::Empty {
        findings.add(Reason::TypeNotAllowed, format!("a file is of the type {format}, which is none of those allowed"));
    }
    // A file without a name has the extensions of its format.
    let unnamed = names.is_empty() && !policy.allowed_extensions.is_empty() && format != Format::Empty;
    if unnamed && !format.extensions().iter().any(|extension| policy.allows_extension(extension)) {
        let detail = format!("a file without a name is of the type {format}, whose extensions are not allowed");
        findings.add(Reason::ExtensionNotAllowed, detail);
    }
}

fn check_mismatch(format: Format, names: &[Name], file: &File<'_>, findings: &mut Findings) {
    let extensions = names.iter().filter_map(|name| name.extension().map(|extension| (extension, name.shown.as_str())));
    for (extension, shown) in extensions {
        if contradicts(format, extension, file.content) {
            let detail = format!(
                "the content of `{shown}` is of the type {format}, which the extension {extension} does not have"
            );
            findings.add(Reason::TypeMismatch, detail);
        }
    }
    let media = essence(file.media_type.unwrap_or_default());
    if extension_of(&media).is_some_and(|extension| contradicts(format, extension, file.content)) {
        findings.add(Reason::TypeMismatch, format!("a file is of the type {format}, and its media type is {media}"));
    }
}

/// The extension for a media type that browsers and applications act on.
fn extension_of(media: &str) -> Option<&'static str> {
    Some(match media {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" | "image/pjpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "application/pdf" => "pdf",
        _ => return None,
    })
}

/// Whether no file of an extension has this format. Formats of one family are not told apart: pictures and films are often named
/// after another format, and that does no harm.
fn contradicts(format: Format, extension: &str, content: &[u8]) -> bool {
    let expected: Vec<Format> = Format::of_extension(extension).collect();
    if expected.is_empty() || format == Format::Empty || expected.contains(&format) {
        return false;
    }
    if format == Format::Unknown {
        return expected.iter().all(|expected| expected.has_signature());
    }
    // An office document is a ZIP file as well, but not one with macros or a program.
    if expected.contains(&Format::Zip) && format.is_zip() && format.family() == Family::Document {
        return false;
    }
    let text = expected.iter().any(|expected| expected.is_text());
    if text && matches!(format, Format::Text | Format::Json | Format::Xml) {
        return false;
    }
    // PostScript and RTF are text, and so are old mails.
    if text && text::as_text(content).is_some() && format.family() == Family::Document {
        return !expected.iter().any(|expected| matches!(expected, Format::Text));
    }
    let sound = |family| matches!(family, Family::Audio | Family::Video);
    let family = format.family();
    !expected.iter().any(|expected| {
        let other = expected.family();
        (other == family && !matches!(family, Family::Script | Family::Executable)) || sound(other) && sound(family)
    })
}

/// The format, given the name. Documents of Markdown begin with tags of HTML and are no pages, and mails hold pages; data such as JSON
/// and CSV may hold what servers and systems run, which they do in no file of that name, and is no script unless it begins with one.
fn as_named(format: Format, names: &[Name], file: &File<'_>) -> Format {
    let is = |name: &Name, of: &dyn Fn(&str) -> bool| {
        let others = name.others.iter().filter(|other| !other.reduced);
        std::iter::once(name.extension())
            .chain(others.map(Reading::extension))
            .all(|extension| extension.is_some_and(of))
    };
    let all_are = |of: &dyn Fn(&str) -> bool| !names.is_empty() && names.iter().all(|name| is(name, of));
    let Some(text) = text::as_text(file.content) else { return format };
    match format {
        Format::Html if all_are(&|extension| PLAIN.contains(&extension)) && !text::is_whole_page(&text) => Format::Text,
        Format::Html if all_are(&is_xml) => text::of_xml(&text).unwrap_or(format),
        Format::Html if text::is_mail(&text) => {
            let mail = names.is_empty() && essence(file.media_type.unwrap_or_default()) == "message/rfc822";
            if mail || all_are(&|extension| MAIL.contains(&extension)) { Format::Text } else { format }
        }
        Format::Php | Format::Asp | Format::WindowsScript if all_are(&is_data) => {
            text::of_data(&text).unwrap_or(format)
        }
        _ => format,
    }
}

/// Whether files of an extension are XML for servers.
fn is_xml(extension: &str) -> bool {
    is_data(extension) && Format::Xml.extensions().contains(&extension)
}

/// Whether files of an extension are text that nothing runs.
fn is_data(extension: &str) -> bool {
    let mut formats = Format::of_extension(extension).peekable();
    formats.peek().is_some() && formats.all(|format| format.family() == Family::Text)
}
