//! Reads the text of a file into a [`Config`], or all its faults. `agents`, `listeners` and
//! `sections` read its parts.

use std::cell::OnceCell;
use std::path::PathBuf;

use toml::de::{DeTable, Error};

use super::agents::{agents, check_default_permission};
use super::context::{CheckLevel, Context, known_agent, settings};
use super::fault::{Fault, Faults};
use super::file::ConfigFile;
use super::keys::{self, DRAIN};
use super::listeners::listeners;
use super::model::{Config, FileOptions};
use super::sections::{Sections, certificates};
use super::table_reader::{FaultList, TableReader};
use crate::cli::limits;

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
    let command = keys::command::<FileOptions>();
    let mut keys = reader.keys(&command, "", &folder);
    let sections = Sections::read(reader, &command, &folder, &mut keys);
    // Values with faults are left out.
    let Some(options) = keys.parse::<FileOptions>() else {
        unreachable!("no option of a file is required");
    };
    let context = Context {
        folder,
        level,
        builtin: options.dialects.is_empty(),
        dialects: OnceCell::new(),
    };
    let (agents, names) = agents(reader, &context);
    if let Some(name) = &options.default_agent {
        let at = reader.at("default-agent");
        known_agent(reader, "default-agent", name, &at, &names);
    }
    let certificates = sections
        .get("auth")
        .and_then(|own| certificates(own, &names));
    let listeners = listeners(reader, &context, &names, &options.auth);
    if level >= CheckLevel::Complete {
        check_default_permission(reader, &agents, &listeners);
    }
    sections.check(reader, &options, &listeners, level);
    let mut limits = settings(reader, "limits", limits::find);
    limits.extend(settings(reader, "drain", |name| {
        let known = DRAIN.iter().find(|(key, _)| *key == name);
        let unknown = [
            format!("`drain.{name}` is not known"),
            "expected min, max".to_owned(),
        ];
        known.map_or(Err(unknown), |(_, limit)| limits::find(limit))
    }));
    sections.finish();
    reader.finish();
    Config {
        default_agent: options.default_agent,
        agents,
        listeners,
        limits,
        certificates,
        keys,
    }
}
