//! Documents of GraphQL (specification of October 2021, section 2): operations and fragments. The work and the memory are proportional to
//! the text, and the nesting is limited.

use super::lexer::{Lexer, SyntaxError, Token};

/// The deepest nesting of selections, of values and of types.
pub(crate) const MAX_NESTING: usize = 100;
/// The most operations of a document.
const MAX_OPERATIONS: usize = 64;
/// The most fragments of a document.
const MAX_FRAGMENTS: usize = 256;

/// A document.
#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    pub(crate) operations: Vec<Operation<'a>>,
    pub(crate) fragments: Vec<Fragment<'a>>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Query,
    Mutation,
    Subscription,
}

/// An operation.
#[derive(Debug)]
pub(crate) struct Operation<'a> {
    pub(crate) kind: OperationKind,
    pub(crate) name: Option<&'a str>,
    pub(crate) variables: Vec<Variable<'a>>,
    pub(crate) directives: Vec<Directive<'a>>,
    pub(crate) selection: Vec<Selection<'a>>,
}

/// A fragment.
#[derive(Debug)]
pub(crate) struct Fragment<'a> {
    pub(crate) name: &'a str,
    pub(crate) on: &'a str,
    pub(crate) directives: Vec<Directive<'a>>,
    pub(crate) selection: Vec<Selection<'a>>,
}

/// The declaration of a variable.
#[derive(Debug)]
pub(crate) struct Variable<'a> {
    pub(crate) name: &'a str,
    pub(crate) of: Type<'a>,
    pub(crate) default: Option<Value<'a>>,
    pub(crate) directives: Vec<Directive<'a>>,
}

/// A directive at its place.
#[derive(Debug)]
pub(crate) struct Directive<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: Vec<(&'a str, Value<'a>)>,
}

/// A part of a selection.
#[derive(Debug)]
pub(crate) enum Selection<'a> {
    Field(Field<'a>),
    Spread { name: &'a str, directives: Vec<Directive<'a>> },
    Inline { on: Option<&'a str>, directives: Vec<Directive<'a>>, selection: Vec<Selection<'a>> },
}

/// A field.
#[derive(Debug)]
pub(crate) struct Field<'a> {
    pub(crate) alias: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) arguments: Vec<(&'a str, Value<'a>)>,
    pub(crate) directives: Vec<Directive<'a>>,
    pub(crate) selection: Vec<Selection<'a>>,
}

/// A value.
#[derive(Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Variable(&'a str),
    Int(&'a str),
    Float,
    String,
    Boolean,
    Null,
    Enum(&'a str),
    List(Vec<Value<'a>>),
    Object(Vec<(&'a str, Value<'a>)>),
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type<'a> {
    Named(&'a str),
    List(Box<Type<'a>>),
    NonNull(Box<Type<'a>>),
}

impl OperationKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Mutation => "mutation",
            Self::Subscription => "subscription",
        }
    }
}

/// Reads a document that is sent to be executed.
pub(crate) fn read(text: &str) -> Result<Document<'_>, SyntaxError> {
    let mut parser = Parser::new(text)?;
    let mut document = Document::default();
    while parser.token != Token::End {
        let place = parser.start;
        match parser.token {
            Token::Mark(b'{') => {
                let selection = parser.selection(0)?;
                let (variables, directives) = (Vec::new(), Vec::new());
                document.operations.push(Operation {
                    kind: OperationKind::Query,
                    name: None,
                    variables,
                    directives,
                    selection,
                });
            }
            Token::Name("query") => document.operations.push(parser.operation(OperationKind::Query)?),
            Token::Name("mutation") => document.operations.push(parser.operation(OperationKind::Mutation)?),
            Token::Name("subscription") => document.operations.push(parser.operation(OperationKind::Subscription)?),
            Token::Name("fragment") => document.fragments.push(parser.fragment()?),
            _ => return parser.wrong("expected an operation or a fragment"),
        }
        if document.operations.len() > MAX_OPERATIONS || document.fragments.len() > MAX_FRAGMENTS {
            return Err(SyntaxError { at: place, what: "more operations or fragments than are read" });
        }
    }
    if document.operations.is_empty() {
        return parser.wrong("the document has no operation");
    }
    Ok(document)
}

/// Reads tokens into structures; the schema language uses it too.
pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(crate) token: Token<'a>,
    pub(crate) start: usize,
}

