//! Responses as bytes. A resource may be large, and a thousand gateways may be sent it at once: its bytes are shared by all of
//! them, from here to the socket, and only the message around them is made for each.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::StreamBody;
use hyper::body::Frame;
use prost::bytes::{BufMut as _, Bytes, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len, string};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;

use super::set::Resource;

/// A `DiscoveryResponse` (state of the world).
#[derive(Clone, Debug, PartialEq)]
pub struct StateReply {
    /// The version of the state.
    pub version_info: String,
    /// All of it.
    pub resources: Vec<Arc<Resource>>,
    /// Of which type it is.
    pub type_url: String,
    /// By which it is answered.
    pub nonce: String,
}

/// A `DeltaDiscoveryResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaReply {
    /// The version of the state that it leads to.
    pub system_version_info: String,
    /// What has changed.
    pub resources: Vec<Changed>,
    /// Of which type it is.
    pub type_url: String,
    /// The names of what is gone.
    pub removed_resources: Vec<String>,
    /// By which it is answered.
    pub nonce: String,
}

/// A changed resource of a delta response.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// The resource.
    pub resource: Arc<Resource>,
    /// What is sent of it in place of all, to a gateway that has the parts that are left out.
    pub(super) slim: Option<Bytes>,
}

/// A message in pieces.
#[derive(Debug, Default)]
struct Pieces {
    own: BytesMut,
    done: Vec<Bytes>,
    length: usize,
}

/// What a stream of replies waits for.
pub(super) type Replies = mpsc::Receiver<Result<Vec<Bytes>, Status>>;

// === impl StateReply ===

impl StateReply {
    /// The message with its gRPC prefix.
    pub(super) fn encode(&self) -> Vec<Bytes> {
        let mut pieces = Pieces::default();
        pieces.text(1, &self.version_info);
        for resource in &self.resources {
            pieces.shared(2, &resource.encoded);
        }
        pieces.text(4, &self.type_url);
        pieces.text(5, &self.nonce);
        pieces.finish()
    }
}

// === impl DeltaReply ===

impl DeltaReply {
    /// The message with its gRPC prefix.
    pub(super) fn encode(&self) -> Vec<Bytes> {
        let mut pieces = Pieces::default();
        pieces.text(1, &self.system_version_info);
        for Changed { name, resource, slim } in &self.resources {
            let encoded = slim.as_ref().unwrap_or(&resource.encoded);
            let any = encoded.len();
            let inner = string::encoded_len(1, &resource.version)
                + string::encoded_len(3, name)
                + key_len(2)
                + encoded_len_varint(any as u64)
                + any;
            encode_key(2, WireType::LengthDelimited, &mut pieces.own);
            encode_varint(inner as u64, &mut pieces.own);
            pieces.text(1, &resource.version);
            pieces.text(3, name);
            pieces.shared(2, encoded);
        }
        pieces.text(4, &self.type_url);
        pieces.text(5, &self.nonce);
        for name in &self.removed_resources {
            pieces.text(6, name);
        }
        pieces.finish()
    }
}

// === impl Pieces ===

impl Pieces {
    fn text(&mut self, tag: u32, text: &String) {
        string::encode(tag, text, &mut self.own);
    }

    /// A field whose bytes are not copied.
    fn shared(&mut self, tag: u32, bytes: &Bytes) {
        encode_key(tag, WireType::LengthDelimited, &mut self.own);
        encode_varint(bytes.len() as u64, &mut self.own);
        self.cut();
        self.length += bytes.len();
        self.done.push(bytes.clone());
    }

    fn cut(&mut self) {
        if !self.own.is_empty() {
            self.length += self.own.len();
            self.done.push(self.own.split().freeze());
        }
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.cut();
        let mut prefix = BytesMut::with_capacity(5);
        // Not compressed.
        prefix.put_u8(0);
        prefix.put_u32(u32::try_from(self.length).unwrap_or(u32::MAX));
        self.done.insert(0, prefix.freeze());
        self.done
    }
}

/// The response to a call whose replies come one after the other.
pub(super) fn response(replies: Replies) -> http::Response<Body> {
    let frames = Frames { replies, waiting: VecDeque::new(), ended: false };
    let mut response = http::Response::new(Body::new(StreamBody::new(frames)));
    let grpc = http::HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
    response
}

/// Replies as the frames of a body, the status last.
struct Frames {
    replies: Replies,
    waiting: VecDeque<Bytes>,
    ended: bool,
}

impl Stream for Frames {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(bytes) = self.waiting.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            let status = match std::task::ready!(self.replies.poll_recv(context)) {
                Some(Ok(pieces)) => {
                    self.waiting = pieces.into();
                    continue;
                }
                Some(Err(status)) => status,
                None => Status::ok(""),
            };
            self.ended = true;
            let mut trailers = http::HeaderMap::new();
            if status.add_header(&mut trailers).is_err() {
                // A message that is no header's value; the code is one.
                let code = http::HeaderValue::from(status.code() as i32);
                trailers.insert("grpc-status", code);
            }
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
    }
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::service::discovery::v3::{
        DeltaDiscoveryResponse, DiscoveryResponse, Resource as DeltaResource,
    };
    use envoy_types::pb::google::protobuf::Any;
    use prost::Message as _;

    use super::*;

    fn joined(pieces: Vec<Bytes>) -> Vec<u8> {
        let bytes = pieces.concat();
        let (prefix, message) = bytes.split_at(5);
        assert_eq!(prefix[0], 0);
        assert_eq!(u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize, message.len());
        message.to_vec()
    }

    #[test]
    fn replies_are_the_messages_of_the_protocol_and_share_the_resources() {
        let any = |text: &str| Any { type_url: "t/x".into(), value: text.as_bytes().to_vec() };
        let long = "y".repeat(100_000);
        let resources = [Arc::new(Resource::new(any("one"))), Arc::new(Resource::new(any(&long)))];
        let state = StateReply {
            version_info: "v".into(),
            resources: resources.to_vec(),
            type_url: "t/x".into(),
            nonce: "7".into(),
        };
        let expected = DiscoveryResponse {
            version_info: "v".into(),
            resources: vec![any("one"), any(&long)],
            type_url: "t/x".into(),
            nonce: "7".into(),
            ..DiscoveryResponse::default()
        };
        assert_eq!(DiscoveryResponse::decode(joined(state.encode()).as_slice()).unwrap(), expected);
        let named =
            |name: &str, at: usize| Changed { name: name.into(), resource: Arc::clone(&resources[at]), slim: None };
        let delta = DeltaReply {
            system_version_info: "v".into(),
            resources: vec![named("a", 0), named("b", 1)],
            type_url: "t/x".into(),
            removed_resources: vec!["c".into(), "d".into()],
            nonce: "8".into(),
        };
        let resource = |name: &str, at: usize| DeltaResource {
            name: name.into(),
            version: resources[at].version.clone(),
            resource: Some(resources[at].body.clone()),
            ..DeltaResource::default()
        };
        let expected = DeltaDiscoveryResponse {
            system_version_info: "v".into(),
            resources: vec![resource("a", 0), resource("b", 1)],
            type_url: "t/x".into(),
            removed_resources: vec!["c".into(), "d".into()],
            nonce: "8".into(),
            ..DeltaDiscoveryResponse::default()
        };
        let pieces = delta.encode();
        assert!(pieces.iter().any(|piece| piece.as_ptr() == resources[1].encoded.as_ptr()), "it was copied");
        assert_eq!(DeltaDiscoveryResponse::decode(joined(pieces).as_slice()).unwrap(), expected);
    }
}
