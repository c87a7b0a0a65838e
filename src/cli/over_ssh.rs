//! `acp-relay over-ssh`: what `ssh://` starts on the machine of the agent. It finds or starts this
//! user's relay for the agent, and joins ssh's streams to it.
//!
//! # Why
//!
//! **A relay, and not the agent.** It keeps the agent when the connection of ssh breaks, and the
//! next connection finds it. It listens in the state directory, and stops when it was idle.
//!
//! **Bytes are joined, not messages.** Nothing here reads a message: the client's relay and the one
//! that is started here do. All that is told apart is a client that ended its stream, whose end is
//! passed on, and a broken connection, after which the socket is closed.

use std::env;
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process_group};

use super::config::{self, Config, ConfigFile};
use super::state::{self, StateDir, StateError};
use super::{agents, exit, stderr};
use jsonrpc::{did_you_mean, parse_duration};
use transport::{SSH_LINK_READY, SSH_LINK_VARIABLE, SSH_READY};

/// The folder of sockets and logs in the state directory.
const FOLDER: &str = "ssh";
/// How often a relay is started that has ended again before it was connected.
const ATTEMPTS: usize = 3;
/// The option of a relay without resumable links.
const NO_LINK: &str = "--no-link";
/// What becomes of the agent of a lost client, if the file does not set it.
const ON_DISCONNECT: [&str; 2] = ["--on-disconnect", "detach-unless-killed"];
/// Time for a relay to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between the ends of the two streams of a connection that broke.
const BREAK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// Arguments of `over-ssh`.
#[derive(Debug, Args)]
pub(super) struct OverSsh {
    /// The agent; by default the one of the configuration file
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// When a relay that is started stops, after its last client
    #[arg(long, value_name = "TIME", env = "ACP_RELAY_OVER_SSH_IDLE")]
    #[arg(value_parser = parse_duration, default_value = "10m")]
    idle: Duration,
}

/// The relay of an agent: the files that it has in the folder, and the options that it is started
/// with.
struct AgentRelay {
    socket: PathBuf,
    log: PathBuf,
    notify: PathBuf,
    options: Vec<OsString>,
}

/// Runs the subcommand.
pub(super) fn run(args: &OverSsh) -> Result<ExitCode, ExitCode> {
    let relay = AgentRelay::find(args)?;
    let has_links = !relay.options.iter().any(|option| option == NO_LINK);
    let joined = join(&relay.connect()?, has_links);
    joined.map_err(|error| exit::fail(exit::SYSTEM, &error))?;
    Ok(ExitCode::SUCCESS)
}

impl AgentRelay {
    /// Errors are printed, and the exit code is returned.
    fn find(args: &OverSsh) -> Result<Self, ExitCode> {
        let (name, mut options) = find_agent(args.agent.as_deref())?;
        let folder = folder().map_err(|fault| match fault {
            StateError::Unsafe(_) => exit::fail(exit::FORBIDDEN, &fault),
            StateError::Unavailable(_) => exit::fail(exit::CANNOT_CREATE, &fault),
        })?;
        let file = |kind: &str| folder.join(format!("{name}.{kind}"));
        let at = |kind: &str| OsString::from(format!("unix:{}", file(kind).display()));
        // Older versions have a socket of another name; their relays know no links.
        options.extend(["--listen".into(), at("link")]);
        if options.iter().any(|option| option == "--admin") {
            options.push(at("admn"));
        }
        let idle = format!("{}ms", args.idle.as_millis());
        options.extend(["--exit-when-idle".into(), idle.into()]);
        Ok(Self {
            socket: file("link"),
            log: file("log"),
            notify: folder.join(format!("n{}", process::id())),
            options,
        })
    }

