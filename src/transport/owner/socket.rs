//! Queries the owner of a socket, over netlink or from the list of sockets.

use std::net::SocketAddr;

#[cfg(target_os = "linux")]
use super::{diag, table};

/// The kernel's overflow user id, for users that are not mapped into this user namespace.
const OVERFLOW_USER: u32 = 65_534;

/// The user of the socket with the local address `near` and the remote address `far`.
#[must_use]
pub(in crate::transport) fn of_socket(near: SocketAddr, far: SocketAddr) -> Option<u32> {
    let (near, far) = (canonical(near), canonical(far));
    query(near, far).filter(|user| *user != OVERFLOW_USER)
}

/// Whether the port is listened on at any address, by `user` only. `None` if that is unknown.
#[must_use]
pub fn is_only_listener(user: u32, port: u16) -> Option<bool> {
    let mut users = listeners(port)?;
    users.dedup();
    Some(users == [user] && user != OVERFLOW_USER)
}

#[cfg(target_os = "linux")]
fn query(near: SocketAddr, far: SocketAddr) -> Option<u32> {
    diag::user(near, far).unwrap_or_else(|_| table::user(near, far))
}

#[cfg(target_os = "linux")]
fn listeners(port: u16) -> Option<Vec<u32>> {
    table::listeners(port)
}

#[cfg(not(target_os = "linux"))]
fn query(_near: SocketAddr, _far: SocketAddr) -> Option<u32> {
    None
}

#[cfg(not(target_os = "linux"))]
fn listeners(_port: u16) -> Option<Vec<u32>> {
    None
}

/// Converts an IPv4-mapped IPv6 address to the IPv4 address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_queries_find_the_owner_of_a_socket() {
        let me = rustix::process::geteuid().as_raw();
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let at = listener.local_addr().expect("bound");
            let client = TcpStream::connect(at).expect("it listens");
            let (server, near) = listener.accept().expect("a client is connected");
            assert_eq!(diag::user(near, at).expect("the kernel answers"), Some(me));
            assert_eq!(table::user(near, at), Some(me));
            assert_eq!(of_socket(near, at), Some(me));
            assert_eq!(is_only_listener(me, at.port()), Some(true));
            assert_eq!(is_only_listener(me + 1, at.port()), Some(false));
            // A connection left behind has no owner, which the kernel reports as root.
            drop(client);
            assert_eq!(diag::user(near, at).unwrap_or(None), None);
            assert_eq!(table::user(near, at), None);
            drop((server, listener));
            assert_eq!(is_only_listener(me, at.port()), Some(false));
        }
    }

    #[test]
    fn owner_of_a_listener_is_not_the_client() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        let other = SocketAddr::from(([127, 0, 0, 1], 9));
        assert_eq!(diag::user(at, other).unwrap_or(None), None);
        assert_eq!(table::user(at, other), None);
    }
}
