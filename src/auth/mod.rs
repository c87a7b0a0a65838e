//! Who may come in.
//!
//! Pure judgements about what a peer says of itself. `origin` judges where a request comes from and
//! whom it wants. The `gate` judges who is there, by a `token` of the `keyring`, a certificate, or
//! what the operating system says; it asks the `source` of its keys for new ones, counts the failed
//! `attempts` of an address, and calls whom it lets in a `principal`. A `witness` hears of all of them.
//! `inner` judges where a peer would have us call. `local` is how a listener proves to its own user's
//! programs that it runs on their machine. Time is an argument. Not here: sockets and files,
//! and what is answered to those who may not (see `transport`).
//!
//! # Why
//!
//! **On loopback, a program of the same user needs no token.** A token in a file that this user
//! can read shows nothing else than that, and the operating system can say it without one: it knows
//! whose socket is at the other end. So the first five minutes need no copying, other users of the
//! machine are kept out all the same, and so are web pages, by `origin`. Where the system cannot
//! say it (another network namespace, other systems than Linux) a token is needed, and so it is for
//! what somebody else's request may be behind: one that says that it was forwarded.
//!
//! **The right token is good however often others were wrong.** Only what is wrong is answered
//! with 429. To lock an address out would let anybody behind it, and on loopback any user of the
//! machine, lock out all others; and 256 random bits are not found by guessing.
//!
//! **A request that shows nothing is no failed attempt.** Clients ask first and bring a token when
//! they are told to.

mod attempts;
mod gate;
pub mod inner;
mod keyring;
mod local;
pub mod origin;
mod principal;
mod source;
mod token;
mod witness;

pub use attempts::{Attempts, neighbourhood};
pub use gate::{Admission, Certificate, Claim, Denial, Gate, Keys, Moment, Place, Rules};
pub use keyring::{Key, Keyring, Unreadable, check_name, read_agents};
pub use local::{CHALLENGE, LocalKey, PROOF};
pub use principal::{Agents, Grant, KeyId, Means, ONLY_AGENT, Principal, Shown};
pub use source::Source;
pub use token::{Digest, Token};
pub use witness::{Proof, Turned, Witness};
