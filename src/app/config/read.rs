//! The text of a file made into a [`Config`], or into all its faults.
//!
//! Not here: its agents and listeners (see `agents`, `listeners`), and a single table (see
//! `sheet`).

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use toml::de::DeTable;

use super::agents::{Names, agents};
use super::fault::{Fault, Faults};
use super::listeners::listeners;
use super::place::Place;
use super::plan::Config;
use super::sheet::{Found, Sheet, nearest};
use crate::app::door::DoorArgs;
use crate::app::limits::{self, Setting};
use crate::app::record::RecordPart;
use crate::app::{telemetry, tongues};
use crate::core::Choice;
use crate::dialect::Library;
use crate::recording::redact::Pattern;

/// What is looked at while a file is read.
#[derive(Debug)]
pub(super) struct Context {
    /// Where relative paths begin.
    pub(super) folder: PathBuf,
    /// The dialects that may be named; not known when the file names tables of its own.
    dialects: Option<Library>,
}

/// Reads a configuration file's text.
///
/// # Errors
/// All its faults.
pub(in crate::app) fn read(place: &Place, text: &str) -> Result<Config, Faults> {
    let (tree, broken) = DeTable::parse_recoverable(text);
    let found = Found::default();
    for error in broken {
        let at = error.span().unwrap_or(0..0);
        found.add(Fault::new(&at, error.message().to_owned()));
    }
    let sheet = Sheet::new(String::new(), tree.span(), tree.get_ref(), &found);
    let config = config(&sheet, &place.folder());
    let faults = found.into_inner();
    match faults.is_empty() {
        true => Ok(config),
        false => Err(Faults::new(&place.0.display().to_string(), text, faults)),
    }
}

fn config(sheet: &Sheet<'_>, folder: &Path) -> Config {
    let dialects = sheet.sheet("dialects");
    let own = |key| {
        let paths = dialects
            .as_ref()
            .map(|sheet| sheet.list(key, |text| Ok(folder.join(text))));
        paths.unwrap_or_default()
    };
    let (tables, table_folders) = (own("tables"), own("folders"));
    if let Some(sheet) = &dialects {
        sheet.close();
    }
    let builtin = tables.is_empty() && table_folders.is_empty();
    let context = Context {
        folder: folder.to_owned(),
        // The built-in tables have no faults; a test holds them to that.
        dialects: builtin.then(Library::builtin).and_then(Result::ok),
    };
    let (agents, names) = agents(sheet, &context);
    let default_agent = default_agent(sheet, &names);
    let listeners = listeners(sheet, &context, &names);
    let log = sheet.sheet("log").and_then(|log| {
        let level = log.read("level", |text| {
            telemetry::check(text).map(|()| text.to_owned())
        });
        log.close();
        level.map(|level| level.value)
    });
    let record = sheet.sheet("record").map(|sheet| record(&sheet, &context));
    let auth = sheet.sheet("auth").map(|sheet| auth(&sheet, &context));
    let mut limits = settings(sheet, "limits", |_| None);
    limits.extend(drain(sheet));
    sheet.close();
    Config {
        default_agent,
        agents,
        listeners,
        record: record.unwrap_or_default(),
        limits,
        log,
        auth: auth.unwrap_or_default(),
        tables,
        table_folders,
    }
}

/// The agent of those who name none.
pub(super) fn default_agent(sheet: &Sheet<'_>, agents: &Names) -> Option<String> {
    let name = sheet.text("default-agent")?;
    known_agent(sheet, "default-agent", &name.value, &name.at, agents);
    Some(name.value)
}

/// Finds fault with the name of an agent that there is none of.
pub(super) fn known_agent(
    sheet: &Sheet<'_>,
    key: &str,
    name: &str,
    at: &std::ops::Range<usize>,
    agents: &Names,
) {
    if agents.contains(name) {
        return;
    }
    let what = format!("{}: there is no agent called `{name}`", sheet.path(key));
    match nearest(name, agents.iter().map(String::as_str)) {
        Some(near) => sheet.fault_with(at, what, format!("did you mean `{near}`?")),
        None => sheet.fault_with(at, what, format!("describe it below [agents.{name}]")),
    }
}

/// A dialect by name.
pub(super) fn dialect(sheet: &Sheet<'_>, context: &Context) -> Option<Choice> {
    let choice = sheet.read("dialect", |text| {
        let Ok(choice) = tongues::choice(text);
        if let (Choice::Named(name), Some(library)) = (&choice, &context.dialects) {
            library.table(name).map_err(|unknown| unknown.to_string())?;
        }
        Ok(choice)
    });
    choice.map(|choice| choice.value)
}

