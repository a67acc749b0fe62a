//! Attacks in the middle of an ordinary day.

use super::shop::{Dice, Shop, login};
use super::*;

/// When an attack was noticed: the number of its login, and the minutes since its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Noticed {
    attempts: usize,
    minutes: u64,
    event: String,
}

/// An attack on the third day, among the logins of the shop: when the guard notices it. What the guard and fail2ban have stopped by its
/// end is printed.
fn attacked(name: &str, attack: &[Login], tag: &str) -> Option<Noticed> {
    let (guard, other) = (Tried::guard(), Tried::fail2ban());
    let mut shop = Shop::new(7);
    let mut all: Vec<(Login, bool)> = Vec::new();
    for day in 0..3 {
        all.extend(shop.day(day, MONDAY + day * DAY).into_iter().map(|login| (login, false)));
    }
    all.extend(attack.iter().cloned().map(|login| (login, true)));
    all.sort_by_key(|(login, _)| login.at);
    let begin = attack[0].at;
    let (mut attempts, mut noticed, mut passed, mut passed_there, mut innocent) = (0, None, 0, 0, 0);
    for (login, hostile) in &all {
        let fate = guard.send(login);
        let stopped = other.send(login) == Fate::Banned;
        attempts += usize::from(*hostile);
        passed += usize::from(*hostile && fate == Fate::Passed);
        passed_there += usize::from(*hostile && !stopped);
        innocent += usize::from(!*hostile && login.at >= begin && fate != Fate::Passed);
        let events = guard.reported();
        if noticed.is_none() && *hostile {
            let minutes = (login.at - begin) / MINUTE;
            let event = events.into_iter().find(|event| event.contains(tag));
            noticed = event.map(|event| Noticed { attempts, minutes, event });
        }
    }
    println!("{name}: {} attempts", attack.len());
    match &noticed {
        Some(Noticed { attempts, minutes, event }) => {
            println!("  noticed at attempt {attempts}, {minutes} min: {event}")
        }
        None => println!("  not noticed"),
    }
    println!("  login guard and threat response: {passed} attempts passed, {innocent} logins of users refused");
    println!("  fail2ban: {passed_there} attempts passed, {} bans on all three days", other.host.bans.borrow().len());
    noticed
}

/// The third day at noon.
const NOON: u64 = MONDAY + 2 * DAY + 12 * HOUR;

#[test]
fn stuffing_by_one_source_is_noticed_within_25_attempts() {
    let attack: Vec<Login> = (0..500)
        .map(|number| {
            let user = format!("leaked{number}");
            login(NOON + number * 2_000, "198.51.100.9", &user, &format!("pw{number}"), number % 100 == 99)
        })
        .collect();
    let noticed = attacked("stuffing by one source", &attack, "credential stuffing").unwrap();
    assert!(noticed.attempts <= 25, "{noticed:?}");
}

/// A thousand sources with three attempts each, in an order that is drawn.
fn thousand_sources(begin: u64, pause: u64) -> Vec<Login> {
    let mut dice = Dice::new(3);
    let mut sources: Vec<u64> = (0..3_000).map(|number| number % 1_000).collect();
    for at in (1..sources.len()).rev() {
        sources.swap(at, usize::try_from(dice.below(at as u64 + 1)).unwrap());
    }
    let attempt = |(source, number): (&u64, u64)| {
        let ip = format!("100.{}.{}.{}", 64 + source % 50, source / 50, 1 + source % 250);
        login(begin + number * pause, &ip, &format!("leaked{number}"), &format!("pw{number}"), number % 100 == 99)
    };
    sources.iter().zip(0..).map(attempt).collect()
}

#[test]
fn stuffing_by_a_thousand_sources_is_noticed_within_a_twentieth_of_the_accounts() {
    for (name, begin, pause) in [
        ("a thousand sources within half an hour", NOON, 600),
        ("a thousand sources within six hours", NOON, 7_200),
        ("a thousand sources in the rush after the mail", MONDAY + DAY + 9 * HOUR + 5 * MINUTE, 600),
    ] {
        let noticed = attacked(name, &thousand_sources(begin, pause), "credential stuffing").unwrap();
        assert!(noticed.attempts <= 150, "{name}: {noticed:?}");
    }
}

