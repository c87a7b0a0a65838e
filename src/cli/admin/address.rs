//! The address of the admin listener: a loopback port, or a Unix socket. Other commands of the same
//! user find that of a running relay in a file, which is named after the process.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use clap::Args;

use crate::cli::announcement::Announcement;
use transport::{Endpoint, EndpointError};

/// The folder of the files with addresses.
const FOLDER: &str = "admin";

/// The option of the admin listener of `serve`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(in crate::cli) struct AdminArgs {
    /// Serve monitoring here: /metrics, /healthz, /readyz, /startupz, /status; 127.0.0.1:PORT or
    /// unix:PATH
    #[arg(id = "admin.listen", long = "admin", value_name = "ADDRESS")]
    #[arg(env = "ACP_RELAY_ADMIN")]
    pub(in crate::cli) listen: Option<AdminAddress>,
}

/// An address on this machine: a TCP port of loopback, or a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct AdminAddress(pub(in crate::cli) Endpoint);

impl AdminAddress {
    /// The address that was given, or else the only one of a relay of this user.
    ///
    /// # Errors
    /// There is none, or several.
    pub(in crate::cli) fn or_only(given: Option<&Self>) -> Result<Self, String> {
        if let Some(place) = given {
            return Ok(place.clone());
        }
        let read = |(name, text): (String, String)| -> Option<(u32, Self)> {
            Some((name.parse().ok()?, text.trim_end().parse().ok()?))
        };
        let mut found: Vec<_> = Announcement::all(FOLDER)
            .into_iter()
            .filter_map(read)
            .collect();
        found.sort_by_key(|(process, _)| *process);
        match &found[..] {
            [] => Err(
                "no relay of yours with an admin listener is running here; start one with \
                 `acp-relay serve --admin 127.0.0.1:0 …`, or give its address: --admin ADDRESS"
                    .to_owned(),
            ),
            [(_, place)] => Ok(place.clone()),
            several => {
                let several = several.iter();
                let list = several.map(|(process, at)| format!("--admin {at} (process {process})"));
                let list = list.collect::<Vec<_>>().join(", ");
                Err(format!("several relays are running; choose one: {list}"))
            }
        }
    }

    /// Announces the address of this process's listener.
    pub(super) fn announce(&self) -> io::Result<Announcement> {
        let name = std::process::id().to_string();
        Announcement::create(FOLDER, &name, &format!("{self}\n"))
    }

    /// The same address, its relative path resolved against `folder`.
    pub(in crate::cli) fn relative_to(&self, folder: &Path) -> Self {
        Self(self.0.clone().relative_to(folder))
    }
}

impl FromStr for AdminAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("unix:") {
            return text
                .parse()
                .map(Self)
                .map_err(|fault: EndpointError| fault.to_string());
        }
        let place = text.strip_prefix("http://").unwrap_or(text);
        let place = place.strip_suffix('/').unwrap_or(place);
        let place = match place.strip_prefix("localhost:") {
            Some(port) => format!("tcp://127.0.0.1:{port}"),
            None => format!("tcp://{place}"),
        };
        let at: Option<Endpoint> = place.parse().ok();
        let expected = "expected 127.0.0.1:PORT, [::1]:PORT, localhost:PORT or unix:PATH";
        let at = at.ok_or(expected)?;
        match at.is_loopback() {
            true => Ok(Self(at)),
            false => Err(
                "it can be reached from other machines, and monitoring is not for everyone; listen \
                 on 127.0.0.1, and have a proxy or a monitoring agent fetch from there"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string().replace("tcp://", "http://"))
    }
}
