//! The node link's description for people says what the code does.

use std::path::Path;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::json;
use snapshot::{
    AddToSet, AddedToSet, AllowChange, AnswerWord, Answered, Ask, AskBody, AskChunk, AskGrant, BanChange, BanRequest,
    BudgetTaken, CountBatch, CountGroup, CountKind, CountNow, CountedNow, CountsDown, CountsUp, Down, KeptTable,
    KeptTables, KeyCount, KeyMembers, LoadReport, ReportBatch, SetMembership, SpendPuzzle, TableChange, TableKind,
    TakeBudget, Up, VerifyToken,
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

fn group() -> CountGroup {
    CountGroup {
        name: "g".into(),
        kind: CountKind::Set.into(),
        slice_millis: 3,
        slices: 4,
        cap: 5,
        everywhere_from: 6,
        max_keys: 7,
    }
}

fn batch() -> CountBatch {
    CountBatch { group: Some(group()), counts: vec![count()], members: vec![members()] }
}

fn count() -> KeyCount {
    KeyCount { key: 1, newest: 2, counts: vec![3] }
}

fn members() -> KeyMembers {
    KeyMembers { key: 1, members: vec![2], slices: vec![3] }
}

#[test]
fn questions_on_counts_are_described() {
    let group_json = json!({
        "name": "g", "kind": "SET", "slice_millis": 3, "slices": 4, "cap": 5, "everywhere_from": 6, "max_keys": 7,
    });
    let (count_json, members_json) =
        (json!({ "key": 1, "newest": 2, "counts": [3] }), json!({ "key": 1, "members": [2], "slices": [3] }));
    let (group, own) = (Some(group()), Some(count()));
    let now = CountNow { group: group.clone(), incarnation: 8, own: own.clone() };
    assert_eq!(
        described("palisade.v1.CountNow", &now.encode_to_vec()),
        json!({ "group": group_json, "incarnation": 8, "own": count_json })
    );
    let answer = CountedNow { others: own.clone() };
    assert_eq!(described("palisade.v1.CountedNow", &answer.encode_to_vec()), json!({ "others": count_json }));
    let take = TakeBudget { group: group.clone(), incarnation: 8, own: own.clone(), amount: 9, limit: 10 };
    assert_eq!(
        described("palisade.v1.TakeBudget", &take.encode_to_vec()),
        json!({ "group": group_json, "incarnation": 8, "own": count_json, "amount": 9, "limit": 10 })
    );
    let answer = BudgetTaken { taken: true, others: own };
    assert_eq!(
        described("palisade.v1.BudgetTaken", &answer.encode_to_vec()),
        json!({ "taken": true, "others": count_json })
    );
    let add = AddToSet { group, incarnation: 8, own: Some(members()), member: 9, limit: 10 };
    assert_eq!(
        described("palisade.v1.AddToSet", &add.encode_to_vec()),
        json!({ "group": group_json, "incarnation": 8, "own": members_json, "member": 9, "limit": 10 })
    );
    let answer = AddedToSet { membership: SetMembership::Known.into(), size: 9 };
    assert_eq!(
        described("palisade.v1.AddedToSet", &answer.encode_to_vec()),
        json!({ "membership": "KNOWN", "size": 9 })
    );
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
            body: Some(AskBody { length: 14, complete: true }),
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
        counts: Some(CountsUp { incarnation: 14, batches: vec![batch()], dropped: 15, number: 16 }),
        chunks: vec![AskChunk { id: 15, data: b"c".to_vec(), abandoned: true }],
    };
    let batches = json!([{
        "group": {
            "name": "g", "kind": "SET", "slice_millis": 3, "slices": 4, "cap": 5, "everywhere_from": 6, "max_keys": 7,
        },
        "counts": [{ "key": 1, "newest": 2, "counts": [3] }],
        "members": [{ "key": 1, "members": [2], "slices": [3] }],
    }]);
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
                "topic": "a.b", "data": "cQ==", "wait_millis": 11, "body": { "length": 14, "complete": true },
            }],
            "tables": { "tables": [{ "name": "t", "kind": "KEYS", "state": "cw==", "refused": "r" }] },
            "reports": [{ "kind": "k", "reports": ["cg=="], "dropped": 13 }],
            "counts": { "incarnation": 14, "batches": batches, "dropped": 15, "number": 16 },
            "chunks": [{ "id": 15, "data": "Yw==", "abandoned": true }],
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
        counts: Some(CountsDown { now_millis: 1, key: b"k".to_vec(), instance: 2, batches: vec![batch()], taken: 3 }),
        grants: vec![AskGrant { id: 16, taken: 17, until: 18 }],
    };
    assert_eq!(
        described("palisade.v1.Down", &down.encode_to_vec()),
        json!({
            "bans": [{ "key": "k", "until_millis": 6, "reason": "r", "hand_until_millis": 7, "unrecorded": true }],
            "answers": [{ "id": 9, "answer": "NO", "data": "ZA==" }],
            "allowed": [{ "key": "a", "until_millis": 7 }],
            "seed": "c2VlZA==",
            "tables": [{ "name": "t", "from": "Zg==", "state": "cw==", "data": "ZA==", "offset": 11, "size": 12 }],
            "counts": { "now_millis": 1, "key": "aw==", "instance": 2, "batches": batches, "taken": 3 },
            "grants": [{ "id": 16, "taken": 17, "until": 18 }],
        })
    );
}
