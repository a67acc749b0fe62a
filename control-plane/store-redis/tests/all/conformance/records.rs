//! Incidents, events to send and alerts.

use std::sync::Arc;

use store::alerts::{
    AlertNotes, Burst, CLOCK_SKEW, Claim, Forgotten, JUST_TOLD, MAX_BURST_PARTS, MAX_TOLD, MAX_WAITING, Told,
    WaitingAlert,
};
use store::fabric::{Ban, IncidentRow, Issued, MergeIncident, Note, Step, Workflow};
use store::{Kept, Store};

use super::{NOW, RULES, ban, charge, entry};

pub(crate) async fn incidents_and_their_states_come_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let row = |key: &str, json: &str| IncidentRow { key: key.into(), json: json.into() };
    let merge: MergeIncident = Arc::new(|kept, added| match kept {
        Some(kept) => format!("{{\"last_seen\":5,\"of\":[{kept},{added}]}}"),
        None => added.to_owned(),
    });
    let seen = |at: u64| format!("{{\"last_seen\":{at}}}");
    let added = vec![row("ip:a", "1"), row("ip:b", &seen(7)), row("ip:c", &seen(8))];
    assert_eq!(store.incidents_merge(added.clone(), Arc::clone(&merge), vec![]).await.unwrap(), added);
    // One that was seen since it was found to be silent stays.
    let removed = vec![("ip:b".into(), 7), ("ip:c".into(), 7), ("ip:d".into(), 7)];
    let merged = store.incidents_merge(vec![row("ip:a", "2")], merge, removed).await.unwrap();
    assert_eq!(merged, [row("ip:a", "{\"last_seen\":5,\"of\":[1,2]}")]);
    let kept = [merged[0].clone(), row("ip:c", &seen(8))];
    let keys = ["ip:a", "ip:b", "ip:c"].map(str::to_owned).to_vec();
    assert_eq!(store.incidents_of(keys).await.unwrap(), kept);
    let state = |key: &str, at| Workflow {
        key: key.into(),
        state: "resolved".into(),
        by: "alice".into(),
        at,
        note: "n".into(),
    };
    for workflow in [state("ip:a", NOW), state("ip:b", NOW + 5), state("ip:c", NOW + 9)] {
        store.workflow_put(workflow, Note::none()).await.unwrap();
    }
    store.workflows_clear(vec![("ip:a".into(), NOW), ("ip:b".into(), NOW + 4)], Note::none()).await.unwrap();
    let store = reopened(store).await;
    assert_eq!(store.incidents("", 9).await.unwrap(), kept);
    assert_eq!(store.incidents("", 1).await.unwrap(), kept[..1]);
    assert_eq!(store.incidents("ip:a", 1).await.unwrap(), kept[1..]);
    assert_eq!(store.incidents("ip:c", 9).await.unwrap(), []);
    assert_eq!(store.workflows().await.unwrap(), [state("ip:b", NOW + 5), state("ip:c", NOW + 9)]);
    store.fabric_sweep(NOW, NOW + 5).await.unwrap();
    assert_eq!(store.workflows().await.unwrap(), [state("ip:c", NOW + 9)]);
}

