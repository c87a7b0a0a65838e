//! Host and port in an address.

use std::fmt;
use std::net::Ipv6Addr;

/// `HOST` or `HOST:PORT`, the host without its brackets.
pub(super) fn authority_parts(
    authority: &str,
    form: &str,
) -> Result<(String, Option<u16>), String> {
    if authority.contains('@') {
        return Err(format!("a user name (\"@\") is not taken; {form}"));
    }
    let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
        let (address, after) = inner
            .split_once(']')
            .ok_or_else(|| format!("the bracket is not closed; {form}"))?;
        if address.parse::<Ipv6Addr>().is_err() {
            return Err(format!("[{address}] is not an IPv6 address"));
        }
        match after.strip_prefix(':') {
            None if after.is_empty() => (address, None),
            None => return Err(format!("{after:?} follows the bracket; {form}")),
            port => (address, port),
        }
    } else {
        if authority.matches(':').count() > 1 {
            return Err(format!("an IPv6 address stands in brackets; {form}"));
        }
        match authority.split_once(':') {
            Some((host, port)) => (named_host(host, form)?, Some(port)),
            None => (named_host(authority, form)?, None),
        }
    };
    let port = port.map(port_number).transpose()?;
    Ok((host.to_owned(), port))
}

fn named_host<'a>(host: &'a str, form: &str) -> Result<&'a str, String> {
    if host.is_empty() {
        return Err(format!("the host is missing; {form}"));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if !host.bytes().all(plain) {
        return Err(format!("{host:?} is not a host name; {form}"));
    }
    Ok(host)
}

pub(super) fn port_number(port: &str) -> Result<u16, String> {
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
