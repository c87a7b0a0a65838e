//! TCP and Unix sockets: how a socket file is created and removed, and what errors state.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::transport::{Endpoint, OpenError, OpenErrorKind, registry};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::support::http::place;
use crate::support::link::{accept, listen, next, received, run, send, setup, setup_with};

fn unix(path: &Path) -> Endpoint {
    Endpoint::Unix(path.to_owned())
}

async fn refused_to_listen(at: &Endpoint) -> OpenError {
    match registry::listen(at, &setup()).await {
        Ok(_) => panic!("{at} could be bound"),
        Err(fault) => fault,
    }
}

async fn refused_to_connect(to: &str) -> OpenError {
    let to: Endpoint = to.parse().unwrap();
    registry::connect(&to, &setup())
        .await
        .expect_err("it is open")
}

#[test]
fn a_socket_file_is_for_its_owner_and_is_removed_with_its_listener() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = listen(&unix(&path), &setup()).await;
        let file = fs::metadata(&path).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        drop(listener);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    });
}

#[test]
fn a_request_of_http_ends_the_link_at_its_first_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let places = [unix(&path), "tcp://127.0.0.1:0".parse().unwrap()];
    for at in places {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        for head in [
            "POST / HTTP/1.1\r\n",
            "GET /a?b HTTP/1.0\n",
            "OPTIONS * HTTP/1.1\r\n",
            "patch /{} HTTP/1.1\r\n",
            &format!("POST /{} HTTP/1.1\r\n", "a".repeat(20_000)),
        ] {
            run(async {
                let mut listener = listen(&at, &setup()).await;
                let to = listener.address();
                let connecting = async {
                    let mut client: Box<dyn AsyncWrite + Unpin> = match &to {
                        Endpoint::Unix(path) => Box::new(UnixStream::connect(path).await.unwrap()),
                        at => {
                            let at = at.to_string();
                            Box::new(TcpStream::connect(place(&at)).await.unwrap())
                        }
                    };
                    let rest = format!("Content-Length: {}\r\n\r\n{body}\n", body.len());
                    for part in [&head[..3], &head[3..], &rest] {
                        client.write_all(part.as_bytes()).await.unwrap();
                        client.flush().await.unwrap();
                    }
                    client
                };
                let (_client, mut server) = tokio::join!(connecting, accept(&mut *listener));
                let fault = next(&mut *server.rx).await.unwrap().unwrap_err();
                assert!(fault.to_string().contains("HTTP"), "{fault}");
                assert!(next(&mut *server.rx).await.is_none());
            });
        }
        for line in ["{\"a\":\" HTTP/1.1\"}", "GET me {}", "hello"] {
            run(async {
                let mut listener = listen(&at, &setup()).await;
                let to = listener.address();
                let setup = setup();
                let connecting = async {
                    let mut client = registry::connect(&to, &setup).await.unwrap();
                    send(&mut *client.tx, line).await.unwrap();
                    client
                };
                let (_client, mut server) = tokio::join!(connecting, accept(&mut *listener));
                assert_eq!(received(&mut *server.rx).await, Frame::from(line));
            });
        }
    }
}

#[test]
fn as_many_long_messages_are_read_at_a_time_as_fit_and_the_others_wait() {
    for http_bodies in [1 << 20, 1] {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s");
            let setup = setup_with(Limits {
                frame_from_network: 64 << 10,
                frame_from_child: 1 << 20,
                http_bodies,
                ..Limits::default()
            });
            let mut listener = listen(&unix(&path), &setup).await;
            let at = listener.address();
            let mut idle = Vec::new();
            for _ in 0..3 {
                let connecting = registry::connect(&at, &setup);
                let (client, server) = tokio::join!(connecting, accept(&mut *listener));
                idle.push((client.unwrap(), server));
            }
            let long = format!(r#"{{"method":"m","params":"{}"}}"#, "x".repeat(900 << 10));
            let (begun, rest) = long.split_at(800 << 10);

            // One has read the most of a long message, more than a socket holds.
            let connecting = UnixStream::connect(&path);
            let (first, mut server) = tokio::join!(connecting, accept(&mut *listener));
            let mut first = first.unwrap();
            tokio::select! {
                written = first.write_all(begun.as_bytes()) => written.unwrap(),
                got = next(&mut *server.rx) => panic!("half a message is read: {got:?}"),
            }
            let (mut waiting, mut other) = idle.pop().unwrap();
            let sending = send(&mut *waiting.tx, long.clone());
            let reading = async {
                // It is not silent while it is not read.
                let mut is_awaited = false;
                while !is_awaited {
                    let got = timeout(Duration::from_millis(1), next(&mut *other.rx)).await;
                    assert!(got.is_err(), "{got:?}");
                    other.rx.has_progressed();
                    is_awaited = other.rx.has_progressed();
                }
                // Short messages pass.
                let (short, there) = &mut idle[0];
                send(&mut *short.tx, "{}").await.unwrap();
                assert_eq!(received(&mut *there.rx).await, Frame::from("{}"));
                let rest = format!("{rest}\n");
                let writing = first.write_all(rest.as_bytes());
                let (written, got) = tokio::join!(writing, received(&mut *server.rx));
                written.unwrap();
                assert!(got == Frame::from(long.clone()), "{} bytes", got.len());
                let got = received(&mut *other.rx).await;
                assert!(got == Frame::from(long.clone()), "{} bytes", got.len());
                assert!(!other.rx.has_progressed() || !other.rx.has_progressed());
            };
            let (sent, ()) = tokio::join!(sending, reading);
            sent.unwrap();

            // A connection that ends within a long message leaves its room to others.
            tokio::select! {
                written = first.write_all(begun.as_bytes()) => written.unwrap(),
                got = next(&mut *server.rx) => panic!("half a message is read: {got:?}"),
            }
            drop((first, server));
            let sending = send(&mut *waiting.tx, long.clone());
            let (sent, got) = tokio::join!(sending, received(&mut *other.rx));
            sent.unwrap();
            assert!(got == Frame::from(long.clone()), "{} bytes", got.len());
        });
    }
}

