//! Resumable links over a network that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_relay::jsonrpc::{CloseReason, Frame, Limits};
use acp_relay::link::{Header, Hello, RefusalCode, ResumeKey, WINDOW, Welcome};
use acp_relay::transport::websocket::{Half, Opened, Role, halves, open};
use acp_relay::transport::{Endpoint, HttpEndpoint, Link, Listener, Setup, registry};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::pairs::authenticate;
use crate::agent_connect::principals::token;
use crate::support::link::{
    accept, close, feed, flush, listen, next, received, run, send, setup_with,
};

/// What happens to the connections of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    Fair,
    /// Connections are reset.
    Cut,
    /// Nothing passes, and no side is told.
    Silent,
}

/// Between the two ends; connections that were begun before a change have their old weather.
struct Network {
    weather: watch::Sender<Weather>,
    /// How many connections there are.
    live: Arc<AtomicUsize>,
    /// Its port.
    port: u16,
}

/// A listener behind a network.
struct Site {
    network: Network,
    listener: Box<dyn Listener>,
    /// The listener's address as clients see it.
    address: Endpoint,
    setup: Setup,
}

impl Network {
    async fn new(listener: TcpListener, server: u16) -> Self {
        let (weather, _) = watch::channel(Weather::Fair);
        let port = listener.local_addr().unwrap().port();
        let sender = weather.clone();
        let live = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&live);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
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
    fn cut(&self) {
        self.weather.send_replace(Weather::Cut);
    }

