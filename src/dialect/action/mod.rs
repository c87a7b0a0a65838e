//! Named actions: a closed list of transformations that need a state machine and are therefore
//! Rust.
//!
//! Tables call and combine them with `do`; they cannot define any. Reading, an action works on the
//! canonical message that the rows have made; writing, on the canonical message before the rows.

mod confirm;
mod context;
mod legacy;
mod mode;
mod model;
mod normalize;
mod option;
mod repair;
mod run;
mod state;
mod todo;
mod turn;

pub(super) use context::ActionContext;
pub(super) use state::{ActionState, Legacy, WAITING, WAITING_BYTES};
