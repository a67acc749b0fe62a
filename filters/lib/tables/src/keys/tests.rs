use super::*;
use crate::Table;
use crate::testing::Random;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(random: &mut Random) -> Vec<u8> {
    // Short keys, so that one is often the beginning of another, and the empty one.
    (0..random.below(4)).map(|_| b'a' + random.below(4) as u8).collect()
}

fn value(random: &mut Random) -> Vec<u8> {
    vec![random.next() as u8; random.below(5) as usize]
}

fn built(random: &mut Random, count: u64) -> (Keys, Model) {
    let (mut builder, mut model) = (KeysBuilder::default(), Model::new());
    for _ in 0..count {
        let (key, value) = (key(random), value(random));
        builder.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    (Keys::load(builder.build().unwrap()).unwrap(), model)
}

fn assert_agrees(table: &Keys, model: &Model, what: &str) {
    let letters = [b""[..].to_vec(), b"a".to_vec(), b"b".to_vec(), b"c".to_vec(), b"d".to_vec(), b"e".to_vec()];
    for one in &letters {
        for two in &letters {
            for three in &letters {
                let key = [one.as_slice(), two, three].concat();
                assert_eq!(table.find(&key), model.get(&key).map(Vec::as_slice), "{what}: {}", key.escape_ascii());
            }
        }
    }
}

#[test]
fn random_tables_agree_with_a_map_through_deltas_and_compaction() {
    for seed in 0..100 {
        let mut random = Random(seed);
        let count = random.below(80);
        let (mut table, mut model) = built(&mut random, count);
        assert_agrees(&table, &model, &format!("seed {seed}, base"));
        for round in 0..12 {
            let mut ops = KeyOps::default();
            for _ in 0..random.below(6) {
                let (key, value) = (key(&mut random), value(&mut random));
                if random.below(3) == 0 {
                    ops.remove(&key).unwrap();
                    model.remove(&key);
                } else {
                    ops.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            table.apply(&ops.finish()).unwrap();
            if random.below(2) == 0 {
                table.compact(random.below(20) as usize);
            }
            assert_agrees(&table, &model, &format!("seed {seed}, round {round}"));
        }
        let saved = table.save();
        while table.overlay() > 0 {
            table.compact(7);
            assert_agrees(&table, &model, &format!("seed {seed}, compaction"));
        }
        assert_eq!(table.base, saved, "seed {seed}");
        let mut builder = KeysBuilder::default();
        model.iter().for_each(|(key, value)| builder.put(key, value).unwrap());
        assert_eq!(builder.build().unwrap(), saved, "seed {seed}: equal content gives equal bytes");
        assert_eq!(table.rows(), model.len());
    }
}

#[test]
fn deltas_lead_from_any_table_to_any_other() {
    for seed in 0..60 {
        let mut random = Random(500 + seed);
        let (old_count, new_count) = (random.below(80), random.below(80));
        let ((mut old, _), (new, model)) = (built(&mut random, old_count), built(&mut random, new_count));
        for delta in old.deltas_to(&new) {
            old.apply(&delta).unwrap();
        }
        assert_agrees(&old, &model, &format!("seed {seed}"));
        assert!(old.deltas_to(&new).is_empty());
    }
}

#[test]
fn long_lists_of_deltas_keep_to_the_limits_of_one() {
    let mut builder = KeysBuilder::default();
    for number in 0..3000_u32 {
        let mut key = number.to_le_bytes().to_vec();
        key.resize(MAX_KEY, b'x');
        builder.put(&key, &[7; MAX_VALUE]).unwrap();
    }
    let new = Keys::load(builder.build().unwrap()).unwrap();
    let mut table = Table::<Keys>::new(KeysBuilder::default().build().unwrap()).unwrap();
    for delta in table.index().clone().deltas_to(&new) {
        let (from, to) = (table.state(), table.state().after(&delta));
        table.delta(&from.0, &to, &delta).unwrap();
    }
    assert_eq!(table.index().save(), new.save());
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    let mut ops = KeyOps::default();
    assert_eq!(ops.put(&[0; MAX_KEY + 1], b""), Err(OpError::Length));
    assert_eq!(ops.put(b"", &[0; MAX_VALUE + 1]), Err(OpError::Length));
    assert_eq!(ops.remove(&[0; MAX_KEY + 1]), Err(OpError::Length));
    assert_eq!(KeysBuilder::default().put(&[0; MAX_KEY + 1], b""), Err(OpError::Length));
    assert!(ops.is_empty());
    let (mut table, model) = built(&mut Random(1), 30);
    for (bytes, error) in [
        (vec![3], OpError::Unknown(3)),
        (vec![PUT], OpError::Truncated),
        (vec![PUT, 1, 0], OpError::Truncated),
        (vec![PUT, 1, 0, 1], OpError::Truncated),
        (vec![REMOVE, 2, 0], OpError::Truncated),
    ] {
        assert_eq!(table.apply(&bytes), Err(TableError::Op(0, error)));
    }
    let mut number = 0_u32;
    let mut delta = |count| {
        let mut ops = KeyOps::default();
        for _ in 0..count {
            ops.put(&[b"zzz", number.to_le_bytes().as_slice()].concat(), b"").unwrap();
            number += 1;
        }
        ops.finish()
    };
    assert_eq!(table.apply(&delta(MAX_OPS + 1)), Err(TableError::TooLarge));
    for _ in 0..MAX_OVERLAY / MAX_OPS {
        table.apply(&delta(MAX_OPS)).unwrap();
    }
    assert_eq!((table.apply(&delta(1)), table.overlay()), (Err(TableError::OverlayFull), MAX_OVERLAY));
    assert_eq!((table.compact(1), table.apply(&delta(1))), (Progress::More, Ok(())));
    assert_agrees(&table, &model, "others stay");
}

#[test]
fn bytes_that_are_no_base_are_refused_and_no_records_harm() {
    let (table, _) = built(&mut Random(5), 60);
    let base = table.save();
    for cut in 0..base.len() {
        assert!(Keys::load(base[..cut].to_vec()).is_err());
    }
    for seed in 0..500 {
        let mut random = Random(seed);
        let mut damaged = base.clone();
        for _ in 0..6 {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = random.next() as u8;
        }
        if let Ok(mut table) = Keys::load(damaged) {
            for _ in 0..50 {
                let _ = table.find(&key(&mut random)).map(<[u8]>::len);
            }
            table.apply(&[REMOVE, 1, b'a', PUT, 1, b'b', 1, b'c']).unwrap();
            while table.overlay() > 0 {
                table.compact(10);
            }
        }
    }
}
