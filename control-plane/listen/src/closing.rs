//! The end of a server, as its streams learn of it.

use tokio::sync::watch;

/// Tells every open stream that its server ends. A stream never ends by itself, so a graceful shutdown would wait for ever.
#[derive(Clone, Debug)]
pub struct Closing(watch::Receiver<bool>);

impl Closing {
    /// A signal, and what gives it.
    pub fn new() -> (watch::Sender<bool>, Closing) {
        let (sender, receiver) = watch::channel(false);
        (sender, Closing(receiver))
    }

    /// A signal that is never given.
    pub fn never() -> Closing {
        Closing::new().1
    }

    /// Completes when the signal is given.
    pub async fn closed(mut self) {
        if self.0.wait_for(|closing| *closing).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
