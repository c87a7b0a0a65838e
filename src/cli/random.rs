//! Random numbers of the operating system.

use ring::rand::{SecureRandom, SystemRandom};

/// Random bytes; `None` if the system has none.
pub(super) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}
