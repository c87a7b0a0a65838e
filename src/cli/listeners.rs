//! Options of listeners, on the command line of `serve` and in `[[listeners]]`.

use std::path::PathBuf;

use clap::Args;

use transport::{Endpoint, HttpOptions, HttpProtocol, Tls};

/// Options of HTTP and WebSocket listeners.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(super) struct ListenerArgs {
    /// Allow web pages of this origin, such as `https://editor.example`; may be given several times
    #[arg(long, id = "listeners.allow-origin", value_name = "ORIGIN", value_parser = read_origin)]
    allow_origin: Vec<String>,
    /// Accept this host name besides the listener's own (with one port or any); may be given
    /// several times
    #[arg(long, id = "listeners.allow-host", value_name = "NAME", value_parser = read_host)]
    allow_host: Vec<String>,
    /// A cookie set on each new connection, so that a load balancer returns to this relay
    #[arg(long, id = "listeners.affinity-cookie", value_name = "NAME=VALUE")]
    #[arg(value_parser = read_cookie)]
    affinity_cookie: Option<String>,
    /// Do not serve elephant.ai's routes, PATH/rpc and PATH/sse, beside the official ones
    #[arg(long, id = "listeners.no-elephant")]
    no_elephant: bool,
    /// Certificate chain for https:// and wss:// listeners, PEM
    #[arg(long, id = "listeners.tls-cert", value_name = "FILE")]
    #[arg(env = "ACP_RELAY_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Private key for https:// and wss:// listeners, PEM
    #[arg(long, id = "listeners.tls-key", value_name = "FILE")]
    #[arg(env = "ACP_RELAY_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Certificate authorities of client certificates, accepted instead of a token, PEM
    #[arg(long, id = "listeners.tls-client-ca", value_name = "FILE")]
    pub(super) tls_client_ca: Option<PathBuf>,
}

impl ListenerArgs {
    /// The files for TLS.
    pub(super) fn tls(&self) -> Tls {
        Tls {
            cert: self.tls_cert.clone(),
            key: self.tls_key.clone(),
            client_ca: self.tls_client_ca.clone(),
            ..Tls::default()
        }
    }

    /// The options of HTTP.
    pub(super) fn http(&self) -> HttpOptions {
        HttpOptions {
            origins: self.allow_origin.clone(),
            hosts: self.allow_host.clone(),
            affinity_cookie: self.affinity_cookie.clone(),
            no_elephant: self.no_elephant,
            ..HttpOptions::default()
        }
    }

    /// Rejects a TLS listener without a certificate.
    pub(super) fn check_tls(&self, listen: &[Endpoint]) -> Result<(), String> {
        match listen.iter().find(|at| at.is_tls()) {
            Some(at) if self.tls_cert.is_none() || self.tls_key.is_none() => Err(format!(
                "{at}: a listener with TLS needs --tls-cert and --tls-key, in PEM"
            )),
            _ => Ok(()),
        }
    }
}

/// Parses `--allow-origin`.
fn read_origin(text: &str) -> Result<String, String> {
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
fn read_cookie(text: &str) -> Result<String, String> {
    let expected = "expected NAME=VALUE, in letters, digits and -_.~";
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let good = |text: &str| !text.is_empty() && text.bytes().all(plain);
    match text.split_once('=') {
        Some((name, value)) if good(name) && good(value) => Ok(text.to_owned()),
        _ => Err(expected.to_owned()),
    }
}

/// The listeners that an option is for, unless it suits the one at `at`.
pub(super) fn unsuited(option: &str, at: &Endpoint) -> Option<&'static str> {
    let (suits, is_for) = match option {
        "allow-origin" | "allow-host" | "affinity-cookie" | "no-elephant" => (
            matches!(at, Endpoint::Http(_)),
            "HTTP and WebSocket listeners (http://, ws://)",
        ),
        "agent-connect" => (
            matches!(at, Endpoint::Http(web) if web.protocol == HttpProtocol::StreamableHttp),
            "http:// and https:// listeners; for Agent Connect alone, listen at \
             agent-connect+http://",
        ),
        "tls-cert" | "tls-key" | "tls-client-ca" => {
            (at.is_tls(), "listeners with TLS (https://, wss://)")
        }
        "framing" | "client-framing" => (
            at.is_byte_stream(),
            "listeners on byte streams (tcp://, unix:)",
        ),
        _ => return None,
    };
    (!suits).then_some(is_for)
}

/// Rejects an option of the command line that suits none of its listeners.
pub(super) fn check_suits_one(option: &str, listen: &[Endpoint]) -> Result<(), String> {
    let mut reasons = listen.iter().map(|at| unsuited(option, at));
    let is_for = reasons
        .try_fold(None, |_, reason| reason.map(Some))
        .flatten();
    is_for.map_or(Ok(()), |is_for| {
        Err(format!("--{option} is for {is_for}, and there is none"))
    })
}
