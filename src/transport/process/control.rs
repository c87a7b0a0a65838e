//! The messages between the relay and the watchdog of an agent, over a Unix socket.
//!
//! The relay sends the agent's ends of its pipes, and then a byte for each signal to send: its number.
//! The watchdog sends reports.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The agent runs; the number is its process id.
pub(super) const STARTED: u8 = b'p';
/// The agent could not be started; the number is the error of the operating system.
pub(super) const FAILED: u8 = b'e';
/// The agent has exited, with this code.
pub(super) const EXITED: u8 = b'c';
/// The agent was ended by this signal.
pub(super) const SIGNALLED: u8 = b's';

/// A report as it is sent: its kind, and a number.
pub(super) type Report = [u8; 5];

pub(super) fn report(kind: u8, number: i32) -> Report {
    let [a, b, c, d] = number.to_le_bytes();
    [kind, a, b, c, d]
}

/// The kind and the number of a report.
pub(super) fn read_report([kind, number @ ..]: Report) -> (u8, i32) {
    (kind, i32::from_le_bytes(number))
}

/// Sends the agent's ends of its pipes.
pub(super) fn send_pipes(socket: impl AsFd, pipes: &[BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(pipes));
    let bytes = [IoSlice::new(b"!")];
    sendmsg(socket, &bytes, &mut control, SendFlags::empty())?;
    Ok(())
}

/// Waits for what [`send_pipes`] sends.
pub(super) fn receive_pipes(socket: impl AsFd) -> io::Result<[OwnedFd; 3]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut bytes, &mut control, RecvFlags::empty())?;
    let mut pipes = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            pipes.extend(received);
        }
    }
    for pipe in &pipes {
        fcntl_setfd(pipe, FdFlags::CLOEXEC)?;
    }
    let wrong = |_| io::Error::other("this is a part of acp-relay that only acp-relay starts");
    pipes.try_into().map_err(wrong)
}
