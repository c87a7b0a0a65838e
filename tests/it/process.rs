//! A child process as an agent: what it inherits and writes, and that its whole tree ends,
//! whichever end dies first. Real programs: `sh`, `sleep`, `setsid`, `env`, and this binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

pub(crate) mod notes;
mod orphans;
mod relay;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::future::poll_fn;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::process::{Child, set_watchdog, spawn};
use acp_relay::transport::{Exit, Launch, LinkGuard as _, OpenError, OpenErrorKind, StopStep};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use notes::{DEADLINE, Notes, Proc, wait_until, words};

/// Writes its pid, and those of a child, of one in a session of its own and of a grandchild to the
/// file `$1`, and stays.
const TREE: &str = r#"
    echo $$ >>"$1"
    sleep 1000 & echo $! >>"$1"
    setsid sleep 1000 & echo $! >>"$1"
    sh -c 'sleep 1000 & echo $! >>"$1"; wait' sh "$1" &
    wait; wait"#;

#[tokio::test]
async fn arguments_and_environment_arrive_unchanged() {
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

    let theirs = reported(&mut start(&words(&["env", "-0"])).await).await;
    let ours = std::env::vars_os().map(|(name, value)| [name, value].join(OsStr::new("=")));
    assert_eq!(
        BTreeSet::from_iter(theirs),
        BTreeSet::from_iter(ours),
        "the environment"
    );
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
    let own = ["LLM_KEY=k", "HOME=/h"].map(OsString::from);
    assert!(own.iter().all(|pair| theirs.contains(pair)), "{theirs:?}");
    let known = ["LANG", "LC_", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];
    for pair in theirs.iter().filter(|pair| !own.contains(pair)) {
        let name = pair.to_str().unwrap();
        assert!(known.iter().any(|one| name.starts_with(one)), "{name}");
    }
    // Cargo sets variables here that are not among these.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
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
    use OpenErrorKind::{Forbidden, Unavailable, Usage};
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let orphan = file("orphan", "#!/no/such/interpreter\n", 0o755);
    let text = file("text", "no program at all\n", 0o755);
    // The superuser may read any file, but may not execute one that no user may execute.
    let plain = file("plain", "", 0o644);
    for (program, kind, reports) in [
        (
            "no-such-agent",
            Unavailable,
            "`no-such-agent` is not an executable on PATH",
        ),
        (&orphan, Unavailable, "interpreter"),
        (&text, Unavailable, "not a program"),
        ("", Usage, "no program"),
        ("/no/such/agent", Unavailable, "not an executable file"),
        ("/", Unavailable, "executable file"),
        (&plain, Forbidden, "is not executable"),
        ("evil\x1b[2Jname", Unavailable, r"evil\u{1b}[2Jname"),
        // Relative to the working directory.
        ("./sh", Unavailable, "executable file"),
    ] {
        let error = spawn_with(&[program.into()], &Launch::default()).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(reports), "{error}");
    }
    let from = |dir: &str| Launch {
        dir: Some(dir.into()),
        ..Launch::default()
    };
    let mut child = spawn_with(&words(&["./sh", "-c", "pwd -P"]), &from("/bin")).await;
    let here = std::fs::canonicalize("/bin").unwrap();
    let printed = reported(child.as_mut().unwrap()).await.remove(0);
    assert_eq!(printed.to_str().unwrap().trim_end(), here.to_str().unwrap());
    let error = spawn_with(&words(&["sh"]), &from("/no/dir")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("working directory `/no/dir`"), "{error}");
}

#[tokio::test]
async fn the_stderr_tail_is_complete_at_the_exit() {
    let script = r"head -c 1048576 /dev/zero | tr '\0' x >&2; printf '\nthe \033[31mreason\n' >&2";
    for _ in 0..20 {
        let mut child = start(&words(&["sh", "-c", script])).await;
        assert_eq!(exit(&mut child).await, Exit::Code(0));
        let tail = child.hold.stderr_tail();
        assert!(tail.ends_with(r"the \u{1b}[31mreason"), "{tail}");
        assert!(tail.len() <= 4096);
    }
}

#[test]
fn dropping_a_child_ends_its_tree_also_after_its_runtime() {
    for runtime_first in [false, true] {
        let notes = Notes::new();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let child = runtime.block_on(start(&notes.script(TREE)));
        let tree = notes.wait_for(4);
        if runtime_first {
            drop(runtime);
        }
        drop(child);
        wait_until("the tree is gone", || tree.iter().all(Proc::is_gone));
        wait_until("the leader is reaped", || tree[0].is_reaped());
    }
}

#[tokio::test]
async fn dropping_a_child_after_its_exit_ends_its_group() {
    let notes = Notes::new();
    let script = format!("{{ {TREE}; }} & sleep 1000 & echo $! >>\"$1\"; read line; kill -KILL $$");
    let mut child = start(&notes.script(&script)).await;
    // The leader of the inner tree is only a child here; its whole group stays behind.
    let all = notes.wait_for(5);
    child.stdin.write_all(b"now\n").await.unwrap();
    assert_eq!(exit(&mut child).await, Exit::Signal(9));
    assert!(!all.iter().all(Proc::is_gone));
    drop(child);
    wait_until("all are gone", || all.iter().all(Proc::is_gone));
}

#[tokio::test]
async fn a_kill_ends_the_tree_and_processes_that_ignore_sigterm() {
    let notes = Notes::new();
    let script = format!(
        r#"trap 'echo asked >>"$1.asked"' TERM; {TREE}; while :; do wait; sleep 1000; done"#
    );
    let mut child = start(&notes.script(&script)).await;
    let tree = notes.wait_for(4);
    let (leader, others) = tree.split_first().unwrap();

    child.hold.signal(StopStep::Terminate);
    wait_until("the others have obeyed", || {
        others.iter().all(Proc::is_gone)
    });
    let asked = notes.0.path().join("notes.asked");
    wait_until("it has been asked", || asked.exists());
    assert!(!leader.is_gone());

    child.hold.signal(StopStep::Kill);
    assert_eq!(exit(&mut child).await, Exit::Signal(9));
    // Once: many programs take a second signal for impatience.
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "asked\n");
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
