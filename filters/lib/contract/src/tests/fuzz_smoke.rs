//! The fuzz targets without a fuzzer: documents, requests and bodies, made of pieces that are cut, joined and changed at random places.
//! Seeded.

#[allow(unreachable_pub, reason = "it is shared with the fuzz target")]
#[path = "../../../../../fuzz/src/bodies/contract_body.rs"]
mod contract_body;
#[allow(unreachable_pub, reason = "it is shared with the fuzz target")]
#[path = "../../../../../fuzz/src/bodies/contract_document.rs"]
mod contract_document;
#[allow(unreachable_pub, reason = "it is shared with the fuzz target")]
#[path = "../../../../../fuzz/src/bodies/contract_parameters.rs"]
mod contract_parameters;

const BODIES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "3",
    "9",
    "1.5",
    "1e3",
    "1E-2",
    "-0",
    "01",
    "1.",
    "\"a\"",
    "\"name\"",
    "\"name\":\"x\"",
    "\"children\":[",
    "\"when\":\"2024-01-01T00:00:00Z\"",
    "\"when\":\"x\"",
    "\"kind\":\"Cat\"",
    "\"kind\":\"Dog\"",
    "\"lives\":9",
    "\"age\":0",
    "\"x-a\":1",
    "\"x-a\":\"b\"",
    "\"a\":1",
    "\"b\":2",
    "\"c\":3",
    "\"d\":4",
    "\"k\":null",
    "\"k\":[1]",
    "\"k\":{\"a\":1.0}",
    "\"\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\\x\"",
    "\"\u{e9}\"",
    "\"a@b.example\"",
    "\"abab\"",
    "\"n\":2147483648",
    "\"t\":\"ab\"",
    "\"id\":\"f81d4fae-7dec-11d0-a765-00a0c91e6bf6\"",
    "\"ip\":\"::1\"",
    "\"at\":\"https://a.example\"",
    "123456789012345678901234567890",
    "1e999",
    "{\"name\":\"x\"}",
    "[1,1.0]",
    "[\"a\",1,2,3]",
    "{}",
    "[]",
    "\n",
    "\"",
];

const REQUESTS: &[&str] = &[
    "GET ",
    "POST ",
    "DELETE ",
    "OPTIONS ",
    "/q",
    "/m/",
    "/l/",
    "/s/",
    "?",
    "&",
    "=",
    ",",
    ";",
    ".",
    "|",
    "%7C",
    "%20",
    "+",
    "%",
    "%2",
    "%00",
    "%ff",
    "/",
    "//",
    ":run",
    "int=5",
    "int=x",
    "form=1",
    "form=x",
    "comma=a,b",
    "space=1%202",
    "pipe=a|b",
    "deep[a]=1",
    "deep[b]=true",
    "deep[",
    "deep%5Ba%5D=1",
    "free",
    "k=1",
    "json={\"x\":1}",
    "json=%7B%22x%22:1%7D",
    "flag",
    "any=7",
    "any=2024-01-01T00:00:00Z",
    "p=1",
    ";p=1;p=2",
    ".a=b",
    "a.1",
    "\n",
    "1,2",
    "a=1",
    "\"",
    "\\",
];

const DOCUMENTS: &[&str] = &[
    "openapi: 3.1.0\n",
    "openapi: 3.0.3\n",
    "paths:\n",
    "  /a/{b}:\n",
    "  /a/{b}.{c}:\n",
    "    get:\n",
    "    post:\n",
    "      parameters:\n",
    "        - {name: b, in: path, schema: {type: integer}}\n",
    "        - {name: q, in: query, style: deepObject, schema: {$ref: '#/components/schemas/A'}}\n",
    "        - {name: q, in: query, content: {application/json: {schema: {type: object}}}}\n",
    "      requestBody:\n",
    "        content: {application/json: {schema: {$ref: '#/components/schemas/A'}}}\n",
    "        content: {'*/*': {schema: {type: array}}}\n",
    "        required: true\n",
    "      responses: {'200': {content: {application/json: {schema: true}}}}\n",
    "components:\n",
    "  schemas:\n",
    "    A: {type: object, properties: {a: {$ref: '#/components/schemas/B'}}}\n",
    "    B: {allOf: [{$ref: '#/components/schemas/A'}, {type: string}]}\n",
    "    C: {oneOf: [{$ref: '#/components/schemas/A'}], discriminator: {propertyName: a}}\n",
    "    A: {$ref: '#/components/schemas/A'}\n",
    "    A: {enum: [1, a, null, {b: c}], nullable: true}\n",
    "    B: {$dynamicRef: '#m'}\n",
    "    A: {$dynamicAnchor: m, $id: 'x', items: {$dynamicRef: '#m'}}\n",
    "    B: {pattern: '(?=a)', format: date, minLength: 1e3}\n",
    "    A: {patternProperties: {'^a': {}, '[': {}}, additionalProperties: false}\n",
    "    B: {unevaluatedProperties: false, if: {}, then: {}, else: {}}\n",
    "    A: {required: [a, a, 1], properties: {a: {readOnly: true}}}\n",
    "servers: [{url: 'https://a/{v}/b', variables: {v: {enum: [1, 2], default: 1}}}]\n",
    "jsonSchemaDialect: x\n",
    "swagger: '2.0'\n",
    "{\"openapi\":\"3.0.0\",\"paths\":{\"/\":{\"get\":{}}}}",
    "- x\n",
    "  '/b#c':\n",
    "    $ref: '#/paths/~1a~1{b}'\n",
    "    servers: []\n",
    "      operationId: x\n",
    "\u{feff}",
    "\t",
    "x-a: &a [*a]\n",
    "  /c: &c {get: {}}\n",
    "  /d: *c\n",
    "{",
];

/// Joins up to `most` pieces.
fn made(random: &mut impl FnMut(usize) -> usize, pieces: &[&str], most: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..random(most) {
        let piece = pieces[random(pieces.len())].as_bytes();
        let cut = if random(12) == 0 { random(piece.len()) } else { piece.len() };
        text.extend_from_slice(&piece[..cut]);
    }
    if !text.is_empty() && random(6) == 0 {
        let at = random(text.len());
        text[at] = u8::try_from(random(256)).unwrap();
    }
    text
}

fn random() -> impl FnMut(usize) -> usize {
    let mut state = 1u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    }
}

#[test]
fn bodies_made_of_pieces_are_judged() {
    let mut random = random();
    for round in 0..6000 {
        let mut body = vec![u8::try_from(round % 256).unwrap()];
        body.extend(made(&mut random, BODIES, 14));
        contract_body::run(&body);
    }
}

#[test]
fn requests_made_of_pieces_are_judged() {
    let mut random = random();
    for _ in 0..6000 {
        let mut request = if random(2) == 0 { b"GET /q?".to_vec() } else { Vec::new() };
        request.extend(made(&mut random, REQUESTS, 14));
        contract_parameters::run(&request);
    }
}

#[test]
fn documents_made_of_pieces_compile_or_are_refused() {
    let mut random = random();
    for round in 0..1500 {
        let mut document = vec![u8::try_from(round % 256).unwrap()];
        if random(4) > 0 {
            // In the order of the pieces more of them make sense.
            let mut places: Vec<usize> = (0..4 + random(16)).map(|_| random(DOCUMENTS.len())).collect();
            places.sort_unstable();
            document.extend(places.iter().flat_map(|place| DOCUMENTS[*place].bytes()));
        } else {
            document.extend(made(&mut random, DOCUMENTS, 20));
        }
        contract_document::run(&document);
    }
}
