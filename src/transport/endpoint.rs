//! The grammar of addresses: what `--listen` and `connect` take, and what is printed.
//!
//! An [`Endpoint`] prints in the form in which it is parsed, so the address that a listener reports
//! can be given to a connector. Parsing resolves no names and opens nothing.

mod authority;
mod http_endpoint;
mod ssh_endpoint;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use http_endpoint::{DEFAULT_PATH, HttpEndpoint, HttpProtocol};
pub use ssh_endpoint::SshEndpoint;

use self::authority::{Bracketed, authority_parts};
use super::replay::ReplayAddress;
use auth::origin::is_loopback_host;
use jsonrpc::nearest;

/// The address of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The relay's own stdin and stdout: `stdio:`.
    Stdio,
    /// A child process: `exec:WORDS`, or the words after `--`.
    Exec(Vec<OsString>),
    /// `tcp://HOST:PORT`.
    Tcp {
        /// Name or address, without brackets.
        host: String,
        /// Port; 0 lets a listener choose.
        port: u16,
    },
    /// `unix:PATH`.
    Unix(PathBuf),
    /// A URL of HTTP or a WebSocket: `ws://HOST[:PORT][/PATH]`, `http://…` and others.
    Http(HttpEndpoint),
    /// `ssh://[USER@]HOST[:PORT][/NAME]`.
    Ssh(SshEndpoint),
    /// `replay:FILE`.
    Replay(ReplayAddress<Self>),
    /// `cluster:NAME`: an agent of that name on one of many machines, or the gateways that reach
    /// this one. Only the relay itself makes it.
    Cluster(String),
}

/// Why a text is not an endpoint, with what was expected or probably meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no endpoint: {what}")]
pub struct EndpointError {
    given: String,
    what: String,
}

impl Endpoint {
    /// The forms of an endpoint, each with a description for `--help`.
    pub const FORMS: &[(&str, &str)] = &[
        ("stdio:", "the relay's own stdin and stdout"),
        (
            "exec:WORDS",
            "a program to start, on its stdio; never through a shell",
        ),
        ("tcp://HOST:PORT", "a TCP stream"),
        ("unix:PATH", "a Unix socket"),
        (
            "ssh://[USER@]HOST[:PORT][/NAME]",
            "an agent on a machine that ssh reaches, with acp-relay there",
        ),
        (
            "ws://HOST[:PORT][/PATH]",
            "a WebSocket; the path is /acp when left out",
        ),
        ("wss://HOST[:PORT][/PATH]", "the same over TLS"),
        (
            "http://HOST[:PORT][/PATH]",
            "ACP's Streamable HTTP; listeners take WebSockets, too",
        ),
        ("https://HOST[:PORT][/PATH]", "the same over TLS"),
        (
            "elephant+http://HOST[:PORT][/PATH]",
            "elephant.ai's POST and SSE, below /acp by default",
        ),
        ("elephant+https://HOST[:PORT][/PATH]", "the same over TLS"),
        (
            "agent-connect+http://HOST[:PORT][/PATH]",
            "AGNTCY's Agent Connect; of an agent, PATH/AGENT_ID",
        ),
        (
            "agent-connect+https://HOST[:PORT][/PATH]",
            "the same over TLS",
        ),
        ("replay:FILE", "a recording that answers as its agent did"),
    ];

    /// Its scheme, without `:`.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Exec(_) => "exec",
            Self::Tcp { .. } => "tcp",
            Self::Unix(_) => "unix",
            Self::Http(web) => web.scheme(),
            Self::Ssh(_) => "ssh",
            Self::Replay(_) => "replay",
            Self::Cluster(_) => "cluster",
        }
    }

    /// Whether it is behind TLS.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        matches!(self, Self::Http(HttpEndpoint { tls: true, .. }))
    }

    /// Whether its scheme is one of Agent Connect.
    #[must_use]
    pub fn is_agent_connect(&self) -> bool {
        matches!(self, Self::Http(web) if web.protocol == HttpProtocol::AgentConnect)
    }

    /// Whether it is on this machine: 127.0.0.0/8, `::1`, `localhost`, and everything that is not a
    /// network. A tunnel may listen there all the same, and ssh is for other machines.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Stdio | Self::Exec(_) | Self::Unix(_) | Self::Replay(_) | Self::Cluster(_) => {
                true
            }
            Self::Tcp { host, .. } | Self::Http(HttpEndpoint { host, .. }) => {
                is_loopback_host(host)
            }
            Self::Ssh(_) => false,
        }
    }

    /// Whether another program listens there, which may forward messages.
    #[must_use]
    pub const fn is_socket(&self) -> bool {
        matches!(
            self,
            Self::Tcp { .. } | Self::Http(_) | Self::Unix(_) | Self::Ssh(_)
        )
    }

    /// Whether it carries a byte stream that needs framing.
    #[must_use]
    pub const fn is_byte_stream(&self) -> bool {
        matches!(
            self,
            Self::Stdio | Self::Exec(_) | Self::Tcp { .. } | Self::Unix(_) | Self::Ssh(_)
        )
    }

    /// The same endpoint, its relative paths resolved against `folder`.
    #[must_use]
    pub fn relative_to(self, folder: &Path) -> Self {
        match self {
            Self::Unix(path) => Self::Unix(folder.join(path)),
            Self::Replay(spot) => Self::Replay(ReplayAddress {
                path: folder.join(spot.path),
                fault: spot.fault.map(|path| folder.join(path)),
                forward: spot.forward.map(|to| Box::new(to.relative_to(folder))),
                ..spot
            }),
            other => other,
        }
    }

    /// Whether two listeners would use the same port of the same host, with any protocol. Port 0
    /// and paths of sockets never conflict; the system finds out whether two hosts overlap.
    #[must_use]
    pub fn shares_port(&self, other: &Self) -> bool {
        let host_and_port = |one: &Self| match one {
            Self::Tcp { host, port } | Self::Http(HttpEndpoint { host, port, .. })
                if *port != 0 =>
            {
                Some((host.to_ascii_lowercase(), *port))
            }
            _ => None,
        };
        let ours = host_and_port(self);
        ours.is_some() && ours == host_and_port(other)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => f.write_str("stdio:"),
            Self::Exec(words) => {
                let words = words.iter().map(|word| word.to_string_lossy());
                write!(f, "exec:{}", shell_words::join(words))
            }
            Self::Tcp { host, port } => write!(f, "tcp://{}:{port}", Bracketed(host)),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Http(web) => web.fmt(f),
            Self::Ssh(at) => at.fmt(f),
            Self::Replay(spot) => spot.fmt(f),
            Self::Cluster(name) => write!(f, "cluster:{name}"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(given: &str) -> Result<Self, EndpointError> {
        let read = match split_scheme(given) {
            None => Err(unknown_scheme(given, None)),
            Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
                "stdio" if rest.is_empty() => Ok(Self::Stdio),
                "stdio" => Err("nothing may follow \"stdio:\"".to_owned()),
                "exec" => exec(rest),
                "tcp" => tcp(rest),
                "unix" => unix(rest),
                "ssh" => ssh_endpoint::parse(rest, &expected("ssh")).map(Self::Ssh),
                "replay" => ReplayAddress::parse(rest).map(Self::Replay),
                lower => match HttpProtocol::from_scheme(lower) {
                    Some((protocol, tls)) => {
                        http_endpoint::parse(protocol, tls, rest, &expected(lower)).map(Self::Http)
                    }
                    None => Err(unknown_scheme(given, Some((lower, rest)))),
                },
            },
        };
        read.map_err(|what| EndpointError {
            given: given.to_owned(),
            what,
        })
    }
}

