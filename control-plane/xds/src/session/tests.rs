use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::google::rpc::Status;

use super::*;

type Entries<'a> = &'a [(Kind, &'a str, &'a str)];

fn set(entries: Entries<'_>) -> Arc<ResourceSet> {
    let mut set = ResourceSet::default();
    for (kind, name, text) in entries {
        set.insert(*kind, *name, Any { type_url: kind.type_url().into(), value: text.as_bytes().to_vec() });
    }
    Arc::new(set)
}

/// A client that answers as Envoy does. What it was sent is noted as `kind +name -name`.
struct Client {
    session: Session,
    log: Vec<String>,
    waiting: Vec<(Kind, String)>,
}

impl Client {
    fn new(protocol: Protocol, entries: Entries<'_>) -> Client {
        Client { session: Session::new(protocol, set(entries)), log: Vec::new(), waiting: Vec::new() }
    }

    fn note(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::State(response) => {
                    let kind = Kind::of_type_url(&response.type_url).unwrap();
                    let texts =
                        response.resources.iter().map(|found| String::from_utf8(found.body.value.clone()).unwrap());
                    self.log.push(format!("{} {}", kind.word(), texts.collect::<Vec<_>>().join(",")));
                    self.waiting.push((kind, response.nonce));
                }
                Output::Delta(response) => {
                    let kind = Kind::of_type_url(&response.type_url).unwrap();
                    let mut parts: Vec<String> =
                        response.resources.iter().map(|changed| format!("+{}", changed.name)).collect();
                    parts.extend(response.removed_resources.iter().map(|name| format!("-{name}")));
                    self.log.push(format!("{} {}", kind.word(), parts.join(" ")));
                    self.waiting.push((kind, response.nonce));
                }
                Output::Answered { kind, refused, .. } => {
                    if let Some((reason, names)) = refused {
                        self.log.push(format!("{} refused {names:?}: {reason}", kind.word()));
                    }
                }
            }
        }
    }

    fn publish(&mut self, entries: Entries<'_>) {
        let outputs = self.session.publish(set(entries));
        self.note(outputs);
    }

    fn delta(&mut self, kind: Kind, change: impl FnOnce(&mut DeltaDiscoveryRequest)) {
        let mut request = DeltaDiscoveryRequest { type_url: kind.type_url().into(), ..Default::default() };
        change(&mut request);
        let outputs = self.session.delta_request(request);
        self.note(outputs);
    }

    fn state(&mut self, kind: Kind, names: &[&str], nonce: &str, error: Option<&str>) {
        let outputs = self.session.state_request(DiscoveryRequest {
            type_url: kind.type_url().into(),
            resource_names: names.iter().map(|&name| name.into()).collect(),
            response_nonce: nonce.into(),
            error_detail: error.map(|text| Status { message: text.into(), ..Status::default() }),
            ..DiscoveryRequest::default()
        });
        self.note(outputs);
    }

    /// Answers everything that waits, and what comes of it; `refuse` refuses a kind.
    fn answer(&mut self, refuse: Option<Kind>) {
        while !self.waiting.is_empty() {
            let (kind, nonce) = self.waiting.remove(0);
            let error = (refuse == Some(kind)).then(|| Status { message: "bad a1".into(), ..Status::default() });
            match self.session.protocol {
                Protocol::Delta => self.delta(kind, |request| {
                    request.response_nonce = nonce;
                    request.error_detail = error;
                }),
                Protocol::StateOfTheWorld => {
                    let names: Vec<String> = self.session.subscriptions[&kind].names.iter().cloned().collect();
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    self.state(kind, &names, &nonce, error.as_ref().map(|status| status.message.as_str()));
                }
            }
        }
    }

    fn logged(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Subscribes as Envoy does at its start, and takes everything.
    fn started(protocol: Protocol, entries: Entries<'_>) -> Client {
        let mut client = Client::new(protocol, entries);
        for (kind, names) in
            [(Kind::Cluster, &[][..]), (Kind::Listener, &[]), (Kind::Route, &["r"]), (Kind::Extension, &["f"])]
        {
            match protocol {
                Protocol::Delta => client.delta(kind, |request| {
                    request.resource_names_subscribe = names.iter().map(|&name: &&str| name.into()).collect();
                }),
                Protocol::StateOfTheWorld => client.state(kind, names, "", None),
            }
            client.answer(None);
        }
        client
    }
}

