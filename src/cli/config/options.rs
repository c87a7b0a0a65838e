//! What is wrong with the values of `[auth]`, `[record]`, `[admin]`, `[agent-connect]`,
//! `[dialects]` and `[log]` together, and what is missing on this machine.

use std::collections::BTreeMap;

use super::fault::CheckLevel;
use super::local_checks;
use super::model::{FileOptions, ListenerPart};
use super::table_reader::TableReader;
use crate::auth::Agents;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::telemetry;
use crate::transport::Endpoint;

/// Checks the tables of the file in `root`, which has these listeners.
pub(super) fn check(
    root: &TableReader<'_>,
    options: &FileOptions,
    listeners: &[ListenerPart],
    level: CheckLevel,
) {
    let here = level == CheckLevel::Machine;
    check_auth(root, options, listeners, level);
    if let Some(own) = root.table("dialects")
        && here
    {
        local_checks::tables(&own, &options.dialects);
    }
    if let Some(own) = root.table("record") {
        own.require("dir", "name the folder for recordings");
        let folder = options.record.as_ref();
        if let Some(folder) = folder.and_then(|args| args.folder.as_ref())
            && here
        {
            local_checks::folder(&own, "dir", folder);
        }
    }
    if let Some(own) = root.table("admin") {
        own.require("listen", "such as listen = \"127.0.0.1:9464\"");
        if let Some(address) = &options.admin.listen {
            let at = address.endpoint();
            let same = |one: &&ListenerPart| one.endpoint == at || one.endpoint.shares_port(&at);
            if let Some(one) = listeners.iter().find(same) {
                let what = format!("{} uses the same address", one.endpoint);
                let remedy = "monitoring needs an address of its own";
                own.fault_with(&own.at("listen"), what, remedy);
            } else if here {
                local_checks::address(&own, "listen", &at);
            }
        }
    }
    if let Some(own) = root.table("log")
        && let Err(what) = telemetry::check(&options.log.level)
    {
        own.fault_of("level", &what);
    }
    if let Some(own) = root.table("agent-connect") {
        let args = options.agent_connect.as_ref();
        let count = ListenerPart::agent_connect_count(listeners);
        if level >= CheckLevel::Complete
            && let Err(what) = AgentConnectArgs::resolve(args, count)
        {
            own.fault(&own.at, what);
        }
        if let Some(store) = args.and_then(|args| args.store.as_ref())
            && here
        {
            local_checks::file(&own, "store", store);
        }
    }
}

fn check_auth(
    root: &TableReader<'_>,
    options: &FileOptions,
    listeners: &[ListenerPart],
    level: CheckLevel,
) {
    let is_web = |one: &ListenerPart| matches!(one.endpoint, Endpoint::Http(_));
    let own = root.table("auth");
    match (&own, &options.auth.token_file) {
        _ if level < CheckLevel::Machine => {}
        (Some(own), Some(token)) => local_checks::tokens(own, "token-file", Some(token)),
        _ if listeners.is_empty() || listeners.iter().any(is_web) => {
            local_checks::tokens(root, "auth", None);
        }
        _ => {}
    }
    let takes = |one: &ListenerPart| one.options.tls_client_ca.is_some();
    if let Some(at) = own.and_then(|own| own.has("certificates"))
        && level >= CheckLevel::Complete
        && !listeners.iter().any(takes)
    {
        let what = "auth.certificates: no listener takes certificates of clients";
        root.fault_with(&at, what, "name their authorities with `tls-client-ca`");
    }
}

/// The names accepted in certificates, and the agents of each.
pub(super) fn certificates(root: &TableReader<'_>) -> Option<BTreeMap<String, Agents>> {
    let reader = root.table("auth")?.table("certificates")?;
    let named = reader.tables().into_iter().map(|(name, reader)| {
        let keys = reader.keys();
        let used = keys.get("auth.certificates.agents");
        let all = used.is_none() && reader.has("agents").is_none();
        let used = used.unwrap_or_default().iter();
        let used = used.map(|agent| agent.to_string_lossy().into_owned());
        let agents = match all {
            true => Agents::All,
            false => Agents::These(used.collect()),
        };
        (name.value, agents)
    });
    Some(named.collect())
}
