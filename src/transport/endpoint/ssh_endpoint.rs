//! Addresses of agents that are reached by ssh: `ssh://[USER@]HOST[:PORT][/NAME]`.
//!
//! All parts become arguments of programs here and there, so only plain characters are accepted.

use std::fmt;

use super::authority::{Bracketed, authority_parts};

/// The address of an agent on another machine that the user can log in to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshEndpoint {
    /// The user there, if not the one of the ssh configuration.
    pub user: Option<String>,
    /// Name, alias of the ssh configuration, or address without brackets.
    pub host: String,
    /// Port, if not the one of the ssh configuration.
    pub port: Option<u16>,
    /// The agent there; its default agent if not given.
    pub agent: Option<String>,
}

/// Reads what follows `ssh:`; `form` is the expected form, for errors.
pub(super) fn parse(rest: &str, form: &str) -> Result<SshEndpoint, String> {
    let rest = rest.strip_prefix("//").ok_or(form)?;
    let (authority, agent) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    if let Some(user) = user.filter(|user| !is_plain(user, b"-_.+")) {
        return Err(format!(
            "{user:?} is no user name (letters, digits and - _ . +, without a password); {form}"
        ));
    }
    let (host, port) = authority_parts(place, form)?;
    if host.starts_with('-') {
        return Err(format!("a host cannot begin with \"-\"; {form}"));
    }
    if port == Some(0) {
        return Err("port 0 is for listeners; nothing can be reached at it".to_owned());
    }
    let is_name =
        || auth::check_name(agent).is_ok() && !agent.contains('@') && !agent.contains("..");
    if !agent.is_empty() && !is_name() {
        return Err(format!(
            "{agent:?} is no agent's name (letters, digits and - _ ., beginning with a letter or a \
             digit); {form}"
        ));
    }
    Ok(SshEndpoint {
        user: user.map(str::to_owned),
        host,
        port,
        agent: (!agent.is_empty()).then(|| agent.to_owned()),
    })
}

/// Whether a word has only letters, digits and these characters, and cannot be mistaken for an
/// option.
fn is_plain(word: &str, others: &[u8]) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    !word.is_empty() && !word.starts_with('-') && word.bytes().all(is_known)
}

impl fmt::Display for SshEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ssh://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        Bracketed(&self.host).fmt(f)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        match &self.agent {
            Some(agent) => write!(f, "/{agent}"),
            None => Ok(()),
        }
    }
}
