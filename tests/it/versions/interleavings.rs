//! Random interleavings of turns, cancels, permissions and deaths of the agent in virtual time: whatever
//! the order, each request is answered once on either side, and nothing else is.

#![expect(
    clippy::needless_pass_by_value,
    reason = "callers make the message in place"
)]

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use acp_relay::conversation::{
    Command, Conversation, DialectChoice, DialectOptions, LinkTraits, Note, Outbox,
};
use acp_relay::dialect::Library;
use acp_relay::dialect::versions::VersionPolicies;
use acp_relay::jsonrpc::{Exit, Frame, Limits, Side};
use serde_json::{Value, json};

/// How many conversations of each topology; `.ci/long` sets more in this variable.
const CONVERSATIONS: u64 = 1000;
const VARIABLE: &str = "ACP_RELAY_TEST_CONVERSATIONS";

/// A generator of numbers (xorshift).
struct Dice(u64);

/// A side: what it has asked and what it was asked.
#[derive(Default)]
struct Actor {
    next_id: u64,
    /// Its open requests, with the method of each.
    asked: BTreeMap<String, String>,
    /// Requests it has not answered, with the method and the session of each.
    owes: Vec<(Value, String)>,
}

/// The relay between the two, and what goes wrong.
struct World {
    relay: Conversation,
    out: Outbox,
    now: Instant,
    /// The side that speaks v2, if any; the other ones speak v1.
    v2: Option<Side>,
    actors: [Actor; 2],
    faults: Vec<String>,
    log: Vec<String>,
    /// Turns and permissions that the relay has ended.
    ended: usize,
    /// Sessions that were brought back, once the agent may die; and whether it is dying.
    restored: usize,
    may_die: bool,
    is_dying: bool,
}

#[test]
fn each_request_of_a_client_and_an_agent_of_v1_is_answered_once() {
    let ended = seeds().map(|seed| World::new(None).play(seed));
    assert!(ended.sum::<usize>() > 0, "the relay has ended no turn");
}

#[test]
fn each_request_of_a_v1_client_and_a_v2_agent_is_answered_once() {
    let ended = seeds().map(|seed| World::new(Some(Side::Agent)).play(seed));
    assert!(ended.sum::<usize>() > 0, "the relay has ended no turn");
}

#[test]
fn each_request_of_a_v2_client_and_a_v1_agent_is_answered_once() {
    let ended = seeds().map(|seed| World::new(Some(Side::Client)).play(seed));
    assert!(ended.sum::<usize>() > 0, "the relay has ended no turn");
}

#[test]
fn each_request_is_answered_once_though_the_agent_dies_and_is_started_again() {
    let restored = seeds().map(|seed| {
        let mut world = World::of(None, true);
        world.run(seed);
        world.restored
    });
    assert!(restored.sum::<usize>() > 0, "no session was brought back");
}

#[test]
fn the_name_of_a_tool_call_is_stated_where_it_is_not_the_title() {
    let shown = |call: Value| {
        let mut world = World::new(Some(Side::Agent));
        let mut update =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "name": "sh"});
        let members = update.as_object_mut().unwrap();
        members.extend(call.as_object().unwrap().clone());
        let params = json!({"sessionId": "s", "update": update});
        world.tell(Side::Agent, "session/update", params);
        let sent = world.log.pop().unwrap();
        let sent: Value = serde_json::from_str(sent.strip_prefix("client < ").unwrap()).unwrap();
        sent["params"]["update"]["_meta"]["acp-relay"]["name"].clone()
    };
    assert_eq!(shown(json!({"title": "Runs make"})), "sh");
    assert_eq!(shown(json!({})), Value::Null, "it is the title");
}

#[test]
fn options_that_an_agent_states_in_parts_are_bounded() {
    let mut world = World::new(Some(Side::Client));
    for part in 0..10 {
        let params = json!({"sessionId": "s", "configId": "x", "type": "id", "value": "v"});
        world.ask(Side::Client, "session/set_config_option", params);
        let option = json!({"id": format!("o{part}"), "name": "n".repeat(200_000), "type": "select",
                            "currentValue": "a", "options": []});
        world.answer(
            Side::Agent,
            0,
            &json!({"result": {"configOptions": [option]}}),
        );
    }
    let whole = world.log.pop().unwrap();
    assert!(
        (800_000..1_200_000).contains(&whole.len()),
        "{}",
        whole.len()
    );
    assert!(world.faults.is_empty(), "{:?}", world.faults);
}

