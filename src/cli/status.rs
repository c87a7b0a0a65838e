//! `acp-relay status` and `acp-relay health`: the state of a running relay.

use std::process::ExitCode;

use clap::Args;
use hyper::StatusCode;
use serde_json::Value;
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
    runtime::drive(Builder::new_current_thread(), async {
        match fetch(&args.relay, "/status").await {
            Ok((_, body)) if args.json => console::print(body.trim_end(), exit::SUCCESS),
            Ok((_, body)) => match read(&body) {
                Ok(status) => print(&status),
                Err(fault) => exit::fail(exit::PROTOCOL, &fault),
            },
            Err(fault) => exit::fail(exit::UNAVAILABLE, &fault),
        }
    })
}

/// Prints a status once: unlimited lines, as wide as the terminal or 132 columns without one.
pub(super) fn print(status: &Value) -> ExitCode {
    let size = TextSize {
        columns: console::size().map_or(132, |[columns, _]| columns),
        rows: usize::MAX,
    };
    console::print(&render(status, size, None), exit::SUCCESS)
}

/// Reads the answer to `/status`.
pub(super) fn read(body: &str) -> Result<Value, String> {
    serde_json::from_str(body)
        .map_err(|_| "the program that answers there is not a relay".to_owned())
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
