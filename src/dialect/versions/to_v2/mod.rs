//! The state of a conversation between a v2 client and a v1 agent.
//!
//! `state` has the messages of both sides, `turns` the prompts and the state of a session, `updates`
//! what the agent shows (`messages`, `tools`, `diffs`), `options` the config options that stand for
//! modes, `sessions` the methods that an agent may lack.

mod diffs;
mod messages;
mod options;
mod session;
mod sessions;
mod state;
mod tools;
mod turns;
mod updates;

pub(super) use state::ToV2;
