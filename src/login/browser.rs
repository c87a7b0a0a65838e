//! Starts the browser of the person at the terminal.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use transport::Launch;
use transport::process::browser::command_of;
use transport::process::find_program;

/// The program that opens an address in the desktop's browser.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Checks that a browser can be started.
///
/// # Errors
/// Why not.
pub fn check() -> Result<(), String> {
    let program = words("")?.swap_remove(0);
    let found = find_program(&[program.into()], &Launch::default());
    found.map(drop).map_err(|error| error.what)
}

/// Starts the first program of `$BROWSER`, or else the desktop's if there is a display. It is not
/// stopped by Ctrl-C, and gets none of the relay's variables, which may be secret.
///
/// # Errors
/// What could not be started, and why.
pub fn start(address: &str) -> Result<Child, String> {
    let mut words = words(address)?.into_iter();
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

/// The program and its arguments, of which there is one at least.
fn words(address: &str) -> Result<Vec<String>, String> {
    let chosen = env::var("BROWSER").unwrap_or_default();
    let has = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_display = cfg!(target_os = "macos") || has("DISPLAY") || has("WAYLAND_DISPLAY");
    if chosen.trim_matches([':', ' ']).is_empty() && !has_display {
        return Err("there is no display".to_owned());
    }
    Ok(command_of(&chosen, OPENER, address))
}
