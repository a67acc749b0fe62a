//! Tickets and second factors in the embedded store.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::operators::{OPERATOR, SESSION, end_sessions, operator, read_session};
use super::{Pending, SignInStore, SqliteStore, sqlite_identities};
use accounts::{Ceremony, CeremonyKind, Operator, Proof, SecondFactor, Session, Ticket, TicketKind};

/// Tickets of one kind that an operator has, at most.
const TICKETS: u32 = 10;
/// Ceremonies of one kind, at most.
const CEREMONIES: u32 = 10_000;

impl SignInStore for SqliteStore {
    fn sessions(&self, operator: Option<&str>) -> Pending<'_, Vec<Session>> {
        let operator = operator.map(str::to_owned);
        Box::pin(self.read(move |db| {
            let select = format!(
                "SELECT {SESSION} FROM console_session AS s WHERE ?1 IS NULL OR s.operator = ?1
                 ORDER BY s.seen_at DESC, s.rowid DESC"
            );
            db.prepare_cached(&select)?.query_map([operator], |row| read_session(row, 0))?.collect()
        }))
    }

    fn sessions_end(&self, operator: &str, keep: Option<[u8; 32]>) -> Pending<'_, u64> {
        let operator = operator.to_owned();
        Box::pin(self.write(move |db| {
            let delete = "DELETE FROM console_session WHERE operator = ?1 AND token_sha256 IS NOT ?2";
            Ok(count(db.execute(delete, params![operator, keep])?))
        }))
    }

    fn ticket_put(&self, ticket: Ticket, password_hash: &str) -> Pending<'_, bool> {
        let hash = password_hash.to_owned();
        Box::pin(self.write(move |db| put_ticket(db, &ticket, Some(&hash))))
    }

    fn ticket(&self, sha256: [u8; 32], now_millis: u64) -> Pending<'_, Option<(Ticket, Operator)>> {
        Box::pin(self.read(move |db| find_ticket(db, &sha256, now_millis)))
    }

    fn ticket_take(&self, sha256: [u8; 32], kind: TicketKind, now_millis: u64) -> Pending<'_, Option<Operator>> {
        Box::pin(self.write(move |db| {
            let found = find_ticket(db, &sha256, now_millis)?.filter(|(ticket, _)| ticket.kind == kind);
            if found.is_some() {
                db.execute("DELETE FROM login_ticket WHERE sha256 = ?1", [sha256])?;
            }
            Ok(found.map(|(_, operator)| operator))
        }))
    }

    fn ticket_failed(&self, sha256: [u8; 32], limit: u32) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| {
            db.execute("UPDATE login_ticket SET failures = failures + 1 WHERE sha256 = ?1", [sha256])?;
            db.execute("DELETE FROM login_ticket WHERE sha256 = ?1 AND failures >= ?2", params![sha256, limit])?;
            Ok(())
        }))
    }

    fn tickets_sweep(&self, now_millis: u64) -> Pending<'_, u64> {
        Box::pin(self.write(move |db| {
            let tickets = db.execute("DELETE FROM login_ticket WHERE until_millis <= ?1", [now_millis])?;
            let ceremonies = db.execute("DELETE FROM ceremony WHERE until_millis <= ?1", [now_millis])?;
            Ok(count(tickets + ceremonies))
        }))
    }

    fn ceremony_put(&self, ceremony: Ceremony) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| put_ceremony(db, &ceremony)))
    }

    fn ceremony_take(&self, sha256: [u8; 32], kind: CeremonyKind, now_millis: u64) -> Pending<'_, Option<Ceremony>> {
        Box::pin(self.write(move |db| {
            let delete = "DELETE FROM ceremony WHERE sha256 = ?1 AND kind = ?2 AND until_millis > ?3
                RETURNING operator, data, until_millis";
            let read = |row: &Row<'_>| {
                let (operator, data, until_millis) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(Ceremony { sha256, kind, operator, data, until_millis })
            };
            db.prepare_cached(delete)?.query_row(params![sha256, kind.as_str(), now_millis], read).optional()
        }))
    }

    fn operator_of_identity(&self, issuer: &str, subject: &str) -> Pending<'_, Option<Operator>> {
        let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
        Box::pin(self.read(move |db| sqlite_identities::find(db, &issuer, &subject)))
    }

    fn second_factor(&self, operator: &str) -> Pending<'_, Option<SecondFactor>> {
        let operator = operator.to_owned();
        Box::pin(self.read(move |db| {
            let select = "SELECT secret, confirmed_at, last_step, failures, failed_at,
                (SELECT count(*) FROM recovery_code AS r WHERE r.operator = f.operator)
                FROM second_factor AS f WHERE operator = ?1";
            let read = |row: &Row<'_>| {
                Ok(SecondFactor {
                    secret: row.get(0)?,
                    confirmed_at_millis: row.get(1)?,
                    last_step: row.get(2)?,
                    failures: row.get(3)?,
                    failed_at_millis: row.get(4)?,
                    recovery_codes: row.get(5)?,
                })
            };
            db.prepare_cached(select)?.query_row([operator], read).optional()
        }))
    }

    fn second_factor_begin(&self, operator: &str, secret: Vec<u8>) -> Pending<'_, bool> {
        let operator = operator.to_owned();
        Box::pin(self.write(move |db| {
            let insert = "INSERT INTO second_factor (operator, secret, confirmed_at, last_step, failures, failed_at)
                SELECT name, ?2, NULL, 0, 0, 0 FROM operator WHERE name = ?1
                ON CONFLICT (operator) DO UPDATE SET secret = excluded.secret, failures = 0 WHERE confirmed_at IS NULL";
            Ok(db.execute(insert, params![operator, secret])? > 0)
        }))
    }

    fn second_factor_rewrite(&self, operator: &str, from: Vec<u8>, to: Vec<u8>) -> Pending<'_, bool> {
        let operator = operator.to_owned();
        Box::pin(self.write(move |db| {
            let update = "UPDATE second_factor SET secret = ?3 WHERE operator = ?1 AND secret = ?2";
            Ok(db.execute(update, params![operator, from, to])? > 0)
        }))
    }

    fn second_factor_use(&self, operator: &str, proof: Proof) -> Pending<'_, bool> {
        let operator = operator.to_owned();
        Box::pin(self.write(move |db| {
            let accepted = match proof {
                Proof::Step(step) => {
                    let update = "UPDATE second_factor SET last_step = ?2
                        WHERE operator = ?1 AND confirmed_at IS NOT NULL AND last_step < ?2";
                    db.execute(update, params![operator, step])?
                }
                Proof::Recovery(sha256) => {
                    let delete = "DELETE FROM recovery_code WHERE operator = ?1 AND sha256 = ?2";
                    db.execute(delete, params![operator, sha256])?
                }
            };
            if accepted > 0 {
                db.execute("UPDATE second_factor SET failures = 0 WHERE operator = ?1", [operator])?;
            }
            Ok(accepted > 0)
        }))
    }

    fn second_factor_failed(&self, operator: &str, now_millis: u64) -> Pending<'_, ()> {
        let operator = operator.to_owned();
        Box::pin(self.write(move |db| {
            let update = "UPDATE second_factor SET failures = failures + 1, failed_at = ?2 WHERE operator = ?1";
            db.execute(update, params![operator, now_millis]).map(|_| ())
        }))
    }
}

