//! A child process as an agent: what it inherits and writes, and that its whole tree ends,
//! whichever end dies first. Real programs: `sh`, `sleep`, `setsid`, `env`, and this binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod notes;
mod orphans;
mod relay;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::future::poll_fn;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::process::{Child, set_watchdog, spawn};
use acp_relay::transport::{Exit, Launch, LinkGuard as _, OpenError, OpenErrorKind, StopStep};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use notes::{DEADLINE, Notes, Proc, all, until, wait_until, words};
use relay::Relay;

/// Writes its pid, and those of a child, of one in a session of its own and of a grandchild to the
/// file `$1`, and stays.
const TREE: &str = r#"
    echo $$ >>"$1"
    sleep 1000 & echo $! >>"$1"
    setsid sleep 1000 & echo $! >>"$1"
    sh -c 'sleep 1000 & echo $! >>"$1"; wait' sh "$1" &
    wait; wait"#;
/// Leaves a daemon: in a session of its own, its parent exited.
const DAEMON: &str = r#"
    (setsid sh -c 'echo $$ >>"$1"; exec sleep 1000' sh "$1" &)
    sleep 1000"#;

#[tokio::test]
async fn arguments_arrive_unchanged() {
    let given: Vec<OsString> = [
        "",
        "a b",
        "$HOME",
        "$(exit 3)",
        "*",
        "'\"\\",
        "é\n",
        "--",
        "-x",
    ]
    .iter()
    .map(OsString::from)
    .chain([OsString::from_vec(vec![b'x', 0xff])])
    .collect();
    let mut argv = words(&["sh", "-c", r#"for a; do printf '%s\0' "$a"; done"#, "sh"]);
    argv.extend(given.iter().cloned());
    let mut child = start(&argv).await;
    assert_eq!(reported(&mut child).await, given);
    assert_eq!(exit(&mut child).await, Exit::Code(0));
}

#[tokio::test]
async fn the_environment_of_the_relay_is_passed_unchanged() {
    let mut child = start(&words(&["env", "-0"])).await;
    let theirs: BTreeSet<OsString> = reported(&mut child).await.into_iter().collect();
    let ours = std::env::vars_os().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    });
    assert_eq!(theirs, ours.collect());
}

#[tokio::test]
async fn a_bare_environment_has_the_basic_and_the_given_variables() {
    let launch = Launch {
        env: vec![("LLM_KEY".into(), "k".into()), ("HOME".into(), "/h".into())],
        bare: true,
        ..Launch::default()
    };
    let mut child = spawn_with(&words(&["env", "-0"]), &launch).await.unwrap();
    let theirs = reported(&mut child).await;
    let known = ["LANG", "LC_", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];
    for pair in &theirs {
        let pair = pair.to_str().unwrap();
        let own = ["LLM_KEY=k", "HOME=/h"].contains(&pair);
        assert!(
            own || known.iter().any(|one| pair.starts_with(one)),
            "{pair}"
        );
    }
    assert!(theirs.contains(&"LLM_KEY=k".into()) && theirs.contains(&"HOME=/h".into()));
    // Cargo sets variables here that are not among these.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
}

#[tokio::test]
async fn a_child_runs_in_its_working_directory() {
    let dir = tempfile::tempdir().unwrap();
    let argv = words(&["sh", "-c", r#"printf '%s\0' "$(pwd -P)""#]);
    let launch = Launch {
        dir: Some(dir.path().to_owned()),
        ..Launch::default()
    };
    let mut child = spawn_with(&argv, &launch).await.unwrap();
    let here = dir.path().canonicalize().unwrap();
    assert_eq!(reported(&mut child).await, [here.into_os_string()]);
}

#[tokio::test]
async fn stdin_and_stdout_are_connected() {
    let mut child = start(&words(&["cat"])).await;
    child.stdin.write_all(b"hello\n").await.unwrap();
    drop(child.stdin);
    let mut text = String::new();
    child.stdout.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hello\n");
}

#[tokio::test]
async fn the_exit_status_is_reported() {
    for (script, exit_is) in [
        ("exit 0", Exit::Code(0)),
        ("exit 42", Exit::Code(42)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -KILL $$", Exit::Signal(9)),
    ] {
        let mut child = start(&words(&["sh", "-c", script])).await;
        assert_eq!(exit(&mut child).await, exit_is, "{script}");
        // And again, for a second call.
        assert_eq!(exit(&mut child).await, exit_is, "{script}");
    }
}

#[tokio::test]
async fn failed_starts_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.into_os_string()
    };
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let plain = plain.into_os_string();
    for (program, kind, reports) in [
        (
            OsString::from("no-such-agent"),
            OpenErrorKind::Unavailable,
            "`no-such-agent` is not an executable on PATH",
        ),
        (
            script("orphan", "#!/no/such/interpreter\n"),
            OpenErrorKind::Unavailable,
            "interpreter",
        ),
        (
            script("text", "no program at all\n"),
            OpenErrorKind::Unavailable,
            "not a program",
        ),
        ("".into(), OpenErrorKind::Usage, "no program"),
        (
            "/no/such/agent".into(),
            OpenErrorKind::Unavailable,
            "not an executable file",
        ),
        ("/".into(), OpenErrorKind::Unavailable, "executable file"),
        // The superuser may read any file, but may not execute one that no user may execute.
        (plain, OpenErrorKind::Forbidden, "is not executable"),
        (
            "evil\x1b[2Jname".into(),
            OpenErrorKind::Unavailable,
            r"evil\u{1b}[2Jname",
        ),
        // Relative to the working directory.
        ("./sh".into(), OpenErrorKind::Unavailable, "executable file"),
    ] {
        let error = spawn_with(&[program], &Launch::default())
            .await
            .unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(reports), "{error}");
    }
    let from = |dir: &str| Launch {
        dir: Some(dir.into()),
        ..Launch::default()
    };
    let mut child = spawn_with(&words(&["./sh", "-c", "exit 3"]), &from("/bin")).await;
    assert_eq!(exit(child.as_mut().unwrap()).await, Exit::Code(3));
    let error = spawn_with(&words(&["sh"]), &from("/no/dir")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("working directory `/no/dir`"), "{error}");
}

