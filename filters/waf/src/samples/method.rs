//! Methods by which programs use an application.

use exchange::Exchange;
use exchange::spelling::decoded;
use seclang::MatchedRule;

use super::is_answered_well;
use super::target::{Input, Target};

/// Endings of files that servers run, and of those that say what they run (`web.config`, `.user.ini`): a caller who writes one runs programs there.
pub(crate) const PROGRAMS: [&[u8]; 48] = [
    b"asa",
    b"ashx",
    b"asmx",
    b"asp",
    b"aspx",
    b"axd",
    b"bat",
    b"cdx",
    b"cer",
    b"cfc",
    b"cfm",
    b"cgi",
    b"cmd",
    b"config",
    b"cshtml",
    b"dll",
    b"exe",
    b"hta",
    b"htaccess",
    b"idc",
    b"inc",
    b"ini",
    b"jar",
    b"jsp",
    b"jspf",
    b"jspx",
    b"jsw",
    b"pgif",
    b"phar",
    b"php",
    b"php3",
    b"php4",
    b"php5",
    b"php6",
    b"php7",
    b"php8",
    b"phps",
    b"phpt",
    b"pht",
    b"phtml",
    b"pl",
    b"ps1",
    b"py",
    b"rb",
    b"sh",
    b"shtml",
    b"vbs",
    b"war",
];

/// The target of a variable at which a rule has matched. The method is one where the rule has matched at nothing else: a rule about something
/// else in such requests is excluded at that.
pub(super) fn target_of<'r>(rule: &MatchedRule, variable: &'r [u8], exchange: &Exchange) -> Option<Target<'r>> {
    let target = Target::read(variable)?;
    if target.input != Input::Method {
        return Some(target);
    }
    let is_method = |variable: &[u8]| Target::read(variable).is_some_and(|target| target.input == Input::Method);
    let mut inputs = rule.inputs().map(|(variable, _)| variable);
    let is_sole = inputs.all(|variable| is_method(variable) || variable.starts_with(b"TX:"));
    is_sole.then(|| Target::of_method(&exchange.request.method)).flatten()
}

/// Whether a request shows that the application takes its method: the backend has answered well, and no program was written, whose upload is
/// what rules against methods are for.
pub(super) fn is_use(exchange: &Exchange) -> bool {
    let request = &exchange.request;
    let mut written = [request.path_only()].into_iter().chain(request.headers.all("destination"));
    is_answered_well(exchange) && !written.any(names_program)
}

/// Endings of those among them for which the rest of the path is an argument (`/remote.php/dav/a.txt`). In a folder that is named like another
/// one, some servers run every file.
pub(crate) const WITH_ARGUMENT: [&[u8]; 5] = [b"cgi", b"php", b"pl", b"py", b"rb"];

/// Whether a path names a file that servers run, however it is spelt: `/a.jsp`, `/a.%6asp/`, `/a.php;x`, `/a.asp::$DATA`, but not by its
/// argument.
fn names_program(path: &[u8]) -> bool {
    is_program(path) || decoded(path).any(|path| is_program(&path))
}

fn is_program(path: &[u8]) -> bool {
    let has_ending = |segment: &[u8], endings: &[&[u8]]| {
        segment.split(|byte| *byte == b'.').skip(1).any(|behind| {
            let end = behind.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(behind.len());
            let ending = behind.get(..end).unwrap_or_default();
            endings.iter().any(|program| program.eq_ignore_ascii_case(ending))
        })
    };
    // Some servers read no further than to a NUL.
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut segments = path.split(|byte| *byte == b'/').rev();
    let is_left_out = |segment: &&[u8]| segment.iter().all(|byte| *byte == b'.' || byte.is_ascii_whitespace());
    let last = segments.find(|segment| !is_left_out(segment)).unwrap_or_default();
    let leads_up = path.split(|byte| *byte == b'/').any(|segment| segment == b".." || segment.starts_with(b"..;"));
    if leads_up {
        return has_ending(path, &PROGRAMS);
    }
    let is_folder = |ending: &&&[u8]| !WITH_ARGUMENT.contains(*ending);
    let folders: Vec<&[u8]> = PROGRAMS.iter().filter(is_folder).copied().collect();
    has_ending(last, &PROGRAMS) || segments.any(|segment| has_ending(segment, &folders))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_every_spelling() {
        for path in [
            "/a.jsp",
            "/a.JSP/",
            "/a.jsp%20",
            "/a.j%73p",
            "/a%2ephp",
            "/a%252ephp",
            "/a.php;x=1",
            "/a.asp::$DATA",
            "/a.php.",
            "/a.php%00.txt",
            "/a.php%00/b",
            "/a.php/.",
            "/a.php/b/..",
            "/a.asp/b.txt",
            "/uploads/shell.jsp/1",
            "/a.php/b.jsp",
            "https://shop.example/a.war",
            "/.htaccess",
            "/web.config",
            "/.user.ini",
        ] {
            assert!(names_program(path.as_bytes()), "{path}");
        }
        for path in [
            "/",
            "/remote.php/dav/a.txt",
            "/a.php/b",
            "/ann@firma.pl/work",
            "/issues/1.json",
            "/php",
            "/a.phpx",
            "/v1.2/users",
            "/a.b",
            ".",
            "/jsp/a.txt",
            "/a.%",
        ] {
            assert!(!names_program(path.as_bytes()), "{path}");
        }
    }
}
