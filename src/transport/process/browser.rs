//! The browser of an agent: the program that `BROWSER` names in its environment, which hands addresses
//! to the relay, and the delivery of the redirect that such a page ends with (Linux).
//!
//! The program finds the relay by a socket without a file, whose random name only the agent's
//! environment has; the relay takes addresses of programs of its own user.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{
    SocketAddr as UnixAddr, UnixListener as StdListener, UnixStream as StdStream,
};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST};
use hyper_util::rt::TokioIo;
use rustix::process::{Pid, geteuid};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::tree;
use crate::owner;

/// The name of the program that is the browser of agents, a link to this one.
pub const PROGRAM: &str = "acp-relay-browser";
/// The variable of an agent with the name of the socket.
const SOCKET: &str = "ACP_RELAY_BROWSER";
/// The variable of an agent with the browser that it would have without the relay.
const OTHER: &str = "ACP_RELAY_BROWSER_OTHERWISE";
/// What the relay answers if the page is opened elsewhere.
const OPENED: &[u8] = b"opened\n";
/// Longest address of a page, in bytes.
const MAX_ADDRESS: u64 = 16 << 10;
/// Time for the program to say its address, and for the agent to take its redirect.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pages that the processes of an agent open.
pub struct AgentBrowser {
    agent: Pid,
    calls: mpsc::Receiver<PageCall>,
    /// Pages are taken at present.
    is_open: Arc<AtomicBool>,
    _listener: AbortOnDropHandle<()>,
}

/// A page that a process of the agent opens.
pub struct PageCall {
    /// Its address, as it was given.
    pub address: String,
    opened: oneshot::Sender<bool>,
}

jsonrpc::opaque_debug!(AgentBrowser, PageCall);

/// Takes the pages of an agent that is still to be started, whose environment gets these variables.
pub(super) struct Listening {
    listener: UnixListener,
    pub(super) variables: [(OsString, OsString); 3],
}

impl Listening {
    /// # Errors
    /// There is no socket of this kind on this system.
    pub(super) fn begin(program: &Path) -> io::Result<Self> {
        let name = format!("acp-relay-{}", Uuid::new_v4().simple());
        let listener = StdListener::bind_addr(&address(&name)?)?;
        listener.set_nonblocking(true)?;
        let otherwise = env::var_os("BROWSER").unwrap_or_default();
        Ok(Self {
            listener: UnixListener::from_std(listener)?,
            variables: [
                ("BROWSER".into(), program.into()),
                (OTHER.into(), otherwise),
                (SOCKET.into(), name.into()),
            ],
        })
    }

    /// The pages of the agent, which runs by now.
    pub(super) fn of(self, agent: Pid) -> AgentBrowser {
        let (sender, calls) = mpsc::channel(1);
        let is_open = Arc::new(AtomicBool::new(false));
        let open = Arc::clone(&is_open);
        let listener = self.listener;
        let accepting = async move {
            loop {
                match listener.accept().await {
                    // One after the other: a page is opened by hand.
                    Ok((stream, _)) => {
                        let _ = timeout(PATIENCE, answer(stream, &sender, &open)).await;
                    }
                    // No file is left to open.
                    Err(_) => sleep(PATIENCE).await,
                }
            }
        };
        AgentBrowser {
            agent,
            calls,
            is_open,
            _listener: AbortOnDropHandle::new(tokio::spawn(accepting)),
        }
    }
}

/// Answers one start of the program.
async fn answer(
    mut stream: UnixStream,
    calls: &mpsc::Sender<PageCall>,
    is_open: &AtomicBool,
) -> io::Result<()> {
    if stream.peer_cred()?.uid() != geteuid().as_raw() || !is_open.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut address = String::new();
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader.take(MAX_ADDRESS));
    reader.read_line(&mut address).await?;
    let (opened, is_opened) = oneshot::channel();
    let address = address.trim_end().to_owned();
    let sent = calls.send(PageCall { address, opened }).await;
    if sent.is_ok() && is_opened.await.unwrap_or(false) {
        writer.write_all(OPENED).await?;
    }
    Ok(())
}

impl AgentBrowser {
    /// The next page that the agent opens; none is taken unless `is_open`.
    pub fn poll_call(&mut self, is_open: bool, cx: &mut Context<'_>) -> Poll<Option<PageCall>> {
        if self.is_open.load(Ordering::Relaxed) != is_open {
            self.is_open.store(is_open, Ordering::Relaxed);
            // What is left of the last login is refused.
            while self.calls.try_recv().is_ok() {}
        }
        match is_open {
            true => self.calls.poll_recv(cx),
            false => Poll::Pending,
        }
    }