#[test]
fn spraying_of_one_password_is_noticed_within_20_attempts() {
    for (name, sources) in [("spraying by one source", 1), ("spraying by 250 sources", 250)] {
        let attempt = |number: u64| {
            let ip = format!("100.70.{}.1", number % sources);
            login(NOON + number * 5_000, &ip, &format!("customer{}", number * 7), "Winter2026", false)
        };
        let attack: Vec<Login> = (0..500).map(attempt).collect();
        let noticed = attacked(name, &attack, "password spraying").unwrap();
        assert!(noticed.attempts <= 20, "{noticed:?}");
    }
}

#[test]
fn slow_stuffing_by_200_sources_is_noticed_within_an_hour() {
    let attempt = |number: u64| {
        let (minute, source) = (number / 200, number % 200);
        let ip = format!("100.{}.{}.7", 80 + source / 50, source % 50);
        login(NOON + minute * MINUTE + source * 300, &ip, &format!("leaked{number}"), &format!("pw{number}"), false)
    };
    let attack: Vec<Login> = (0..200 * 30).map(attempt).collect();
    let noticed = attacked("slow stuffing by 200 sources", &attack, "credential stuffing").unwrap();
    assert!(noticed.minutes < 60, "{noticed:?}");
}

#[test]
fn one_account_tried_by_many_sources_is_noticed_and_so_is_its_takeover() {
    let attempt = |number: u64| {
        let ip = format!("100.{}.9.7", 90 + number);
        login(NOON + number * 20_000, &ip, "customer77", &format!("guess{number}"), false)
    };
    let mut attack: Vec<Login> = (0..40).map(attempt).collect();
    let noticed = attacked("one account, many sources", &attack, "account under attack").unwrap();
    assert!(noticed.attempts <= 10, "{noticed:?}");
    attack.push(login(NOON + 41 * 20_000, "100.150.9.7", "customer77", "right-customer77", true));
    let noticed = attacked("one account, and a takeover", &attack, "account takeover").unwrap();
    assert_eq!(noticed.attempts, 41, "{noticed:?}");
}

#[test]
fn accounts_that_a_stuffing_source_gets_into_are_a_takeover() {
    // The guard alone: a threat response has refused the source by then.
    let (host, chain) = (FakeHost::at(NOON), chain(&step()));
    for number in 0..60 {
        let user = format!("customer{}", number * 3 + 1);
        super::super::login(&chain, &host, ("198.51.100.9", &user, &format!("pw{number}")), number % 15 == 14);
        host.advance(3_000);
    }
    let told = events(&host);
    assert!(told.iter().any(|event| event.contains("account takeover: logins to 3 accounts succeeded")), "{told:?}");
}

#[test]
fn an_attack_below_the_threshold_of_a_window_is_seen_within_a_day() {
    // 1,000 sources with three attempts each, spread over a day: 31 in a quarter of an hour, beside a shop of 700 logins.
    let guard = Tried::guard();
    let mut shop = shop::Shop::new(5);
    for login in (0..7).flat_map(|day| shop.day(day, MONDAY + day * DAY)).collect::<Vec<_>>() {
        guard.send(&login);
    }
    let _ = guard.reported();
    let start = MONDAY + 7 * DAY;
    let mut all: Vec<(bool, Login)> = shop.day(7, start).into_iter().map(|login| (false, login)).collect();
    all.extend((0..3000_u64).map(|number| {
        let source = number % 1000;
        let login = Login {
            at: start + number * (DAY / 3000),
            ip: format!("{}.{}.{}.7", 5 + source % 180, source % 251, source % 13),
            user: format!("leaked{number}@example.com"),
            password: format!("pass-{number}"),
            ok: false,
        };
        (true, login)
    }));
    all.sort_by_key(|(_, login)| login.at);
    let (mut tried, mut refused) = (0_u32, 0_u32);
    let mut seen_at = None;
    for (attack, login) in &all {
        let fate = guard.send(login);
        if *attack {
            tried += 1;
            let told = guard.reported().iter().any(|event| event.contains("from many sources"));
            if told && seen_at.is_none() {
                seen_at = Some(tried);
            }
        } else {
            refused += u32::from(fate != Fate::Passed);
        }
    }
    println!("slow attack of 1,000 sources: seen after {seen_at:?} attempts of {tried}; users refused: {refused}");
    assert!(seen_at.is_some_and(|tried| tried < 1000), "{seen_at:?}");
    assert_eq!(refused, 0);
}
