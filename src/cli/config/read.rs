//! Reads the text of a file into a [`Config`], or all its faults. `agents`, `listeners` and
//! `sections` read its parts.

use std::cell::{OnceCell, RefCell};
use std::process::ExitCode;

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::agents::{agents, check_default_permission};
use super::declared::sections;
use super::fault::{CheckLevel, Fault, Faults};
use super::file::ConfigFile;
use super::listeners::listeners;
use super::model::Config;
use super::options::{self, Sections, certificates};
use super::reader::{FileReader, TableReader};
use crate::cli::exit;

/// Most syntax faults that are reported one by one. A file with more is mostly not TOML, and each
/// of its lines is a fault.
const MAX_SYNTAX_FAULTS: usize = 10;

/// Reads a configuration file that only its user can change. Errors are printed, and the exit code
/// is returned.
pub(in crate::cli) fn load(place: &ConfigFile) -> Result<Config, ExitCode> {
    let text = place.text()?;
    place.check_owner()?;
    let read = read(place, &text, CheckLevel::Values);
    read.map_err(|faults| exit::fail(exit::CONFIG, &faults.report()))
}

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
pub(in crate::cli) fn read_with_notes(
    place: &ConfigFile,
    text: &str,
    level: CheckLevel,
) -> (Config, Faults) {
    let (tree, broken) = DeTable::parse_recoverable(text);
    let file = place.0.display().to_string();
    let found = syntax_faults(broken);
    // The readable parts of a file that is not TOML may mean something else than intended.
    if !found.is_empty() {
        return (Config::default(), Faults::new(&file, text, found));
    }
    let names = |table: &str| -> Vec<&str> {
        let table = tree.get_ref().get(table).map(Spanned::get_ref);
        let table = table.and_then(DeValue::as_table).into_iter().flatten();
        table.map(|(key, _)| &**key.get_ref()).collect()
    };
    let mut dialects = names("dialects").into_iter();
    let has_tables = dialects.any(|key| ["tables", "folders"].contains(&key));
    let shared = FileReader {
        text,
        folder: place.folder(),
        agents: names("agents").into_iter().map(str::to_owned).collect(),
        dialects: (!has_tables).then(OnceCell::new),
        found: RefCell::default(),
    };
    let config = config(&TableReader::root(&tree, &shared), level);
    (config, Faults::new(&file, text, shared.found.take()))
}

/// The faults of a text that is not TOML, in its order.
fn syntax_faults(mut broken: Vec<Error>) -> Vec<Fault> {
    broken.sort_by_key(|error| error.span().map_or(0, |at| at.start));
    // An unclosed value includes everything after it, and each following line is a fault.
    let unclosed = |error: &Error| {
        let unclosed = ["unclosed array,", "unclosed inline table,"];
        unclosed
            .iter()
            .any(|text| error.message().starts_with(text))
    };
    if broken.iter().any(unclosed) {
        broken.truncate(1);
    }
    let more = broken.len().saturating_sub(MAX_SYNTAX_FAULTS);
    let faults = broken.into_iter().take(MAX_SYNTAX_FAULTS + 1);
    let faults = faults.enumerate().map(|(index, error)| {
        let at = error.span().unwrap_or_default();
        match index {
            MAX_SYNTAX_FAULTS => {
                let what = format!("{more} more syntax faults from here on");
                Fault::new(at, what, "is this a TOML file?")
            }
            _ => Fault::new(at, error.message(), ""),
        }
    });
    faults.collect()
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
fn config(root: &TableReader<'_>, level: CheckLevel) -> Config {
    let names = sections().map(|table| table.path);
    let own: Sections<'_> = names
        .filter_map(|name| Some((name, root.table(name)?)))
        .collect();
    let mut keys = root.keys.clone();
    for key in own.values().flat_map(|section| &section.keys.0) {
        keys.set(key.clone());
    }
    let agents = agents(root, level);
    // Values with faults are left out.
    let listeners = listeners(root, level, &keys.parse().unwrap_or_default());
    if level >= CheckLevel::Complete {
        check_default_permission(&agents, &listeners);
    }
    options::check(root, &own, &listeners, level);
    Config {
        agents: agents.into_iter().map(|(_, part)| part).collect(),
        listeners,
        certificates: certificates(&own),
        keys,
    }
}