const OLD: Entries<'_> =
    &[(Kind::Cluster, "a", "a1"), (Kind::Listener, "l", "l1"), (Kind::Route, "r", "r1"), (Kind::Extension, "f", "f1")];
const NEW: Entries<'_> =
    &[(Kind::Cluster, "b", "b1"), (Kind::Listener, "l", "l2"), (Kind::Route, "r", "r2"), (Kind::Extension, "f", "f2")];

#[test]
fn a_new_client_gets_what_it_asks_for() {
    let mut delta = Client::started(Protocol::Delta, OLD);
    assert_eq!(delta.logged(), ["cluster +a", "listener +l", "route +r", "filter +f"]);
    let mut state = Client::started(Protocol::StateOfTheWorld, OLD);
    assert_eq!(state.logged(), ["cluster a1", "listener l1", "route r1", "filter f1"]);
}

#[test]
fn what_is_added_comes_first_and_what_is_removed_goes_last() {
    let mut delta = Client::started(Protocol::Delta, OLD);
    delta.logged();
    delta.publish(NEW);
    assert_eq!(delta.logged(), ["cluster +b", "filter +f"], "listeners and routes wait for the clusters");
    delta.answer(None);
    assert_eq!(delta.logged(), ["listener +l", "route +r", "cluster -a"]);

    let mut state = Client::started(Protocol::StateOfTheWorld, OLD);
    state.logged();
    state.publish(NEW);
    assert_eq!(state.logged(), ["cluster a1,b1", "filter f2"]);
    state.answer(None);
    assert_eq!(state.logged(), ["listener l2", "route r2", "cluster b1"]);
}

#[test]
fn an_equal_set_sends_nothing() {
    for protocol in [Protocol::Delta, Protocol::StateOfTheWorld] {
        let mut client = Client::started(protocol, OLD);
        client.logged();
        client.publish(OLD);
        assert!(client.logged().is_empty());
    }
}

#[test]
fn refused_clusters_hold_the_set_back() {
    for protocol in [Protocol::Delta, Protocol::StateOfTheWorld] {
        let mut client = Client::started(protocol, OLD);
        client.logged();
        client.publish(NEW);
        client.answer(Some(Kind::Cluster));
        let log = client.logged();
        assert!(log.iter().any(|line| line.starts_with("cluster refused")), "{log:?}");
        assert!(!log.iter().any(|line| line.starts_with("route") || line.starts_with("listener")), "{log:?}");
        // The next set is tried whole.
        client.publish(&[(Kind::Cluster, "c", "c1"), (Kind::Listener, "l", "l3"), (Kind::Route, "r", "r3")]);
        client.answer(None);
        let log = client.logged();
        assert!(log.iter().any(|line| line.starts_with("route")), "{log:?}");
    }
}

#[test]
fn what_was_refused_is_not_kept() {
    let mut state = Client::started(Protocol::StateOfTheWorld, OLD);
    state.publish(&[(Kind::Cluster, "bad", "bad"), (Kind::Listener, "l", "l1"), (Kind::Route, "r", "r2")]);
    state.answer(Some(Kind::Cluster));
    state.logged();
    state.publish(NEW);
    state.answer(None);
    assert_eq!(state.logged(), ["cluster a1,b1", "filter f2", "listener l2", "route r2", "cluster b1"]);
}

#[test]
fn refused_routes_keep_the_clusters_that_they_use() {
    let mut client = Client::started(Protocol::Delta, OLD);
    client.logged();
    client.publish(NEW);
    client.answer(Some(Kind::Route));
    let log = client.logged();
    assert!(log.contains(&"route refused [\"r\"]: bad a1".to_owned()), "{log:?}");
    assert!(!log.contains(&"cluster -a".to_owned()), "{log:?}");
    client.publish(&[
        (Kind::Cluster, "b", "b1"),
        (Kind::Listener, "l", "l2"),
        (Kind::Route, "r", "r3"),
        (Kind::Extension, "f", "f2"),
    ]);
    client.answer(None);
    assert_eq!(client.logged(), ["route +r", "cluster -a"]);
}