/// Keeps a ticket; false when the operator is gone, or has another password than the one with this hash.
pub(super) fn put_ticket(db: &Connection, ticket: &Ticket, password_hash: Option<&str>) -> rusqlite::Result<bool> {
    let insert = "INSERT INTO login_ticket (sha256, operator, kind, until_millis, failures)
        SELECT ?1, name, ?3, ?4, ?5 FROM operator WHERE name = ?2 AND (?6 IS NULL OR password_hash = ?6)";
    let kind = ticket.kind.as_str();
    let Ticket { sha256, operator, until_millis, failures, .. } = ticket;
    let put = db.execute(insert, params![sha256, operator, kind, until_millis, failures, password_hash])?;
    let most = if ticket.kind == TicketKind::Link { 1 } else { TICKETS };
    let superfluous = "DELETE FROM login_ticket WHERE sha256 IN (
        SELECT sha256 FROM login_ticket WHERE operator = ?1 AND kind = ?2
        ORDER BY sha256 = ?3 DESC, until_millis DESC LIMIT -1 OFFSET ?4)";
    db.execute(superfluous, params![ticket.operator, kind, ticket.sha256, most])?;
    Ok(put > 0)
}

fn put_ceremony(db: &Connection, ceremony: &Ceremony) -> rusqlite::Result<()> {
    let insert =
        "INSERT OR REPLACE INTO ceremony (sha256, kind, operator, data, until_millis) VALUES (?1, ?2, ?3, ?4, ?5)";
    let Ceremony { sha256, kind, operator, data, until_millis } = ceremony;
    db.execute(insert, params![sha256, kind.as_str(), operator, data, until_millis])?;
    // Counted in all first, which is quick; and a fiftieth more goes, so that they are not read again for each that comes after.
    let count = |select: &str, kind: &[&str]| {
        db.prepare_cached(select)?.query_row(rusqlite::params_from_iter(kind), |row| row.get::<_, u32>(0))
    };
    if count("SELECT count(*) FROM ceremony", &[])? <= CEREMONIES
        || count("SELECT count(*) FROM ceremony WHERE kind = ?1", &[kind.as_str()])? <= CEREMONIES
    {
        return Ok(());
    }
    let superfluous = "DELETE FROM ceremony WHERE sha256 IN (
        SELECT sha256 FROM ceremony WHERE kind = ?1 ORDER BY until_millis DESC, sha256 LIMIT -1 OFFSET ?2)";
    db.execute(superfluous, params![kind.as_str(), CEREMONIES - CEREMONIES / 50]).map(|_| ())
}

