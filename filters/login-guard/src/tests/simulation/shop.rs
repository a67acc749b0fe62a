//! The ordinary users of a shop.

/// One login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) at: u64,
    pub(super) ip: String,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) ok: bool,
}

/// Random numbers of a seed (SplitMix64).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True in `percent` of 100 cases.
    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

const HOUR: u64 = 3_600_000;
const MINUTE: u64 = 60_000;
const SECOND: u64 = 1_000;

/// A shop with 5,000 customers at home and two offices of 120 behind one address each.
pub(super) struct Shop {
    dice: Dice,
}

impl Shop {
    pub(super) fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed) }
    }

    /// The logins of a day that begins at `midnight`, by their time. Day 0 is a Monday.
    pub(super) fn day(&mut self, day: u64, midnight: u64) -> Vec<Login> {
        let mut logins = Vec::new();
        let weekday = day % 7;
        for _ in 0..250 {
            let at = midnight + 7 * HOUR + self.dice.below(15 * HOUR);
            self.customer(at, 12, &mut logins);
        }
        if weekday < 5 {
            for office in 0..2 {
                for worker in 0..120 {
                    let at = midnight + 8 * HOUR + 50 * MINUTE + self.dice.below(20 * MINUTE);
                    let (ip, user) = (format!("203.0.113.{}", office + 1), format!("worker{office}-{worker}"));
                    self.person(at, &ip, &user, 10, &mut logins);
                }
            }
        }
        // The mail comes on Tuesday at nine: customers who have not been here for long.
        if weekday == 1 {
            for _ in 0..600 {
                let at = midnight + 9 * HOUR + self.dice.below(30 * MINUTE);
                self.customer(at, 25, &mut logins);
            }
        }
        self.password_manager(midnight + 10 * HOUR, &mut logins);
        // A client of a phone that sends an old password every two minutes, for a week.
        if (14..21).contains(&day) {
            for minute in (0..1440).step_by(2) {
                let at = midnight + minute * MINUTE;
                logins.push(login(at, "198.18.7.7", "phone-user", "old", false));
            }
        }
        logins.sort_by_key(|login| login.at);
        logins
    }

    fn customer(&mut self, at: u64, fails: u64, logins: &mut Vec<Login>) {
        let number = self.dice.below(5_000);
        // One in ten is somewhere else today.
        let away = if self.dice.percent(10) { 1 + self.dice.below(3) } else { 0 };
        let ip = format!("10.{}.{}.{}", 20 + away, number / 250, number % 250 + 1);
        self.person(at, &ip, &format!("customer{number}"), fails, logins);
    }

    /// A login of a person, who fails first in `fails` of 100 cases.
    fn person(&mut self, mut at: u64, ip: &str, user: &str, fails: u64, logins: &mut Vec<Login>) {
        if self.dice.percent(fails) {
            for _ in 0..=self.dice.below(3) {
                // Of the wrong passwords one in fifty is the most common one.
                let common = self.dice.percent(2);
                let wrong = if common { "123456".to_owned() } else { format!("wrong{}", self.dice.below(1 << 40)) };
                logins.push(login(at, ip, user, &wrong, false));
                at += 8 * SECOND + self.dice.below(50 * SECOND);
            }
            if self.dice.percent(20) {
                return;
            }
        }
        logins.push(login(at, ip, user, &format!("right-{user}"), true));
    }

    /// A password manager that sends a stored password again and again, and then another one; the user has a new one set.
    fn password_manager(&mut self, begin: u64, logins: &mut Vec<Login>) {
        let number = self.dice.below(5_000);
        let (ip, user) = (format!("10.20.{}.{}", number / 250, number % 250 + 1), format!("customer{number}"));
        let mut at = begin + self.dice.below(8 * HOUR);
        for stored in ["stored-1", "stored-2"] {
            for _ in 0..6 {
                logins.push(login(at, &ip, &user, stored, false));
                at += 3 * SECOND;
            }
        }
        logins.push(login(at + 3 * MINUTE, &ip, &user, &format!("right-{user}"), true));
    }
}

pub(super) fn login(at: u64, ip: &str, user: &str, password: &str, ok: bool) -> Login {
    Login { at, ip: ip.to_owned(), user: user.to_owned(), password: password.to_owned(), ok }
}
