//! Names that tell that what they name is a secret.
//!
//! Not here: what a secret looks like (see `shapes`).

/// Whether a name tells that its value is a secret.
pub(super) fn is_telling(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let known = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "sec-websocket-protocol",
        "pwd",
    ];
    let parts = [
        "key",
        "token",
        "secret",
        "passw",
        "credential",
        "passphrase",
    ];
    known.contains(&lower.as_str()) || parts.iter().any(|part| lower.contains(part))
}

/// Headers that carry credentials, wherever they stand, and what is named a password.
pub(super) fn is_secret_member(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "sec-websocket-protocol",
        "x-api-key",
        "api-key",
        "apikey",
        "api_key",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "client_secret",
        "clientsecret",
        "access_token",
        "accesstoken",
        "refresh_token",
        "refreshtoken",
        "id_token",
        "private_key",
        "privatekey",
    ]
    .contains(&lower.as_str())
}

/// Whether all that is said in and after a request of this method is secret.
pub(super) fn is_secret_method(method: &[u8]) -> bool {
    method == b"authenticate" || method.ends_with(b"/authenticate")
}
