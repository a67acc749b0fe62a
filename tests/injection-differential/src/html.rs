//! HTML: five contexts for each value, token by token, and what both sides answer for the whole of it.

use seclang::operator::injection::reference::{self, HTML_CONTEXTS, Handlers};

use crate::library::{Libinjection, Terminated};
use crate::random::{Random, composed, mutated};
use crate::tally::Tally;

const PIECES: &[&str] = &[
    "<",
    "<",
    "<",
    ">",
    ">",
    "/",
    "/>",
    "</",
    "=",
    "=",
    "=",
    "'",
    "\"",
    "`",
    " ",
    "\t",
    "\n",
    "\x0b",
    "\x0c",
    "\r",
    "\0",
    "!",
    "!--",
    "<!--",
    "-->",
    "-!>",
    "--\0>",
    "-\0->",
    "--!>",
    "-",
    "--",
    "<!",
    "<!d",
    "<!doctype",
    "<!DOCTYPE html>",
    "<![CDATA[",
    "]]>",
    "]]",
    "<?",
    "?>",
    "<?import",
    "<?xml",
    "<%",
    "%>",
    "%",
    "[if",
    "<![if",
    "<!ENTITY",
    "<!--[if",
    "<script",
    "</script>",
    "<SCRIPT>",
    "<scr\0ipt>",
    "<svg",
    "<svg/onload=1>",
    "<xsl",
    "<x",
    "<a",
    "<b>",
    "</b>",
    "<b/>",
    "<img",
    "<img src=x",
    "<iframe",
    "<style>",
    "<base",
    "<object",
    "<xss",
    "<xml",
    "<xmlx",
    "<meta",
    "<link",
    "<form",
    "<video",
    "onerror",
    "onerror=1",
    "onload=",
    "onfoo=1",
    "on=",
    "onx=",
    "onend=1",
    "one=1",
    "ononline=",
    "onbeforetoggle=1",
    "src=",
    "href=",
    "href=\"javascript:1\"",
    "href=java",
    "href= vbscript:",
    "href=data:",
    "xlink:href=",
    "xmlns:x=1",
    "XLINK:foo=1",
    "style=",
    "style=1",
    "filter=1",
    "by=",
    "to=",
    "from=data:",
    "values=",
    "action=",
    "formaction=",
    "attributename=href",
    "attributeName=onload",
    "datasrc=1",
    "dataformatas=",
    "background=",
    "javascript:",
    "java\nscript:",
    "&#106;avascript:",
    "&#x6a;avascript:",
    "&#x6A",
    "&#106",
    "&#",
    "&#x",
    "&#;",
    "&",
    "&#x100100;",
    "&#362;ava",
    "&#330;ava",
    "&#0;",
    "&#10;",
    "data:text/html",
    "view-source:",
    "vbscript:",
    "\u{a0}",
    "\u{e9}",
    "x",
    "a b",
    "1",
];

const SEEDS: &[&str] = &[
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<a href=&#106;avascript:1>",
    "<!--[if gte IE 4]><b><![endif]-->",
    "<?import x>",
    "<iframe src=data:text/html,1>",
    "<b>bold</b> and <i>more</i>",
    "x=1 onwards = 2",
    "<p class=\"x\">text</p>",
    "<!DOCTYPE html>",
    "<svg><animate attributeName=href values=javascript:1>",
    "` onload=1",
    "<style>@import 'x'</style>",
    "<div style=\"x\">",
    "<a/onclick=1/b>",
    "<a b='c'onclick=1>",
    "<%x `%>",
    "</a onload=1>",
    "<x xmlns=1>",
    "a < b and c > d",
];

/// Compares `count` values, and then all of `payloads`.
pub fn compare(library: &Libinjection, count: usize, seed: u64, payloads: &[Vec<u8>]) -> Tally {
    let mut random = Random::new(seed ^ 0x5a5a);
    let latin = [&b"\xff"[..], b"\x80", b"\xa0"];
    let pieces: Vec<&[u8]> = PIECES.iter().map(|piece| piece.as_bytes()).chain(latin).collect();
    let seeds: Vec<&[u8]> =
        SEEDS.iter().map(|seed| seed.as_bytes()).chain(payloads.iter().map(Vec::as_slice)).collect();
    let glue: &[&[u8]] = &[b" ", b"/", b"=", b"'", b"\"", b">", b"\0"];
    let handlers = if library.is_version_3() { Handlers::Any } else { Handlers::Known };
    let mut tally = Tally::new("HTML");
    for _ in 0..count {
        let value = match random.below(2) {
            0 => composed(&mut random, &pieces, glue, 12),
            _ => {
                let (one, other) = (random.pick(&seeds), random.pick(&seeds));
                mutated(&mut random, one, other, &pieces)
            }
        };
        one(library, handlers, &value, &mut tally);
    }
    for value in payloads {
        tally.payloads += 1;
        one(library, handlers, value, &mut tally);
    }
    tally
}

fn one(library: &Libinjection, handlers: Handlers, value: &[u8], tally: &mut Tally) {
    let terminated = Terminated::new(value);
    tally.values += 1;
    for context in 0..HTML_CONTEXTS {
        tally.readings += 1;
        let (ours, theirs) = (reference::html_tokens(value, context), library.html_tokens(&terminated, context));
        if ours != theirs {
            // The library takes the byte 0xff for the end of the value where an attribute may begin.
            if value.contains(&0xff) && ours.starts_with(&theirs) {
                tally.expected("tokens behind 0xff in a tag", value);
            } else {
                tally.differs("tokens", value, || format!("context {context}: {ours:?} (library: {theirs:?})"));
            }
        }
        let ours = reference::is_script_in(value, context, handlers);
        let theirs = library.is_script_in(&terminated, context);
        if theirs && !ours {
            tally.differs("verdict of a context, missed", value, || format!("context {context}"));
        } else if ours && !theirs {
            if value.contains(&0xff) {
                tally.expected("found behind 0xff in a tag", value);
            } else {
                tally.differs("verdict of a context, found", value, || format!("context {context}"));
            }
        }
    }
    let (ours, theirs) = (reference::is_script(value), library.is_script(&terminated));
    let ours_as_theirs = (0..HTML_CONTEXTS).any(|context| reference::is_script_in(value, context, handlers));
    tally.found += usize::from(theirs);
    match (theirs, ours) {
        (true, false) if ours_as_theirs && handlers == Handlers::Any => {
            tally.expected("not found: `on...` outside of a tag that is no event, as since version 4", value);
        }
        (true, false) => tally.differs("verdict, missed", value, String::new),
        (false, true) if !ours_as_theirs => {
            tally.expected("found: `on...` in a tag, an event that is on no list", value)
        }
        _ => {}
    }
}
