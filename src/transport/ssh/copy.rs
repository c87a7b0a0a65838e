//! Copies this program to a machine that ssh reaches, where none is that works.
//!
//! It goes over one ssh connection into `~/.local/share/acp-relay/VERSION/acp-relay`, and nothing else
//! there is touched. A script there says what kind of machine it is, takes the program from its stdin
//! under another name, compares its SHA-256, starts it once, and only then gives it its name. So what
//! has that name is whole and runs, whatever breaks in between, also while another program copies.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::command::{FOLDER, MAX_BANNER, OPEN_TIMEOUT, PATH, arguments, launch};
use super::failure::{INSTALL, not_started, ssh_failed};
use crate::process::{self, Child, Process};
use crate::{Endpoint, Exit, LinkGuard as _, OpenError, OpenErrorKind, Setup, SshEndpoint};

/// How the line begins that names the machine.
const MACHINE: &str = "acp-relay copy 1 ";
/// The line after which the program has its name.
const DONE: &str = "acp-relay copied";
/// Time for sending the program.
const COPY_TIMEOUT: Duration = Duration::from_secs(900);
/// How the script there ends, as far as sysexits has a number for it.
const NO_DIGEST: i32 = 69;
const NO_FOLDER: i32 = 73;
const DAMAGED: i32 = 74;
const RUNS_NOT: i32 = 126;

/// Copies the program, or a static build that lies beside it.
///
/// # Errors
/// Why it is not there now, and what to do.
pub(super) async fn install(
    to: &Endpoint,
    at: &SshEndpoint,
    setup: &Setup,
) -> Result<(), OpenError> {
    let own = std::env::current_exe().map_err(|fault| {
        let what = format!("this program has no path ({fault})");
        OpenError::new(OpenErrorKind::System, to, what)
    })?;
    match copy(to, at, setup, &own, 0).await {
        Err(error) if error.kind == OpenErrorKind::Missing => {
            let is_copied = copy(to, at, setup, &own, 1).await?;
            is_copied.then_some(()).ok_or(error)
        }
        copied => copied.map(drop),
    }
}

/// Copies the build of that index among those for the machine; `false` if there are not so many.
///
/// # Errors
/// `Missing` if it does not run there.
async fn copy(
    to: &Endpoint,
    at: &SshEndpoint,
    setup: &Setup,
    own: &Path,
    index: usize,
) -> Result<bool, OpenError> {
    let fail = |kind, what: String| Err(OpenError::new(kind, to, what));
    let argv = arguments(at, &["-C"], &script());
    let child = process::spawn(&argv, &launch(setup), &setup.limits).await;
    let Child {
        mut stdin,
        mut stdout,
        mut hold,
        ..
    } = child.map_err(|error| not_started(to, error))?;
    let machine = timeout(OPEN_TIMEOUT, line_after(&mut stdout, MACHINE)).await;
    let Ok(Some(machine)) = machine else {
        return Err(match machine {
            Err(_) => ssh_failed(to, at, "", "ssh has not connected in time"),
            Ok(_) => ended(to, at, own, "", &mut hold).await,
        });
    };
    let builds = builds(own, &machine);
    let Some(build) = builds.get(index) else {
        if index > 0 {
            return Ok(false);
        }
        let build = static_build(own, &machine);
        let what = format!(
            "{} is another kind of machine ({machine}), and this program does not run there; put a \
             build for it at {}, or install acp-relay there: {INSTALL}",
            at.host,
            build.display()
        );
        return fail(OpenErrorKind::Unavailable, what);
    };
    let program = std::fs::read(build).map_err(|fault| {
        let what = format!("{} cannot be read ({fault})", build.display());
        OpenError::new(OpenErrorKind::NoInput, to, what)
    })?;
    tracing::info!(host = at.host, bytes = program.len(), "acp-relay is copied");
    let hash = HEXLOWER.encode(digest(&SHA256, &program).as_ref());
    let sending = async {
        // Writing fails when the script there has ended, which has said why.
        let _ = stdin.write_all(format!("{hash}\n").as_bytes()).await;
        let _ = stdin.write_all(&program).await;
        drop(stdin);
        line_after(&mut stdout, DONE).await
    };
    match timeout(COPY_TIMEOUT, sending).await {
        Ok(Some(_)) => Ok(true),
        Ok(None) => Err(ended(to, at, own, &machine, &mut hold).await),
        Err(_) => fail(
            OpenErrorKind::Unavailable,
            format!("acp-relay was not copied within {COPY_TIMEOUT:?}"),
        ),
    }
}