    /// Connects to the relay, and starts it if there is none.
    fn connect(&self) -> Result<UnixStream, ExitCode> {
        let lost = |error: io::Error| {
            let path = self.socket.display();
            let what = match error.kind() {
                io::ErrorKind::InvalidInput => {
                    "the path is too long for a socket (about 100 bytes); set ACP_RELAY_STATE_DIR \
                     to a shorter one there"
                        .to_owned()
                }
                _ => format!("the relay cannot be reached ({error})"),
            };
            exit::fail(exit::UNAVAILABLE, &format!("unix:{path}: {what}"))
        };
        let log = || {
            let mut open = File::options();
            open.append(true).create(true).mode(0o600).open(&self.log)
        };
        let failed = |error: io::Error| {
            let path = self.log.display();
            let fault = format!("{path}: the relay cannot be started ({error})");
            exit::fail(exit::CANNOT_CREATE, &fault)
        };
        // Of two programs that start at once, the second finds the relay of the first. Where files
        // cannot be locked, the second relay finds that its socket is in use.
        let mut lock = None;
        for _ in 0..ATTEMPTS {
            match UnixStream::connect(&self.socket) {
                Ok(relay) => return Ok(relay),
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    return Err(lost(error));
                }
                Err(_) if lock.is_none() => {
                    let file = log().map_err(failed)?;
                    let _ = flock(&file, FlockOperation::LockExclusive);
                    lock = Some(file);
                    continue;
                }
                Err(_) => {}
            }
            let output = log().map_err(failed)?;
            let _ = output.set_len(0);
            let ended = self.start(output).map_err(failed)?;
            if let Some(code) = ended {
                return UnixStream::connect(&self.socket).map_err(|_| self.report(code));
            }
        }
        UnixStream::connect(&self.socket).map_err(lost)
    }

    /// Starts the relay and waits until it listens; its exit code if it ends instead.
    fn start(&self, output: File) -> io::Result<Option<u8>> {
        // Left by another program with our number, which was killed.
        let _ = std::fs::remove_file(&self.notify);
        let notified = UnixDatagram::bind(&self.notify)?;
        let mut child = Command::new(env::current_exe()?)
            .arg("serve")
            .args(&self.options)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .env("NOTIFY_SOCKET", &self.notify)
            .env_remove("ACP_RELAY_CONFIG")
            .env_remove(SSH_LINK_VARIABLE)
            .env_remove("ACP_RELAY_ADMIN")
            .spawn()?;
        let pid = child.id();
        let ended = UnixDatagram::unbound()?;
        let notify = self.notify.clone();
        thread::spawn(move || {
            let code = child.wait().ok().and_then(|status| status.code());
            let code = code.and_then(|code| u8::try_from(code).ok());
            let _ = ended.send_to(&[code.unwrap_or(exit::UNAVAILABLE)], notify);
        });
        let answer = wait_until_ready(&notified);
        let _ = std::fs::remove_file(&self.notify);
        if answer.is_err() {
            // It may hang, and would listen when no program waits for it any more.
            let group = i32::try_from(pid).ok().and_then(Pid::from_raw);
            group.map(|group| kill_process_group(group, Signal::TERM));
        }
        answer
    }

    /// Reports why the relay has ended, as it has said itself.
    fn report(&self, code: u8) -> ExitCode {
        let log = state::read(&self.log).ok().flatten().unwrap_or_default();
        let own = |line: &&str| line.starts_with("acp-relay: ");
        match log.lines().rfind(own).or_else(|| log.lines().last()) {
            Some(line) => stderr::print(line),
            None => stderr::print("acp-relay: the relay ended when it was started"),
        }
        ExitCode::from(code)
    }
}

/// Waits for the word of the service manager's protocol that a relay listens, or for its exit code.
fn wait_until_ready(notified: &UnixDatagram) -> io::Result<Option<u8>> {
    let until = Instant::now() + START_TIMEOUT;
    let mut message = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Zero would be no limit.
        notified.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let length = notified
            .recv(&mut message)
            .map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
                _ => error,
            })?;
        match &message[..length] {
            [code] => return Ok(Some(*code)),
            text if text
                .split(|byte| *byte == b'\n')
                .any(|line| line == b"READY=1") =>
            {
                return Ok(None);
            }
            _ => {}
        }
    }
}