#[test]
fn a_refused_version_is_not_sent_again() {
    for protocol in [Protocol::Delta, Protocol::StateOfTheWorld] {
        let mut client = Client::started(protocol, OLD);
        client.logged();
        let mut changed = OLD.to_vec();
        changed[3] = (Kind::Extension, "f", "bad");
        client.publish(&changed);
        client.answer(Some(Kind::Extension));
        assert_eq!(client.logged().len(), 2, "sent once, refused once");
        client.publish(&changed);
        assert!(client.logged().is_empty());
        client.publish(OLD);
        assert_eq!(client.logged().len(), 1, "the way back is sent");
    }
}

#[test]
fn a_stale_nonce_counts_for_nothing() {
    let mut state = Client::started(Protocol::StateOfTheWorld, OLD);
    state.logged();
    state.publish(&[(Kind::Cluster, "a", "a2")]);
    state.logged();
    let before = state.waiting.clone();
    state.state(Kind::Cluster, &[], "1", Some("an answer to something older"));
    state.state(Kind::Cluster, &["x"], "nonsense", None);
    assert!(state.logged().is_empty() && state.waiting == before);
    assert!(state.session.subscriptions[&Kind::Cluster].wildcard);
    state.answer(None);
    assert!(!state.session.subscriptions[&Kind::Cluster].refused);

    let mut delta = Client::started(Protocol::Delta, OLD);
    delta.publish(&[(Kind::Cluster, "a", "a2"), (Kind::Extension, "g", "g1")]);
    delta.logged();
    delta.delta(Kind::Cluster, |request| {
        request.response_nonce = "1".into();
        request.error_detail = Some(Status::default());
    });
    assert!(delta.logged().is_empty());
    assert!(delta.session.subscriptions[&Kind::Cluster].in_flight.is_some());
}

#[test]
fn a_reconnecting_delta_client_gets_only_what_changed() {
    let versions = |entries: Entries<'_>, kind: Kind| -> HashMap<String, String> {
        set(entries).iter(kind).map(|(name, resource)| (name.clone(), resource.version.clone())).collect()
    };
    let mut client = Client::new(
        Protocol::Delta,
        &[(Kind::Cluster, "a", "a1"), (Kind::Cluster, "b", "b2"), (Kind::Extension, "f", "f1")],
    );
    let held = versions(
        &[(Kind::Cluster, "a", "a1"), (Kind::Cluster, "b", "b1"), (Kind::Cluster, "gone", "g")],
        Kind::Cluster,
    );
    client.delta(Kind::Cluster, |request| request.initial_resource_versions = held);
    assert_eq!(client.logged(), ["cluster +b"], "its routes may still lead to what is gone");
    client.answer(None);
    client.delta(Kind::Route, |request| request.resource_names_subscribe = vec!["r".into()]);
    client.answer(None);
    assert_eq!(client.logged(), ["route -r", "cluster -gone"]);
    let held = versions(&[(Kind::Extension, "f", "f1")], Kind::Extension);
    client.delta(Kind::Extension, |request| {
        request.initial_resource_versions = held;
        request.resource_names_subscribe = vec!["f".into()];
    });
    assert!(client.logged().is_empty());
}

