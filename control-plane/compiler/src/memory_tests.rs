use serde_json::{Value, json};

use crate::{Compiler, Settings};
use entities::EntitySet;
use entities::registry::by_collection;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn compiler() -> Compiler {
    Compiler::new(Settings { filters_dir: "/filters".into(), link: true, ..Settings::default() })
}

/// A document of one of the kinds that chains are made of. Now and then it is wrong, or names what is not there.
fn document(dice: &mut Dice) -> (&'static str, Value) {
    let (id, number) = (dice.below(3), dice.below(4));
    match dice.below(7) {
        0 => {
            let tiers = json!([{ "min_score": 10 * number, "action": "deny" }]);
            let (enabled, weight) = (dice.below(3) > 0, 10 * number);
            let policy =
                json!({ "id": format!("p{id}"), "enabled": enabled, "waf_block_weight": weight, "tiers": tiers });
            ("threat-policies", policy)
        }
        1 => {
            let rules =
                [format!("SecRule ARGS \"@rx {}\" \"id:1,phase:2,deny\"", ["a", "b", "c", "("][number as usize])];
            let rulesets: Vec<String> = (0..dice.below(3)).map(|ruleset| format!("s{ruleset}")).collect();
            let enabled = dice.below(4) > 0;
            ("waf-configs", json!({ "id": format!("w{id}"), "enabled": enabled, "rules": rules, "rulesets": rulesets }))
        }
        2 => {
            let rule = format!("SecRule ARGS \"@streq {number}\" \"id:{},phase:2,pass\"", 10 + id);
            ("waf-rulesets", json!({ "id": format!("s{id}"), "enabled": dice.below(3) > 0, "rules": [rule] }))
        }
        3 => ("global-config", json!({ "id": "global-config", "waf": { "fail_open": dice.below(2) == 0 } })),
        _ => {
            let policy = if dice.below(2) == 0 { Value::Null } else { json!(format!("p{}", dice.below(3))) };
            let config = json!({ "threat_policy": policy, "waf_config": format!("w{}", dice.below(3)) });
            let plugins = json!([{ "plugin": "SecuritySuitePreset", "config": config }]);
            let backend = json!({ "address": "127.0.0.1", "port": 1 });
            ("routes", json!({ "id": format!("r{id}"), "backend": backend, "plugins": plugins }))
        }
    }
}

/// What was compiled before is used only where a compiler without a memory would come to the same.
#[test]
fn a_memory_changes_nothing() {
    let (mut works, mut fails) = (0, 0);
    for seed in 0..20 {
        let (mut dice, remembering, mut set) = (Dice(seed), compiler(), EntitySet::empty());
        for revision in 1..40 {
            let (collection, document) = document(&mut dice);
            let kind = by_collection(collection).unwrap();
            let before = set.clone();
            if dice.below(5) == 0 && collection != "global-config" {
                set.remove(collection, document["id"].as_str().unwrap());
            } else {
                set.insert(kind, kind.read(document).unwrap(), revision);
            }
            match (remembering.compile(&set), compiler().compile(&set)) {
                (Ok(one), Ok(other)) => {
                    assert_eq!((one.gateway, one.warnings), (other.gateway, other.warnings), "seed {seed}, {revision}");
                    works += 1;
                }
                (Err(one), Err(other)) => {
                    assert_eq!(one, other, "seed {seed}, {revision}");
                    fails += 1;
                }
                (one, other) => panic!("seed {seed}, {revision}: {one:?} and {other:?}"),
            }
            // Half of the time a write that was refused, and so never was.
            if dice.below(2) == 0 {
                set = before;
            }
        }
    }
    println!("{works} compiled, {fails} did not");
    assert!(works > 100 && fails > 50, "{works} compiled, {fails} did not");
}
