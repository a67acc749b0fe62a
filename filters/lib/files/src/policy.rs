//! What files may be.

use crate::{Family, Format};

/// What a file may be, and how far archives are opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Extensions, in lower case and without the dot: a file whose last extension is none of them is refused. Empty: all.
    pub allowed_extensions: Vec<String>,
    /// Extensions that are refused, in lower case and without the dot.
    pub denied_extensions: Vec<String>,
    /// Words of formats and families: a file of another type is refused. Empty: all.
    pub allowed_types: Vec<String>,
    /// Words of formats and families that are refused. A format that `allowed_types` names is not, whatever its family.
    pub denied_types: Vec<String>,
    /// Whether the content must be what the extension and the media type say.
    pub check_mismatch: bool,
    /// The longest file, in bytes; 0 for any length.
    pub max_file_size: u64,
    /// Whether archives that cannot be read are refused.
    pub reject_unreadable: bool,
    /// Whether extensions and types of the entries of archives are checked as those of files.
    pub check_entries: bool,
    /// How far archives are opened.
    pub limits: Limits,
}

/// How far archives are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How deep archives may lie in each other; the uploaded one counts as 1.
    pub depth: u32,
    /// The most entries of all archives of a request.
    pub entries: u64,
    /// The most bytes that opening all archives of a request may write.
    pub expanded: u64,
    /// The most bytes that opening an archive may write for each of its own, above [`RATIO_FREE`].
    pub ratio: u64,
}

/// Archives that write no more than this are never refused for their ratio, in bytes.
pub const RATIO_FREE: u64 = 64 << 10;
/// The most bytes that are decompressed for one request. What is longer cannot be read; the limits of a policy apply to what archives
/// say of their lengths as well.
pub const WORK_BYTES: u64 = 16 << 20;
/// The most bytes of archives within archives that are in memory at once.
pub const WORK_MEMORY: u64 = 8 << 20;
/// The most steps of one request: an entry or a header each.
pub const WORK_STEPS: u64 = 200_000;

/// The extensions that are denied by default.
pub const DENIED_EXTENSIONS: [&str; 46] = [
    // Programs, and what a system starts on a double click.
    "exe", "dll", "com", "scr", "pif", "cpl", "msi", "lnk", "reg", "jar", //
    // Scripts of systems.
    "bat", "cmd", "ps1", "vbs", "vbe", "js", "jse", "mjs", "wsf", "hta", "sh", "py", "pl", "cgi", //
    // Pages of servers.
    "php", "phtml", "phar", "asp", "aspx", "ashx", "jsp", "jspx", //
    // Pages of browsers.
    "html", "htm", "xhtml", "shtml", "svg", "svgz", //
    // Office documents with macros.
    "docm", "dotm", "xlsm", "xltm", "xlam", "pptm", "potm", "ppsm",
];
/// The types that are denied by default.
pub const DENIED_TYPES: [&str; 3] = ["executable", "script", "html"];

/// Other extensions and names that run what an extension runs: they are denied with it.
const SPELLINGS: &[(&str, &[&str])] = &[
    ("php", &["php3", "php4", "php5", "php6", "php7", "php8", "pht", "phpt", "phps", "pgif", "htaccess", "user.ini"]),
    ("asp", &["asa", "cer", "cdx", "idc", "web.config"]),
    ("aspx", &["asmx", "ascx", "axd", "cshtml", "vbhtml", "svc", "soap", "rem", "web.config"]),
    ("jsp", &["jspf", "jsw", "jsv", "jtml", "war"]),
    ("js", &["cjs"]),
    ("exe", &["sys", "ocx", "drv"]),
    ("msi", &["msp", "mst", "msix", "appx"]),
    ("wsf", &["wsc", "wsh", "ws", "sct"]),
    ("ps1", &["psm1", "psd1", "ps1xml", "psc1"]),
    ("sh", &["bash", "zsh", "ksh", "csh"]),
    ("html", &["xht", "mht", "mhtml"]),
    ("shtml", &["stm", "shtm"]),
    ("cgi", &["fcgi"]),
    ("pptm", &["ppam", "sldm"]),
    ("lnk", &["url", "desktop", "scf"]),
];

/// Denied extensions that ordinary names have in front of the last one (`shop.com.pdf`, `setup.py.txt`, `page.html.gz`), and that no
/// server acts on there: they are not denied there.
const WORDS: [&str; 11] = ["com", "htm", "html", "js", "mjs", "pl", "py", "sh", "svg", "svgz", "xhtml"];

impl Default for Policy {
    fn default() -> Self {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        Self {
            allowed_extensions: Vec::new(),
            denied_extensions: words(&DENIED_EXTENSIONS),
            allowed_types: Vec::new(),
            denied_types: words(&DENIED_TYPES),
            check_mismatch: true,
            max_file_size: 0,
            reject_unreadable: true,
            check_entries: false,
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 3, entries: 10_000, expanded: 256 << 20, ratio: 100 }
    }
}

impl Policy {
    /// Whether an extension or a whole name is denied, itself or as another spelling of a denied one.
    pub(crate) fn denies_extension(&self, extension: &str) -> bool {
        let denied = |word: &str| self.denied_extensions.iter().any(|denied| denied == word);
        // An extension that is allowed by name is not denied as a spelling of another.
        let allowed = self.allowed_extensions.iter().any(|allowed| allowed == extension);
        denied(extension) || !allowed && SPELLINGS.iter().any(|(of, others)| others.contains(&extension) && denied(of))
    }

    /// Whether an extension in front of the last one is denied.
    pub(crate) fn denies_inner(&self, extension: &str) -> bool {
        let named = self.denied_extensions.iter().any(|denied| denied == extension);
        // Other spellings may be ordinary words as well (`org.gnome.desktop.xml`).
        let page = extension.starts_with("ph") && self.denies_extension(extension);
        !WORDS.contains(&extension) && (named || page)
    }

    pub(crate) fn allows_extension(&self, extension: &str) -> bool {
        self.allowed_extensions.is_empty() || self.allowed_extensions.iter().any(|allowed| allowed == extension)
    }

    pub(crate) fn denies_type(&self, format: Format) -> bool {
        let named = |list: &[String], word: &str| list.iter().any(|own| own == word);
        named(&self.denied_types, format.word())
            || named(&self.denied_types, format.family().word()) && !named(&self.allowed_types, format.word())
    }

    pub(crate) fn allows_type(&self, format: Format) -> bool {
        let is = |word: &String| word == format.word() || word == Family::word(format.family());
        self.allowed_types.is_empty() || self.allowed_types.iter().any(is)
    }
}
