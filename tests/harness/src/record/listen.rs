//! Connections that bring streams.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use recording::{BadEntry, Entry, Options};

/// How many connections are read at a time; more are closed at once.
const CONNECTIONS: usize = 256;
/// How many entries wait for being written before connections do.
const WAITING: usize = 1024;

/// Where streams come in.
pub struct Listener {
    address: SocketAddr,
    messages: Receiver<Message>,
    sender: SyncSender<Message>,
}

/// What happens.
#[derive(Debug)]
pub enum Message {
    /// An entry came.
    Entry(Box<Result<Entry, BadEntry>>),
    /// A connection ended: its name.
    Closed(String),
    /// A connection was not taken, or no more can be: why.
    Refused(String),
    /// Somebody wants an end.
    Stop,
}

/// Takes connections. On each comes a stream of one format: traces of Envoy's tap filter as JSON, our own JSON lines (so
/// can an access log be written), or any other that shows in its first bytes. Entries are named `HOST:PORT#NUMBER`.
///
/// # Errors
///
/// The address is taken, or not of this machine.
pub fn listen(address: SocketAddr, options: &Options) -> io::Result<Listener> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let (sender, messages) = sync_channel(WAITING);
    let (to, options) = (sender.clone(), options.clone());
    thread::Builder::new().name("accept".to_owned()).spawn(move || accept(&listener, &to, &options))?;
    Ok(Listener { address, messages, sender })
}

impl Listener {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What happens, in its order.
    #[must_use]
    pub fn messages(&self) -> &Receiver<Message> {
        &self.messages
    }

    /// Something that asks for an end, from any thread.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let sender = self.sender.clone();
        // Nobody listens any more: then it has ended.
        move || drop(sender.send(Message::Stop))
    }
}

fn accept(listener: &TcpListener, to: &SyncSender<Message>, options: &Options) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let refused = match listener.accept() {
            Ok((stream, peer)) if open.load(Ordering::Relaxed) < CONNECTIONS => {
                open.fetch_add(1, Ordering::Relaxed);
                let (sender, options, count) = (to.clone(), options.clone(), Arc::clone(&open));
                let read = move || {
                    read(stream, &peer.to_string(), &sender, &options);
                    count.fetch_sub(1, Ordering::Relaxed);
                };
                match thread::Builder::new().name("stream".to_owned()).spawn(read) {
                    Ok(_) => continue,
                    Err(error) => {
                        open.fetch_sub(1, Ordering::Relaxed);
                        format!("{peer}: {error}")
                    }
                }
            }
            Ok((_, peer)) => format!("{peer}: {CONNECTIONS} connections are open already"),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {
                continue;
            }
            Err(error) => {
                // Mostly too many open files: the next try would fail at once.
                thread::sleep(std::time::Duration::from_millis(100));
                format!("a connection: {error}")
            }
        };
        if to.send(Message::Refused(refused)).is_err() {
            return;
        }
    }
}

fn read(stream: TcpStream, name: &str, to: &SyncSender<Message>, options: &Options) {
    for entry in recording::live(name, stream, options) {
        if to.send(Message::Entry(Box::new(entry))).is_err() {
            return;
        }
    }
    let _ = to.send(Message::Closed(name.to_owned()));
}
