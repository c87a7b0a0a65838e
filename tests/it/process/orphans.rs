//! Whose orphans are whose: a daemon ends with the agent that made it and with nobody else, and
//! what was below the relay before it was the relay is left alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::notes::{Notes, Proc, all, ticks, wait_until};
use super::relay::Relay;

/// Leaves a daemon as daemons are made: nothing of it tells where it came from, neither its
/// parent nor its group, its session or its files.
const DAEMON: &str = r#"
    (setsid sh -c '(setsid sh -c "echo \$\$ >>\"\$1\"; exec sleep 1000" sh "$1" &)' sh "$1" \
        </dev/null >/dev/null 2>&1 &)
    sleep 1000"#;

#[test]
fn a_daemon_ends_with_the_agent_that_made_it_and_not_before() {
    let mut relay = Relay::start();
    let notes = [(); 3].map(|()| Notes::new());
    let mut daemons = Vec::new();
    for notes in &notes {
        relay.spawn(notes, DAEMON);
        daemons.extend(notes.wait_for(1));
    }
    wait_until("all are orphans", || {
        daemons.iter().all(|p| p.parent() == relay.process.pid)
    });

    // An older and a younger agent stay.
    relay.notify("drop 1");
    wait_until("its daemon is reaped", || daemons[1].is_reaped());
    assert!(!daemons[0].is_gone() && !daemons[2].is_gone());
    relay.notify("drop 0");
    wait_until("its daemon is reaped", || daemons[0].is_reaped());
    assert!(!daemons[2].is_gone());
    relay.notify("drop 2");
    // Nothing is waited for here: that is what settling is.
    assert_eq!(relay.notify("settle"), "true");
    assert!(daemons[2].is_reaped());
    assert_eq!(relay.children().len(), 1, "only the keeper is left");
}

#[test]
fn a_daemon_without_a_mark_ends_with_the_last_agent_that_may_have_made_it() {
    let mut relay = Relay::start();
    let (first, second) = (Notes::new(), Notes::new());
    relay.spawn(
        &first,
        &format!("prlimit --locks=unlimited --pid $$\n{DAEMON}"),
    );
    let daemon = first.wait_for(1).remove(0);
    assert_eq!(daemon.file_locks(), "unlimited");
    wait_until("it is an orphan", || daemon.parent() == relay.process.pid);
    // Start times are in hundredths of a second.
    wait_until("the clock has moved on", || ticks() > daemon.start + 1);
    relay.spawn(&second, "echo $$ >>\"$1\"; sleep 1000");
    let young = second.wait_for(1).remove(0);
    relay.notify("drop 0");
    wait_until("it is reaped", || daemon.is_reaped());
    assert!(!young.is_gone());
}

#[test]
fn the_relay_itself_bears_no_mark() {
    let mut relay = Relay::start();
    let notes = Notes::new();
    let before = relay.process.file_locks();
    relay.spawn(&notes, "echo $$ >>\"$1\"; sleep 1000");
    let agent = notes.wait_for(1).remove(0);
    assert_ne!(agent.file_locks(), before);
    assert_eq!(relay.process.file_locks(), before);
    assert_eq!(relay.keeper().file_locks(), before);
}

#[test]
fn when_the_relay_is_killed_the_daemons_of_its_agents_end() {
    let mut relay = Relay::start();
    let notes = Notes::new();
    relay.spawn(&notes, DAEMON);
    let daemon = notes.wait_for(1).remove(0);
    let keeper = relay.keeper();
    // Whether or not the keeper has ever looked.
    relay.kill();
    wait_until("the daemon is gone", || daemon.is_gone());
    wait_until("the keeper is gone", || keeper.is_gone());
}

#[test]
fn what_was_below_the_relay_before_it_is_left_alone() {
    for kill in [false, true] {
        let mut wrapper = Wrapper::start();
        let mine = wrapper.mine.wait_for(2);
        let daemon = wrapper.agents.wait_for(1).remove(0);
        let relay = wrapper.relay.id();
        let keeper = (all().into_iter())
            .find(|process| process.is_keeper() && process.parent() == relay)
            .unwrap();
        // One more comes while the relay runs, and loses its parent.
        std::fs::write(wrapper.mine.0.path().join("go"), "").unwrap();
        let late = wrapper.mine.wait_for(3).pop().unwrap();
        wait_until("it is an orphan", || late.parent() == relay);

        if kill {
            wrapper.relay.kill().unwrap();
        } else {
            drop(wrapper.relay.stdin.take());
        }
        wrapper.relay.wait().unwrap();
        wait_until("the daemon is gone", || daemon.is_gone());
        wait_until("the keeper is gone", || keeper.is_gone());
        for process in mine.iter().chain([&late]) {
            assert!(!process.is_gone(), "{process:?}");
        }
    }
}

/// A script that starts something of its own and then becomes the relay.
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
