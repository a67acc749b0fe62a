//! API contracts: any text as a document. What compiles opens, and its operations have their own paths; a damaged form checks nothing
//! or is refused.

use contract::compile::{Options, compile};
use contract::{Contract, Found, Head};

pub fn run(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let base = if choice & 1 == 0 { "" } else { "/api" };
    let Ok(compiled) = compile(text, base, Options { responses: choice & 2 == 0 }) else { return };
    let contract = Contract::open(&compiled.image).expect("what was compiled opens");
    assert_eq!(contract.operations(), compiled.operations.len());
    for operation in compiled.operations.iter().take(50) {
        use_operation(&contract, &operation.method, &format!("{}{}", compiled.base_path, operation.path));
    }
    let mut damaged = compiled.image.clone();
    let places = damaged.len();
    let at = usize::from(*choice) * 7 % places;
    damaged[at] ^= 1 << (choice % 8);
    if let Ok(contract) = Contract::open(&damaged) {
        for operation in compiled.operations.iter().take(5) {
            use_operation(&contract, &operation.method, &format!("{}{}", compiled.base_path, operation.path));
        }
    }
}

fn use_operation(contract: &Contract, method: &str, path: &str) {
    let Found::Operation(matched) = contract.find(method.as_bytes(), path.as_bytes(), false) else { return };
    let head = Head { query: b"a=1&b[c]=2&d", header: &|_| None, reject_unknown: true };
    let _ = contract.check_parameters(&matched, &head);
    for kind in [None, Some(b"application/json".as_slice()), Some(b"text/plain")] {
        let _ = contract.request_body(matched.operation, kind, true);
        let _ = contract.response_body(matched.operation, 200, kind, true);
    }
    for schema in 0..4 {
        let _ = contract.check_body(schema, b"{\"a\":[1,\"b\",null,{\"c\":1.5}]}", false);
    }
}
