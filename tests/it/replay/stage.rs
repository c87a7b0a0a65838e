//! A small conversation, and the played agent and client, without links and clocks.

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

/// A whole conversation, one second per line: `>` from the client, `<` from the agent.
pub(super) const CONVERSATION: &str = r#"
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

/// The script of a text like [`CONVERSATION`].
pub(super) fn script(text: &str) -> Arc<Script> {
    let mut script = Script::default();
    let lines = text.lines().filter(|line| !line.is_empty());
    for (n, line) in (1..).zip(lines) {
        let (sender, message) = line.split_once(' ').unwrap();
        let from = match sender {
            ">" => Side::Client,
            "<" => Side::Agent,
            other => panic!("{other} is no side"),
        };
        script.push(n, n * 1_000_000, from, Frame::from(message.to_owned()));
    }
    Arc::new(script)
}

/// The played agent, at a time that moves when it waits.
pub(super) struct PlayedAgent {
    pub(super) actor: Actor,
    pub(super) now: Duration,
}

impl PlayedAgent {
    pub(super) fn of(text: &str, rules: ReplayRules) -> Self {
        Self {
            actor: Actor::new(script(text), rules),
            now: Duration::ZERO,
        }
    }

    /// Sends a message to the agent; returns what the agent sends until it waits.
    pub(super) fn ask(&mut self, text: &str) -> Vec<String> {
        self.receive(text);
        self.output()
    }

    /// Sends a message to the agent, without reading the answer yet.
    pub(super) fn receive(&mut self, text: &str) {
        self.actor.receive(&Frame::from(text.to_owned()), self.now);
    }

    /// What the agent sends until it waits for the client.
    pub(super) fn output(&mut self) -> Vec<String> {
        let mut received = Vec::new();
        loop {
            match self.actor.next(self.now) {
                ActorAction::Send(frame) => {
                    received.push(String::from_utf8(frame.as_bytes().to_vec()).unwrap());
                }
                ActorAction::Forward(frame) => received.push(format!("forwarded {frame:?}")),
                ActorAction::Wait(Some(until)) => {
                    assert!(until > self.now, "the wait is already over");
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

/// The played client.
pub(super) struct PlayedClient {
    pub(super) driver: Driver,
    pub(super) now: Duration,
}

impl PlayedClient {
    pub(super) fn of(text: &str) -> Self {
        let timeouts = Timeouts {
            settle: Duration::from_secs(1),
            response: Duration::from_secs(60),
        };
        Self {
            driver: Driver::new(script(text), timeouts),
            now: Duration::ZERO,
        }
    }

    /// Sends the lines to the client; returns what the client sends until it waits, and how long it
    /// would wait.
    pub(super) fn receive(&mut self, lines: &[&str]) -> (Vec<String>, Option<Duration>) {
        for line in lines {
            let frame = Frame::from((*line).to_owned());
            self.driver.receive(&frame, self.now);
        }
        let mut sent = Vec::new();
        loop {
            match self.driver.next(self.now) {
                DriverAction::Send(frame) => {
                    sent.push(String::from_utf8(frame.as_bytes().to_vec()).unwrap());
                }
                DriverAction::Wait(until) => {
                    assert!(until > self.now, "the wait is already over");
                    return (sent, Some(until - self.now));
                }
                DriverAction::Done => return (sent, None),
            }
        }
    }
}
