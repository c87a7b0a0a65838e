//! `acp-relay top`: connections, sessions, turns and rates, drawn anew every second.
//!
//! Plain escape sequences: the other screen, home, clear. `q`, Ctrl-C or the end of stdin ends it.
//! Where stdout is no terminal the view is printed once. Not here: what is told (see `admin`).

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use tokio::runtime::Builder;

use super::status::{Whose, bytes, connections, fetch, page, total};
use super::{cli, console, exit, runtime};

/// Time between two pictures.
const BEAT: Duration = Duration::from_secs(1);

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H\x1b[2J";

/// What `top` is asked for.
#[derive(Debug, Args)]
pub(super) struct Top {
    #[command(flatten)]
    whose: Whose,
}

/// What has passed until some time.
#[derive(Clone, Copy)]
struct Passed {
    at: Instant,
    messages: u64,
    bytes: u64,
}

/// Runs the subcommand.
pub(super) fn run(args: &Top) -> ExitCode {
    let whose = &args.whose;
    runtime::drive(Builder::new_current_thread(), async move {
        if !console::is_terminal() {
            return match look(whose).await {
                Ok(status) => console::print(page(&status).trim_end(), exit::SUCCESS),
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
    serde_json::from_str(&answer.body).map_err(|_| "what answers there is no relay".to_owned())
}

/// Draws until somebody has seen enough, or the relay is gone.
async fn watch(whose: &Whose, mut keys: console::Keys) -> Result<(), String> {
    let mut before = None;
    loop {
        let status = look(whose).await?;
        let now = Passed::of(&status);
        let mut picture = format!("{HOME}{}", page(&status));
        if let Some(rates) = before.and_then(|before| now.since(before)) {
            // Writing to a string does not fail.
            let _ = writeln!(picture, "\n{rates}");
        }
        picture.push_str("\nq ends\n");
        console::draw(&picture.replace('\n', "\r\n"));
        before = Some(now);
        tokio::select! {
            () = keys.end() => return Ok(()),
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = tokio::time::sleep(BEAT) => {}
        }
    }
}

impl Passed {
    fn of(status: &Value) -> Self {
        let sum = |what| connections(status).iter().map(|one| total(one, what)).sum();
        Self {
            at: Instant::now(),
            messages: sum("messages_from"),
            bytes: sum("bytes_from"),
        }
    }

    /// How much passed a second; none when a conversation has ended and taken its figures along.
    fn since(self, before: Self) -> Option<String> {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let messages = self.messages.checked_sub(before.messages)?;
        let passed = self.bytes.checked_sub(before.bytes)?;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate for the eye"
        )]
        let rate = |count: u64| (count as f64 / seconds).round() as u64;
        Some(format!(
            "{} messages/s, {}/s",
            rate(messages),
            bytes(rate(passed))
        ))
    }
}