#[test]
fn delta_subscriptions_change() {
    let mut client = Client::new(Protocol::Delta, &[(Kind::Extension, "f", "f1"), (Kind::Extension, "g", "g1")]);
    let subscribe = |name: &str| {
        let name = name.to_owned();
        move |request: &mut DeltaDiscoveryRequest| request.resource_names_subscribe = vec![name]
    };
    client.delta(Kind::Extension, subscribe("f"));
    client.answer(None);
    client.delta(Kind::Extension, subscribe("g"));
    client.answer(None);
    client.delta(Kind::Extension, subscribe("missing"));
    client.answer(None);
    assert_eq!(client.logged(), ["filter +f", "filter +g", "filter -missing"]);
    client.delta(Kind::Extension, subscribe("f"));
    client.answer(None);
    assert_eq!(client.logged(), ["filter +f"], "who asks again has dropped it");
    client.delta(Kind::Extension, |request| request.resource_names_unsubscribe = vec!["g".into()]);
    client.publish(&[(Kind::Extension, "f", "f1"), (Kind::Extension, "g", "g2"), (Kind::Extension, "missing", "m1")]);
    client.answer(None);
    assert_eq!(client.logged(), ["filter +missing"]);
}

#[test]
fn filters_stay_with_a_client_until_it_gives_them_up() {
    let other: Entries<'_> = &[
        (Kind::Cluster, "a", "a1"),
        (Kind::Listener, "l", "l2"),
        (Kind::Route, "r", "r1"),
        (Kind::Extension, "g", "g1"),
    ];
    let mut client = Client::started(Protocol::Delta, OLD);
    client.logged();
    client.publish(other);
    client.answer(None);
    // The client has taken the listener, which begins to warm: the old one serves with the filter `f`.
    client.delta(Kind::Extension, |request| request.resource_names_subscribe = vec!["g".into()]);
    client.answer(None);
    assert_eq!(client.logged(), ["listener +l", "filter +g"]);
    assert!(client.session.is_settled());
    // A connection that breaks off in between changes nothing.
    let sent = client.session.subscriptions[&Kind::Extension].sent.clone();
    let mut again = Client::new(Protocol::Delta, other);
    again.delta(Kind::Extension, |request| {
        request.initial_resource_versions = sent.into_iter().collect();
        request.resource_names_subscribe = vec!["f".into(), "g".into()];
    });
    again.answer(None);
    assert!(again.logged().is_empty());
    client.delta(Kind::Extension, |request| request.resource_names_unsubscribe = vec!["f".into()]);
    assert!(client.logged().is_empty());
    // It comes back with the listener that needs it.
    client.publish(OLD);
    client.answer(None);
    client.delta(Kind::Extension, |request| request.resource_names_subscribe = vec!["f".into()]);
    client.answer(None);
    assert_eq!(client.logged(), ["listener +l", "filter +f"]);
}

#[test]
fn a_state_client_waits_for_names_that_are_not_there_yet() {
    let mut client = Client::new(Protocol::StateOfTheWorld, &[]);
    client.state(Kind::Listener, &[], "", None);
    assert_eq!(client.logged(), ["listener "], "an empty world is an answer");
    client.state(Kind::Route, &["r"], "", None);
    assert!(client.logged().is_empty());
    client.publish(&[(Kind::Route, "r", "r1"), (Kind::Route, "other", "o1")]);
    assert_eq!(client.logged(), ["route r1"]);
    client.answer(None);
    client.state(Kind::Route, &["r", "other"], &client.session.subscriptions[&Kind::Route].last_nonce.clone(), None);
    assert_eq!(client.logged(), ["route o1,r1"]);
}

#[test]
fn a_reconnecting_state_client_is_left_alone_unless_something_changed() {
    let mut client = Client::new(Protocol::StateOfTheWorld, OLD);
    let version = |kind: Kind| version_of(set(OLD).iter(kind));
    let ask = |client: &mut Client, kind: Kind, names: &[&str], version_info: String| {
        let outputs = client.session.state_request(DiscoveryRequest {
            type_url: kind.type_url().into(),
            resource_names: names.iter().map(|&name| name.into()).collect(),
            version_info,
            ..DiscoveryRequest::default()
        });
        client.note(outputs);
    };
    for (kind, names) in
        [(Kind::Cluster, &[][..]), (Kind::Listener, &[]), (Kind::Route, &["r"]), (Kind::Extension, &["f"])]
    {
        ask(&mut client, kind, names, version(kind));
    }
    assert!(client.logged().is_empty() && client.session.is_settled());
    // The next change goes its way as ever: what is gone stays until nothing refers to it.
    client.publish(NEW);
    client.answer(None);
    assert_eq!(client.logged(), ["cluster a1,b1", "filter f2", "listener l2", "route r2", "cluster b1"]);

    let mut client = Client::new(Protocol::StateOfTheWorld, NEW);
    ask(&mut client, Kind::Cluster, &[], version(Kind::Cluster));
    ask(&mut client, Kind::Extension, &["f"], version(Kind::Extension));
    assert_eq!(client.logged(), ["cluster b1", "filter f2"], "it held something older");
}

