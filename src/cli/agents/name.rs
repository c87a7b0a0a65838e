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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_names_need_no_escaping_in_paths() {
        for good in ["a", "goose", "claude-4.5", "x_y", "0", &"a".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "a".repeat(65);
        let bad = [
            "", "-x", ".", "..", "a..b", "a/b", "a\\b", "a\0", "a b", "é", "%2e", "~", "a\n",
            ".hidden", "_x", &long,
        ];
        for bad in bad {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