/// One of the values that a flag takes.
pub(super) fn one_of<T: ValueEnum>(sheet: &Sheet<'_>, key: &'static str) -> Option<T> {
    let value = sheet.read(key, |text| {
        T::from_str(text, false).map_err(|_| {
            let all = T::value_variants().iter().filter_map(T::to_possible_value);
            let all: Vec<String> = all.map(|value| value.get_name().to_owned()).collect();
            let near = nearest(text, all.iter().map(String::as_str));
            match near {
                Some(near) => format!("`{text}` is not known; did you mean `{near}`?"),
                None => format!("`{text}` is not known; expected one of {}", all.join(", ")),
            }
        })
    });
    value.map(|value| value.value)
}

/// A path, beginning at the file's folder.
pub(super) fn path(sheet: &Sheet<'_>, key: &'static str, context: &Context) -> Option<PathBuf> {
    let path = sheet.read(key, |text| match text.is_empty() {
        true => Err("an empty path".to_owned()),
        false => Ok(context.folder.join(text)),
    });
    path.map(|path| path.value)
}

/// The limits of the table `key`; `refuse` says why one may not stand there.
pub(super) fn settings(
    sheet: &Sheet<'_>,
    key: &'static str,
    refuse: impl Fn(&str) -> Option<String>,
) -> Vec<Setting> {
    let Some(sheet) = sheet.sheet(key) else {
        return Vec::new();
    };
    let mut settings = Vec::new();
    for (name, value) in sheet.entries() {
        let path = sheet.path(&name.value);
        if let Some(why) = refuse(&name.value) {
            sheet.fault(&name.at, format!("{path}: {why}"));
        } else if limits::names().any(|known| known == name.value) {
            match limits::parse(&format!("{}={}", name.value, value.value)) {
                Ok(setting) => settings.push(setting),
                Err(what) => sheet.fault(&value.at, format!("{path}: {what}")),
            }
        } else {
            let what = format!("there is no limit called `{}`", name.value);
            match nearest(&name.value, limits::names()) {
                Some(near) => sheet.fault_with(&name.at, what, format!("did you mean `{near}`?")),
                None => sheet.fault_with(&name.at, what, "`acp-relay --help` lists them"),
            }
        }
    }
    settings
}

/// The end, whose two times are limits.
fn drain(sheet: &Sheet<'_>) -> Vec<Setting> {
    let Some(sheet) = sheet.sheet("drain") else {
        return Vec::new();
    };
    let mut settings = Vec::new();
    for (name, value) in sheet.entries() {
        let path = sheet.path(&name.value);
        let limit = match name.value.as_str() {
            "min" => "drain-min",
            "max" => "drain",
            _ => {
                sheet.fault_with(
                    &name.at,
                    format!("`{path}` is not known"),
                    "expected min, max",
                );
                continue;
            }
        };
        match limits::parse(&format!("{limit}={}", value.value)) {
            Ok(setting) => settings.push(setting),
            Err(what) => sheet.fault(&value.at, format!("{path}: {what}")),
        }
    }
    settings
}

/// Who may come in, as the flags have it.
fn auth(sheet: &Sheet<'_>, context: &Context) -> DoorArgs {
    let flag = |key| sheet.flag(key).unwrap_or(false);
    let auth = DoorArgs {
        require_token: flag("require-token"),
        token_file: path(sheet, "token-file", context),
        no_auth_loopback: flag("no-auth-loopback"),
        tls_client_ca: None,
        dangerously_no_auth: flag("dangerously-no-auth"),
        dangerously_plaintext: flag("dangerously-plaintext"),
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
    auth
}

fn record(sheet: &Sheet<'_>, context: &Context) -> RecordPart {
    let part = RecordPart {
        folder: path(sheet, "dir", context),
        mode: one_of(sheet, "mode"),
        policy: one_of(sheet, "policy"),
        redact: one_of(sheet, "redact"),
        pointers: sheet.list("redact-pointer", |text| {
            text.parse::<Pattern>().map_err(|error| error.to_string())
        }),
        strict: sheet.flag("strict"),
    };
    if part.folder.is_none() && sheet.has("dir").is_none() {
        sheet.fault_with(
            &sheet.at,
            "record: `dir` is missing",
            "name the folder that recordings go to",
        );
    }
    sheet.close();
    part
}
