//! The effective options of `serve`: flags override variables, which override the file.

use std::ffi::OsStr;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::declared::contradict;
use super::keys::{Key, Keys};
use super::model::{AgentPart, Config, ListenerPart};
use super::option::{self, path};
use crate::cli::endpoints;
use crate::cli::limits::Setting;
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

/// What a command line and variables set for a subcommand.
pub(in crate::cli) struct CommandLine {
    #[cfg(feature = "cluster")]
    subcommand: String,
    given: Keys,
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
        let arguments = command.get_arguments();
        let given = Keys(arguments.flat_map(|arg| given(arg, matches)).collect());
        Self {
            #[cfg(feature = "cluster")]
            subcommand: command.get_name().to_owned(),
            given,
        }
    }

    /// Whether it is that of this subcommand.
    #[cfg(feature = "cluster")]
    pub(in crate::cli) fn is_of(&self, name: &str) -> bool {
        self.subcommand == name
    }

    /// The effective configuration over that of a file.
    ///
    /// # Errors
    /// The options of the file and those of the command line cannot be combined.
    pub(in crate::cli) fn effective(&self, file: &Config) -> Result<Effective, String> {
        let keys = self.over(&file.keys);
        let mut args: Serve = keys.parse()?;
        let log = keys.parse()?;
        args.common.limits = keys.settings("limits");
        args.admission.certificates = file.grants();
        let config = Config {
            agents: self.agents(&keys, &args, file)?,
            listeners: self.listeners(&keys, &args, file)?,
            certificates: file.certificates.clone(),
            keys,
        };
        Ok(Effective { args, log, config })
    }

    /// The options of `serve` over the keys of a file. A key gives way to a flag that contradicts
    /// it.
    fn over(&self, file: &Keys) -> Keys {
        let mut keys = file.clone();
        for key in &mut keys.0 {
            let mut flags = self.given.0.iter();
            if flags.any(|flag| contradict(&key.id, &flag.id)) {
                key.values = vec!["false".into()];
                key.from = format!("the command line, overriding {}", key.from);
            }
        }
        for mut key in self.given.0.iter().cloned() {
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
            if let Some(key) = self.given.get(flag) {
                own.set(key.named(id));
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
        let mut own = own.into_iter();
        let own = own.find_map(|(flag, id)| Some(keys.get(flag)?.named(id)));
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
        all.collect()
    }

    /// The listeners of the command line, or else those of the file.
    fn listeners(
        &self,
        keys: &Keys,
        args: &Serve,
        file: &Config,
    ) -> Result<Vec<ListenerPart>, String> {
        let part = |own| ListenerPart::of(self.with_flags("listeners", own, keys));
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
                values: vec![at.clone()],
                ..listen.named("listeners.endpoint")
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

/// The keys that a flag or a variable sets, if one is given.
fn given(arg: &Arg, matches: &ArgMatches) -> Vec<Key> {
    let id = arg.get_id().as_str();
    let from = match (matches.value_source(id), arg.get_long()) {
        (Some(ValueSource::CommandLine), Some(long)) => format!("--{long}"),
        (Some(ValueSource::CommandLine), None) => "command line".to_owned(),
        (Some(ValueSource::EnvVariable), _) => {
            format!("${}", arg.get_env().unwrap_or_default().to_string_lossy())
        }
        _ => return Vec::new(),
    };
    let key = |id: String, values| Key {
        id,
        from: from.clone(),
        values,
    };
    if let Ok(Some(limits)) = matches.try_get_many(id) {
        let of = |set: &Setting| {
            let value = set.limit.text(set.value).into();
            key(format!("limits.{}", set.limit.name), vec![value])
        };
        return limits.map(of).collect();
    }
    let read = |value: &OsStr| option::read(arg, value.to_str()?, Path::new("")).ok();
    let values = matches.get_raw(id).into_iter().flatten();
    let values = values.map(|value| read(value).unwrap_or_else(|| value.to_owned()));
    vec![key(id.to_owned(), values.collect())]
}
