//! A filter's configuration without the large parts that a gateway has already.
//!
//! A snapshot names its parts by their hashes, and a filter keeps those that it was given in the gateway's shared data. So a
//! change of a policy need not bring the rules again.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use envoy_types::pb::envoy::config::core::v3::TypedExtensionConfig;
use envoy_types::pb::envoy::extensions::filters::http::wasm::v3::Wasm;
use envoy_types::pb::google::protobuf::{Any, BytesValue};
use envoy_types::util::pack_any;
use prost::bytes::Bytes;
use prost::{DecodeError, Message};
use snapshot::{Envelope, PartHash};

/// Forms of one resource that are kept: gateways that follow every change have the same parts.
const KEPT_FORMS: usize = 4;

/// Parts by their hashes.
pub(super) type PartSet = BTreeSet<PartHash>;

/// The parts of one resource, and how it looks without some of them, made when it is first sent.
#[derive(Debug, Default)]
pub(super) struct Parted {
    parts: PartSet,
    forms: Mutex<Vec<(PartSet, Bytes)>>,
}

impl Parted {
    pub(super) fn new(parts: PartSet) -> Parted {
        Parted { parts, forms: Mutex::default() }
    }

    /// The parts that it has as a whole.
    pub(super) fn parts(&self) -> &PartSet {
        &self.parts
    }

    /// The encoded resource without those of its parts that are `held`; `None` where it has none of them.
    pub(super) fn without(&self, held: &PartSet, body: &Any) -> Option<Bytes> {
        let left_out: PartSet = self.parts.intersection(held).copied().collect();
        if left_out.is_empty() {
            return None;
        }
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, form)) = forms.iter().find(|(without, _)| *without == left_out) {
            return Some(form.clone());
        }
        let form = Bytes::from(without(body, &left_out).ok()?.encode_to_vec());
        if forms.len() == KEPT_FORMS {
            forms.remove(0);
        }
        forms.push((left_out, form.clone()));
        Some(form)
    }
}

