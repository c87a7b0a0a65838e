//! The other end of `ssh://`: the streams of ssh, joined to the relay on that machine.
//!
//! **Bytes are joined, not messages.** Nothing here reads a message: the client's relay and the one on
//! this machine do. All that is told apart is a client that ended its stream, whose end is passed on,
//! and a broken connection, after which the socket is closed.

use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process;
use std::thread;

use data_encoding::BASE64URL_NOPAD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::command::{GREETED, HELLO_VARIABLE, LINK_READY, LINK_VARIABLE, READY};

/// Time between the ends of the two streams of a connection that broke.
const BREAK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// Joins stdin and stdout to the relay, until it has closed the connection.
///
/// # Errors
/// The streams of ssh or of the relay cannot be used.
pub fn join(mut relay: &UnixStream, has_links: bool) -> io::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let greeting = env::var(HELLO_VARIABLE).ok().filter(|_| has_links);
    let greeting = greeting.and_then(|text| BASE64URL_NOPAD.decode(text.as_bytes()).ok());
    let ready = match (env::var_os(LINK_VARIABLE), &greeting) {
        (Some(_), Some(_)) => GREETED,
        (Some(_), None) if has_links => LINK_READY,
        _ => READY,
    };
    if let Some(greeting) = greeting.filter(|_| ready == GREETED) {
        write!(relay, "Content-Length: {}\r\n\r\n", greeting.len())?;
        relay.write_all(&greeting)?;
    }
    // A profile may have printed half a line.
    output.write_all(format!("\n{ready}\n").as_bytes())?;
    let mut to_relay = relay.try_clone()?;
    thread::spawn(move || {
        let ended = copy(&mut input, &mut to_relay);
        if ended.is_err() || is_broken() {
            // The socket is closed in both directions, by which the relay knows.
            process::exit(0);
        }
        let _ = to_relay.shutdown(Shutdown::Write);
    });
    // It fails when our stdout has no reader any more.
    let _ = copy(&mut relay, &mut output);
    Ok(())
}

/// Hides the types, for which `io::copy` would use splice(2): while that waits for the socket, nothing
/// can read what is in the pipe.
fn copy(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<u64> {
    io::copy(from, to)
}

/// Whether stdin has ended because the connection broke: then stdout has no reader either.
fn is_broken() -> bool {
    let stdout = io::stdout();
    let mut output = [PollFd::new(&stdout, PollFlags::empty())];
    let polled = poll(&mut output, Some(&BREAK));
    let gone = PollFlags::ERR | PollFlags::HUP;
    polled.is_ok() && output[0].revents().intersects(gone)
}
