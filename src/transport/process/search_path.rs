//! Where a program is that is not on `PATH`.
//!
//! A service, an editor that was started from a desktop, and `ssh HOST COMMAND` read no profile of a
//! shell, so their `PATH` lacks what an installer has added there. Then the login shell is asked for
//! its own, and the folders are searched in which installers of agents put them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Launch;
use super::program::{find_program, printable};
use crate::{OpenError, OpenErrorKind};

/// How long a profile may take.
const PROFILE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes that a profile may print.
const MAX_PROFILE_OUTPUT: u64 = 1 << 20;
/// Around the value that the shell prints; the script does not have it, because a shell may print its
/// script as the title of a terminal.
const MARK: &str = "acp-relay-search-path";
const SCRIPT: &str = r#"echo acp-relay-"search"-path; printenv PATH; echo acp-relay-"search"-path"#;
/// Longest first line of a script, in bytes.
const MAX_FIRST_LINE: u64 = 256;

/// Folders of installers, from the home directory or absolute. Those with a `*` stand for each version,
/// of which the newest comes first.
const FOLDERS: [&str; 20] = [
    ".local/bin",
    ".cargo/bin",
    ".npm-global/bin",
    ".nvm/versions/node/*/bin",
    ".local/share/fnm/aliases/default/bin",
    ".local/share/fnm/node-versions/*/installation/bin",
    ".volta/bin",
    ".asdf/shims",
    ".local/share/mise/shims",
    ".pyenv/shims",
    ".pyenv/bin",
    ".bun/bin",
    ".deno/bin",
    "go/bin",
    ".opencode/bin",
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/usr/local/bin",
    "/snap/bin",
    "/run/current-system/sw/bin",
];

/// Looks for a program where `PATH` does not lead: the `PATH` with which it can be started, or `None`
/// if that is the one it would get anyway. A script counts as found together with its interpreter.
///
/// # Errors
/// As [`find_program`]; where it was looked for is in the text.
pub fn search_program(argv: &[OsString], launch: &Launch) -> Result<Option<OsString>, OpenError> {
    let found = find_program(argv, launch);
    let has_path = launch.env.iter().any(|(name, _)| name == "PATH");
    let is_named = |word: &OsString| !word.as_bytes().contains(&b'/');
    let is_missing = match &found {
        Ok(place) => !has_interpreter(place, launch),
        Err(error) => {
            let has_folder = launch.dir.as_deref().is_none_or(Path::is_dir);
            error.kind == OpenErrorKind::Unavailable
                && has_folder
                && argv.first().is_some_and(is_named)
        }
    };
    if has_path || !is_missing {
        return found.map(|_| None);
    }
    let starts = |folders: &[PathBuf]| {
        let path = env::join_paths(folders).ok()?;
        let mut launch = launch.clone();
        launch.env.push(("PATH".into(), path.clone()));
        let place = find_program(argv, &launch).ok()?;
        has_interpreter(&place, &launch).then_some(path)
    };
    let shell = env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut folders: Vec<PathBuf> = login_path(&shell)
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    let is_silent = folders.is_empty();
    for own in env::split_paths(&launch.path()) {
        if !folders.contains(&own) {
            folders.push(own);
        }
    }
    if let Some(path) = starts(&folders) {
        return Ok(Some(path));
    }
    let places = well_known_folders();
    for place in &places {
        let mut with = vec![place.clone()];
        with.extend_from_slice(&folders);
        if let Some(path) = starts(&with) {
            return Ok(Some(path));
        }
    }
    // For a missing interpreter, the error of the start is better.
    let Err(mut error) = found else {
        return Ok(None);
    };
    let places: Vec<_> = places.iter().map(|place| place.to_string_lossy()).collect();
    let why = if is_silent {
        "which does not print it"
    } else {
        "asked for it"
    };
    error.what = format!(
        "{}, nor on that of the login shell ({}, {why}), nor in {}",
        error.what,
        printable(&shell),
        places.join(", ")
    );
    Err(error)
}