#[tokio::test]
async fn the_end_of_stderr_is_kept_and_escaped() {
    let script = r#"
        head -c 8388608 /dev/zero | tr '\0' x >&2
        printf '\nlast \033[31mwords\a \377\n' >&2"#;
    let mut child = start(&words(&["sh", "-c", script])).await;
    assert_eq!(exit(&mut child).await, Exit::Code(0));
    let tail = child.hold.stderr_tail();
    assert!(tail.ends_with(r"last \u{1b}[31mwords\u{7} \xff"), "{tail}");
    assert!(tail.len() <= 4096);
}

#[tokio::test]
async fn the_stderr_tail_is_complete_at_the_exit() {
    for _ in 0..50 {
        let mut child = start(&words(&["sh", "-c", "echo the reason >&2; exit 1"])).await;
        assert_eq!(exit(&mut child).await, Exit::Code(1));
        assert_eq!(child.hold.stderr_tail(), "the reason");
    }
}

#[tokio::test]
async fn dropping_a_child_ends_its_tree() {
    let notes = Notes::new();
    let child = start(&notes.script(TREE)).await;
    let tree = notes.processes(4).await;
    drop(child);
    until("the tree is gone", || tree.iter().all(Proc::is_gone)).await;
    let leader = &tree[0];
    until("the leader is reaped", || leader.is_reaped()).await;
}

#[tokio::test]
async fn dropping_a_child_after_its_exit_ends_its_group() {
    let notes = Notes::new();
    let script = format!("{{ {TREE}; }} & sleep 1000 & echo $! >>\"$1\"; read line; kill -KILL $$");
    let mut child = start(&notes.script(&script)).await;
    // The leader of the inner tree is only a child here; its whole group stays behind.
    let all = notes.processes(5).await;
    let (left, strays): (Vec<_>, Vec<_>) =
        (all.into_iter()).partition(|process| process.group() == child.hold.id());
    child.stdin.write_all(b"now\n").await.unwrap();
    assert_eq!(exit(&mut child).await, Exit::Signal(9));
    assert!(left.iter().any(|process| !process.is_gone()));
    drop(child);
    until("its group is gone", || left.iter().all(Proc::is_gone)).await;
    // A process that left the group and lost its parent is found only by a program that adopts it.
    for stray in strays {
        stray.kill(Signal::KILL);
    }
}

#[tokio::test]
async fn a_kill_ends_the_tree_and_processes_that_ignore_sigterm() {
    let notes = Notes::new();
    let script = format!(
        r#"trap 'echo asked >>"$1.asked"' TERM; {TREE}; while :; do wait; sleep 1000; done"#
    );
    let mut child = start(&notes.script(&script)).await;
    let tree = notes.processes(4).await;
    let (leader, others) = tree.split_first().unwrap();

    child.hold.signal(StopStep::Terminate);
    until("the others have obeyed", || {
        others.iter().all(Proc::is_gone)
    })
    .await;
    let asked = notes.0.path().join("notes.asked");
    until("it has been asked", || asked.exists()).await;
    assert!(!leader.is_gone());

    child.hold.signal(StopStep::Kill);
    assert_eq!(exit(&mut child).await, Exit::Signal(9));
    // Once: many programs take a second signal for impatience.
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "asked\n");
}

