//! A synthetic TCP connection, packet by packet.
//!
//! IPv4 (RFC 791) and TCP (RFC 9293) as far as a dissector needs it: addresses, ports, sequence
//! numbers, flags.

use crate::jsonrpc::Side;

/// Maximum payload bytes in one packet.
const SEGMENT: usize = 32 << 10;

/// 127.0.0.1 and 127.0.0.2.
const ADDRESSES: [[u8; 4]; 2] = [[127, 0, 0, 1], [127, 0, 0, 2]];
const PORTS: [u16; 2] = [50_000, 80];

const FIN: u8 = 1;
const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;

/// Both ends of the connection: the bytes that each has sent.
#[derive(Debug, Default)]
pub(super) struct Connection {
    sent: [u32; 2],
}

impl Connection {
    /// The packets that open the connection.
    pub(super) fn open(&mut self) -> Vec<Vec<u8>> {
        vec![
            self.packet(Side::Client, SYN, b""),
            self.packet(Side::Agent, SYN | ACK, b""),
            self.packet(Side::Client, ACK, b""),
        ]
    }

    /// The packets that carry data.
    pub(super) fn send(&mut self, from: Side, bytes: &[u8]) -> Vec<Vec<u8>> {
        let chunks = bytes.chunks(SEGMENT);
        chunks
            .map(|chunk| self.packet(from, PUSH | ACK, chunk))
            .collect()
    }

    /// The packets that close the connection.
    pub(super) fn close(&mut self) -> Vec<Vec<u8>> {
        vec![
            self.packet(Side::Client, FIN | ACK, b""),
            self.packet(Side::Agent, FIN | ACK, b""),
            self.packet(Side::Client, ACK, b""),
        ]
    }

    fn packet(&mut self, from: Side, flags: u8, payload: &[u8]) -> Vec<u8> {
        let (own, other) = (from as usize, from.other() as usize);
        let length = u16::try_from(40 + payload.len()).expect("a segment is short");
        let mut packet = Vec::with_capacity(usize::from(length));
        // Version 4, 20 bytes of header; no fragments; 64 hops; TCP.
        packet.extend_from_slice(&[0x45, 0]);
        packet.extend_from_slice(&length.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend_from_slice(&ADDRESSES[own]);
        packet.extend_from_slice(&ADDRESSES[other]);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend_from_slice(&PORTS[own].to_be_bytes());
        packet.extend_from_slice(&PORTS[other].to_be_bytes());
        packet.extend_from_slice(&self.sent[own].to_be_bytes());
        let ack = if flags & ACK == 0 {
            0
        } else {
            self.sent[other]
        };
        packet.extend_from_slice(&ack.to_be_bytes());
        // 20 bytes of header, the flags, the window, no checksum (as with offloading), not urgent.
        packet.extend_from_slice(&[0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(payload);
        let counts = u32::from(flags & (SYN | FIN) != 0);
        let sent = u32::try_from(payload.len()).expect("a segment is short") + counts;
        self.sent[own] = self.sent[own].wrapping_add(sent);
        packet
    }
}

/// The checksum of an IPv4 header (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
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
