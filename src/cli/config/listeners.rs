//! `[[listeners]]`: where clients connect. `cli::listeners` has the options that are also flags.

use super::context::{CheckLevel, Context, Names, check_dialect, known_agent};
use super::keys;
use super::local_checks;
use super::model::ListenerPart;
use super::table_reader::TableReader;
use crate::cli::admission::{AdmissionArgs, check_exposure};
use crate::cli::endpoints;
use crate::transport::{Endpoint, HttpEndpoint, HttpProtocol};

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
    let command = keys::command::<ListenerPart>();
    let keys = reader.keys(&command, "listeners", &context.folder);
    reader.finish();
    if reader.has("endpoint").is_none() {
        let remedy = "such as endpoint = \"http://127.0.0.1:9000\"";
        reader.fault_with(&reader.at, "a listener has no `endpoint`", remedy);
    }
    let served = served(reader, agents);
    let mut part: ListenerPart = keys.parse()?;
    if let Err(what) = endpoints::check_listener(&part.endpoint) {
        let what = format!("{}: {what}", reader.path("endpoint"));
        reader.fault(&reader.at("endpoint"), what);
        return None;
    }
    part = ListenerPart {
        endpoint: part.endpoint.relative_to(&context.folder),
        agents: served,
        keys,
        ..part
    };
    check_dialect(reader, part.dialect.as_ref(), context);
    check_keys(reader, &part.endpoint);
    if context.level >= CheckLevel::Complete {
        check_guarded(reader, &part.endpoint, auth);
    }
    if context.level == CheckLevel::Machine {
        local_checks::address(reader, "endpoint", &part.endpoint);
        let tls = part.options.tls();
        if is_tls(&part.endpoint) && tls.cert.is_some() && tls.key.is_some() {
            local_checks::certificate(reader, &part.endpoint, &tls);
        }
    }
    Some(part)
}

/// The agents that clients of a listener may name; checks them, and the agent of those that name
/// none.
fn served(reader: &TableReader<'_>, agents: &Names) -> Option<Vec<String>> {
    let served = reader.texts("agents");
    for name in served.iter().flatten() {
        known_agent(reader, "agents", &name.value, &name.at, agents);
    }
    let served = served.map(|names| names.into_iter().map(|name| name.value).collect::<Vec<_>>());
    if let Some(name) = reader.text("default-agent") {
        known_agent(reader, "default-agent", &name.value, &name.at, agents);
        if served
            .as_ref()
            .is_some_and(|served| !served.contains(&name.value))
        {
            let what = format!(
                "`{}` is not among the `agents` of this listener",
                name.value
            );
            reader.fault(&name.at, what);
        }
    }
    served
}

/// Reports keys that do not apply to this endpoint, and missing ones.
fn check_keys(reader: &TableReader<'_>, at: &Endpoint) {
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
            reader.fault(&reader.at("endpoint"), what);
        }
    }
}

const fn is_tls(at: &Endpoint) -> bool {
    matches!(at, Endpoint::Http(HttpEndpoint { tls: true, .. }))
}

/// Reports a listener that is too exposed.
fn check_guarded(reader: &TableReader<'_>, endpoint: &Endpoint, auth: &AdmissionArgs) {
    let Err(error) = check_exposure(endpoint, auth) else {
        return;
    };
    let remedy = match endpoint {
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
    reader.fault_with(&reader.at("endpoint"), error.what, remedy);
}
