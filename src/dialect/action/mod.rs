//! Named actions: a closed list of transformations that need a state machine and are therefore
//! Rust.
//!
//! Tables call and combine them with `do`; they cannot define any. Reading, an action works on the
//! canonical message that the rows have made; writing, on the canonical message before the rows.
//! `table::Action` declares them, `run` has an arm for each.

mod confirm;
mod legacy;
mod normalize;
mod options;
mod repair;
mod run;
mod state;
mod terminals;
mod todo;
mod turn;

pub(super) use options::{mode_list, model_list};
pub(super) use state::ActionState;
