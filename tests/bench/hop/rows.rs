//! The hops that are compared, how they are started, and the table.

use std::collections::HashMap;
use std::env::{current_exe, split_paths, var_os};
use std::io::Error;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tempfile::TempDir;

use super::measure::{Client, Framing};

const RELAY: &str = env!("CARGO_BIN_EXE_acp-relay");
const CANONICAL: [&str; 4] = [
    "--client-dialect",
    "canonical",
    "--agent-dialect",
    "canonical",
];
/// What is streamed: bytes of an update, and how many of them.
const STREAMS: [(usize, usize); 3] = [(100, 500_000), (1 << 10, 200_000), (64 << 10, 6_000)];
const ECHOES: usize = 10_000;

/// A row of the table.
struct Row {
    name: &'static str,
    /// The row it is compared with, such as the copier over the same transport.
    baseline: &'static str,
    how: How,
    /// `{PORT}`, `{AGENT}`, `{FOLDER}` and others are replaced.
    command: &'static str,
    /// The command of a hop behind this one, which listens at `{PORT}`.
    behind: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Socket(Framing),
    Stdio,
}

const TCP: How = How::Socket(Framing::Lines);
const WS: How = How::Socket(Framing::Frames);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row::new("no hop", "", How::Stdio, "{AGENT}"),
    Row::new("copier, tcp", "", TCP, "{SELF} copier tcp 127.0.0.1:{PORT} {AGENT}"),
    Row::new("socat, tcp", "copier, tcp", TCP,
        "socat -b 65536 TCP-LISTEN:{PORT},bind=127.0.0.1,fork,reuseaddr,nodelay EXEC:{AGENT_IN_ONE}"),
    Row::new("acp-relay, tcp", "copier, tcp", TCP, "{RELAY} serve --listen tcp://127.0.0.1:{PORT} {CANONICAL} -- {AGENT}"),
    Row::new("acp-relay, tcp, auto", "copier, tcp", TCP, "{RELAY} serve --listen tcp://127.0.0.1:{PORT} -- {AGENT}"),
    Row::new("copier, ws", "", WS, "{SELF} copier ws 127.0.0.1:{PORT} {AGENT}"),
    Row::new("websocat, ws", "copier, ws", WS, "websocat -t -E -B 16777216 ws-l:127.0.0.1:{PORT} sh-c:{AGENT_IN_ONE}"),
    Row::new("acp-relay, ws", "copier, ws", WS, "{RELAY} serve --listen ws://127.0.0.1:{PORT} {CANONICAL} -- {AGENT}"),
    Row::new("acp-relay, ws, auto", "copier, ws", WS, "{RELAY} serve --listen ws://127.0.0.1:{PORT} -- {AGENT}"),
    Row::new("socat, stdio", "no hop", How::Stdio, "socat -b 65536 - EXEC:{AGENT_IN_ONE}"),
    Row::new("acp-relay, stdio", "no hop", How::Stdio, "{RELAY} connect {CANONICAL} -- {AGENT}"),
    Row::new("acp-relay, stdio, auto", "no hop", How::Stdio, "{RELAY} connect -- {AGENT}"),
    Row::new("acp-relay, stdio, recorded", "acp-relay, stdio", How::Stdio, "{RELAY} connect {CANONICAL} --record {FOLDER} -- {AGENT}"),
    Row::new("two acp-relays, ws", "acp-relay, ws", How::Stdio, "{RELAY} connect {CANONICAL} ws://127.0.0.1:{PORT}")
        .behind("{RELAY} serve --listen ws://127.0.0.1:{PORT} {CANONICAL} -- {AGENT}"),
    Row::new("two acp-relays, ws, auto", "acp-relay, ws, auto", How::Stdio, "{RELAY} connect ws://127.0.0.1:{PORT}")
        .behind("{RELAY} serve --listen ws://127.0.0.1:{PORT} -- {AGENT}"),
    Row::new("two acp-relays, tcp", "acp-relay, tcp", How::Stdio, "{RELAY} connect {CANONICAL} tcp://127.0.0.1:{PORT}")
        .behind("{RELAY} serve --listen tcp://127.0.0.1:{PORT} {CANONICAL} -- {AGENT}"),
];

/// A hop, and a client that is connected through it.
struct Hop {
    processes: Vec<Running>,
    client: Client,
    /// Where it records.
    _folder: TempDir,
}

/// A process that runs until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended with its client.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Row {
    const fn new(
        name: &'static str,
        baseline: &'static str,
        how: How,
        command: &'static str,
    ) -> Self {
        Self {
            name,
            baseline,
            how,
            command,
            behind: "",
        }
    }

    const fn behind(mut self, command: &'static str) -> Self {
        self.behind = command;
        self
    }

    fn is_installed(&self) -> bool {
        let program = self.command.split(' ').next().unwrap_or("");
        let path = var_os("PATH").unwrap_or_default();
        program.starts_with('{') || split_paths(&path).any(|folder| folder.join(program).is_file())
    }

    /// A hop that has answered requests; nothing when it cannot be reached.
    fn start(&self) -> Option<Hop> {
        let free = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let folder = TempDir::new().unwrap();
        let mut processes = Vec::new();
        if !self.behind.is_empty() {
            processes.push(begin(self.behind, free, &folder, false));
            await_listener(free);
        }
        let mut process = begin(self.command, free, &folder, self.how == How::Stdio);
        let client = match self.how {
            How::Stdio => {
                let (input, output) = (
                    process.0.stdin.take().unwrap(),
                    process.0.stdout.take().unwrap(),
                );
                Client::new(Box::new(output), Box::new(input))
            }
            How::Socket(framing) => {
                await_listener(free);
                Client::dial(&free.to_string(), framing).ok()?
            }
        };
        processes.push(process);
        let mut hop = Hop {
            processes,
            client,
            _folder: folder,
        };
        hop.client.echo(200);
        Some(hop)
    }
}

