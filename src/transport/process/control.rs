//! The messages between the relay and the watchdog of an agent, over a Unix socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::jsonrpc::Exit;
use crate::transport::StopStep;

/// The length of each report.
pub(super) const REPORT: usize = 5;

/// What a watchdog reports of its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// It runs, as this process.
    Started(i32),
    /// It could not be started, with this error of the operating system.
    Failed(i32),
    /// It has exited.
    Exited(Exit),
}

impl Report {
    pub(super) fn encode(self) -> [u8; REPORT] {
        let (tag, number) = match self {
            Self::Started(pid) => (b'p', pid),
            Self::Failed(errno) => (b'e', errno),
            Self::Exited(Exit::Code(code)) => (b'c', code),
            Self::Exited(Exit::Signal(signal)) => (b's', signal),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(super) fn decode([tag, number @ ..]: [u8; REPORT]) -> Option<Self> {
        let number = i32::from_le_bytes(number);
        Some(match tag {
            b'p' => Self::Started(number),
            b'e' => Self::Failed(number),
            b'c' => Self::Exited(Exit::Code(number)),
            b's' => Self::Exited(Exit::Signal(number)),
            _ => return None,
        })
    }
}

/// The byte that requests `step`.
pub(super) const fn order(step: StopStep) -> u8 {
    match step {
        StopStep::Terminate => b't',
        StopStep::Kill => b'k',
    }
}

/// Sends the agent's ends of its pipes.
pub(super) fn send_pipes(socket: impl AsFd, pipes: &[BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(pipes));
    sendmsg(
        socket,
        &[IoSlice::new(b"!")],
        &mut control,
        SendFlags::empty(),
    )?;
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
