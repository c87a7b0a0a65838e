//! `acp-relay over-ssh`: what `ssh://` starts on the machine of the agent. It finds or starts this
//! user's relay for the agent, and has ssh's streams joined to it.
//!
//! # Why
//!
//! **A relay, and not the agent.** It keeps the agent when the connection of ssh breaks, and the
//! next connection finds it. It listens in the state directory, and stops when it was idle.
//!

use std::env;
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process_group};

use super::agents::Program;
use super::config::{self, Config, ConfigFile, Source};
use super::state::{self, StateDir, StateError};
use super::{agents, exit, stderr};
use jsonrpc::{did_you_mean, parse_duration};
use transport::process::search_program;
use transport::{SSH_VARIABLES, join_ssh, ssh_version};

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
    /// The agent, if it is started as a process.
    program: Option<Program>,
}

/// Runs the subcommand.
pub(super) fn run(args: &OverSsh) -> Result<ExitCode, ExitCode> {
    ssh_version::remove_unused();
    let relay = AgentRelay::find(args)?;
    let has_links = !relay.options.iter().any(|option| option == NO_LINK);
    let joined = join_ssh(&relay.connect()?, has_links);
    joined.map_err(|error| exit::fail(exit::SYSTEM, &error))?;
    Ok(ExitCode::SUCCESS)
}

impl AgentRelay {
    /// Errors are printed, and the exit code is returned.
    fn find(args: &OverSsh) -> Result<Self, ExitCode> {
        let (name, mut options, program) = find_agent(args.agent.as_deref())?;
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
            program,
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
            let path = self.search_path()?;
            let output = log().map_err(failed)?;
            let _ = output.set_len(0);
            let ended = self.start(output, path).map_err(failed)?;
            if let Some(code) = ended {
                return UnixStream::connect(&self.socket).map_err(|_| self.report(code));
            }
        }
        UnixStream::connect(&self.socket).map_err(lost)
    }

    /// The search path with which the agent is found, if that is not the one of this process.
    fn search_path(&self) -> Result<Option<OsString>, ExitCode> {
        let Some(program) = &self.program else {
            return Ok(None);
        };
        let found = search_program(&program.argv, &program.launch);
        found.map_err(|mut error| {
            if let Some(install) = &program.install {
                error.remedy = Some(format!("To install it: {install}"));
            }
            exit::open_failed(&error)
        })
    }

    /// Starts the relay and waits until it listens; its exit code if it ends instead.
    fn start(&self, output: File, path: Option<OsString>) -> io::Result<Option<u8>> {
        // Left by another program with our number, which was killed.
        let _ = std::fs::remove_file(&self.notify);
        let notified = UnixDatagram::bind(&self.notify)?;
        let mut command = Command::new(env::current_exe()?);
        for name in SSH_VARIABLES
            .iter()
            .chain(&["ACP_RELAY_CONFIG", "ACP_RELAY_ADMIN"])
        {
            command.env_remove(name);
        }
        let mut child = command
            .arg("serve")
            .args(&self.options)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .env("NOTIFY_SOCKET", &self.notify)
            .envs(path.map(|path| ("PATH", path)))
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

/// The name of the agent, the options of `serve` for it, and its program. The configuration file comes
/// before the well-known agents. Errors are printed, and the exit code is returned.
fn find_agent(wanted: Option<&str>) -> Result<(String, Vec<OsString>, Option<Program>), ExitCode> {
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
        let program = own.and_then(|part| match part.source() {
            Source::Program(program) => Some(program),
            Source::Endpoint(..) => None,
        });
        return Ok((name.to_owned(), options, program));
    }
    match agents::profile(name) {
        Some(profile) => {
            let mut options = vec!["--profile".into(), OsString::from(&profile.name)];
            options.extend(ON_DISCONNECT.map(Into::into));
            Ok((profile.name.clone(), options, Some(profile.program())))
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
