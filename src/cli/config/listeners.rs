//! `[[listeners]]`: where clients connect. `cli::listeners` parses the options that are also flags.

use super::agents::Names;
use super::here;
use super::plan::ListenerPart;
use super::read::{Context, Look, default_agent, dialect, known_agent, one_of, path};
use super::sheet::{Sheet, Spot};
use crate::cli::door::{DoorArgs, check_exposure};
use crate::cli::{agent_connect, endpoints, listeners};
use crate::transport::{Endpoint, Front, Manner, Tls, Web};

/// All listeners of the file.
pub(super) fn listeners(
    sheet: &Sheet<'_>,
    context: &Context,
    agents: &Names,
    auth: &DoorArgs,
) -> Vec<ListenerPart> {
    let mut all: Vec<ListenerPart> = Vec::new();
    for sheet in sheet.sheets("listeners") {
        let Some(part) = listener(&sheet, context, agents, auth) else {
            continue;
        };
        if let Some(what) = endpoints::clash(all.iter().map(|one| &one.endpoint), &part.endpoint) {
            sheet.fault(&sheet.at("endpoint"), what);
        }
        all.push(part);
    }
    all
}

fn listener(
    sheet: &Sheet<'_>,
    context: &Context,
    agents: &Names,
    auth: &DoorArgs,
) -> Option<ListenerPart> {
    let endpoint = sheet.read_at("endpoint", |text| {
        let endpoint = text
            .parse::<Endpoint>()
            .map_err(|error| error.to_string())?;
        endpoints::check_listener(&endpoint)?;
        Ok(endpoint.below(&context.folder))
    });
    if sheet.has("endpoint").is_none() {
        let remedy = "such as endpoint = \"http://127.0.0.1:9000\"";
        sheet.fault_with(&sheet.at, "a listener has no `endpoint`", remedy);
    }
    let (served, default_agent) = served(sheet, agents);
    let tls = Tls {
        cert: path(sheet, "tls-cert", context),
        key: path(sheet, "tls-key", context),
        client_ca: path(sheet, "tls-client-ca", context),
        ..Tls::default()
    };
    let front = Front {
        origins: sheet.list("allow-origin", listeners::read_origin),
        hosts: sheet.list("allow-host", listeners::read_host),
        affinity_cookie: sheet.read("affinity-cookie", listeners::read_cookie),
        no_elephant: sheet.flag("no-elephant").unwrap_or(false),
        ..Front::default()
    };
    let framing = one_of(sheet, "framing");
    let dialect = dialect(sheet, context);
    let agent_connect = sheet.read("agent-connect", agent_connect::read_path);
    sheet.close();
    let endpoint = endpoint?;
    check_keys(sheet, &endpoint);
    if context.look == Look::Here {
        here::place(sheet, "endpoint", &endpoint.value);
    }
    if context.look >= Look::Whole {
        guarded(sheet, &endpoint, auth);
    }
    if context.look == Look::Here
        && is_tls(&endpoint.value)
        && tls.cert.is_some()
        && tls.key.is_some()
    {
        here::certificate(sheet, &endpoint.value, &tls);
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
fn served(sheet: &Sheet<'_>, agents: &Names) -> (Option<Vec<String>>, Option<String>) {
    let served = sheet.texts("agents");
    for name in served.iter().flatten() {
        known_agent(sheet, "agents", &name.value, &name.at, agents);
    }
    let default_agent = default_agent(sheet, agents);
    let served = served.map(|names| names.into_iter().map(|name| name.value).collect::<Vec<_>>());
    if let (Some(served), Some(name)) = (&served, &default_agent)
        && !served.contains(name)
        && let Some(at) = sheet.has("default-agent")
    {
        let what = format!("`{name}` is not among the `agents` of this listener");
        sheet.fault(&at, what);
    }
    (served, default_agent)
}

/// Reports keys that do not apply to this endpoint, and missing ones.
fn check_keys(sheet: &Sheet<'_>, endpoint: &Spot<Endpoint>) {
    let at = &endpoint.value;
    let is_web = matches!(at, Endpoint::Web(_));
    let streams = matches!(at, Endpoint::Web(web) if web.manner == Manner::StreamableHttp);
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
            sheet.fault_misplaced(keys, is_for, remedy);
        }
    }
    for key in ["tls-cert", "tls-key"] {
        if is_tls(at) && sheet.has(key).is_none() {
            let what = format!("{at}: a listener with TLS needs `{key}`");
            sheet.fault(&endpoint.at, what);
        }
    }
}

const fn is_tls(at: &Endpoint) -> bool {
    matches!(at, Endpoint::Web(Web { tls: true, .. }))
}

/// Reports a listener that is too exposed.
fn guarded(sheet: &Sheet<'_>, endpoint: &Spot<Endpoint>, auth: &DoorArgs) {
    let Err(error) = check_exposure(&endpoint.value, auth) else {
        return;
    };
    let remedy = match &endpoint.value {
        at if at.is_loopback() => "use ws:// or http://",
        Endpoint::Web(_) => {
            "use wss:// or https:// with `tls-cert` and `tls-key`, or 127.0.0.1 behind a proxy or \
             ssh; or accept the risk with `dangerously-plaintext` in [auth]"
        }
        _ => {
            "use wss://, or 127.0.0.1 or a Unix socket behind ssh; or accept the risk with \
             `dangerously-no-auth` in [auth]"
        }
    };
    sheet.fault_with(&endpoint.at, error.what, remedy);
}
