//! What a link's parts answer is what the links over them answer, unless they decide themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use acp_relay::cli::{StderrTargets, agent_hold, restartable};
use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::transport::{
    Exit, FrameStream, LinkError, LinkGuard, Presence, PresenceCallback, Restart, Restarts,
    StderrCallback, StopStep,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::pairs::decorated;
use crate::support::link::{run, setup};

/// A part whose answers are not those of a part that has nothing to answer.
#[derive(Clone, Default)]
struct Probe(Arc<Mutex<Vec<StopStep>>>);

impl FrameStream for Probe {
    fn poll_next(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        Poll::Pending
    }

    fn poll_lost(&mut self, _cx: &mut Context<'_>) -> Poll<LinkError> {
        Poll::Ready(LinkError::Killed)
    }

    fn ended_cleanly(&self) -> bool {
        false
    }

    fn has_progressed(&mut self) -> bool {
        true
    }

    fn tells_loss(&self) -> bool {
        true
    }
}

impl LinkGuard for Probe {
    fn poll_exit(&mut self, _cx: &mut Context<'_>) -> Poll<Exit> {
        Poll::Ready(Exit::Code(7))
    }

    fn signal(&mut self, step: StopStep) {
        self.0.lock().push(step);
    }

    fn capture_stderr(&mut self, callback: StderrCallback) {
        callback(b"printed");
    }

    fn watch_presence(&mut self, callback: PresenceCallback) {
        callback(Presence::Lost("far"));
    }

    fn longest(&self) -> Option<usize> {
        Some(5)
    }

    fn away(&self) -> Option<(Instant, usize)> {
        Some((Instant::now(), 3))
    }

    fn unacknowledged(&self) -> usize {
        4
    }

    fn log_redaction(&self) -> fn(&str) -> String {
        |text| text.to_uppercase()
    }

    fn restart(&mut self) -> Option<Restart> {
        Some(Box::pin(async { Err("not now".to_owned()) }))
    }

    fn restarts(&self) -> Restarts {
        Restarts::Always
    }

    fn is_relay(&self) -> bool {
        true
    }

    fn stderr_tail(&self) -> String {
        "the end".to_owned()
    }
}

/// What a guard answers, by method.
fn guarded_by(guard: &mut dyn LinkGuard, probe: &Probe) -> BTreeMap<&'static str, String> {
    let mut cx = Context::from_waker(Waker::noop());
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let note = |heard: &Arc<Mutex<Vec<String>>>| {
        let heard = Arc::clone(heard);
        move |what: String| heard.lock().push(what)
    };
    let stderr = note(&heard);
    guard.capture_stderr(Box::new(move |text| {
        stderr(String::from_utf8_lossy(text).into_owned());
    }));
    let presence = note(&heard);
    guard.watch_presence(Box::new(move |state| presence(format!("{state:?}"))));
    guard.signal(StopStep::Kill);
    BTreeMap::from([
        ("callbacks", format!("{:?}", heard.lock())),
        (
            "signal",
            format!("{:?}", std::mem::take(&mut *probe.0.lock())),
        ),
        ("poll_exit", format!("{:?}", guard.poll_exit(&mut cx))),
        ("longest", format!("{:?}", guard.longest())),
        (
            "away",
            format!("{:?}", guard.away().map(|(_, bytes)| bytes)),
        ),
        ("unacknowledged", guard.unacknowledged().to_string()),
        ("log_redaction", guard.log_redaction()("text")),
        ("restart", guard.restart().is_some().to_string()),
        ("restarts", format!("{:?}", guard.restarts())),
        ("is_relay", guard.is_relay().to_string()),
        ("stderr_tail", guard.stderr_tail()),
    ])
}

#[test]
fn guards_answer_as_those_that_they_guard() {
    let probe = Probe::default();
    let plain = guarded_by(&mut probe.clone(), &probe);
    let hold: Box<dyn LinkGuard> = Box::new(probe.clone());
    let again = restartable(
        hold,
        &"exec:agent".parse().unwrap(),
        &setup(),
        Restarts::Always,
    );
    let hold = Box::new(probe.clone());
    let agent = agent_hold(hold, StderrTargets::default());
    // With what each decides itself.
    let mut all: Vec<(Box<dyn LinkGuard>, &[&str])> = vec![
        (Box::new(again), &[]),
        (Box::new(agent), &["log_redaction"]),
    ];
    run(async {
        for (scheme, link) in decorated(|link| link.guard = Box::new(probe.clone())).await {
            match scheme {
                "guarded" => all.push((link.guard, &[])),
                "placed" => all.push((link.guard, &[])),
                _ => {}
            }
        }
        for (mut guard, own) in all {
            let mut expected = plain.clone();
            let mut answers = guarded_by(&mut *guard, &probe);
            for name in own {
                expected.remove(name);
                answers.remove(name);
            }
            assert_eq!(answers, expected);
        }
    });
}

#[test]
fn streams_answer_as_those_that_they_read() {
    run(async {
        for (scheme, mut link) in decorated(|link| link.rx = Box::new(Probe::default())).await {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(link.rx.poll_lost(&mut cx).is_ready(), "{scheme}");
            // It asks its client's link itself.
            if scheme != "kept" {
                let answers = (link.rx.has_progressed(), link.rx.tells_loss());
                assert_eq!(answers, (true, true), "{scheme}");
                assert!(!link.rx.ended_cleanly(), "{scheme}");
            }
        }
    });
}