fn begin(command: &str, at: SocketAddr, folder: &TempDir, piped: bool) -> Running {
    let own = current_exe().unwrap().display().to_string();
    let agent = [own.clone(), "agent".to_owned()];
    let args: Vec<String> = command
        .split(' ')
        .flat_map(|word| match word {
            "{AGENT}" => agent.to_vec(),
            "{CANONICAL}" => CANONICAL.map(str::to_owned).to_vec(),
            _ => vec![
                word.replace("{PORT}", &at.port().to_string())
                    .replace("{SELF}", &own)
                    .replace("{RELAY}", RELAY)
                    .replace("{FOLDER}", &folder.path().display().to_string())
                    .replace("{AGENT_IN_ONE}", &agent.join(" ")),
            ],
        })
        .collect();
    let pipe = || if piped { Stdio::piped() } else { Stdio::null() };
    let process = Command::new(&args[0])
        .args(&args[1..])
        .stdin(pipe())
        .stdout(pipe())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Running(process)
}

fn await_listener(at: SocketAddr) {
    for _ in 0..200 {
        if TcpStream::connect(at).is_ok() {
            break;
        }
        sleep(Duration::from_millis(20));
    }
}

impl Hop {
    /// Processor time of the hop's own threads, in µs; nothing where it cannot be read.
    fn processor(&self) -> Option<f64> {
        self.processes.iter().map(Running::processor).sum()
    }
}

impl Running {
    fn processor(&self) -> Option<f64> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).ok()?;
        let took = threads.filter_map(|thread| {
            let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<f64>().ok()
        });
        Some(took.sum::<f64>() / 1e3)
    }
}

/// The figures of each row and column: one per round.
type Figures = HashMap<(&'static str, usize), Vec<f64>>;

/// Measures and prints.
pub(super) fn run(rounds: usize, only: &[&str]) {
    let selected = |row: &&Row| only.is_empty() || only.iter().any(|name| row.name.contains(name));
    let (installed, missing): (Vec<&Row>, Vec<&Row>) = ROWS
        .iter()
        .filter(selected)
        .partition(|row| row.is_installed() && row.start().is_some());
    let mut figures = Figures::new();
    for round in 0..rounds {
        for at in 0..installed.len() {
            let row = installed[(at + round) % installed.len()];
            let mut put =
                |column, figure| figures.entry((row.name, column)).or_default().push(figure);
            // On one processor, an answer takes the sum of all work and all switches.
            let everywhere = pin(None).unwrap();
            let mut hop = row.start().expect("it has started before");
            put(0, hop.client.echo(ECHOES));
            drop(hop);
            pin(Some(&everywhere)).unwrap();
            let mut hop = row.start().expect("it has started before");
            for (at, (size, count)) in STREAMS.into_iter().enumerate() {
                hop.client.stream(count / 10, size);
                let before = hop.processor();
                put(1 + 2 * at, hop.client.stream(count, size));
                if let (Some(before), Some(after)) = (before, hop.processor()) {
                    put(2 + 2 * at, (after - before) / count as f64);
                }
            }
        }
    }
    println!(
        "| hop | an answer, µs | 100 B, msg/s | 1 KiB, msg/s | 64 KiB, msg/s | its CPU at 100 B, 1 KiB, 64 KiB, µs/msg |"
    );
    println!("|---|---|---|---|---|---|");
    let median = |row, column| {
        let mut all: Vec<f64> = figures.get(&(row, column)).cloned().unwrap_or_default();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    };
    for row in &installed {
        print!("| {} | {:.1} |", row.name, median(row.name, 0).unwrap());
        for column in [1, 3, 5] {
            let rate = median(row.name, column).unwrap();
            let ratio = median(row.baseline, column).map(|base| format!(" ({:.2} ×)", rate / base));
            print!(" {rate:.0}{} |", ratio.unwrap_or_default());
        }
        let own = |column| {
            median(row.name, column).map_or_else(|| "–".to_owned(), |cpu| format!("{cpu:.2}"))
        };
        // The processes that socat forks are not counted.
        let has_cpu = !row.name.starts_with("socat, tcp") && row.name != "no hop";
        let all = [2, 4, 6].map(|column| {
            if has_cpu {
                own(column)
            } else {
                "–".to_owned()
            }
        });
        println!(" {} |", all.join(", "));
    }
    println!(
        "\nThe median of {rounds} rounds; ×: relative to the copier of the same transport, to no hop, or to one relay that records nothing."
    );
    for row in missing {
        println!("Not measured: {}", row.name);
    }
}

/// Keeps this thread and its children on one processor, or on those of `to`; returns those before.
fn pin(to: Option<&CpuSet>) -> Result<CpuSet, Error> {
    let before = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    let first = (0..CpuSet::MAX_CPU).find(|&number| before.is_set(number));
    one.set(first.unwrap_or(0));
    sched_setaffinity(None, to.unwrap_or(&one))?;
    Ok(before)
}
