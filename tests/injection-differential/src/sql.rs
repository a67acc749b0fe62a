//! SQL: six readings of each value, and what both sides answer for the whole of it.

use libinjectionrs::sqli::sqli_data::SQL_KEYWORDS;
use seclang::operator::injection::reference;

use crate::library::{Libinjection, Terminated};
use crate::random::{Random, composed, mutated};
use crate::tally::Tally;

const PIECES: &[&str] = &[
    "'",
    "'",
    "'",
    "\"",
    "\"",
    "`",
    "''",
    "\\'",
    "\\",
    "\\\\'",
    "\\N",
    "(",
    ")",
    "((",
    "))",
    "{",
    "}",
    "[",
    "]",
    "[a b]",
    ",",
    ";",
    ";;",
    ".",
    "..",
    ":",
    "::",
    ":=",
    "?",
    "!",
    "!!",
    "!=",
    "<",
    ">",
    "<=>",
    "<>",
    "<=",
    "=",
    "==",
    "+",
    "-",
    "--",
    "-- ",
    "--\n",
    "--x",
    "---",
    "#",
    "#\n",
    "/*",
    "*/",
    "/**/",
    "/*!",
    "/*!50000",
    "/*a*/",
    "/*/*/",
    "/*/**/*/",
    "*",
    "/",
    "%",
    "^",
    "~",
    "|",
    "||",
    "&",
    "&&",
    "@",
    "@@",
    "@@version",
    "@`a`",
    "@'a'",
    "@\"",
    "$",
    "$$",
    "$$a$$",
    "$a$",
    "$a$b$a$",
    "$tag$",
    "$1,000.00",
    "$.",
    "$.a",
    "0",
    "1",
    "42",
    "1.5",
    ".5",
    "1.",
    "1e5",
    "1.e",
    "1e",
    "1e+",
    "1.5e-3",
    "1d",
    "1f",
    "1fu",
    "0x",
    "0x1f",
    "0b",
    "0b01",
    "0x1g",
    "b'01'",
    "x'1f'",
    "x'",
    "b'2'",
    "e'a'",
    "n'a'",
    "N'",
    "q'(a)'",
    "q'[",
    "nq'!a!'",
    "u&'a'",
    "U&'",
    "`a`",
    "``",
    "`user`",
    "a",
    "foo",
    "x_y",
    "utf8_bin",
    "a.b",
    "a.b.c",
    "or.1",
    "select.1",
    "select`a`",
    "union.a",
    "\u{a0}",
    "\0",
    "\t",
    "\n",
    "\x0b",
    "\x0c",
    "\r",
    "\x7f",
    "\u{e9}",
    "sp_password",
    "into outfile",
    "in boolean mode",
    "not in",
    "union all select",
    "1=1",
    "a=a",
    "'a'='a",
    "or 1=1",
    "and 1=1-- -",
    "order by 1",
    "user()",
    "user(1)",
    "{``",
    "{a 1}",
    "; if",
    "collate",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "select.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

const GLUE: &[&[u8]] = &[b" ", b" ", b" ", b"/**/", b"\n", b"\xa0", b"\0", b"+", b"(", b")", b","];

const SEEDS: &[&str] = &[
    "' OR 1=1-- -",
    "1 UNION SELECT 1,2,3",
    "test' in boolean mode) union select 1-- -",
    "admin'--",
    "1; DROP TABLE users",
    "' or 'a'='a",
    "1' and sleep(5)#",
    "x' into outfile '/a",
    "1 or 1.e(1)=1",
    "-1' union/*!50000select*/1,2#",
    "1)) and benchmark(1,2)-- ",
    "'||(select 1)||'",
    "1 and (select 1 from dual)",
    "' + 'a",
    "foo' + 'bar",
    "1'\"",
    "it's fine",
    "\" or \"\"=\"",
    "1 procedure analyse()",
    "'; exec xp_cmdshell('dir')--",
    "1 where 1=1 having 1=1",
    "\\' or 1=1",
    "'/**/or/**/1/**/=/**/1",
    "1,(select 1)",
    "case when 1 then 2 end",
    "$a$ or $a$",
    "1 like '%'",
    "cast(1 as int)",
    "a::int",
];

/// Compares `count` values, and then all of `payloads`.
pub fn compare(library: &Libinjection, count: usize, seed: u64, payloads: &[Vec<u8>]) -> Tally {
    let mut random = Random::new(seed);
    let words = SQL_KEYWORDS.iter().filter(|keyword| keyword.token_type != b'F').map(|keyword| keyword.word.as_bytes());
    // As many pieces of our own as there are words.
    let own = PIECES.iter().map(|piece| piece.as_bytes());
    let latin = [&b"\xa0"[..], b"\xff", b"\x80"];
    let pieces: Vec<&[u8]> = words.chain(own.cycle().take(1500)).chain(latin).collect();
    let seeds: Vec<&[u8]> =
        SEEDS.iter().map(|seed| seed.as_bytes()).chain(payloads.iter().map(Vec::as_slice)).collect();
    let version_3 = library.is_version_3();
    let mut tally = Tally::new("SQL");
    for _ in 0..count {
        let value = match random.below(2) {
            0 => composed(&mut random, &pieces, GLUE, 12),
            _ => {
                let (one, other) = (random.pick(&seeds), random.pick(&seeds));
                mutated(&mut random, one, other, &pieces)
            }
        };
        one(library, version_3, &value, &mut tally);
    }
    for value in payloads {
        tally.payloads += 1;
        one(library, version_3, value, &mut tally);
    }
    tally
}

fn one(library: &Libinjection, version_3: bool, value: &[u8], tally: &mut Tally) {
    let terminated = Terminated::new(value);
    tally.values += 1;
    for quote in [None, Some(b'\''), Some(b'"')] {
        for mysql in [false, true] {
            let theirs = library.read_sql(&terminated, quote, mysql);
            let ours = reference::read_sql(value, quote, mysql, version_3);
            tally.readings += 1;
            let ours = (ours.fingerprint, ours.is_injection);
            if ours != theirs {
                tally.differs("reading", value, || {
                    let text = |(fingerprint, found): &(Vec<u8>, bool)| {
                        format!("{} {found}", String::from_utf8_lossy(fingerprint))
                    };
                    format!("{quote:?} mysql={mysql}: {} (library: {})", text(&ours), text(&theirs))
                });
            }
        }
    }
    let theirs = !value.is_empty() && library.is_sql(&terminated);
    let ours = reference::is_sql_to_libinjection(value);
    tally.found += usize::from(theirs);
    if theirs && !ours {
        tally.differs("verdict, missed", value, String::new);
    } else if ours && !theirs {
        tally.expected("found as another version of the library reads it", value);
    }
    match reference::is_sql(value).0 {
        Some(true) if !ours => tally.expected("found in a window", value),
        Some(false) if ours => tally.differs("verdict of the operator, missed", value, String::new),
        None => tally.differs("verdict of the operator, gave up", value, String::new),
        _ => {}
    }
}
