//! `acp-relay status` and `acp-relay health`: the state of a running relay.

use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use hyper::{Method, Response, StatusCode};
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::admin::AdminAddress;
use super::status_text::render;
use super::{console, exit, runtime};
use transport::{Endpoint, EndpointError, HttpClient, NoResponse, Setup};

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Largest response that is read, in bytes.
const MAX_BODY: usize = 16 << 20;

/// Selects the relay.
#[derive(Debug, Args)]
pub(super) struct RelayArgs {
    /// The relay's admin listener; found automatically if one relay of yours is running
    #[arg(long, value_name = "ADDRESS", env = "ACP_RELAY_ADMIN")]
    admin: Option<AdminAddress>,
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

impl RelayArgs {
    /// The relay's status.
    pub(super) async fn status(&self) -> Result<Value, String> {
        let (_, body) = self.fetch("/status").await?;
        let read = serde_json::from_str(&body);
        read.map_err(|_| "the program that answers there is not a relay".to_owned())
    }

    /// Requests `path`, and returns the status and the body.
    ///
    /// # Errors
    /// Why there is no response, as text for the user.
    async fn fetch(&self, path: &str) -> Result<(StatusCode, String), String> {
        let place = AdminAddress::or_only(self.admin.as_ref())?;
        let to: Endpoint = place
            .to_string()
            .parse()
            .map_err(|fault: EndpointError| fault.to_string())?;
        let failed = |why: &str| format!("cannot query the admin listener at {place}: {why}");
        let reply = timeout(TIMEOUT, get(&to, path)).await;
        let reply = reply.map_err(|_| failed(&format!("no answer within {TIMEOUT:?}")))?;
        let reply = reply.map_err(|fault| failed(fault.cause()))?;
        let body = String::from_utf8_lossy(reply.body()).into_owned();
        Ok((reply.status(), body))
    }
}

/// Runs `status`.
pub(super) fn status(args: &Status) -> ExitCode {
    runtime::drive(Builder::new_current_thread(), async {
        match args.relay.status().await {
            Ok(status) if args.json => console::print_json(&status, exit::SUCCESS),
            status => print(status),
        }
    })
}

/// Prints a status once: unlimited lines, as wide as the terminal or 132 columns without one.
pub(super) fn print(status: Result<Value, String>) -> ExitCode {
    let columns = console::size().map_or(132, |[columns, _]| columns);
    match status {
        Ok(status) => console::print(&render(&status, [columns, usize::MAX], None), exit::SUCCESS),
        Err(fault) => exit::fail(exit::UNAVAILABLE, &fault),
    }
}

/// Runs `health`: exit code 0 for a healthy relay, for the health checks of containers.
pub(super) fn health(args: &Health) -> ExitCode {
    let path = if args.live { "/healthz" } else { "/readyz" };
    runtime::drive(Builder::new_current_thread(), async {
        match args.relay.fetch(path).await {
            Ok((StatusCode::OK, body)) => console::print(body.trim_end(), exit::SUCCESS),
            Ok((_, body)) => exit::fail(1, &body.trim_end()),
            Err(fault) => exit::fail(1, &fault),
        }
    })
}

async fn get(to: &Endpoint, path: &str) -> Result<Response<Bytes>, NoResponse> {
    let client = HttpClient::new(to, &Setup::default())?;
    let request = client.request(Method::GET, path, "")?;
    client.fetch(request, MAX_BODY).await
}
