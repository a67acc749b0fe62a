//! The node link's description for people says what the code does.

use std::path::Path;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::json;
use snapshot::{
    AllowChange, AnswerWord, Answered, Ask, BanChange, BanRequest, Down, KeptTable, KeptTables, LoadReport,
    ReportBatch, SpendPuzzle, TableChange, TableKind, Up, VerifyToken,
};

fn described(name: &str, bytes: &[u8]) -> serde_json::Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("link/src");
    let files = protox::compile(["node_link.proto"], [folder]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
    let descriptor = pool.get_message_by_name(name).unwrap();
    let message = DynamicMessage::decode(descriptor, bytes).unwrap();
    assert_eq!(message.unknown_fields().count(), 0, "{name} has fields that its description lacks");
    let options = prost_reflect::SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false);
    message.serialize_with_options(serde_json::value::Serializer, &options).unwrap()
}

#[test]
fn the_description_reads_what_the_code_writes() {
    let up = Up {
        node: "n".into(),
        events: vec![b"{}".to_vec()],
        dropped: 2,
        bans: vec![BanRequest {
            key: "k".into(),
            until_millis: 3,
            reason: "r".into(),
            score: 4.5,
            tags: vec!["t".into()],
            issued_at_millis: 5,
            address: "a".into(),
        }],
        loads: vec![LoadReport {
            filter: "f".into(),
            version: "v".into(),
            error: "e".into(),
            parts_decoded: 7,
            parts_reused: 8,
        }],
        asks: vec![Ask {
            id: 9,
            spend_puzzle: Some(SpendPuzzle { id: "p".into(), until_millis: 10 }),
            verify_token: Some(VerifyToken {
                provider: "w".into(),
                token: "t".into(),
                ip: "192.0.2.1".into(),
                host: "h".into(),
            }),
            topic: "a.b".into(),
            data: b"q".to_vec(),
            wait_millis: 11,
        }],
        tables: Some(KeptTables {
            tables: vec![KeptTable {
                name: "t".into(),
                kind: TableKind::Keys.into(),
                state: b"s".to_vec(),
                refused: "r".into(),
            }],
        }),
        reports: vec![ReportBatch { kind: "k".into(), reports: vec![b"r".to_vec()], dropped: 13 }],
    };
    assert_eq!(
        described("palisade.v1.Up", &up.encode_to_vec()),
        json!({
            "node": "n", "events": ["e30="], "dropped": 2,
            "bans": [{ "key": "k", "until_millis": 3, "reason": "r", "score": 4.5, "tags": ["t"], "issued_at_millis": 5,
                "address": "a" }],
            "loads": [{ "filter": "f", "version": "v", "error": "e", "parts_decoded": 7, "parts_reused": 8 }],
            "asks": [{
                "id": 9, "spend_puzzle": { "id": "p", "until_millis": 10 },
                "verify_token": { "provider": "w", "token": "t", "ip": "192.0.2.1", "host": "h" },
                "topic": "a.b", "data": "cQ==", "wait_millis": 11,
            }],
            "tables": { "tables": [{ "name": "t", "kind": "KEYS", "state": "cw==", "refused": "r" }] },
            "reports": [{ "kind": "k", "reports": ["cg=="], "dropped": 13 }],
        })
    );
    let down = Down {
        bans: vec![BanChange {
            key: "k".into(),
            until_millis: 6,
            reason: "r".into(),
            hand_until_millis: 7,
            unrecorded: true,
        }],
        answers: vec![Answered { id: 9, answer: AnswerWord::No.into(), data: Some(b"d".to_vec()) }],
        allowed: vec![AllowChange { key: "a".into(), until_millis: 7 }],
        seed: b"seed".to_vec(),
        tables: vec![TableChange {
            name: "t".into(),
            from: b"f".to_vec(),
            state: b"s".to_vec(),
            data: b"d".to_vec(),
            offset: 11,
            size: 12,
        }],
    };
    assert_eq!(
        described("palisade.v1.Down", &down.encode_to_vec()),
        json!({
            "bans": [{ "key": "k", "until_millis": 6, "reason": "r", "hand_until_millis": 7, "unrecorded": true }],
            "answers": [{ "id": 9, "answer": "NO", "data": "ZA==" }],
            "allowed": [{ "key": "a", "until_millis": 7 }],
            "seed": "c2VlZA==",
            "tables": [{ "name": "t", "from": "Zg==", "state": "cw==", "data": "ZA==", "offset": 11, "size": 12 }],
        })
    );
}
