use super::*;

/// A caller of a network.
fn caller(identity: u64, network: u64) -> u64 {
    identity << 32 | network
}

/// A word that no path folds by its form.
fn word(number: u64) -> String {
    let digits = [number / 676, number / 26 % 26, number % 26];
    digits.iter().map(|digit| char::from(b'a' + u8::try_from(*digit).unwrap())).collect()
}

fn seen(path: &str, callers: &[u64]) -> (String, BTreeSet<u64>) {
    (path.to_owned(), callers.iter().copied().collect())
}

/// The folded paths, each with how many are one and how many others it reaches.
fn folded(all: &[(String, BTreeSet<u64>)], networks_needed: usize) -> Vec<(String, usize, usize)> {
    let mut on_paths = Vec::new();
    for (path, callers) in all {
        let (what, path, callers) = ("args:q".to_owned(), path.as_str(), callers.clone());
        on_paths.push(OnPath { what, path, callers, count: 1, is_named: false });
    }
    let shown = |one: Folded| (reached(&on_paths, &one).len(), one);
    let folded = fold(&on_paths, networks_needed).into_iter().map(shown);
    folded.map(|(reached, one)| (one.path, one.one.len(), reached)).collect()
}

/// Each name on a path of its own, with a caller of its own.
fn users(count: u64, networks: u64) -> Vec<(String, BTreeSet<u64>)> {
    (0..count).map(|at| seen(&format!("/users/{}/profile", word(at)), &[caller(at, at % networks)])).collect()
}

#[test]
fn names_that_few_callers_send_each_are_one() {
    let of_users = |count| [("/users/{slug}/profile".to_owned(), count, 0)];
    assert_eq!(folded(&users(20, 5), 2), of_users(20));
    assert_eq!(folded(&users(300, 100), 2), of_users(300));
    assert_eq!(folded(&users(19, 19), 2), [], "too few names");
    // What is behind another name is another path, and so is what is longer.
    let mut all = users(20, 5);
    all.extend([seen("/groups/x/profile", &[caller(1, 1)]), seen("/users/x/profile/y", &[caller(1, 1)])]);
    assert_eq!(folded(&all, 2), of_users(20));
}

#[test]
fn a_few_networks_fold_nothing() {
    assert_eq!(folded(&users(2_000, 4), 2), [], "each has four votes");
    // In a company all callers are of one network.
    assert_eq!(folded(&users(20, 1), 1).len(), 1);
    let of_few: Vec<_> = (0..2_000).map(|at| seen(&format!("/u/{}", word(at)), &[caller(at % 4, 1)])).collect();
    assert_eq!(folded(&of_few, 1), []);
}

#[test]
fn what_many_callers_send_is_a_path_of_its_own() {
    let many: Vec<u64> = (0..10).map(|at| caller(100 + at, at)).collect();
    // Resources of an API: each has many callers.
    let api: Vec<_> = (0..60).map(|at| seen(&format!("/api/{}", word(at)), &many)).collect();
    assert_eq!(folded(&api, 2), []);
    let mut all = users(20, 5);
    all.push(seen("/users/search/profile", &many));
    all.push(seen("/users/{id}/profile", &many));
    assert_eq!(folded(&all, 2), [("/users/{slug}/profile".to_owned(), 20, 2)], "a rule reaches them as well");
}

#[test]
fn two_places_may_be_names() {
    let all: Vec<_> =
        (0..40).map(|at| seen(&format!("/{}/{}/issues", word(at), word(900 + at)), &[caller(at, at % 9)])).collect();
    assert_eq!(folded(&all, 2), [("/{slug}/{slug}/issues".to_owned(), 40, 0)]);
    // Three are not: little would be left of the path.
    let all: Vec<_> = (0..40)
        .map(|at| seen(&format!("/{}/{}/{}", word(at), word(900 + at), word(500 + at)), &[caller(at, at % 9)]))
        .collect();
    assert_eq!(folded(&all, 2), []);
}

#[test]
fn a_flood_of_paths_costs_little() {
    let all: Vec<_> = (0..20_000_u64)
        .map(|at| {
            seen(
                &format!("/a/{}/{}/d/e/f/g/{}", word(at % 17_000), word(at % 7), word(at % 3)),
                &[caller(at, at % 500)],
            )
        })
        .collect();
    #[expect(clippy::disallowed_methods, reason = "it prints times")]
    let start = std::time::Instant::now();
    let found = folded(&all, 2);
    println!("{} folded in {:?}", found.len(), start.elapsed());
    assert!(found.iter().all(|(path, ..)| path.contains(SLUG)) && !found.is_empty());
}

#[test]
fn entries_on_the_paths_of_many_names_are_one() {
    let mut window = Window::default();
    for at in 0..30_u64 {
        let path = format!("/users/{}/profile", word(at));
        let entry = Entry {
            rule_id: 942_100,
            target: "ARGS:bio".to_owned(),
            path: path.clone(),
            count: 2,
            would_block: 1,
            callers: vec![caller(at, at % 7)],
            ..Entry::default()
        };
        window.entries.insert(entry_key(942_100, "ARGS:bio", &path), entry);
    }
    let FoldedEntries { entries, keys } = folded_entries(&window, |_| false);
    let [one] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((one.path.as_str(), one.count, one.would_block, one.networks()), ("/users/{slug}/profile", 60, 30, 7));
    assert!(one.callers.is_sorted() && keys.len() == 30);
    assert_eq!(keys["942100|ARGS:bio|/users/aab/profile"], "942100|ARGS:bio|/users/{slug}/profile");
    // An exclusion of the config is for one of the paths.
    let FoldedEntries { entries, keys } = folded_entries(&window, |path| path == "/users/aab/profile");
    let paths: Vec<(&str, u64)> = entries.iter().map(|one| (one.path.as_str(), one.count)).collect();
    assert_eq!(paths, [("/users/{slug}/profile", 58), ("/users/aab/profile", 2)]);
    assert!(keys.len() == 29 && !keys.contains_key("942100|ARGS:bio|/users/aab/profile"));
}
