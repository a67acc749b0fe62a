//! How many different values there are: an estimate that takes 64 bytes, and from which no value can be had.
//!
//! HyperLogLog (Flajolet et al., 2007) with 64 registers: for each share of the hashes, the longest run of zero bits that was seen. The
//! standard error is 13 %.

use snapshot::content_hash;

/// The bytes of a value that are hashed. Values that differ only behind them and are of one length count as one.
const MAX_HASHED: usize = 512;
/// The registers.
pub(crate) const REGISTERS: usize = 64;
/// What a register holds at most: the bits of a hash that are looked at, and one.
pub(crate) const MAX_RUN: u8 = 33;

/// Counts a value in. Registers of another number are begun anew.
pub(crate) fn add(registers: &mut Vec<u8>, value: &[u8]) {
    if registers.len() != REGISTERS {
        *registers = vec![0; REGISTERS];
    }
    let [share, a, b, c, d, ..] = match value.get(..MAX_HASHED) {
        Some(start) if value.len() > MAX_HASHED => content_hash(&[start, &value.len().to_le_bytes()].concat()),
        _ => content_hash(value),
    };
    let run = u32::from_be_bytes([a, b, c, d]).leading_zeros().saturating_add(1);
    if let Some(register) = registers.get_mut(usize::from(share) % REGISTERS) {
        *register = (*register).max(u8::try_from(run).unwrap_or(MAX_RUN));
    }
}

/// Counts in what others have counted; what are no registers counts nothing.
#[cfg(feature = "control")]
pub(crate) fn merge(registers: &mut Vec<u8>, more: &[u8]) {
    if more.len() != REGISTERS {
        return;
    }
    if registers.len() != REGISTERS {
        *registers = vec![0; REGISTERS];
    }
    for (register, more) in registers.iter_mut().zip(more) {
        *register = (*register).max((*more).min(MAX_RUN));
    }
}

/// About how many different values were counted.
#[cfg(any(test, feature = "control"))]
pub(crate) fn estimate(registers: &[u8]) -> u64 {
    if registers.len() != REGISTERS {
        return 0;
    }
    let all = REGISTERS as f64;
    let sum: f64 = registers.iter().map(|run| 0.5_f64.powi(i32::from(*run))).sum();
    let raw = 0.709 * all * all / sum;
    let empty = registers.iter().filter(|run| **run == 0).count();
    // Few values leave registers empty, and are told apart by how many.
    let few = (empty > 0 && raw <= 2.5 * all).then(|| all * (all / empty as f64).ln());
    few.unwrap_or(raw).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: std::ops::Range<u32>) -> Vec<u8> {
        let mut registers = Vec::new();
        for value in values.chain([0; 3]) {
            add(&mut registers, value.to_string().as_bytes());
        }
        registers
    }

    #[test]
    fn estimates_are_near_the_number_of_values() {
        for count in [1, 2, 5, 20, 100, 1000, 100_000] {
            let found = estimate(&of(0..count)) as f64;
            assert!((found - f64::from(count)).abs() <= 0.4 * f64::from(count), "{count}: {found}");
        }
        assert_eq!((estimate(&[]), estimate(&[0; REGISTERS])), (0, 0));
    }

    #[test]
    fn of_a_long_value_the_start_and_the_length_count() {
        let mut registers = Vec::new();
        let long = |length: usize, last: u8| [vec![b'a'; length], vec![last]].concat();
        for value in [long(1 << 20, b'x'), long(1 << 20, b'y'), long(900, b'x'), long(511, b'x'), long(511, b'y')] {
            add(&mut registers, &value);
        }
        assert_eq!(estimate(&registers), 4);
    }

    #[test]
    #[cfg(feature = "control")]
    fn parts_add_up_and_lies_are_bounded() {
        let mut parts = of(0..500);
        merge(&mut parts, &of(300..1000));
        assert_eq!(parts, of(0..1000));
        merge(&mut parts, &[9; 3]);
        assert_eq!(parts, of(0..1000));
        merge(&mut parts, &[u8::MAX; REGISTERS]);
        assert!(parts.iter().all(|run| *run == MAX_RUN));
    }
}
