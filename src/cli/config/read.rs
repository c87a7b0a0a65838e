//! Reads the text of a file into a [`Config`], or all its faults. `agents`, `listeners` and
//! `sections` read its parts.

use std::cell::{OnceCell, RefCell};

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::agents::{agents, check_default_permission};
use super::declared::sections;
use super::fault::{CheckLevel, Fault, Faults};
use super::file::ConfigFile;
use super::listeners::listeners;
use super::model::{Config, FileOptions};
use super::options::{self, certificates};
use super::table_reader::{FileReader, TableReader};

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
    let mut found = Vec::new();
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
        found.push(fault);
    }
    if let Some(mut next) = broken.next() {
        next.what = format!("{} more syntax faults from here on", 1 + broken.count());
        found.push(next.with_remedy("is this a TOML file?"));
    }
    // The readable parts of a file that is not TOML may mean something else than intended.
    if !found.is_empty() {
        return (Config::default(), Faults::new(&file, text, found));
    }
    let names = |table: &str| -> Vec<&str> {
        let table = tree.get_ref().get(table).map(Spanned::get_ref);
        let table = table.and_then(DeValue::as_table).into_iter().flatten();
        table.map(|(key, _)| &**key.get_ref()).collect()
    };
    let own_dialects = ["tables", "folders"];
    let own_dialects = names("dialects")
        .iter()
        .any(|key| own_dialects.contains(key));
    let shared = FileReader {
        folder: place.folder(),
        agents: names("agents").into_iter().map(str::to_owned).collect(),
        dialects: (!own_dialects).then(OnceCell::new),
        found: RefCell::default(),
    };
    let config = config(&TableReader::new(&tree, &shared), level);
    let found = shared.found.into_inner();
    (config, Faults::new(&file, text, found))
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
    let mut keys = root.keys();
    for table in sections() {
        if let Some(own) = root.table(table.path) {
            keys.append(own.keys());
        }
    }
    // Values with faults are left out.
    let Some(options) = keys.parse::<FileOptions>() else {
        unreachable!("no option of a file is required");
    };
    let agents = agents(root, level);
    let listeners = listeners(root, level, &options.auth);
    if level >= CheckLevel::Complete {
        check_default_permission(&agents, &listeners);
    }
    options::check(root, &options, &listeners, level);
    let mut limits = keys.settings("limits");
    limits.extend(keys.settings("drain"));
    let agents = agents.into_iter();
    Config {
        default_agent: options.default_agent,
        agents: agents.map(|(name, _, part)| (name, part)).collect(),
        listeners,
        limits,
        certificates: certificates(root),
        keys,
    }
}
