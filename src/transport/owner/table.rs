//! Reads the list of all TCP sockets: /proc/net/tcp and /proc/net/tcp6, see proc(5).
//!
//! Slow where there are many sockets, so it is read for a connection only when netlink is not
//! available.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `TCP_LISTEN`.
const LISTEN: u8 = 0x0a;

/// One socket.
struct Row {
    near: SocketAddr,
    far: SocketAddr,
    state: u8,
    user: u32,
    inode: u64,
}

/// The user of the socket that is `near` and connected to `far`.
pub(super) fn user(near: SocketAddr, far: SocketAddr) -> Option<u32> {
    let rows = rows()?;
    let mut found = rows.filter(|row| row.near == near && row.far == far && row.inode != 0);
    found.find(|row| row.state != LISTEN).map(|row| row.user)
}

/// The users of all sockets that listen at `port`.
pub(super) fn listeners(port: u16) -> Option<Vec<u32>> {
    let rows = rows()?.filter(|row| row.state == LISTEN && row.near.port() == port);
    Some(rows.map(|row| row.user).collect())
}

/// All sockets; `None` if the list is not available.
fn rows() -> Option<impl Iterator<Item = Row>> {
    let v4 = fs::read_to_string("/proc/net/tcp").ok()?;
    // Without IPv6 the file does not exist.
    let v6 = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let rows = |text: &str| text.lines().skip(1).filter_map(row).collect::<Vec<_>>();
    Some(rows(&v4).into_iter().chain(rows(&v6)))
}

fn row(line: &str) -> Option<Row> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (near, far) = (address(words.next()?)?, address(words.next()?)?);
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let user = words.nth(3)?.parse().ok()?;
    let inode = words.nth(1)?.parse().ok()?;
    Some(Row {
        near,
        far,
        state,
        user,
        inode,
    })
}

/// Parses `0100007F:1F90`: words of the address in native byte order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = address.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        _ => {
            let mut octets = [0; 16];
            for (at, four) in octets.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
        }
    };
    Some(SocketAddr::new(address, port))
}