#[test]
fn a_stale_socket_file_is_replaced_and_one_in_use_is_not() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let mut listener = listen(&unix(&path), &setup()).await;
        let address = listener.address();
        let setup = setup();
        let connecting = registry::connect(&address, &setup);
        let (client, server) = tokio::join!(connecting, accept(&mut *listener));
        client.unwrap();
        let pid = std::process::id().to_string();
        assert!(server.peer.name.contains(&pid), "{}", server.peer.name);
        // One in use is left alone.
        let fault = refused_to_listen(&unix(&path)).await;
        assert_eq!(fault.kind, OpenErrorKind::Unavailable);
        assert!(fault.to_string().contains("in use"), "{fault}");
        assert!(path.exists());
    });
}

#[test]
fn one_of_two_listeners_that_replace_a_stale_socket_file_succeeds() {
    const ROUNDS: usize = 100;
    let dir = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let path = dir.path().join(format!("s{round}"));
        drop(UnixListener::bind(&path).unwrap());
        let ready = AtomicUsize::new(0);
        // Neither listener is dropped before both have tried.
        let finish = std::sync::Barrier::new(2);
        let contend = || {
            run(async {
                ready.fetch_add(1, Ordering::SeqCst);
                // This starts them closer together than a barrier does.
                while ready.load(Ordering::SeqCst) < 2 {
                    std::thread::yield_now();
                }
                let outcome = registry::listen(&unix(&path), &setup()).await;
                finish.wait();
                let Ok(mut listener) = outcome else {
                    return outcome.err();
                };
                // A client reaches this listener.
                let (at, setup) = (listener.address(), setup());
                let connecting = registry::connect(&at, &setup);
                tokio::join!(connecting, accept(&mut *listener)).0.unwrap();
                None
            })
        };
        let faults: Vec<OpenError> = std::thread::scope(|scope| {
            let contenders = [scope.spawn(contend), scope.spawn(contend)];
            (contenders.into_iter())
                .filter_map(|contender| contender.join().unwrap())
                .collect()
        });
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].to_string().contains("in use"), "{faults:?}");
        assert!(!path.exists(), "the winner has not removed its file");
    }
}

#[test]
fn a_directory_that_stays_locked_is_an_error_that_states_so() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let lock = fs::File::open(dir.path()).unwrap();
        lock.lock().unwrap();
        let fault = refused_to_listen(&unix(&path)).await;
        assert_eq!(fault.kind, OpenErrorKind::Unavailable);
        assert!(fault.to_string().contains("lock"), "{fault}");
        drop(lock);
        drop(listen(&unix(&path), &setup()).await);
    });
}

#[test]
fn a_file_that_is_no_socket_is_never_deleted() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("f"), dir.path().join("l"));
        fs::write(&path, "precious").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for path in [&path, &link, &dir.path().to_owned()] {
            let fault = refused_to_listen(&unix(path)).await;
            assert_eq!(fault.kind, OpenErrorKind::CannotCreate, "{fault}");
        }
        assert_eq!(fs::read_to_string(&link).unwrap(), "precious");
    });
}

#[test]
fn another_listeners_socket_file_is_not_removed() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let ours = listen(&unix(&path), &setup()).await;
        // Another inode, even if the file system reuses freed ones.
        fs::rename(&path, dir.path().join("moved")).unwrap();
        let theirs = UnixListener::bind(&path).unwrap();
        drop(ours);
        assert!(path.exists());
        drop(theirs);
    });
}

#[test]
fn errors_state_the_cause_the_address_and_a_remedy() {
    run(async {
        use OpenErrorKind::{CannotCreate, NoHost, Unavailable, Usage};
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| unix(&dir.path().join(name)).to_string();
        let taken = listen(&"tcp://127.0.0.1:0".parse().unwrap(), &setup()).await;
        let in_use = taken.address().to_string();
        let port_in_use = format!("{in_use}: the port is in use. ");
        for (endpoint, kind, words) in [
            (&*at("missing/s"), CannotCreate, "directory"),
            (&*at(&"x".repeat(200)), Usage, "too long"),
            (&*in_use, Unavailable, &*port_in_use),
            ("tcp://192.0.2.1:0", Unavailable, "no such address"),
        ] {
            let fault = refused_to_listen(&endpoint.parse().unwrap()).await;
            assert_eq!(fault.kind, kind, "{fault}");
            assert!(fault.to_string().contains(words), "{fault}");
        }
        drop(taken);
        for (endpoint, kind, words) in [
            // The listener at this address was just dropped.
            (&*in_use, Unavailable, "nothing listens there"),
            (&*at("none"), Unavailable, "no such socket file"),
            ("tcp://host.invalid:1", NoHost, "not known"),
            ("tcp://127.0.0.1:0", Usage, "port 0"),
        ] {
            let fault = refused_to_connect(endpoint).await;
            assert_eq!(fault.kind, kind, "{fault}");
            assert!(fault.to_string().contains(words), "{fault}");
        }
    });
}
