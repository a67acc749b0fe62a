//! A vendor's widget as a node presents it, and what a page with it must be allowed to load.

use axum::http::Uri;
use snapshot::Widget;

use crate::ChallengeProvider;
use kit::Item;

/// The widget of a provider of the kind `vendor`, or the field that it lacks. The key of the verification stays here.
pub(super) fn lower(provider: &Item<ChallengeProvider>) -> Result<Widget, String> {
    let id = &provider.head.id;
    let missing = [
        ("site_key", provider.site_key.is_empty()),
        ("secret_key", !provider.secret_key.is_set()),
        ("widget_script_url", provider.widget_script_url.is_empty()),
        ("widget_html", provider.widget_html.is_empty()),
        ("response_field", provider.response_field.is_empty()),
        ("verify_url", provider.verify_url.is_empty()),
    ];
    if let Some((field, _)) = missing.iter().find(|(_, missing)| *missing) {
        return Err(format!("the challenge provider `{id}` is a widget, and its `{field}` is empty"));
    }
    let sources = Sources::of(provider)
        .ok_or_else(|| format!("the challenge provider `{id}` has a `widget_script_url` that no policy can name"))?;
    Ok(Widget {
        site_key: provider.site_key.clone(),
        script_url: provider.widget_script_url.clone(),
        html: provider.widget_html.clone(),
        response_field: provider.response_field.clone(),
        script_sources: sources.script,
        style_sources: sources.style,
        frame_sources: sources.frame,
        connect_sources: sources.connect,
        computes: sources.computes,
    })
}

/// What the page's content security policy lets in for a widget.
struct Sources {
    script: Vec<String>,
    style: Vec<String>,
    frame: Vec<String>,
    connect: Vec<String>,
    /// Workers that the page makes itself, and WebAssembly.
    computes: bool,
}

impl Sources {
    /// What the vendor documents, where a preset names the vendor; else what is of the origin of its script. `None` where
    /// the script has no such origin.
    fn of(provider: &ChallengeProvider) -> Option<Self> {
        let origin = origin(&provider.widget_script_url)?;
        let all = |sources: &[&str]| sources.iter().map(|&source| source.to_owned()).collect::<Vec<_>>();
        match provider.preset_ref.as_deref() {
            // docs.hcaptcha.com: both for each of the four, because the names below them change.
            Some("hcaptcha") => {
                let both = all(&["https://hcaptcha.com", "https://*.hcaptcha.com"]);
                let mut script = both.clone();
                if !origin.ends_with("hcaptcha.com") {
                    script.push(origin);
                }
                Some(Self { script, style: both.clone(), frame: both.clone(), connect: both, computes: false })
            }
            // developer.friendlycaptcha.com/docs/v1/guides/csp: WebAssembly and workers from blobs. Its script comes from a
            // place where everybody publishes: that file alone. It puts its style into the page without a nonce, and
            // fetches its puzzles from one of two addresses.
            Some("friendly-captcha") => Some(Self {
                script: vec![exact(&provider.widget_script_url).unwrap_or(origin)],
                style: all(&["'unsafe-inline'"]),
                frame: Vec::new(),
                connect: all(&["https://api.friendlycaptcha.com", "https://eu-api.friendlycaptcha.eu"]),
                computes: true,
            }),
            // Its documents name no policy. Its script computes a proof of work, and styles what it shows.
            Some("captcha-eu") => {
                Some(Self { style: all(&["'unsafe-inline'"]), computes: true, ..Self::of_origin(origin) })
            }
            // developers.cloudflare.com/turnstile/reference/content-security-policy: the origin for scripts and frames.
            _ => Some(Self::of_origin(origin)),
        }
    }

    fn of_origin(origin: String) -> Self {
        let alone = vec![origin];
        Self { script: alone.clone(), style: Vec::new(), frame: alone.clone(), connect: alone, computes: false }
    }
}

/// Scheme, host and port of a URL; `None` where they could mean something else in a policy.
fn origin(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?.as_str());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    authority.bytes().all(plain).then(|| format!("{scheme}://{authority}"))
}

/// A URL without its query; `None` where its path could mean something else in a policy.
fn exact(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.-_@%~".contains(&byte);
    let origin = origin(url)?;
    (uri.path().len() > 1 && uri.path().bytes().all(plain)).then(|| format!("{origin}{}", uri.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_origins_that_cannot_end_a_directive() {
        assert_eq!(origin("https://a.example:8443/x?y#z").as_deref(), Some("https://a.example:8443"));
        assert_eq!(origin("http://[::1]:80/").as_deref(), Some("http://[::1]:80"));
        for wrong in ["https://a;b/", "https://a,b/", "https://a'b/", "/x", ""] {
            assert_eq!(origin(wrong), None, "{wrong}");
        }
        assert_eq!(exact("https://a/npm/w@1.2/w.js?x").as_deref(), Some("https://a/npm/w@1.2/w.js"));
        assert_eq!((exact("https://a/x;y"), exact("https://a/")), (None, None));
    }

    #[test]
    fn a_vendor_that_documents_its_policy_gets_that_one() {
        let of = |preset: Option<&str>, url: &str| {
            let provider = ChallengeProvider {
                preset_ref: preset.map(str::to_owned),
                widget_script_url: url.to_owned(),
                ..ChallengeProvider::default()
            };
            Sources::of(&provider).unwrap()
        };
        for preset in [None, Some("turnstile")] {
            let plain = of(preset, "https://challenges.example/turnstile/v0/api.js");
            for sources in [&plain.script, &plain.frame, &plain.connect] {
                assert_eq!(sources, &["https://challenges.example"]);
            }
            assert!(plain.style.is_empty() && !plain.computes);
        }
        let both = ["https://hcaptcha.com", "https://*.hcaptcha.com"];
        let hcaptcha = of(Some("hcaptcha"), "https://js.hcaptcha.com/1/api.js");
        assert_eq!([hcaptcha.script, hcaptcha.style, hcaptcha.frame, hcaptcha.connect], [both; 4]);
        let friendly = of(Some("friendly-captcha"), "https://cdn.example/npm/w@1/widget.min.js");
        assert_eq!(friendly.script, ["https://cdn.example/npm/w@1/widget.min.js"], "nothing else of that place");
        assert!(friendly.computes && friendly.frame.is_empty() && friendly.connect.len() == 2);
        assert!(of(Some("captcha-eu"), "https://www.captcha.example/sdk.js").computes);
    }
}
