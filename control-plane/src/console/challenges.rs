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
use super::{Console, NAMESPACE};
use crate::entities::{ChallengeKind, ChallengeProvider, Entity};
use crate::openapi::{Group, JSON, Operation, Routes, reference};

/// The bytes of a body, at most.
const MAX_BODY: usize = 16 * 1024;

/// A widget that is known, as far as its settings are the same for everybody.
struct Preset {
    id: &'static str,
    name: &'static str,
    widget_script_url: &'static str,
    /// Where the widget's place in a page carries its public key: `{site_key}`.
    widget_html: &'static str,
    response_field: &'static str,
    verify_url: &'static str,
    /// How its verification is called.
    verify_format: &'static str,
    homepage: &'static str,
    notes: &'static str,
}

const PRESETS: [Preset; 4] = [
    Preset {
        id: "friendly-captcha",
        name: "Friendly Captcha",
        widget_script_url: "https://cdn.jsdelivr.net/npm/friendly-challenge/widget.min.js",
        widget_html: "<div class=\"frc-captcha\" data-sitekey=\"{site_key}\"></div>",
        response_field: "frc-captcha-solution",
        verify_url: "https://api.friendlycaptcha.com/api/v1/siteverify",
        verify_format: "json",
        homepage: "https://friendlycaptcha.com",
        notes: "Give it the site key and the API key of your account.",
    },
    Preset {
        id: "captcha-eu",
        name: "captcha.eu",
        widget_script_url: "",
        widget_html: "",
        response_field: "",
        verify_url: "",
        verify_format: "json",
        homepage: "https://www.captcha.eu",
        notes: "Script, widget, field and verification depend on the account: take them from its dashboard.",
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
        notes: "Give it the site key and the secret of your account. Its verification takes forms only.",
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
            "widget_html": { "type": "string", "description": "`{site_key}` stands for the public key." },
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
    use crate::entities::CHALLENGE_PRESETS;

    #[test]
    fn every_preset_that_a_provider_can_name_is_here() {
        assert_eq!(PRESETS.each_ref().map(|preset| preset.id), CHALLENGE_PRESETS);
    }
}
