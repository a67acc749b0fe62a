use std::fmt::Write as _;

use super::*;
use crate::json;

mod stored;

#[cfg(feature = "control")]
const SHOP: &str = r#"
"""The shop."""
schema { query: Root mutation: Change }
directive @cached(seconds: Int = 60) repeatable on FIELD | QUERY
scalar Date
enum Kind { BOOK "a game" GAME @deprecated }
interface Node { id: ID! }
type Product implements Node & Named @key(fields: "id") { id: ID!, name(upper: Boolean = false): String, kind: Kind!, related(first: Int!, after: String): [Product!]!, made: Date }
interface Named { name: String }
union Found = | Product | Shop
type Shop implements Node { id: ID! products(filter: Filter, kinds: [Kind!]): [Product] }
input Filter { text: String!, max: Float, deeper: Filter, limit: Int = 10 }
type Root { node(id: ID!): Node, search(text: String!): [Found!]!, shop: Shop, echo(any: Date): Int }
extend type Root { version: String }
type Change { buy(product: ID!, count: Int = 1): Product }
"#;

fn limits() -> Limits {
    Limits { body_bytes: 1 << 20, batch: 3, document_bytes: 100_000, depth: 8, fields: 100, aliases: 5, directives: 5 }
}

fn judge_with(
    request: &GraphqlRequest,
    change: impl FnOnce(&mut Rules<'_>),
    over_get: bool,
) -> (Named, Vec<Violation>) {
    let mut rules = Rules { limits: limits(), introspection: false, persisted: Persisted::Allow, schema: None };
    change(&mut rules);
    request.judge(&rules, over_get)
}

fn query(text: &str) -> GraphqlRequest {
    GraphqlRequest { query: Some(text.to_owned()), ..GraphqlRequest::default() }
}

fn kinds(text: &str) -> Vec<Mismatch> {
    judge_with(&query(text), |_| {}, false).1.into_iter().map(|violation| violation.kind).collect()
}

#[cfg(feature = "control")]
/// What the schema says of a document with variables.
fn schema(text: &str, variables: &str) -> Option<String> {
    let bytes = sdl::compile(SHOP).unwrap();
    let schema = Schema::open(&bytes).unwrap();
    let request = GraphqlRequest { variables: Some(json::read(variables.as_bytes()).unwrap()), ..query(text) };
    let rules = Rules { limits: limits(), introspection: true, persisted: Persisted::Allow, schema: Some(&schema) };
    let (_, found) = request.judge(&rules, false);
    assert!(found.iter().all(|violation| violation.kind == Mismatch::Schema), "{text}: {found:?}");
    found.into_iter().next().map(|violation| violation.detail)
}

#[test]
fn documents_of_the_language_are_read() {
    for text in [
        "{a}",
        "\u{feff}{ a, b c }",
        "query Q($a: [Int!]! = [1, 2] @d, $b: B = {c: ENUM, d: null, e: -1.5e3}) @x(y: $a) { a(b: $b) @skip(if: true) { ...f ... on T { c } ... @include(if: $a) { d } } }\nfragment f on T { e }",
        "subscription { s }",
        "{ a(text: \"\\\"}\", block: \"\"\"a \\\"\"\" } \"b\" \"\"\") # } comment\n }",
        "query type { query: mutation fragment on }",
        "{ a(text: \"\u{2028}\") # \u{e9}\u{2027} comment\r b }",
    ] {
        assert!(document::read(text).is_ok(), "{text}: {:?}", document::read(text).err());
    }
    for (text, what) in [
        ("", "no operation"),
        ("{", "expected a name"),
        ("{}", "empty selection"),
        ("{a}}", "expected an operation"),
        ("{a(b:1 ", "expected a name"),
        ("{a()}", "expected a name"),
        ("{a(b: 01)}", "a number"),
        ("{a(b: 1.)}", "point"),
        ("{a(b: 1x)}", "goes on as a name"),
        ("{a(b: \"x\n\")}", "does not end"),
        ("{a(b: \"\"\"x)}", "does not end"),
        ("{a ü}", "does not know"),
        ("fragment on on T {a}", "cannot be called"),
        ("fragment f T {a}", "expected `on`"),
        ("query ($a) {a}", "type of a variable"),
        ("type T {a: Int}", "expected an operation"),
        ("{a #\u{2028} b\n}", "in a comment"),
        ("{a} # x\u{2029}", "in a comment"),
    ] {
        let error = document::read(text).unwrap_err();
        assert!(error.what.contains(what), "{text}: {error:?}");
    }
}

#[test]
fn sizes_are_limited() {
    assert_eq!(kinds("{a{b{c{d{e{f{g{h}}}}}}}}"), []);
    assert_eq!(kinds("{a{b{c{d{e{f{g{h{i}}}}}}}}}"), [Mismatch::Depth]);
    assert_eq!(kinds("{a:x b:x c:x d:x e:x}"), []);
    assert_eq!(kinds("{a:x b:x c:x d:x e:x f:x}"), [Mismatch::Aliases]);
    assert_eq!(kinds("{x @a @a @a @a @a @a}"), [Mismatch::Directives]);
    assert_eq!(kinds("query($a: A @a @a @a, $b: B = 1 @a) @a {x}"), []);
    assert_eq!(kinds("query($a: A @a @a @a, $b: B = 1 @a @a) @a {x}"), [Mismatch::Directives], "those of variables");
    assert_eq!(kinds(&format!("{{{}}}", "x ".repeat(101))), [Mismatch::Fields]);
    assert_eq!(kinds(&format!("{{x(a: \"{}\")}}", "x".repeat(100_000))), [Mismatch::DocumentTooLarge]);
}

#[test]
fn a_fragment_that_nothing_uses_is_limited_as_an_operation_is() {
    let unused = |selection: &str| kinds(&format!("{{x}} fragment f on T {selection}"));
    assert_eq!(unused("@a @a @a @a @a {a:x b:x c:x d:x e{b{c{d{e{f{g{h}}}}}}}}"), []);
    assert_eq!(unused("{a{b{c{d{e{f{g{h{i}}}}}}}}}"), [Mismatch::Depth]);
    assert_eq!(unused(&format!("{{{}}}", "x ".repeat(101))), [Mismatch::Fields]);
    assert_eq!(unused("{a:x b:x c:x d:x e:x f:x}"), [Mismatch::Aliases]);
    assert_eq!(unused("{x @a @a @a @a @a @a}"), [Mismatch::Directives]);
    assert_eq!(unused("@a @a @a {x @a @a @a}"), [Mismatch::Directives]);
    let through_another = format!("{{x}} fragment f on T {{...g ...g}} fragment g on T {{{}}}", "x ".repeat(51));
    assert_eq!(kinds(&through_another), [Mismatch::Fields]);
}

#[test]
fn fragments_that_multiply_cost_nothing_and_count_in_full() {
    // 2^60 fields.
    let mut text = "{ ...f0 }".to_owned();
    for number in 0..60 {
        let next = number + 1;
        let _ = write!(text, " fragment f{number} on T {{ ...f{next} ...f{next} }}");
    }
    text.push_str(" fragment f60 on T { a: x }");
    assert_eq!(kinds(&text), [Mismatch::Fields, Mismatch::Aliases]);
    assert_eq!(kinds("{...a} fragment a on T {...b} fragment b on T {x ...a}"), [Mismatch::Syntax]);
    assert_eq!(kinds("{x} fragment a on T {...a}"), [Mismatch::Syntax], "one that nothing uses");
    assert_eq!(kinds("{...a}"), [Mismatch::Syntax]);
    assert_eq!(kinds("{...a} fragment a on T {x} fragment a on T {y}"), [Mismatch::Syntax]);
    let chain: String = (0..250).fold("{ ...f0 }".to_owned(), |mut text, number| {
        let _ = write!(text, " fragment f{number} on T {{ ...f{} }}", number + 1);
        text
    });
    assert_eq!(kinds(&format!("{chain} fragment f250 on T {{ x }}")), [Mismatch::Depth]);
}

#[test]
fn hostile_nesting_is_an_error_and_no_overflow() {
    for (open, close) in [("{a", "}"), ("{a(b:[", "])}"), ("{...{", "}}")] {
        for count in [50, 200, 20_000] {
            let text = format!("{}{}", open.repeat(count), close.repeat(count));
            let _ = kinds(&text);
        }
    }
    assert_eq!(kinds(&format!("{}x{}", "{a".repeat(200), "}".repeat(200))), [Mismatch::Depth]);
    assert_eq!(kinds(&format!("{{a(b:{}1{})}}", "[".repeat(200), "]".repeat(200))), [Mismatch::Depth]);
    assert_eq!(kinds(&format!("query($a:{}T{}){{a}}", "[".repeat(200), "]".repeat(200))), [Mismatch::Depth]);
}

#[test]
fn every_beginning_of_a_document_is_read_or_refused() {
    let text = "query Q($a: [Int!]! = [1]) @x(y: \"\"\"b\"\"\") { é: a(b: {c: $a, d: 1.5}) { ...f ... on T { c } } } fragment f on T { e }";
    for end in text.char_indices().map(|(at, _)| at) {
        let _ = document::read(&text[..end]);
        let _ = document::read(&text[end..]);
        #[cfg(feature = "control")]
        let _ = sdl::compile(&SHOP[..end.min(SHOP.len())]);
    }
}

#[test]
fn introspection_and_mutations_over_get_are_found() {
    assert_eq!(kinds("{__schema{types{name}}}"), [Mismatch::Introspection]);
    assert_eq!(kinds("{...f} fragment f on Q {__type(name:\"a\"){name}}"), [Mismatch::Introspection]);
    assert_eq!(kinds("{a{__typename}}"), []);
    let over_get = |text: &str, operation: Option<&str>| {
        let request = GraphqlRequest { operation: operation.map(str::to_owned), ..query(text) };
        judge_with(&request, |_| {}, true).1.into_iter().map(|found| found.kind).collect::<Vec<_>>()
    };
    assert_eq!(over_get("{a}", None), []);
    assert_eq!(over_get("mutation {a}", None), [Mismatch::MutationOverGet]);
    assert_eq!(over_get("query A {a} mutation B {b}", Some("A")), []);
    assert_eq!(over_get("query A {a} mutation B {b}", Some("B")), [Mismatch::MutationOverGet]);
}

#[test]
fn the_operation_is_the_one_that_is_executed() {
    let named = |text: &str, operation: Option<&str>| {
        let request = GraphqlRequest { operation: operation.map(str::to_owned), ..query(text) };
        let (named, found) = judge_with(&request, |_| {}, false);
        (format!("{} {}", named.kind, named.name), found.len())
    };
    assert_eq!(named("query A {a} mutation B {b}", Some("B")), ("mutation B".to_owned(), 0));
    assert_eq!(named("{a b c d}", None), ("query {a b c}".to_owned(), 0));
    assert_eq!(named("query A {a} query B {b}", None), ("query A".to_owned(), 1));
    assert_eq!(named("query A {a}", Some("C")), ("query A".to_owned(), 1));
    assert_eq!(named("query A {a} query A {b}", Some("A")).1, 1);
    assert_eq!(named("{a} query B {b}", Some("B")).1, 1);
}

#[test]
fn a_long_name_is_shown_in_part() {
    // Two of them fit into a document.
    let long = "n".repeat(30_000);
    let named = |text: &str| judge_with(&query(text), |_| {}, false).0.name;
    assert_eq!(named(&format!("query {long} {{a}}")), "n".repeat(64));
    let short = "n".repeat(64);
    assert_eq!(named(&format!("{{{long} b c{long}}}")), format!("{{{short} b c{}}}", "n".repeat(63)));
}

#[cfg(feature = "control")]
#[test]
fn thousands_of_variables_are_declared_used_and_given() {
    // Thousands of variables, each of them used and given: a quadratic check would take hundreds of millions of steps.
    let (mut declared, mut used, mut given) = (String::new(), String::new(), String::new());
    for number in 0..3000 {
        let _ = write!(declared, "$v{number}:ID!,");
        let _ = write!(used, "...on Root{{node(id:$v{number}){{id}}}}");
        let _ = write!(given, "{}\"v{number}\":1", if number > 0 { "," } else { "" });
    }
    let bytes = sdl::compile(SHOP).unwrap();
    let schema = Schema::open(&bytes).unwrap();
    let text = format!("query({declared}){{{used}}}");
    let variables = Some(json::read(format!("{{{given}}}").as_bytes()).unwrap());
    let request = GraphqlRequest { variables, ..query(&text) };
    let limits = Limits { document_bytes: 1 << 20, fields: 100_000, ..limits() };
    let rules = Rules { limits, introspection: false, persisted: Persisted::Allow, schema: Some(&schema) };
    assert_eq!(request.judge(&rules, false).1, []);
}

#[cfg(feature = "control")]
#[test]
fn each_operation_compares_each_different_use_of_a_variable_once() {
    // 64 operations, each with 200 fragments that use ten variables twenty times.
    let (mut declared, mut used, mut text) = (String::new(), String::new(), String::new());
    for number in 0..10 {
        let _ = write!(declared, "$f{number}:Filter,$i{number}:Int,");
        for part in 0..10 {
            let _ = write!(used, "a{number}x{part}:products(filter:$f{number}){{id}}");
            let _ = write!(used, "b{number}x{part}:products{{id@cached(seconds:$i{number})}}");
        }
    }
    for number in 0..200 {
        let _ = write!(text, "fragment f{number} on Shop{{{used}...f{}}}", number + 1);
    }
    text.push_str("fragment f200 on Shop{id}");
    for number in 0..64 {
        let _ = write!(text, "query q{number}({declared}){{shop{{...f0...f7...f199}}}}");
    }
    let bytes = sdl::compile(SHOP).unwrap();
    let (schema, document) = (Schema::open(&bytes).unwrap(), document::read(&text).unwrap());
    assert_eq!(Validator::new(&schema, &document).check(0, None), Ok(64 * 20));
    // A document that is too large is not compared at all.
    let large = query(&format!("{{{}}}", "missing ".repeat(101)));
    let kinds = |request: &GraphqlRequest| {
        let rules =
            Rules { limits: limits(), introspection: false, persisted: Persisted::Allow, schema: Some(&schema) };
        request.judge(&rules, false).1.into_iter().map(|found| found.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&large), [Mismatch::Fields]);
    assert_eq!(kinds(&query("{missing}")), [Mismatch::Schema]);
}

#[cfg(feature = "control")]
#[test]
fn documents_that_fit_the_schema_pass() {
    for (text, variables) in [
        ("{ node(id: 5) { id __typename ... on Product { name(upper: true) kind } } }", "{}"),
        (
            "query($t: String!) { search(text: $t) { ... on Shop { id } ...p } } fragment p on Product { made }",
            r#"{"t":"a","more":1}"#,
        ),
        ("{ shop { products(filter: {text: \"a\", max: 3, deeper: {text: \"b\"}}, kinds: BOOK) { id } } }", "{}"),
        (
            "query($f: Filter, $k: [Kind!]) { shop { products(filter: $f, kinds: $k) { id } } }",
            r#"{"f":{"text":"x","max":1},"k":["GAME"]}"#,
        ),
        ("query($n: Int = 3) { shop { products { related(first: $n) { id @cached(seconds: 5) } } } }", "{}"),
        ("mutation($id: ID!) { buy(product: $id) { id } }", r#"{"id":7}"#),
        ("{ echo(any: {a: [1, \"x\"]}) version }", "{}"),
        ("{ __schema { types { name } } a: __type(name: \"x\") { kind } }", "{}"),
        ("query($b: Boolean!) { version @skip(if: $b) }", r#"{"b":true}"#),
    ] {
        assert_eq!(schema(text, variables), None, "{text}");
    }
}

#[cfg(feature = "control")]
#[test]
fn documents_that_do_not_fit_the_schema_are_told_why() {
    for (text, variables, said) in [
        ("{ missing }", "{}", "Root has no field `missing`"),
        ("{ shop }", "{}", "needs a selection"),
        ("{ version { a } }", "{}", "has no fields"),
        ("{ node { id } }", "{}", "argument `id` of Root.`node` is missing"),
        ("{ node(id: 1, x: 2) { id } }", "{}", "`x` of Root.`node` is not declared"),
        ("{ node(id: 1, id: 2) { id } }", "{}", "twice"),
        ("{ node(id: true) { id } }", "{}", "expected the type ID"),
        ("{ node(id: null) { id } }", "{}", "expected a value"),
        ("{ search(text: \"a\") { id } }", "{}", "Found has no field `id`"),
        ("{ shop { products(kinds: [CAR]) { id } } }", "{}", "a value of Kind"),
        ("{ shop { products(filter: {max: 1}) { id } } }", "{}", "the field text of Filter"),
        ("{ shop { products(filter: {text: \"a\", other: 1}) { id } } }", "{}", "no field `other`"),
        ("{ ...f } fragment f on Missing { a }", "{}", "`Missing` of a fragment"),
        ("{ ...f } fragment f on Date { a }", "{}", "no fields"),
        ("{ version @unknown }", "{}", "directive `unknown`"),
        ("query($n: Int @unknown) { version }", "{}", "directive `unknown`"),
        ("{ node(id: $id) { id } }", "{}", "variable `id` is not declared"),
        ("query($id: Int) { node(id: $id) { id } }", "{}", "another type"),
        ("query($id: ID) { ...f } fragment f on Root { node(id: $id) { id } }", "{}", "another type"),
        ("query($id: ID!) { node(id: $id) { id } }", "{}", "`id` is missing"),
        ("query($id: ID!) { node(id: $id) { id } }", r#"{"id":[1]}"#, "expected the type ID"),
        (
            "query($f: Filter) { shop { products(filter: $f) { id } } }",
            r#"{"f":{"text":1}}"#,
            "expected the type String",
        ),
        (
            "query($f: Filter) { shop { products(filter: $f) { id } } }",
            r#"{"f":{"text":"a","secret":1}}"#,
            "no other field",
        ),
        ("query($k: [Kind!]) { shop { products(kinds: $k) { id } } }", r#"{"k":["CAR"]}"#, "the type Kind"),
        ("query($n: Int!) { shop { products { related(first: $n) { id } } } }", r#"{"n":3000000000}"#, "the type Int"),
        ("query($s: Shop) { version }", "{}", "no input"),
        ("query($a: Int, $a: Int) { version }", "{}", "declared twice"),
        ("{ version @skip(if: $b) }", "{}", "`b` is not declared"),
        ("subscription { a }", "{}", "no subscription"),
        ("mutation { version }", "{}", "Change has no field"),
    ] {
        let found = schema(text, variables).unwrap_or_default();
        assert!(found.contains(said), "{text}: {found}");
        assert!(!found.contains("3000000000") && !found.contains("secret") && !found.contains("CAR"), "{found}");
    }
}
