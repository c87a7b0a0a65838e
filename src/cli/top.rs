//! `acp-relay top`: connections, sessions, turns and rates, redrawn every second.
//!
//! It uses three escape sequences: alternate screen, home, clear. `q`, Ctrl-C or the end of stdin
//! ends it. Where stdout is not a terminal, the status is printed once.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use tokio::runtime::Builder;

use super::page::{Paper, Passed, page};
use super::status::{Whose, fetch, paper};
use super::{cli, console, exit, runtime};

/// Time between two screens.
const BEAT: Duration = Duration::from_secs(1);

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H\x1b[2J";

/// Arguments of `top`.
#[derive(Debug, Args)]
pub(super) struct Top {
    #[command(flatten)]
    whose: Whose,
}

/// Runs the subcommand.
pub(super) fn run(args: &Top) -> ExitCode {
    let whose = &args.whose;
    runtime::drive(Builder::new_current_thread(), async move {
        if !console::is_terminal() {
            return match look(whose).await {
                Ok(status) => console::print(&page(&status, paper(), None), exit::SUCCESS),
                Err(fault) => cli::fail(exit::UNAVAILABLE, &fault),
            };
        }
        let keys = console::Keys::listen();
        console::draw(ENTER);
        let end = watch(whose, keys).await;
        console::draw(LEAVE);
        match end {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => cli::fail(exit::UNAVAILABLE, &fault),
        }
    })
}

async fn look(whose: &Whose) -> Result<Value, String> {
    let answer = fetch(whose, "/status").await?;
    serde_json::from_str(&answer.body).map_err(|_| "the program that answers there is not a relay".to_owned())
}

/// Draws until the user quits or the relay is gone.
async fn watch(whose: &Whose, mut keys: console::Keys) -> Result<(), String> {
    let mut before: Option<Passed> = None;
    loop {
        let status = match look(whose).await {
            Ok(status) => status,
            Err(_) if before.is_some() => {
                return Err("the watched relay is gone".to_owned());
            }
            Err(fault) => return Err(fault),
        };
        let now = Passed::of(&status, Instant::now());
        let rates = before.as_ref().map(|before| now.since(before));
        let [columns, rows] = console::size().unwrap_or([80, 24]);
        let paper = Paper {
            columns,
            // One for the key hint, and one blank.
            rows: rows.saturating_sub(2),
        };
        let picture = format!("{HOME}{}\nq quits", page(&status, paper, rates.as_ref()));
        console::draw(&picture.replace('\n', "\r\n"));
        before = Some(now);
        tokio::select! {
            () = keys.end() => return Ok(()),
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = tokio::time::sleep(BEAT) => {}
        }
    }
}
