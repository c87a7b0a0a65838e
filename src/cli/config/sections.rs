//! The tables whose keys are flags: `[auth]`, `[record]`, `[admin]`, `[agent-connect]`,
//! `[dialects]`, `[traces]` and `[log]`.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Command;

use super::context::{CheckLevel, Names, known_agent};
use super::keys::{self, Keys};
use super::local_checks;
use super::model::{FileOptions, ListenerPart};
use super::table_reader::TableReader;
use crate::auth::Agents;
use crate::cli::admin::AdminAddress;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::telemetry;
use crate::transport::Endpoint;

/// The readers of those tables that are in the file, by name.
pub(super) struct Sections<'f>(Vec<(String, TableReader<'f>)>);

impl<'f> Sections<'f> {
    /// Reads the tables, whose keys `command` declares, into `keys`.
    pub(super) fn read(
        file: &TableReader<'f>,
        command: &Command,
        folder: &Path,
        keys: &mut Keys,
    ) -> Self {
        let tables = keys::tables(command).into_iter();
        let read = tables.filter_map(|name| {
            let reader = file.table(name)?;
            keys.append(reader.keys(command, name, folder));
            Some((name.to_owned(), reader))
        });
        Self(read.collect())
    }

    /// The reader of a table.
    pub(super) fn get(&self, name: &str) -> Option<&TableReader<'f>> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, reader)| reader)
    }

    /// Reports what is wrong with the values together, and what is missing on this machine.
    pub(super) fn check(
        &self,
        file: &TableReader<'_>,
        options: &FileOptions,
        listeners: &[ListenerPart],
        level: CheckLevel,
    ) {
        self.check_auth(file, options, listeners, level);
        if let Some(own) = self.get("dialects")
            && level == CheckLevel::Machine
        {
            local_checks::tables(own, &options.dialects);
        }
        if let Some(own) = self.get("record") {
            if own.has("dir").is_none() {
                let remedy = "name the folder for recordings";
                own.fault_with(&own.at, "record: `dir` is missing", remedy);
            }
            let folder = options
                .record
                .as_ref()
                .and_then(|args| args.folder.as_ref());
            if let (CheckLevel::Machine, Some(folder)) = (level, folder) {
                local_checks::folder(own, "dir", folder);
            }
        }
        if let Some(own) = self.get("admin") {
            if own.has("listen").is_none() {
                let remedy = "such as listen = \"127.0.0.1:9464\"";
                own.fault_with(&own.at, "admin: `listen` is missing", remedy);
            }
            if let Some(address) = &options.admin.listen {
                check_admin(own, address, listeners, level);
            }
        }
        if let Some(own) = self.get("log")
            && let Err(what) = telemetry::check(&options.log.level)
        {
            own.fault(&own.at("level"), format!("log.level: {what}"));
        }
        if let Some(own) = self.get("agent-connect") {
            let args = options.agent_connect.as_ref();
            if level >= CheckLevel::Complete
                && let Err(what) =
                    AgentConnectArgs::resolve(args, ListenerPart::agent_connect_count(listeners))
            {
                own.fault(&own.at, what);
            }
            let store = args.and_then(|args| args.store.as_ref());
            if let (CheckLevel::Machine, Some(store)) = (level, store) {
                local_checks::file(own, "store", store);
            }
        }
    }

    /// Reports unknown keys.
    pub(super) fn finish(&self) {
        for (_, reader) in &self.0 {
            reader.finish();
        }
    }

    fn check_auth(
        &self,
        file: &TableReader<'_>,
        options: &FileOptions,
        listeners: &[ListenerPart],
        level: CheckLevel,
    ) {
        let is_web = |one: &ListenerPart| matches!(one.endpoint, Endpoint::Http(_));
        match (self.get("auth"), &options.auth.token_file) {
            (Some(own), Some(token)) if level == CheckLevel::Machine => {
                local_checks::tokens(own, "token-file", Some(token));
            }
            (_, None)
                if level == CheckLevel::Machine
                    && (listeners.is_empty() || listeners.iter().any(is_web)) =>
            {
                local_checks::tokens(file, "auth", None);
            }
            _ => {}
        }
        let mut authorities = listeners
            .iter()
            .map(|one| one.options.tls_client_ca.as_ref());
        if level >= CheckLevel::Complete
            && let Some(at) = self.get("auth").and_then(|own| own.has("certificates"))
            && authorities.all(|file| file.is_none())
        {
            let what = "auth.certificates: no listener takes certificates of clients";
            file.fault_with(&at, what, "name their authorities with `tls-client-ca`");
        }
    }
}

/// The names accepted in certificates, and the agents of each.
pub(super) fn certificates(
    reader: &TableReader<'_>,
    agents: &Names,
) -> Option<BTreeMap<String, Agents>> {
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

/// Checks the address of the admin listener.
fn check_admin(
    reader: &TableReader<'_>,
    address: &AdminAddress,
    listeners: &[ListenerPart],
    level: CheckLevel,
) {
    let own = address.endpoint();
    let same = |one: &&ListenerPart| one.endpoint == own || one.endpoint.shares_port(&own);
    if let Some(one) = listeners.iter().find(same) {
        let what = format!("{} uses the same address", one.endpoint);
        let remedy = "monitoring needs an address of its own";
        reader.fault_with(&reader.at("listen"), what, remedy);
    } else if level == CheckLevel::Machine {
        local_checks::address(reader, "listen", &own);
    }
}