/// Every change with a note; each is kept with the change and with no other outcome than the real one.
pub(crate) async fn what_is_to_be_sent_of_a_change_is_kept_with_it(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    fn note<T: std::fmt::Debug>(what: &'static str) -> Note<T> {
        Note::new(move |outcome: &T| vec![format!("{what} {outcome:?}")])
    }
    let key = "user:ada";
    #[allow(clippy::ptr_arg, reason = "a note is given the outcome as it is")]
    fn issued(all: &Vec<Issued>) -> Vec<String> {
        all.iter().map(|one| format!("ban {}", matches!(one, Issued::Live(_)))).collect()
    }
    let bans = |key: &str| vec![ban(key, NOW, NOW + 100, true), ban("user:bob", NOW, NOW + 100, true)];
    store.bans_issue(bans(key), NOW, Note::new(issued)).await.unwrap();
    let step = Step { at: NOW, action: "extend".into(), ..Step::default() };
    let extended = Note::new(|ban: &Option<Ban>| vec![format!("extend {:?}", ban.as_ref().map(|ban| ban.until))]);
    store.ban_extend(key, 5, step, extended).await.unwrap();
    store.ban_lift(key, NOW, note("lift")).await.unwrap();
    store.ban_lift(key, NOW, note("lift")).await.unwrap();
    store.bans_lift_all(NOW, note("all")).await.unwrap();
    store.allow(entry(key, None), "", true, note("allow")).await.unwrap();
    store.bans_issue(bans(key), NOW + 1, Note::new(issued)).await.unwrap();
    store.disallow(key, NOW, note("disallow")).await.unwrap();
    let promoted = |all: &Vec<_>| vec![format!("promoted {}", all.len())];
    store.ledger_charge(charge(key, 50.0, NOW), RULES, NOW, Note::new(promoted)).await.unwrap();
    store.ledger_forget(key, note("forget")).await.unwrap();
    let workflow = Workflow { key: key.into(), state: "resolved".into(), at: NOW, ..Workflow::default() };
    store.workflow_put(workflow, note("state")).await.unwrap();
    store.workflows_clear(vec![(key.into(), NOW)], note("clear")).await.unwrap();
    store.ban_lift("user:absent", NOW, Note::new(|_| Vec::new())).await.unwrap();

    let store = reopened(store).await;
    let kept = store.kept_events(0).await.unwrap();
    let texts: Vec<&str> = kept.iter().map(|kept| kept.event.as_str()).collect();
    let until = format!("extend Some({})", NOW + 105);
    let expected = [
        "ban true",
        "ban true",
        &until,
        "lift true",
        "lift false",
        "all [\"user:bob\"]",
        "allow Some([])",
        "ban false",
        "ban true",
        "disallow true",
        "promoted 0",
        "forget true",
        "state ()",
        "clear ()",
    ];
    assert_eq!(texts, expected);
    let third = kept[2].clone();
    assert_eq!(store.kept_events(third.number).await.unwrap(), kept[3..], "those with a higher number");
    let others = [Kept { event: "another".to_owned(), ..third.clone() }, Kept { number: 1 << 40, ..third.clone() }];
    for other in others {
        store.kept_events_told(other).await.unwrap();
        assert_eq!(store.kept_events(0).await.unwrap(), kept, "what was told is of another history");
    }
    store.kept_events_told(third).await.unwrap();
    assert_eq!(store.kept_events(0).await.unwrap(), kept[3..]);
}