type Parsed<T> = Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str) -> Parsed<Self> {
        let mut lexer = Lexer::new(text);
        let (token, start) = lexer.next()?;
        Ok(Self { lexer, token, start })
    }

    pub(crate) fn wrong<T>(&self, what: &'static str) -> Parsed<T> {
        Err(SyntaxError { at: self.start, what })
    }

    /// Goes past the token.
    pub(crate) fn advance(&mut self) -> Parsed<Token<'a>> {
        let (next, start) = self.lexer.next()?;
        self.start = start;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Goes past a mark if it is next.
    pub(crate) fn take(&mut self, mark: u8) -> Parsed<bool> {
        let found = self.token == Token::Mark(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(crate) fn expect(&mut self, mark: u8, what: &'static str) -> Parsed<()> {
        if self.take(mark)? { Ok(()) } else { self.wrong(what) }
    }

    pub(crate) fn name(&mut self) -> Parsed<&'a str> {
        match self.token {
            Token::Name(name) => {
                self.advance()?;
                Ok(name)
            }
            _ => self.wrong("expected a name"),
        }
    }

    fn operation(&mut self, kind: OperationKind) -> Parsed<Operation<'a>> {
        self.advance()?;
        let name = if matches!(self.token, Token::Name(_)) { Some(self.name()?) } else { None };
        let mut variables = Vec::new();
        if self.take(b'(')? {
            loop {
                self.expect(b'$', "expected a variable")?;
                let name = self.name()?;
                self.expect(b':', "expected the type of a variable")?;
                let of = self.of_type(0)?;
                let default = if self.take(b'=')? { Some(self.value(0)?) } else { None };
                let directives = self.directives()?;
                variables.push(Variable { name, of, default, directives });
                if self.take(b')')? {
                    break;
                }
            }
        }
        let directives = self.directives()?;
        let selection = self.selection(0)?;
        Ok(Operation { kind, name, variables, directives, selection })
    }

    fn fragment(&mut self) -> Parsed<Fragment<'a>> {
        self.advance()?;
        let name = self.name()?;
        if name == "on" {
            return self.wrong("a fragment cannot be called `on`");
        }
        if self.token != Token::Name("on") {
            return self.wrong("expected `on`");
        }
        self.advance()?;
        let on = self.name()?;
        let directives = self.directives()?;
        let selection = self.selection(0)?;
        Ok(Fragment { name, on, directives, selection })
    }

    fn selection(&mut self, depth: usize) -> Parsed<Vec<Selection<'a>>> {
        self.expect(b'{', "expected a selection")?;
        if depth >= MAX_NESTING {
            return self.wrong("selections are nested too deeply");
        }
        let mut selection = Vec::new();
        while !self.take(b'}')? {
            selection.push(self.selected(depth)?);
        }
        if selection.is_empty() { self.wrong("an empty selection") } else { Ok(selection) }
    }

    fn selected(&mut self, depth: usize) -> Parsed<Selection<'a>> {
        if self.token == Token::Spread {
            self.advance()?;
            return match self.token {
                Token::Name("on") => {
                    self.advance()?;
                    let on = Some(self.name()?);
                    let directives = self.directives()?;
                    Ok(Selection::Inline { on, directives, selection: self.selection(depth + 1)? })
                }
                Token::Name(name) => {
                    self.advance()?;
                    Ok(Selection::Spread { name, directives: self.directives()? })
                }
                _ => {
                    let directives = self.directives()?;
                    Ok(Selection::Inline { on: None, directives, selection: self.selection(depth + 1)? })
                }
            };
        }
        let first = self.name()?;
        let (alias, name) = if self.take(b':')? { (Some(first), self.name()?) } else { (None, first) };
        let arguments = self.arguments()?;
        let directives = self.directives()?;
        let selection = if self.token == Token::Mark(b'{') { self.selection(depth + 1)? } else { Vec::new() };
        Ok(Selection::Field(Field { alias, name, arguments, directives, selection }))
    }

    fn arguments(&mut self) -> Parsed<Vec<(&'a str, Value<'a>)>> {
        let mut arguments = Vec::new();
        if self.take(b'(')? {
            loop {
                let name = self.name()?;
                self.expect(b':', "expected the value of an argument")?;
                arguments.push((name, self.value(0)?));
                if self.take(b')')? {
                    break;
                }
            }
        }
        Ok(arguments)
    }

    pub(crate) fn directives(&mut self) -> Parsed<Vec<Directive<'a>>> {
        let mut directives = Vec::new();
        while self.take(b'@')? {
            directives.push(Directive { name: self.name()?, arguments: self.arguments()? });
        }
        Ok(directives)
    }

    pub(crate) fn value(&mut self, depth: usize) -> Parsed<Value<'a>> {
        if depth >= MAX_NESTING {
            return self.wrong("values are nested too deeply");
        }
        if self.take(b'[')? {
            let mut elements = Vec::new();
            while !self.take(b']')? {
                elements.push(self.value(depth + 1)?);
            }
            return Ok(Value::List(elements));
        }
        if self.take(b'{')? {
            let mut members = Vec::new();
            while !self.take(b'}')? {
                let name = self.name()?;
                self.expect(b':', "expected the value of a field")?;
                members.push((name, self.value(depth + 1)?));
            }
            return Ok(Value::Object(members));
        }
        if self.take(b'$')? {
            return Ok(Value::Variable(self.name()?));
        }
        let value = match self.token {
            Token::Int(text) => Value::Int(text),
            Token::Float(_) => Value::Float,
            Token::String => Value::String,
            Token::Name("true" | "false") => Value::Boolean,
            Token::Name("null") => Value::Null,
            Token::Name(name) => Value::Enum(name),
            _ => return self.wrong("expected a value"),
        };
        self.advance()?;
        Ok(value)
    }

    pub(crate) fn of_type(&mut self, depth: usize) -> Parsed<Type<'a>> {
        if depth >= MAX_NESTING {
            return self.wrong("types are nested too deeply");
        }
        let inner = if self.take(b'[')? {
            let element = self.of_type(depth + 1)?;
            self.expect(b']', "expected the end of a list type")?;
            Type::List(Box::new(element))
        } else {
            Type::Named(self.name()?)
        };
        Ok(if self.take(b'!')? { Type::NonNull(Box::new(inner)) } else { inner })
    }
}

impl std::fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::List(element) => write!(f, "[{element}]"),
            Self::NonNull(inner) => write!(f, "{inner}!"),
        }
    }
}
