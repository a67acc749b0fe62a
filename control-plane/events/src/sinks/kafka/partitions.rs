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
/// How long one request may take, with what the client tries again by itself.
const TIMEOUT: Duration = Duration::from_secs(30);

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
    /// A broker has taken or refused events since they were opened, and since the last request that failed.
    works: bool,
}

impl<P> Default for Partitions<P> {
    fn default() -> Partitions<P> {
        Partitions { open: Vec::new(), turn: 0, again: None, works: false }
    }
}

impl<P: Partition> Partitions<P> {
    /// Whether they are to be opened.
    pub(super) fn are_wanted(&self) -> bool {
        self.open.is_empty() || self.again.is_some_and(|again| again <= Instant::now())
    }

    /// Takes those that could be opened in the place of those before, which stay for a while longer if none could.
    ///
    /// # Errors
    ///
    /// None could, and there are none; why the first could not.
    pub(super) fn open(&mut self, opened: Vec<Result<P, String>>) -> Result<(), String> {
        let (mut open, mut failed) = (Vec::new(), None);
        for partition in opened {
            match partition {
                Ok(partition) => open.push(partition),
                Err(reason) => failed = failed.or(Some(reason)),
            }
        }
        self.again = failed.is_some().then(|| Instant::now() + AGAIN);
        if !open.is_empty() {
            (self.open, self.works) = (open, false);
        }
        match failed {
            Some(reason) if self.open.is_empty() => Err(reason),
            Some(reason) => {
                tracing::warn!(reason, "a partition of the topic cannot be opened; events go to the others");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Writes events to the next partition. One that fails is left out for a while, and the one after it is tried; so is one that does not
    /// answer in time, and the next request goes to the one after it.
    ///
    /// # Errors
    ///
    /// None of those that were tried takes them. No partition is kept if a broker has not answered since they were opened, or since the
    /// last request that failed: the topic may have changed, or the password.
    pub(super) async fn produce(&mut self, part: &[Line]) -> Result<(), Unsent> {
        let tried = tokio::time::timeout(TIMEOUT, self.try_some(part)).await;
        let result = tried
            .unwrap_or_else(|_| Err(Unsent::Failed(retry(format!("no answer within {} s", TIMEOUT.as_secs()), None))));
        let failed = matches!(result, Err(Unsent::Failed(_)));
        if failed && !self.works {
            self.open.clear();
        }
        self.works = !failed;
        result
    }

    async fn try_some(&mut self, part: &[Line]) -> Result<(), Unsent> {
        let mut failed = None;
        for _ in 0..TRIES {
            self.turn = self.turn.wrapping_add(1);
            let Some(at) = self.turn.checked_rem(self.open.len()) else { break };
            // Left out until it has answered: where this takes too long and is given up, nothing after it runs.
            let (partition, before) = (self.open.remove(at), self.again);
            self.again = before.or_else(|| Some(Instant::now() + AGAIN));
            let result = match partition.produce(part).await {
                Ok(()) => Ok(()),
                Err(error) if is_too_large(&error) => Err(Unsent::TooLarge),
                Err(error) if is_invalid(&error) => Err(Unsent::Invalid(error.to_string())),
                Err(error) => {
                    failed = Some(error.to_string());
                    continue;
                }
            };
            self.open.insert(at, partition);
            match failed {
                Some(reason) => {
                    tracing::warn!(reason, "a partition of the topic takes no events; they go to the others");
                }
                None => self.again = before,
            }
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

    #[derive(Clone, Copy)]
    enum Answer {
        Takes,
        Says(ProtocolError),
        Never,
    }

    /// A partition with a number, that answers each request alike.
    struct Fake<'a>(usize, Answer, &'a Mutex<Vec<usize>>);

    impl Partition for Fake<'_> {
        async fn produce(&self, _part: &[Line]) -> Result<(), Error> {
            self.2.lock().unwrap().push(self.0);
            match self.1 {
                Answer::Takes => Ok(()),
                Answer::Says(protocol_error) => Err(error(protocol_error)),
                Answer::Never => std::future::pending().await,
            }
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
        let fake = |number| Ok(Fake(number, Answer::Takes, &asked));
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
        let refusing = || Fake(1, Answer::Says(ProtocolError::NotEnoughReplicas), &asked);
        let taking = |number| Fake(number, Answer::Takes, &asked);
        partitions.open(vec![Ok(taking(0)), Ok(refusing()), Ok(taking(2))]).unwrap();
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

    #[tokio::test(start_paused = true)]
    async fn a_partition_that_never_answers_is_left_out_and_the_others_are_kept() {
        let (asked, mut partitions) = (Mutex::default(), Partitions::default());
        let fake = |number, answer| Ok(Fake(number, answer, &asked));
        partitions.open(vec![fake(0, Answer::Takes), fake(1, Answer::Takes), fake(2, Answer::Never)]).unwrap();
        partitions.produce(&[]).await.unwrap();
        let Err(Unsent::Failed(failure)) = partitions.produce(&[]).await else { panic!("it is taken") };
        assert_eq!((failure.reason.as_str(), failure.then), ("no answer within 30 s", Then::Retry(None)));
        for _ in 0..4 {
            partitions.produce(&[]).await.unwrap();
        }
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), [1, 2, 1, 0, 1, 0]);
        assert!(!partitions.are_wanted());
        tokio::time::sleep(AGAIN).await;
        assert!(partitions.are_wanted());
        // None answers: they are opened again.
        partitions.open((0..9).map(|number| fake(number, Answer::Never)).collect()).unwrap();
        assert!(partitions.produce(&[]).await.is_err() && partitions.are_wanted());
        assert_eq!(asked.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn partitions_that_work_are_kept_where_some_others_fail_or_none_can_be_opened() {
        let (asked, mut partitions) = (Mutex::default(), Partitions::default());
        let refuses = Answer::Says(ProtocolError::NotEnoughReplicas);
        let fake = |number, answer| Ok(Fake(number, answer, &asked));
        let all = (0..6).map(|number| fake(number, if number == 5 { Answer::Takes } else { refuses })).collect();
        partitions.open(all).unwrap();
        partitions.turn = 4;
        partitions.produce(&[]).await.unwrap();
        // The next three take nothing, and so do the two after them.
        assert!(partitions.produce(&[]).await.is_err() && !partitions.are_wanted());
        partitions.produce(&[]).await.unwrap();
        assert_eq!(asked.lock().unwrap().iter().filter(|number| **number == 5).count(), 2);
        tokio::time::sleep(AGAIN).await;
        assert!(partitions.are_wanted());
        assert_eq!(partitions.open(vec![Err("no broker".to_owned())]), Ok(()));
        assert!(!partitions.are_wanted(), "not before some time has passed");
        partitions.produce(&[]).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_said_of_an_event_is_told_from_other_errors() {
        for (answer, expected) in [
            (ProtocolError::MessageTooLarge, Unsent::TooLarge),
            (ProtocolError::InvalidTimestamp, Unsent::Invalid(error(ProtocolError::InvalidTimestamp).to_string())),
            (ProtocolError::InvalidRecord, Unsent::Invalid(error(ProtocolError::InvalidRecord).to_string())),
        ] {
            let (asked, mut partitions) = (Mutex::default(), Partitions::default());
            let fake = |number, answer| Ok(Fake(number, answer, &asked));
            partitions.open(vec![fake(0, Answer::Says(answer)), fake(1, Answer::Takes)]).unwrap();
            partitions.turn = 1;
            assert_eq!(partitions.produce(&[]).await, Err(expected));
            assert!(!partitions.are_wanted(), "the partition works");
        }
        assert!(!is_too_large(&error(ProtocolError::TopicAuthorizationFailed)));
    }
}
