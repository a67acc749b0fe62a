//! HTTP/1: any bytes out, every answer in.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

use palisade_tests::http::Connection;

use super::{Answers, Ended, Patience, Slow, ended};

/// More answers than this are not read from one connection.
const MAX_ANSWERS: usize = 64;
/// Of the bodies of the answers, this much is kept.
const MAX_TEXT: usize = 1 << 20;

/// Sends bytes on a connection of its own and reads what comes back.
#[must_use]
pub fn exchange(to: SocketAddr, bytes: &[u8], slow: Option<Slow>, patience: Patience) -> Answers {
    let mut answers = Answers::default();
    let mut connection = match Connection::open(to) {
        Ok(connection) => connection,
        Err(_) => return Answers { ended: Some(Ended::Refused), ..answers },
    };
    // A gateway that refuses early may close before it has read everything; its answer still counts.
    let written = write(&mut connection, bytes, slow);
    let bodyless = bytes.starts_with(b"HEAD ");
    let mut wait = patience.first;
    while answers.statuses.len() < MAX_ANSWERS {
        if connection.set_patience(wait).is_err() {
            break;
        }
        match connection.read(bodyless) {
            Ok(response) => {
                answers.statuses.push(response.status);
                if answers.text.len() < MAX_TEXT {
                    answers.text.push_str(&response.text());
                }
                if response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
                    break;
                }
            }
            Err(error) if answers.statuses.is_empty() => {
                answers.ended = Some(match written {
                    Err(_) => Ended::Closed,
                    Ok(()) => ended(&error),
                });
                break;
            }
            Err(_) => break,
        }
        if patience.more.is_zero() {
            break;
        }
        wait = patience.more;
    }
    answers
}

fn write(connection: &mut Connection, bytes: &[u8], slow: Option<Slow>) -> io::Result<()> {
    let Some(slow) = slow else {
        return connection.write(bytes);
    };
    let deadline = Instant::now() + slow.most;
    for piece in bytes.chunks(slow.piece.max(1)) {
        if Instant::now() > deadline {
            break;
        }
        connection.write(piece)?;
        thread::sleep(slow.pause);
    }
    Ok(())
}
