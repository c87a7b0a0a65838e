//! Orphaned processes: a daemon ends only with the agent that started it, and processes below the
//! relay from before its start are left alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::notes::{Notes, Proc, all, wait_until};
use super::relay::Relay;

/// Leaves a daemon as daemons are made: its parent, group, session and files do not identify the
/// agent.
const DAEMON: &str = r#"
    (setsid sh -c '(setsid sh -c "echo \$\$ >>\"\$1\"; exec sleep 1000" sh "$1" &)' sh "$1" \
        </dev/null >/dev/null 2>&1 &)
    sleep 1000"#;

#[test]
fn a_daemon_ends_with_the_agent_that_started_it_and_not_before() {
    let mut relay = Relay::start();
    let notes = [(); 3].map(|()| Notes::new());
    let mut daemons = Vec::new();
    for notes in &notes {
        relay.spawn(notes, DAEMON);
        daemons.extend(notes.wait_for(1));
    }
    let watchdogs = relay.watchdogs();
    wait_until("all are orphans", || {
        (daemons.iter()).all(|daemon| watchdogs.iter().any(|w| w.pid == daemon.parent()))
    });

    // An older and a younger agent stay.
    relay.notify("drop 1");
    wait_until("its daemon is reaped", || daemons[1].is_reaped());
    assert!(!daemons[0].is_gone() && !daemons[2].is_gone());
    relay.notify("drop 0");
    wait_until("its daemon is reaped", || daemons[0].is_reaped());
    assert!(!daemons[2].is_gone());
    relay.notify("drop 2");
    // `settle` itself waits.
    assert_eq!(relay.notify("settle"), "true");
    assert!(daemons[2].is_reaped());
    assert!(relay.children().is_empty(), "{:?}", relay.children());
}

#[test]
fn daemons_of_agents_end_when_the_relay_is_killed() {
    let mut relay = Relay::start();
    let notes = Notes::new();
    relay.spawn(&notes, DAEMON);
    let daemon = notes.wait_for(1).remove(0);
    let watchdog = relay.watchdogs().remove(0);
    // Whether or not the watchdog has looked for it yet.
    relay.kill();
    wait_until("the daemon is gone", || daemon.is_gone());
    wait_until("the watchdog is gone", || watchdog.is_gone());
}

#[test]
fn processes_started_before_the_relay_are_left_alone() {
    for kill in [false, true] {
        let mut wrapper = Wrapper::start();
        let mine = wrapper.mine.wait_for(2);
        let daemon = wrapper.agents.wait_for(1).remove(0);
        let relay = wrapper.relay.id();
        let watchdog = (all().into_iter())
            .find(|process| process.is_watchdog() && process.parent() == relay)
            .unwrap();
        // One more starts while the relay runs, and loses its parent.
        std::fs::write(wrapper.mine.0.path().join("go"), "").unwrap();
        let late = wrapper.mine.wait_for(3).pop().unwrap();
        wait_until("it is an orphan", || late.parent() != mine[1].pid);

        if kill {
            wrapper.relay.kill().unwrap();
        } else {
            drop(wrapper.relay.stdin.take());
        }
        wrapper.relay.wait().unwrap();
        wait_until("the daemon is gone", || daemon.is_gone());
        wait_until("the watchdog is gone", || watchdog.is_gone());
        for process in mine.iter().chain([&late]) {
            assert!(!process.is_gone(), "{process:?}");
        }
    }
}

/// A script that starts processes and then becomes the relay.
struct Wrapper {
    relay: Child,
    mine: Notes,
    agents: Notes,
}

impl Wrapper {
    fn start() -> Self {
        let (mine, agents) = (Notes::new(), Notes::new());
        let script = r#"
            sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >>"$1"
            sh -c '
                echo $$ >>"$1"
                while [ ! -e "$2/go" ]; do sleep 0.02; done
                (setsid sleep 1000 & echo $! >>"$1")
                exec sleep 1000' sh "$1" "$2" </dev/null >/dev/null 2>&1 &
            shift 2
            exec "$@""#;
        let relay = Command::new("sh")
            .args(["-c", script, "sh"])
            .args([mine.path().as_path(), mine.0.path()])
            .args([env!("CARGO_BIN_EXE_acp-relay"), "connect", "--"])
            .args(agents.script(DAEMON))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            relay,
            mine,
            agents,
        }
    }
}

impl Drop for Wrapper {
    fn drop(&mut self) {
        let _ = self.relay.kill();
        let _ = self.relay.wait();
        let text = std::fs::read_to_string(self.mine.path()).unwrap_or_default();
        for process in text.lines().filter_map(|line| Proc::of(line.parse().ok()?)) {
            process.kill(Signal::KILL);
        }
    }
}
