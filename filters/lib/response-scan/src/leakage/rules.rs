//! The rules. Each is a fact about the form of an error message of the software that its family names.
//!
//! Level 1 has messages that only the software itself writes. Level 2 adds what pages about the software have as well, and single
//! names of its classes. Level 3 adds what is common in ordinary texts.

use super::Family::{self, Go, Iis, Java, Laravel, Node, Php, Python, Ruby, Sql, WebShell};
use super::checks::Check::{
    self, After, All, Always, Any, Before, Blank, Digits, DigitsThen, End, Folder, Frame, StatusTitle, Tag, Then,
    Title, Word, WsoTitle,
};

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) family: Family,
    pub(super) name: &'static str,
    pub(super) level: u8,
    /// At least three bytes; no anchor begins with another one.
    pub(super) anchor: &'static str,
    pub(super) check: Check,
}

const fn rule(family: Family, level: u8, name: &'static str, anchor: &'static str, check: Check) -> Rule {
    Rule { family, name, level, anchor, check }
}

/// The end of a place in a source file.
const CLOSES: Check = DigitsThen(&[")", "]"]);

pub(super) const RULES: &[Rule] = &[
    // Databases.
    rule(Sql, 1, "oracle", "ORA-", Digits(5, 5)),
    rule(Sql, 1, "mysql-table", "' doesn't exist", Before(80, &["Table '"])),
    rule(Sql, 1, "mysql-column", "Unknown column '", After(120, &["' in '"])),
    rule(Sql, 1, "mysql-duplicate", "Duplicate entry '", After(300, &["' for key "])),
    rule(Sql, 1, "mysql-columns", "different number of columns", Before(60, &["select statements have"])),
    rule(Sql, 1, "mysql-syntax", "SQL", All(&[Before(8, &["in your "]), Then(&[" syntax"])])),
    rule(Sql, 1, "sqlstate", "SQL", Then(&["STATE[HY", "STATE[4", "STATE[2", "STATE[0", "STATE[IM"])),
    rule(Sql, 1, "firebird", "SQL", All(&[Before(8, &["Dynamic "]), Then(&[" Error"])])),
    rule(Sql, 1, "db2", "SQL", All(&[Then(&["CODE="]), After(60, &["SQLSTATE="])])),
    rule(Sql, 1, "exception", "SQL", All(&[After(40, &["Exception: "]), Before(9, &["java.sql.", "P", "MySql."])])),
    rule(
        Sql,
        1,
        "sqlite",
        "SQL",
        Any(&[Then(&["iteException: ", "ITE_ERROR: "]), All(&[Then(&["ite3::"]), After(300, &[" on line "])])]),
    ),
    rule(Sql, 1, "documentum", "[DM_QUERY_", Always),
    rule(Sql, 1, "hsqldb-end", "end of command in statement", Always),
    rule(Sql, 1, "odbc", "ODBC ", Any(&[Before(2, &["]["]), All(&[Before(7, &["Ingres "]), Then(&["Driver]"])])])),
    rule(Sql, 1, "ole-db", "OLE DB Provider for ", All(&[Before(20, &["Microsoft "]), After(100, &["error '"])])),
    rule(Sql, 1, "sqlserver-conversion", "Conversion failed when", Then(&[" converting"])),
    rule(Sql, 1, "sqlserver-quote", "Unclosed quotation mark", Always),
    rule(Sql, 1, "sqlserver-syntax", "Incorrect syntax near", Then(&[" '", " the keyword"])),
    rule(
        Sql,
        1,
        "postgres-near",
        "at or near ",
        All(&[Then(&["\"", "\\\"", "&quot;"]), Before(60, &["syntax error", "unterminated quoted"])]),
    ),
    rule(Sql, 1, "postgres-input", "invalid input syntax for", Before(40, &["ERROR:"])),
    rule(Sql, 1, "postgres-relation", "\" does not exist", Before(100, &["relation \"", "column \""])),
    rule(Sql, 1, "php-query", "_query(): ", Always),
    // Java.
    rule(Java, 1, "frame", ".java:", All(&[CLOSES, Before(300, &["at "])])),
    rule(Java, 1, "frame-source", "(Unknown Source)", Before(300, &["at "])),
    rule(Java, 1, "thread", "Exception in thread ", Then(&["\"", "\\\"", "&quot;"])),
    rule(Java, 1, "spring", "Whitelabel Error Page", Always),
    // PHP.
    rule(
        Php,
        1,
        "error",
        " on line ",
        All(&[
            Digits(1, 7),
            Before(400, &["fatal error: ", "parse error: ", "php warning: ", "php notice: ", "php deprecated: "]),
        ]),
    ),
    rule(Php, 1, "error-page", "</b> on line <b>", Digits(1, 7)),
    rule(Php, 1, "source", "<?p", Tag(&["hp"])),
    rule(Php, 1, "source", "<?P", Tag(&["hp"])),
    rule(Php, 1, "source", "<?=", Blank),
    rule(Php, 1, "source", "<? ", Always),
    rule(Php, 2, "weak-value", "cannot be empty", Always),
    rule(Php, 2, "weak-date", "Invalid date", Always),
    rule(Php, 2, "weak-maximum", "Maximum allowed", Always),
    rule(Php, 2, "weak-function", " function", All(&[End, Before(7, &["the", "static"])])),
    // IIS and .NET.
    rule(Iis, 1, "server-error", "Server Error in '", After(200, &["' Application"])),
    rule(Iis, 1, "view-state", "ViewStateException", Word),
    rule(
        Iis,
        1,
        "http-class",
        "Http",
        Then(&[
            "UnhandledException",
            "CompileException",
            "ParseException",
            "RequestValidationException",
            "RequestWrapper",
            "ServerUtilityWrapper",
            "SessionStateWrapper",
            "StaticObjectsCollectionWrapper",
        ]),
    ),
    rule(
        Iis,
        1,
        "frame",
        ":line ",
        All(&[DigitsThen(&["", "\r", "\n"]), Before(300, &[" in "]), Before(8, &[".cs", ".vb", ".fs"])]),
    ),
    rule(Iis, 1, "null-reference", "reference not set to an instance", Always),
    rule(Iis, 1, "framework", ".NET Framework Version:", Always),
    rule(Iis, 1, "vbscript", "Microsoft VBScript ", Then(&["runtime", "compilation"])),
    rule(Iis, 1, "folder", "inetpub", Folder),
    rule(Iis, 1, "status-page", "<title>", StatusTitle),
    // Ruby.
    rule(Ruby, 1, "active-record", "ActiveRecord::", After(40, &[" (", "Error: ", "NotFound: ", "Invalid: "])),
    rule(Ruby, 1, "action-view", "ActionView::Template::Error", Always),
    rule(Ruby, 1, "action-controller", "ActionController::", After(40, &[" (", "Error: ", "Missing: "])),
    rule(Ruby, 1, "name", "undefined local variable or method", Always),
    rule(Ruby, 1, "method", "NoMethodError", Then(&[": ", " ("])),
    rule(Ruby, 1, "conversion", "no implicit conversion of", Always),
    rule(Ruby, 1, "arguments", "wrong number of arguments (given", Always),
    rule(Ruby, 1, "syntax", "SyntaxError (", Then(&["/", "(eval)", "<"])),
    rule(Ruby, 1, "frame", ".rb:", DigitsThen(&[":in `", ":in '", ": syntax error"])),
    // Python.
    rule(Python, 1, "traceback", "Traceback (most recent call last)", Always),
    rule(Python, 1, "frame", "\", line ", All(&[DigitsThen(&[", in "]), Before(300, &["File \""])])),
    rule(Python, 1, "django", "<code>DEBUG = True</code>", Always),
    rule(Python, 1, "werkzeug", "Werkzeug Debugger", Always),
    // Node.js.
    rule(Node, 1, "frame", ".js:", All(&[Frame, Before(300, &["at "])])),
    rule(Node, 1, "internal", "(node:internal/", Always),
    // Go.
    rule(Go, 1, "goroutine", "goroutine ", DigitsThen(&[" [running", " [select", " [chan", " [IO", " [syscall"])),
    rule(Go, 1, "panic", "panic: runtime error: ", Always),
    rule(Go, 1, "frame", ".go:", DigitsThen(&[" +0x"])),
    // Laravel and Symfony.
    rule(Laravel, 1, "exception", "Illuminate\\", After(100, &["Exception", "->"])),
    rule(Laravel, 1, "symfony", "Symfony\\Component\\", After(100, &["Exception"])),
    rule(Laravel, 1, "page", "Whoops, looks like something went wrong", Always),
    rule(Laravel, 1, "key", "APP_KEY=base64:", Always),
    // Web shells, by their titles.
    rule(
        WebShell,
        1,
        "title",
        "<title>",
        Title(&[
            "webshell",
            "web shell by",
            "aspydrvsinfo",
            "rhtools",
            "winx shell",
            "b374k",
            "p0wny",
            "indoxploit",
            "c99shell",
            "r57shell",
            "php shell",
            "antichat shell",
            "weevely",
        ]),
    ),
    rule(WebShell, 1, "wso", "<title>", WsoTitle),
    rule(WebShell, 1, "ncc", ":NCC:. Shell", Always),
    rule(WebShell, 1, "michaeldaw", "Simple PHP backdoor", Always),
];
