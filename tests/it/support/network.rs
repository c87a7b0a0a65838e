//! A network that fails: a port in front of a listener.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to the connections of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Fair,
    /// Connections are reset.
    Cut,
    /// The same, and there are no new ones.
    Down,
    /// Nothing passes, and no side is told.
    Silent,
    /// What new connections carry takes its time.
    Slow,
}

/// What a slow connection carries at once, and the time between two of these.
const PIECE: usize = 16 << 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Between the two ends; connections that were begun before a change have their old weather.
pub(crate) struct Network {
    pub(crate) weather: watch::Sender<Weather>,
    /// How many connections there are.
    live: Arc<AtomicUsize>,
    /// Its port.
    pub(crate) port: u16,
}

impl Network {
    pub(crate) async fn new(listener: TcpListener, server: u16) -> Self {
        let (weather, _) = watch::channel(Weather::Fair);
        let port = listener.local_addr().unwrap().port();
        let sender = weather.clone();
        let live = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&live);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *sender.borrow() == Weather::Down {
                    continue;
                }
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let (weather, count) = (sender.subscribe(), Arc::clone(&count));
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    carry(client, server, weather).await;
                    count.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Self {
            weather,
            live,
            port,
        }
    }

    /// Resets the connections that there are.
    pub(crate) fn cut(&self) {
        self.weather.send_replace(Weather::Cut);
    }

    /// Waits until those are gone.
    pub(crate) async fn is_cut(&self) {
        while self.live.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Copies both ways until the weather changes.
async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    mut weather: watch::Receiver<Weather>,
) {
    {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let is_slow = *weather.borrow() == Weather::Slow;
        let one = copy(&mut from_client, &mut to_server, is_slow);
        let other = copy(&mut from_server, &mut to_client, is_slow);
        tokio::select! {
            _ = async { tokio::join!(one, other) } => return,
            _ = weather.changed() => {}
        }
    }
    if *weather.borrow() == Weather::Silent {
        // Until the ends give it up.
        let mut room = [0; 4096];
        while client.read(&mut room).await.is_ok_and(|count| count > 0) {}
        return;
    }
    for socket in [&client, &server] {
        socket.set_zero_linger().unwrap();
    }
    let _ = client.shutdown().await;
}

/// Copies one way until its end, or until one side is gone.
async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    is_slow: bool,
) {
    let mut room = vec![0; PIECE];
    while let Ok(count @ 1..) = from.read(&mut room).await {
        if to.write_all(&room[..count]).await.is_err() {
            return;
        }
        if is_slow {
            tokio::time::sleep(PAUSE).await;
        }
    }
    let _ = to.shutdown().await;
}
