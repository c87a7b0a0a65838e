//! The options of `connect` about whose files an agent uses, what a remote agent may do on this
//! machine and which folders are mapped, the check of folders where the agent runs, and the file
//! system that paths are resolved on. `policy` makes the decisions.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io, thread};

use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};

use jsonrpc::{printable, truncated};
use policy::{Disk, FolderCheck, FolderPair, MessagePolicy, MethodPattern, PathMap, PolicyRules};
use transport::Endpoint;

/// The policy between this machine and the agent's.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "This machine and the agent's")]
pub(super) struct PolicyArgs {
    /// Whose files and commands the agent uses: those of its own machine, or those of this one, for
    /// which it asks the editor [default: agent, for an agent that is not on this machine]
    #[arg(long, value_enum, value_name = "WHOSE")]
    files: Option<Files>,
    /// When to guard this machine: a guarded agent cannot run commands here, use files outside the
    /// session's folders, or send requests that ACP does not define, and unknown notifications
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    guard: Guard,
    /// Let the agent call this method, such as `terminal/*`; may be given several times
    #[arg(long, value_name = "METHOD")]
    allow: Vec<MethodPattern>,
    /// Refuse this method of the agent, such as `fs/write_text_file`; may be given several times,
    /// and overrides --allow
    #[arg(long, value_name = "METHOD")]
    deny: Vec<MethodPattern>,
    /// Let the agent use the files in this folder besides those of the session; may be given
    /// several times
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(|path| folder(&path)))]
    root: Vec<PathBuf>,
    /// A folder here and its path on the agent's machine: paths in messages are translated both
    /// ways; may be given several times
    #[arg(long, value_name = "LOCAL=REMOTE")]
    map: Vec<FolderPair>,
}

/// The agents that this machine is guarded against.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Guard {
    /// Agents on other machines, and at a loopback port all except relays of this user on this
    /// machine, because the port may belong to a tunnel
    #[default]
    Remote,
    /// Every agent
    Always,
    /// None
    Never,
}

/// Whose files and commands an agent uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Files {
    /// Those of the agent's machine: the editor's are not announced, and refused unless `--allow`
    /// permits them
    Agent,
    /// Those of the editor's machine, as far as `--guard` permits
    Editor,
}

/// Time for the system to find a folder, such as one of a file server that is down. After it, the
/// request passes, and the agent reports the fault.
const FOLDER_TIMEOUT: Duration = Duration::from_millis(100);

/// Most folders that are waited for at a time.
const MAX_FOLDERS: usize = 4;

/// Longest path that is shown in an error, in characters.
const MAX_SHOWN: usize = 4096;

/// Links that resolve differently in each process: the client opens the path, we only check it.
const PER_PROCESS: [&str; 2] = ["/proc", "/dev/fd"];

/// Most symbolic links on one path, the same bound as the kernel's.
const MAX_LINKS: usize = 40;

/// The file system of this machine.
#[derive(Debug)]
struct LocalDisk;

impl PolicyArgs {
    /// Whether every agent is guarded.
    pub(super) const fn guards_always(&self) -> bool {
        matches!(self.guard, Guard::Always)
    }

    /// Builds the policy between this machine and `agent`; `None` when nothing has to be checked.
    /// `is_own`: the other end has proved to be a program of this user on this machine.
    pub(super) fn build(self, agent: &Endpoint, is_own: bool) -> Option<Box<MessagePolicy>> {
        let is_elsewhere = !is_own && agent.is_socket();
        let has_own_files = self
            .files
            .map_or(is_elsewhere, |files| files == Files::Agent);
        let announces_files = self.files == Some(Files::Editor) && agent.is_socket();
        let guarded = match self.guard {
            Guard::Remote => is_elsewhere,
            Guard::Always => true,
            Guard::Never => false,
        };
        if guarded && matches!(self.guard, Guard::Remote) && agent.is_loopback() {
            tracing::warn!(
                "{agent} is guarded like an agent on another machine, because it has not proved that it \
                 runs on this machine as this user; --guard never disables this, and --files \
                 editor opens the files of this machine"
            );
        }
        let has_options = !self.allow.is_empty() || !self.root.is_empty();
        if has_options && !guarded && !has_own_files {
            tracing::warn!(
                "{agent} is not guarded, so --allow and --root have no effect; see --guard"
            );
        }
        if has_own_files && !self.root.is_empty() && self.allow.is_empty() {
            tracing::warn!(
                "{agent} uses the files of its own machine, so --root has no effect; see --files"
            );
        }
        let is_open = !guarded && !has_own_files && self.deny.is_empty();
        if is_open && self.map.is_empty() && !announces_files {
            return None;
        }
        let rules = PolicyRules {
            guarded,
            allow: self.allow,
            deny: self.deny,
            roots: self.root,
        };
        let mut policy = MessagePolicy::new(rules, PathMap::new(self.map), Box::new(LocalDisk));
        if has_own_files {
            policy = policy.with_own_files();
        }
        if announces_files {
            policy = policy.announcing_files();
        }
        Some(Box::new(policy))
    }
}

