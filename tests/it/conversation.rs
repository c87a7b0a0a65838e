//! Playbooks: what a conversation receives, what it must send, in virtual time.
//!
//! Each file of `tests/vectors/playbooks` is one; `tests/README.md` describes the format. A
//! playbook is complete: an output that it does not expect fails it, notes included.

mod claims;
mod held_updates;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_relay::conversation::{
    Cause, Command, Conversation, DialectChoice, DialectOptions, LinkTraits, LoginRole, Note,
    Outbox,
};
use acp_relay::dialect::Library;
use acp_relay::dialect::versions::VersionPolicies;
use acp_relay::jsonrpc::framing::{Decoded, Decoder, Framing};
use acp_relay::jsonrpc::{CloseReason, Exit, Frame, Limits, Side};
use acp_relay::policy::{Disk, FolderCheck, FolderPair, MessagePolicy, PathMap, PolicyRules};
use bytes::BytesMut;
use serde_json::Value;

struct Stage {
    core: Conversation,
    out: Outbox,
    now: Instant,
    closed: [bool; 2],
    /// Sides whose links accept nothing at the moment.
    stuck: [bool; 2],
    /// What has become of pages that the agent opens.
    pages: Vec<String>,
    limits: Limits,
}

#[test]
fn playbooks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/playbooks");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 20, "only {} playbooks found", files.len());
    let faults: Vec<String> = files.iter().filter_map(|file| play(file).err()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

fn play(file: &Path) -> Result<(), String> {
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let mut stage = Stage::new(&lines);
    let mut reported: Vec<String> = Vec::new();
    let mut last = 0;
    for (at, line) in lines
        .into_iter()
        .filter(|(_, line)| !line.starts_with("with "))
    {
        let fault = |what: String| format!("{}:{at}: {what}\n  {line}", file.display());
        if let Some(event) = line.strip_prefix("> ") {
            if let Some(extra) = reported.first() {
                return Err(format!("{}:{last}: not expected: {extra}", file.display()));
            }
            stage.receive(event).map_err(fault)?;
            reported = stage.reported();
        } else {
            let expected = line
                .strip_prefix("< ")
                .ok_or_else(|| fault("expected `>`, `<`, `with` or `#`".into()))?;
            if reported.is_empty() {
                return Err(fault("expected, but nothing was sent".into()));
            }
            let got = reported.remove(0);
            if !matches(expected, &got) {
                return Err(fault(format!("expected this, but got\n  {got}")));
            }
        }
        last = at;
    }
    match reported.first() {
        Some(extra) => Err(format!("{}:{last}: not expected: {extra}", file.display())),
        None => Ok(()),
    }
}

impl Stage {
    fn new(lines: &[(usize, &str)]) -> Self {
        let is_given = |name| given(lines, name).next().is_some();
        let number = |name, usual: usize| {
            let number = given(lines, name).next();
            number.map_or(usual, |number| number.parse().unwrap())
        };
        let usual = Limits::default();
        let limits = Limits {
            stop_grace: Duration::from_secs(5),
            frame_from_network: number("frame ", usual.frame_from_network),
            nesting: number("nesting ", usual.nesting),
            in_flight: number("in-flight ", usual.in_flight),
            invalid_messages: number("invalid-messages ", usual.invalid_messages),
            queue_frames: number("queue-frames ", usual.queue_frames),
            queue_bytes: number("queue-bytes ", usual.queue_bytes),
            hold_updates: Duration::from_secs(number("hold-updates ", 60) as u64),
            cancel_grace: Duration::from_secs(number("cancel-grace ", 30) as u64),
            handshake_silence: Duration::from_secs(number("handshake-silence ", 0) as u64),
            turn_silence: Duration::from_secs(number("turn-silence ", 0) as u64),
            ..usual
        };
        let traits = LinkTraits {
            client_on_stdio: is_given("client on stdio"),
            client_half_close: !is_given("no client half-close"),
            agent_half_close: !is_given("no agent half-close"),
            agent_is_child: !is_given("remote agent") && !is_given("played agent"),
            agent_is_replayed: is_given("played agent"),
            announce_exit: is_given("remote client"),
            agent_restarts: is_given("restarting agent"),
            agent_is_relay: is_given("relay's agent"),
        };
        let choice = |name| match given(lines, name).next() {
            None => DialectChoice::Canonical,
            Some("auto") => DialectChoice::Auto,
            Some(name) => DialectChoice::Named(name.to_owned()),
        };
        let library = Arc::new(Library::builtin());
        let dialects = DialectOptions::new(
            &library,
            &choice("client dialect "),
            &choice("agent dialect "),
        )
        .unwrap();
        let dialects = match is_given("versions") {
            true => {
                let limits = Arc::new(limits.clone());
                dialects.with_versions(limits, VersionPolicies::default(), [None; 2])
            }
            false => dialects,
        };
        Self {
            core: Conversation::new(Arc::new(limits.clone()), traits, dialects, Instant::now())
                .with_longest([
                    number("client takes ", usize::MAX),
                    number("agent takes ", usize::MAX),
                ])
                .with_policy(policy(lines))
                .with_restarts(is_given("restarts"))
                .with_login(match given(lines, "logins of ").next() {
                    Some("client") => Some(LoginRole::Client),
                    Some(_) => Some(LoginRole::Agent),
                    None => None,
                }),
            pages: Vec::new(),
            out: Outbox::new(&limits),
            now: Instant::now(),
            closed: [false; 2],
            stuck: [false; 2],
            limits,
        }
    }

    fn receive(&mut self, event: &str) -> Result<(), String> {
        let (word, rest) = event.split_once(' ').unwrap_or((event, ""));
        let side = match word {
            "client" => Side::Client,
            "agent" => Side::Agent,
            "wait" => {
                self.now += rest
                    .strip_suffix('s')
                    .and_then(|n| n.parse().ok())
                    .map(Duration::from_secs)
                    .ok_or("wait Ns")?;
                if self.core.poll_timeout().is_some_and(|at| at <= self.now) {
                    self.core.handle_timeout(self.now, &mut self.out);
                }
                return Ok(());
            }
            "stop" | "unrecorded" => {
                let cause = match word {
                    "stop" => Cause::Stopped,
                    _ => Cause::Unrecorded,
                };
                self.core.handle_stop(cause, self.now, &mut self.out);
                return Ok(());
            }
            "page" => {
                let asked = self.core.ask_for_page(rest, self.now, &mut self.out);
                self.pages
                    .push(asked.map_or_else(|why| format!("refused: {why}"), |()| "asked".into()));
                return Ok(());
            }
            "redirected" | "unredirected" => {
                let result = match word {
                    "redirected" => Ok((!rest.is_empty()).then(|| rest.to_owned())),
                    _ => Err(rest.to_owned()),
                };
                self.core.handle_page(result, self.now, &mut self.out);
                return Ok(());
            }
            _ => return Err(format!("unknown event `{word}`")),
        };
        match rest.split_whitespace().collect::<Vec<_>>()[..] {
            ["ends"] => {
                self.core
                    .handle_eof(side, "ended its stream".into(), self.now, &mut self.out)
            }
            ["away"] => self
                .core
                .handle_agent_away(Some(self.now), self.now, &mut self.out),
            ["back"] => self.core.handle_agent_away(None, self.now, &mut self.out),
            ["stuck"] => self.stuck[side as usize] = true,
            ["breaks", "off"] => {
                let how = "broke off".to_owned();
                self.core
                    .handle_invalid(side, how, None, self.now, &mut self.out);
            }
            ["is", "lost"] => {
                self.core
                    .handle_lost(side, "was reset".into(), self.now, &mut self.out)
            }
            ["is", "not", "started"] => {
                self.core
                    .handle_not_restarted("no such file", self.now, &mut self.out)
            }
            ["deaf"] => self.core.handle_unwritable(
                side,
                "cannot be reached".into(),
                self.now,
                &mut self.out,
            ),
            ["exits", "code", code] => self.exit(Exit::Code(code.parse().unwrap())),
            ["exits", "signal", signal] => self.exit(Exit::Signal(signal.parse().unwrap())),
            _ => self.receive_text(side, rest),
        }
        Ok(())
    }

    /// Receives a line as a transport does: the framing cuts off a line that is too long.
    fn receive_text(&mut self, side: Side, text: &str) {
        let mut buffer = BytesMut::from(format!("{text}\n").as_str());
        let mut decoder = Decoder::new(
            Some(Framing::Ndjson),
            self.limits.frame_from_network,
            &self.limits,
        );
        match decoder.decode(&mut buffer).unwrap() {
            Some(Decoded::Frame(frame)) => {
                self.core.handle_frame(side, frame, self.now, &mut self.out)
            }
            Some(Decoded::Error(error)) => {
                self.core
                    .handle_frame_error(side, *error, self.now, &mut self.out)
            }
            None => {}
        }
    }

    fn exit(&mut self, exit: Exit) {
        self.core
            .handle_exit(exit, "last words".into(), self.now, &mut self.out);
    }

    /// The output since the last call: notes, frames to the client, frames to the agent, signals,
    /// closings, logins.
    fn reported(&mut self) -> Vec<String> {
        let mut reported = Vec::new();
        while let Some(note) = self.out.pop_note() {
            reported.push(format!("note {}", noted(&note)));
        }
        for side in [Side::Client, Side::Agent] {
            while !self.stuck[side as usize]
                && let Some(frame) = self.out.pop(side)
            {
                reported.push(format!("{side} {}", text(&frame)));
            }
        }
        while let Some(order) = self.out.pop_command() {
            reported.push(match order {
                Command::Kill => "SIGKILL".into(),
                Command::Terminate => "SIGTERM".into(),
                Command::RestartAgent => {
                    self.closed[Side::Agent as usize] = false;
                    "restart".into()
                }
            });
        }
        for side in [Side::Client, Side::Agent] {
            if let Some(why) = self.out.close_reason(side)
                && !self.closed[side as usize]
            {
                self.closed[side as usize] = true;
                reported.push(format!("close {side} {}", close_text(why)));
            }
        }
        reported.append(&mut self.pages);
        if let Some(page) = self.core.take_page() {
            let how = if page.is_shown { "await" } else { "open" };
            reported.push(format!("{how} {}", page.address));
        }
        reported.extend(self.core.take_delivery().map(|delivery| match delivery {
            Ok((port, target)) => format!("deliver {port} {target}"),
            Err(why) => format!("not logged in: {why}"),
        }));
        reported
    }
}

/// What follows `name` in the `with` lines of a playbook.
fn given<'a>(lines: &'a [(usize, &'a str)], name: &'a str) -> impl Iterator<Item = &'a str> {
    let options = lines
        .iter()
        .filter_map(|(_, line)| line.strip_prefix("with "));
    options.filter_map(move |option| Some(option.strip_prefix(name)?.trim()))
}

/// The policy that a playbook sets.
fn policy(lines: &[(usize, &str)]) -> Option<Box<MessagePolicy>> {
    let patterns = |name| given(lines, name).map(|word| word.parse().unwrap());
    let rules = PolicyRules {
        guarded: given(lines, "guard").next().is_some(),
        allow: patterns("allow ").collect(),
        deny: patterns("deny ").collect(),
        roots: given(lines, "root ").map(PathBuf::from).collect(),
    };
    let pairs = given(lines, "map ").map(|pair| pair.parse().unwrap());
    let pairs: Vec<FolderPair> = pairs.collect();
    let files = given(lines, "file ").map(|file| match file.split_once(" -> ") {
        Some((link, to)) => (link.into(), to.into()),
        None => (file.into(), file.into()),
    });
    let files = Files(files.collect());
    let is_given = |name| given(lines, name).next().is_some();
    let (own_files, announced) = (is_given("own files"), is_given("announced files"));
    let checked = is_given("checked folders");
    let asked = rules.guarded || !rules.deny.is_empty() || !pairs.is_empty();
    (asked || own_files || announced || checked).then(|| {
        let disk = Box::new(files);
        let mut policy = MessagePolicy::new(rules, PathMap::new(pairs), disk);
        if own_files {
            policy = policy.with_own_files();
        }
        if announced {
            policy = policy.announcing_files();
        }
        if checked {
            let fault = |path: &str| (path != "/there").then(|| format!("{path} is not there"));
            policy = policy.with_folder_check(FolderCheck::new(fault));
        }
        Box::new(policy)
    })
}

/// The disk of a playbook: files, and links with their targets.
#[derive(Debug)]
struct Files(Vec<(PathBuf, PathBuf)>);

impl Disk for Files {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let (_, to) = self.0.iter().find(|(name, _)| name == path)?;
        let there = self.0.iter().any(|(name, _)| name == to);
        there.then(|| to.clone())
    }

    fn exists(&self, path: &Path) -> bool {
        self.0.iter().any(|(name, _)| name == path)
    }
}

