//! A synthetic TCP connection, packet by packet.
//!
//! IPv4 (RFC 791) and TCP (RFC 9293) as far as a dissector needs it: addresses, ports, sequence
//! numbers. The capture begins after the connection was opened, and ends before it is closed.

use crate::jsonrpc::Side;

/// Maximum payload bytes in one packet.
const SEGMENT: usize = 32 << 10;

/// 127.0.0.1 and 127.0.0.2.
const ADDRESSES: [[u8; 4]; 2] = [[127, 0, 0, 1], [127, 0, 0, 2]];
const PORTS: [u16; 2] = [50_000, 80];

/// Both ends of the connection: the bytes that each has sent.
#[derive(Debug, Default)]
pub(super) struct Connection {
    sent: [u32; 2],
}

impl Connection {
    /// The packets that carry data.
    pub(super) fn send(&mut self, from: Side, bytes: &[u8]) -> Vec<Vec<u8>> {
        let chunks = bytes.chunks(SEGMENT);
        chunks.map(|chunk| self.packet(from, chunk)).collect()
    }

    /// One packet, also without data.
    pub(super) fn packet(&mut self, from: Side, payload: &[u8]) -> Vec<u8> {
        let (own, other) = (from as usize, from.other() as usize);
        let length = u16::try_from(40 + payload.len()).expect("a segment is short");
        // Version 4, 20 bytes of header; no fragments; 64 hops; TCP; no checksum, as with offloading.
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&length.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend([ADDRESSES[own], ADDRESSES[other]].concat());
        packet.extend([PORTS[own], PORTS[other]].map(u16::to_be_bytes).concat());
        packet.extend(
            [self.sent[own], self.sent[other]]
                .map(u32::to_be_bytes)
                .concat(),
        );
        // 20 bytes of header, PSH and ACK, the window, no checksum, not urgent.
        packet.extend_from_slice(&[0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(payload);
        self.sent[own] = self.sent[own].wrapping_add(u32::from(length) - 40);
        packet
    }
}

/// A WebSocket text message (RFC 6455, 5.2). A client's is masked, here with zeroes.
pub(super) fn websocket(from: Side, text: &[u8]) -> Vec<u8> {
    let mask = if from == Side::Client { 0x80 } else { 0 };
    let mut frame = vec![0x81];
    match (u8::try_from(text.len()), u16::try_from(text.len())) {
        (Ok(length @ 0..126), _) => frame.push(mask | length),
        (_, Ok(length)) => {
            frame.push(mask | 126);
            frame.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            frame.push(mask | 127);
            frame.extend_from_slice(&(text.len() as u64).to_be_bytes());
        }
    }
    if from == Side::Client {
        frame.extend_from_slice(&[0; 4]);
    }
    frame.extend_from_slice(text);
    frame
}
