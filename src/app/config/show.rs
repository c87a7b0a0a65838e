//! `config show`: what `serve` would do with this file, this environment and this command line, as a
//! file, and behind each line who has said so.
//!
//! Values of variables and headers are left out, and so is what looks like a secret. Not here: who
//! has said what (see `source`).

use std::fmt::Write as _;
use std::path::Path;

use clap::ValueEnum;

use super::plan::{AgentPart, Config, ListenerPart, Source};
use super::source::Sources;
use crate::app::cli::Serve;
use crate::app::common::FramingChoice;
use crate::app::record::spell_age;
use crate::app::remote::RemoteArgs;
use crate::app::traces::TracesPart;
use crate::app::{discretion, limits, serve, telemetry};
use crate::core::Choice;
use crate::guard::Agents;
use crate::transport::{Endpoint, Launch};

/// Where the remarks begin, in characters.
const COLUMN: usize = 56;
/// Stands for what may be a secret.
const HIDDEN: &str = "\"‹hidden›\"";

/// The page that is shown.
struct Page<'a> {
    text: String,
    sources: &'a Sources<'a>,
    /// The path of the table that is written, with a full stop behind it.
    table: String,
}

/// The page of what is in force. `log` is what the command line says of the log.
///
/// # Errors
/// What does not go together, for a person.
pub(super) fn show(
    args: &Serve,
    file: &Config,
    log: (Option<&str>, Option<telemetry::Form>),
    sources: &Sources<'_>,
) -> Result<String, String> {
    let listeners = serve::listener_parts(args, file)?;
    let mut page = Page {
        text: String::new(),
        sources,
        table: String::new(),
    };
    page.maybe("default-agent", None, file.default_agent.as_deref());
    let on_disconnect = args.on_disconnect.or(file.on_disconnect);
    let kept = on_disconnect.unwrap_or_default();
    page.line("on-disconnect", Some("on_disconnect"), word(&kept));
    let named = args.listen.is_empty();
    for (index, part) in listeners.iter().enumerate() {
        let own = (named && !file.listeners.is_empty()).then_some(index);
        page.listener(args, part, own);
    }
    let words = match (&args.agent, args.profile) {
        (Some(endpoint), _) => Some(("agent", "endpoint", quote(&endpoint.to_string()))),
        (None, Some(profile)) => Some(("profile", "profile", quote(&profile.name))),
        (None, None) if args.command.is_empty() => None,
        (None, None) => Some(("command", "command", words(&args.command))),
    };
    match words {
        // It has no name; this one is nobody else's.
        Some((id, key, value)) => {
            page.open("[agents.default]", "");
            page.line(key, Some(id), value);
            page.tongue(args.common.agent_dialect(), "agent-dialect");
            page.framing(args.common.agent_framing(None), "agent_framing");
        }
        None => {
            for (name, part) in &file.agents {
                page.agent(args, name, part);
            }
        }
    }
    page.auth(args, file);
    let record = args.common.record_over(file);
    if let Some(folder) = &record.folder {
        page.open("[record]", "record.");
        page.line("dir", Some("record"), path(folder));
        page.line(
            "mode",
            Some("record_mode"),
            word(&record.mode.unwrap_or_default()),
        );
        page.line(
            "policy",
            Some("record_policy"),
            word(&record.policy.unwrap_or_default()),
        );
        page.line(
            "sync",
            Some("record_sync"),
            word(&record.sync.unwrap_or_default()),
        );
        page.line(
            "redact",
            Some("record_redact"),
            word(&record.redact.unwrap_or_default()),
        );
        let pointers: Vec<String> = record.pointers.iter().map(ToString::to_string).collect();
        page.list("redact-pointer", Some("record_redact_pointer"), &pointers);
        page.line(
            "strict",
            Some("record_strict"),
            record.strict.unwrap_or_default(),
        );
        if let Some(age) = record.max_age {
            page.line("max-age", Some("record_max_age"), quote(&spell_age(age)));
        }
        if let Some(most) = record.max_total {
            page.line(
                "max-total",
                Some("record_max_total"),
                quote(&most.to_string()),
            );
        }
    }
    if let Some(place) = args.admin.as_ref().or(file.admin.as_ref()) {
        page.open("[admin]", "admin.");
        page.line("listen", Some("admin"), quote(&place.to_string()));
    }
    let agent_connect = args.agent_connect.over(&file.agent_connect);
    if agent_connect != Default::default() {
        page.open("[agent-connect]", "agent-connect.");
        if let Some(store) = &agent_connect.store {
            page.line("store", Some("store"), path(store));
        }
        let unasked = agent_connect.unasked.unwrap_or_default();
        page.line("unasked", Some("unasked"), word(&unasked));
        page.list(
            "allow-callback",
            Some("allow_callback"),
            &agent_connect.allow_callback,
        );
    }
    page.limits(args, file);
    let (tables, folders) = args.common.tables(file);
    if !tables.is_empty() || !folders.is_empty() {
        page.open("[dialects]", "dialects.");
        let texts = |paths: &[std::path::PathBuf]| -> Vec<String> {
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        page.list("tables", Some("tables"), &texts(&tables));
        page.list("folders", Some("dialect_dirs"), &texts(&folders));
    }
    let traces = args.common.traces_over(file);
    if traces != TracesPart::default() {
        page.open("[traces]", "traces.");
        let collector = traces.otlp_endpoint.as_deref();
        page.maybe("otlp-endpoint", Some("otlp_endpoint"), collector);
        let context = traces.trace_context.unwrap_or_default();
        page.line("trace-context", Some("trace_context"), word(&context));
    }
    page.open("[log]", "log.");
    let level = log.0.or(file.log.level.as_deref());
    page.line(
        "level",
        Some("log"),
        quote(level.unwrap_or(telemetry::LEVEL)),
    );
    let form = log.1.or(file.log.format).unwrap_or_default();
    page.line("format", Some("log_format"), word(&form));
    Ok(page.text)
}

impl Page<'_> {
    /// Begins a table.
    fn open(&mut self, heading: &str, path: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{gap}{heading}");
        path.clone_into(&mut self.table);
    }

    /// A key, its value in TOML, and who has said so.
    fn line(&mut self, key: &str, flag: Option<&str>, value: impl std::fmt::Display) {
        let path = format!("{}{key}", self.table);
        let from = self.sources.of(flag, Some(&path));
        self.remarked(key, value, &from);
    }

    fn remarked(&mut self, key: &str, value: impl std::fmt::Display, from: &str) {
        let said = format!("{} = {value}", bare(key));
        let _ = writeln!(self.text, "{said:COLUMN$}  # {from}");
    }

    fn maybe(&mut self, key: &str, flag: Option<&str>, value: Option<&str>) {
        if let Some(value) = value {
            self.line(key, flag, quote(value));
        }
    }

    fn list(&mut self, key: &str, flag: Option<&str>, texts: &[String]) {
        if !texts.is_empty() {
            self.line(key, flag, list(texts));
        }
    }

    fn tongue(&mut self, choice: Option<&Choice>, flag: &str) {
        if let Some(choice) = choice {
            let name = match choice {
                Choice::Auto => "auto",
                Choice::Canonical => "canonical",
                Choice::Named(name) => name,
            };
            self.line("dialect", Some(flag), quote(name));
        }
    }

    fn framing(&mut self, choice: Option<FramingChoice>, flag: &str) {
        if let Some(choice) = choice {
            self.line("framing", Some(flag), word(&choice));
        }
    }

    /// A listener; `own` is its place among those of the file.
    fn listener(&mut self, args: &Serve, part: &ListenerPart, own: Option<usize>) {
        let table = own.map_or_else(String::new, |index| format!("listeners.{index}."));
        self.open("[[listeners]]", &table);
        self.line(
            "endpoint",
            Some("listen"),
            quote(&part.endpoint.to_string()),
        );
        let (front, tls) = (&part.front, &part.tls);
        self.list("allow-origin", Some("allow_origin"), &front.origins);
        self.list("allow-host", Some("allow_host"), &front.hosts);
        let cookie = front.affinity_cookie.as_deref();
        self.maybe("affinity-cookie", Some("affinity_cookie"), cookie);
        if front.no_elephant {
            self.line("no-elephant", Some("no_elephant"), true);
        }
        for (key, flag, file) in [
            ("tls-cert", "tls_cert", &tls.cert),
            ("tls-key", "tls_key", &tls.key),
            ("tls-client-ca", "tls_client_ca", &tls.client_ca),
        ] {
            if let Some(file) = file {
                self.line(key, Some(flag), path(file));
            }
        }
        self.list("agents", None, part.agents.as_deref().unwrap_or_default());
        self.maybe("default-agent", None, part.default_agent.as_deref());
        self.maybe("agent-connect", None, part.agent_connect.as_deref());
        let dialect = args.common.client_dialect().or(part.dialect.as_ref());
        self.tongue(dialect, "client-dialect");
        self.framing(args.common.client_framing(part.framing), "client_framing");
    }

    fn agent(&mut self, args: &Serve, name: &str, part: &AgentPart) {
        let table = format!("agents.{name}.");
        self.open(&format!("[agents.{}]", bare(name)), &table);
        self.maybe("description", None, part.description.as_deref());
        match &part.source {
            Source::Program(program) => self.program(&program.argv, &program.launch),
            Source::Endpoint(endpoint, remote) => self.remote(endpoint, remote),
        }
        let dialect = args.common.agent_dialect().or(part.dialect.as_ref());
        self.tongue(dialect, "agent-dialect");
        self.framing(args.common.agent_framing(part.framing), "agent_framing");
        self.line("record", None, part.record);
        if let Some(kept) = args.on_disconnect.or(part.on_disconnect) {
            self.line("on-disconnect", Some("on_disconnect"), word(&kept));
        }
        if let Some(unasked) = part.unasked {
            let unasked = args.agent_connect.unasked.unwrap_or(unasked);
            self.line("unasked", Some("unasked"), word(&unasked));
        }
        if !part.limits.is_empty() {
            let table = format!("agents.{name}.limits.");
            self.open(&format!("[agents.{}.limits]", bare(name)), &table);
            for setting in part
                .limits
                .iter()
                .filter(|one| !args.common.sets(one.name()))
            {
                self.line(setting.name(), None, number(&setting.spelled()));
            }
        }
    }

    fn program(&mut self, argv: &[std::ffi::OsString], launch: &Launch) {
        let profile = format!("{}profile", self.table);
        let from = self.sources.of(None, Some(&profile));
        if from == "default" {
            self.line("command", None, words(argv));
        } else {
            self.remarked("command", words(argv), &format!("{from}, a profile"));
        }
        if let Some(dir) = &launch.dir {
            self.line("cwd", None, path(dir));
        }
        if !launch.env.is_empty() {
            let names = launch.env.iter();
            let names =
                names.map(|(name, _)| format!("{} = {HIDDEN}", bare(&name.to_string_lossy())));
            let names: Vec<String> = names.collect();
            self.line("env", None, format!("{{ {} }}", names.join(", ")));
        }
        if launch.bare {
            self.line("inherit-env", None, false);
        }
    }

    fn remote(&mut self, endpoint: &Endpoint, remote: &RemoteArgs) {
        self.line("endpoint", None, quote(&endpoint.to_string()));
        for (key, file) in [
            ("tls-ca", &remote.tls_ca),
            ("header-file", &remote.header_file),
            ("bearer-file", &remote.bearer_file),
        ] {
            if let Some(file) = file {
                self.line(key, None, path(file));
            }
        }
        let headers = remote.headers.iter().map(|line| {
            let name = line.split(':').next().unwrap_or_default();
            format!("{name}: ‹hidden›")
        });
        self.list("headers", None, &headers.collect::<Vec<_>>());
        if let Some(pin) = &remote.pin_sha256 {
            self.line("pin-sha256", None, quote(&pin.to_string()));
        }
        if remote.http2_prior_knowledge {
            self.line("http2-prior-knowledge", None, true);
        }
    }

    fn auth(&mut self, args: &Serve, file: &Config) {
        let auth = args.door.over(&file.auth);
        self.open("[auth]", "auth.");
        for (key, flag, value, said) in [
            (
                "require-token",
                "require_token",
                auth.require_token,
                file.auth.require_token,
            ),
            (
                "no-auth-loopback",
                "no_auth_loopback",
                auth.no_auth_loopback,
                file.auth.no_auth_loopback,
            ),
            (
                "dangerously-no-auth",
                "dangerously_no_auth",
                auth.dangerously_no_auth,
                file.auth.dangerously_no_auth,
            ),
            (
                "dangerously-plaintext",
                "dangerously_plaintext",
                auth.dangerously_plaintext,
                file.auth.dangerously_plaintext,
            ),
        ] {
            if said && !value {
                let line = self.sources.of(None, Some(&format!("auth.{key}")));
                self.remarked(key, value, &format!("the command line, against {line}"));
            } else {
                self.line(key, Some(flag), value);
            }
        }
        if let Some(token) = &auth.token_file {
            self.line("token-file", Some("token_file"), path(token));
        }
        for (name, agents) in auth.certificates.iter().flatten() {
            let table = format!("auth.certificates.{name}.");
            self.open(&format!("[auth.certificates.{}]", bare(name)), &table);
            if let Agents::These(agents) = agents {
                self.line("agents", None, list(agents));
            }
        }
    }

    fn limits(&mut self, args: &Serve, file: &Config) {
        self.open("[limits]", "limits.");
        for (name, value) in limits::spelled(&args.common.limits_over(&[&file.limits])) {
            let drain = match name {
                "drain" => Some("drain.max"),
                "drain-min" => Some("drain.min"),
                _ => None,
            };
            let drain = drain.filter(|path| self.sources.lines.contains_key(*path));
            if args.common.sets(name) {
                self.remarked(name, number(&value), "--limit");
            } else if let Some(path) = drain {
                let from = self.sources.of(None, Some(path));
                self.remarked(name, number(&value), &from);
            } else {
                self.line(name, None, number(&value));
            }
        }
    }
}

/// One of the values that a flag takes.
fn word<T: ValueEnum>(value: &T) -> String {
    let name = value.to_possible_value();
    quote(name.as_ref().map_or("", |name| name.get_name()))
}

/// A number as one, anything else as a text.
fn number(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(number) => number.to_string(),
        Err(_) => quote(text),
    }
}

fn path(path: &Path) -> String {
    quote(&path.display().to_string())
}

fn words(argv: &[std::ffi::OsString]) -> String {
    let words = argv.iter().map(|word| word.to_string_lossy().into_owned());
    list(&words.collect::<Vec<_>>())
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A key as TOML has it.
fn bare(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !key.is_empty() && key.bytes().all(plain) {
        true => key.to_owned(),
        false => quote(key),
    }
}

/// A text in quotes, without what looks like a secret.
fn quote(text: &str) -> String {
    let text = discretion::clean(text);
    let quoted = serde_json::Value::from(&*text).to_string();
    // A string of JSON is one of TOML, but for this.
    quoted.replace('\u{7f}', "\\u007f")
}
