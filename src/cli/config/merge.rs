//! The effective options of `serve`: flags override variables, which override the file.

use std::ffi::OsStr;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, FromArgMatches as _};

use super::keys::{Key, Keys};
use super::model::{AgentPart, Config, ListenerPart};
use super::option::{self, contradict, path};
use crate::cli::endpoints;
use crate::cli::limits;
use crate::cli::listeners;
use crate::cli::serve::Serve;
use crate::cli::telemetry::LogArgs;
use transport::Endpoint;

/// The default listener.
const LISTEN: &str = "ws://127.0.0.1:0/acp";

/// Lists to which flags add, and which they do not replace.
const ADDED_TO: [&str; 3] = [
    "record.redact-pointer",
    "dialects.tables",
    "dialects.folders",
];

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

/// A parsed command line, with the definition of its subcommand.
pub(in crate::cli) struct CommandLine {
    command: Command,
    matches: ArgMatches,
}

/// The effective configuration of `serve`.
pub(in crate::cli) struct Effective {
    pub(in crate::cli) args: Serve,
    pub(in crate::cli) log: LogArgs,
    /// The agents and the listeners, with the flags for all of them.
    pub(in crate::cli) config: Config,
}

impl CommandLine {
    /// The part for the subcommand of these names, which was given.
    pub(in crate::cli) fn of(command: &Command, matches: &ArgMatches, names: &[&str]) -> Self {
        let (mut command, mut matches) = (command, matches);
        for name in names {
            matches = matches.subcommand_matches(name).expect("it was asked for");
            command = command.find_subcommand(name).expect("it was asked for");
        }
        Self {
            command: command.clone().no_binary_name(true),
            matches: matches.clone(),
        }
    }

    /// Whether it is that of this subcommand.
    #[cfg(feature = "cluster")]
    pub(in crate::cli) fn is_of(&self, name: &str) -> bool {
        self.command.get_name() == name
    }

    /// The effective configuration over that of a file.
    ///
    /// # Errors
    /// The options of the file and those of the command line cannot be combined.
    pub(in crate::cli) fn effective(&self, file: &Config) -> Result<Effective, String> {
        let keys = self.over(&file.keys);
        let mut arguments = keys.arguments(&self.command);
        if let Some(command) = keys.get("command") {
            arguments.push("--".into());
            arguments.extend(command.values.iter().cloned());
        }
        let read = || {
            let matches = self.command.clone().try_get_matches_from(arguments)?;
            let args = Serve::from_arg_matches(&matches)?;
            Ok((args, LogArgs::from_arg_matches(&matches)?))
        };
        let (mut args, log) = read().map_err(|error: clap::Error| error.to_string())?;
        args.admission.certificates = file.grants();
        let config = Config {
            agents: self.agents(&keys, &args, file)?,
            listeners: self.listeners(&keys, &args, file)?,
            certificates: file.certificates.clone(),
            keys,
        };
        Ok(Effective { args, log, config })
    }

    /// What a flag or a variable sets, if one is given.
    fn given(&self, arg: &Arg) -> Option<Key> {
        let id = arg.get_id().as_str();
        let from = match (self.matches.value_source(id)?, arg.get_long()) {
            (ValueSource::CommandLine, Some(long)) => format!("--{long}"),
            (ValueSource::CommandLine, None) => "command line".to_owned(),
            (ValueSource::EnvVariable, _) => {
                format!("${}", arg.get_env().unwrap_or_default().to_string_lossy())
            }
            _ => return None,
        };
        let read = |value: &OsStr| {
            // Those of limits have their names.
            let text = value.to_str().filter(|_| id != "limits")?;
            option::read(arg, text, Path::new("")).ok()
        };
        let values = self.matches.get_raw(id)?;
        Some(Key {
            id: id.to_owned(),
            from,
            values: values
                .map(|value| read(value).unwrap_or_else(|| value.to_owned()))
                .collect(),
        })
    }

    /// The options of `serve` over the keys of a file. A key gives way to a flag that contradicts
    /// it.
    fn over(&self, file: &Keys) -> Keys {
        let known: Vec<&Arg> = self.command.get_arguments().collect();
        let given = |arg: &&&Arg| self.given(arg).is_some();
        let mut keys = file.clone();
        for key in &mut keys.0 {
            let own = known.iter().find(|arg| arg.get_id() == &*key.id);
            let contradicted = own.is_some_and(|own| {
                let mut flags = known.iter().filter(given);
                flags.any(|flag| contradict(&self.command, own, flag))
            });
            if contradicted {
                key.values = vec!["false".into()];
                key.from = format!("the command line, overriding {}", key.from);
            }
        }
        for mut key in known.iter().filter_map(|arg| self.given(arg)) {
            if key.id == "limits" {
                for value in &key.values {
                    if let Some(Ok(set)) = value.to_str().map(limits::parse) {
                        keys.set(Key {
                            id: format!("limits.{}", set.limit.name),
                            from: key.from.clone(),
                            values: vec![set.limit.text(set.value).into()],
                        });
                    }
                }
                continue;
            }
            if let Some(own) = file.get(&key.id).filter(|_| ADDED_TO.contains(&&*key.id)) {
                key.values.splice(..0, own.values.iter().cloned());
            }
            keys.set(key);
        }
        keys
    }

