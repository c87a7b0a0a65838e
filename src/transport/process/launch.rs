//! The working directory and the environment of an agent.
//!
//! What is meant for the relay alone is never passed on: its own secrets, and what systemd passes
//! to a service of its sockets.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;

use super::Lease;

/// The search path of `execvp` when there is no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// What a bare environment keeps.
const BARE_KEEPS: [&str; 8] = [
    "HOME", "LANG", "LC_*", "PATH", "SHELL", "TERM", "TMPDIR", "USER",
];

/// What is never passed on: of systemd, what it passes to a service (sd_listen_fds(3),
/// sd_notify(3), systemd.exec(5)).
const WITHHELD: [&str; 5] = [
    "CREDENTIALS_DIRECTORY",
    "LISTEN_*",
    "MAINPID",
    "NOTIFY_SOCKET",
    "WATCHDOG_*",
];

/// What `serve` sets for itself (see `cli::memory`): the first shows that the relay set the second,
/// which is the C library's.
pub const ALLOCATOR_VARS: [&str; 2] = ["ACP_RELAY_ALLOCATOR", "MALLOC_MMAP_THRESHOLD_"];

/// How the relay's own variables begin.
const PREFIX: &[u8] = b"ACP_RELAY_";
/// Words in the names of those that are secret.
const SECRET_WORDS: [&str; 5] = ["BEARER", "KEY", "PASSWORD", "SECRET", "TOKEN"];

/// How a program is started, besides its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Its working directory; the relay's when not given.
    pub dir: Option<PathBuf>,
    /// Variables it is given, which override the relay's.
    pub env: Vec<(OsString, OsString)>,
    /// Whether it gets no more of the relay's environment than every program needs: `HOME`, `LANG`,
    /// `LC_*`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `USER`.
    pub bare: bool,
    /// The program of [`browser`](super::browser), if the pages that it opens are opened where its
    /// client is.
    pub browser: Option<PathBuf>,
    /// How long it may run without a renewal by the relay, if that is bounded.
    pub lease: Option<Lease>,
}

impl Launch {
    /// This one, completed by `defaults`.
    #[must_use]
    pub fn with_defaults(mut self, defaults: Self) -> Self {
        let mut env = defaults.env;
        env.append(&mut self.env);
        Self {
            dir: self.dir.or(defaults.dir),
            env,
            bare: self.bare || defaults.bare,
            browser: self.browser.or(defaults.browser),
            lease: self.lease.or(defaults.lease),
        }
    }

    /// Makes `command` start this way.
    pub(super) fn apply(&self, command: &mut Command) {
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        for (name, _) in env::vars_os() {
            if !self.inherits(&name) {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
    }

    /// The search path for its program.
    pub(super) fn path(&self) -> OsString {
        let own = self.env.iter().rfind(|(name, _)| name == "PATH");
        let path = own
            .map(|(_, path)| path.clone())
            .or_else(|| env::var_os("PATH"));
        path.unwrap_or_else(|| DEFAULT_PATH.into())
    }

    /// Whether a variable of the relay is passed on.
    fn inherits(&self, name: &OsStr) -> bool {
        let is_ours = ALLOCATOR_VARS.iter().any(|one| name == *one)
            && env::var_os(ALLOCATOR_VARS[0]).is_some();
        let is_withheld = is_ours || is_one_of(name, &WITHHELD) || is_relay_secret(name);
        !is_withheld && (!self.bare || is_one_of(name, &BARE_KEEPS))
    }
}

/// Whether a name is among these; a `*` at the end matches any rest.
fn is_one_of(name: &OsStr, all: &[&str]) -> bool {
    all.iter().any(|one| match one.strip_suffix('*') {
        Some(prefix) => name.as_bytes().starts_with(prefix.as_bytes()),
        None => name == *one,
    })
}

fn is_relay_secret(name: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(PREFIX);
    rest.is_some_and(|rest| {
        let rest = String::from_utf8_lossy(rest);
        SECRET_WORDS.iter().any(|word| rest.contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_variables_are_not_inherited() {
        for bare in [true, false] {
            let launch = Launch {
                bare,
                ..Launch::default()
            };
            let inherits = |name: &&str| launch.inherits(OsStr::new(name));
            let ours =
                "ACP_RELAY_BEARER ACP_RELAY_TOKEN_FILE ACP_RELAY_TLS_KEY LISTEN_FDS NOTIFY_SOCKET";
            assert_eq!(ours.split(' ').find(inherits), None);
            let basic = "PATH HOME LC_ALL TERM";
            assert!(basic.split(' ').all(|name| inherits(&name)));
            let others = "OPENAI_API_KEY ACP_RELAY_LOG LD_PRELOAD PATHS XHOME";
            assert!(others.split(' ').all(|name| inherits(&name) != bare));
        }
    }

    #[test]
    fn own_settings_override_defaults() {
        let with_path = |path: &str, bare| Launch {
            env: vec![("PATH".into(), path.into())],
            bare,
            ..Launch::default()
        };
        let both = with_path("/over", false).with_defaults(with_path("/under", true));
        assert_eq!(both.path(), "/over");
        assert!(both.bare);
    }
}
