//! The state of a conversation between a v2 agent and a v1 client.
//!
//! `state` has the messages of both sides, `requests` those of the client and their answers.
//! `session` has what the agent shows of a session (`messages`, `tools`, `diffs`, `terminals`,
//! `plans`, `options`), `turns` its prompts, `permissions` what it asks.

mod diffs;
mod messages;
mod options;
mod patch;
mod permissions;
mod plans;
mod requests;
mod session;
mod sessions;
mod state;
mod terminals;
mod tools;
mod turns;

pub(super) use state::ToV1;
