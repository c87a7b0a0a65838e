//! What is wrong with the values of `[auth]`, `[record]`, `[admin]`, `[agent-connect]`,
//! `[cluster]`, `[dialects]` and `[log]` together, and what is missing on this machine.

use std::collections::BTreeMap;

use super::fault::CheckLevel;
use super::keys::Keys;
use super::local_checks;
use super::model::ListenerPart;
use super::reader::TableReader;
use crate::cli::admin::{AdminAddress, AdminArgs};
use crate::cli::admission::AdmissionArgs;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::record::{HOME, RecordArgs};
use crate::cli::telemetry::{self, LogArgs};
use transport::Endpoint;

/// The tables with options of the whole file, by their names.
pub(super) type Sections<'f> = BTreeMap<&'static str, TableReader<'f>>;

/// Checks the tables of the file in `root`, which has these listeners.
pub(super) fn check(
    root: &TableReader<'_>,
    sections: &Sections<'_>,
    listeners: &[ListenerPart],
    level: CheckLevel,
) {
    let here = level == CheckLevel::Machine;
    let auth = sections.get("auth");
    let admission: AdmissionArgs = auth
        .and_then(|own| own.keys.parse().ok())
        .unwrap_or_default();
    let is_web = |one: &ListenerPart| matches!(one.endpoint, Endpoint::Http(_));
    match (auth, &admission.token_file) {
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
        local_checks::tables(own, &own.keys.parse().unwrap_or_default());
    }
    if let Some(own) = sections.get("record") {
        own.require(
            "dir",
            "name the folder for recordings, or true for the state directory",
        );
        if let Ok(RecordArgs { folder, .. }) = own.keys.parse()
            && let Some(folder) = folder.filter(|folder| here && folder.as_os_str() != HOME)
        {
            local_checks::folder(own, "dir", &folder);
        }
    }
    if let Some(own) = sections.get("admin") {
        own.require("listen", "such as listen = \"127.0.0.1:9464\"");
        if let Ok(AdminArgs { listen }) = own.keys.parse()
            && let Some(AdminAddress(at)) = &listen
        {
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
        && let Ok(LogArgs { level, .. }) = own.keys.parse()
        && let Err(what) = telemetry::check(&level)
    {
        own.fault_of("level", what);
    }
    if let Some(own) = sections.get("agent-connect") {
        let args: AgentConnectArgs = own.keys.parse().unwrap_or_default();
        let is_given = own.keys.0.iter().any(|key| !key.values.is_empty());
        let count = ListenerPart::agent_connect_count(listeners);
        if level >= CheckLevel::Complete
            && let Err(what) = AgentConnectArgs::resolve(is_given.then_some(&args), count)
        {
            own.fault(own.at.clone(), what, "");
        }
        let store = own.keys.get("agent-connect.store").filter(|_| here);
        if let Some(store) = store.and_then(|key| key.values.first()) {
            local_checks::file(own, "store", store.as_ref());
        }
    }
}

/// The names accepted in certificates, with their keys.
pub(super) fn certificates(sections: &Sections<'_>) -> Option<BTreeMap<String, Keys>> {
    let (_, all) = sections.get("auth")?.named_tables("certificates")?;
    let named = all.into_iter();
    Some(named.map(|(_, name, reader)| (name, reader.keys)).collect())
}
