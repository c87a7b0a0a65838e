//! Resumable links over a network that fails.

use std::sync::Arc;
use std::time::Duration;

use acp_relay::jsonrpc::{CloseReason, Frame, Limits};
use acp_relay::link::{
    Attach, Header, Hello, LinkEvents, LinkSource as _, RefusalCode, ResumeKey, WINDOW, Welcome,
};
use acp_relay::transport::websocket::{Half, Opened, Role, halves, open};
use acp_relay::transport::{
    Endpoint, HttpEndpoint, Link, Links, Listener, OpenErrorKind, Setup, registry,
};
use parking_lot::Mutex;
use tokio::net::TcpListener;

use super::pairs::authenticate;
use crate::agent_connect::principals::token;
use crate::support::link::{
    accept, close, feed, flush, listen, next, received, run, send, setup_with,
};
use crate::support::network::{Network, Weather};

/// A listener behind a network.
struct Site {
    network: Network,
    listener: Box<dyn Listener>,
    /// The listener's address as clients see it.
    address: Endpoint,
    setup: Setup,
    attached: Arc<Attached>,
}

/// What became of the connections of a listener.
#[derive(Debug, Default)]
struct Attached(Mutex<Vec<Attach>>);

impl LinkEvents for Attached {
    fn on_attach(&self, how: Attach) {
        self.0.lock().push(how);
    }
}

impl Attached {
    fn count(&self, is: impl Fn(&Attach) -> bool) -> usize {
        self.0.lock().iter().filter(|how| is(how)).count()
    }
}

async fn site(scheme: &str, limits: Limits) -> Site {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut setup = setup_with(limits.clone());
    authenticate(&mut setup);
    let (links, attached) = (Arc::<Links>::default(), Arc::<Attached>::default());
    assert!(links.set_events(Arc::clone(&attached) as _));
    setup.links = Some(links);
    // At any port.
    setup.http.hosts = vec!["127.0.0.1".to_owned()];
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
        attached,
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
            let attached = &site.attached;
            let resumed = || attached.count(|how| matches!(how, Attach::Resumed(_)));
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
            assert_eq!((totals.to_agents, totals.away), (0, 0));
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
fn a_client_that_comes_back_is_told_that_its_session_is_lost() {
    run(async {
        let mut site = site("ws", Limits::default()).await;
        let (mut client, mut server) = site.link().await;
        send(&mut *client.tx, numbered(1)).await.unwrap();
        received(&mut *server.rx).await;
        site.network.weather.send_replace(Weather::Down);
        site.network.is_cut().await;
        let closing = close(&mut *server.tx, CloseReason::SessionLost);
        let coming = async {
            site.network.weather.send_replace(Weather::Fair);
            next(&mut *client.rx).await
        };
        let (closed, told) = tokio::join!(closing, coming);
        closed.unwrap();
        let told = told.unwrap().unwrap_err().to_string();
        assert!(told.contains("4410: session_lost"), "{told}");
    });
}

#[test]
fn a_welcome_says_how_long_a_message_may_be_and_whether_a_proxy_is_in_between() {
    run(async {
        let limits = Limits {
            frame_from_network: 50_000,
            ..Limits::default()
        };
        let site = site("ws", limits).await;
        for (line, direct) in [
            ("X-Other: 1", true),
            ("X-Forwarded-For: 192.0.2.1", false),
            ("Forwarded: for=192.0.2.1", false),
            ("Via: 1.1 proxy", false),
        ] {
            let mut setup = site.setup.clone();
            setup.request_headers.add(line).unwrap();
            let opened = open(&site.address, &setup, Some("acp-link.v1"))
                .await
                .unwrap();
            let [mut rx, mut tx] =
                halves(opened.stream, &opened.begun, Role::Client, &setup.limits);
            let hello = Hello {
                v: vec![1],
                generation: 1,
                rx: 1,
                window: WINDOW,
                ..Hello::default()
            };
            send(&mut tx, encode(&Header::Hello(Box::new(hello))))
                .await
                .unwrap();
            let answer = received(&mut rx).await;
            let Header::Welcome(welcome) = Header::read(answer.as_bytes()).unwrap().0 else {
                panic!("{answer:?}");
            };
            assert_eq!(
                (welcome.max, welcome.direct),
                (Some(50_000), direct),
                "{line}"
            );
        }
    });
}

#[test]
fn a_peer_that_never_opens_a_link_is_given_up() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = format!("ws://{}/acp", listener.local_addr().unwrap());
        let (to, setup) = (to.parse().unwrap(), setup_with(Limits::default()));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                client.set_zero_linger().unwrap();
            }
        });
        let error = registry::connect(&to, &setup).await.unwrap_err();
        assert_eq!(error.kind, OpenErrorKind::Lost, "{error}");
        assert!(error.what.contains("lost before it was open"), "{error}");
    });
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
fn a_message_that_takes_longer_than_a_peer_may_be_silent_arrives() {
    run(async {
        let limits = Limits {
            http_keepalive: Duration::from_millis(500),
            ..Limits::default()
        };
        let mut site = site("ws", limits).await;
        site.network.weather.send_replace(Weather::Slow);
        let (mut client, mut server) = site.link().await;
        // Four seconds.
        let large = Frame::from(format!("\"{}\"", "x".repeat(3 << 20)));
        let reading = async {
            assert!(received(&mut *server.rx).await == large);
            send(&mut *server.tx, numbered(1)).await.unwrap();
        };
        let writing = async {
            send(&mut *client.tx, large.clone()).await.unwrap();
            assert_eq!(received(&mut *client.rx).await, numbered(1));
        };
        tokio::join!(reading, writing);
    });
}

#[test]
fn a_link_that_its_client_may_not_know_ends() {
    run(async {
        let limits = Limits {
            handshake: Duration::from_secs(1),
            ..Limits::default()
        };
        let mut site = site("ws", limits).await;
        let hello = Hello {
            v: vec![1],
            generation: 1,
            rx: 1,
            window: WINDOW,
            ..Hello::default()
        };
        let (greeted, connection) = site.greet(1, &hello).await;
        assert!(matches!(greeted, Header::Welcome(_)));
        let mut server = accept(&mut *site.listener).await;
        drop(connection);
        assert!(next(&mut *server.rx).await.unwrap().is_err());
        assert!(next(&mut *server.rx).await.is_none());
    });
}

#[test]
fn two_ends_that_write_before_they_read_do_not_wait_for_each_other() {
    run(async {
        let mut site = site("ws", Limits::default()).await;
        let (mut client, mut server) = site.link().await;
        // Both write a window before they read.
        let large = Frame::from(format!("\"{}\"", "x".repeat(WINDOW as usize / 4 - 64 - 2)));
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
        let refused = site.attached.count(|how| matches!(how, Attach::Refused(_)));
        assert_eq!(refused, 8);
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
            ..
        } = opened.unwrap();
        assert!(!is_chosen);
        let [_rx, mut tx] = halves(stream, &begun, Role::Client, &Arc::new(Limits::default()));
        send(&mut tx, numbered(1)).await.unwrap();
        assert_eq!(received(&mut *server.rx).await, numbered(1));
    });
}
