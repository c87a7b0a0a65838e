//! `config show`: the effective configuration of `serve` for this file, environment and command
//! line, as a file in which each line names its source. Values of variables and headers are left
//! out, and secrets are redacted.

use std::collections::BTreeMap;

use super::declared::{declared, sections};
use super::keys::{self, DRAIN, Form, Keys};
use super::merge::CommandLine;
use super::model::{AgentPart, Config, ListenerPart, Source};
use super::report::{Report, bare, list, number, quote, toml, words};
use crate::auth::Agents;
use crate::cli::serve::{self, Serve};
use crate::jsonrpc::limits::LIMITS;

/// Tables that are shown although nothing in them is set.
const ALWAYS: [&str; 3] = ["", "auth", "log"];

/// Keys of agents and listeners, and the flags that set them for all.
const FLAGS: [(&str, &str); 6] = [
    ("listeners.dialect", "client-dialect"),
    ("listeners.framing", "client_framing"),
    ("agents.dialect", "agent-dialect"),
    ("agents.framing", "agent_framing"),
    ("agents.on-disconnect", "on-disconnect"),
    (
        "agents.default-permission",
        "agent-connect.default-permission",
    ),
];

/// The text of the effective configuration. `lines` has the lines of the keys of the file.
///
/// # Errors
/// The options are inconsistent.
pub(super) fn show(
    line: &CommandLine,
    file: &Config,
    lines: BTreeMap<String, usize>,
) -> Result<String, String> {
    let (args, _) = line.effective(file).map_err(|error| error.to_string())?;
    let listeners = serve::listener_parts(&args, file)?;
    let keys = line.over(&file.keys);
    let mut report = Report::new(line, lines);
    report.table("", &keys, file);
    report.listeners(&args, file, &listeners, &keys);
    report.agents(&args, file);
    for table in sections() {
        match table.path {
            "limits" => report.limits(&args, file),
            // Limits.
            "drain" => {}
            path => report.table(path, &keys, file),
        }
        if table.path == "auth" {
            report.certificates(file);
        }
    }
    Ok(report.into_text())
}

impl Report<'_> {
    /// A table with options of the whole file.
    fn table(&mut self, table: &str, keys: &Keys, file: &Config) {
        if !ALWAYS.contains(&table) && keys.of(table).next().is_none() {
            return;
        }
        if !table.is_empty() {
            self.open(&format!("[{table}]"), &format!("{table}."));
        }
        for (key, arg) in declared(table) {
            let (id, usual) = (arg.get_id().as_str(), keys::default(arg));
            match keys.get(id).or_else(|| file.keys.get(id)) {
                Some(_) if keys.get(id).is_none() => {
                    let line = self.source(None, id);
                    self.line_from(key, false, &format!("the command line, overriding {line}"));
                }
                Some(values) => self.line(key, Some(id), toml(arg, values)),
                None if keys::form(arg) == Form::Flag => self.line(key, Some(id), false),
                None if !usual.is_empty() => self.line(key, Some(id), toml(arg, &usual)),
                None => {}
            }
        }
    }

    /// The keys that are set in one of several tables, or that a flag sets for all of them, without
    /// those in `apart`.
    fn keys(&mut self, table: &str, keys: &Keys, apart: &[&str]) {
        for (key, arg) in declared(table).filter(|(key, _)| !apart.contains(key)) {
            let id = arg.get_id().as_str();
            let flag = FLAGS.iter().find(|(own, _)| *own == id);
            let flag = flag.map(|(_, flag)| *flag);
            let given = flag.and_then(|flag| self.line.values(flag));
            if let Some(values) = given.or_else(|| keys.get(id).map(<[_]>::to_vec)) {
                self.line(key, flag.or(Some(id)), toml(arg, &values));
            }
        }
    }

    fn listeners(&mut self, args: &Serve, file: &Config, parts: &[ListenerPart], keys: &Keys) {
        let of_file = args.listen.is_empty() && !file.listeners.is_empty();
        for (index, part) in parts.iter().enumerate() {
            let table = match of_file {
                true => format!("listeners.{index}."),
                false => String::new(),
            };
            self.open("[[listeners]]", &table);
            let endpoint = quote(&part.endpoint.to_string());
            self.line("endpoint", Some("listen"), endpoint);
            let keys = if of_file { &part.keys } else { keys };
            self.keys("listeners", keys, &["endpoint"]);
        }
    }

    /// The agent of the command line, or else those of the file.
    fn agents(&mut self, args: &Serve, file: &Config) {
        let (id, key, value) = match (&args.agent, args.profile) {
            (Some(endpoint), _) => ("agent", "endpoint", quote(&endpoint.to_string())),
            (None, Some(profile)) => ("profile", "profile", quote(&profile.name)),
            (None, None) if args.command.is_empty() => {
                for (name, part) in &file.agents {
                    self.agent(args, name, part);
                }
                return;
            }
            (None, None) => ("command", "command", words(&args.command)),
        };
        // It has no name in the file.
        self.open("[agents.default]", "");
        self.line(key, Some(id), value);
        self.keys("agents", &Keys::default(), &[]);
    }

    fn agent(&mut self, args: &Serve, name: &str, part: &AgentPart) {
        let table = format!("agents.{name}.");
        self.open(&format!("[agents.{}]", bare(name)), &table);
        let mut apart = vec!["record"];
        if let (Some(_), Source::Program(program)) = (part.profile, part.source()) {
            let from = format!("{}, a profile", self.source(None, &self.path("profile")));
            self.line_from("command", words(&program.argv), &from);
            apart.extend(["profile", "args"]);
        }
        if let Some(endpoint) = &part.endpoint {
            self.line("endpoint", None, quote(&endpoint.to_string()));
            apart.push("endpoint");
        }
        self.keys("agents", &part.keys, &apart);
        self.line("record", None, part.record);
        if !part.limits.is_empty() {
            let table = format!("agents.{name}.limits.");
            self.open(&format!("[agents.{}.limits]", bare(name)), &table);
            let flags = LIMITS.iter().filter(|limit| args.common.sets(&limit.name));
            let flags: Vec<&str> = flags.map(|limit| &*limit.name).collect();
            self.keys("agents.limits", &part.keys, &flags);
        }
    }

    fn certificates(&mut self, file: &Config) {
        for (name, agents) in file.certificates.iter().flatten() {
            let table = format!("auth.certificates.{name}.");
            self.open(&format!("[auth.certificates.{}]", bare(name)), &table);
            if let Agents::These(agents) = agents {
                self.line("agents", None, list(agents));
            }
        }
    }

    fn limits(&mut self, args: &Serve, file: &Config) {
        self.open("[limits]", "limits.");
        let limits = args.common.limits_over(&[&file.limits]);
        for limit in LIMITS.iter() {
            let (name, value) = (&*limit.name, number(&limit.text(limit.get(&limits))));
            let drain = DRAIN.iter().find(|(_, limit)| *limit == name);
            let drain = drain.map_or("", |(id, _)| id);
            if args.common.sets(name) {
                self.line_from(name, value, "--limit");
            } else if self.is_in_file(drain) {
                let from = self.source(None, drain);
                self.line_from(name, value, &from);
            } else {
                self.line(name, None, value);
            }
        }
    }
}
