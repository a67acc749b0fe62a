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

/// What it took to read a value, in bytes and tokens of all contexts together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Effort {
    pub(super) tokens: usize,
    /// Bytes that were looked at one by one.
    pub(super) looked_at: usize,
    /// Bytes in which one other byte was searched.
    pub(super) searched: usize,
}

impl Effort {
    fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.looked_at += other.looked_at;
        self.searched += other.searched;
    }
}

/// Whether a value runs a script somewhere, and what it took to find out.
///
/// All contexts are read side by side. Readings that come to the same place in the same state go on alike, so one of them
/// suffices.
pub(super) fn detect(value: &[u8]) -> (bool, Effort) {
    let mut readings = CONTEXTS.map(|context| Some(Reading::new(value, context, Handlers::AnyInTags)));
    let mut effort = Effort::default();
    let mut found = false;
    while let Some(least) = least_advanced(&mut readings)
        && !found
        && let Some(mut reading) = least.take()
    {
        match reading.next() {
            Some(false) if !readings.iter().flatten().any(|other| other.goes_on_as(&reading)) => {
                if let Some(free) = readings.iter_mut().find(|reading| reading.is_none()) {
                    *free = Some(reading);
                }
                continue;
            }
            dangerous => found = dangerous == Some(true),
        }
        effort.add(reading.tokens.effort);
    }
    readings.iter().flatten().for_each(|reading| effort.add(reading.tokens.effort));
    (found, effort)
}

/// The reading that is still the nearest to the beginning.
fn least_advanced<'r, 'v>(readings: &'r mut [Option<Reading<'v>>]) -> Option<&'r mut Option<Reading<'v>>> {
    let open = readings.iter_mut().filter(|reading| reading.is_some());
    open.min_by_key(|reading| reading.as_ref().map_or(usize::MAX, |reading| reading.tokens.place()))
}

/// Whether a value runs a script where it is put here.
pub(super) fn detect_in(value: &[u8], context: Context, handlers: Handlers) -> bool {
    let mut reading = Reading::new(value, context, handlers);
    std::iter::from_fn(|| reading.next()).any(|dangerous| dangerous)
}

/// The reading of a value in one context, up to some place.
struct Reading<'v> {
    tokens: Tokens<'v>,
    handlers: Handlers,
    /// What the value may do that comes next, by the name of its attribute.
    attribute: Attribute,
    any_handler: bool,
}

impl<'v> Reading<'v> {
    fn new(value: &'v [u8], context: Context, handlers: Handlers) -> Self {
        let any_handler = handlers == Handlers::Any;
        Self { tokens: Tokens::new(value, context), handlers, attribute: Attribute::Harmless, any_handler }
    }

    /// Whether all that follows is read as in the other one.
    fn goes_on_as(&self, other: &Self) -> bool {
        self.tokens.goes_on_as(&other.tokens)
            && self.attribute == other.attribute
            && self.any_handler == other.any_handler
    }

    /// Whether the next token runs a script; `None` at the end.
    fn next(&mut self) -> Option<bool> {
        let token = self.tokens.next()?;
        let of = std::mem::replace(&mut self.attribute, Attribute::Harmless);
        Some(match token {
            Token::Doctype(_) => true,
            Token::TagOpen(name) => {
                self.any_handler |= self.handlers == Handlers::AnyInTags;
                names::is_dangerous_tag(name)
            }
            Token::AttributeName(name) => {
                self.attribute = names::attribute(name, self.any_handler);
                false
            }
            Token::AttributeValue(value) => match of {
                Attribute::Harmless => false,
                Attribute::Dangerous => true,
                Attribute::Address => {
                    self.tokens.effort.looked_at += 2 * value.len();
                    names::is_dangerous_address(value)
                }
                Attribute::Name => names::attribute(value, self.any_handler) != Attribute::Harmless,
            },
            Token::Comment(comment) => is_dangerous_comment(comment),
            Token::Text(_) | Token::TagEnd(_) | Token::TagClose(_) => false,
        })
    }
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
