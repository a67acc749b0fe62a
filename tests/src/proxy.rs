//! A network between a client and a server that can fail: bytes are held back, connections are cut, another server answers.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// What the network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// It carries everything.
    Whole,
    /// It takes connections and bytes, in both directions, and delivers nothing. What was sent arrives when it is whole again, as after
    /// repeats of TCP.
    BlackHole,
    /// It ends connections, and refuses new ones.
    Cut,
}

/// A TCP proxy on a free port of loopback. Dropping it cuts the connections.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    network: Network,
    server: SocketAddr,
    /// Both ends of each connection.
    open: Vec<TcpStream>,
}

impl Proxy {
    /// Starts one before a server.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    #[must_use]
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = State { network: Network::Whole, server, open: Vec::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let taken = Arc::downgrade(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Some(shared) = taken.upgrade() else { return };
                shared.carry(client);
            }
        });
        Self { shared, address }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what the network does from now on.
    pub fn set(&self, network: Network) {
        let mut state = self.shared.state();
        state.network = network;
        if network == Network::Cut {
            state.cut();
        }
        self.shared.changed.notify_all();
    }

    /// Cuts all connections; later ones lead to another server.
    pub fn lead_to(&self, server: SocketAddr) {
        let mut state = self.shared.state();
        state.server = server;
        state.cut();
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(Network::Cut);
        // Its thread waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Waits while the network is a black hole; false once it is cut.
    fn passes(&self) -> bool {
        let hole = |state: &mut State| state.network == Network::BlackHole;
        self.changed.wait_while(self.state(), hole).expect("no holder panics").network != Network::Cut
    }

    fn carry(self: Arc<Self>, client: TcpStream) {
        let mut state = self.state();
        if state.network == Network::Cut {
            return;
        }
        let Ok(server) = TcpStream::connect(state.server) else { return };
        let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else { return };
        for (stream, copy) in [(&client, &from), (&server, &to)] {
            let _ = stream.set_nodelay(true);
            state.open.extend(copy.try_clone());
        }
        drop(state);
        for (from, to) in [(client, to), (server, from)] {
            let shared = Arc::clone(&self);
            thread::spawn(move || shared.pump(from, to));
        }
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if !self.passes() || to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        // The end of a connection is not known beyond a black hole, either.
        self.passes();
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

impl State {
    fn cut(&mut self) {
        for stream in self.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
