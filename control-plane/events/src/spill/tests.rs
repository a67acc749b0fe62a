use super::*;

#[test]
fn the_name_of_a_folder_says_whose_it_is() {
    assert_eq!(folder_name("webhook:https://siem.internal:9000#2"), "webhook_https___siem.internal_9000_2");
    assert!(folder_name("../../etc").starts_with(".._.._"), "one part of a path");
    assert_eq!(folder_name(&"é".repeat(200)), "_".repeat(MAX_NAME));
}
