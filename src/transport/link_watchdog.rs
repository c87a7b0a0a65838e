//! The process that ends a resumable link whose client was killed: no code runs in a process that
//! gets SIGKILL, and the relay at the other end would wait for it for hours.
//!
//! `connect` starts it when its link is open (see `resumable::watchdog`), and writes what it needs
//! to its stdin: it is in no argument and no variable, which others can read. When its input ends
//! before the link does, it connects once more, and reports that the client has died.
//!
//! It has a session and a process group of its own, because some editors kill the whole group.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use rustix::process::{getpgid, getppid, setpgid, setsid};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::process::watchdog::ignore_signals;
pub use super::resumable::SUBCOMMAND;
use super::resumable::{Contact, Lost, end_link};
use super::{Endpoint, Link, ssh, websocket};

/// How long it tries.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Runs the process, until its link has ended. To be called by `main` before all else when the first
/// argument is [`SUBCOMMAND`].
///
/// # Errors
/// When it was not started by the relay.
pub fn run() -> io::Result<()> {
    leave_session();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(watch())
}

/// The leader of a group, which this is, cannot begin a session; it is in that of its parent for a
/// moment. Where that fails, its own group remains.
fn leave_session() {
    let group = getppid().and_then(|parent| getpgid(Some(parent)).ok());
    if group.is_some_and(|group| setpgid(None, Some(group)).is_ok()) && setsid().is_err() {
        let _ = setpgid(None, None);
    }
}

async fn watch() -> io::Result<()> {
    // Only its input ends it. The handlers are not inherited by ssh, as ignoring would be.
    let _ignored = ignore_signals();
    let socket = StdUnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    let mut lines = BufReader::new(UnixStream::from_std(socket)?).lines();
    let mut lost: Option<Lost> = None;
    while let Ok(Some(line)) = lines.next_line().await {
        lost = serde_json::from_str(&line)?;
    }
    if let Some(lost) = lost {
        // The relay there ends the agent later if it cannot be reached.
        let _ = timeout(TIMEOUT, report(lost)).await;
    }
    Ok(())
}

/// Tries to end the link until that is done.
async fn report(Lost { contact, mut known }: Lost) {
    loop {
        if let Ok(carrier) = open(contact.clone()).await
            && end_link(carrier, &mut known).await
        {
            return;
        }
        sleep(PAUSE).await;
    }
}

async fn open(contact: Contact) -> Result<Link, String> {
    let (to, setup) = contact.read()?;
    let carrier = match &to {
        Endpoint::Ssh(at) => ssh::connect_carrier(&to, at, &setup).await,
        _ => websocket::connect_carrier(&to, &setup).await,
    };
    carrier.map_err(|error| error.to_string())
}