/// Makes logins need the second factor of an operator; false where there is none, or one that they need already.
pub(super) fn confirm(
    db: &Connection,
    name: &str,
    (step, at_millis): (u64, u64),
    recovery_codes: &[[u8; 32]],
    keep_session: &[u8; 32],
) -> rusqlite::Result<bool> {
    let update = "UPDATE second_factor SET confirmed_at = ?2, last_step = ?3, failures = 0
        WHERE operator = ?1 AND confirmed_at IS NULL";
    if db.execute(update, params![name, at_millis, step])? == 0 {
        return Ok(false);
    }
    db.execute("DELETE FROM recovery_code WHERE operator = ?1", [name])?;
    for code in recovery_codes {
        db.execute("INSERT OR IGNORE INTO recovery_code (operator, sha256) VALUES (?1, ?2)", params![name, code])?;
    }
    end_sessions(db, name, Some(keep_session))?;
    Ok(true)
}

/// Removes the second factor of an operator; false where there is none.
pub(super) fn remove_factor(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    db.execute("DELETE FROM recovery_code WHERE operator = ?1", [name])?;
    Ok(db.execute("DELETE FROM second_factor WHERE operator = ?1", [name])? > 0)
}

fn find_ticket(db: &Connection, sha256: &[u8; 32], now_millis: u64) -> rusqlite::Result<Option<(Ticket, Operator)>> {
    let select = format!(
        "SELECT t.sha256, t.operator, t.kind, t.until_millis, t.failures, {OPERATOR}
         FROM login_ticket AS t JOIN operator AS o ON o.name = t.operator WHERE t.sha256 = ?1 AND t.until_millis > ?2"
    );
    let read = |row: &Row<'_>| {
        let kind = TicketKind::from_store(&row.get::<_, String>(2)?);
        let (sha256, name) = (row.get(0)?, row.get(1)?);
        let (until_millis, failures) = (row.get(3)?, row.get(4)?);
        let ticket = kind.map(|kind| Ticket { sha256, operator: name, kind, until_millis, failures });
        Ok((ticket, operator(row, 5)?))
    };
    let found = db.prepare_cached(&select)?.query_row(params![sha256, now_millis], read).optional()?;
    Ok(found.and_then(|(ticket, operator)| Some((ticket?, operator))))
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceremonies_of_one_kind_push_out_none_of_another() {
        let mut db = Connection::open_in_memory().unwrap();
        super::super::schema::migrate(&mut db).unwrap();
        let put = |id: u32, kind, until_millis| {
            let mut sha256 = [0; 32];
            sha256[..4].copy_from_slice(&id.to_be_bytes());
            let ceremony = Ceremony { sha256, kind, operator: String::new(), data: String::new(), until_millis };
            put_ceremony(&db, &ceremony).unwrap();
        };
        put(0, CeremonyKind::PasskeyConfirm, 1);
        db.execute_batch("BEGIN").unwrap();
        for id in 1..=CEREMONIES + 5 {
            put(id, CeremonyKind::Oidc, 1_000);
        }
        let of = |kind: CeremonyKind| -> u32 {
            let count = "SELECT count(*) FROM ceremony WHERE kind = ?1";
            db.query_row(count, [kind.as_str()], |row| row.get(0)).unwrap()
        };
        let kept = of(CeremonyKind::Oidc);
        assert_eq!((of(CeremonyKind::PasskeyConfirm), kept), (1, CEREMONIES - CEREMONIES / 50 + 4));
    }
}
