//! The partitions of a topic, of which some may not work.

use std::time::Duration;

use rskafka::client::error::{Error, ProtocolError};
use tokio::time::Instant;

use super::super::parts::Unsent;
use super::super::server::retry;
use crate::queue::Line;

/// After what time partitions that were left out are tried again.
const AGAIN: Duration = Duration::from_secs(300);
/// How many partitions are tried for one request: what ails the whole cluster ails all of them.
const TRIES: usize = 3;

/// A partition that takes events.
pub(super) trait Partition: Sync {
    /// Writes events.
    fn produce(&self, part: &[Line]) -> impl Future<Output = Result<(), Error>> + Send;
}

/// The partitions that work. Each request goes to the next one.
#[derive(Debug)]
pub(super) struct Partitions<P> {
    open: Vec<P>,
    /// Grows with each request, and is kept when the partitions are opened again: a partition that fails is not tried first each time.
    turn: usize,
    /// When they are opened again, because some were left out.
    again: Option<Instant>,
}

impl<P> Default for Partitions<P> {
    fn default() -> Partitions<P> {
        Partitions { open: Vec::new(), turn: 0, again: None }
    }
}

impl<P: Partition> Partitions<P> {
    /// Whether they are to be opened.
    pub(super) fn are_wanted(&self) -> bool {
        self.open.is_empty() || self.again.is_some_and(|again| again <= Instant::now())
    }

