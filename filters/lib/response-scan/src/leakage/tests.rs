use super::*;

fn families(level: u8, text: &str) -> Vec<&'static str> {
    let mut names: Vec<_> = Scanner::new(level).scan(text.as_bytes()).iter().map(|leak| leak.family.name()).collect();
    names.sort_unstable();
    names
}

#[test]
fn anchors_fit_the_search() {
    let anchors: std::collections::BTreeSet<&str> = RULES.iter().map(|rule| rule.anchor).collect();
    assert!(anchors.len() <= crate::literals::MAX_LITERALS, "{}", anchors.len());
    for anchor in &anchors {
        assert!(anchor.len() >= crate::literals::MIN_LITERAL, "{anchor}");
        assert!(!anchors.iter().any(|other| other != anchor && other.starts_with(anchor)), "{anchor}");
    }
}

/// Messages, each with its family.
const MESSAGES: &[(&str, &str)] = &[
    ("sql", "SQL Error: ORA-00933: SQL command not properly ended"),
    ("sql", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version"),
    ("sql", "Table 'shop.orders' doesn't exist"),
    ("sql", "Unknown column 'nme' in 'field list'"),
    ("sql", "Duplicate entry 'a@b' for key 'users.email'"),
    ("sql", "SQLSTATE[42S02]: Base table or view not found"),
    ("sql", "Dynamic SQL Error"),
    ("sql", "DB2 SQL error: SQLCODE=-204, SQLSTATE=42704"),
    ("sql", "org.postgresql.util.PSQLException: ERROR: x"),
    ("sql", "java.sql.SQLSyntaxErrorException: x"),
    ("sql", "SQLiteException: near \"x\""),
    ("sql", "{\"code\":\"SQLITE_ERROR: no such column: x\"}"),
    ("sql", "[Microsoft][ODBC SQL Server Driver]x"),
    ("sql", "Microsoft OLE DB Provider for SQL Server error '80040e14'"),
    ("sql", "Conversion failed when converting the varchar value 'x' to data type int."),
    ("sql", "Unclosed quotation mark after the character string ''."),
    ("sql", "Incorrect syntax near 's'."),
    ("sql", "ERROR: syntax error at or near \"FROM\""),
    ("sql", "{\"e\":\"unterminated quoted string at or near \\\"'\\\"\"}"),
    ("sql", "ERROR:  invalid input syntax for type integer: \"x\""),
    ("sql", "relation \"users\" does not exist"),
    ("sql", "com.microsoft.sqlserver.jdbc.SQLServerException: Invalid object name 'u'."),
    ("sql", "Microsoft.Data.SqlClient.SqlException (0x80131904): Invalid object name 'u'."),
    ("sql", "[SqlException (0x80131904): x]"),
    ("sql", "System.Data.SqlClient.SqlException: Invalid column name 'x'."),
    ("sql", "Npgsql.PostgresException (0x80004005): 42P01: x"),
    ("sql", "org.hibernate.exception.SQLGrammarException: could not extract ResultSet"),
    ("sql", "org.h2.jdbc.JdbcSQLSyntaxErrorException: x"),
    ("sql", "Invalid object name 'dbo.users'."),
    ("sql", "sqlite3.OperationalError: no such table: users"),
    ("sql", "(sqlite3.OperationalError) unrecognized token: \"'\""),
    ("sql", "django.db.utils.OperationalError: could not connect to server"),
    ("sql", "Error: in prepare, no such column: main.u.name"),
    ("sql", "SQLite3::query(): Unable to prepare statement: 1, no such table: users"),
    ("sql", "SqliteError: no such function: f"),
    ("sql", "SQL logic error: no such table: users (1)"),
    ("sql", "Table 'my-shop.order items' doesn't exist"),
    ("sql", "(1146, \"Table 'orders' doesn't exist\")"),
    ("sql", "near \"FORM\": syntax error"),
    ("sql", "invalid input syntax for type uuid: \"x\""),
    ("sql", "java.sql.SQLException ORA-00942"),
    ("sql", "{\"error\":\"ORA-12154\"}"),
    ("sql", "Microsoft JET Database Engine error '80040e10'"),
    ("java", "\tat com.shop.Cart.total(Cart.java:42)"),
    ("java", "at org.hsqldb.jdbc.JDBCDriver.connect(Unknown Source)"),
    ("java", "Exception in thread \"main\" x"),
    ("java", "<h1>Whitelabel Error Page</h1>"),
    ("php", "Fatal error: Uncaught Error: x in /var/www/a.php on line 12"),
    ("php", "<br />\n<b>Warning</b>:  Undefined variable $x in <b>/a.php</b> on line <b>3</b><br />"),
    ("php", "PHP Warning:  x in /a.php on line 3"),
    ("php", "<?php echo 1;"),
    ("php", "<?= $x ?>"),
    ("iis", "<h1>Server Error in '/shop' Application.</h1>"),
    ("iis", "   at Shop.Cart.Total() in C:\\src\\Cart.cs:line 42\r\n"),
    ("iis", "Object reference not set to an instance of an object."),
    ("iis", "Microsoft .NET Framework Version:4.0.30319"),
    ("iis", "Microsoft VBScript runtime error '800a000d'"),
    ("iis", "C:\\inetpub\\wwwroot"),
    ("iis", "<title>500.19 - Internal Server Error</title>"),
    ("ruby", "app/models/user.rb:12:in `name'"),
    ("ruby", "app/models/user.rb:12:in 'User#name'"),
    ("ruby", "ActiveRecord::StatementInvalid (PG::x"),
    ("ruby", "NoMethodError: undefined method 'x' for nil"),
    ("python", "Traceback (most recent call last):\n  File"),
    ("python", "  File \"/srv/app.py\", line 3, in index"),
    ("python", "<code>DEBUG = True</code>"),
    ("node", "    at Object.<anonymous> (/srv/app/index.js:10:5)\n"),
    ("node", "at Module._compile (node:internal/modules/cjs/loader:1105:14)"),
    ("go", "goroutine 1 [running]:\nmain.main()"),
    ("go", "panic: runtime error: index out of range [3] with length 3"),
    ("go", "\t/srv/main.go:12 +0x1d"),
    ("laravel", "Illuminate\\Database\\QueryException: x"),
    ("laravel", "{\"exception\":\"Illuminate\\\\Database\\\\QueryException\"}"),
    ("laravel", "Symfony\\Component\\HttpKernel\\Exception\\NotFoundHttpException"),
    ("laravel", "APP_KEY=base64:x"),
    ("web_shell", "<title>p0wny@shell:~#</title>"),
];

#[test]
fn messages_of_each_family_are_found() {
    for (family, text) in MESSAGES {
        assert!(families(1, text).contains(family), "{family}: {text}");
        // Beyond the edges of what a prefilter reads at once.
        for pad in [1, 15, 16, 63, 64, 1000] {
            let text = format!("{}{text}{}", " ".repeat(pad), " ".repeat(70));
            assert!(families(1, &text).contains(family), "{family}: {text}");
        }
    }
}

#[test]
fn ordinary_texts_are_not() {
    for text in [
        "ORA-1234 ORA-123456 ORA-12345x",
        "{\"sku\":\"FLORA-12345\"} PANDORA-79012: in stock",
        "order number ORA-10432 was sent",
        "{\"error\":null,\"order\":\"ORA-10432\"}",
        "<p>No errors</p><p>ORA-10432</p> the Terror ORA-10432",
        "<title>PHP shell_exec() function</title>",
        "<title>Find a myphp shell</title>",
        "learn SQL syntax in your browser, or look for mistakes in your SQL syntax",
        "Help: SQL and Exception: how they belong together",
        "There is no such table: it was removed",
        "the column 'total' doesn't exist",
        "{\"error\":\"no such function: getUser\"}",
        "there is no such column: price.</p>",
        "The order was prepared: no such table: 12",
        "{\"error\":\"Table \\\"12\\\" doesn't exist\"}",
        "{\"error\":\"Table \\\"terrace\\\" doesn't exist\"}",
        "{\"error\":\"Table \\u0022terrace\\u0022 doesn\\u0027t exist\"}",
        "<p>Table &quot;terrace&quot; doesn&#39;t exist</p>",
        "The table \u{201c}Orders\u{201d} doesn't exist",
        "Table \u{2018}Orders\u{2019} doesn\u{2019}t exist",
        "the table 'terrace' doesn't exist",
        "Table '12' doesn't exist, nor does table '1.5'",
        "Table 'a' is free, and 'b' doesn't exist",
        "a room where pets do not exist",
        "Conversion failed when converting your video",
        "an unclosed quotation mark; Unclosed quotation mark",
        "What is in it (Cart.java:42) (Unknown Source)",
        "See that file (app.js:12:3)",
        "class HttpRequestWrapper { MyHttpParseException: x",
        "MyViewStateException",
        "Microsoft SQL Server has an error 'x'",
        "\"a\", line 3, in all",
        "learn SQL syntax",
        "the column \"total\" does not say that",
        "Java: open Cart.java: it has 12 lines",
        "see app.js:12 and app.js:12:3 at noon",
        "go to main.go:12",
        "a fatal error: see page 3",
        "<?xml version=\"1.0\"?>",
        "<?phpx <?=x",
        "the inetpub folder",
        "<title>404 - Not found</title>",
        "<title>500 free icons - and more</title>",
        "<title>Wsop 2024</title>",
        "<title>Swso 2024</title>",
        "user.rb:12: a comment",
        "goroutine 1 is the first",
        "Illuminate\\Support",
        "An internal error occurred. Try again later.",
    ] {
        assert_eq!(families(1, text), [""; 0], "{text}");
    }
}

/// What encoders make of the quotation marks, backslashes and brackets of a text.
fn encodings(text: &str) -> Vec<String> {
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let hex = |text: &str| {
        let inner = json(text);
        let inner = inner.get(1..inner.len() - 1).unwrap().replace("\\\"", "\\u0022").replace('\'', "\\u0027");
        inner.replace('<', "\\u003c").replace('>', "\\u003E").replace('`', "\\u0060").replace('/', "\\/")
    };
    let html = |single: &str, double: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.replace('\'', single).replace('"', double)
    };
    let pages = [("&#39;", "&quot;"), ("&#039;", "&#34;"), ("&#x27;", "&#034;"), ("&apos;", "&quot;")]
        .map(|(single, double)| html(single, double));
    let mut list = vec![json(text), hex(text), json(&json(text)), hex(&json(text))];
    list.extend(pages.iter().flat_map(|page| [page.clone(), json(page), hex(page).replace('&', "\\u0026")]));
    list
}

