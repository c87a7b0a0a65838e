//! The pages of logins that an agent elsewhere may have opened on the client's machine, and what may be
//! carried back: the path and the query of one redirect to a port of loopback, as the address of the page
//! announces it (RFC 8252, section 7.3).

use std::borrow::Cow;

use form_urlencoded::parse;

/// Longest address, and longest target of a redirect, in bytes.
const MAX_LENGTH: usize = 8 << 10;
/// The lowest port that programs without privileges listen at.
const FIRST_PORT: u16 = 1024;
/// How loopback is written in a redirect.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// A page, by its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginPage {
    /// The host that the user logs in at, with its port, if that is given.
    pub host: String,
    /// Where the login ends, if that is at the agent.
    pub redirect: Option<LoginRedirect>,
}

/// What the browser is redirected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRedirect {
    /// A name or an address of loopback, as in a URL.
    pub host: String,
    /// The port.
    pub port: u16,
    path: String,
    state: String,
}

impl LoginPage {
    /// Reads the address of a page.
    ///
    /// # Errors
    /// Why it is not opened, as a clause.
    pub fn read(address: &str) -> Result<Self, String> {
        let is_odd = |c: char| c.is_control() || c.is_whitespace() || "\\\"<>^`{|}".contains(c);
        if address.len() > MAX_LENGTH || !address.is_ascii() || address.contains(is_odd) {
            return Err("its address is too long, or has characters that no URL has".to_owned());
        }
        let rest = address.strip_prefix("https://");
        let rest = rest.ok_or("its address is not https://")?;
        let (host, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if host.is_empty() || host.contains('@') {
            return Err("its address names no host, or a user".to_owned());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        let redirect = only(query, "redirect_uri")?;
        let state = only(query, "state")?;
        let redirect = redirect
            .map(|to| LoginRedirect::read(&to, state))
            .transpose()?;
        let host = host.to_owned();
        Ok(Self { host, redirect })
    }
}

impl LoginRedirect {
    fn read(address: &str, state: Option<Cow<'_, str>>) -> Result<Self, String> {
        let elsewhere = || format!("it would lead to {address:?} and not to this machine");
        let rest = address.strip_prefix("http://").ok_or_else(elsewhere)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = authority.rsplit_once(':').ok_or_else(elsewhere)?;
        if !LOOPBACK.contains(&host) || path.contains(['?', '#']) {
            return Err(elsewhere());
        }
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port
            .parse()
            .ok()
            .filter(|port| is_port && *port >= FIRST_PORT);
        let state = state.filter(|state| !state.is_empty());
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self {
            host: host.to_owned(),
            port: port.ok_or_else(|| format!("port {authority:?} is not one for logins"))?,
            path: path.to_owned(),
            state: state
                .ok_or("it has no `state`, by which its answer is known")?
                .into_owned(),
        })
    }

    /// Checks the target of a request, path and query, that the browser makes.
    ///
    /// # Errors
    /// Why it is not the redirect.
    pub fn check(&self, target: &str) -> Result<(), &'static str> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let is_visible = target.bytes().all(|byte| byte.is_ascii_graphic());
        if target.len() > MAX_LENGTH || !is_visible || path != self.path {
            return Err("its path is another one");
        }
        match only(query, "state") {
            Ok(Some(state)) if *state == self.state => Ok(()),
            _ => Err("its `state` is another one"),
        }
    }
}

/// The value of a parameter.
///
/// # Errors
/// There are several, of which readers could take another one.
fn only<'q>(query: &'q str, name: &str) -> Result<Option<Cow<'q, str>>, String> {
    let mut all = parse(query.as_bytes()).filter(|(own, _)| own == name);
    match (all.next(), all.next()) {
        (first, None) => Ok(first.map(|(_, value)| value)),
        _ => Err(format!("`{name}` is there twice")),
    }
}
