//! Masking keys that nobody can foresee (RFC 6455, 10.3), a handful at a time.

use std::io;

use ring::rand::{SecureRandom as _, SystemRandom};

use super::frame::Mask;

/// Keys taken from the system at once.
const KEYS: usize = 32;

/// A source of masking keys.
pub(super) struct Masks {
    pool: [[u8; 4]; KEYS],
    /// Keys of the pool that are left.
    left: usize,
}

impl Masks {
    pub(super) const fn new() -> Self {
        Self {
            pool: [[0; 4]; KEYS],
            left: 0,
        }
    }

    /// The next key; an error when the system has no randomness.
    pub(super) fn next(&mut self) -> io::Result<Mask> {
        if self.left == 0 {
            SystemRandom::new()
                .fill(self.pool.as_flattened_mut())
                .map_err(|_| io::Error::other("the system has no random numbers"))?;
            self.left = KEYS;
        }
        self.left -= 1;
        Ok(Mask(self.pool[self.left]))
    }
}

/// Without the keys.
impl std::fmt::Debug for Masks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Masks").finish_non_exhaustive()
    }
}
