//! Incidents, events to send and alerts.

use std::sync::Arc;

use store::Store;
use store::alerts::{AlertNotes, MAX_TOLD, MAX_WAITING, Told, WaitingAlert};
use store::fabric::{Ban, IncidentRow, Issued, Note, Step, Workflow};

use super::{NOW, RULES, ban, charge, entry};

pub(crate) async fn incidents_and_their_states_come_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let row = |key: &str, json: &str| IncidentRow { key: key.into(), json: json.into() };
    store.incidents_write(vec![row("ip:a", "1"), row("ip:b", "1")], vec![]).await.unwrap();
    store.incidents_write(vec![row("ip:a", "2")], vec!["ip:b".into()]).await.unwrap();
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
    assert_eq!(store.incidents().await.unwrap(), [row("ip:a", "2")]);
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
    let third = kept[2].number;
    assert_eq!(store.kept_events(third).await.unwrap(), kept[3..], "those with a higher number");
    store.kept_events_told(third).await.unwrap();
    assert_eq!(store.kept_events(0).await.unwrap(), kept[3..]);
}

pub(crate) async fn what_alert_rules_have_told_and_what_waits_comes_back(
    store: Arc<dyn Store>,
    reopened: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    let told = |rule: &str, subject: &str, at| Told { rule: rule.into(), subject: subject.into(), at };
    let waiting = |id: &str, at| WaitingAlert { id: id.into(), at, json: format!("{{\"id\":\"{id}\"}}") };
    let first = AlertNotes {
        told: vec![told("r", "a", NOW), told("r", "b", NOW + 1), told("s", "a", NOW + 2)],
        waiting: vec![waiting("m2", NOW + 1), waiting("m1", NOW)],
        ..AlertNotes::default()
    };
    store.alerts_note(first).await.unwrap();
    let second = AlertNotes {
        // Told again within one look, after it was reopened.
        forgotten: vec![("r".into(), "b".into()), ("s".into(), "a".into())],
        told: vec![told("r", "a", NOW + 9), told("s", "a", NOW + 7)],
        waiting: vec![waiting("m3", NOW + 9)],
    };
    store.alerts_note(second).await.unwrap();
    store.alerts_settle(vec!["m1".into(), "never".into()]).await.unwrap();
    let store = reopened(store).await;
    assert_eq!(store.alerts_told().await.unwrap(), [told("s", "a", NOW + 7), told("r", "a", NOW + 9)]);
    assert_eq!(store.alerts_waiting().await.unwrap(), [waiting("m2", NOW + 1), waiting("m3", NOW + 9)]);
    store.alerts_sweep(NOW + 7).await.unwrap();
    assert_eq!(store.alerts_told().await.unwrap(), [told("r", "a", NOW + 9)]);

    let many = AlertNotes {
        told: (0..=MAX_TOLD).map(|at| told("r", &at.to_string(), at.into())).collect(),
        waiting: (0..=MAX_WAITING).map(|at| waiting(&at.to_string(), at.into())).collect(),
        ..AlertNotes::default()
    };
    store.alerts_note(many).await.unwrap();
    let (told, waiting) = (store.alerts_told().await.unwrap(), store.alerts_waiting().await.unwrap());
    assert_eq!((told.len(), waiting.len()), (MAX_TOLD as usize, MAX_WAITING as usize), "the oldest went");
    assert_eq!((told[0].at, waiting[0].at), (2, 3));
}
