//! The configuration that both engines are given.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use seclang::transform::Transform;
use seclang::{DataFiles, ENGINE_CONF, Program, Source};

/// The rule whose message is the scores, known to the peer's program as well.
pub const SCORES_RULE: u64 = 999_999;

/// The client whose requests have REQUEST_BODY whatever their body is: see [`super::reading::Reading::WithRequestBody`].
pub const FORCED_BODY_CLIENT: &str = "192.0.2.99";

/// What is set on top of the rule set: detection only, every paranoia level, and limits that requests of a few hundred
/// bytes reach.
const SETUP: &str = r#"
SecRuleEngine DetectionOnly
SecAction "id:999998,phase:1,nolog,pass,setvar:tx.blocking_paranoia_level=4,setvar:tx.detection_paranoia_level=4,\
  setvar:tx.crs_validate_utf8_encoding=1,setvar:tx.arg_name_length=100,setvar:tx.arg_length=400,\
  setvar:tx.total_arg_length=6400,setvar:tx.max_num_args=40,setvar:tx.max_file_size=2000,\
  setvar:tx.combined_file_sizes=4000"
SecRule REMOTE_ADDR "@streq 192.0.2.99" "id:999997,phase:1,nolog,pass,ctl:forceRequestBodyVariable=On"
"#;

/// The scores at the end as one message: inbound, outbound, then by kind of attack.
const SCORES: &str = concat!(
    "SecAction \"id:999999,phase:5,pass,log,msg:'",
    "%{tx.blocking_inbound_anomaly_score},%{tx.blocking_outbound_anomaly_score},%{tx.sql_injection_score},",
    "%{tx.xss_score},%{tx.rfi_score},%{tx.lfi_score},%{tx.rce_score},%{tx.php_injection_score},",
    "%{tx.http_violation_score},%{tx.session_fixation_score}'\"\n"
);

struct Folder(PathBuf);

impl DataFiles for Folder {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(name)).ok()
    }
}

/// A rule set with what the comparison adds to it.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Its release, as its setup says it (`4.28.0`).
    pub release: String,
    setup: PathBuf,
    files: Vec<PathBuf>,
    folder: PathBuf,
    added: String,
}

impl Rules {
    /// Finds the files of a core rule set: a folder with `rules/` and `crs-setup.conf`, or its example.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn find(crs: &Path) -> Result<Self, String> {
        let setups = ["crs-setup.conf.example", "crs-setup.conf"].map(|name| crs.join(name));
        let setup = setups.into_iter().find(|path| path.exists());
        let setup = setup
            .ok_or_else(|| format!("{} has no crs-setup.conf: give the folder of a core rule set", crs.display()))?;
        let folder = crs.join("rules");
        let listed = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
        files.sort();
        let text = String::from_utf8_lossy(&read(&setup)?).into_owned();
        let release = text.split_once("ver.").map_or("", |(_, after)| after.split_whitespace().next().unwrap_or(""));
        Ok(Self { release: release.to_owned(), setup, files, folder, added: SETUP.to_owned() })
    }

    /// The same rules with other settings on top of them than those of the comparison.
    #[must_use]
    pub fn with_setup(self, added: &str) -> Self {
        Self { added: added.to_owned(), ..self }
    }

    /// Compiles them for our engine.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or every diagnostic of the compiler.
    pub fn compile(&self) -> Result<Program, String> {
        let mut sources = vec![
            Source::new("engine.conf", ENGINE_CONF),
            Source::new("crs-setup.conf", read(&self.setup)?),
            Source::new("setup.conf", self.added.clone()),
        ];
        for path in &self.files {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            sources.push(Source::new(name, read(path)?));
        }
        sources.push(Source::new("scores.conf", SCORES));
        seclang::compile(&sources, &Folder(self.folder.clone()))
            .map_err(|diagnostics| diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"))
    }

    /// Writes the same configuration as a file for the peer, and returns its path.
    ///
    /// libmodsecurity takes the mapping of `%uHHHH` to ASCII from a file, where our engine has it built in: it is given
    /// the same one.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn write(&self, into: &Path) -> Result<PathBuf, String> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let into = absolute(into);
        let write = |name: &str, text: &str| {
            let path = into.join(name);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok::<PathBuf, String>(path)
        };
        std::fs::create_dir_all(&into).map_err(|error| format!("{}: {error}", into.display()))?;
        let mapping = write("unicode.mapping", &mapping())?;
        let mut text = format!("SecUnicodeMapFile {} 20127\n", mapping.display());
        let engine = write("engine.conf", ENGINE_CONF)?;
        let setup = write("setup.conf", &self.added)?;
        let scores = write("scores.conf", SCORES)?;
        for path in [&engine, &self.setup, &setup].into_iter().chain(&self.files).chain([&scores]) {
            let _ = writeln!(text, "Include {}", absolute(path).display());
        }
        write("main.conf", &text)
    }
}

/// Our mapping of code points to ASCII in the format of `unicode.mapping`.
fn mapping() -> String {
    let mut text = String::from("20127 (US-ASCII)\n");
    for code in 0x80..=0xffff_u32 {
        let escape = format!("%u{code:04x}");
        let mapped = Transform::UrlDecodeUni.apply(escape.as_bytes());
        let low = (code & 0xff) as u8;
        if let [byte] = mapped.as_ref()
            && *byte != low
        {
            let _ = write!(text, "{code:04x}:{byte:02x} ");
        }
    }
    text.push('\n');
    text
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
