//! The console's endpoint: a test of a scanner.

use std::time::Duration;

use kit::{
    BodyKind, BodyRefusal, NamedSchema, Operation, OperationAnswer, OperationAudit, OperationBody, OperationContext,
    OperationGroup, OperationMethod, References, View, unsaved,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::scanner::Scanner;
use super::{Scanners, Verdict};
use crate::control::MalwareScanner;

/// How long each of the two files may take.
const PATIENCE: Duration = Duration::from_secs(12);
/// The standard antivirus test file (EICAR), in two parts: scanners of source trees look for the whole.
const EICAR: [&str; 2] = [r"X5O!P%@AP[4\PZX54(P^)7CC)7}$", "EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"];
const GROUP: OperationGroup = OperationGroup {
    name: "uploads",
    about: "Scanners of uploaded files. Calls that fail are answered with 200 too, `done` being false.",
};
const FAILED: NamedSchema = NamedSchema { name: "ScannerTestFailed", schema: failed_schema };
const VERDICT: NamedSchema = NamedSchema { name: "ScanVerdict", schema: verdict_schema };

/// The operations of the plugin.
pub(in super::super) const OPERATIONS: &[Operation] = &[Operation {
    path: "/security/_scanner_test",
    method: OperationMethod::Post,
    id: "scannerTest",
    group: &GROUP,
    summary: "Test a malware scanner",
    description: "Sends the standard antivirus test file, which must come back infected, and a plain file, which must come back clean. `done` says \
                  whether both did.",
    body: BodyKind::of::<ScannerTestBody>(),
    body_text: "A scanner that is stored, by its `id`, or one that is not, as `scanner`. At most 16 KiB.",
    max_body: 16 << 10,
    example: || json!({ "id": "malware-scanner_clam" }),
    answer_text: "What came back, or why nothing was sent.",
    answer: answer_schema,
    schemas: &[VERDICT],
    refusal: Some(BodyRefusal { as_done: true, schema: FAILED, conflict: None, answer: failed }),
    busy: "other scanners are being tested",
    at_once: false,
    audit: Some(OperationAudit {
        action: "scanner-test",
        of: |body| body.get("id").and_then(Value::as_str).map(|id| format!("malware-scanners/{id}")),
        detail: |answer| {
            let of = |file: &str| answer.get(file)?.get("verdict")?.as_str().map(str::to_owned);
            Some(format!("test file {}, plain file {}", of("eicar")?, of("clean")?))
        },
    }),
}];

/// A scanner.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScannerTestBody {
    /// The id of a scanner.
    #[serde(default)]
    id: Option<String>,
    /// A scanner that is not stored.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    scanner: Option<Value>,
}

/// A scanner refers to nothing.
struct NoReferences;

impl References for NoReferences {
    fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
        None
    }
}

impl OperationBody for ScannerTestBody {
    const SCHEMA: &'static str = "ScannerTestBody";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let definition = match self.definition(context) {
            Ok(definition) => definition,
            Err(why) => return OperationAnswer::Done(failed(&why)),
        };
        let outbound = context.runtime::<Scanners>().and_then(|scanners| scanners.outbound());
        let (Some(outbound), Ok(runtime)) = (outbound, tokio::runtime::Handle::try_current()) else {
            return OperationAnswer::Done(failed("this control plane calls no scanners"));
        };
        let scanner = Scanner::new(definition, outbound);
        let test_file = EICAR.concat();
        let (eicar, clean) = runtime.block_on(async {
            tokio::join!(
                scanner.scan(test_file.as_bytes(), PATIENCE),
                scanner.scan(b"a plain text without anything in it\n", PATIENCE)
            )
        });
        let done = matches!((&eicar, &clean), (Ok(Verdict::Infected(_)), Ok(Verdict::Clean)));
        OperationAnswer::Done(json!({ "done": done, "eicar": shown(eicar), "clean": shown(clean) }))
    }
}

impl ScannerTestBody {
    fn definition(self, context: &OperationContext<'_>) -> Result<MalwareScanner, String> {
        match (self.id, self.scanner) {
            (Some(_), Some(_)) => Err("`id` and `scanner` exclude each other".to_owned()),
            (Some(id), None) => {
                let item = View::new(context.entities).get::<MalwareScanner>(&id);
                item.map(|item| item.body.clone()).ok_or_else(|| {
                    let shown: String = id.chars().take(128).collect();
                    format!("there is no malware scanner `{}`", shown.escape_debug())
                })
            }
            (None, Some(scanner)) => {
                let item = unsaved::<MalwareScanner>(scanner, &NoReferences);
                item.map(|item| item.body).map_err(|problem| format!("invalid scanner: {problem}"))
            }
            (None, None) => Err("no scanner provided: `scanner` or `id` is expected".to_owned()),
        }
    }
}

fn shown(outcome: Result<Verdict, String>) -> Value {
    match outcome {
        Ok(Verdict::Clean) => json!({ "verdict": "clean" }),
        Ok(Verdict::Infected(threat)) => json!({ "verdict": "infected", "threat": threat }),
        Err(reason) => json!({ "verdict": "failed", "reason": reason }),
    }
}

fn failed(error: &str) -> Value {
    json!({ "done": false, "error": error })
}

fn failed_schema() -> Value {
    let properties = json!({ "done": { "const": false }, "error": { "type": "string" } });
    json!({ "type": "object", "required": ["done", "error"], "properties": properties })
}

fn verdict_schema() -> Value {
    json!({
        "type": "object",
        "required": ["verdict"],
        "properties": {
            "verdict": { "enum": ["clean", "infected", "failed"] },
            "threat": { "type": "string", "description": "What was found." },
            "reason": { "type": "string", "description": "Why there is no verdict." },
        },
    })
}

fn answer_schema() -> Value {
    let properties =
        json!({ "done": { "type": "boolean" }, "eicar": VERDICT.reference(), "clean": VERDICT.reference() });
    let done = json!({ "type": "object", "required": ["done", "eicar", "clean"], "properties": properties });
    json!({ "anyOf": [done, failed_schema()] })
}
