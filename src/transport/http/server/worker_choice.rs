//! Finds the connection whose worker serves a socket.
//!
//! The sockets of one ACP connection over HTTP share its state, and each message crosses from one
//! to another. So a socket whose first request names a connection goes to the worker that has it,
//! and no message has to change threads. A socket whose first request names none yet, or is hidden
//! by TLS, goes to the least loaded worker.

use httparse::{EMPTY_HEADER, Request};

use crate::transport::http::names;

/// Most fields of a head that are parsed.
const MAX_FIELDS: usize = 32;

/// The connection that the head of a request names, as far as the head has arrived.
pub(super) fn connection_id(head: &[u8]) -> Option<&str> {
    let mut fields = [EMPTY_HEADER; MAX_FIELDS];
    let mut request = Request::new(&mut fields);
    // A truncated head yields the fields before the cut.
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
    fn connection_id_is_read_from_the_head() {
        let head = "GET /acp HTTP/1.1\r\nHost: a\r\nACP-connection-ID: abc\r\nAccept: */*\r\n\r\n";
        assert_eq!(connection_id(head.as_bytes()), Some("abc"));
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
            assert_eq!(connection_id(head.as_bytes()), found, "{head:?}");
        }
    }
}
