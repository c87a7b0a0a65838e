//! Small conversations, and the two players in them, without links and clocks.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::sync::Arc;
use std::time::Duration;

use acp_relay::jsonrpc::{Frame, Side};
use acp_relay::recording::replay::{
    Actor, ActorAction, Driver, DriverAction, ReplayRules, Script, Timeouts,
};

/// A whole conversation, one second a line: `>` the client, `<` the agent.
pub(super) const TALK: &str = r#"
> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"a"}}}
< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}
> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/old/ws","mcpServers":[]}}
< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-old"}}
> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-old","prompt":[{"type":"text","text":"hi"}]}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-old","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"in /old/ws/a"}}}}
< {"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s-old","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","kind":"allow_once","name":"Yes"},{"optionId":"n","kind":"reject_once","name":"No"}]}}
> {"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-old","update":{"sessionUpdate":"tool_call","toolCallId":"t"}}}
< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}
> {"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s-old","prompt":[{"type":"text","text":"long"}]}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-old","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}}}
> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s-old"}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-old","update":{"sessionUpdate":"usage_update","used":1}}}
< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}
"#;

/// The script of such a text.
pub(super) fn script(text: &str) -> Arc<Script> {
    let mut script = Script::default();
    let lines = text.lines().filter(|line| !line.is_empty());
    for (n, line) in (1..).zip(lines) {
        let (sender, words) = line.split_once(' ').unwrap();
        let from = match sender {
            ">" => Side::Client,
            "<" => Side::Agent,
            other => panic!("{other} is nobody"),
        };
        script.push(n, n * 1_000_000, from, Frame::from(words.to_owned()));
    }
    Arc::new(script)
}

/// A client that talks to the played agent.
pub(super) struct House {
    pub(super) actor: Actor,
    pub(super) now: Duration,
}

impl House {
    pub(super) fn of(text: &str, rules: ReplayRules) -> Self {
        Self {
            actor: Actor::new(script(text), rules),
            now: Duration::ZERO,
        }
    }

    /// Says something; what the agent says until it waits.
    pub(super) fn ask(&mut self, text: &str) -> Vec<String> {
        self.receive(text);
        self.listen()
    }

    /// Says something, and does not listen yet.
    pub(super) fn receive(&mut self, text: &str) {
        self.actor.receive(&Frame::from(text.to_owned()), self.now);
    }

    /// What the agent says until it waits for us.
    pub(super) fn listen(&mut self) -> Vec<String> {
        let mut received = Vec::new();
        loop {
            match self.actor.next(self.now) {
                ActorAction::Send(frame) => {
                    received.push(String::from_utf8(frame.as_bytes().to_vec()).unwrap());
                }
                ActorAction::Forward(frame) => received.push(format!("forwarded {frame:?}")),
                ActorAction::Wait(Some(until)) => {
                    assert!(until > self.now, "it waits for the past");
                    received.push(format!("after {:?}", until - self.now));
                    self.now = until;
                }
                ActorAction::Wait(None) => return received,
                ActorAction::Close => {
                    received.push("closed".to_owned());
                    return received;
                }
            }
        }
    }
}

/// The played client, and an agent that answers it.
pub(super) struct Guest {
    pub(super) driver: Driver,
    pub(super) now: Duration,
}

impl Guest {
    pub(super) fn of(text: &str) -> Self {
        let pace = Timeouts {
            settle: Duration::from_secs(1),
            response: Duration::from_secs(60),
        };
        Self {
            driver: Driver::new(script(text), pace),
            now: Duration::ZERO,
        }
    }

    /// The agent says these; what the client says until it waits, and how long it would.
    pub(super) fn receive(&mut self, lines: &[&str]) -> (Vec<String>, Option<Duration>) {
        for line in lines {
            let frame = Frame::from((*line).to_owned());
            self.driver.receive(&frame, self.now);
        }
        let mut reported = Vec::new();
        loop {
            match self.driver.next(self.now) {
                DriverAction::Send(frame) => {
                    reported.push(String::from_utf8(frame.as_bytes().to_vec()).unwrap());
                }
                DriverAction::Wait(until) => {
                    assert!(until > self.now, "it waits for the past");
                    return (reported, Some(until - self.now));
                }
                DriverAction::Done => return (reported, None),
            }
        }
    }
}
