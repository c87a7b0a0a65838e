//! The command lines of ssh.

use std::ffi::OsString;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;

use crate::{Launch, Setup, SshEndpoint};
use jsonrpc::Frame;

/// The line by which the other machine says that the messages begin.
pub const READY: &str = "acp-relay over-ssh 1";
/// The same, if they are those of a resumable link.
pub(super) const LINK_READY: &str = "acp-relay over-ssh 2";
/// The same, if the relay there has got the client's greeting from [`HELLO_VARIABLE`].
pub(super) const GREETED: &str = "acp-relay over-ssh 2 greeted";
/// The variables that are set there, which are not for other programs.
pub const VARIABLES: [&str; 2] = [LINK_VARIABLE, HELLO_VARIABLE];
/// The variable there with the greeting that opens a new link, in Base64. sshd takes nothing of stdin
/// before it has started the command, so that a greeting there would cost a round trip. One that
/// resumes a link has its key, and goes through stdin.
pub(super) const HELLO_VARIABLE: &str = "ACP_RELAY_OVER_SSH_HELLO";
/// The variable there that asks for a link.
pub(super) const LINK_VARIABLE: &str = "ACP_RELAY_OVER_SSH_LINK";

/// The folder of this version there, from the home directory.
pub(super) const FOLDER: &str = concat!(".local/share/acp-relay/", env!("CARGO_PKG_VERSION"));
/// How scripts there begin. Every login shell takes them for the same words, as long as they have no
/// single quote.
pub(super) const PATH: &str = "PATH=$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin:/opt/homebrew/bin; \
                    export PATH";
/// Time for logging in and starting the relay there, a prompt included.
pub(super) const OPEN_TIMEOUT: Duration = Duration::from_secs(120);
/// Most bytes that are printed there before [`READY`].
pub(super) const MAX_BANNER: usize = 64 << 10;

/// A dead network is noticed also while much is being sent, which ssh alone can tell.
const ALIVE: [&str; 4] = [
    "-o",
    "ServerAliveInterval=10",
    "-o",
    "ServerAliveCountMax=2",
];
const ASKPASS: &str = "SSH_ASKPASS_REQUIRE";

/// What a connection is to carry.
pub(super) enum Asked {
    NoLink,
    /// A new link, with its greeting.
    NewLink(Frame),
    /// A link that exists.
    Link,
    /// The same, without a question to the user.
    LinkQuietly,
}

/// The command that starts the relay there: the copy of this version, if there is one.
pub(super) fn start(at: &SshEndpoint, asked: &Asked) -> Vec<OsString> {
    let options: &[&str] = match asked {
        Asked::LinkQuietly => &["-o", "BatchMode=yes"],
        _ => &[],
    };
    let name = at.agent.iter().map(|name| format!(" {name}"));
    let mut link = match asked {
        Asked::NoLink => String::new(),
        _ => format!(" {LINK_VARIABLE}=1; export {LINK_VARIABLE};"),
    };
    if let Asked::NewLink(greeting) = asked {
        let greeting = BASE64URL_NOPAD.encode(greeting.as_bytes());
        link += &format!(" {HELLO_VARIABLE}={greeting}; export {HELLO_VARIABLE};");
    }
    let name: String = name.collect();
    let script = format!(
        "{PATH};{link} r=$HOME/{FOLDER}/acp-relay; [ -x \"$r\" ] || r=acp-relay; \
         exec \"$r\" over-ssh{name}"
    );
    arguments(at, options, &script)
}

/// The arguments of ssh for a script, which has no single quote.
pub(super) fn arguments(at: &SshEndpoint, options: &[&str], script: &str) -> Vec<OsString> {
    let mut argv: Vec<String> = ["ssh", "-T", "-o", "ControlMaster=no"]
        .map(Into::into)
        .into();
    argv.extend(ALIVE.map(Into::into));
    argv.extend(options.iter().map(|&option| option.into()));
    if let Some(port) = at.port {
        argv.extend(["-p".to_owned(), port.to_string()]);
    }
    if let Some(user) = &at.user {
        argv.extend(["-l".to_owned(), user.clone()]);
    }
    argv.extend([
        "--".to_owned(),
        at.host.clone(),
        format!("exec sh -c '{script}'"),
    ]);
    argv.into_iter().map(OsString::from).collect()
}

/// Everything but the relay's secrets, so that ssh finds its agent for keys and its prompts.
pub(super) fn launch(setup: &Setup) -> Launch {
    let mut launch = setup.launch.clone();
    if std::env::var_os(ASKPASS).is_none() {
        launch.env.push((ASKPASS.into(), "force".into()));
    }
    launch
}
