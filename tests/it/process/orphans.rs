//! A relay in a process of its own: its agents end with it, a daemon ends with the agent that started
//! it and not before, and processes below the relay from before its start are left alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::TREE;
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
    for (dropped, stay) in [(1, &[0, 2][..]), (0, &[2])] {
        relay.notify(&format!("drop {dropped}"));
        wait_until("its daemon is reaped", || daemons[dropped].is_reaped());
        assert!(!stay.iter().any(|one| daemons[*one].is_gone()));
    }
    relay.notify("drop 2");
    // `settle` itself waits.
    assert_eq!(relay.notify("settle"), "true");
    assert!(daemons[2].is_reaped());
    assert!(relay.children().is_empty(), "{:?}", relay.children());
}

#[test]
fn daemons_end_with_an_agent_that_crashed() {
    let mut relay = Relay::start();
    let notes = Notes::new();
    relay.spawn(
        &notes,
        &format!("echo $$ >>\"$1\"; setsid sleep 1000 & echo $! >>\"$1\"; {DAEMON}"),
    );
    let processes = notes.wait_for(3);
    processes[0].kill(Signal::KILL);
    wait_until("its exit is known", || relay.notify("exited 0") == "true");
    relay.notify("drop 0");
    assert_eq!(relay.notify("settle"), "true");
    assert!(processes.iter().all(Proc::is_reaped), "{processes:?}");
}

#[test]
fn adopted_zombies_are_reaped_while_the_agent_runs() {
    let mut relay = Relay::start();
    let notes = Notes::new();
    let script = r#"
        for i in 1 2 3 4 5; do
            (sh -c 'echo $$ >>"$1"; until [ -e "$1.go" ]; do sleep 0.05; done' sh "$1" &)
        done
        sleep 1000"#;
    relay.spawn(&notes, script);
    let orphans = notes.wait_for(5);
    std::fs::write(notes.path().with_extension("go"), "").unwrap();
    wait_until("all are reaped", || orphans.iter().all(Proc::is_reaped));
    assert_eq!(relay.children().len(), 1, "the watchdog");
}

#[test]
fn an_agent_costs_four_descriptors_and_inherits_none() {
    let mut relay = Relay::start();
    let notes = Notes::new();
    let script = "echo $$ >>\"$1\"; sleep 1000";
    relay.spawn(&notes, script);
    notes.wait_for(1);
    let before = relay.process.descriptors().len();
    relay.spawn(&notes, script);
    let agent = notes.wait_for(2).pop().unwrap();
    // Its pipes, and the socket to its watchdog.
    assert_eq!(relay.process.descriptors().len() - before, 4);

    let ours: BTreeSet<PathBuf> = relay.process.descriptors().into_iter().collect();
    // Descriptors that this process inherited are shared by all.
    let given: Vec<PathBuf> = Proc::of(std::process::id()).unwrap().descriptors();
    let mut shared = agent.descriptors();
    shared.retain(|link| ours.contains(link) && !given.contains(link));
    assert_eq!(shared.len(), 3, "{shared:?}");
}

#[test]
fn agents_and_their_daemons_end_however_the_relay_ends() {
    // The shell writes to stderr when a child is killed; no reader is there.
    const STUBBORN: &str = r#"
        exec 2>/dev/null
        trap 'echo asked >>"$1.asked"' TERM
        echo $$ >>"$1"
        while :; do sleep 1000; done"#;
    // It is killed, or exits without dropping its agents.
    for killed in [true, false] {
        let mut relay = Relay::start();
        let notes = [TREE, DAEMON, STUBBORN].map(|script| {
            let notes = Notes::new();
            relay.spawn(&notes, script);
            notes
        });
        let counts = notes.iter().zip([4, 1, 1]);
        let mut processes: Vec<_> = counts.flat_map(|(notes, n)| notes.wait_for(n)).collect();
        processes.extend(relay.watchdogs());
        assert_eq!(processes.len(), 9);
        if killed {
            relay.kill();
        } else {
            relay.notify("exit");
        }
        wait_until("all are gone", || processes.iter().all(Proc::is_gone));
        let asked = notes[2].0.path().join("notes.asked");
        assert_eq!(std::fs::read_to_string(asked).unwrap(), "asked\n");
    }
}

#[test]
fn an_agent_ends_with_the_time_that_its_relay_has_granted_though_that_is_stopped() {
    let mut relay = Relay::start();
    let notes = [(); 3].map(|()| {
        let notes = Notes::new();
        relay.spawn(&notes, TREE);
        notes
    });
    let [ends, granted_more, unbounded] = notes.each_ref().map(|notes| notes.wait_for(4));
    relay.notify("grant 0 500");
    relay.notify("grant 1 500");
    relay.notify("grant 1 31000");
    relay.process.kill(Signal::STOP);
    wait_until("its time is over", || ends.iter().all(Proc::is_gone));
    let others = granted_more.iter().chain(&unbounded);
    assert!(others.clone().all(|process| !process.is_gone()));
    relay.process.kill(Signal::CONT);
    wait_until("its exit is known", || relay.notify("exited 0") == "true");
    assert_eq!(relay.notify("exited 1"), "false");
}

#[test]
fn a_watchdog_ignores_signals_and_its_agent_ends_with_it() {
    let mut relay = Relay::start();
    let (notes, other) = (Notes::new(), Notes::new());
    relay.spawn(&notes, &format!("{{ {DAEMON}; }} & {TREE}"));
    let tree = notes.wait_for(5);
    let watchdog = relay.watchdogs().remove(0);
    relay.spawn(&other, TREE);
    let untouched = other.wait_for(4);
    assert_eq!(watchdog.group(), watchdog.pid, "it has a group of its own");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        watchdog.kill(signal);
    }
    wait_until("the signals were handled", || !watchdog.is_pending(15));
    assert!(!watchdog.is_gone());

    watchdog.kill(Signal::KILL);
    wait_until("its exit is known", || relay.notify("exited 0") == "true");
    wait_until("its agent is reaped", || tree.iter().all(Proc::is_reaped));
    assert!(!untouched.iter().any(Proc::is_gone));
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
