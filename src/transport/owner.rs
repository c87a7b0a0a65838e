//! Finds the user who owns a TCP socket of this machine.
//!
//! Unlike for Unix sockets, the kernel has to be queried by the addresses of both ends (`diag`,
//! Linux). The answers cover this network namespace, and there is none where the result is uncertain,
//! or on other systems, where it would take unsafe code.

#[cfg(target_os = "linux")]
mod diag;

use std::fs;
use std::net::SocketAddr;

/// The kernel's overflow user id, for users that are not mapped into this user namespace.
const OVERFLOW_USER: u32 = 65_534;

/// The user of the socket with the local address `near` and the remote address `far`.
pub fn of_socket(near: SocketAddr, far: SocketAddr) -> Option<u32> {
    #[cfg(target_os = "linux")]
    match diag::user(canonical(near), canonical(far)) {
        Ok(user) => return user.filter(|user| *user != OVERFLOW_USER),
        Err(error) => tracing::debug!(%error, "the kernel does not name the user of a socket"),
    }
    None
}

/// Whether the port is listened on at any address, by `user` only. `None` if that is unknown.
#[must_use]
pub fn is_only_listener(user: u32, port: u16) -> Option<bool> {
    // The lists of all sockets, see proc(5). The second is missing without IPv6.
    let v4 = fs::read_to_string("/proc/net/tcp").ok()?;
    let v6 = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let port = format!(":{port:04X}");
    let owner = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (near, state, owner) = (words.get(1)?, words.get(3)?, words.get(7)?);
        let listens = *state == "0A" && near.ends_with(&port);
        owner.parse::<u32>().ok().filter(|_| listens)
    };
    let mut owners = v4.lines().chain(v6.lines()).filter_map(owner).peekable();
    let is_only = owners.peek().is_some() && owners.all(|owner| owner == user);
    Some(is_only && user != OVERFLOW_USER)
}

/// Converts an IPv4-mapped IPv6 address to the IPv4 address.
#[cfg(target_os = "linux")]
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn owner_of_a_socket_is_found() {
        let me = rustix::process::geteuid().as_raw();
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let at = listener.local_addr().expect("bound");
            let client = TcpStream::connect(at).expect("it listens");
            let (server, near) = listener.accept().expect("a client is connected");
            assert_eq!(of_socket(near, at), Some(me));
            assert_eq!(is_only_listener(me, at.port()), Some(true));
            assert_eq!(is_only_listener(me + 1, at.port()), Some(false));
            // The listener is not the owner of a connection to it.
            let other = SocketAddr::from(([127, 0, 0, 1], 9));
            assert_eq!(of_socket(at, other), None);
            // A connection left behind has no owner, which the kernel reports as root.
            drop(client);
            assert_eq!(of_socket(near, at), None);
            drop((server, listener));
            assert_eq!(is_only_listener(me, at.port()), Some(false));
        }
    }
}
