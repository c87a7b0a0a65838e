//! Starts the process that ends a link if this one is killed, and sends it what it needs for that.
//!
//! It gets a line for each connection of the link: JSON of a [`Lost`], or `null` once the link is
//! over. If its input ends after another line, this process was killed.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::dialer::Known;
use crate::process;

/// The argument that makes the executable of the relay run as that process.
pub const SUBCOMMAND: &str = "__link-watchdog";

/// The process, as long as the link lives.
pub(super) struct LinkWatchdog {
    contact: ContactSource,
    socket: StdUnixStream,
}

/// How the server of a link is reached from another process (see `transport::contact`). It holds
/// credentials, and is never logged.
#[derive(Clone, Deserialize, Serialize)]
pub struct Contact {
    pub(crate) to: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) pin: Option<String>,
}

jsonrpc::opaque_debug!(Contact);

/// What the process needs to end the link.
#[derive(Deserialize, Serialize)]
pub(crate) struct Lost<C = Contact, K = Known> {
    pub(crate) contact: C,
    pub(crate) known: K,
}

/// Makes a [`Contact`] of what holds now.
pub(crate) type ContactSource = Box<dyn Fn() -> Contact + Send + Sync>;

impl LinkWatchdog {
    /// Starts it; `None`, with a warning, where that is not possible.
    pub(super) fn start(contact: ContactSource, known: &Known) -> Option<Self> {
        let (socket, input) = match pair() {
            Ok(pair) => pair,
            Err(error) => {
                warn(&error);
                return None;
            }
        };
        let mut watchdog = Self { contact, socket };
        watchdog.update(known);
        // Starting a process takes a millisecond, in which the conversation begins.
        tokio::task::spawn_blocking(move || {
            if let Err(error) = process::start_outliving(SUBCOMMAND, input.into()) {
                warn(&error);
            }
        });
        Some(watchdog)
    }

    /// The link has a new connection.
    pub(super) fn update(&mut self, known: &Known) {
        let contact = (self.contact)();
        let lost = serde_json::to_string(&Lost { contact, known });
        self.write(&lost.unwrap_or_default());
    }

    /// The link is over.
    pub(super) fn dismiss(mut self) {
        self.write("null");
    }

    fn write(&mut self, line: &str) {
        // It may have been killed. Otherwise it reads at once, and the socket has room.
        let _ = self.socket.write_all(format!("{line}\n").as_bytes());
    }
}

fn pair() -> io::Result<(StdUnixStream, StdUnixStream)> {
    let (socket, input) = StdUnixStream::pair()?;
    socket.set_nonblocking(true)?;
    Ok((socket, input))
}

fn warn(error: &io::Error) {
    tracing::warn!(
        "no process ends the agent there if this one is killed ({error}); it is then kept for \
         --limit reconnect-grace of the relay there"
    );
}