#[test]
fn a_state_client_that_asks_for_less_or_again() {
    let entries = [(Kind::Extension, "f", "f1"), (Kind::Extension, "g", "g1")];
    let mut client = Client::new(Protocol::StateOfTheWorld, &entries);
    let ask = |client: &mut Client, names: &[&str]| {
        let nonce = client.session.subscriptions.get(&Kind::Extension).map(|it| it.last_nonce.clone());
        client.state(Kind::Extension, names, &nonce.unwrap_or_default(), None);
        client.answer(None);
    };
    ask(&mut client, &["f", "g"]);
    assert_eq!(client.logged(), ["filter f1,g1"]);
    ask(&mut client, &["f"]);
    assert!(client.logged().is_empty() && client.session.is_settled(), "it has that already");
    client.publish(&[(Kind::Extension, "f", "f1"), (Kind::Extension, "g", "g2")]);
    assert!(client.logged().is_empty(), "it asks for that no more");
    ask(&mut client, &["f", "g"]);
    assert_eq!(client.logged(), ["filter f1,g2"]);
    // A listener that goes and comes back asks for its filter anew, which nobody has changed.
    ask(&mut client, &[]);
    assert!(client.logged().is_empty());
    ask(&mut client, &["f", "g"]);
    assert_eq!(client.logged(), ["filter f1,g2"]);
}

#[test]
fn what_is_asked_for_by_name_has_no_wildcard() {
    let mut state = Client::new(Protocol::StateOfTheWorld, OLD);
    let mut delta = Client::new(Protocol::Delta, OLD);
    for kind in [Kind::Route, Kind::Extension] {
        state.state(kind, &[], "", None);
        delta.delta(kind, |_| {});
    }
    assert!(state.logged().is_empty() && delta.logged().is_empty());
    delta.delta(Kind::Route, |request| request.resource_names_subscribe = vec!["*".into()]);
    assert_eq!(delta.logged(), ["route +r"], "unless it is asked for");
}

#[test]
fn what_is_not_ours_is_never_answered() {
    for protocol in [Protocol::Delta, Protocol::StateOfTheWorld] {
        let mut client = Client::started(protocol, OLD);
        client.logged();
        let mut alone = ResourceSet::new(entities::Delivery::Ecds);
        let body = Any { type_url: Kind::Extension.type_url().into(), value: b"f2".to_vec() };
        alone.insert(Kind::Extension, "f", body);
        let outputs = client.session.publish(Arc::new(alone));
        client.note(outputs);
        client.answer(None);
        assert_eq!(client.logged(), [if protocol == Protocol::Delta { "filter +f" } else { "filter f2" }]);
        assert!(client.session.is_settled());
        assert_eq!(client.session.not_served(), [Kind::Cluster, Kind::Listener, Kind::Route]);
        // Back to all of it: only what has changed is sent.
        client.publish(OLD);
        client.answer(None);
        assert_eq!(client.logged().len(), 1);
        assert!(client.session.not_served().is_empty());
    }
}

#[test]
fn what_was_given_up_while_a_change_was_held_back_is_sent_when_it_is_asked_for_again() {
    let mut client = Client::started(Protocol::StateOfTheWorld, OLD);
    let ask = |client: &mut Client, names: &[&str]| {
        let nonce = client.session.subscriptions[&Kind::Route].last_nonce.clone();
        client.state(Kind::Route, names, &nonce, None);
    };
    client.publish(NEW);
    ask(&mut client, &[]);
    client.publish(OLD);
    client.answer(None);
    client.logged();
    ask(&mut client, &["r"]);
    assert_eq!(client.logged(), ["route r1"]);
}
