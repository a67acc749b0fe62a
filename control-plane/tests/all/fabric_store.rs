//! The embedded store keeps what the decision fabric must not forget.

use std::path::Path;
use std::sync::Arc;

use crate::fabric_conformance as suite;
use store::{SqliteOptions, SqliteStore, Store};

fn open(folder: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(folder, SqliteOptions::default()).unwrap())
}

/// Calls each function of the suite with an empty store, and with the way to open it again where it wants that.
macro_rules! passes {
    ($($name:ident $(($again:ident))?),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                suite::$name(open(folder.path()) $(, $again(folder.path()))?).await;
            }
        )*
    };
}

fn again(folder: &Path) -> impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store> {
    async move |store: Arc<dyn Store>| {
        store.close().await.unwrap();
        open(folder)
    }
}

passes! {
    a_ban_comes_back_whole_and_ends_by_itself(again),
    the_later_end_holds_and_the_history_is_kept,
    a_lift_holds_against_what_was_asked_before_it(again),
    nobody_on_the_allowlist_is_banned(again),
    ranges_have_a_bound,
    one_place_cannot_fill_the_store,
    a_full_store_gives_up_no_ban_by_hand,
    no_node_evicts_the_bans_of_others,
    a_full_store_is_shared_by_the_nodes,
    a_ban_of_the_ledger_counts_to_its_place,
    a_range_by_hand_has_room_among_those_of_nobodys_hand,
    a_run_of_neighbours_is_banned_as_one,
    networks_of_ipv6_are_as_many_as_addresses,
    bans_of_one_batch_are_judged_each_by_itself,
    who_reaches_the_threshold_within_the_window_is_banned_and_begins_anew(again),
    one_batch_of_charges_is_one_after_the_other,
    incidents_and_their_states_come_back(again),
    bans_come_in_parts,
    what_is_to_be_sent_of_a_change_is_kept_with_it(again),
    what_alert_rules_have_told_and_what_waits_comes_back(again),
    a_budget_is_never_overdrawn_however_many_take_at_once,
    what_was_taken_comes_free_with_its_slice_and_survives(again),
    a_set_never_exceeds_its_cap_however_many_add_at_once,
    members_leave_with_their_slice_and_survive(again),
    shared_counts_have_a_bounded_number_of_rows_and_no_node_has_all_of_them,
    the_lists_of_a_feed_come_back(again),
    what_is_kept_of_feeds_is_bounded,
    the_inventory_comes_back(again),
}
