//! Options of `serve` for HTTP listeners: parsing, and whether they apply.

use crate::transport::{Endpoint, HttpOptions};

/// Parses `--allow-origin`.
pub(super) fn read_origin(text: &str) -> Result<String, String> {
    let (scheme, authority) = text.split_once("://").ok_or(
        "an origin is a scheme and a host, as browsers write them: https://editor.example",
    )?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    if !plain(scheme) || !plain(authority) || authority.contains(['/', '*', ',', '@']) {
        return Err("an origin has neither a path nor a wildcard".to_owned());
    }
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err("browsers write an origin in lower case".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses `--allow-host`.
pub(super) fn read_host(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if text.is_empty() || !text.bytes().all(plain) {
        return Err("expected NAME or NAME:PORT, as clients request it".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses `--affinity-cookie`.
pub(super) fn read_cookie(text: &str) -> Result<String, String> {
    let expected = "expected NAME=VALUE, in letters, digits and -_.~";
    let (name, value) = text.split_once('=').ok_or(expected)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let good = |text: &str| !text.is_empty() && text.bytes().all(plain);
    if good(name) && good(value) {
        Ok(text.to_owned())
    } else {
        Err(expected.to_owned())
    }
}

/// Rejects options that apply to none of the listeners.
pub(super) fn check(listen: &[Endpoint], front: &HttpOptions) -> Result<(), String> {
    let given = !front.origins.is_empty()
        || !front.hosts.is_empty()
        || front.affinity_cookie.is_some()
        || front.no_elephant;
    if given && !listen.iter().any(|at| matches!(at, Endpoint::Http(_))) {
        return Err(
            "--allow-origin, --allow-host, --affinity-cookie and --no-elephant are for \
                    HTTP and WebSocket listeners (http://, ws://), and there is none"
                .to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_origin_host_or_cookie_is_refused() {
        for good in ["https://editor.example", "http://localhost:3000", "app://x"] {
            assert!(read_origin(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "*",
            "null",
            "https://",
            "https://x/",
            "https://*.x",
            "https://X",
        ] {
            assert!(read_origin(bad).is_err(), "{bad}");
        }
        assert!(read_host("agents.example:443").is_ok());
        assert!(read_host("a/b").is_err());
        assert!(read_cookie("route=node-1").is_ok());
        for bad in ["", "x", "x=", "=y", "x=y; Path=/", "x=y\r\n"] {
            assert!(read_cookie(bad).is_err(), "{bad}");
        }
    }
}
