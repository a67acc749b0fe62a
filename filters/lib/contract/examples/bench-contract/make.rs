//! Requests and bodies for a document.

mod values;

use contract::compile::{Options, compile};
use contract::{BodyCheck, BodyResult, Contract, Found, Head};
use serde_json::Value;

use crate::workload::Workload;
use values::{Maker, Random};

/// How often each operation is asked for.
const TIMES: usize = 8;
/// The length of bodies, about.
const LENGTH: usize = 23_000;

pub(crate) fn workload(text: &str) -> Workload {
    let compiled = compile(text, "/", Options::default()).unwrap();
    let contract = Contract::open(&compiled.image).unwrap();
    let document: Value = serde_json::from_str(text).unwrap();
    let mut random = Random(7);
    let mut workload =
        Workload { image: compiled.image.clone(), requests: Vec::new(), bodies: Vec::new(), small: Vec::new() };
    let (mut tried, mut refused) = (0, 0);
    for _ in 0..TIMES {
        for operation in &compiled.operations {
            let (method, place) = (operation.method.clone(), operation.path.replace('~', "~0").replace('/', "~1"));
            let item = document.pointer(&format!("/paths/{place}")).unwrap();
            let own = &item[method.to_lowercase()];
            let mut maker = Maker { document: &document, random: &mut random };
            let Some(target) = maker.target(&operation.path, item, own) else { continue };
            tried += 1;
            let path = target.split('?').next().unwrap().to_owned();
            let Found::Operation(matched) = contract.find(method.as_bytes(), path.as_bytes(), false) else { continue };
            let query = target.get(path.len() + 1..).unwrap_or_default().as_bytes();
            let head = Head { query, header: &|_| None, reject_unknown: true };
            if contract.label(matched.operation) != format!("{method} {}", operation.path)
                || !contract.check_parameters(&matched, &head).is_empty()
            {
                refused += 1;
                continue;
            }
            let request = workload.requests.len();
            workload.requests.push((method.into_bytes(), target.clone().into_bytes()));
            let body = contract.request_body(matched.operation, Some(b"application/json"), true);
            let (BodyCheck::Json(schema) | BodyCheck::Required(Some(schema))) = body else { continue };
            let body = maker.follow(&own["requestBody"]);
            let Some(declared) = body.pointer("/content/application~1json/schema") else { continue };
            let small = maker.value(declared, 0);
            let large = maker.large(declared, LENGTH);
            for (list, body) in [(&mut workload.small, Some(small)), (&mut workload.bodies, large)] {
                let Some(body) = body.map(|body| serde_json::to_vec(&body).unwrap()) else { continue };
                if contract.check_body(schema, &body, false) == BodyResult::Valid {
                    list.push((request, body));
                }
            }
        }
    }
    eprintln!(
        "{} operations, {tried} requests made, {refused} of them not taken; {} small bodies, {} of about {LENGTH} bytes",
        compiled.operations.len(),
        workload.small.len(),
        workload.bodies.len()
    );
    workload
}
