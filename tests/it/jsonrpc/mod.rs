//! The scanner and the replies: which messages are accepted and refused, and what is answered.

mod envelope;
mod properties;
mod replies;
mod scanner;
mod syntax;

use acp_relay::jsonrpc::{Envelope, Frame, FrameError, Id, IdBuf, Limits, Scanned, scan};

pub(super) fn limits() -> Limits {
    Limits::default()
}

pub(super) fn shape(text: impl AsRef<[u8]>) -> Scanned {
    scan(&Frame::new(text.as_ref().to_vec()), &limits())
}

#[track_caller]
pub(super) fn one(frame: &Frame) -> Envelope {
    match scan(frame, &limits()) {
        Scanned::Message(envelope) => envelope,
        other => panic!("{frame:?}: {other:?}"),
    }
}

#[track_caller]
pub(super) fn frame_error(text: impl AsRef<[u8]>) -> FrameError {
    match shape(&text) {
        Scanned::Invalid(error) => error,
        other => panic!("{:?}: {other:?}", String::from_utf8_lossy(text.as_ref())),
    }
}

pub(super) fn number(text: &str) -> IdBuf {
    Id::Number(text.as_bytes()).to_owned()
}
