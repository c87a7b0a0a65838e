//! Options of listeners, on the command line of `serve` and in `[[listeners]]`.

use std::path::PathBuf;

use clap::Args;

use crate::transport::{Endpoint, HttpOptions, Tls};

/// Options of HTTP and WebSocket listeners.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(super) struct ListenerArgs {
    /// Allow web pages of this origin, such as `https://editor.example`; may be given several times
    #[arg(
        id = "listeners.allow-origin",
        long = "allow-origin",
        value_name = "ORIGIN"
    )]
    #[arg(value_parser = read_origin)]
    allow_origin: Vec<String>,
    /// Accept this host name besides the listener's own (with one port or any); may be given
    /// several times
    #[arg(id = "listeners.allow-host", long = "allow-host", value_name = "NAME")]
    #[arg(value_parser = read_host)]
    allow_host: Vec<String>,
    /// A cookie set on each new connection, so that a load balancer returns to this relay
    #[arg(
        id = "listeners.affinity-cookie",
        long = "affinity-cookie",
        value_name = "NAME=VALUE"
    )]
    #[arg(value_parser = read_cookie)]
    affinity_cookie: Option<String>,
    /// Do not serve elephant.ai's routes, PATH/rpc and PATH/sse, beside the official ones
    #[arg(id = "listeners.no-elephant", long = "no-elephant")]
    no_elephant: bool,
    /// Certificate chain for https:// and wss:// listeners, PEM
    #[arg(id = "listeners.tls-cert", long = "tls-cert", value_name = "FILE")]
    #[arg(env = "ACP_RELAY_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Private key for https:// and wss:// listeners, PEM
    #[arg(id = "listeners.tls-key", long = "tls-key", value_name = "FILE")]
    #[arg(env = "ACP_RELAY_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Certificate authorities of client certificates, accepted instead of a token, PEM
    #[arg(
        id = "listeners.tls-client-ca",
        long = "tls-client-ca",
        value_name = "FILE"
    )]
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
