//! Names of files.

use super::*;

/// The verdict on a harmless file with the names of a `Content-Disposition`.
fn of_header(value: &str) -> &'static str {
    let names = disposition::names(value.as_bytes(), "filename");
    let file = File { names: &names, media_type: None, content: b"hello", complete: true, length: None };
    let policy = Policy { check_mismatch: false, ..Policy::default() };
    let mut findings = Findings::default();
    inspect(&file, &policy, &mut Work::default(), &mut findings);
    findings.first().map_or("ok", |finding| finding.reason.word())
}

fn of_name(name: &str) -> &'static str {
    verdict(name, b"hello", &Policy { check_mismatch: false, ..Policy::default() })
}

#[test]
fn extensions_are_read_as_servers_and_systems_read_them() {
    for (name, expected) in [
        ("shell.php", "denied_extension"),
        ("shell.PhP", "denied_extension"),
        ("shell.php.", "denied_extension"),
        ("shell.php...", "denied_extension"),
        ("shell.php ", "denied_extension"),
        ("shell.php. . .", "denied_extension"),
        ("shell.php\t", "denied_extension"),
        ("shell.asp::$DATA", "denied_extension"),
        ("shell.asp:stream.jpg", "denied_extension"),
        ("shell.php/", "denied_extension"),
        ("shell.php/.", "denied_extension"),
        ("shell.asp;.jpg", "double_extension"),
        ("shell.php%20", "denied_extension"),
        ("shell.php%0a", "denied_extension"),
        ("a/b\\shell.php", "denied_extension"),
        ("C:\\a\\shell.php", "denied_extension"),
        ("C:shell.php", "denied_extension"),
        ("shell\u{ff0e}php", "denied_extension"),
        ("shell\u{3002}php", "denied_extension"),
        ("shell.\u{ff50}\u{ff48}\u{ff50}", "denied_extension"),
        ("shell.ph\u{200b}p", "denied_extension"),
        ("shell.p\u{ad}hp", "denied_extension"),
        ("invoice_\u{202e}fdp.exe", "denied_extension"),
        ("invoice_\u{202e}gpj.txt", "double_extension"),
        (".php", "denied_extension"),
        (".htaccess", "denied_extension"),
        ("web.config", "denied_extension"),
        (".user.ini", "denied_extension"),
        ("shell.php5", "denied_extension"),
        ("shell.pht", "denied_extension"),
        ("shell.cer", "denied_extension"),
        ("shell.php.jpg", "double_extension"),
        ("shell.php.a.b.jpg", "double_extension"),
        ("shell.exe.pdf", "double_extension"),
        ("shell.phtml.gif", "double_extension"),
        ("shell.php.gz", "double_extension"),
        ("page.html.gz", "ok"),
        ("setup.py.txt", "ok"),
        ("org.gnome.desktop.a.xml", "ok"),
        ("a.php7.xml", "double_extension"),
        ("shop.com.pdf", "ok"),
        ("jquery.js.txt", "ok"),
        ("report.final.pdf", "ok"),
        ("php", "ok"),
        ("a.config", "ok"),
        ("php.txt", "ok"),
        ("a.phpx", "ok"),
        ("..", "zip_slip"),
        ("../a.txt", "zip_slip"),
        ("..\\..\\a.txt", "zip_slip"),
        ("a.php\0.jpg", "null_byte"),
        ("a.php%00.jpg", "null_byte"),
        ("ok", "ok"),
        ("\u{5e9}\u{5dc}\u{5d5}\u{5dd}.txt", "ok"),
    ] {
        assert_eq!(of_name(name), expected, "{}", name.escape_debug());
    }
}