fn seeds() -> RangeInclusive<u64> {
    let wanted = std::env::var(VARIABLE).ok();
    1..=wanted.map_or(CONVERSATIONS, |count| count.parse().unwrap())
}

impl World {
    fn new(v2: Option<Side>) -> Self {
        Self::of(v2, false)
    }

    /// A world in which both are initialised, with the session `s`.
    fn of(v2: Option<Side>, may_die: bool) -> Self {
        static LIBRARY: OnceLock<Arc<Library>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| Arc::new(Library::builtin()));
        let limits = Arc::new(Limits::default());
        let plain = DialectChoice::Canonical;
        let dialects = DialectOptions::new(library, &plain, &plain)
            .unwrap()
            .with_versions(Arc::clone(&limits), VersionPolicies::default(), [None; 2]);
        let traits = LinkTraits {
            agent_is_child: may_die,
            agent_half_close: may_die,
            ..LinkTraits::default()
        };
        let mut world = Self {
            out: Outbox::new(&limits),
            relay: Conversation::new(limits, traits, dialects, Instant::now())
                .with_restarts(may_die),
            now: Instant::now(),
            v2,
            actors: Default::default(),
            faults: Vec::new(),
            log: Vec::new(),
            ended: 0,
            restored: 0,
            may_die,
            is_dying: false,
        };
        let hello = match v2 {
            Some(Side::Client) => {
                json!({"protocolVersion": 2, "info": {"name": "c", "version": "1"}, "capabilities": {}})
            }
            _ => json!({"protocolVersion": 1, "clientInfo": {"name": "c", "version": "1"}}),
        };
        let welcome = match v2 {
            Some(Side::Client) | None => {
                json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true, "sessionCapabilities": {"close": {}}}})
            }
            Some(Side::Agent) => {
                json!({"protocolVersion": 2, "info": {"name": "a", "version": "1"},
                        "capabilities": {"session": {}}, "authMethods": []})
            }
        };
        world.ask(Side::Client, "initialize", hello);
        world.answer(Side::Agent, 0, &json!({ "result": welcome }));
        let folder = json!({"cwd": "/w", "mcpServers": []});
        world.ask(Side::Client, "session/new", folder);
        world.answer(Side::Agent, 0, &json!({"result": {"sessionId": "s"}}));
        assert_eq!(world.actors[0].asked.len(), 0, "{:?}", world.log);
        world
    }

    /// Returns how many turns and permissions the relay has ended.
    fn play(mut self, seed: u64) -> usize {
        self.run(seed);
        self.ended
    }

    fn run(&mut self, seed: u64) {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let agent_is_v2 = self.v2 == Some(Side::Agent);
        for _ in 0..dice.up_to(30) {
            match dice.up_to(if self.may_die { 16 } else { 14 }) {
                0..=2 => {
                    let text = json!([{"type": "text", "text": "hello"}]);
                    self.ask(
                        Side::Client,
                        "session/prompt",
                        json!({"sessionId": "s", "prompt": text}),
                    );
                }
                3 => self.tell(Side::Client, "session/cancel", json!({"sessionId": "s"})),
                4 => self.cancel_one(Side::Client, &mut dice),
                5 => self.answer_one(Side::Client, &mut dice),
                6 | 7 => self.answer_one(Side::Agent, &mut dice),
                8 if agent_is_v2 => self.state(&mut dice),
                8 | 9 => self.update(&mut dice),
                10 => self.permission(agent_is_v2),
                11 if dice.up_to(4) == 0 => {
                    self.ask(Side::Client, "session/close", json!({"sessionId": "s"}));
                }
                11 => self.cancel_one(Side::Agent, &mut dice),
                12 => self.wait(Duration::from_millis(dice.up_to(700))),
                14 | 15 => self.die(),
                _ => self.wait(Duration::from_secs(dice.up_to(70))),
            }
        }
        // Everybody finishes.
        for _ in 0..40 {
            if self.is_dying {
                self.die();
            }
            for side in [Side::Client, Side::Agent] {
                while !self.actors[side as usize].owes.is_empty() {
                    self.answer_one(side, &mut dice);
                }
            }
            if agent_is_v2 {
                self.say_state("running", Value::Null);
                self.say_state("idle", json!("end_turn"));
            }
            self.wait(Duration::from_secs(1));
            if self
                .actors
                .iter()
                .all(|actor| actor.asked.is_empty() && actor.owes.is_empty())
            {
                break;
            }
        }
        for (actor, side) in self.actors.iter().zip([Side::Client, Side::Agent]) {
            // An agent that the relay has given up reads no answers.
            let is_read = side == Side::Client || !self.relay.is_ending();
            for (id, method) in actor.asked.iter().filter(|_| is_read) {
                self.faults
                    .push(format!("{method} ({id}) of the {side} is not answered"));
            }
        }
        assert!(
            self.faults.is_empty(),
            "seed {seed}: {:#?}\n{:#?}",
            self.faults,
            self.log
        );
    }

    /// The agent ends its stream; the second time, its process.
    fn die(&mut self) {
        if self.is_dying {
            self.log.push("the agent exits".to_owned());
            self.is_dying = false;
            self.actors[Side::Agent as usize] = Actor::default();
            let exit = Exit::Code(1);
            self.relay
                .handle_exit(exit, String::new(), self.now, &mut self.out);
        } else if self.relay.reads(Side::Agent) {
            self.log.push("the agent ends its stream".to_owned());
            self.is_dying = true;
            let how = "ended its stream".to_owned();
            self.relay
                .handle_eof(Side::Agent, how, self.now, &mut self.out);
        }
        self.deliver();
    }

    fn ask(&mut self, from: Side, method: &str, params: Value) {
        if !self.relay.reads(from) {
            return;
        }
        let actor = &mut self.actors[from as usize];
        actor.next_id += 1;
        let id = json!(format!("{from}-{}", actor.next_id));
        actor.asked.insert(id.to_string(), method.to_owned());
        self.send(
            from,
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        );
    }

    fn tell(&mut self, from: Side, method: &str, params: Value) {
        self.send(
            from,
            json!({"jsonrpc": "2.0", "method": method, "params": params}),
        );
    }

    fn update(&mut self, dice: &mut Dice) {
        let update = match dice.up_to(3) {
            0 => {
                json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "x"}})
            }
            1 => {
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "T", "status": "in_progress"})
            }
            _ => {
                json!({"sessionUpdate": "user_message_chunk", "messageId": "u", "content": {"type": "text", "text": "hello"}})
            }
        };
        self.tell(
            Side::Agent,
            "session/update",
            json!({"sessionId": "s", "update": update}),
        );
    }

    fn state(&mut self, dice: &mut Dice) {
        match dice.up_to(4) {
            0 => self.say_state("running", Value::Null),
            1 => self.say_state("requires_action", Value::Null),
            2 => self.say_state("idle", Value::Null),
            _ => self.say_state("idle", json!("cancelled")),
        }
    }

    fn say_state(&mut self, state: &str, reason: Value) {
        let mut update = json!({"sessionUpdate": "state_update", "state": state});
        if !reason.is_null() {
            update["stopReason"] = reason;
        }
        self.tell(
            Side::Agent,
            "session/update",
            json!({"sessionId": "s", "update": update}),
        );
    }

    fn permission(&mut self, is_v2: bool) {
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
        let params = match is_v2 {
            true => json!({"sessionId": "s", "title": "May I?", "options": options,
                           "subject": {"type": "tool_call", "toolCall": {"toolCallId": "t"}}}),
            false => json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options}),
        };
        self.ask(Side::Agent, "session/request_permission", params);
    }

    /// Cancels one of the open requests of a side.
    fn cancel_one(&mut self, from: Side, dice: &mut Dice) {
        let open: Vec<_> = self.actors[from as usize].asked.keys().cloned().collect();
        if let Some(id) = dice.one_of(&open) {
            let id: Value = serde_json::from_str(id).unwrap();
            self.tell(from, "$/cancel_request", json!({ "requestId": id }));
        }
    }

    /// Answers one of the requests that a side was asked.
    fn answer_one(&mut self, from: Side, dice: &mut Dice) {
        let owes = &self.actors[from as usize].owes;
        let Some(at) = (!owes.is_empty()).then(|| dice.up_to(owes.len() as u64) as usize) else {
            return;
        };
        let is_v2 = self.v2 == Some(from);
        let body = match (&self.actors[from as usize].owes[at].1[..], dice.up_to(8)) {
            (_, 0) => json!({"error": {"code": -32800, "message": "cancelled"}}),
            (_, 1) => json!({"error": {"code": -32603, "message": "failed"}}),
            ("initialize", _) => json!({"result": {"protocolVersion": 1, "agentCapabilities": {
                "loadSession": true, "sessionCapabilities": {"close": {}}}}}),
            ("session/prompt", _) if is_v2 => json!({"result": {"messageId": "u"}}),
            ("session/prompt", 2) => json!({"result": {"stopReason": "cancelled"}}),
            ("session/prompt", _) => json!({"result": {"stopReason": "end_turn"}}),
            ("session/request_permission", 2..=4) => {
                json!({"result": {"outcome": {"outcome": "cancelled"}}})
            }
            ("session/request_permission", _) => {
                json!({"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})
            }
            _ => json!({"result": {}}),
        };
        self.answer(from, at, &body);
    }

    fn answer(&mut self, from: Side, at: usize, body: &Value) {
        let (id, _) = self.actors[from as usize].owes.remove(at);
        let mut message = json!({"jsonrpc": "2.0", "id": id});
        for (name, value) in body.as_object().unwrap() {
            message[name] = value.clone();
        }
        self.send(from, message);
    }

    fn send(&mut self, from: Side, message: Value) {
        if !self.relay.reads(from) {
            return;
        }
        let text = message.to_string();
        self.log.push(format!("{from} > {text}"));
        self.relay
            .handle_frame(from, Frame::from(text), self.now, &mut self.out);
        self.deliver();
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        let mut rounds = 0;
        while let Some(at) = self.relay.poll_timeout().filter(|at| *at <= until) {
            rounds += 1;
            assert!(rounds < 1000, "a deadline stays: {:#?}", self.log);
            self.now = self.now.max(at);
            self.relay.handle_timeout(self.now, &mut self.out);
            self.deliver();
        }
        self.now = until;
    }

    /// Gives both what the relay sends.
    fn deliver(&mut self) {
        while let Some(command) = self.out.pop_command() {
            self.log.push(format!("{command:?}"));
            match command {
                Command::RestartAgent => {
                    self.is_dying = false;
                    self.actors[Side::Agent as usize] = Actor::default();
                }
                Command::Kill => self.actors[Side::Agent as usize] = Actor::default(),
                Command::Terminate => assert!(self.may_die, "{:?}", self.log),
            }
        }
        for side in [Side::Client, Side::Agent] {
            while let Some(frame) = self.out.pop(side) {
                let message: Value = serde_json::from_slice(frame.as_bytes()).unwrap();
                self.log.push(format!("{side} < {message}"));
                let asked: Vec<String> = self.actors[Side::Client as usize]
                    .asked
                    .keys()
                    .cloned()
                    .collect();
                let actor = &mut self.actors[side as usize];
                let id = &message["id"];
                match message["method"].as_str() {
                    Some(method) if !id.is_null() => {
                        if actor.owes.iter().any(|(known, _)| known == id) {
                            self.faults.push(format!("the {side} is asked {id} twice"));
                        }
                        // Without a conversion, ids are the same on both sides.
                        let has_cancelled = |(known, of): &(Value, String)| {
                            of == method && !asked.contains(&known.to_string())
                        };
                        if method == "session/prompt"
                            && self.v2.is_none()
                            && actor.owes.iter().any(has_cancelled)
                        {
                            self.faults.push(format!(
                                "{id} is a prompt before the end of a cancelled turn"
                            ));
                        }
                        actor.owes.push((id.clone(), method.to_owned()));
                    }
                    Some(_) => {}
                    None if actor.asked.remove(&id.to_string()).is_some() => {}
                    None => self
                        .faults
                        .push(format!("the {side} has not asked {id}: {message}")),
                }
            }
        }
        while let Some(note) = self.out.pop_note() {
            self.ended += usize::from(matches!(note, Note::Cancelled { .. }));
            self.restored += usize::from(matches!(note, Note::SessionRestored));
        }
    }
}

impl Dice {
    /// A number below `end`.
    fn up_to(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let at = self.up_to(all.len() as u64) as usize;
        all.get(at)
    }
}