    /// Takes those that could be opened in the place of those before.
    ///
    /// # Errors
    ///
    /// None could; why the first could not.
    pub(super) fn open(&mut self, opened: Vec<Result<P, String>>) -> Result<(), String> {
        let (mut open, mut failed) = (Vec::new(), Vec::new());
        for partition in opened {
            match partition {
                Ok(partition) => open.push(partition),
                Err(reason) => failed.push(reason),
            }
        }
        self.open = open;
        self.again = (!failed.is_empty()).then(|| Instant::now() + AGAIN);
        match failed.into_iter().next() {
            Some(reason) if self.open.is_empty() => Err(reason),
            Some(reason) => {
                tracing::warn!(reason, "a partition of the topic cannot be opened; events go to the others");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Writes events to the next partition. One that fails is left out for a while, and the one after it is tried.
    ///
    /// # Errors
    ///
    /// None of those that were tried takes them. No partition is kept then: the topic may have changed, or the password.
    pub(super) async fn produce(&mut self, part: &[Line]) -> Result<(), Unsent> {
        // Put back where they work: they are gone when this waits for too long and is given up.
        let mut open = std::mem::take(&mut self.open);
        let mut failed = None;
        for _ in 0..TRIES {
            self.turn = self.turn.wrapping_add(1);
            let Some(at) = self.turn.checked_rem(open.len()) else { break };
            let Some(partition) = open.get(at) else { break };
            let result = match partition.produce(part).await {
                Ok(()) => Ok(()),
                Err(error) if is_too_large(&error) => Err(Unsent::TooLarge),
                Err(error) if is_invalid(&error) => Err(Unsent::Invalid(error.to_string())),
                Err(error) => {
                    failed = Some(error.to_string());
                    open.remove(at);
                    continue;
                }
            };
            if let Some(reason) = failed {
                tracing::warn!(reason, "a partition of the topic takes no events; they go to the others");
                self.again = Some(Instant::now() + AGAIN);
            }
            self.open = open;
            return result;
        }
        Err(Unsent::Failed(retry(failed.unwrap_or_else(|| "no partition".to_owned()), None)))
    }
}

fn is_too_large(error: &Error) -> bool {
    matches!(
        error,
        Error::ServerError { protocol_error: ProtocolError::MessageTooLarge | ProtocolError::RecordListTooLarge, .. }
    )
}

/// Whether a record among them is the reason: the others would be taken.
fn is_invalid(error: &Error) -> bool {
    matches!(
        error,
        Error::ServerError { protocol_error: ProtocolError::InvalidTimestamp | ProtocolError::InvalidRecord, .. }
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rskafka::client::error::RequestContext;

    use super::*;
    use crate::sinks::Then;

    /// A partition with a number, that answers each request alike.
    struct Fake<'a>(usize, Option<ProtocolError>, &'a Mutex<Vec<usize>>);

    impl Partition for Fake<'_> {
        async fn produce(&self, _part: &[Line]) -> Result<(), Error> {
            self.2.lock().unwrap().push(self.0);
            self.1.map_or(Ok(()), |protocol_error| Err(error(protocol_error)))
        }
    }

    fn error(protocol_error: ProtocolError) -> Error {
        Error::ServerError {
            protocol_error,
            error_message: None,
            request: RequestContext::Partition("events".to_owned(), 0),
            response: None,
            is_virtual: false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn partitions_that_cannot_be_opened_are_left_out_for_a_while() {
        let (asked, mut partitions) = (Mutex::default(), Partitions::default());
        assert!(partitions.are_wanted());
        let none: Vec<Result<Fake<'_>, String>> = vec![Err("no leader".to_owned()), Err("none either".to_owned())];
        assert_eq!(partitions.open(none), Err("no leader".to_owned()));
        assert!(partitions.are_wanted());
        let fake = |number| Ok(Fake(number, None, &asked));
        partitions.open(vec![fake(0), Err("no leader".to_owned()), fake(2)]).unwrap();
        for _ in 0..4 {
            partitions.produce(&[]).await.unwrap();
        }
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), [2, 0, 2, 0]);
        assert!(!partitions.are_wanted());
        tokio::time::sleep(AGAIN).await;
        assert!(partitions.are_wanted());
        // The turn goes on.
        partitions.open(vec![fake(0), fake(1), fake(2)]).unwrap();
        partitions.produce(&[]).await.unwrap();
        assert_eq!(*asked.lock().unwrap(), [2]);
        tokio::time::sleep(2 * AGAIN).await;
        assert!(!partitions.are_wanted(), "all of them work");
    }

    #[tokio::test(start_paused = true)]
    async fn a_partition_that_takes_nothing_holds_up_no_event() {
        let (asked, mut partitions) = (Mutex::default(), Partitions::default());
        let refusing = || Fake(1, Some(ProtocolError::NotEnoughReplicas), &asked);
        partitions.open(vec![Ok(Fake(0, None, &asked)), Ok(refusing()), Ok(Fake(2, None, &asked))]).unwrap();
        for _ in 0..3 {
            partitions.produce(&[]).await.unwrap();
        }
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()).iter().filter(|number| **number == 1).count(), 1);
        tokio::time::sleep(AGAIN).await;
        assert!(partitions.are_wanted());
        // What ails all of them fails, and they are opened again.
        partitions.open((0..9).map(|_| Ok(refusing())).collect()).unwrap();
        let Err(Unsent::Failed(failure)) = partitions.produce(&[]).await else { panic!("it is taken") };
        assert_eq!((failure.then, asked.lock().unwrap().len()), (Then::Retry(None), TRIES));
        assert!(partitions.are_wanted());
    }

    #[tokio::test]
    async fn what_is_said_of_an_event_is_told_from_other_errors() {
        for (answer, expected) in [
            (ProtocolError::MessageTooLarge, Unsent::TooLarge),
            (ProtocolError::InvalidTimestamp, Unsent::Invalid(error(ProtocolError::InvalidTimestamp).to_string())),
            (ProtocolError::InvalidRecord, Unsent::Invalid(error(ProtocolError::InvalidRecord).to_string())),
        ] {
            let (asked, mut partitions) = (Mutex::default(), Partitions::default());
            partitions.open(vec![Ok(Fake(0, Some(answer), &asked)), Ok(Fake(1, None, &asked))]).unwrap();
            partitions.turn = 1;
            assert_eq!(partitions.produce(&[]).await, Err(expected));
            assert!(!partitions.are_wanted(), "the partition works");
        }
        assert!(!is_too_large(&error(ProtocolError::TopicAuthorizationFailed)));
    }
}
