//! Reads the text of a file into a [`Config`], or all its faults. `agents`, `listeners` and
//! `sections` read its parts.

use std::cell::OnceCell;
use std::path::PathBuf;

use toml::de::{DeTable, Error};

use super::agents::{agents, check_default_permission};
use super::context::{CheckLevel, Context, default_agent, one_of, settings};
use super::fault::{Fault, Faults};
use super::file::ConfigFile;
use super::listeners::listeners;
use super::local_checks;
use super::model::{Config, ListenerPart};
use super::sections::{admin, agent_connect, auth, log, record, traces};
use super::table_reader::{FaultList, TableReader};
use crate::cli::limits::{self, Setting};
use crate::transport::Endpoint;

/// Most syntax faults that are reported one by one. A file with more is mostly not TOML, and each
/// of its lines is a fault.
const MAX_SYNTAX_FAULTS: usize = 10;

/// Reads the text of a configuration file.
///
/// # Errors
/// All its faults.
pub(in crate::cli) fn read(
    place: &ConfigFile,
    text: &str,
    level: CheckLevel,
) -> Result<Config, Faults> {
    let (config, faults) = read_with_notes(place, text, level);
    match faults.has_only_notes() {
        true => Ok(config),
        false => Err(faults),
    }
}

/// The same, but returns the faults and notes in any case.
pub(super) fn read_with_notes(
    place: &ConfigFile,
    text: &str,
    level: CheckLevel,
) -> (Config, Faults) {
    let (tree, mut broken) = DeTable::parse_recoverable(text);
    let found = FaultList::default();
    let file = place.0.display().to_string();
    broken.sort_by_key(|error| error.span().map_or(0, |at| at.start));
    // An unclosed value includes everything after it, and each following line is a fault.
    let unclosed = |error: &Error| {
        error.message().starts_with("unclosed array,")
            || error.message().starts_with("unclosed inline table,")
    };
    if broken.iter().any(unclosed) {
        broken.truncate(1);
    }
    let mut broken = broken.into_iter().map(|error| {
        let at = error.span().unwrap_or(0..0);
        Fault::new(&at, error.message().to_owned())
    });
    for fault in broken.by_ref().take(MAX_SYNTAX_FAULTS) {
        found.add(fault);
    }
    if let Some(mut next) = broken.next() {
        next.what = format!("{} more syntax faults from here on", 1 + broken.count());
        found.add(next.with_remedy("is this a TOML file?"));
    }
    // The readable parts of a file that is not TOML may mean something else than intended.
    if !found.is_empty() {
        return (
            Config::default(),
            Faults::new(&file, text, found.into_inner()),
        );
    }
    let reader = TableReader::new(String::new(), tree.span(), tree.get_ref(), &found);
    let config = config(&reader, place.folder(), level);
    (config, Faults::new(&file, text, found.into_inner()))
}

/// All faults in the text of a configuration file, a line each, as `config check --other-machine`
/// prints them; `None` if there are none. Accesses no file.
#[must_use]
pub fn faults(text: &str) -> Option<String> {
    let place = ConfigFile("acp-relay.toml".into());
    let faults = read(&place, text, CheckLevel::Complete).err();
    faults.map(|faults| faults.to_string())
}

/// The content of the file.
fn config(reader: &TableReader<'_>, folder: PathBuf, level: CheckLevel) -> Config {
    let dialects = reader.table("dialects");
    let own = |key| {
        let paths = dialects
            .as_ref()
            .map(|reader| reader.list(key, |text| Ok(folder.join(text))));
        paths.unwrap_or_default()
    };
    let (tables, table_folders) = (own("tables"), own("folders"));
    if let Some(reader) = &dialects {
        reader.finish();
        if level == CheckLevel::Machine {
            local_checks::tables(reader, &tables, &table_folders);
        }
    }
    let builtin = tables.is_empty() && table_folders.is_empty();
    let context = Context {
        folder,
        level,
        builtin,
        dialects: OnceCell::new(),
    };
    let (agents, names) = agents(reader, &context);
    let default_agent = default_agent(reader, &names);
    let own = reader.table("auth");
    let auth = own
        .as_ref()
        .map_or_else(Default::default, |own| auth(own, &context, &names));
    let listeners = listeners(reader, &context, &names, &auth);
    let shown = |one: &ListenerPart| matches!(one.endpoint, Endpoint::Http(_));
    if level == CheckLevel::Machine
        && auth.token_file.is_none()
        && (listeners.is_empty() || listeners.iter().any(shown))
    {
        local_checks::tokens(reader, "auth", None);
    }
    if level >= CheckLevel::Complete
        && auth.certificates.is_some()
        && listeners.iter().all(|one| one.tls.client_ca.is_none())
        && let Some(at) = own.as_ref().and_then(|own| own.has("certificates"))
    {
        let what = "auth.certificates: no listener takes certificates of clients";
        reader.fault_with(&at, what, "name their authorities with `tls-client-ca`");
    }
    if level >= CheckLevel::Complete {
        check_default_permission(reader, &agents, &listeners);
    }
    let log = reader.table("log").map(|reader| log(&reader));
    let traces = reader.table("traces").map(|reader| traces(&reader));
    let record = reader
        .table("record")
        .map(|reader| record(&reader, &context));
    let admin = reader
        .table("admin")
        .and_then(|reader| admin(&reader, &context, &listeners));
    let agent_connect = reader
        .table("agent-connect")
        .map(|reader| agent_connect(&reader, &context, &listeners));
    let mut limits = settings(reader, "limits", |_| None);
    limits.extend(drain(reader));
    let on_disconnect = one_of(reader, "on-disconnect");
    reader.finish();
    Config {
        default_agent,
        agents,
        listeners,
        record: record.unwrap_or_default(),
        limits,
        log: log.unwrap_or_default(),
        admin,
        agent_connect: agent_connect.unwrap_or_default(),
        on_disconnect,
        auth,
        traces: traces.unwrap_or_default(),
        tables,
        table_folders,
    }
}

/// The two limits in `[drain]`.
fn drain(reader: &TableReader<'_>) -> Vec<Setting> {
    let Some(reader) = reader.table("drain") else {
        return Vec::new();
    };
    let mut settings = Vec::new();
    for (name, value) in reader.entries() {
        let path = reader.path(&name.value);
        let limit = match name.value.as_str() {
            "min" => "drain-min",
            "max" => "drain",
            _ => {
                reader.fault_with(
                    &name.at,
                    format!("`{path}` is not known"),
                    "expected min, max",
                );
                continue;
            }
        };
        match limits::parse(&format!("{limit}={}", value.value)) {
            Ok(setting) => settings.push(setting),
            Err(what) => reader.fault(&value.at, format!("{path}: {what}")),
        }
    }
    settings
}
