//! Random numbers of the operating system.

use std::io;

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom, SystemRandom};

/// Random bytes.
///
/// # Errors
/// When the system has none.
pub(super) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(bytes)
}

/// `N` random bytes in hexadecimal digits.
///
/// # Errors
/// As for [`random`].
pub(super) fn random_hex<const N: usize>() -> io::Result<String> {
    Ok(HEXLOWER.encode(&random::<N>()?))
}
