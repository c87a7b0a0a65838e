//! `config show`: the effective configuration of `serve` for this file, environment and command
//! line, as a file in which each line names its source. Values of variables and headers are left
//! out, and secrets are redacted.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::Arg;

use super::declared::{declared, sections};
use super::keys::Keys;
use super::merge::CommandLine;
use super::model::Config;
use super::option::{Form, default, form, value_name};
use super::reader::is_bare;
use crate::cli::log_redaction;

/// The column of the comments, in characters.
const COLUMN: usize = 56;

/// Replaces a value that may be secret.
const HIDDEN: &str = "‹hidden›";

/// Tables that are shown although nothing in them is set.
const ALWAYS: [&str; 3] = ["auth", "log", "limits"];

/// The text of the effective configuration.
///
/// # Errors
/// The options are inconsistent.
pub(super) fn show(line: &CommandLine, file: &Config) -> Result<String, String> {
    let config = line.effective(file)?.config;
    let mut text = String::new();
    let mut table = |heading: &str, path: &str, keys: &Keys| {
        if !heading.is_empty() {
            let _ = writeln!(text, "\n{heading}");
        }
        let is_whole = path.is_empty() || sections().any(|table| table.path == path);
        for (key, arg) in declared(path) {
            let (set, usual) = (keys.get(arg.get_id().as_str()), default(arg));
            let (value, from) = match (set, form(arg)) {
                (Some(set), _) => (toml(arg, &set.values), &*set.from),
                (None, Form::Flag) if is_whole => ("false".to_owned(), "default"),
                (None, _) if (is_whole || key == "record") && !usual.is_empty() => {
                    (toml(arg, &usual), "default")
                }
                _ => continue,
            };
            // Writing to a string does not fail.
            let setting = format!("{} = {value}", bare(key));
            let _ = writeln!(text, "{setting:COLUMN$}  # {from}");
        }
    };
    table("", "", &config.keys);
    for part in &config.listeners {
        table("[[listeners]]", "listeners", &part.keys);
    }
    for part in &config.agents {
        // That of the command line has no name.
        let name = bare(part.name.as_deref().unwrap_or("default"));
        table(&format!("[agents.{name}]"), "agents", &part.keys);
        if !part.limits.is_empty() {
            table(
                &format!("[agents.{name}.limits]"),
                "agents.limits",
                &part.keys,
            );
        }
    }
    // Those of `[drain]` are shown as limits.
    for path in sections()
        .map(|table| table.path)
        .filter(|path| *path != "drain")
    {
        if ALWAYS.contains(&path) || config.keys.of(path).next().is_some() {
            table(&format!("[{path}]"), path, &config.keys);
        }
        let certificates = config.certificates.iter().flatten();
        for (name, keys) in certificates.filter(|_| path == "auth") {
            let heading = format!("[auth.certificates.{}]", bare(name));
            table(&heading, "auth.certificates", keys);
        }
    }
    Ok(text.trim_start().to_owned())
}

/// The values of an option as TOML, without those that may be secret.
pub(super) fn toml(arg: &Arg, values: &[OsString]) -> String {
    let texts: Vec<String> = values
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    let last = texts.last().map_or("", String::as_str);
    let names = |end| {
        texts
            .iter()
            .map(move |text| text.split(end).next().unwrap_or_default())
    };
    match form(arg) {
        Form::Map => {
            let entries = names('=').map(|name| format!("{} = \"{HIDDEN}\"", bare(name)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Form::List if value_name(arg) == "NAME: VALUE" => {
            let headers = names(':').map(|name| format!("{name}: {HIDDEN}"));
            list(&headers.collect::<Vec<_>>())
        }
        Form::List => list(&texts),
        Form::TextOrTrue if last == "true" => last.to_owned(),
        Form::Text | Form::TextOrTrue => quote(last),
        Form::Number => number(last),
        Form::Flag | Form::Bool => last.to_owned(),
    }
}

/// A number as TOML, or any other text as a string.
pub(super) fn number(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(number) => number.to_string(),
        Err(_) => quote(text),
    }
}

pub(super) fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A key as TOML.
fn bare(key: &str) -> String {
    match is_bare(key) {
        true => key.to_owned(),
        false => quote(key),
    }
}

/// A TOML string, with secrets redacted.
pub(super) fn quote(text: &str) -> String {
    let text = log_redaction::clean(text);
    let quoted = serde_json::Value::from(&*text).to_string();
    // A JSON string is a TOML string, except for this character.
    quoted.replace('\u{7f}', "\\u007f")
}
