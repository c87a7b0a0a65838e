//! Host and port in an address.

use std::fmt;
use std::net::Ipv6Addr;

use hyper::http::uri::Authority;

/// `HOST` or `HOST:PORT`, the host without its brackets.
pub(super) fn authority_parts(text: &str, form: &str) -> Result<(String, Option<u16>), String> {
    if text.contains('@') {
        return Err(format!("a user name (\"@\") is not taken; {form}"));
    }
    let invalid = || format!("{text:?} is no host (an IPv6 address stands in brackets); {form}");
    let authority: Authority = text.parse().map_err(|_| invalid())?;
    let host = authority.host();
    let port = match &text[host.len()..] {
        "" => None,
        rest => Some(port_number(rest.strip_prefix(':').ok_or_else(invalid)?)?),
    };
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match address {
        Some(address) if address.parse::<Ipv6Addr>().is_ok() => Ok((address.to_owned(), port)),
        None if !host.is_empty() && host.bytes().all(is_plain) => Ok((host.to_owned(), port)),
        _ => Err(invalid()),
    }
}

fn port_number(port: &str) -> Result<u16, String> {
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| format!("{port:?} is not a port; expected a number from 0 to 65535"))
}

/// A host in the form of a URL: IPv6 addresses in brackets.
pub(super) struct Bracketed<'a>(pub(super) &'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') {
            write!(f, "[{}]", self.0)
        } else {
            f.write_str(self.0)
        }
    }
}
