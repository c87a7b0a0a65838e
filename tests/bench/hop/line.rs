//! As much of WebSocket (RFC 6455) as a benchmark needs: an opening, and one frame for each message.
//!
//! Not here: control frames, fragments and everything else that the peers here do not send.

use std::io::{self, BufRead, Read, Write};

use data_encoding::BASE64;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// A client's opening handshake; the key is no secret.
pub(super) fn open(
    reader: &mut impl BufRead,
    writer: &mut impl Write,
    host: &str,
) -> io::Result<()> {
    write!(
        writer,
        "GET /acp HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )?;
    let head = read_head(reader)?;
    if head.starts_with("HTTP/1.1 101") {
        return Ok(());
    }
    Err(io::Error::other(head))
}

/// A server's answer to the handshake.
pub(super) fn accept(reader: &mut impl BufRead, writer: &mut impl Write) -> io::Result<()> {
    let head = read_head(reader)?;
    let key = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-key")
            .then(|| value.trim())
    });
    let text = format!("{}258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key.unwrap_or(""));
    let key = BASE64.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()).as_ref());
    write!(
        writer,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {key}\r\n\r\n"
    )
}

fn read_head(reader: &mut impl BufRead) -> io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}

/// Appends a text frame; a client's has a mask.
pub(super) fn write_frame(message: &[u8], mask: Option<[u8; 4]>, out: &mut Vec<u8>) {
    out.push(0x81);
    let bit = if mask.is_some() { 0x80 } else { 0 };
    match message.len() {
        short @ 0..126 => out.push(bit | short as u8),
        medium @ 126..0x1_0000 => {
            out.push(bit | 126);
            out.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            out.push(bit | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    let Some(mask) = mask else {
        return out.extend_from_slice(message);
    };
    out.extend_from_slice(&mask);
    out.extend(
        message
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, key)| byte ^ key),
    );
}

/// Reads the message of the next frame.
pub(super) fn read_frame(from: &mut impl Read, message: &mut Vec<u8>) -> io::Result<()> {
    let mut head = [0; 2];
    from.read_exact(&mut head)?;
    let mut wide = [0; 8];
    let length = match head[1] & 0x7f {
        126 => {
            from.read_exact(&mut wide[6..])?;
            u64::from_be_bytes(wide)
        }
        127 => {
            from.read_exact(&mut wide)?;
            u64::from_be_bytes(wide)
        }
        short => u64::from(short),
    };
    let mut mask = [0; 4];
    if head[1] & 0x80 != 0 {
        from.read_exact(&mut mask)?;
    }
    message.resize(usize::try_from(length).unwrap_or(0), 0);
    from.read_exact(message)?;
    if mask != [0; 4] {
        for (byte, key) in message.iter_mut().zip(mask.iter().cycle()) {
            *byte ^= key;
        }
    }
    Ok(())
}
