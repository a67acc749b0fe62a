//! `security/_challenge_presets` and `security/_challenge_from_preset`: widgets of others as challenge providers.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::body::{self, Body};
use super::state::Console;
use crate::names::NAMESPACE;
use crate::openapi::{Group, JSON, Operation, Routes, reference};
use entities::Entity;
use policies::{ChallengeKind, ChallengeProvider};

/// The bytes of a body, at most.
const MAX_BODY: usize = 16 * 1024;

/// A widget that is known, with the settings that are the same for all users.
struct Preset {
    id: &'static str,
    name: &'static str,
    widget_script_url: &'static str,
    /// The widget's HTML in a page. `{site_key}`, `{lang}` and `{nonce}` are replaced.
    widget_html: &'static str,
    response_field: &'static str,
    verify_url: &'static str,
    /// What its verification takes: `form` stands for forms alone.
    verify_format: &'static str,
    homepage: &'static str,
    notes: &'static str,
}

const PRESETS: [Preset; 4] = [
    Preset {
        id: "friendly-captcha",
        name: "Friendly Captcha",
        // One release: what is behind an address without a number changes without a word.
        widget_script_url: "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/widget.min.js",
        widget_html: "<div class=\"frc-captcha\" data-sitekey=\"{site_key}\" data-start=\"auto\" data-lang=\"{lang}\"></div>",
        response_field: "frc-captcha-solution",
        verify_url: "https://api.friendlycaptcha.com/api/v1/siteverify",
        verify_format: "json",
        homepage: "https://friendlycaptcha.com",
        notes: "Give it the site key and the API key of your account. This is its first generation; for the endpoint in the \
                EU add data-puzzle-endpoint to the HTML and change the address of the verification.",
    },
    Preset {
        id: "captcha-eu",
        name: "captcha.eu",
        widget_script_url: "",
        widget_html: "<input type=\"hidden\" name=\"captcha_at_solution\" id=\"captcha_at_solution\">\
                      <div class=\"cpt_widget\" data-key=\"{site_key}\" data-language-force=\"{lang}\" \
                      data-field-selector=\"#captcha_at_solution\"></div>\
                      <script nonce=\"{nonce}\">addEventListener(\"load\",function(){KROT.init()})</script>",
        response_field: "captcha_at_solution",
        verify_url: "",
        verify_format: "json",
        homepage: "https://www.captcha.eu",
        notes: "Script and verification depend on the account: take their addresses from its dashboard. The public key is the \
                site key, the REST key the secret key.",
    },
    Preset {
        id: "turnstile",
        name: "Cloudflare Turnstile",
        widget_script_url: "https://challenges.cloudflare.com/turnstile/v0/api.js",
        widget_html: "<div class=\"cf-turnstile\" data-sitekey=\"{site_key}\"></div>",
        response_field: "cf-turnstile-response",
        verify_url: "https://challenges.cloudflare.com/turnstile/v0/siteverify",
        verify_format: "json",
        homepage: "https://www.cloudflare.com/products/turnstile/",
        notes: "Give it the site key and the secret key of the widget.",
    },
    Preset {
        id: "hcaptcha",
        name: "hCaptcha",
        widget_script_url: "https://js.hcaptcha.com/1/api.js",
        widget_html: "<div class=\"h-captcha\" data-sitekey=\"{site_key}\"></div>",
        response_field: "h-captcha-response",
        verify_url: "https://api.hcaptcha.com/siteverify",
        verify_format: "form",
        homepage: "https://www.hcaptcha.com",
        notes: "Set the site key and the secret of your account. Its verification accepts only forms.",
    },
];

/// The preset to build a provider from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FromPreset {
    /// Its id, such as `turnstile`.
    preset: String,
}

pub(super) fn router() -> Routes<Console> {
    Routes::new()
        .on(describe_presets(), presets)
        .on(describe_from_preset(), from_preset)
        .schema::<FromPreset>()
        .layered(|router| router.layer(DefaultBodyLimit::max(MAX_BODY)))
}

async fn presets() -> Response {
    Json(json!({ "entries": PRESETS.iter().map(entry).collect::<Vec<_>>() })).into_response()
}

async fn from_preset(State(_): State<Console>, headers: HeaderMap, body: Body) -> Response {
    // A call that fails is answered with 200 too, `done` being false.
    let fail = |error: &str| Json(json!({ "done": false, "error": error })).into_response();
    if body.as_ref().is_ok_and(|body| body.trim_ascii().is_empty()) {
        return fail("no body");
    }
    let FromPreset { preset } = match body::read(&headers, body) {
        Ok(body) => body,
        Err(problem) if problem.error == "invalid_json" => return fail("invalid json body"),
        Err(problem) => return fail(&problem.description),
    };
    match PRESETS.iter().find(|known| known.id == preset) {
        Some(preset) => Json(json!({ "done": true, "provider": provider(preset) })).into_response(),
        None => fail("unknown preset"),
    }
}

fn entry(preset: &Preset) -> Value {
    json!({
        "id": preset.id,
        "name": preset.name,
        "kind": "vendor",
        "widget_script_url": preset.widget_script_url,
        "widget_html": preset.widget_html,
        "response_field": preset.response_field,
        "verify_url": preset.verify_url,
        "verify_format": preset.verify_format,
        "homepage": preset.homepage,
        "notes": preset.notes,
    })
}

