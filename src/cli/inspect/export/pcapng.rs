//! A file for Wireshark: the conversation as a synthetic WebSocket connection.
//!
//! pcapng (draft-ietf-opsawg-pcapng): a section, one interface of raw IP, a block for each
//! packet, and marks as comments on the next packet.

use super::packet::{Connection, websocket};
use super::{Exported, Format};
use crate::jsonrpc::Side;
use crate::recording::{EventKind, Header, RecordedEvent};

/// `LINKTYPE_RAW`: packets begin with their IP header.
const RAW_IP: u32 = 101;

/// The opening handshake of RFC 6455, 1.3.
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: acp\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const RESPONSE: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

#[derive(Default)]
pub(super) struct Pcapng {
    connection: Connection,
    now: u64,
    comment: Option<String>,
}

impl Format for Pcapng {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        self.now = header.began;
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend_from_slice(&[1, 0, 0, 0]);
        section.extend_from_slice(&u64::MAX.to_le_bytes());
        options(
            &mut section,
            4,
            concat!("acp-relay ", env!("CARGO_PKG_VERSION")),
        );
        block(out, 0x0a0d_0d0a, &section);
        let mut interface = RAW_IP.to_le_bytes().to_vec();
        interface.extend_from_slice(&0_u32.to_le_bytes());
        options(&mut interface, 2, "acp");
        block(out, 1, &interface);
        self.send(Side::Client, REQUEST.as_bytes(), out);
        self.send(Side::Agent, RESPONSE.as_bytes(), out);
    }

    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        self.now = msg.at;
        self.send(msg.from, &websocket(msg.from, msg.bytes), out);
        true
    }

    fn event(&mut self, event: &RecordedEvent, _: &mut Vec<u8>) {
        if let EventKind::Mark(text) = &event.kind {
            self.comment = Some(text.chars().take(1_000).collect());
        }
    }
    fn end(&mut self, _: &Header, _: u64, out: &mut Vec<u8>) {
        // A mark after the last message.
        if self.comment.is_some() {
            let packet = self.connection.packet(Side::Client, b"");
            self.write(&packet, out);
        }
    }
}

impl Pcapng {
    fn send(&mut self, from: Side, bytes: &[u8], out: &mut Vec<u8>) {
        for packet in self.connection.send(from, bytes) {
            self.write(&packet, out);
        }
    }

    fn write(&mut self, packet: &[u8], out: &mut Vec<u8>) {
        let length = u32::try_from(packet.len()).expect("a packet is short");
        // The interface, and the time in microseconds, its upper half first.
        let head = [0, (self.now >> 32) as u32, self.now as u32, length, length];
        let mut body = head.map(u32::to_le_bytes).concat();
        body.extend_from_slice(packet);
        pad(&mut body);
        if let Some(comment) = self.comment.take() {
            options(&mut body, 1, &comment);
        }
        block(out, 6, &body);
    }
}

fn block(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = u32::try_from(body.len() + 12)
        .expect("a block is short")
        .to_le_bytes();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&length);
    out.extend_from_slice(body);
    out.extend_from_slice(&length);
}

/// Appends one option, and the end of options.
fn options(body: &mut Vec<u8>, code: u16, text: &str) {
    let length = u16::try_from(text.len()).expect("an option is short");
    body.extend([code, length].map(u16::to_le_bytes).concat());
    body.extend_from_slice(text.as_bytes());
    pad(body);
    body.extend_from_slice(&[0; 4]);
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}