/// A filter's resource without some parts.
fn without(body: &Any, left_out: &PartSet) -> Result<Any, DecodeError> {
    let mut extension = TypedExtensionConfig::decode(body.value.as_slice())?;
    let mut wasm = Wasm::decode(extension.typed_config.unwrap_or_default().value.as_slice())?;
    if let Some(config) = &mut wasm.config {
        let bytes = BytesValue::decode(config.configuration.take().unwrap_or_default().value.as_slice())?;
        let mut envelope = Envelope::decode(bytes.value.as_slice())?;
        envelope
            .parts
            .retain(|part| <&PartHash>::try_from(part.hash.as_slice()).is_ok_and(|hash| !left_out.contains(hash)));
        config.configuration = Some(pack_any(BytesValue { value: envelope.encode_to_vec() }));
    }
    extension.typed_config = Some(pack_any(wasm));
    Ok(Any { type_url: body.type_url.clone(), value: extension.encode_to_vec() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
    use envoy_types::pb::google::rpc::Status;
    use snapshot::{Part, Snapshot, content_hash, seal};

    use crate::resources::{FilterInput, Gateway, build};
    use crate::session::{Output, Protocol, Session};
    use crate::set::{Kind, ResourceSet};

    use super::*;

    /// A filter's resources with these parts, and something that changes.
    fn set(parts: &[&str], change: u32) -> Arc<ResourceSet> {
        let part = |text: &&str| Part { hash: content_hash(text.as_bytes()).to_vec(), data: text.as_bytes().to_vec() };
        let parts = parts.iter().map(part).collect();
        let snapshot = Snapshot { filter: "waf".into(), parts, max_held: change, ..Snapshot::default() };
        let snapshot = seal(&snapshot).encode_to_vec();
        let filter = FilterInput { name: "waf".into(), module_path: "/waf.wasm".into(), snapshot };
        Arc::new(build(&Gateway { filters: vec![filter], ecds_only: true, ..Gateway::default() }).unwrap())
    }

    /// The data of the parts that a response brings, and of those that the snapshot names, which is opened as a filter does.
    fn brought(outputs: &[Output]) -> (String, Vec<String>) {
        let Some(Output::Delta(reply)) = outputs.last() else { panic!("no response: {outputs:?}") };
        let [changed] = reply.resources.as_slice() else { panic!("{reply:?}") };
        let bytes = changed.slim.as_ref().unwrap_or(&changed.resource.encoded);
        let body = Any::decode(bytes.clone()).unwrap();
        let extension = TypedExtensionConfig::decode(body.value.as_slice()).unwrap();
        let wasm = Wasm::decode(extension.typed_config.unwrap().value.as_slice()).unwrap();
        let config = wasm.config.unwrap().configuration.unwrap();
        let bytes = BytesValue::decode(config.value.as_slice()).unwrap().value;
        let (version, snapshot) = snapshot::open(&bytes).unwrap();
        (version, snapshot.parts.into_iter().map(|part| String::from_utf8(part.data).unwrap()).collect())
    }

    struct Client {
        session: Session,
        nonce: u32,
    }

    impl Client {
        fn request(&mut self, change: impl FnOnce(&mut DeltaDiscoveryRequest)) -> Vec<Output> {
            let mut request =
                DeltaDiscoveryRequest { type_url: Kind::Extension.type_url().into(), ..Default::default() };
            change(&mut request);
            self.session.delta_request(request)
        }

        fn answer(&mut self, refusal: Option<&str>) -> Vec<Output> {
            self.nonce += 1;
            let nonce = self.nonce.to_string();
            self.request(|request| {
                request.response_nonce = nonce;
                request.error_detail = refusal.map(|text| Status { message: text.into(), ..Status::default() });
            })
        }
    }

    fn client(parts: &[&str]) -> Client {
        let mut client = Client { session: Session::new(Protocol::Delta, set(parts, 0)), nonce: 0 };
        let first = client.request(|request| request.resource_names_subscribe = vec!["palisade.waf".into()]);
        assert_eq!(brought(&first).1, parts, "who has nothing gets all");
        client.answer(None);
        client
    }

    #[test]
    fn a_gateway_is_not_sent_again_what_it_has_taken() {
        let mut client = client(&["rules", "other"]);
        let next = set(&["rules", "new"], 1);
        let whole = Session::new(Protocol::Delta, Arc::clone(&next)).delta_request(DeltaDiscoveryRequest {
            type_url: Kind::Extension.type_url().into(),
            resource_names_subscribe: vec!["palisade.waf".into()],
            ..Default::default()
        });
        let (version, parts) = brought(&client.session.publish(next));
        assert_eq!((&version, &parts[..]), (&brought(&whole).0, &["".to_owned(), "new".into()][..]));
        // A change while the answer is under way waits for it.
        assert!(client.session.publish(set(&["rules", "new"], 2)).is_empty());
        assert_eq!(brought(&client.answer(None)).1, ["", ""]);
        assert!(client.answer(None).iter().all(|output| matches!(output, Output::Answered { .. })));
        // Of a part that was gone in between it has to be sent all.
        let _ = client.session.publish(set(&["rules"], 3));
        client.answer(None);
        assert_eq!(brought(&client.session.publish(set(&["rules", "other"], 4))).1, ["", "other"]);
    }

    #[test]
    fn who_lacks_what_was_left_out_gets_all_of_it_once() {
        let mut client = client(&["rules"]);
        assert_eq!(brought(&client.session.publish(set(&["rules"], 1))).1, [""]);
        assert_eq!(brought(&client.answer(Some("a part is missing"))).1, ["rules"]);
        let refused_again = client.answer(Some("bad"));
        assert!(refused_again.iter().all(|output| matches!(output, Output::Answered { .. })), "{refused_again:?}");
        assert!(!client.session.is_settled());
        // What it took before is not relied on any more.
        assert_eq!(brought(&client.session.publish(set(&["rules"], 2))).1, ["rules"]);
        client.answer(None);
        assert_eq!(brought(&client.session.publish(set(&["rules"], 3))).1, [""]);
    }

    #[test]
    fn who_asks_again_has_nothing() {
        let mut client = client(&["rules"]);
        let again = client.request(|request| request.resource_names_subscribe = vec!["palisade.waf".into()]);
        assert_eq!(brought(&again).1, ["rules"]);
        client.answer(None);
        client.request(|request| request.resource_names_unsubscribe = vec!["palisade.waf".into()]);
        let back = client.request(|request| request.resource_names_subscribe = vec!["palisade.waf".into()]);
        assert_eq!(brought(&back).1, ["rules"]);
        // On another stream nothing is known but the version.
        let version = set(&["rules"], 0).get(Kind::Extension, "palisade.waf").unwrap().version.clone();
        let mut other = Client { session: Session::new(Protocol::Delta, set(&["rules"], 0)), nonce: 0 };
        let outputs = other.request(|request| {
            request.initial_resource_versions.insert("palisade.waf".into(), version);
            request.resource_names_subscribe = vec!["palisade.waf".into()];
        });
        assert_eq!(outputs, [], "it is what is served");
        assert_eq!(brought(&other.session.publish(set(&["rules"], 1))).1, ["rules"]);
    }

    #[test]
    fn a_form_is_made_once_for_all_streams() {
        let forms = set(&["rules"], 0);
        let resource = forms.get(Kind::Extension, "palisade.waf").unwrap();
        assert_eq!(resource.parts().len(), 1);
        assert!(resource.without(&PartSet::new()).is_none());
        let one = resource.without(resource.parts()).unwrap();
        assert_eq!(one.as_ptr(), resource.without(resource.parts()).unwrap().as_ptr());
    }
}