#[tokio::test]
async fn a_tree_that_keeps_forking_is_ended() {
    let notes = Notes::new();
    // Each child is recognised by its sleep time, for the last ones born are in no list. There are
    // enough of them to be still starting when the tree is killed.
    let script = r#"
        echo $$ >>"$1"
        for i in 1 2 3 4 5 6; do
            setsid sh -c 'while i=${i}x; [ ${#i} -lt 60 ]; do setsid sleep "$1" & done; wait' sh 1000.$$ &
        done
        wait; wait"#;
    let child = start(&notes.script(script)).await;
    let leader = notes.processes(1).await.remove(0);
    let sleep = format!("1000.{}", leader.pid);
    let born = || all().iter().filter(|p| p.words().contains(&sleep)).count();
    until("it has forked", || born() > 20).await;
    drop(child);
    until("all are gone", || leader.is_reaped() && born() == 0).await;
}

#[tokio::test]
async fn a_stopped_process_does_not_wake_when_its_parent_is_killed() {
    let notes = Notes::new();
    // Only their parents keep these groups from being orphaned. There are many, so that some
    // outlive the parent for a moment, if it ends first.
    let script = r#"
        exec bash -mc '
            echo $$ >>"$1"
            for i in $(seq 40); do
                sh -c "trap \"echo woken >>\$1.woken\" HUP CONT
                    echo \$\$ >>\$1; sleep 1000 & wait; wait" sh "$1" &
            done
            wait; wait' bash "$1""#;
    let child = start(&notes.script(script)).await;
    let tree = notes.processes(41).await;
    drop(child);
    until("all are gone", || tree.iter().all(Proc::is_gone)).await;
    assert!(!notes.0.path().join("notes.woken").exists());
}

#[test]
fn an_agent_ends_with_its_runtime() {
    let notes = Notes::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (child, tree) = runtime.block_on(async {
        let child = start(&notes.script(TREE)).await;
        (child, notes.processes(4).await)
    });
    drop(runtime);
    drop(child);
    wait_until("the tree is gone", || tree.iter().all(Proc::is_gone));
    wait_until("the leader is reaped", || tree[0].is_reaped());
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
    let shared = agent.descriptors();
    let shared: Vec<_> = (shared.iter())
        .filter(|link| ours.contains(*link) && !given.contains(link))
        .collect();
    assert_eq!(shared.len(), 3, "{shared:?}");
}

#[test]
fn agents_end_when_the_relay_is_killed() {
    let mut relay = Relay::start();
    let (tree, stubborn) = (Notes::new(), Notes::new());
    relay.spawn(&tree, TREE);
    // The shell writes to stderr when a child is killed; no reader is there.
    let script = r#"
        exec 2>/dev/null
        trap 'echo asked >>"$1.asked"' TERM
        echo $$ >>"$1"
        while :; do sleep 1000; done"#;
    relay.spawn(&stubborn, script);
    let mut processes = tree.wait_for(4);
    processes.extend(stubborn.wait_for(1));

    relay.kill();
    wait_until("all agents are gone", || {
        processes.iter().all(Proc::is_gone)
    });
    let asked = stubborn.0.path().join("notes.asked");
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "asked\n");
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
    relay.notify("drop 0");
    assert_eq!(relay.notify("settle"), "true");
    assert!(tree.iter().all(Proc::is_reaped), "{tree:?}");
    assert!(!untouched.iter().any(Proc::is_gone));
}

#[test]
fn an_exiting_relay_leaves_no_watchdog() {
    let mut relay = Relay::start();
    let notes = Notes::new();
    relay.spawn(&notes, TREE);
    let tree = notes.wait_for(4);
    let watchdog = relay.watchdogs().remove(0);
    // It does not drop its agents, as a program that calls `exit`.
    relay.notify("exit");
    wait_until("the tree is gone", || tree.iter().all(Proc::is_gone));
    wait_until("the watchdog is gone", || watchdog.is_gone());
}

async fn start(argv: &[OsString]) -> Child {
    spawn_with(argv, &Launch::default()).await.unwrap()
}

async fn spawn_with(argv: &[OsString], launch: &Launch) -> Result<Child, OpenError> {
    set_watchdog(env!("CARGO_BIN_EXE_acp-relay").into());
    spawn(argv, launch, &Limits::default()).await
}

/// All its output, split at NUL.
async fn reported(child: &mut Child) -> Vec<OsString> {
    let mut bytes = Vec::new();
    child.stdout.read_to_end(&mut bytes).await.unwrap();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    bytes
        .split(|&byte| byte == 0)
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect()
}

async fn exit(child: &mut Child) -> Exit {
    let exit = poll_fn(|cx| child.hold.poll_exit(cx));
    tokio::time::timeout(DEADLINE, exit).await.expect("it ends")
}
