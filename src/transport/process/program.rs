//! Checks that a program can be started, and explains why not.
//!
//! The operating system reports `ENOENT` for a missing program, a missing interpreter and a missing
//! working directory alike, and only when it is asked to start one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;

use super::{Launch, children};
use crate::{OpenError, OpenErrorKind};

/// Finds the file of the program `argv` names, which could be started as `launch` specifies.
///
/// # Errors
/// `Usage` when there are no arguments, `Unavailable` when there is no such program, `Forbidden`
/// when the relay may not execute it, `System` when its processes could not be found and ended.
pub fn find_program(argv: &[OsString], launch: &Launch) -> Result<PathBuf, OpenError> {
    let Some(program) = argv.first().filter(|word| !word.is_empty()) else {
        let what = "there is no program to start";
        return Err(OpenError::new(OpenErrorKind::Usage, "exec:", what)
            .with_remedy("Put the agent's command after `--`"));
    };
    let error = |kind, what: String| OpenError::new(kind, command_line(argv), what);
    let name = printable(program);
    if let Some(why) = children::forbidden() {
        let what = format!("the processes of the agent could not be found and ended ({why})");
        return Err(error(OpenErrorKind::System, what)
            .with_remedy("Start the relay where /proc is mounted"));
    }
    if let Some(dir) = launch.dir.as_deref().filter(|dir| !dir.is_dir()) {
        let dir = printable(dir.as_os_str());
        let what = format!("the working directory `{dir}` does not exist");
        return Err(error(OpenErrorKind::Unavailable, what));
    }
    let mut forbidden = None;
    for place in candidates(program, launch) {
        match rustix::fs::access(&place, Access::EXEC_OK) {
            Ok(()) if place.is_file() => return Ok(place),
            Err(Errno::ACCESS) if place.is_file() => forbidden = Some(place),
            _ => {}
        }
    }
    if let Some(place) = forbidden {
        let what = format!("`{}` is not executable", printable(place.as_os_str()));
        return Err(error(OpenErrorKind::Forbidden, what)
            .with_remedy("If it is a program, run `chmod +x` on it"));
    }
    let on_path = !program.as_bytes().contains(&b'/');
    let place = if on_path { " on PATH" } else { " file" };
    let what = format!("`{name}` is not an executable{place}");
    let error = error(OpenErrorKind::Unavailable, what);
    Err(if argv.len() == 1 && name.contains(' ') {
        error.with_remedy(
            "Write the program and its arguments as words of their own: there is no shell",
        )
    } else if on_path {
        error.with_remedy(format!("Install `{name}`, or name it with its full path"))
    } else {
        error.with_remedy("Check the path")
    })
}

/// The error for a start that failed although [`find_program`] found the program.
pub(super) fn start_error(argv: &[OsString], source: &io::Error) -> OpenError {
    let name = argv.first().map(|word| printable(word)).unwrap_or_default();
    let error = |kind, what: String| OpenError::new(kind, command_line(argv), what);
    let number = source.raw_os_error();
    match source.kind() {
        io::ErrorKind::NotFound => error(
            OpenErrorKind::Unavailable,
            format!("the interpreter of `{name}` is missing"),
        )
        .with_remedy("See the first line of that file, or the loader `file` shows for it"),
        io::ErrorKind::PermissionDenied => error(
            OpenErrorKind::Forbidden,
            format!("`{name}` may not be executed ({source})"),
        ),
        _ if number == Some(Errno::NOEXEC.raw_os_error()) => error(
            OpenErrorKind::Unavailable,
            format!("`{name}` is not a program this system can run"),
        )
        .with_remedy("A script needs a first line such as `#!/bin/sh`"),
        _ => {
            let what = format!("`{name}` could not be started ({source})");
            let failed = error(OpenErrorKind::System, what);
            if number != Some(Errno::MFILE.raw_os_error()) {
                return failed;
            }
            failed.with_remedy("This process may not have so many files open: raise `ulimit -n`")
        }
    }
}

/// The endpoint as a person would write it.
pub(super) fn command_line(argv: &[OsString]) -> String {
    let words: Vec<String> = argv.iter().map(|word| printable(word)).collect();
    format!("exec:{}", shell_words::join(words))
}

/// Text for a terminal, whatever the bytes are.
pub(super) fn printable(text: &OsStr) -> String {
    jsonrpc::printable(text.as_bytes())
}

/// The files that `execvp` would try, in its order.
fn candidates(program: &OsStr, launch: &Launch) -> Vec<PathBuf> {
    let dir = launch.dir.as_deref().unwrap_or_else(|| Path::new(""));
    if program.as_bytes().contains(&b'/') {
        return vec![dir.join(program)];
    }
    std::env::split_paths(&launch.path())
        // An empty entry is the current directory.
        .map(|entry| dir.join(entry).join(program))
        .collect()
}
