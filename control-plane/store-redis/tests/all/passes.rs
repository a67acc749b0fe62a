//! Both stores pass the suite: an embedded file, and a server that a control plane's replica follows.

use std::path::Path;
use std::sync::Arc;

use store::{SqliteOptions, SqliteStore, Store};

use crate::conformance as suite;
use crate::server::RedisServer;

/// Where stores of one test are.
enum Place {
    File(tempfile::TempDir),
    Server(RedisServer),
}

impl Place {
    async fn open(&self) -> Arc<dyn Store> {
        match self {
            Place::File(folder) => Arc::new(open_file(folder.path())),
            Place::Server(server) => Arc::new(server.open().await),
        }
    }

    fn again(&self) -> impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store> {
        async |store: Arc<dyn Store>| {
            store.close().await.unwrap();
            self.open().await
        }
    }
}

fn open_file(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, SqliteOptions::default()).unwrap()
}

/// Calls each function of the suite with an empty store of each kind, and with what else it wants: the way to open it again, or a
/// second store at the same place.
macro_rules! passes {
    ($($name:ident $(($what:ident))?),* $(,)?) => {
        mod embedded {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    let place = Place::File(tempfile::tempdir().unwrap());
                    suite::$name(place.open().await $(, passes!($what place))?).await;
                }
            )*
        }
        mod redis {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    let Some(server) = RedisServer::start().await else { return };
                    let place = Place::Server(server);
                    suite::$name(place.open().await $(, passes!($what place))?).await;
                }
            )*
        }
    };
    (again $place:ident) => { $place.again() };
    (other $place:ident) => { $place.open().await };
}

passes! {
    entities_have_revisions_and_conflicts(again),
    several_changes_are_one_or_none(again),
    many_writers_share_commits_and_none_is_lost,
    ten_thousand_entities_are_one_change_and_come_back(again),
    each_change_of_an_entity_is_a_version(again),
    deleted_entities_are_listed_with_their_last_version,
    a_refused_change_leaves_no_version,
    an_entity_has_a_bounded_number_of_versions,
    large_documents_have_fewer_versions,
    versions_go_by_the_time_they_were_replaced(again),
    versions_of_many_writers_are_complete,
    documents_come_back(again),
    a_puzzle_is_spent_once_and_stays_so(again),
    admin_keys_come_back(again),
    operators_and_their_sessions_come_back(again),
    a_ticket_is_used_once(again),
    a_code_is_used_once(again),
    a_ceremony_ends_once(again),
    an_identity_is_that_of_one_operator(again),
    a_passkey_is_one_operators_and_counts_up(again),
    an_admin_stays_and_a_key_is_replaced(again),
    a_change_of_access_is_kept_with_its_event(again),
    a_recording_is_listed_once_its_contents_are_there(again),
    recordings_and_their_contents_are_bounded,
    a_recording_that_is_given_up_leaves_nothing(again),
    a_replay_has_one_end(again),
    replays_that_have_ended_are_bounded,
    recordings_and_replays_are_known_at_both(other),
    each_sees_what_the_other_has_written(other),
    what_two_write_at_the_same_time_is_counted_once(other),
    the_history_of_two_is_one(other),
    what_two_add_to_an_incident_is_added_once(other),
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
    the_events_of_a_burst_are_counted_together(again),
    a_budget_is_never_overdrawn_however_many_take_at_once,
    what_was_taken_comes_free_with_its_slice_and_survives(again),
    a_set_never_exceeds_its_cap_however_many_add_at_once,
    members_leave_with_their_slice_and_survive(again),
    shared_counts_have_a_bounded_number_of_rows_and_no_node_has_all_of_them,
    the_lists_of_a_feed_come_back(again),
    what_is_kept_of_feeds_is_bounded,
    the_inventory_comes_back(again),
    rollups_add_up_and_come_back(again),
    what_two_count_is_added(other),
}