/// The policy for an agent that this relay starts for clients that may be elsewhere.
pub(super) fn for_served() -> Box<MessagePolicy> {
    let policy = MessagePolicy::new(
        PolicyRules::default(),
        PathMap::default(),
        Box::new(LocalDisk),
    );
    Box::new(policy.with_folder_check(FolderCheck::new(missing_folder)))
}

/// What is wrong with a folder that is not on this machine.
fn missing_folder(path: &str) -> Option<String> {
    if path.is_empty() || is_folder(path) {
        return None;
    }
    let machine = rustix::system::uname();
    let host = machine.nodename().to_string_lossy();
    let shown = truncated(&printable(path.as_bytes()), MAX_SHOWN);
    Some(format!(
        "there is no folder {shown} on {host}, where the agent runs. If it has another path there, \
         give --map HERE=THERE to the editor's `acp-relay connect`; if the agent is to use the \
         files of the editor's machine, --files editor. For an agent without a disk, `check-folder \
         = false` in its table of the configuration file on {host} disables this check"
    ))
}

/// Whether a folder exists. A thread looks for it: a network's file system may not answer, and this
/// one may have other clients.
fn is_folder(path: &str) -> bool {
    static WAITING: AtomicUsize = AtomicUsize::new(0);
    let path = PathBuf::from(path);
    let (done, found) = mpsc::sync_channel(1);
    if WAITING.fetch_add(1, Ordering::Relaxed) >= MAX_FOLDERS {
        WAITING.fetch_sub(1, Ordering::Relaxed);
        return true;
    }
    let look = move || {
        let is_folder = match fs::metadata(path) {
            Ok(about) => about.is_dir(),
            // The agent may have other rights.
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        };
        WAITING.fetch_sub(1, Ordering::Relaxed);
        // The wait may be over.
        let _ = done.send(is_folder);
    };
    if thread::Builder::new().spawn(look).is_err() {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
    found.recv_timeout(FOLDER_TIMEOUT).unwrap_or(true)
}

/// The absolute path of an existing folder.
fn folder(path: &Path) -> Result<PathBuf, String> {
    if path.as_os_str().as_encoded_bytes().starts_with(b"~") {
        return Err(
            "`~` is expanded by the shell, but not inside quotes; write the full path".into(),
        );
    }
    let path = std::path::absolute(path).map_err(|fault| fault.to_string())?;
    match path.exists() {
        true => Ok(path),
        false => Err("there is no such folder".into()),
    }
}

impl Disk for LocalDisk {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let target = path.canonicalize().ok()?;
        is_process_independent(path).then_some(target)
    }

    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }
}

/// Whether an absolute path contains no link that resolves differently in each process, such as
/// `/proc/self/cwd`.
fn is_process_independent(path: &Path) -> bool {
    let names = |path: &Path| -> Vec<OsString> {
        let parts = path.components();
        let named =
            |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
        parts
            .filter(named)
            .map(|part| part.as_os_str().to_owned())
            .collect()
    };
    let mut at = PathBuf::from("/");
    let mut ahead = VecDeque::from(names(path));
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        at.push(name);
        if PER_PROCESS.iter().any(|place| at.starts_with(place)) {
            return false;
        }
        let Ok(to) = fs::read_link(&at) else {
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return false;
        }
        at.pop();
        if to.is_absolute() {
            at = PathBuf::from("/");
        }
        for name in names(&to).into_iter().rev() {
            ahead.push_front(name);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn relative_folders_are_resolved_in_the_working_directory() {
        let here = std::env::current_dir().unwrap();
        let named = |text: &str| folder(Path::new(text));
        assert_eq!(named("src/cli"), Ok(here.join("src/cli")));
        assert_eq!(named("."), Ok(here));
        assert_eq!(named("/"), Ok(PathBuf::from("/")));
        for bad in ["", "~", "~/ws", "~me/ws", "no/such/folder"] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn process_dependent_links_are_not_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir(base.join("a")).unwrap();
        fs::write(base.join("a/file"), "").unwrap();
        symlink("../a", base.join("a/up")).unwrap();
        symlink(base.join("a"), base.join("absolute")).unwrap();
        for good in ["a/file", "a/up/file", "a/up/up/file", "absolute/up/file"] {
            let found = LocalDisk.resolve(&base.join(good));
            assert_eq!(found, Some(base.join("a/file")), "{good}");
        }
        symlink("/proc/self/cwd", base.join("here")).unwrap();
        symlink("here", base.join("a/here")).unwrap();
        symlink("../here", base.join("a/there")).unwrap();
        for bad in ["here", "here/Cargo.toml", "a/there", "a/there/Cargo.toml"] {
            let path = base.join(bad);
            assert_eq!(LocalDisk.resolve(&path), None, "{bad}");
        }
        for bad in ["/proc/self/cwd", "/proc/self/root/etc", "/dev/fd", "/proc"] {
            assert_eq!(LocalDisk.resolve(Path::new(bad)), None, "{bad}");
        }
    }
}