#[test]
fn every_reading_of_a_header_counts() {
    for (value, expected) in [
        ("form-data; name=\"f\"; filename=\"a.txt\"", "ok"),
        ("form-data; filename=a.php", "denied_extension"),
        ("form-data; filename=\"a.php\"", "denied_extension"),
        ("form-data; FileName=\"a.php\"", "denied_extension"),
        ("form-data; filename='a.php'", "denied_extension"),
        ("form-data; filename=\"a.txt\"; filename=\"b.php\"", "denied_extension"),
        ("form-data; filename=\"b.php\"; filename=\"a.txt\"", "denied_extension"),
        ("form-data; filename=\"a.txt\"; filename*=UTF-8''b.php", "denied_extension"),
        ("form-data; filename*=UTF-8'en'b%2ephp", "denied_extension"),
        ("form-data; filename*=b.php", "denied_extension"),
        ("form-data; filename=\"a.p\\hp\"", "denied_extension"),
        ("form-data; filename=\"a\\\".php\"", "denied_extension"),
        ("form-data; filename=\"a.php\\\"x.txt\"", "denied_extension"),
        ("form-data; filename=\"a.php\"x.txt\"", "denied_extension"),
        ("form-data; filename=\"a%2ephp\"", "denied_extension"),
        ("form-data; filename=\"=?utf-8?B?YS5waHA=?=\"", "denied_extension"),
        ("form-data; filename=\"=?utf-8?Q?a=2Ephp?=\"", "denied_extension"),
        ("form-data; filename*0=\"a.\"; filename*1=\"php\"", "denied_extension"),
        ("form-data; filename*1=\"php\"; filename*0=\"a.\"", "denied_extension"),
        ("form-data; filename*0*=UTF-8''a%2e; filename*1=\"php\"", "denied_extension"),
        ("form-data; x=\"a; filename=b.php\"; filename=a.txt", "ok"),
        ("form-data; name=\"a.php\"", "ok"),
        ("form-data; filename=\"C:\\\\dir\\\\a.txt\"", "ok"),
        ("form-data; filename=\"a;b.txt\"", "ok"),
        ("attachment; x='; filename=\"a.php\"", "denied_extension"),
        ("attachment; x='; filename=a.php; y='", "denied_extension"),
        ("attachment; x='; filename*=UTF-8''a.php", "denied_extension"),
        ("attachment; x='; filename*0=\"a.\"; filename*1=php", "denied_extension"),
        ("attachment; x='a; b'; filename=\"a.txt\"", "ok"),
        ("attachment; filename='a;b.php'", "denied_extension"),
        ("attachment; filename*=UTF-8'en'a%20b.txt; filename='it''s.txt'", "ok"),
        ("form-data; filename=\"=?x =?utf-8?B?YS5waHA=?=\"", "denied_extension"),
        ("form-data; filename=\"=?x?y?z =?utf-8?B?YS5waHA=?=\"", "denied_extension"),
        ("form-data; filename=\"=?x?B?=?utf-8?B?YS5waHA=?=\"", "denied_extension"),
        ("form-data; filename=\"=?x?Q? =?utf-8?B?YS5waHA=?=\"", "denied_extension"),
        ("form-data; filename=\"=?utf-8?B?A?= =?utf-8?B?YS5waHA=?=\"", "denied_extension"),
        ("form-data; filename=\"=?utf-8?B?YS5waHA=?= =?utf-8?B?A?=\"", "denied_extension"),
        ("form-data; filename=\"=?utf-8?B?=YS5waHA=?=\"", "denied_extension"),
        ("form-data; filename=\"what=? =?utf-8?B?YS50eHQ=?=\"", "ok"),
        ("form-data; filename=\"=?utf-8?B?YS5?= =?utf-8?Q?b=2Etxt?=\"", "ok"),
        ("form-data", "ok"),
    ] {
        assert_eq!(of_header(value), expected, "{value}");
    }
}

#[test]
fn headers_of_any_form_are_read() {
    for value in [
        "",
        ";",
        ";;;",
        "; filename",
        "; filename=",
        "; filename=\"",
        "; filename=\"\\",
        "; =x",
        "; filename*0",
        "; filename*=%",
    ] {
        let _ = disposition::names(value.as_bytes(), "filename");
    }
    for unit in ["=?", "=?a?B?", "=?a?B?A ", "=?a?B?A?=", "=?zz ", "=?a?B?A?", "?="] {
        for end in ["", "?=", "=?utf-8?B?YQ==?="] {
            let words = format!("; filename=\"{}{end}\"", unit.repeat(10_000));
            let _ = disposition::names(words.as_bytes(), "filename");
        }
    }
    let many = "; filename=a".repeat(10_000);
    assert_eq!(disposition::names(many.as_bytes(), "filename"), [b"a"]);
    let long = format!("; filename=\"{}\"", "%2e".repeat(100_000));
    assert!(disposition::names(long.as_bytes(), "filename").iter().all(|name| name.len() <= 16 << 10));
}

#[test]
fn spellings_that_are_allowed_by_name_pass() {
    let policy = Policy {
        allowed_extensions: words(&["war", "pdf"]),
        denied_types: Vec::new(),
        check_mismatch: false,
        ..Policy::default()
    };
    assert_eq!(verdict("a.war", b"x", &policy), "ok");
    assert_eq!(verdict("a.jsp", b"x", &policy), "denied_extension");
}

#[test]
fn paths_name_what_servers_store() {
    let names = |path: &str| disposition::path_names(path.as_bytes());
    for (path, name) in [
        ("/shell.jsp", "shell.jsp"),
        ("/shell.jsp/", "shell.jsp"),
        ("/shell.jsp//", "shell.jsp"),
        ("/shell.phtml/.", "shell.phtml"),
        ("/shell.jsp/./", "shell.jsp"),
        ("/shell.jsp/%2e", "shell.jsp"),
        ("/shell.jsp/%252E/", "shell.jsp"),
        ("/shell.jsp/%20", "shell.jsp"),
        ("/shell.jsp/;a=b", "shell.jsp"),
        ("/shell.jsp;a.b=c", "shell.jsp"),
        ("/a/..", ".."),
        ("/a/.txt", ".txt"),
    ] {
        assert!(names(path).contains(&name.as_bytes().to_vec()), "{path}: {:?}", names(path));
    }
    for path in ["", "/", "//", "/./"] {
        assert!(names(path).iter().all(|name| name == b"."), "{path}");
    }
    assert_eq!(disposition::whole_names(b"../../a%2etxt"), [b"../../a%2etxt".as_slice(), b"../../a.txt"]);
}