/// Whether the interpreter of a script that `env` looks up is on `PATH`.
fn has_interpreter(place: &Path, launch: &Launch) -> bool {
    let mut line = Vec::new();
    let read = File::open(place)
        .and_then(|file| BufReader::new(file.take(MAX_FIRST_LINE)).read_until(b'\n', &mut line));
    let words = line.strip_prefix(b"#!").filter(|_| read.is_ok());
    let mut words = words
        .unwrap_or_default()
        .trim_ascii()
        .split(|byte| *byte == b' ');
    if !words.next().is_some_and(|first| first.ends_with(b"/env")) {
        return true;
    }
    let is_name =
        |word: &&[u8]| !word.is_empty() && !word.starts_with(b"-") && !word.contains(&b'=');
    let Some(name) = words.find(is_name) else {
        return true;
    };
    find_program(&[OsStr::from_bytes(name).into()], launch).is_ok()
}

/// The `PATH` of the login shell, as its profile sets it.
fn login_path(shell: &OsStr) -> Option<OsString> {
    let until = Instant::now() + PROFILE_TIMEOUT;
    // What only interactive shells read has it more often; a profile that becomes another shell there
    // prints nothing.
    ["-lic", "-lc"].into_iter().find_map(|how| {
        let printed = output_of(shell, how, until)?;
        let marks: Vec<_> = memchr::memmem::find_iter(&printed, MARK).collect();
        let (first, second) = (marks.first()?, marks.get(1)?);
        let between = &printed[first + MARK.len()..*second];
        let mut lines = between.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let path = lines.find(|line| line.first() == Some(&b'/'))?;
        Some(OsString::from_vec(path.to_vec()))
    })
}

/// What the shell prints up to the second mark, within the time and the bytes that a profile may take.
fn output_of(shell: &OsStr, how: &str, until: Instant) -> Option<Vec<u8>> {
    let mut child = Command::new(shell)
        .args([how, SCRIPT])
        .env("TERM", "dumb")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw)?;
    let mut stdout = child.stdout.take()?.take(MAX_PROFILE_OUTPUT);
    let (sender, pieces) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = stdout.read(&mut piece) {
            if sender.send(piece[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    let mut printed = Vec::new();
    let is_done = |printed: &[u8]| memchr::memmem::find_iter(printed, MARK).count() > 1;
    while !is_done(&printed) {
        match pieces.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(piece) => printed.extend(piece),
            Err(_) => break,
        }
    }
    // A profile may wait for ever, and what it has started holds the pipe.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    Some(printed)
}

/// The folders of installers that exist on this machine.
fn well_known_folders() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let Some(home) = home.filter(|home| home.is_absolute()) else {
        return Vec::new();
    };
    let prefix = env::var_os("NPM_CONFIG_PREFIX").map(PathBuf::from);
    let prefix = prefix
        .or_else(|| npm_prefix(&home))
        .map(|prefix| prefix.join("bin"));
    let folders = FOLDERS
        .iter()
        .flat_map(|folder| match folder.split_once('*') {
            Some((before, after)) => versions(&home.join(before))
                .into_iter()
                .map(|version| version.join(after.trim_start_matches('/')))
                .collect(),
            None => vec![home.join(folder)],
        });
    prefix
        .into_iter()
        .chain(folders)
        .filter(|folder| folder.is_dir())
        .collect()
}

/// Where npm installs programs, if the user's file says so.
fn npm_prefix(home: &Path) -> Option<PathBuf> {
    let file = File::open(home.join(".npmrc")).ok()?;
    let lines = BufReader::new(file.take(MAX_PROFILE_OUTPUT)).lines();
    let mut lines = lines.map_while(Result::ok);
    lines.find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let value = value
            .trim()
            .trim_matches('"')
            .replace("${HOME}", &home.to_string_lossy());
        (name.trim() == "prefix").then(|| PathBuf::from(value))
    })
}

/// The folders of versions in a folder, the newest first.
fn versions(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let mut all: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    all.sort_by_cached_key(|path| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let parts = name.trim_start_matches('v').split('.');
        let parts = parts.map(|part| part.parse().unwrap_or(0_u64));
        std::cmp::Reverse(parts.collect::<Vec<_>>())
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreter_of_a_script_has_to_be_on_path() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        let launch = Launch::default();
        for (line, is_there) in [
            ("#!/usr/bin/env no-such-interpreter", false),
            ("#!/usr/bin/env -S no-such-interpreter --flag", false),
            ("#!/usr/bin/env sh", true),
            ("#!/no/such/sh", true),
            ("\u{7f}ELF", true),
        ] {
            std::fs::write(&script, format!("{line}\n")).unwrap();
            assert_eq!(has_interpreter(&script, &launch), is_there, "{line}");
        }
    }
}
