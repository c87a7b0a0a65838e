//! Finds the user who owns a TCP socket of this machine.
//!
//! Unlike for Unix sockets, the kernel has to be queried by the addresses of both ends (`diag`,
//! Linux). The answers cover this network namespace, and there is none where the result is uncertain,
//! or on other systems, where it would take unsafe code.

#[cfg(target_os = "linux")]
mod diag;

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

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

/// The address of loopback at whose port one of these processes listens, and no other process does.
pub(super) fn listener_of(processes: &[u32], port: u16) -> Option<IpAddr> {
    let sockets: BTreeSet<u64> = processes.iter().flat_map(|pid| sockets_of(*pid)).collect();
    let hosts = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    hosts.into_iter().find(|host| {
        // What is bound to the address itself is connected, and not what is bound to all.
        let listeners = listeners(*host, port);
        let most = listeners.iter().map(|(is_exact, _)| *is_exact).max();
        let mut nearest = listeners
            .iter()
            .filter(|(is_exact, _)| Some(*is_exact) == most);
        most.is_some() && nearest.all(|(_, socket)| sockets.contains(socket))
    })
}

/// The sockets that listen at a port of this address, each with whether it is bound to the address
/// itself.
fn listeners(host: IpAddr, port: u16) -> Vec<(bool, u64)> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let v6 = read("/proc/net/tcp6");
    // proc(5): addresses are in the order of bytes of this machine, word by word.
    let word = |octets: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(octets));
    let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
    let long = |octets: [u8; 16]| -> String {
        octets
            .chunks(4)
            .map(|part| word([part[0], part[1], part[2], part[3]]))
            .collect()
    };
    let (lists, exact, all) = match host {
        IpAddr::V4(host) => (
            [read("/proc/net/tcp"), v6],
            vec![word(host.octets()), long(mapped)],
            vec![word([0; 4]), long([0; 16])],
        ),
        IpAddr::V6(host) => (
            [v6, String::new()],
            vec![long(host.octets())],
            vec![long([0; 16])],
        ),
    };
    let port = format!("{port:04X}");
    let listener = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (at, own_port) = words.get(1)?.split_once(':')?;
        let is_exact = exact.iter().any(|one| one == at);
        let is_meant = own_port == port && (is_exact || all.iter().any(|one| one == at));
        let socket = words.get(9)?.parse().ok()?;
        (is_meant && *words.get(3)? == "0A").then_some((is_exact, socket))
    };
    lists
        .iter()
        .flat_map(|list| list.lines())
        .filter_map(listener)
        .collect()
}

/// The numbers of the sockets that a process holds.
fn sockets_of(pid: u32) -> Vec<u64> {
    let files = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    let number = |link: PathBuf| {
        let name = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        name.parse().ok()
    };
    links.filter_map(number).collect()
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
            let own = std::process::id();
            assert_eq!(listener_of(&[own], at.port()), Some(at.ip()));
            assert_eq!(listener_of(&[1], at.port()), None);
            drop((server, listener));
            assert_eq!(listener_of(&[own], at.port()), None);
            assert_eq!(is_only_listener(me, at.port()), Some(false));
        }
    }
}
