//! The policy for messages between a client's machine and an agent elsewhere.
//!
//! A remote agent works on the files of its own machine, unless an option gives it access to those
//! *here*; it is a foreign program that asks for files and commands. A [`MessagePolicy`] gets every
//! canonical message and decides whether it passes unchanged, changed, or not at all:
//! calls are allowed or denied by method, files are confined to the folders of the session, denied
//! capabilities are not announced, and paths are mapped to the other machine ([`PathMap`]).
//!
//! [`LoginPage`] is which pages an agent may have opened here, and what comes back from them.
//!
//! At the other end, the relay that starts the agent has a policy, too: [`FolderCheck`].
//!
//! Pure except for what [`Disk`] and the function of [`FolderCheck`] do. Messages are canonical
//! here; which agents are remote is decided in `cli`.
//!
//! # Why
//! *Applied in the conversation, between the two translators.* A dialect can spell a call in
//! another way; a check on the wire would miss it.
//!
//! *A name that only the client's dialect has is refused, whatever it means.* Nothing translates it
//! on its way to the client, which understands it as a call; and its content is in the dialect's
//! terms, which cannot be checked here.
//!
//! *A path is checked, not opened.* Between our check and the client's access a symbolic link can
//! be exchanged, but only by a program that can already write here; the agent cannot make links
//! unless it was allowed commands. The client opens the path that was checked.
//!
//! *`..` is refused in paths to files.* Where it leads depends on links, and no agent needs it.

mod capabilities;
mod decision;
mod folder_check;
mod login_page;
mod path;
mod path_fields;
mod path_map;
mod roots;
mod rules;

pub use decision::{Decision, MessagePolicy};
pub use folder_check::FolderCheck;
pub use login_page::{LoginPage, LoginRedirect};
pub use path_fields::PathFields;
pub use path_map::{FolderPair, PathMap};
pub use roots::Disk;
pub use rules::{MethodPattern, PolicyRules};
