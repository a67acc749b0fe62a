//! Answers that a plugin has given in the backend's place.

use exchange::{BuildPlugin, Refusal, Reply};

use super::*;

struct Refuses;

impl Plugin for Refuses {
    fn request(&self, _exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Refuse(Refusal::new(403, Category::Threat, "a rule matched"))
    }
}

struct RefusesAccess;

impl Plugin for RefusesAccess {
    fn access(&self, _exchange: &mut Exchange, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Refuse(Refusal::new(403, Category::Threat, "a known address"))
    }
}

struct Answers(Action);

impl Plugin for Answers {
    fn request(&self, _exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        let decision = Decision::new(self.0, 50.0, "a tier").enforced();
        Verdict::Enforce { decision, hold_millis: 0, reply: Some(Reply::refusal(429, b"")) }
    }
}

struct RefusesResponse;

impl Plugin for RefusesResponse {
    fn response(&self, _exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        Verdict::Refuse(Refusal::new(403, Category::SensitiveData, "a key"))
    }
}

/// How many requests lead to a ban, at most 9.
fn requests_until_a_ban(before: Option<BuildPlugin>, behind: Option<BuildPlugin>) -> Option<usize> {
    let mut registry = vec![PLUGIN];
    let mut steps = vec![(PLUGIN.name, step().encode_to_vec())];
    for (name, build, at) in [("before", before, 0), ("behind", behind, 1)] {
        let Some(build) = build else { continue };
        registry.push(PluginDefinition::new(name, build));
        steps.insert(at, (name, Vec::new()));
    }
    let chain = chain_of(&steps, &registry);
    let host = FakeHost::at(NOW);
    (1..10).find(|_| {
        let request = Request { method: b"GET".to_vec(), path: b"/".to_vec(), ..Request::default() };
        let start = Start { request, route: b"", peer: b"192.0.2.1:1", node: &"node".into() };
        let mut run = Run::new(&chain, start, &host);
        if run.request_headers(false, &host) == Flow::Continue {
            let response = Response { status: 200, headers: Headers::default(), streaming: false };
            let _ = run.response_headers(response, false, &host);
        }
        run.finish(&host);
        !host.bans.borrow().is_empty()
    })
}

#[test]
fn refusals_of_plugins_behind_it_count_and_those_in_front_do_not() {
    assert_eq!(requests_until_a_ban(None, None), None);
    assert_eq!(requests_until_a_ban(None, Some(|_, _| Ok(Box::new(Refuses)))), Some(3));
    assert_eq!(requests_until_a_ban(None, Some(|_, _| Ok(Box::new(RefusesAccess)))), Some(3));
    assert_eq!(requests_until_a_ban(Some(|_, _| Ok(Box::new(RefusesAccess))), None), None);
}

#[test]
fn a_backend_that_answered_is_believed_also_if_its_answer_is_withheld() {
    assert_eq!(requests_until_a_ban(None, Some(|_, _| Ok(Box::new(RefusesResponse)))), None);
}

#[test]
fn challenges_and_quotas_are_no_failures() {
    assert_eq!(requests_until_a_ban(None, Some(|_, _| Ok(Box::new(Answers(Action::Challenge))))), None);
    assert_eq!(requests_until_a_ban(None, Some(|_, _| Ok(Box::new(Answers(Action::Throttle))))), None);
    assert_eq!(requests_until_a_ban(None, Some(|_, _| Ok(Box::new(Answers(Action::Deny))))), Some(3));
}
