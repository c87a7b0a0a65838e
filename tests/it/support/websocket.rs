//! Frames of WebSockets as a client sends them.

/// A frame with this first byte, masked with zeros.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    masked(first, payload, [0; 4])
}

/// A frame with this first byte, masked with `key`.
pub(crate) fn masked(first: u8, payload: &[u8], key: [u8; 4]) -> Vec<u8> {
    let length = payload.len();
    let mut frame = match length {
        0..=125 => vec![first, 0x80 | length as u8],
        126..=0xffff => [&[first, 0xfe][..], &(length as u16).to_be_bytes()].concat(),
        _ => [&[first, 0xff][..], &(length as u64).to_be_bytes()].concat(),
    };
    frame.extend(key);
    frame.extend(
        payload
            .iter()
            .zip(key.iter().cycle())
            .map(|(byte, key)| byte ^ key),
    );
    frame
}
