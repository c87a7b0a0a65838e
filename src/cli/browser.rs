//! Starts the browser of the person at the terminal.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// The program that opens an address in the desktop's browser.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Starts the first program of `$BROWSER`, or else the desktop's if there is a display, with `address`
/// as its argument or in the place of `%s`; no shell reads either. It is not stopped by Ctrl-C, and gets none of the
/// relay's variables, which may be secret.
///
/// # Errors
/// What could not be started, and why.
pub(super) fn start(address: &str) -> Result<Child, String> {
    let chosen = env::var("BROWSER").unwrap_or_default();
    let first = chosen.split(':').find(|one| !one.trim().is_empty());
    let has = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_display = cfg!(target_os = "macos") || has("DISPLAY") || has("WAYLAND_DISPLAY");
    if first.is_none() && !has_display {
        return Err("there is no display".to_owned());
    }
    let mut words = shell_words::split(first.unwrap_or(OPENER)).unwrap_or_default();
    if !words.iter().any(|word| word.contains("%s")) {
        words.push("%s".to_owned());
    }
    let mut words = words.iter().map(|word| word.replace("%s", address));
    let program = words.next().unwrap_or_default();
    let mut command = Command::new(&program);
    let is_ours = |name: &OsStr| name.as_bytes().starts_with(b"ACP_RELAY_");
    for (name, _) in env::vars_os().filter(|(name, _)| is_ours(name)) {
        command.env_remove(name);
    }
    let quiet = command.args(words).stdin(Stdio::null());
    let quiet = quiet.stdout(Stdio::null()).stderr(Stdio::null());
    let started = quiet.process_group(0).spawn();
    started.map_err(|error: io::Error| format!("`{program}` cannot be started: {error}"))
}
