//! The syntax of an agent's name.
//!
//! Clients use it in the path of an address, so it has only characters that need no escape there,
//! and cannot be mistaken for a folder or an option.

/// Longest name, in bytes.
const LONGEST: usize = 64;

/// Rejects an invalid name.
///
/// # Errors
/// Why, as a clause.
pub(in crate::cli) fn check_name(name: &str) -> Result<(), &'static str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() {
        Err("it is empty")
    } else if name.len() > LONGEST {
        Err("it is longer than 64 bytes")
    } else if !name.bytes().all(plain) {
        Err("only letters, digits and - _ . are allowed in it")
    } else if !name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        Err("it does not begin with a letter or a digit")
    } else if name.contains("..") {
        Err("it has two consecutive dots")
    } else {
        Ok(())
    }
}
