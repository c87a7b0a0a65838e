//! The tables `[auth]`, `[record]`, `[admin]`, `[agent-connect]`, `[traces]` and `[log]`. Their
//! keys have the names of the flags.

use std::collections::BTreeMap;

use super::agents::Names;
use super::here;
use super::plan::ListenerPart;
use super::read::{Context, Look, known_agent, one_of, path};
use super::sheet::{Sheet, Spot};
use crate::auth::Agents;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::door::DoorArgs;
use crate::cli::record::{self, RecordPart};
use crate::cli::telemetry::{self, LogArgs};
use crate::cli::traces::{TracesPart, collector};
use crate::cli::{admin, limits, listeners};
use crate::recording::redact::Pattern;

/// Options of admission, and the agents that each name in a certificate may use.
pub(super) fn auth(sheet: &Sheet<'_>, context: &Context, agents: &Names) -> DoorArgs {
    let flag = |key| sheet.flag(key).unwrap_or(false);
    let auth = DoorArgs {
        require_token: flag("require-token"),
        token_file: path(sheet, "token-file", context),
        no_auth_loopback: flag("no-auth-loopback"),
        tls_client_ca: None,
        dangerously_no_auth: flag("dangerously-no-auth"),
        dangerously_plaintext: flag("dangerously-plaintext"),
        certificates: certificates(sheet, agents),
    };
    for (key, given) in [
        ("no-auth-loopback", auth.no_auth_loopback),
        ("dangerously-no-auth", auth.dangerously_no_auth),
    ] {
        if let Some(at) = sheet.has(key).filter(|_| given && auth.require_token) {
            sheet.fault(&at, format!("`{}` undoes `require-token`", sheet.path(key)));
        }
    }
    sheet.close();
    if let (Look::Here, Some(file)) = (context.look, &auth.token_file) {
        here::tokens(sheet, "token-file", Some(file));
    }
    auth
}

/// The names accepted in certificates, and the agents of each.
fn certificates(sheet: &Sheet<'_>, agents: &Names) -> Option<BTreeMap<String, Agents>> {
    let sheet = sheet.sheet("certificates")?;
    let named = sheet.tables().into_iter().map(|(name, sheet)| {
        let used = sheet.texts("agents");
        for agent in used.iter().flatten() {
            known_agent(&sheet, "agents", &agent.value, &agent.at, agents);
        }
        sheet.close();
        let used = used.map(|used| used.into_iter().map(|agent| agent.value).collect());
        (name.value, used.map_or(Agents::All, Agents::These))
    });
    Some(named.collect())
}

pub(super) fn record(sheet: &Sheet<'_>, context: &Context) -> RecordPart {
    let part = RecordPart {
        folder: path(sheet, "dir", context),
        mode: one_of(sheet, "mode"),
        policy: one_of(sheet, "policy"),
        sync: one_of(sheet, "sync"),
        redact: one_of(sheet, "redact"),
        pointers: sheet.list("redact-pointer", |text| {
            text.parse::<Pattern>().map_err(|error| error.to_string())
        }),
        strict: sheet.flag("strict"),
        max_age: sheet.read("max-age", record::age),
        max_total: sheet.read("max-total", limits::bytes),
    };
    if part.folder.is_none() && sheet.has("dir").is_none() {
        sheet.fault_with(
            &sheet.at,
            "record: `dir` is missing",
            "name the folder for recordings",
        );
    }
    sheet.close();
    if let (Look::Here, Some(folder)) = (context.look, &part.folder) {
        here::folder(sheet, "dir", folder);
    }
    part
}

/// The address of the admin listener.
pub(super) fn admin(
    sheet: &Sheet<'_>,
    context: &Context,
    listeners: &[ListenerPart],
) -> Option<admin::Place> {
    let place = sheet.read_at("listen", |text| match text.strip_prefix("unix:") {
        Some(path) if !path.is_empty() => Ok(admin::Place::Unix(context.folder.join(path))),
        _ => text.parse(),
    });
    if sheet.has("listen").is_none() {
        let remedy = "such as listen = \"127.0.0.1:9464\"";
        sheet.fault_with(&sheet.at, "admin: `listen` is missing", remedy);
    }
    sheet.close();
    let Spot { at, value: place } = place?;
    let own = place.endpoint();
    let same = |one: &&ListenerPart| one.endpoint == own || one.endpoint.shares_port(&own);
    if let Some(one) = listeners.iter().find(same) {
        let what = format!("{} uses the same address", one.endpoint);
        sheet.fault_with(&at, what, "monitoring needs an address of its own");
    } else if context.look == Look::Here {
        here::place(sheet, "listen", &own);
    }
    Some(place)
}

pub(super) fn agent_connect(
    sheet: &Sheet<'_>,
    context: &Context,
    listeners: &[ListenerPart],
) -> AgentConnectArgs {
    let args = AgentConnectArgs {
        store: path(sheet, "store", context),
        unasked: one_of(sheet, "default-permission"),
        allow_callback: sheet.list("allow-callback", listeners::read_host),
    };
    sheet.close();
    if context.look >= Look::Whole
        && let Err(what) = args.settle(listeners)
    {
        sheet.fault(&sheet.at, what);
    }
    if let (Look::Here, Some(store)) = (context.look, &args.store) {
        here::file(sheet, "store", store);
    }
    args
}

pub(super) fn traces(sheet: &Sheet<'_>) -> TracesPart {
    let part = TracesPart {
        otlp_endpoint: sheet.read("otlp-endpoint", collector),
        trace_context: one_of(sheet, "trace-context"),
    };
    sheet.close();
    part
}

pub(super) fn log(sheet: &Sheet<'_>) -> LogArgs {
    let log = LogArgs {
        level: sheet.read("level", |text| {
            telemetry::check(text).map(|()| text.to_owned())
        }),
        format: one_of(sheet, "format"),
    };
    sheet.close();
    log
}
