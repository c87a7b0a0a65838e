//! The tables `[auth]`, `[record]`, `[admin]`, `[agent-connect]`, `[traces]` and `[log]`. Their
//! keys have the names of the flags.

use std::collections::BTreeMap;

use super::context::{CheckLevel, Context, Names, known_agent, one_of, path};
use super::local_checks;
use super::model::ListenerPart;
use super::table_reader::{Positioned, TableReader};
use crate::auth::Agents;
use crate::cli::admission::AdmissionArgs;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::record::{self, RecordPart};
use crate::cli::telemetry::{self, LogArgs};
use crate::cli::traces::{TracesPart, collector};
use crate::cli::{admin, limits, listeners};
use crate::recording::redact::PointerPattern;

/// Options of admission, and the agents that each name in a certificate may use.
pub(super) fn auth(reader: &TableReader<'_>, context: &Context, agents: &Names) -> AdmissionArgs {
    let flag = |key| reader.flag(key).unwrap_or(false);
    let auth = AdmissionArgs {
        require_token: flag("require-token"),
        token_file: path(reader, "token-file", context),
        no_auth_loopback: flag("no-auth-loopback"),
        tls_client_ca: None,
        dangerously_no_auth: flag("dangerously-no-auth"),
        dangerously_plaintext: flag("dangerously-plaintext"),
        certificates: certificates(reader, agents),
    };
    for (key, given) in [
        ("no-auth-loopback", auth.no_auth_loopback),
        ("dangerously-no-auth", auth.dangerously_no_auth),
    ] {
        if let Some(at) = reader.has(key).filter(|_| given && auth.require_token) {
            reader.fault(
                &at,
                format!("`{}` undoes `require-token`", reader.path(key)),
            );
        }
    }
    reader.finish();
    if let (CheckLevel::Machine, Some(file)) = (context.level, &auth.token_file) {
        local_checks::tokens(reader, "token-file", Some(file));
    }
    auth
}

/// The names accepted in certificates, and the agents of each.
fn certificates(reader: &TableReader<'_>, agents: &Names) -> Option<BTreeMap<String, Agents>> {
    let reader = reader.table("certificates")?;
    let named = reader.tables().into_iter().map(|(name, reader)| {
        let used = reader.texts("agents");
        for agent in used.iter().flatten() {
            known_agent(&reader, "agents", &agent.value, &agent.at, agents);
        }
        reader.finish();
        let used = used.map(|used| used.into_iter().map(|agent| agent.value).collect());
        (name.value, used.map_or(Agents::All, Agents::These))
    });
    Some(named.collect())
}

pub(super) fn record(reader: &TableReader<'_>, context: &Context) -> RecordPart {
    let part = RecordPart {
        folder: path(reader, "dir", context),
        mode: one_of(reader, "mode"),
        policy: one_of(reader, "policy"),
        sync: one_of(reader, "sync"),
        redact: one_of(reader, "redact"),
        pointers: reader.list("redact-pointer", |text| {
            text.parse::<PointerPattern>()
                .map_err(|error| error.to_string())
        }),
        strict: reader.flag("strict"),
        max_age: reader.read("max-age", record::age),
        max_total: reader.read("max-total", limits::bytes),
    };
    if part.folder.is_none() && reader.has("dir").is_none() {
        reader.fault_with(
            &reader.at,
            "record: `dir` is missing",
            "name the folder for recordings",
        );
    }
    reader.finish();
    if let (CheckLevel::Machine, Some(folder)) = (context.level, &part.folder) {
        local_checks::folder(reader, "dir", folder);
    }
    part
}

/// The address of the admin listener.
pub(super) fn admin(
    reader: &TableReader<'_>,
    context: &Context,
    listeners: &[ListenerPart],
) -> Option<admin::AdminAddress> {
    let place = reader.read_at("listen", |text| match text.strip_prefix("unix:") {
        Some(path) if !path.is_empty() => Ok(admin::AdminAddress::Unix(context.folder.join(path))),
        _ => text.parse(),
    });
    if reader.has("listen").is_none() {
        let remedy = "such as listen = \"127.0.0.1:9464\"";
        reader.fault_with(&reader.at, "admin: `listen` is missing", remedy);
    }
    reader.finish();
    let Positioned { at, value: place } = place?;
    let own = place.endpoint();
    let same = |one: &&ListenerPart| one.endpoint == own || one.endpoint.shares_port(&own);
    if let Some(one) = listeners.iter().find(same) {
        let what = format!("{} uses the same address", one.endpoint);
        reader.fault_with(&at, what, "monitoring needs an address of its own");
    } else if context.level == CheckLevel::Machine {
        local_checks::address(reader, "listen", &own);
    }
    Some(place)
}

pub(super) fn agent_connect(
    reader: &TableReader<'_>,
    context: &Context,
    listeners: &[ListenerPart],
) -> AgentConnectArgs {
    let args = AgentConnectArgs {
        store: path(reader, "store", context),
        default_permission: one_of(reader, "default-permission"),
        allow_callback: reader.list("allow-callback", listeners::read_host),
    };
    reader.finish();
    if context.level >= CheckLevel::Complete
        && let Err(what) = args.resolve(ListenerPart::agent_connect_count(listeners))
    {
        reader.fault(&reader.at, what);
    }
    if let (CheckLevel::Machine, Some(store)) = (context.level, &args.store) {
        local_checks::file(reader, "store", store);
    }
    args
}

pub(super) fn traces(reader: &TableReader<'_>) -> TracesPart {
    let part = TracesPart {
        otlp_endpoint: reader.read("otlp-endpoint", collector),
        trace_context: one_of(reader, "trace-context"),
    };
    reader.finish();
    part
}

pub(super) fn log(reader: &TableReader<'_>) -> LogArgs {
    let log = LogArgs {
        level: reader.read("level", |text| {
            telemetry::check(text).map(|()| text.to_owned())
        }),
        format: one_of(reader, "format"),
    };
    reader.finish();
    log
}
