//! Users and passwords stand nowhere but in the request.

use super::*;

#[test]
fn neither_users_nor_passwords_are_in_events_signals_logs_or_shared_data() {
    let (chain, host) = (chain(&step()), FakeHost::at(NOW));
    let mut told = String::new();
    for number in 0..40 {
        let user = format!("ada-lovelace-{number}");
        let outcome = login(&chain, &host, ("192.0.2.1", &user, "correct-horse"), number > 35);
        told.push_str(&format!("{:?}{:?}", outcome.early, outcome.tags));
    }
    for source in 0..20 {
        login(&chain, &host, (&format!("198.51.{source}.1"), "ada-lovelace-0", "battery-staple"), false);
    }
    for line in host.events.borrow().iter() {
        told.push_str(&String::from_utf8_lossy(line));
    }
    told.push_str(&format!("{:?}{:?}", host.logged.borrow(), host.state.borrow()));
    told.push_str(&format!("{:?}", host.shared_data));
    told.push_str(&format!("{:?}", host.bans.borrow()));
    assert!(events(&host).len() > 2, "{:?}", events(&host));
    for secret in ["ada-lovelace", "correct-horse", "battery-staple"] {
        assert!(!told.contains(secret), "{secret}");
        let debugged: Vec<String> = secret.bytes().map(|byte| byte.to_string()).collect();
        assert!(!told.contains(&debugged.join(", ")), "{secret}");
    }
    assert!(host.shared().get("svc.counts").is_some());
}

#[test]
fn pseudonyms_change_with_the_secret_and_every_thirty_days() {
    let of = |secret: &[u8], now: u64| Pseudonyms::new(secret.to_vec()).of(pseudonym::Of::User, b"ada", now);
    let month = 30 * 86_400_000;
    assert_eq!(of(b"one", month), of(b"one", 2 * month - 1));
    assert_ne!(of(b"one", month), of(b"one", 2 * month));
    assert_ne!(of(b"one", month), of(b"two", month));
    let pseudonyms = Pseudonyms::new(b"one".to_vec());
    assert_eq!(pseudonyms.before(pseudonym::Of::User, b"ada", 2 * month), of(b"one", month));
    assert_ne!(pseudonyms.of(pseudonym::Of::Password, b"ada", month), of(b"one", month));
    assert_eq!(pseudonyms.shown(&[0xab; 16]).as_deref(), Some("abababababab"));
    assert_eq!(Pseudonyms::new(Vec::new()).shown(&[0xab; 16]), None, "it could be undone by guessing");
}