    /// The keys of an agent or a listener, with those that flags set for all.
    fn with_flags(&self, table: &str, mut own: Keys, all: &Keys) -> Keys {
        own.0.retain(|key| {
            let (below, name) = path(&key.id);
            let limit = all.get(&format!("limits.{name}"));
            below == table || limit.is_none_or(|limit| limit.from != "--limit")
        });
        for (id, flag) in FLAGS.iter().filter(|(id, _)| path(id).0 == table) {
            let mut known = self.command.get_arguments();
            let flag = known.find(|arg| arg.get_id() == flag);
            if let Some(key) = flag.and_then(|flag| self.given(flag)) {
                let id = (*id).to_owned();
                own.set(Key { id, ..key });
            }
        }
        own
    }

    /// The agent of the command line, or else those of the file.
    fn agents(&self, keys: &Keys, args: &Serve, file: &Config) -> Result<Vec<AgentPart>, String> {
        let own = [
            ("agent", "agents.endpoint"),
            ("profile", "agents.profile"),
            ("command", "agents.command"),
        ];
        let own = own.into_iter().find_map(|(flag, id)| {
            let id = id.to_owned();
            Some(Key {
                id,
                ..keys.get(flag)?.clone()
            })
        });
        let all = match own {
            Some(own) => {
                let flags = keys.of("agents").cloned();
                vec![(None, Keys([own].into_iter().chain(flags).collect()))]
            }
            None if args.common.remote.is_some() && !file.agents.is_empty() => {
                return Err(
                    "options about remote agents apply to --agent; agents of the \
                            configuration file have their own, `acp-relay config example` shows \
                            them"
                        .to_owned(),
                );
            }
            None => {
                let only = args.only_agent.as_deref();
                let is_served =
                    |part: &&AgentPart| only.is_none_or(|_| part.name.as_deref() == only);
                let agents = file.agents.iter().filter(is_served);
                agents
                    .map(|part| (part.name.clone(), part.keys.clone()))
                    .collect()
            }
        };
        let all = all
            .into_iter()
            .map(|(name, own)| AgentPart::of(name, self.with_flags("agents", own, keys)));
        all.collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }

    /// The listeners of the command line, or else those of the file.
    fn listeners(
        &self,
        keys: &Keys,
        args: &Serve,
        file: &Config,
    ) -> Result<Vec<ListenerPart>, String> {
        let part = |own| {
            let part = ListenerPart::of(self.with_flags("listeners", own, keys));
            part.map_err(|error| error.to_string())
        };
        if args.listen.is_empty() && !file.listeners.is_empty() {
            if args.listeners.is_some() {
                return Err(
                    "options of listeners apply to those of --listen, and the listeners \
                            are those of the configuration file"
                        .to_owned(),
                );
            }
            return file
                .listeners
                .iter()
                .map(|own| part(own.keys.clone()))
                .collect();
        }
        let default = Key {
            id: String::new(),
            from: "default".to_owned(),
            values: vec![LISTEN.into()],
        };
        let listen = keys.get("listen").unwrap_or(&default);
        let parts = listen.values.iter().map(|at| {
            let endpoint = Key {
                id: "listeners.endpoint".to_owned(),
                from: listen.from.clone(),
                values: vec![at.clone()],
            };
            let flags = keys.of("listeners").cloned();
            part(Keys([endpoint].into_iter().chain(flags).collect()))
        });
        let parts: Vec<ListenerPart> = parts.collect::<Result<_, _>>()?;
        let endpoints: Vec<Endpoint> = parts.iter().map(|part| part.endpoint.clone()).collect();
        for (index, endpoint) in endpoints.iter().enumerate() {
            endpoints::check_listener(endpoint)?;
            if let Some(what) = endpoints::conflict(endpoints[..index].iter(), endpoint) {
                return Err(format!("--listen {endpoint}: {what}"));
            }
        }
        for key in keys.of("listeners") {
            listeners::check_suits_one(path(&key.id).1, &endpoints)?;
        }
        let options = args.listeners.clone().unwrap_or_default();
        options.check_tls(&endpoints)?;
        Ok(parts)
    }
}
