//! `[[listeners]]`: where clients connect.
//!
//! Not here: which options go together on one listener (see `app::listeners`), for flags say the
//! same.

use super::agents::Names;
use super::here;
use super::plan::ListenerPart;
use super::read::{Context, Look, default_agent, dialect, known_agent, one_of, path};
use super::sheet::{Sheet, Spot};
use crate::app::door::{DoorArgs, check_exposure};
use crate::app::{agent_connect, endpoints, listeners};
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
        let at = || sheet.has("endpoint").unwrap_or_else(|| sheet.at.clone());
        if let Some(what) = endpoints::clash(all.iter().map(|one| &one.endpoint), &part.endpoint) {
            sheet.fault(&at(), what);
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
    let endpoint = sheet.read("endpoint", |text| {
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
    let tls = Tls {
        cert: path(sheet, "tls-cert", context),
        key: path(sheet, "tls-key", context),
        client_ca: path(sheet, "tls-client-ca", context),
        ..Tls::default()
    };
    let front = Front {
        origins: sheet.list("allow-origin", listeners::read_origin),
        hosts: sheet.list("allow-host", listeners::read_host),
        affinity_cookie: sheet
            .read("affinity-cookie", listeners::read_cookie)
            .map(|cookie| cookie.value),
        no_elephant: sheet.flag("no-elephant").unwrap_or(false),
        ..Front::default()
    };
    let part = ListenerPart {
        framing: one_of(sheet, "framing"),
        dialect: dialect(sheet, context),
        agents: served,
        agent_connect: sheet
            .read("agent-connect", agent_connect::read_path)
            .map(|path| path.value),
        default_agent,
        endpoint: endpoint
            .as_ref()
            .map_or(Endpoint::Stdio, |at| at.value.clone()),
        front,
        tls,
    };
    sheet.close();
    let endpoint = endpoint?;
    for key in [
        "allow-origin",
        "allow-host",
        "affinity-cookie",
        "no-elephant",
    ] {
        if let Some(at) = sheet.has(key)
            && !matches!(part.endpoint, Endpoint::Web(_))
        {
            let what = format!(
                "`{}` is for listeners that begin with HTTP",
                sheet.path(key)
            );
            sheet.fault(&at, what);
        }
    }
    let streams =
        matches!(&part.endpoint, Endpoint::Web(web) if web.manner == Manner::StreamableHttp);
    if let Some(at) = sheet.has("agent-connect").filter(|_| !streams) {
        let what = format!(
            "`{}` is for http:// and https:// listeners",
            sheet.path("agent-connect")
        );
        let remedy = "Agent Connect alone is listened for with agent-connect+http://";
        sheet.fault_with(&at, what, remedy);
    }
    let is_tls = matches!(part.endpoint, Endpoint::Web(Web { tls: true, .. }));
    for key in ["tls-cert", "tls-key", "tls-client-ca"] {
        match sheet.has(key) {
            Some(at) if !is_tls => {
                let what = format!("`{}` is for listeners with TLS", sheet.path(key));
                sheet.fault_with(&at, what, "such as https:// and wss://");
            }
            None if is_tls && key != "tls-client-ca" => {
                let what = format!("{}: a listener with TLS needs `{key}`", part.endpoint);
                sheet.fault(&endpoint.at, what);
            }
            _ => {}
        }
    }
    if let Some(at) = sheet
        .has("framing")
        .filter(|_| !part.endpoint.is_byte_stream())
    {
        let what = format!("`{}` is for byte streams", sheet.path("framing"));
        sheet.fault_with(&at, what, "such as tcp:// and unix:");
    }
    if context.look == Look::Here {
        here::place(sheet, "endpoint", &part.endpoint);
    }
    if context.look >= Look::Whole {
        guarded(sheet, &endpoint, auth);
    }
    if is_tls && context.look == Look::Here && part.tls.cert.is_some() && part.tls.key.is_some() {
        here::certificate(sheet, &part.endpoint, &part.tls);
    }
    Some(part)
}

/// Finds fault with a listener that nobody would guard.
fn guarded(sheet: &Sheet<'_>, endpoint: &Spot<Endpoint>, auth: &DoorArgs) {
    let Err(error) = check_exposure(&endpoint.value, auth) else {
        return;
    };
    let remedy = match &endpoint.value {
        at if at.is_loopback() => "use ws:// or http://",
        Endpoint::Web(_) => {
            "use wss:// or https:// with `tls-cert` and `tls-key`, or 127.0.0.1 behind a proxy or \
             ssh; or accept it with `dangerously-plaintext` in [auth]"
        }
        _ => {
            "use wss://, or 127.0.0.1 or a Unix socket behind ssh; or accept it with \
             `dangerously-no-auth` in [auth]"
        }
    };
    sheet.fault_with(&endpoint.at, error.what, remedy);
}