/// A provider that can be saved as it is. It is not enabled: its keys are missing.
fn provider(preset: &Preset) -> Value {
    let body = ChallengeProvider {
        enabled: false,
        kind: ChallengeKind::Vendor,
        preset_ref: Some(preset.id.to_owned()),
        widget_script_url: preset.widget_script_url.to_owned(),
        widget_html: preset.widget_html.to_owned(),
        response_field: preset.response_field.to_owned(),
        verify_url: preset.verify_url.to_owned(),
        ..ChallengeProvider::default()
    };
    let mut provider = json!({
        "id": format!("{}_{}", ChallengeProvider::KIND, Uuid::new_v4()),
        "name": preset.name,
        "description": preset.notes,
        "tags": [],
        "metadata": {},
    });
    let fields = serde_json::to_value(body).unwrap_or_default();
    if let (Some(provider), Value::Object(fields)) = (provider.as_object_mut(), fields) {
        provider.extend(fields);
    }
    provider
}

fn group() -> Group {
    let about = "What the threat fabric has at hand. Calls that fail are answered with 200 too, `done` being false.";
    Group { name: "console: security".to_owned(), about: about.to_owned() }
}

fn describe_presets() -> Operation {
    let text = || json!({ "type": "string" });
    let entry = json!({
        "type": "object",
        "required": ["id", "name", "kind", "widget_script_url", "widget_html", "response_field", "verify_url",
                     "verify_format", "homepage", "notes"],
        "properties": {
            "id": text(), "name": text(), "kind": { "const": "vendor" }, "widget_script_url": text(),
            "widget_html": {
                "type": "string",
                "description": "`{site_key}` is replaced by the public key, `{lang}` by the language of the page, `{nonce}` by the nonce of its policy.",
            },
            "response_field": text(), "verify_url": text(), "verify_format": { "enum": ["form", "json"] },
            "homepage": text(), "notes": text(),
        },
    });
    let answer = json!({
        "type": "object",
        "required": ["entries"],
        "properties": { "entries": { "type": "array", "items": entry } },
    });
    operation(
        Method::GET,
        "_challenge_presets",
        "challengePresets",
        "Widgets that challenge providers can be built from",
    )
    .answers(StatusCode::OK, "The presets.", answer)
}

fn describe_from_preset() -> Operation {
    let done = json!({
        "type": "object",
        "required": ["done", "provider"],
        "properties": {
            "done": { "const": true },
            "provider": { "type": "object", "description": "A challenge provider; not saved, and not enabled." },
        },
    });
    let failed = json!({
        "type": "object",
        "required": ["done", "error"],
        "properties": { "done": { "const": false }, "error": { "type": "string" } },
    });
    operation(Method::POST, "_challenge_from_preset", "challengeFromPreset", "Build a challenge provider from a preset")
        .takes("The preset.", [(JSON, reference("FromPreset"))])
        .example(json!({ "preset": "turnstile" }))
        .answers(StatusCode::OK, "The provider, or why there is none.", json!({ "anyOf": [done, failed] }))
}

fn operation(method: Method, below: &str, id: &str, summary: &str) -> Operation {
    Operation::new(method, format!("{NAMESPACE}/security/{below}"), format!("console.{id}"), group(), summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use compiler::{Compiler, Settings};
    use entities::EntitySet;
    use policies::CHALLENGE_PRESETS;

    #[test]
    fn every_preset_that_a_provider_can_name_is_here() {
        assert_eq!(PRESETS.each_ref().map(|preset| preset.id), CHALLENGE_PRESETS);
    }

    #[test]
    fn every_preset_can_be_presented_once_it_has_its_keys() {
        for preset in &PRESETS {
            let mut provider = provider(preset);
            let given = [
                ("kind", "vendor"),
                ("id", "w"),
                ("secret", "s"),
                ("site_key", "public"),
                ("secret_key", "hunter2"),
                // What only the account knows.
                ("widget_script_url", "https://vendor.example/sdk.js"),
                ("verify_url", "https://vendor.example/validate"),
            ];
            for (field, value) in given {
                let is_empty = provider[field].as_str().is_none_or(str::is_empty);
                if is_empty || field == "id" {
                    provider[field] = json!(value);
                }
            }
            provider["enabled"] = json!(true);
            let folder = tempfile::tempdir().unwrap();
            let tiers = json!([{ "min_score": 40, "action": "challenge" }]);
            let policy = json!({ "kind": "threat-policy", "id": "p", "tiers": tiers, "challenge_provider": "w" });
            let config = json!({ "threat_policy": "p", "waf": false });
            let plugins = json!([{ "plugin": "SecuritySuitePreset", "config": config }]);
            let backend = json!({ "address": "127.0.0.1", "port": 1 });
            let route = json!({ "kind": "route", "id": "r", "name": "r", "backend": backend, "plugins": plugins });
            for (name, document) in [("w", &provider), ("p", &policy), ("r", &route)] {
                std::fs::write(folder.path().join(format!("{name}.json")), document.to_string()).unwrap();
            }
            let set = EntitySet::from_dir(folder.path()).unwrap_or_else(|problems| panic!("{problems:?}"));
            let compiled = Compiler::new(Settings::default()).compile(&set).unwrap();
            assert!(compiled.warnings.is_empty(), "{}: {:?}", preset.id, compiled.warnings);
        }
    }
}