/// The name of the agent, and the options of `serve` for it. The configuration file comes before
/// the well-known agents. Errors are printed, and the exit code is returned.
fn find_agent(wanted: Option<&str>) -> Result<(String, Vec<OsString>), ExitCode> {
    let fail = |fault: String| Err(exit::fail(exit::UNAVAILABLE, &fault));
    if let Some(Err(why)) = wanted.map(agents::check_name) {
        let fault = format!("{:?} is no agent's name: {why}", wanted.unwrap_or_default());
        return Err(exit::fail(exit::USAGE, &fault));
    }
    let place = env::var_os("ACP_RELAY_CONFIG").filter(|path| !path.is_empty());
    let place = place.map(|path| ConfigFile(path.into()));
    let place = place.or_else(ConfigFile::find);
    let config = place.as_ref().map(config::load).transpose()?;
    let config = config.unwrap_or_else(Config::default);
    let names = config.agents.iter().filter_map(|part| part.name.as_deref());
    let names: Vec<&str> = names.collect();
    let only = match &names[..] {
        [only] => Some(*only),
        _ => None,
    };
    let usual = || ConfigFile::default_paths().into_iter().next();
    let path = place
        .or_else(usual)
        .map_or_else(PathBuf::new, |place| place.0);
    let shown = path.display();
    let Some(name) = wanted.or_else(|| config.default_agent()).or(only) else {
        return fail(format!(
            "no agent is named; name one after the host, ssh://HOST/AGENT, or set `default-agent` \
             in {shown} there"
        ));
    };
    if names.contains(&name) {
        let path = std::path::absolute(&path).unwrap_or(path);
        let options = [
            "--config".into(),
            path.into(),
            "--only-agent".into(),
            name.into(),
        ];
        let mut options = Vec::from(options);
        if !config.has_links() {
            options.push(NO_LINK.into());
        }
        // The flag would replace those of the file.
        let mut parts = config.agents.iter();
        let own = parts.find(|part| part.name.as_deref() == Some(name));
        let is_set = own.is_some_and(|part| part.on_disconnect.is_some());
        if !is_set && !config.has_on_disconnect() {
            options.extend(ON_DISCONNECT.map(Into::into));
        }
        if config.has_admin() {
            // Another relay of this file may have its port.
            options.push("--admin".into());
        }
        return Ok((name.to_owned(), options));
    }
    match agents::profile(name) {
        Some(profile) => {
            let mut options = vec!["--profile".into(), OsString::from(&profile.name)];
            options.extend(ON_DISCONNECT.map(Into::into));
            Ok((profile.name.clone(), options))
        }
        None => {
            let known = agents::profile_names()
                .map(|name| name as &str)
                .chain(names);
            let hint = did_you_mean(name, known, "`acp-relay agents list` has those");
            fail(format!(
                "there is no agent `{name}`; describe it below [agents.{name}] in {shown} there, or \
                 name a well-known one: {hint}"
            ))
        }
    }
}

/// The folder of sockets, which only this user can enter.
fn folder() -> Result<PathBuf, StateError> {
    let state = StateDir::find()?;
    drop(state.lock()?);
    let folder = state.file(FOLDER);
    let made = || -> io::Result<_> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&folder)?;
        Path::new(&folder).symlink_metadata()
    };
    let about = made().map_err(|error| {
        let fault = format!(
            "the directory {} cannot be used ({error})",
            folder.display()
        );
        StateError::Unavailable(fault)
    })?;
    state::check_secret(&folder, &about)?;
    Ok(folder)
}

/// Joins stdin and stdout to the relay, until it has closed the connection.
fn join(mut relay: &UnixStream, has_links: bool) -> io::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let ready = match env::var_os(SSH_LINK_VARIABLE) {
        Some(_) if has_links => SSH_LINK_READY,
        _ => SSH_READY,
    };
    // A profile may have printed half a line.
    output.write_all(format!("\n{ready}\n").as_bytes())?;
    let mut to_relay = relay.try_clone()?;
    thread::spawn(move || {
        let ended = copy(&mut input, &mut to_relay);
        if ended.is_err() || is_broken() {
            // The socket is closed in both directions, by which the relay knows.
            process::exit(0);
        }
        let _ = to_relay.shutdown(Shutdown::Write);
    });
    // It fails when our stdout has no reader any more.
    let _ = copy(&mut relay, &mut output);
    Ok(())
}

/// Hides the types, for which `io::copy` would use splice(2): while that waits for the socket, nothing
/// can read what is in the pipe.
fn copy(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<u64> {
    io::copy(from, to)
}

/// Whether stdin has ended because the connection broke: then stdout has no reader either.
fn is_broken() -> bool {
    let stdout = io::stdout();
    let mut output = [PollFd::new(&stdout, PollFlags::empty())];
    let polled = poll(&mut output, Some(&BREAK));
    let gone = PollFlags::ERR | PollFlags::HUP;
    polled.is_ok() && output[0].revents().intersects(gone)
}
