//! Cross-site scripting: the rules of libinjection, over the whole of a value.

mod names;
mod tokens;

use memchr::memchr;

use names::Attribute;
pub(super) use tokens::Context;
use tokens::{Token, Tokens};

/// Where a value may be put: into the text of a page, into a tag, into an attribute.
pub(super) const CONTEXTS: [Context; 5] =
    [Context::Text, Context::Tag, Context::Quoted(b'\''), Context::Quoted(b'"'), Context::Quoted(b'`')];

/// Which attributes with a name that begins with `on` are handlers of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handlers {
    /// Those of events that are known. So does version 4 of libinjection.
    Known,
    /// All of at least five bytes. So does version 3.
    Any,
    /// All in a tag that the value opens, as browsers get new events all the time; elsewhere those that are known, as
    /// `onwards = ...` is usual text.
    AnyInTags,
}

/// Whether a value runs a script somewhere, and how many tokens were read to find out.
pub(super) fn detect(value: &[u8]) -> (bool, usize) {
    let mut read = 0;
    let found = CONTEXTS.iter().any(|context| {
        let (found, tokens) = detect_in(value, *context, Handlers::AnyInTags);
        read += tokens;
        found
    });
    (found, read)
}

/// Whether a value runs a script where it is put here, and how many tokens were read to find out.
pub(super) fn detect_in(value: &[u8], context: Context, handlers: Handlers) -> (bool, usize) {
    let mut attribute = Attribute::Harmless;
    let mut any_handler = handlers == Handlers::Any;
    let mut read = 0;
    for token in Tokens::new(value, context) {
        read += 1;
        let of = std::mem::replace(&mut attribute, Attribute::Harmless);
        let dangerous = match token {
            Token::Doctype(_) => true,
            Token::TagOpen(name) => {
                any_handler |= handlers == Handlers::AnyInTags;
                names::is_dangerous_tag(name)
            }
            Token::AttributeName(name) => {
                attribute = names::attribute(name, any_handler);
                false
            }
            Token::AttributeValue(value) => match of {
                Attribute::Harmless => false,
                Attribute::Dangerous => true,
                Attribute::Address => names::is_dangerous_address(value),
                Attribute::Name => names::attribute(value, any_handler) != Attribute::Harmless,
            },
            Token::Comment(comment) => is_dangerous_comment(comment),
            Token::Text(_) | Token::TagEnd(_) | Token::TagClose(_) => false,
        };
        if dangerous {
            return (true, read);
        }
    }
    (false, read)
}

/// Comments that Internet Explorer reads, and declarations of XML.
fn is_dangerous_comment(comment: &[u8]) -> bool {
    let starts = |start: &[u8], longer: usize| {
        comment.len() >= start.len() + longer
            && comment.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start))
    };
    memchr(b'`', comment).is_some()
        || starts(b"[if", 1)
        || starts(b"xml", 1)
        || starts(b"import", 0)
        || starts(b"entity", 0)
}

/// The tokens of a value: a letter for what each is, and its length.
pub(super) fn tokens(value: &[u8], context: Context) -> Vec<(u8, usize)> {
    let tokens = Tokens::new(value, context).map(|token| match token {
        Token::Text(text) => (b't', text.len()),
        Token::TagOpen(name) => (b'<', name.len()),
        Token::TagEnd(end) => (b'>', end.len()),
        Token::TagClose(name) => (b'/', name.len()),
        Token::AttributeName(name) => (b'n', name.len()),
        Token::AttributeValue(value) => (b'v', value.len()),
        Token::Comment(comment) => (b'c', comment.len()),
        Token::Doctype(rest) => (b'd', rest.len()),
    });
    tokens.collect()
}