pub(crate) async fn what_alert_rules_have_told_and_what_waits_comes_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let told = |rule: &str, subject: &str, at| Told { rule: rule.into(), subject: subject.into(), at };
    let waiting = |id: &str, at| WaitingAlert { id: id.into(), at, json: format!("{{\"id\":\"{id}\"}}") };
    let claim = |rule: &str, subject: &str, id: &str, at| Claim {
        told: told(rule, subject, at),
        cooldown: 10_000,
        message: waiting(id, at),
    };
    let note = async |forgotten: Vec<(&str, &str, u64)>, claims: Vec<Claim>| {
        let forgotten = forgotten.into_iter().map(|(rule, subject, at)| Forgotten {
            rule: rule.into(),
            subject: subject.into(),
            at,
        });
        store.alerts_note(AlertNotes { forgotten: forgotten.collect(), claims }).await.unwrap()
    };
    let first = vec![claim("r", "b", "m2", NOW + 1), claim("r", "a", "m1", NOW), claim("s", "a", "m3", NOW + 2)];
    assert_eq!(note(vec![], first).await, [None, None, None]);
    // Of two that tell of the same one is the first, also where the clock of the other is a little behind.
    let again =
        vec![claim("r", "a", "x", NOW + 9_999), claim("r", "a", "y", NOW - CLOCK_SKEW), claim("q", "a", "m4", NOW)];
    assert_eq!(note(vec![], again).await, [Some(NOW), Some(NOW), None]);
    let later = vec![claim("r", "a", "m5", NOW + 10_000), claim("q", "a", "m6", NOW - CLOCK_SKEW - 1)];
    assert_eq!(note(vec![], later).await, [None, None], "the cooldown has passed; a clock was set back");
    // It was opened again: told once more, by one of two that have seen it.
    let at = NOW + 5_000;
    let reopens = vec![("s", "a", at), ("r", "b", NOW + JUST_TOLD)];
    let claims = vec![claim("s", "a", "m7", at), claim("r", "b", "z", at)];
    assert_eq!(note(reopens.clone(), claims).await, [None, Some(NOW + 1)], "what was just told is not forgotten");
    assert_eq!(note(reopens, vec![claim("s", "a", "w", at + 1)]).await, [Some(at)]);
    store.alerts_settle(["m1", "m2", "m3", "m4", "m6", "never"].map(str::to_owned).to_vec()).await.unwrap();
    let kept = WaitingAlert { json: "{}".into(), ..waiting("m7", at) };
    store.alerts_keep(vec![kept.clone(), waiting("m1", at)]).await.unwrap();
    let store = reopened(store).await;
    let expected = [
        told("q", "a", NOW - CLOCK_SKEW - 1),
        told("r", "b", NOW + 1),
        told("s", "a", at),
        told("r", "a", NOW + 10_000),
    ];
    assert_eq!(store.alerts_told().await.unwrap(), expected);
    assert_eq!(store.alerts_waiting().await.unwrap(), [kept, waiting("m5", NOW + 10_000)]);
    store.alerts_sweep(at).await.unwrap();
    assert_eq!(store.alerts_told().await.unwrap(), expected[3..]);

    let claims = (0..=MAX_TOLD).map(|at| claim("r", &at.to_string(), &at.to_string(), at.into())).collect();
    store.alerts_note(AlertNotes { claims, ..AlertNotes::default() }).await.unwrap();
    let (told, waiting) = (store.alerts_told().await.unwrap(), store.alerts_waiting().await.unwrap());
    assert_eq!((told.len(), waiting.len()), (MAX_TOLD as usize, MAX_WAITING as usize), "the oldest went");
    assert_eq!((told[0].at, waiting[0].at), (2, u64::from(MAX_TOLD - MAX_WAITING) + 3));
}

pub(crate) async fn the_events_of_a_burst_are_counted_together(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let burst = |added: &[(u64, u64)], since| Burst { rule: "r".into(), window: 1000, added: added.to_vec(), since };
    assert_eq!(store.alerts_burst(burst(&[(10, 1), (20, 2)], 0)).await.unwrap(), [(10, 1), (20, 2)]);
    assert_eq!(store.alerts_burst(burst(&[(20, 5), (15, 1)], 0)).await.unwrap(), [(10, 1), (15, 1), (20, 7)]);
    let store = reopened(store).await;
    assert_eq!(store.alerts_burst(burst(&[], 11)).await.unwrap(), [(15, 1), (20, 7)]);
    assert_eq!(
        store.alerts_burst(burst(&[(20, u64::MAX)], 20)).await.unwrap(),
        [(20, u64::MAX)],
        "it does not begin anew"
    );
    let other = Burst { window: 2000, ..burst(&[(30, 1)], 0) };
    assert_eq!(store.alerts_burst(other).await.unwrap(), [(30, 1)], "another window");
    store.alerts_sweep(29).await.unwrap();
    let many: Vec<_> = (31..31 + MAX_BURST_PARTS as u64).map(|begin| (begin, 1)).collect();
    let counted = store.alerts_burst(Burst { window: 2000, ..burst(&many, 0) }).await.unwrap();
    assert_eq!((counted.len(), counted[0].0), (MAX_BURST_PARTS, 31), "the oldest went");
    store.alerts_sweep(u64::from(u32::MAX)).await.unwrap();
    assert_eq!(store.document_names("alerts/").await.unwrap(), Vec::<String>::new());
}