    /// Delivers what the browser was redirected to, path and query, to the port that the agent's own
    /// processes listen at.
    pub fn deliver(&self, port: u16, target: String) {
        let agent = self.agent;
        tokio::spawn(async move {
            if let Err(why) = deliver(agent, port, &target).await {
                tracing::warn!("the answer of a login is not delivered to the agent: {why}");
            }
        });
    }
}

impl PageCall {
    /// Tells the agent whether the page is opened elsewhere.
    pub fn answer(self, is_opened: bool) {
        // The program may have ended.
        let _ = self.opened.send(is_opened);
    }
}

async fn deliver(agent: Pid, port: u16, target: &str) -> Result<(), String> {
    let watchdog = tree::parent(agent).ok_or("the agent has ended")?;
    let own: Vec<u32> = tree::below(watchdog)
        .iter()
        .map(|entry| entry.pid)
        .collect();
    let host = owner::listener_of(&own, port)
        .ok_or_else(|| format!("no process of the agent listens at port {port} of loopback"))?;
    let to = SocketAddr::new(host, port);
    let delivery = async {
        let stream = TcpStream::connect(to)
            .await
            .map_err(|fault| fault.to_string())?;
        let lost = |fault: hyper::Error| fault.to_string();
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
        let connection = AbortOnDropHandle::new(tokio::spawn(connection));
        let request = Request::get(target).header(HOST, to.to_string());
        let request = request
            .header(CONNECTION, "close")
            .body(Empty::<Bytes>::new());
        let request = request.map_err(|fault| fault.to_string())?;
        let answer = sender.send_request(request).await.map_err(lost)?;
        drop(connection);
        let status = answer.status();
        tracing::info!(%status, "the answer of a login was delivered to the agent");
        Ok(())
    };
    let delivered = timeout(PATIENCE, delivery).await;
    delivered.unwrap_or_else(|_| Err("the agent does not answer it".to_owned()))
}

/// The address of a socket without a file.
#[cfg(target_os = "linux")]
fn address(name: &str) -> io::Result<UnixAddr> {
    UnixAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn address(_: &str) -> io::Result<UnixAddr> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether this process was started as the browser of an agent.
#[must_use]
pub fn is_browser() -> bool {
    let name = env::args_os().next();
    name.is_some_and(|name| Path::new(&name).file_name() == Some(PROGRAM.as_ref()))
}

/// The command of the first program in a list as `BROWSER` has it, or else of `otherwise`, with a page as
/// its last argument or in the place of `%s`; no shell reads either. It has one word at least.
#[must_use]
pub fn command_of(list: &str, otherwise: &str, page: &str) -> Vec<String> {
    let first = list.split(':').find(|one| !one.trim().is_empty());
    let words = shell_words::split(first.unwrap_or(otherwise)).unwrap_or_default();
    let is_placed = words.iter().any(|word| word.contains("%s"));
    let words = words.iter().map(|word| word.replace("%s", page));
    words.chain((!is_placed).then(|| page.to_owned())).collect()
}

/// The browser of an agent: hands the address to the relay. If that does not have it opened, becomes the
/// browser that the agent would have started without it.
#[must_use]
pub fn run() -> ExitCode {
    let Some(page) = env::args_os().next_back() else {
        return ExitCode::FAILURE;
    };
    let asked = || -> io::Result<bool> {
        let name = env::var(SOCKET).map_err(io::Error::other)?;
        let mut relay = StdStream::connect_addr(&address(&name)?)?;
        relay.set_read_timeout(Some(PATIENCE))?;
        let mut line = page.as_encoded_bytes().to_vec();
        line.push(b'\n');
        relay.write_all(&line)?;
        let mut answer = Vec::new();
        relay.read_to_end(&mut answer)?;
        Ok(answer == OPENED)
    };
    if asked().unwrap_or(false) {
        return ExitCode::SUCCESS;
    }
    let otherwise = env::var(OTHER).unwrap_or_default();
    let words = command_of(&otherwise, "xdg-open", &page.to_string_lossy());
    let mut browser = Command::new(&words[0]);
    browser.args(&words[1..]);
    // Without its own variable, xdg-open chooses by the desktop.
    browser.env_remove("BROWSER");
    let fault = browser.exec();
    let text = format!("acp-relay: the page cannot be opened ({fault}); open it yourself\n");
    let _ = io::stderr().write_all(text.as_bytes());
    ExitCode::FAILURE
}