#[test]
fn escaped_messages_are_found() {
    let mut missed = Vec::new();
    for (family, text) in MESSAGES {
        // Source code and pages that are escaped are texts about them.
        if text.contains('<') && *family != "php" || text.contains("<?") {
            continue;
        }
        for (place, escaped) in encodings(text).into_iter().enumerate() {
            let in_page = place >= 4;
            if in_page && text.contains('<') {
                continue;
            }
            if !families(1, &escaped).contains(family) {
                missed.push((family, escaped));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(families(1, "<h2>Server Error in &#39;/shop&#39; Application.</h2>").contains(&"iis"));
}

#[test]
fn names_of_classes_alone_are_of_level_two() {
    let text = "HttpRequestWrapper";
    assert_eq!((families(1, text), families(2, text)), (vec![], vec!["iis"]));
    assert_eq!(families(1, "[HttpParseException]: x System.Web.HttpUnhandledException (0x80004005): x"), ["iis"]);
}

#[test]
fn names_that_are_missing_need_the_database_at_level_one() {
    for text in ["no such column: main.u.name", "{\"error\":\"no such function: getUser\"}", "no such table: users"] {
        assert_eq!((families(1, text), families(2, text)), (vec![], vec!["sql"]), "{text}");
        let near = format!("SQLite: {}{text}", ".".repeat(40));
        let far = format!("SQLite: {}{text}", ".".repeat(70));
        assert_eq!((families(1, &near), families(1, &far)), (vec!["sql"], vec![]), "{text}");
    }
}

#[test]
fn missing_tables_are_those_of_mysql() {
    for mark in ["'", "\\'", "\\u0027", "\\\\u0027", "&#39;", "&#039;", "&apos;", "&#x27;", "&amp;#39;", "\\u0026#39;"]
    {
        for name in ["orders", "shop.orders", "2024_orders"] {
            let text = format!("Table {mark}{name}{mark} doesn{mark}t exist");
            assert_eq!(families(1, &text), ["sql"], "{text}");
        }
    }
    // Editors make other quotation marks of it.
    for (open, close) in [("\"", "\""), ("\u{2018}", "\u{2019}"), ("&#8216;", "&#8217;"), ("&quot;", "&quot;")] {
        let text = |name: &str| format!("Table {open}{name}{close} doesn\u{2019}t exist");
        assert_eq!((families(1, &text("shop.orders")), families(1, &text("orders"))), (vec!["sql"], vec![]));
    }
}

#[test]
fn levels_add_rules() {
    for text in ["The name cannot be empty", "Invalid date selected", "the function", "a static function"] {
        assert_eq!((families(1, text), families(2, text)), (vec![], vec!["php"]), "{text}");
    }
    assert_eq!(families(4, "the functionality of other functions"), [""; 0]);
}

#[test]
fn each_family_is_reported_once_at_its_first_place() {
    let text = "x ORA-00001: goroutine 1 [running] ORA-00002:";
    let leaks = Scanner::new(1).scan(text.as_bytes());
    assert_eq!(
        leaks.iter().map(|leak| (leak.family, leak.at)).collect::<Vec<_>>(),
        [(Family::Sql, 2), (Family::Go, 13)]
    );
}

#[test]
fn long_texts_of_anchors_end() {
    for rule in RULES {
        let text = rule.anchor.repeat(100_000 / rule.anchor.len());
        let _ = Scanner::new(4).scan(text.as_bytes());
    }
}
