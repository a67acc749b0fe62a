//! The bootstraps in `envoy/` beside the one that the library makes.

use serde_json::Value;
use xds::bootstrap::{BootstrapInput, bootstrap};

use crate::xds_support::repository;

const OPTIONS: &str = "/static_resources/clusters/0/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

fn document(file: &str) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(repository().join(file)).unwrap()).unwrap()
}

/// Takes away the filters of the cluster that leads to the control plane.
fn take_filters(bootstrap: &mut Value) -> Option<Value> {
    bootstrap.pointer_mut(OPTIONS)?.as_object_mut()?.remove("http_filters")
}

#[test]
fn the_bootstrap_with_a_token_differs_from_the_one_without_in_the_token_alone() {
    let (without, mut with) = (document("envoy/xds.yaml"), document("envoy/xds-token.yaml"));
    let filters = take_filters(&mut with).expect("the token's filters");
    assert_eq!(with, without);
    let token_file = Some("/etc/palisade/node-token.yaml".to_owned());
    let mut made = bootstrap(&BootstrapInput { token_file, ..BootstrapInput::default() });
    assert_eq!(Some(filters), take_filters(&mut made), "as the library makes them");
    assert_eq!(take_filters(&mut made), None);
}
