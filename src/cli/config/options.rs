//! What is wrong with the values of `[auth]`, `[record]`, `[admin]`, `[agent-connect]`,
//! `[cluster]`, `[dialects]` and `[log]` together, and what is missing on this machine.

use std::collections::BTreeMap;

use super::fault::CheckLevel;
use super::keys::Keys;
use super::local_checks;
use super::model::{FileOptions, ListenerPart};
use super::reader::TableReader;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::record::HOME;
use crate::cli::telemetry;
use transport::Endpoint;

/// The tables with options of the whole file, by their names.
pub(super) type Sections<'f> = BTreeMap<&'static str, TableReader<'f>>;

/// Checks the tables of the file in `root`, which has these listeners.
pub(super) fn check(
    root: &TableReader<'_>,
    sections: &Sections<'_>,
    options: &FileOptions,
    listeners: &[ListenerPart],
    level: CheckLevel,
) {
    let here = level == CheckLevel::Machine;
    let (auth, record) = (sections.get("auth"), options.record.as_ref());
    let is_web = |one: &ListenerPart| matches!(one.endpoint, Endpoint::Http(_));
    match (auth, &options.auth.token_file) {
        _ if !here => {}
        (Some(own), Some(token)) => local_checks::tokens(own, "token-file", Some(token)),
        _ if listeners.is_empty() || listeners.iter().any(is_web) => {
            local_checks::tokens(root, "auth", None);
        }
        _ => {}
    }
    let takes = |one: &ListenerPart| one.options.tls_client_ca.is_some();
    if let Some(at) = auth.and_then(|own| own.has("certificates"))
        && level >= CheckLevel::Complete
        && !listeners.iter().any(takes)
    {
        let what = "auth.certificates: no listener takes certificates of clients";
        root.fault(at, what, "name their authorities with `tls-client-ca`");
    }
    if let Some(own) = sections.get("dialects").filter(|_| here) {
        local_checks::tables(own, &options.dialects);
    }
    if let Some(own) = sections.get("record") {
        own.require(
            "dir",
            "name the folder for recordings, or true for the state directory",
        );
        if let Some(folder) = record.and_then(|args| args.folder.as_ref())
            && here
            && folder.as_os_str() != HOME
        {
            local_checks::folder(own, "dir", folder);
        }
    }
    if let Some(own) = sections.get("admin") {
        own.require("listen", "such as listen = \"127.0.0.1:9464\"");
        if let Some(address) = &options.admin.listen {
            let at = &address.0;
            let same = |one: &&ListenerPart| one.endpoint == *at || one.endpoint.shares_port(at);
            if let Some(one) = listeners.iter().find(same) {
                let what = format!("{} uses the same address", one.endpoint);
                let remedy = "monitoring needs an address of its own";
                own.fault(own.at("listen"), what, remedy);
            } else if here {
                local_checks::address(own, "listen", at);
            }
        }
    }
    if let Some(own) = sections.get("cluster") {
        own.require("servers", "such as servers = [\"nats://127.0.0.1\"]");
    }
    if let Some(own) = sections.get("log")
        && let Err(what) = telemetry::check(&options.log.level)
    {
        own.fault_of("level", what);
    }
    if let Some(own) = sections.get("agent-connect") {
        let args = options.agent_connect.as_ref();
        let count = ListenerPart::agent_connect_count(listeners);
        if level >= CheckLevel::Complete
            && let Err(what) = AgentConnectArgs::resolve(args, count)
        {
            own.fault(own.at.clone(), what, "");
        }
        if let Some(store) = args.and_then(|args| args.store.as_ref())
            && here
        {
            local_checks::file(own, "store", store);
        }
    }
}

/// The names accepted in certificates, with their keys.
pub(super) fn certificates(sections: &Sections<'_>) -> Option<BTreeMap<String, Keys>> {
    let (_, all) = sections.get("auth")?.named_tables("certificates")?;
    let named = all.into_iter();
    Some(named.map(|(_, name, reader)| (name, reader.keys)).collect())
}