/// The script there. It has no single quote, because it is in such quotes.
fn script() -> String {
    // In one line: csh knows no others in quotes.
    let lines = [
        &format!("{PATH}; umask 077; d=$HOME/{FOLDER}"),
        &format!(r#"printf "\n%s%s %s\n" "{MACHINE}" "$(uname -s)" "$(uname -m)""#),
        &format!("read -r hash || exit {DAMAGED}"),
        // What a copy has left that was killed.
        r#"find "$d" -name ".new.*" -mtime +1 -exec rm -f {} + 2>/dev/null"#,
        &format!(r#"mkdir -p "$d" && t=$(mktemp "$d/.new.XXXXXX") || exit {NO_FOLDER}"#),
        &format!(r#"trap "rm -f \"$t\"" 0; trap "exit {DAMAGED}" 1 2 13 15"#),
        &format!(r#"cat >"$t" || exit {NO_FOLDER}"#),
        "has() { command -v $1 >/dev/null; }",
        r#"digest() { has sha256sum && sha256sum || has shasum && shasum -a 256 || openssl dgst -sha256 -r; }"#,
        &format!("has sha256sum || has shasum || has openssl || exit {NO_DIGEST}"),
        &format!(r#"s=$(digest <"$t"); [ "${{s%% *}}" = "$hash" ] || exit {DAMAGED}"#),
        &format!(r#"chmod 700 "$t" && {{ sync "$t" 2>/dev/null || sync; }} || exit {NO_FOLDER}"#),
        &format!(r#""$t" --version >/dev/null || exit {RUNS_NOT}"#),
        &format!(r#"mv -f "$t" "$d/acp-relay" || exit {NO_FOLDER}"#),
        &format!("echo {DONE}"),
    ];
    lines.join("; ")
}

/// The rest of the first line that begins so; what a profile prints before it is skipped.
async fn line_after(stdout: &mut Receiver, begins: &str) -> Option<String> {
    let mut line = Vec::new();
    for _ in 0..MAX_BANNER {
        match stdout.read_u8().await.ok()? {
            b'\n' => {
                let rest = line.trim_ascii().strip_prefix(begins.as_bytes());
                if let Some(rest) = rest {
                    return Some(jsonrpc::printable(rest));
                }
                line.clear();
            }
            byte => line.push(byte),
        }
    }
    None
}

/// The builds here that may run on a machine that `uname` describes so.
fn builds(own: &Path, machine: &str) -> Vec<PathBuf> {
    let is_same = target(machine) == format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let beside = static_build(own, machine);
    let own = is_same.then(|| own.to_owned());
    own.into_iter()
        .chain(beside.is_file().then_some(beside))
        .collect()
}

/// The static build for that machine beside this program: `acp-relay-linux-x86_64`.
fn static_build(own: &Path, machine: &str) -> PathBuf {
    own.with_file_name(format!("acp-relay-{}", target(machine)))
}

/// Operating system and processor of a machine, by the names that Rust has for them.
fn target(machine: &str) -> String {
    let (system, processor) = machine.split_once(' ').unwrap_or((machine, ""));
    let system = match system {
        "Darwin" => "macos".to_owned(),
        other => other.to_ascii_lowercase(),
    };
    let processor = match processor {
        "arm64" => "aarch64",
        "amd64" => "x86_64",
        "i386" | "i586" | "i686" => "x86",
        other => other,
    };
    // It becomes the name of a file.
    let target = format!("{system}-{processor}");
    target
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
        .collect()
}

/// Why the script there has ended.
async fn ended(
    to: &Endpoint,
    at: &SshEndpoint,
    own: &Path,
    machine: &str,
    process: &mut Process,
) -> OpenError {
    let exit = timeout(OPEN_TIMEOUT, poll_fn(|cx| process.poll_exit(cx))).await;
    let exit = exit.unwrap_or(Exit::Code(255));
    let stderr = process.stderr_tail();
    let last = stderr.lines().rfind(|line| !line.trim().is_empty());
    let last = last.map_or("it says nothing", str::trim);
    let host = &at.host;
    let code = match exit {
        Exit::Code(code) => code,
        _ => 0,
    };
    let by_hand = format!("Or install acp-relay there by hand: {INSTALL}");
    let (kind, what) = match code {
        255 => return ssh_failed(to, at, &stderr, &format!("ssh failed: {last}")),
        NO_FOLDER => (
            OpenErrorKind::CannotCreate,
            format!("acp-relay cannot be copied into ~/{FOLDER} on {host}: {last}"),
        ),
        NO_DIGEST => (
            OpenErrorKind::Unavailable,
            format!(
                "{host} has no sha256sum, shasum or openssl, so that a copy cannot be verified"
            ),
        ),
        DAMAGED => (
            OpenErrorKind::Lost,
            format!("the copy on {host} is not whole; the connection may have broken: try again"),
        ),
        RUNS_NOT if stderr.contains("ermission denied") => (
            OpenErrorKind::Forbidden,
            format!("programs cannot run in ~/.local/share on {host} (mounted noexec?): {last}"),
        ),
        RUNS_NOT => (
            OpenErrorKind::Missing,
            format!(
                "this program does not run on {host} ({last}); put a static build for it at {}",
                static_build(own, machine).display()
            ),
        ),
        _ => (
            OpenErrorKind::Unavailable,
            format!("acp-relay was not copied to {host}: ssh ended with {exit}: {last}"),
        ),
    };
    OpenError::new(kind, to, what).with_remedy(by_hand)
}
