//! `acp-relay status` and `acp-relay health`: how a relay that runs is.
//!
//! Not here: the live view (see `top`), how it looks (see `page`), and what is told (see `admin`).

use std::process::ExitCode;

use clap::Args;
use tokio::runtime::Builder;

use super::admin::{self, Asked, Place};
use super::page::{Paper, page};
use super::{cli, console, exit, runtime};

/// Which relay is meant.
#[derive(Debug, Args)]
pub(super) struct Whose {
    /// The relay's admin listener; found by itself when one relay of yours is running
    #[arg(long, value_name = "ADDRESS", env = "ACP_RELAY_ADMIN")]
    pub(super) admin: Option<Place>,
}

/// What `status` is asked for.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    whose: Whose,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// What `health` is asked for.
#[derive(Debug, Args)]
pub(super) struct Health {
    #[command(flatten)]
    whose: Whose,
    /// Ask whether it lives, rather than whether it takes clients
    #[arg(long)]
    live: bool,
}

/// Runs `status`.
pub(super) fn status(args: &Status) -> ExitCode {
    let (json, whose) = (args.json, &args.whose);
    runtime::drive(Builder::new_current_thread(), async move {
        match fetch(whose, "/status").await {
            Ok(answer) if json => console::print(answer.body.trim_end(), exit::SUCCESS),
            Ok(answer) => match serde_json::from_str(&answer.body) {
                Ok(status) => console::print(&page(&status, paper(), None), exit::SUCCESS),
                Err(_) => cli::fail(exit::PROTOCOL, &"what answers there is no relay"),
            },
            Err(fault) => cli::fail(exit::UNAVAILABLE, &fault),
        }
    })
}

/// Runs `health`: 0 when all is well, for the health checks of containers.
pub(super) fn health(args: &Health) -> ExitCode {
    let path = if args.live { "/healthz" } else { "/readyz" };
    let whose = &args.whose;
    runtime::drive(Builder::new_current_thread(), async move {
        match fetch(whose, path).await {
            Ok(answer) if answer.status == 200 => {
                console::print(answer.body.trim_end(), exit::SUCCESS)
            }
            Ok(answer) => cli::fail(1, &answer.body.trim_end()),
            Err(fault) => cli::fail(1, &fault),
        }
    })
}

/// Asks the relay that is meant.
pub(super) async fn fetch(whose: &Whose, path: &str) -> Result<Asked, String> {
    let place = admin::find(whose.admin.as_ref())?;
    admin::ask(&place, path).await
}

/// All the lines there are, as wide as the terminal or, where there is none, as it takes.
pub(super) fn paper() -> Paper {
    Paper {
        columns: console::size().map_or(132, |[columns, _]| columns),
        rows: usize::MAX,
    }
}
