//! Bans and the allowlist.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{
    Answer, BAN_SECONDS, Body, Caller, charged, charged_key, done, identity, key_or_text, millis, not_done, read, text,
};
use super::paging::Paging;
use super::{describe, shapes};
use crate::openapi::Routes;
use crate::query::Parameters;
use base::identity::Identity;
use fabric::Fabric;
use store::fabric::{Ban, BanQuery, Issued, MAX_BANS, MAX_RANGES};

/// The identity to ban, the duration and the reason.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct BanBody {
    /// The identity: `ip:<address>`, `ip:<CIDR>`, `apikey:<id>`, `user:<name>` or `ja4:<TLS fingerprint>`. An IPv6 address means
    /// the network that identifies its callers (`global-config.identity.ipv6_prefix`); with `/128` it is the address alone. A
    /// fingerprint is that of everyone who uses the same software.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The duration in seconds, 1 to 315360000. Default 3600.
    duration_seconds: Option<u64>,
    /// The reason, at most 2000 characters.
    reason: Option<String>,
}

/// The ban to extend, and by how much.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ExtendBody {
    /// The identity.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The extension in seconds, 1 to 315360000. Default 3600.
    duration_seconds: Option<u64>,
}

/// The ban to lift.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct UnbanBody {
    /// The identity.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// Whether every ban is lifted.
    all: bool,
}

/// The identity to put on the allowlist.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct AllowBody {
    /// The identity: `ip:<address>`, `ip:<CIDR>`, `apikey:<id>` or `user:<name>`.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The reason, at most 2000 characters.
    reason: Option<String>,
    /// Whether an existing ban is lifted. Default true.
    unban: Option<bool>,
    /// The duration in seconds, 1 to 315360000; null means without end.
    duration_seconds: Option<u64>,
}

/// The entry of the allowlist to remove.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DisallowBody {
    /// The identity.
    #[serde(rename = "ref")]
    reference: Option<String>,
}

pub(super) fn routes() -> Routes<Fabric> {
    Routes::new()
        .on(describe::bans(), bans)
        .on(describe::allowlist(), allowlist)
        .on(describe::ban(), ban)
        .on(describe::extend(), extend)
        .on(describe::unban(), unban)
        .on(describe::allow(), allow)
        .on(describe::disallow(), disallow)
        .schema::<BanBody>()
        .schema::<ExtendBody>()
        .schema::<UnbanBody>()
        .schema::<AllowBody>()
        .schema::<DisallowBody>()
}

async fn bans(State(fabric): State<Fabric>, parameters: Parameters) -> Answer {
    let paging = Paging::read(parameters, &["ref", "reason", "issued_by", "text"])?;
    let text = |field: &str| paging.filter(field).map(ToOwned::to_owned);
    let query = BanQuery {
        key: paging.filter("ref").map(|wanted| charged_key(&fabric, wanted)),
        reason: text("reason"),
        issued_by: text("issued_by"),
        search: paging.search(|typed| charged(&fabric, Some(typed))),
        skip: u64::try_from(paging.skip()).unwrap_or(u64::MAX),
        take: u64::try_from(paging.size()).unwrap_or(u64::MAX),
    };
    let page = fabric.store().bans_page(fabric.now(), query).await?;
    let total = usize::try_from(page.total).unwrap_or(usize::MAX);
    Ok(paging.answer("bans", page.bans.iter().map(shapes::ban), total))
}

async fn allowlist(State(fabric): State<Fabric>, parameters: Parameters) -> Answer {
    let paging = Paging::read(parameters, &["ref", "reason", "added_by", "text"])?;
    let mut entries = fabric.store().allowlist(fabric.now()).await?;
    let reference = paging.filter("ref").map(|wanted| key_or_text(identity(Some(wanted)), wanted));
    let (reason, by) = (paging.filter("reason"), paging.filter("added_by"));
    let search = paging.search(|typed| identity(Some(typed)));
    entries.retain(|entry| {
        search
            .as_ref()
            .is_none_or(|search| search.is_of(&entry.key) || search.is_in_any([&*entry.reason, &*entry.added_by]))
            && reference.as_ref().is_none_or(|wanted| entry.key == *wanted)
            && reason.is_none_or(|wanted| entry.reason == wanted)
            && by.is_none_or(|wanted| entry.added_by == wanted)
    });
    let total = entries.len();
    Ok(paging.answer("entries", paging.cut(entries).map(|entry| shapes::allowance(&entry)), total))
}

