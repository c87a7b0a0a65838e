//! Notifications for sessions that the client does not know yet, over random schedules: each arrives
//! once, in the order of its session, and behind the answer that names the session.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_relay::conversation::{Conversation, DialectOptions, LinkTraits, Outbox};
use acp_relay::jsonrpc::{Frame, Limits, Side};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The sessions of a schedule, by the number of the request that makes them.
const SESSIONS: u8 = 4;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The client asks for a session, or the agent answers or refuses that.
    Make(u8),
    Answer(u8),
    Refuse(u8),
    /// The agent sends a message of that session.
    Notify(u8),
    Ask(u8),
    Wait(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let session = 0..SESSIONS;
    let step = prop_oneof![
        2 => session.clone().prop_map(Step::Make),
        2 => session.clone().prop_map(Step::Answer),
        1 => session.clone().prop_map(Step::Refuse),
        6 => session.clone().prop_map(Step::Notify),
        1 => session.prop_map(Step::Ask),
        1 => (0..40_u8).prop_map(Step::Wait),
    ];
    vec(step, 0..60)
}

/// Plays a schedule; returns what the agent sent and what the client received, both in order.
fn play(steps: &[Step], limits: &Arc<Limits>) -> [Vec<Value>; 2] {
    let traits = LinkTraits::default();
    let mut core = Conversation::new(
        Arc::clone(limits),
        traits,
        DialectOptions::default(),
        Instant::now(),
    );
    let (mut out, mut now) = (Outbox::new(limits), Instant::now());
    let (mut open, mut sent, mut received) = (HashSet::new(), Vec::new(), Vec::new());
    let last = (0..SESSIONS).map(Step::Answer);
    for (n, step) in steps.iter().copied().chain(last).enumerate() {
        let (from, message) = match step {
            Step::Make(of) if open.insert(of) => {
                (Side::Client, json!({"id": of, "method": "session/new"}))
            }
            Step::Answer(of) if open.remove(&of) => {
                let session = format!("s{of}");
                (
                    Side::Agent,
                    json!({"id": of, "result": {"sessionId": session}}),
                )
            }
            Step::Refuse(of) if open.remove(&of) => {
                let error = json!({"code": -32603, "message": "no"});
                (Side::Agent, json!({"id": of, "error": error}))
            }
            Step::Notify(of) => {
                let params = json!({"sessionId": format!("s{of}"), "n": n});
                let method = "session/update";
                (Side::Agent, json!({"method": method, "params": params}))
            }
            Step::Ask(of) => {
                let params = json!({"sessionId": format!("s{of}"), "n": n});
                let method = "session/request_permission";
                let ask = json!({"id": n + 1000, "method": method, "params": params});
                (Side::Agent, ask)
            }
            Step::Wait(seconds) => {
                now += Duration::from_secs(seconds.into());
                if core.poll_timeout().is_some_and(|at| at <= now) {
                    core.handle_timeout(now, &mut out);
                }
                continue;
            }
            _ => continue,
        };
        if from == Side::Agent {
            sent.push(message.clone());
        }
        let frame = Frame::from(message.to_string().into_bytes());
        core.handle_frame(from, frame, now, &mut out);
        let lane = std::iter::from_fn(|| out.pop(Side::Client));
        received.extend(
            lane.map(|frame| -> Value { serde_json::from_slice(frame.as_bytes()).unwrap() }),
        );
    }
    [sent, received]
}

/// The names of the notes and the count of frames for the client after a message.
fn after(core: &mut Conversation, from: Side, message: &Value) -> (Vec<&'static str>, usize) {
    let mut out = Outbox::new(&Limits::default());
    let frame = Frame::from(message.to_string().into_bytes());
    core.handle_frame(from, frame, Instant::now(), &mut out);
    let notes = std::iter::from_fn(|| out.pop_note()).map(|note| note.name());
    let notes = notes.collect();
    (notes, std::iter::from_fn(|| out.pop(Side::Client)).count())
}

#[test]
fn nothing_is_held_while_too_many_sessions_are_made() {
    let limits = Arc::new(Limits::default());
    let (traits, dialects) = (LinkTraits::default(), DialectOptions::default());
    let mut core = Conversation::new(limits, traits, dialects, Instant::now());
    let make = |id| json!({"jsonrpc": "2.0", "id": id, "method": "session/new"});
    let update = json!({"jsonrpc": "2.0", "method": "_x", "params": {"sessionId": "s"}});
    for id in 0..64 {
        after(&mut core, Side::Client, &make(id));
    }
    assert_eq!(
        after(&mut core, Side::Agent, &update),
        (vec!["held_update"], 0)
    );
    // What waits goes on, and nothing more waits.
    assert_eq!(
        after(&mut core, Side::Client, &make(64)),
        (vec!["early_update"], 1)
    );
    assert_eq!(after(&mut core, Side::Client, &make(65)), (vec![], 0));
    assert_eq!(after(&mut core, Side::Agent, &update), (vec![], 1));
    for id in 0..66 {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"sessionId": format!("s{id}")}});
        assert_eq!(after(&mut core, Side::Agent, &answer), (vec![], 1));
    }
    after(&mut core, Side::Client, &make(66));
    assert_eq!(
        after(&mut core, Side::Agent, &update),
        (vec!["held_update"], 0)
    );
}

/// The session of a message of the agent.
fn session(message: &Value) -> Option<&Value> {
    message.pointer("/params/sessionId")
}

/// The messages of each session, in order.
fn by_session(messages: &[Value]) -> HashMap<String, Vec<&Value>> {
    let mut all: HashMap<String, Vec<&Value>> = HashMap::new();
    for message in messages {
        let key = session(message)
            .or_else(|| message.get("id"))
            .unwrap()
            .to_string();
        all.entry(key).or_default().push(message);
    }
    all
}

proptest! {
    #[test]
    fn nothing_is_lost_or_repeated_and_each_session_keeps_its_order(
        steps in steps(),
        queue_frames in 1..40_usize,
    ) {
        let limits = Arc::new(Limits { queue_frames, ..Limits::default() });
        let [sent, received] = play(&steps, &limits);
        prop_assert_eq!(sent.len(), received.len());
        prop_assert_eq!(by_session(&sent), by_session(&received));
    }

    #[test]
    fn within_the_bounds_the_answer_comes_first(steps in steps()) {
        let is_bounded = |step: &Step| !matches!(step, Step::Wait(_) | Step::Ask(_) | Step::Refuse(_));
        let steps: Vec<Step> = steps.into_iter().filter(is_bounded).collect();
        let [_, received] = play(&steps, &Arc::default());
        let mut first = HashMap::new();
        for (at, message) in received.iter().enumerate() {
            if let Some(of) = session(message).or_else(|| message.pointer("/result/sessionId")) {
                first.entry(of.to_string()).or_insert((at, message));
            }
        }
        // A session whose request was not open when it was named may have been told before.
        let made: HashSet<String> = steps.iter().scan(HashSet::new(), |open, step| {
            Some(match step {
                Step::Make(of) => { open.insert(*of); None }
                Step::Answer(of) => { open.remove(of); None }
                Step::Notify(of) if !open.contains(of) => Some(format!("\"s{of}\"")),
                _ => None,
            })
        }).flatten().collect();
        let named = received.iter().filter_map(|one| one.pointer("/result/sessionId"));
        let answered: HashSet<String> = named.map(Value::to_string).collect();
        for (of, (at, message)) in first {
            if answered.contains(&of) && !made.contains(&of) {
                prop_assert!(message.get("result").is_some(), "{}: {}: {:?}", of, at, received);
            }
        }
    }
}
