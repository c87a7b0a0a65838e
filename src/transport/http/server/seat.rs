//! Which worker a socket is served by.
//!
//! The sockets of one ACP connection over HTTP share its state, and each message crosses from one to
//! another. So a socket whose first request names a connection goes to the worker that has it, and
//! no message has to go to another thread. A socket whose first request names none yet, or cannot be
//! seen because of TLS, goes to the worker with the most room. Not here: workers (see
//! `transport::workers`).

use httparse::{EMPTY_HEADER, Request};
use tokio::net::TcpStream;

use super::register::Register;
use crate::transport::http::names;
use crate::transport::{Worker, Workers};

/// How far into a socket's first bytes the name is looked for. Heads are shorter than this.
const REACH: usize = 2 << 10;
/// Most fields of a head that is looked at.
const FIELDS: usize = 32;

/// Waits for a socket's first bytes, which stay where they are, and finds its worker.
///
/// Whatever goes wrong here shows again when the socket is served.
pub(super) async fn seat(stream: &TcpStream, register: &Register, workers: &Workers) -> Worker {
    let mut head = [0; REACH];
    let length = stream.peek(&mut head).await.unwrap_or(0);
    // Whose the connection is does not matter yet: who asks is told nothing, and only served there.
    let found = named(&head[..length]).and_then(|id| register.of_anybody(id));
    found.map_or_else(|| workers.pick(), |connection| connection.worker.clone())
}

/// The connection that the head of a request names, as far as it is there.
fn named(head: &[u8]) -> Option<&str> {
    let mut fields = [EMPTY_HEADER; FIELDS];
    let mut request = Request::new(&mut fields);
    // A head that is cut short has given the fields before that.
    request.parse(head).ok()?;
    let wanted = names::CONNECTION;
    let found = fields
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case(wanted.as_str()))?;
    std::str::from_utf8(found.value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_names_its_connection() {
        let head = "GET /acp HTTP/1.1\r\nHost: a\r\nACP-connection-ID: abc\r\nAccept: */*\r\n\r\n";
        assert_eq!(named(head.as_bytes()), Some("abc"));
        for (head, found) in [
            (&head[..head.len() - 8], Some("abc")),
            (&head[..30], None),
            ("", None),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None),
            ("\u{16}\u{3}\u{1}", None),
            (
                "POST /acp HTTP/1.1\r\nHost: a\r\n\r\nAcp-Connection-Id: b\r\n\r\n",
                None,
            ),
        ] {
            assert_eq!(named(head.as_bytes()), found, "{head:?}");
        }
    }
}
