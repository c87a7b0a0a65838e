//! The state of a conversation between a v2 client and a v1 agent.
//!
//! `turns` has prompts and the state of a session, `updates` what the agent shows (`messages`,
//! `content`, `tools`, `diffs`, `terminals`), `permissions` what it asks, `options` the config
//! options that stand for modes, `sessions` the methods that an agent may lack.

pub(super) mod content;
mod diffs;
mod echo;
mod held;
mod messages;
mod options;
mod parts;
mod permissions;
mod session;
mod sessions;
mod state;
mod terminals;
mod tools;
mod turns;
mod updates;

pub(super) use state::ToV2;
