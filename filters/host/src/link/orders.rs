//! Bans that wait for the link.

use std::collections::VecDeque;

use snapshot::BanRequest;

/// The most bans that wait.
const MAX_BANS: usize = 1000;

/// Adds an order to those that wait; false where the oldest one had to give way.
///
/// One order waits for each identity, the one with the later end: the control plane would keep that end and its evidence, too.
#[must_use]
pub(super) fn add(waiting: &mut VecDeque<BanRequest>, order: BanRequest) -> bool {
    if waiting.iter().any(|known| known.key == order.key && known.until_millis > order.until_millis) {
        return true;
    }
    waiting.retain(|known| known.key != order.key);
    let is_full = waiting.len() >= MAX_BANS;
    if is_full {
        waiting.pop_front();
    }
    waiting.push_back(order);
    !is_full
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(key: &str, until_millis: u64, reason: &str) -> BanRequest {
        BanRequest { key: key.into(), until_millis, reason: reason.into(), ..BanRequest::default() }
    }

    #[test]
    fn of_two_orders_for_one_identity_the_one_with_the_later_end_waits() {
        for (first, second, kept) in [(86_400_000, 3_600_000, "a"), (3_600_000, 86_400_000, "b"), (1000, 1000, "b")] {
            let mut waiting = VecDeque::new();
            assert!(add(&mut waiting, order("ip:192.0.2.1", first, "a")));
            assert!(add(&mut waiting, order("ip:192.0.2.2", 10, "other")));
            assert!(add(&mut waiting, order("ip:192.0.2.1", second, "b")));
            let mut sent: Vec<BanRequest> = waiting.into_iter().collect();
            sent.sort_by(|one, other| one.key.cmp(&other.key));
            assert_eq!(sent, [order("ip:192.0.2.1", first.max(second), kept), order("ip:192.0.2.2", 10, "other")]);
        }
    }

    #[test]
    fn the_oldest_order_gives_way_where_too_many_wait() {
        let mut waiting = VecDeque::new();
        assert!((0..MAX_BANS).all(|at| add(&mut waiting, order(&format!("user:{at}"), 10, ""))));
        assert!(add(&mut waiting, order("user:0", 5, "")), "a shorter one of an identity that waits takes no room");
        assert!(!add(&mut waiting, order("user:one-more", 10, "")));
        let first = waiting.front().map(|order| order.key.as_str());
        assert_eq!((waiting.len(), first), (MAX_BANS, Some("user:1")));
    }
}
