//! `acp-relay top`: connections, sessions, turns and rates, redrawn every second.
//!
//! It uses three escape sequences: alternate screen, home, clear. Ctrl-C ends it. Where stdout is not
//! a terminal, the status is printed once.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use tokio::runtime::Builder;

use super::status::{self, RelayArgs};
use super::status_text::render;
use super::{console, exit, runtime};

/// Time between two screens.
const INTERVAL: Duration = Duration::from_secs(1);

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H\x1b[2J";

/// Arguments of `top`.
#[derive(Debug, Args)]
pub(super) struct Top {
    #[command(flatten)]
    relay: RelayArgs,
}

/// Runs the subcommand.
pub(super) fn run(args: &Top) -> ExitCode {
    runtime::drive(Builder::new_current_thread(), async {
        if console::size().is_none() {
            return status::print(args.relay.status().await);
        }
        console::draw_screen(ENTER);
        let end = watch(&args.relay).await;
        console::draw_screen(LEAVE);
        match end {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => exit::fail(exit::UNAVAILABLE, &fault),
        }
    })
}

/// Draws until the user quits or the relay is gone.
async fn watch(relay: &RelayArgs) -> Result<(), String> {
    let mut before: Option<(Value, Instant)> = None;
    loop {
        let status = relay.status().await.map_err(|fault| match before {
            Some(_) => "the watched relay is gone".to_owned(),
            None => fault,
        })?;
        let now = Instant::now();
        let earlier = before.as_ref().map(|(status, at)| (status, now - *at));
        let [columns, rows] = console::size().unwrap_or([80, 24]);
        // One for the hint, and one blank.
        let text = render(&status, [columns, rows.saturating_sub(2)], earlier);
        let screen = format!("{HOME}{text}\nCtrl-C quits");
        console::draw_screen(&screen.replace('\n', "\r\n"));
        before = Some((status, now));
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}