    /// Waits until those are gone.
    async fn is_cut(&self) {
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
        let one = tokio::io::copy(&mut from_client, &mut to_server);
        let other = tokio::io::copy(&mut from_server, &mut to_client);
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

async fn site(scheme: &str, limits: Limits) -> Site {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = proxy.local_addr().unwrap().port();
    let mut setup = setup_with(limits.clone());
    authenticate(&mut setup);
    setup.links = Some(Arc::default());
    setup.http.hosts = vec![format!("127.0.0.1:{port}")];
    let listener = listen(&format!("{scheme}://127.0.0.1:0").parse().unwrap(), &setup).await;
    let Endpoint::Http(HttpEndpoint { port: own, .. }) = listener.address() else {
        panic!("{}", listener.address());
    };
    let network = Network::new(proxy, own).await;
    let address = format!("{scheme}://127.0.0.1:{}", network.port);
    Site {
        network,
        listener,
        address: address.parse().unwrap(),
        setup,
    }
}

impl Site {
    /// A client of its own set of links, and its server.
    async fn link(&mut self) -> (Link, Link) {
        let mut setup = self.setup.clone();
        setup.links = Some(Arc::default());
        let connecting = registry::connect(&self.address, &setup);
        let (client, server) = tokio::join!(connecting, accept(&mut *self.listener));
        (client.unwrap(), server)
    }

    /// Greets the server as a client with this token, without the relay's own client.
    async fn greet(&mut self, number: u8, hello: &Hello) -> (Header, Half<impl Sized + use<>>) {
        let mut setup = self.setup.clone();
        setup.request_headers = Default::default();
        let headers = &mut setup.request_headers;
        headers.set_bearer(token(number).reveal()).unwrap();
        let opening = open(&self.address, &setup, Some("acp-link.v1"))
            .await
            .unwrap();
        assert!(opening.is_chosen);
        let Opened { stream, begun, .. } = opening;
        let [mut rx, mut tx] = halves(stream, &begun, Role::Client, &setup.limits);
        send(&mut tx, encode(&Header::Hello(Box::new(hello.clone()))))
            .await
            .unwrap();
        let answer = received(&mut rx).await;
        (Header::read(answer.as_bytes()).unwrap().0, rx)
    }
}

fn encode(header: &Header) -> Frame {
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    Frame::new(bytes)
}

fn numbered(number: usize) -> Frame {
    let text = "x".repeat(number % 3000);
    format!(r#"{{"jsonrpc":"2.0","method":"n","params":[{number},"{text}"]}}"#).into()
}

/// Sends `count` messages and receives as many, and has the network fail after each `every` of them.
async fn exchange(link: &mut Link, count: usize, fail: impl Fn(usize)) {
    let (rx, tx) = (&mut link.rx, &mut link.tx);
    let sending = async {
        for number in 0..count {
            feed(&mut **tx, numbered(number)).await.unwrap();
            if number % 10 == 0 {
                flush(&mut **tx).await.unwrap();
            }
        }
        flush(&mut **tx).await.unwrap();
    };
    let receiving = async {
        for number in 0..count {
            assert_eq!(received(&mut **rx).await, numbered(number));
            fail(number);
        }
    };
    tokio::join!(sending, receiving);
}

#[test]
fn nothing_is_lost_doubled_or_reordered_when_connections_are_reset() {
    for scheme in ["ws", "http"] {
        run(async {
            let mut site = site(scheme, Limits::default()).await;
            let (mut client, mut server) = site.link().await;
            let network = &site.network;
            let resumed = || {
                let stats = site.setup.links.as_ref().unwrap().stats();
                stats.resumed.load(Ordering::Relaxed)
            };
            for round in 0..4 {
                let cut = |number| {
                    if number == 200 {
                        network.cut();
                    }
                };
                tokio::join!(
                    exchange(&mut client, 500, cut),
                    exchange(&mut server, 500, |_| {})
                );
                network.cut();
                network.is_cut().await;
                tokio::join!(
                    exchange(&mut client, 1, |_| {}),
                    exchange(&mut server, 1, |_| {})
                );
                assert!(resumed() > round, "{scheme}: {}", resumed());
            }
            let totals = site.setup.links.as_ref().unwrap().totals();
            assert_eq!((totals.links, totals.away), (1, 0));
            // A clean end is one over a broken connection too.
            network.cut();
            let (closed, ended) = tokio::join!(
                close(&mut *client.tx, CloseReason::Done),
                next(&mut *server.rx)
            );
            closed.unwrap();
            assert!(ended.is_none() && server.rx.ended_cleanly());
        });
    }
}

#[test]
fn a_silent_connection_is_replaced() {
    run(async {
        let limits = Limits {
            http_keepalive: Duration::from_millis(100),
            ..Limits::default()
        };
        let mut site = site("ws", limits).await;
        let (mut client, mut server) = site.link().await;
        let network = &site.network;
        let silence = |number| {
            if number % 500 == 99 {
                network.weather.send_replace(Weather::Silent);
            }
        };
        tokio::join!(
            exchange(&mut client, 1500, silence),
            exchange(&mut server, 1500, |_| {})
        );
    });
}

#[test]
fn two_ends_that_write_before_they_read_do_not_wait_for_each_other() {
    run(async {
        let mut site = site("ws", Limits::default()).await;
        let (mut client, mut server) = site.link().await;
        // Both write a window before they read.
        let large = Frame::from(format!("\"{}\"", "x".repeat(WINDOW as usize / 4 - 2)));
        let exchange = async |link: &mut Link| {
            for _ in 0..4 {
                feed(&mut *link.tx, large.clone()).await.unwrap();
            }
            flush(&mut *link.tx).await.unwrap();
            for _ in 0..4 {
                assert!(received(&mut *link.rx).await == large);
            }
        };
        tokio::join!(exchange(&mut client), exchange(&mut server));
    });
}

#[test]
fn greetings_are_checked() {
    run(async {
        let mut site = site("ws", Limits::default()).await;
        let new = Hello {
            v: vec![1],
            generation: 1,
            rx: 1,
            window: WINDOW,
            ..Hello::default()
        };
        let serve = async |site: &mut Site| {
            let arrival = site.listener.accept().await.unwrap().unwrap();
            arrival.finish.await.unwrap().unwrap()
        };
        let (greeted, _rx) = site.greet(1, &new).await;
        let Header::Welcome(welcome) = greeted else {
            panic!("{greeted:?}");
        };
        let mut server = serve(&mut site).await;
        let again = |welcome: &Welcome, generation| Hello {
            link: Some(welcome.link.clone()),
            epoch: Some(welcome.epoch.clone()),
            key: Some(welcome.key.clone()),
            generation,
            ..new.clone()
        };
        let good = again(&welcome, 2);
        let refusals = [
            (2, good.clone(), RefusalCode::UnknownLink),
            (
                1,
                Hello {
                    key: Some(ResumeKey("k".to_owned())),
                    ..good.clone()
                },
                RefusalCode::UnknownLink,
            ),
            (
                1,
                Hello {
                    link: Some("other".to_owned()),
                    ..good.clone()
                },
                RefusalCode::UnknownLink,
            ),
            (
                1,
                Hello {
                    epoch: Some("other".to_owned()),
                    ..good.clone()
                },
                RefusalCode::EpochChanged,
            ),
            (
                1,
                Hello {
                    generation: 1,
                    ..good.clone()
                },
                RefusalCode::Busy,
            ),
            (
                1,
                Hello {
                    generation: u64::MAX,
                    ..good.clone()
                },
                RefusalCode::Gap,
            ),
            (
                1,
                Hello {
                    v: vec![2],
                    ..good.clone()
                },
                RefusalCode::Version,
            ),
        ];
        for (number, hello, code) in refusals {
            let (refused, _rx) = site.greet(number, &hello).await;
            let Header::Refuse(refusal) = &refused else {
                panic!("{hello:?}: {refused:?}");
            };
            assert_eq!(refusal.code, code, "{hello:?}");
            assert!(!refusal.detail.contains(&welcome.key.0));
        }
        // None of them has disturbed the link.
        let (greeted, _rx) = site.greet(1, &good).await;
        let Header::Welcome(welcome) = greeted else {
            panic!("{greeted:?}");
        };
        assert!(welcome.resumed);
        // Numbers that were never sent end it.
        let ahead = Hello {
            rx: 9,
            ..again(&welcome, 3)
        };
        let (refused, _rx) = site.greet(1, &ahead).await;
        assert!(matches!(&refused, Header::Refuse(refusal) if refusal.code == RefusalCode::Gap));
        assert!(next(&mut *server.rx).await.unwrap().is_err());
        let stats = site.setup.links.as_ref().unwrap().stats();
        assert_eq!(stats.refused.load(Ordering::Relaxed), 8);
    });
}

#[test]
fn clients_without_credentials_and_without_the_protocol_are_served_as_before() {
    run(async {
        let mut site = site("ws", Limits::default()).await;
        site.setup.gate = Default::default();
        let at = "ws://127.0.0.1:0".parse().unwrap();
        let mut listener = listen(&at, &site.setup).await;
        let to = listener.address();
        let opening = open(&to, &site.setup, Some("acp-link.v1"));
        let (opened, mut server) = tokio::join!(opening, accept(&mut *listener));
        let Opened {
            stream,
            begun,
            is_chosen,
        } = opened.unwrap();
        assert!(!is_chosen);
        let [_rx, mut tx] = halves(stream, &begun, Role::Client, &Arc::new(Limits::default()));
        send(&mut tx, numbered(1)).await.unwrap();
        assert_eq!(received(&mut *server.rx).await, numbered(1));
    });
}
