//! `[[listeners]]`: where clients connect. `cli::listeners` parses the options that are also flags.

use super::context::{
    CheckLevel, Context, Names, default_agent, dialect, known_agent, one_of, path,
};
use super::local_checks;
use super::model::ListenerPart;
use super::table_reader::{Positioned, TableReader};
use crate::cli::admission::{AdmissionArgs, check_exposure};
use crate::cli::{agent_connect, endpoints, listeners};
use crate::transport::{Endpoint, HttpEndpoint, HttpOptions, HttpProtocol, Tls};

/// All listeners of the file.
pub(super) fn listeners(
    reader: &TableReader<'_>,
    context: &Context,
    agents: &Names,
    auth: &AdmissionArgs,
) -> Vec<ListenerPart> {
    let mut all: Vec<ListenerPart> = Vec::new();
    for reader in reader.table_array("listeners") {
        let Some(part) = listener(&reader, context, agents, auth) else {
            continue;
        };
        if let Some(what) = endpoints::conflict(all.iter().map(|one| &one.endpoint), &part.endpoint)
        {
            reader.fault(&reader.at("endpoint"), what);
        }
        all.push(part);
    }
    all
}

fn listener(
    reader: &TableReader<'_>,
    context: &Context,
    agents: &Names,
    auth: &AdmissionArgs,
) -> Option<ListenerPart> {
    let endpoint = reader.read_at("endpoint", |text| {
        let endpoint = text
            .parse::<Endpoint>()
            .map_err(|error| error.to_string())?;
        endpoints::check_listener(&endpoint)?;
        Ok(endpoint.relative_to(&context.folder))
    });
    if reader.has("endpoint").is_none() {
        let remedy = "such as endpoint = \"http://127.0.0.1:9000\"";
        reader.fault_with(&reader.at, "a listener has no `endpoint`", remedy);
    }
    let (served, default_agent) = served(reader, agents);
    let tls = Tls {
        cert: path(reader, "tls-cert", context),
        key: path(reader, "tls-key", context),
        client_ca: path(reader, "tls-client-ca", context),
        ..Tls::default()
    };
    let front = HttpOptions {
        origins: reader.list("allow-origin", listeners::read_origin),
        hosts: reader.list("allow-host", listeners::read_host),
        affinity_cookie: reader.read("affinity-cookie", listeners::read_cookie),
        no_elephant: reader.flag("no-elephant").unwrap_or(false),
        ..HttpOptions::default()
    };
    let framing = one_of(reader, "framing");
    let dialect = dialect(reader, context);
    let agent_connect = reader.read("agent-connect", agent_connect::read_path);
    reader.finish();
    let endpoint = endpoint?;
    check_keys(reader, &endpoint);
    if context.level == CheckLevel::Machine {
        local_checks::address(reader, "endpoint", &endpoint.value);
    }
    if context.level >= CheckLevel::Complete {
        check_guarded(reader, &endpoint, auth);
    }
    if context.level == CheckLevel::Machine
        && is_tls(&endpoint.value)
        && tls.cert.is_some()
        && tls.key.is_some()
    {
        local_checks::certificate(reader, &endpoint.value, &tls);
    }
    Some(ListenerPart {
        endpoint: endpoint.value,
        front,
        tls,
        framing,
        dialect,
        agents: served,
        agent_connect,
        default_agent,
    })
}

/// The agents that clients of a listener may name, and the agent of those that name none.
fn served(reader: &TableReader<'_>, agents: &Names) -> (Option<Vec<String>>, Option<String>) {
    let served = reader.texts("agents");
    for name in served.iter().flatten() {
        known_agent(reader, "agents", &name.value, &name.at, agents);
    }
    let default_agent = default_agent(reader, agents);
    let served = served.map(|names| names.into_iter().map(|name| name.value).collect::<Vec<_>>());
    if let (Some(served), Some(name)) = (&served, &default_agent)
        && !served.contains(name)
        && let Some(at) = reader.has("default-agent")
    {
        let what = format!("`{name}` is not among the `agents` of this listener");
        reader.fault(&at, what);
    }
    (served, default_agent)
}

/// Reports keys that do not apply to this endpoint, and missing ones.
fn check_keys(reader: &TableReader<'_>, endpoint: &Positioned<Endpoint>) {
    let at = &endpoint.value;
    let is_web = matches!(at, Endpoint::Http(_));
    let streams = matches!(at, Endpoint::Http(web) if web.protocol == HttpProtocol::StreamableHttp);
    for (keys, fits, is_for, remedy) in [
        (
            &[
                "allow-origin",
                "allow-host",
                "affinity-cookie",
                "no-elephant",
            ][..],
            is_web,
            "HTTP and WebSocket listeners",
            None,
        ),
        (
            &["agent-connect"],
            streams,
            "http:// and https:// listeners",
            Some("for Agent Connect alone, listen at agent-connect+http://"),
        ),
        (
            &["tls-cert", "tls-key", "tls-client-ca"],
            is_tls(at),
            "listeners with TLS",
            Some("such as https:// and wss://"),
        ),
        (
            &["framing"],
            at.is_byte_stream(),
            "byte streams",
            Some("such as tcp:// and unix:"),
        ),
    ] {
        if !fits {
            reader.fault_misplaced(keys, is_for, remedy);
        }
    }
    for key in ["tls-cert", "tls-key"] {
        if is_tls(at) && reader.has(key).is_none() {
            let what = format!("{at}: a listener with TLS needs `{key}`");
            reader.fault(&endpoint.at, what);
        }
    }
}

const fn is_tls(at: &Endpoint) -> bool {
    matches!(at, Endpoint::Http(HttpEndpoint { tls: true, .. }))
}

/// Reports a listener that is too exposed.
fn check_guarded(reader: &TableReader<'_>, endpoint: &Positioned<Endpoint>, auth: &AdmissionArgs) {
    let Err(error) = check_exposure(&endpoint.value, auth) else {
        return;
    };
    let remedy = match &endpoint.value {
        at if at.is_loopback() => "use ws:// or http://",
        Endpoint::Http(_) => {
            "use wss:// or https:// with `tls-cert` and `tls-key`, or 127.0.0.1 behind a proxy or \
             ssh; or accept the risk with `dangerously-plaintext` in [auth]"
        }
        _ => {
            "use wss://, or 127.0.0.1 or a Unix socket behind ssh; or accept the risk with \
             `dangerously-no-auth` in [auth]"
        }
    };
    reader.fault_with(&endpoint.at, error.what, remedy);
}