/// `SCHEME:REST`, if the text before the first colon can be a scheme (RFC 3986, 3.1).
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let is_alphabetic = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let is_valid = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-".contains(&byte));
    (is_alphabetic && is_valid).then_some((scheme, rest))
}

fn exec(rest: &str) -> Result<Endpoint, String> {
    let words = shell_words::split(rest)
        .map_err(|_| format!("a quote in the command is not closed; {}", expected("exec")))?;
    if words.first().is_none_or(String::is_empty) {
        return Err(format!("it names no program; {}", expected("exec")));
    }
    if rest.contains('\0') {
        return Err("a command cannot hold a NUL character".to_owned());
    }
    Ok(Endpoint::Exec(
        words.into_iter().map(OsString::from).collect(),
    ))
}

fn unix(rest: &str) -> Result<Endpoint, String> {
    if rest.is_empty() {
        return Err(format!("it names no path; {}", expected("unix")));
    }
    if rest.contains('\0') {
        return Err("a path cannot hold a NUL character".to_owned());
    }
    Ok(Endpoint::Unix(PathBuf::from(rest)))
}

fn tcp(rest: &str) -> Result<Endpoint, String> {
    let form = &expected("tcp");
    let authority = rest.strip_prefix("//").ok_or(form)?;
    if let Some(at) = authority.find(['/', '?', '#']) {
        let extra = &authority[at..];
        return Err(format!("{extra:?} has no meaning here; {form}"));
    }
    let (host, port) = authority_parts(authority, form)?;
    let port = port.ok_or_else(|| format!("the port is missing; {form}"))?;
    Ok(Endpoint::Tcp { host, port })
}

/// The expected form of an endpoint of `scheme`, for an error.
fn expected(scheme: &str) -> String {
    let of = |(form, _): &&(&'static str, _)| form.split_once(':').is_some_and(|at| at.0 == scheme);
    let form = Endpoint::FORMS.iter().find(of);
    format!("expected {}", form.map_or(scheme, |(form, _)| form))
}

/// The error for a text without a known scheme, with the endpoint that was probably meant, or else
/// all forms.
fn unknown_scheme(given: &str, scheme: Option<(&str, &str)>) -> String {
    let known = Endpoint::FORMS
        .iter()
        .filter_map(|(form, _)| Some(form.split_once(':')?.0));
    let near =
        scheme.and_then(|(scheme, rest)| Some(format!("{}:{rest}", nearest(scheme, known)?)));
    let path = given.starts_with(['/', '.', '~']);
    let path = path.then(|| format!("unix:{given}"));
    // `wss//host` lacks a colon, `localhost:8080` looks like a scheme and a path.
    let (before, after) = given.split_once("//").unwrap_or(("", given));
    let port = given.strip_prefix(':').unwrap_or(given);
    let urls = [
        format!("{before}://{after}"),
        format!("ws://127.0.0.1:{port}"),
        format!("ws://{given}"),
    ];
    let is_url = |text: &String| {
        let scheme = text.split("://").next();
        scheme.is_some_and(|scheme| HttpProtocol::from_scheme(scheme).is_some())
            && text.parse::<Endpoint>().is_ok()
    };
    let meant = near.or(path).or_else(|| urls.into_iter().find(is_url));
    let hint = match meant {
        Some(text) => format!("did you mean {text:?}?"),
        None => {
            let forms: Vec<&str> = Endpoint::FORMS.iter().map(|(form, _)| *form).collect();
            format!("expected one of {}", forms.join(", "))
        }
    };
    match scheme {
        None => format!("it has no scheme; {hint}"),
        Some((scheme, _)) => format!("the scheme {scheme:?} is not known; {hint}"),
    }
}
