//! The rules. Each is a fact about the form of an error message of the software that its family names.
//!
//! Level 1 has messages that only the software itself writes. Level 2 adds what pages about the software have as well, and single
//! names of its classes. Level 3 adds what is common in ordinary texts.

use super::Family::{self, Go, Iis, Java, Laravel, Node, Php, Python, Ruby, Sql, WebShell};
use super::checks::Check::{
    self, After, All, Always, Any, Before, BeforeWord, Blank, Chain, Digits, DigitsThen, End, Ends, Folder, Frame,
    MissingTable, Named, Near, Start, StatusTitle, Tag, Then, ThenDigit, ThenName, Title, TitleWords, WsoTitle,
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

/// What the names of classes of database drivers have, for Java and .NET.
const DRIVERS: &[&str] = &[
    "java.sql.",
    "hibernate.exception.",
    ".jdbc.",
    "PSQL",
    "SQLServer",
    "SQLite",
    "Sql",
    "OleDb.",
    "Odbc.",
    "Npgsql",
    "OracleClient.",
    "DB2.",
];
/// Names of classes of ASP.NET, which its error pages show: at level 1 with what stands behind them in a message.
const HTTP_CLASSES: &[&str] = &[
    "UnhandledException",
    "CompileException",
    "ParseException",
    "RequestValidationException",
    "RequestWrapper",
    "ServerUtilityWrapper",
    "SessionStateWrapper",
    "StaticObjectsCollectionWrapper",
];
/// What SQLite reports as missing, with the name behind it.
const MISSING: &[&str] = &["table: ", "column: ", "function: "];
/// What drivers of SQLite have in front of its messages.
const SQLITE: &[&str] = &["sqlite", "OperationalError", "SQL"];
/// The same, of the step that failed: `in prepare, `, `sqlite3_prepare_v2()`.
const PREPARE: &[&str] = &["prepare ", "prepare,", "prepare:", "prepare_", "prepare("];
pub(super) const RULES: &[Rule] = &[
    // Databases.
    rule(
        Sql,
        1,
        "oracle",
        "ORA-",
        All(&[Start, Digits(5, 5), Any(&[DigitsThen(&[":"]), Near(60, &["error", "exception"])])]),
    ),
    rule(Sql, 1, "mysql-table", "t exist", MissingTable),
    rule(Sql, 1, "mysql-column", "Unknown column ", All(&[Then(&["'"]), After(160, &["' in '"])])),
    rule(Sql, 1, "mysql-duplicate", "Duplicate entry ", All(&[Then(&["'"]), After(300, &["' for key "])])),
    rule(Sql, 1, "mysql-columns", "different number of columns", Before(60, &["select statements have"])),
    rule(Sql, 1, "mysql-syntax", "SQL", All(&[Then(&[" syntax"]), Ends(&["error in your "])])),
    rule(Sql, 1, "sqlstate", "SQL", Then(&["STATE[HY", "STATE[4", "STATE[2", "STATE[0", "STATE[IM"])),
    rule(Sql, 1, "firebird", "SQL", All(&[Before(8, &["Dynamic "]), Then(&[" Error"])])),
    rule(Sql, 1, "db2", "SQL", All(&[Then(&["CODE="]), After(60, &["SQLSTATE="])])),
    rule(
        Sql,
        1,
        "sqlite",
        "SQL",
        Any(&[Then(&["ITE_ERROR: "]), All(&[Then(&["ite3::"]), After(300, &[" on line "])])]),
    ),
    // Interfaces report missing functions, and pages missing columns, in the same words.
    rule(
        Sql,
        1,
        "sqlite-missing",
        "no such ",
        All(&[ThenName(MISSING), Any(&[Before(60, SQLITE), BeforeWord(60, PREPARE)])]),
    ),
    rule(Sql, 2, "sqlite-missing-name", "no such ", ThenName(MISSING)),
    rule(Sql, 1, "sqlite-syntax", ": syntax error", All(&[Ends(&["'"]), Before(160, &["near '"])])),
    rule(
        Sql,
        1,
        "python-driver",
        "OperationalError",
        All(&[
            Then(&[": ", ") "]),
            Before(40, &["sqlite3.", "psycopg", "mysql", "_exceptions.", "db.utils.", "asyncpg."]),
        ]),
    ),
    rule(Sql, 1, "driver", "Exception", All(&[Then(&[": ", " (0x"]), Named(DRIVERS)])),
    rule(Sql, 1, "documentum", "[DM_QUERY_", Always),
    rule(Sql, 1, "hsqldb-end", "end of command in statement", Always),
    rule(Sql, 1, "odbc", "ODBC ", Any(&[Before(2, &["]["]), All(&[Before(7, &["Ingres "]), Then(&["Driver]"])])])),
    rule(
        Sql,
        1,
        "ole-db",
        "Microsoft ",
        All(&[
            Then(&[
                "OLE DB Provider for ",
                "JET Database Engine",
                "Access Database Engine",
                "SQL Native Client",
                "SQL Server Native Client",
            ]),
            After(120, &["error '"]),
        ]),
    ),
    rule(
        Sql,
        1,
        "sqlserver-conversion",
        "Conversion failed when",
        All(&[Then(&[" converting "]), After(400, &[" data type ", "character string"])]),
    ),
    rule(
        Sql,
        1,
        "sqlserver-quote",
        "Unclosed quotation mark",
        Then(&[" after the character string", " before the character string"]),
    ),
    rule(Sql, 1, "sqlserver-syntax", "Incorrect syntax near", Then(&[" '", " the keyword"])),
    rule(Sql, 1, "sqlserver-object", "Invalid object name ", All(&[Then(&["'"]), After(180, &["'."])])),
    rule(
        Sql,
        1,
        "postgres-near",
        "at or near ",
        All(&[Then(&["'"]), Before(60, &["syntax error", "unterminated quoted"])]),
    ),
    rule(
        Sql,
        1,
        "postgres-input",
        "invalid input syntax for",
        Any(&[Before(40, &["ERROR:"]), All(&[Then(&[" type "]), After(80, &[": '"])])]),
    ),
    rule(
        Sql,
        1,
        "postgres-relation",
        "t exist",
        All(&[Ends(&["' does no"]), Before(160, &["relation '", "column '"])]),
    ),
    rule(Sql, 1, "php-query", "_query(): ", Always),
    // Java.
    rule(Java, 1, "frame", ".java:", All(&[CLOSES, BeforeWord(300, &["at "])])),
    rule(Java, 1, "frame-source", "(Unknown Source)", BeforeWord(300, &["at "])),
    rule(Java, 1, "thread", "Exception", Then(&[" in thread '"])),
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
    rule(Php, 1, "error-page", " on line ", All(&[Ends(&["</b>"]), ThenDigit(&["<b>"])])),
    rule(Php, 1, "source", "<?p", Tag(&["hp"])),
    rule(Php, 1, "source", "<?P", Tag(&["hp"])),
    rule(Php, 1, "source", "<?=", Blank),
    rule(Php, 1, "source", "<? ", Always),
    rule(Php, 2, "weak-value", "cannot be empty", Always),
    rule(Php, 2, "weak-date", "Invalid date", Always),
    rule(Php, 2, "weak-maximum", "Maximum allowed", Always),
    rule(Php, 2, "weak-function", " function", All(&[End, Before(7, &["the", "static"])])),
    // IIS and .NET.
    rule(Iis, 1, "server-error", "Server Error in ", All(&[Then(&["'"]), After(200, &["' Application"])])),
    rule(Iis, 1, "view-state", "Exception", All(&[End, BeforeWord(16, &["ViewState"]), Ends(&["ViewState"])])),
    rule(Iis, 1, "http-class", "Http", All(&[Start, Chain(&[HTTP_CLASSES, &[": ", " (0x", "]: "]])])),
    rule(Iis, 2, "http-class-name", "Http", All(&[Start, Then(HTTP_CLASSES)])),
    rule(
        Iis,
        1,
        "frame",
        ":line ",
        All(&[DigitsThen(&["", "\r", "\n"]), Before(300, &[" in "]), Before(8, &[".cs", ".vb", ".fs"])]),
    ),
    rule(Iis, 1, "null-reference", "reference not set to an instance", Always),
    rule(Iis, 1, "framework", ".NET Framework Version:", Always),
    rule(Iis, 1, "vbscript", "Microsoft ", Then(&["VBScript runtime", "VBScript compilation"])),
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
    rule(Python, 1, "frame", ", line ", All(&[Ends(&["'"]), DigitsThen(&[", in "]), Before(300, &["File '"])])),
    rule(Python, 1, "django", "<code>DEBUG = True</code>", Always),
    rule(Python, 1, "werkzeug", "Werkzeug Debugger", Always),
    // Node.js.
    rule(Node, 1, "frame", ".js:", All(&[Frame, BeforeWord(300, &["at "])])),
    rule(Node, 1, "internal", "(node:internal", Then(&["/"])),
    // Go.
    rule(Go, 1, "goroutine", "goroutine ", DigitsThen(&[" [running", " [select", " [chan", " [IO", " [syscall"])),
    rule(Go, 1, "panic", "panic: runtime error: ", Always),
    rule(Go, 1, "frame", ".go:", DigitsThen(&[" +0x"])),
    // Laravel and Symfony.
    rule(Laravel, 1, "exception", "Illuminate\\", After(100, &["Exception", "->"])),
    rule(
        Laravel,
        1,
        "symfony",
        "Symfony\\",
        All(&[Then(&["Component\\", "\\Component\\"]), After(120, &["Exception"])]),
    ),
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
            "antichat shell",
            "weevely",
        ]),
    ),
    rule(WebShell, 1, "title", "<title>", TitleWords(&["php shell"])),
    rule(WebShell, 1, "wso", "<title>", WsoTitle),
    rule(WebShell, 1, "ncc", ":NCC:. Shell", Always),
    rule(WebShell, 1, "michaeldaw", "Simple PHP backdoor", Always),
];