async fn ban(State(fabric): State<Fabric>, Caller(actor): Caller, body: Body) -> Answer {
    let parse = |body: BanBody| {
        let millis = millis(body.duration_seconds.unwrap_or(BAN_SECONDS))?;
        Ok((charged(&fabric, body.reference.as_deref())?, millis, text(body.reason)?))
    };
    let (identity, millis, reason): (Identity, u64, String) = match read(body).and_then(parse) {
        Ok(asked) => asked,
        Err(error) => return not_done(&error),
    };
    match fabric.ban(&actor, &identity, millis, &reason).await? {
        Issued::Live(ban) => done(live(&fabric, &ban)),
        Issued::Allowlisted(entry) => {
            let error = format!("{identity} is on the allowlist");
            let refused = json!({
                "done": false, "refused": "allowlisted", "error": error, "allowlist": shapes::allowance(&entry),
            });
            Ok(Json(refused).into_response())
        }
        Issued::Full if identity.is_range() => {
            not_done(&format!("there are {MAX_RANGES} bans on ranges already; lift one first"))
        }
        Issued::Full => not_done(&format!("there are {MAX_BANS} bans by hand already; lift one first")),
        Issued::Lifted(_) => not_done("the ban was lifted at the same time"),
    }
}

/// A ban by hand, and whether anything enforces it.
fn live(fabric: &Fabric, ban: &Ban) -> Value {
    let mut answer = json!({ "ban": shapes::ban(ban), "enforced": true });
    let unenforced = Identity::parse(&ban.key).ok().and_then(|identity| fabric.unenforced(&identity));
    if let (Some(reason), Some(fields)) = (unenforced, answer.as_object_mut()) {
        fields.insert("enforced".to_owned(), false.into());
        fields.insert("reason".to_owned(), reason.into());
    }
    answer
}

async fn extend(State(fabric): State<Fabric>, Caller(actor): Caller, body: Body) -> Answer {
    let parse = |body: ExtendBody| {
        let exact = identity(body.reference.as_deref())?;
        let charged = charged(&fabric, body.reference.as_deref())?;
        Ok((charged, exact, millis(body.duration_seconds.unwrap_or(BAN_SECONDS))?))
    };
    let (identity, exact, millis): (Identity, Identity, u64) = match read(body).and_then(parse) {
        Ok(asked) => asked,
        Err(error) => return not_done(&error),
    };
    let mut extended = fabric.extend(&actor, &identity, millis).await?;
    if extended.is_none() && exact != identity {
        extended = fabric.extend(&actor, &exact, millis).await?;
    }
    match extended {
        Some(ban) => done(live(&fabric, &ban)),
        None => not_done(&format!("there is no live ban on {identity}")),
    }
}

async fn unban(State(fabric): State<Fabric>, Caller(actor): Caller, body: Body) -> Answer {
    let asked = read(body).and_then(|body: UnbanBody| match (body.all, &body.reference) {
        (true, None) => Ok(None),
        (true, Some(_)) => Err("`ref` and `all` exclude each other".to_owned()),
        (false, reference) => Ok(Some((charged(&fabric, reference.as_deref())?, identity(reference.as_deref())?))),
    });
    match asked {
        Ok(Some((identity, exact))) => {
            fabric.unban(&actor, &identity).await?;
            if exact != identity {
                fabric.unban(&actor, &exact).await?;
            }
            let still = fabric.store().bans_on(fabric.now(), vec![exact.key()]).await?;
            let still = still.iter().filter(|ban| Identity::parse(&ban.key).is_ok_and(|held| held.covers(&exact)));
            let still: Vec<&str> = still.map(|ban| ban.key.as_str()).collect();
            done(json!({ "ref": shapes::reference(&identity.key()), "still_banned_by": still }))
        }
        Ok(None) => {
            let lifted = fabric.unban_all(&actor).await?;
            done(json!({ "removed": lifted.len() }))
        }
        Err(error) => not_done(&error),
    }
}

async fn allow(State(fabric): State<Fabric>, Caller(actor): Caller, body: Body) -> Answer {
    let parse = |body: AllowBody| {
        let millis = body.duration_seconds.map(millis).transpose()?;
        let whom = (identity(body.reference.as_deref())?, charged(&fabric, body.reference.as_deref())?);
        Ok((whom, text(body.reason)?, millis, body.unban.unwrap_or(true)))
    };
    type Asked = ((Identity, Identity), String, Option<u64>, bool);
    let ((identity, charged), reason, millis, unban): Asked = match read(body).and_then(parse) {
        Ok(asked) => asked,
        Err(error) => return not_done(&error),
    };
    match fabric.allow(&actor, &identity, &charged, &reason, millis, unban).await? {
        Some((entry, lifted)) => done(json!({
            "entry": shapes::allowance(&entry), "released": !lifted.is_empty(), "lifted": lifted,
        })),
        None => not_done("the allowlist is full; remove an entry first"),
    }
}

async fn disallow(State(fabric): State<Fabric>, Caller(actor): Caller, body: Body) -> Answer {
    match read(body).and_then(|body: DisallowBody| identity(body.reference.as_deref())) {
        Ok(identity) => {
            fabric.disallow(&actor, &identity).await?;
            done(json!({ "ref": shapes::reference(&identity.key()) }))
        }
        Err(error) => not_done(&error),
    }
}