/// A note's name; for the effects of rules also the side, the method and the rules.
fn noted(note: &Note) -> String {
    match note {
        Note::Translated {
            side,
            method,
            rules,
        } => {
            let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
            format!("translated {side} {method} {}", rules.join(", "))
        }
        Note::Dialect {
            side,
            what,
            dialect,
            rule,
            ..
        } => {
            format!("{what} {side} {}", rule.as_ref().unwrap_or(dialect))
        }
        Note::Recognised { side, dialect, .. } => format!("recognised {side} {dialect}"),
        note => note.name().to_owned(),
    }
}

fn close_text(why: CloseReason) -> &'static str {
    match why {
        CloseReason::Done => "done",
        CloseReason::PeerFailed => "peer-failed",
        CloseReason::Shutdown => "shutdown",
        CloseReason::Unrecorded => "unrecorded",
        CloseReason::Replaced => "replaced",
        CloseReason::SessionLost => "session lost",
        CloseReason::Unauthorized => "unauthorized",
        CloseReason::Violation => "violation",
    }
}

fn text(frame: &Frame) -> String {
    String::from_utf8_lossy(frame.as_bytes()).into_owned()
}

/// `client ~{…}` matches a message that has at least those members; anything else is exact.
fn matches(expected: &str, got: &str) -> bool {
    let Some((side, part)) = expected.split_once(" ~") else {
        return expected == got;
    };
    let Some(whole) = got.strip_prefix(side) else {
        return false;
    };
    let part: Value = serde_json::from_str(part).unwrap();
    serde_json::from_str(whole).is_ok_and(|whole: Value| has(&whole, &part))
}

fn has(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, value)| whole.get(name).is_some_and(|inner| has(inner, value))),
        _ => whole == part,
    }
}
