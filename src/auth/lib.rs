//! Authentication and admission of clients.
//!
//! Pure decisions about what a peer sends. `origin` checks where a request comes from and which
//! host it names. The `gate` authenticates a client by a `token` of the `keyring`, a certificate,
//! or its user as reported by the operating system; it gets new keys from its `key_source`, counts
//! the failed `attempts` of an address, and makes an admitted client a `principal`. `events`
//! reports all of this to observers, and `rate_limit` is the one token bucket of the program. `address` checks the addresses that a peer would have us call.
//! `local` is how a listener proves to its own user's programs that it runs on their machine. Time
//! is an argument.
//!
//! # Why
//!
//! **On loopback, a program of the same user needs no token.** A token in a file that this user can
//! read proves nothing more, and the operating system can report the user of a socket without one.
//! So the first steps need no copying, other users of the machine are kept out, and so are web
//! pages, by `origin`. Where the system cannot report it (another network namespace, systems other
//! than Linux) a token is needed, and also for requests that are marked as forwarded, because
//! another client may be behind them.
//!
//! **The right token is accepted however many wrong ones came before.** Only wrong ones are
//! answered with 429. A locked address would lock out every client behind it, and on loopback any
//! user of the machine could lock out all others; and 256 random bits cannot be guessed.
//!
//! **A request without credentials is not a failed attempt.** Clients first ask without and send a
//! token when they get a 401.

pub mod address;
mod attempts;
mod events;
mod gate;
mod key_source;
mod keyring;
mod local;
pub mod origin;
mod principal;
mod rate_limit;
mod token;

pub use attempts::{FailedAttempts, address_group};
pub use events::{AuthEvents, CredentialKind, RejectReason};
pub use gate::{
    AuthRequirement, Certificate, Credentials, Denial, Gate, GateRules, Now, Reachability,
};
pub use key_source::{KeySource, Keys, PassSource};
pub use keyring::{Key, Keyring, KeyringError, check_name, read_agents};
pub use local::{CHALLENGE, LocalKey, PROOF};
pub use principal::{Agents, AuthMethod, Grant, ONLY_AGENT, Principal};
pub use rate_limit::RateLimit;
pub use token::{Digest, Token};
