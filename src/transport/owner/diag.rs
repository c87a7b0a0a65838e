//! Queries the kernel for one socket by its addresses: sock_diag(7), over netlink. One message in
//! each direction, whatever the number of sockets.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, the type of the request and the response.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// `TCP_LISTEN`; the kernel returns a listener if it finds no connection.
const LISTEN: u8 = 10;
/// Any interface, and a socket of unknown cookie.
const ANY: [u8; 12] = [0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
/// Length of a netlink header, in bytes.
const HEADER: usize = 16;

/// The user of the socket with the local address `near` and the remote address `far`; `None` when
/// there is no such socket or no program holds it.
///
/// # Errors
/// When the kernel cannot be queried.
pub(super) fn user(near: SocketAddr, far: SocketAddr) -> io::Result<Option<u32>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &request(near, far), SendFlags::empty(), &kernel)?;
    let mut answer = [0; 256];
    // The kernel has queued the response before `sendto` returns.
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT)?;
    Ok(read(&answer[..length]))
}

/// A netlink header (linux/netlink.h) and an `inet_diag_req_v2` (linux/inet_diag.h).
fn request(near: SocketAddr, far: SocketAddr) -> Vec<u8> {
    let family = match near {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let mut body = vec![family.as_raw() as u8, TCP, 0, 0];
    // In any state.
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(near.port().to_be_bytes());
    body.extend(far.port().to_be_bytes());
    body.extend(octets(near.ip()));
    body.extend(octets(far.ip()));
    body.extend(ANY);
    let length = u32::try_from(HEADER + body.len()).expect("72 bytes");
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    // The sequence number and the port id, which the kernel fills in.
    message.extend([0; 8]);
    message.extend(body);
    message
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&address.octets());
            octets
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// The user in an `inet_diag_msg`. A socket that its program has closed exists for a while; it has
/// no inode then, and root as its user.
fn read(message: &[u8]) -> Option<u32> {
    let number = |at: usize| {
        Some(u32::from_ne_bytes(
            message.get(at..at + 4)?.try_into().ok()?,
        ))
    };
    let kind = message.get(4..6)?;
    let state = *message.get(HEADER + 1)?;
    let (user, inode) = (number(HEADER + 64)?, number(HEADER + 68)?);
    (kind == BY_FAMILY.to_ne_bytes() && state != LISTEN && inode != 0).then_some(user)
}
