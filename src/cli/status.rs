//! `acp-relay status` and `acp-relay health`: the state of a running relay.

use std::process::ExitCode;

use clap::Args;
use hyper::StatusCode;
use tokio::runtime::Builder;

use super::admin::{self, AdminAddress};
use super::status_text::{TextSize, render};
use super::{console, exit, runtime};

/// Selects the relay.
#[derive(Debug, Args)]
pub(super) struct RelayArgs {
    /// The relay's admin listener; found automatically if one relay of yours is running
    #[arg(long, value_name = "ADDRESS", env = "ACP_RELAY_ADMIN")]
    pub(super) admin: Option<AdminAddress>,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    relay: RelayArgs,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `health`.
#[derive(Debug, Args)]
pub(super) struct Health {
    #[command(flatten)]
    relay: RelayArgs,
    /// Check only whether the relay is alive, not whether it accepts clients
    #[arg(long)]
    live: bool,
}

/// Runs `status`.
pub(super) fn status(args: &Status) -> ExitCode {
    let (json, relay) = (args.json, &args.relay);
    runtime::drive(Builder::new_current_thread(), async move {
        match fetch(relay, "/status").await {
            Ok((_, body)) if json => console::print(body.trim_end(), exit::SUCCESS),
            Ok((_, body)) => match serde_json::from_str(&body) {
                Ok(status) => console::print(&render(&status, text_size(), None), exit::SUCCESS),
                Err(_) => exit::fail(
                    exit::PROTOCOL,
                    &"the program that answers there is not a relay",
                ),
            },
            Err(fault) => exit::fail(exit::UNAVAILABLE, &fault),
        }
    })
}

/// Runs `health`: exit code 0 for a healthy relay, for the health checks of containers.
pub(super) fn health(args: &Health) -> ExitCode {
    let path = if args.live { "/healthz" } else { "/readyz" };
    let relay = &args.relay;
    runtime::drive(Builder::new_current_thread(), async move {
        match fetch(relay, path).await {
            Ok((StatusCode::OK, body)) => console::print(body.trim_end(), exit::SUCCESS),
            Ok((_, body)) => exit::fail(1, &body.trim_end()),
            Err(fault) => exit::fail(1, &fault),
        }
    })
}

/// Sends a request to the selected relay.
pub(super) async fn fetch(relay: &RelayArgs, path: &str) -> Result<(StatusCode, String), String> {
    let place = admin::find(relay.admin.as_ref())?;
    admin::fetch(&place, path).await
}

/// Unlimited lines, as wide as the terminal or 132 columns without one.
pub(super) fn text_size() -> TextSize {
    TextSize {
        columns: console::size().map_or(132, |[columns, _]| columns),
        rows: usize::MAX,
    }
}
