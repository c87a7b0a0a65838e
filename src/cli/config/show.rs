//! `config show`: the effective configuration of `serve` for this file, environment and command
//! line, as a file in which each line names its source. Values of variables and headers are left
//! out, and secrets are redacted.

use std::ffi::OsString;
use std::path::PathBuf;

use super::model::{AgentPart, Config, ListenerPart, Source};
use super::report::{Report, bare, list, number, path, quote, word, words};
use super::source::Sources;
use crate::auth::Agents;
use crate::cli::admin::AdminAddress;
use crate::cli::agent_connect::AgentConnectArgs;
use crate::cli::record::{RecordPart, format_age};
use crate::cli::remote::RemoteArgs;
use crate::cli::serve::Serve;
use crate::cli::telemetry::LogArgs;
use crate::cli::traces::TracesPart;
use crate::cli::{limits, serve};
use crate::transport::{Endpoint, Launch};

/// Replaces a value that may be secret.
const HIDDEN: &str = "\"‹hidden›\"";

/// The text of the effective configuration. `log` has the log options of the command line.
///
/// # Errors
/// The options are inconsistent.
pub(super) fn show(
    args: &Serve,
    file: &Config,
    log: &LogArgs,
    sources: &Sources<'_>,
) -> Result<String, String> {
    let listeners = serve::listener_parts(args, file)?;
    let mut report = Report::new(sources);
    report.top_level(args, file);
    report.listeners(args, file, &listeners);
    report.agents(args, file);
    report.auth(args, file);
    report.record(&args.common.record_over(file));
    report.admin(args.admin.as_ref().or(file.admin.as_ref()));
    report.agent_connect(&args.agent_connect.with_defaults(&file.agent_connect));
    report.limits(args, file);
    report.dialects(&args.common.tables(file));
    report.traces(&args.common.traces_over(file));
    report.log(&log.with_defaults(&file.log));
    Ok(report.into_text())
}

impl Report<'_> {
    /// The keys before all tables.
    fn top_level(&mut self, args: &Serve, file: &Config) {
        self.optional("default-agent", None, file.default_agent.as_deref());
        let choice = args.on_disconnect.or(file.on_disconnect);
        let choice = word(&choice.unwrap_or_default());
        self.line("on-disconnect", Some("on_disconnect"), choice);
    }

    fn listeners(&mut self, args: &Serve, file: &Config, parts: &[ListenerPart]) {
        let of_file = args.listen.is_empty() && !file.listeners.is_empty();
        for (index, part) in parts.iter().enumerate() {
            self.listener(args, part, of_file.then_some(index));
        }
    }

    /// A listener; `own` is its index among those of the file.
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
        self.optional("affinity-cookie", Some("affinity_cookie"), cookie);
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
        self.optional("default-agent", None, part.default_agent.as_deref());
        self.optional("agent-connect", None, part.agent_connect.as_deref());
        let dialect = args.common.client_dialect().or(part.dialect.as_ref());
        self.dialect(dialect, "client-dialect");
        self.framing(args.common.client_framing(part.framing), "client_framing");
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
        self.dialect(args.common.agent_dialect(), "agent-dialect");
        self.framing(args.common.agent_framing(None), "agent_framing");
    }

    fn agent(&mut self, args: &Serve, name: &str, part: &AgentPart) {
        let table = format!("agents.{name}.");
        self.open(&format!("[agents.{}]", bare(name)), &table);
        self.optional("description", None, part.description.as_deref());
        match &part.source {
            Source::Program(program) => self.program(&program.argv, &program.launch),
            Source::Endpoint(endpoint, remote) => self.remote(endpoint, remote),
        }
        let dialect = args.common.agent_dialect().or(part.dialect.as_ref());
        self.dialect(dialect, "agent-dialect");
        self.framing(args.common.agent_framing(part.framing), "agent_framing");
        self.line("record", None, part.record);
        if let Some(choice) = args.on_disconnect.or(part.on_disconnect) {
            self.line("on-disconnect", Some("on_disconnect"), word(&choice));
        }
        if let Some(default_permission) = part.default_permission {
            let default_permission = args
                .agent_connect
                .default_permission
                .unwrap_or(default_permission);
            self.line(
                "default-permission",
                Some("default_permission"),
                word(&default_permission),
            );
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

    fn program(&mut self, argv: &[OsString], launch: &Launch) {
        let from = self.sources.of(None, &self.path("profile"));
        if from == "default" {
            self.line("command", None, words(argv));
        } else {
            self.line_from("command", words(argv), &format!("{from}, a profile"));
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
        let auth = args.admission.with_defaults(&file.auth);
        self.open("[auth]", "auth.");
        for (key, flag, value, from_file) in [
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
            if from_file && !value {
                let line = self.sources.of(None, &self.path(key));
                self.line_from(key, value, &format!("the command line, overriding {line}"));
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
                self.line_from(name, number(&value), "--limit");
            } else if let Some(path) = drain {
                let from = self.sources.of(None, path);
                self.line_from(name, number(&value), &from);
            } else {
                self.line(name, None, number(&value));
            }
        }
    }

    fn record(&mut self, record: &RecordPart) {
        let Some(folder) = &record.folder else {
            return;
        };
        let mode = word(&record.mode.unwrap_or_default());
        let policy = word(&record.policy.unwrap_or_default());
        let sync = word(&record.sync.unwrap_or_default());
        let redact = word(&record.redact.unwrap_or_default());
        let pointers: Vec<String> = record.pointers.iter().map(ToString::to_string).collect();
        let strict = record.strict.unwrap_or_default();
        self.open("[record]", "record.");
        self.line("dir", Some("record"), path(folder));
        self.line("mode", Some("record_mode"), mode);
        self.line("policy", Some("record_policy"), policy);
        self.line("sync", Some("record_sync"), sync);
        self.line("redact", Some("record_redact"), redact);
        self.list("redact-pointer", Some("record_redact_pointer"), &pointers);
        self.line("strict", Some("record_strict"), strict);
        let age = record.max_age.map(format_age);
        self.optional("max-age", Some("record_max_age"), age.as_deref());
        let most = record.max_total.map(|most| most.to_string());
        self.optional("max-total", Some("record_max_total"), most.as_deref());
    }

    fn admin(&mut self, place: Option<&AdminAddress>) {
        if let Some(place) = place {
            self.open("[admin]", "admin.");
            self.line("listen", Some("admin"), quote(&place.to_string()));
        }
    }

    fn agent_connect(&mut self, args: &AgentConnectArgs) {
        if *args == AgentConnectArgs::default() {
            return;
        }
        self.open("[agent-connect]", "agent-connect.");
        if let Some(store) = &args.store {
            self.line("store", Some("store"), path(store));
        }
        let default_permission = args.default_permission.unwrap_or_default();
        self.line(
            "default-permission",
            Some("default_permission"),
            word(&default_permission),
        );
        let hosts = &args.allow_callback;
        self.list("allow-callback", Some("allow_callback"), hosts);
    }

    /// The user's mapping tables, and folders of them.
    fn dialects(&mut self, (tables, folders): &(Vec<PathBuf>, Vec<PathBuf>)) {
        if tables.is_empty() && folders.is_empty() {
            return;
        }
        self.open("[dialects]", "dialects.");
        for (key, flag, paths) in [
            ("tables", "tables", tables),
            ("folders", "dialect_dirs", folders),
        ] {
            let paths = paths.iter().map(|path| path.display().to_string());
            self.list(key, Some(flag), &paths.collect::<Vec<String>>());
        }
    }

    fn traces(&mut self, traces: &TracesPart) {
        if *traces == TracesPart::default() {
            return;
        }
        self.open("[traces]", "traces.");
        let collector = traces.otlp_endpoint.as_deref();
        self.optional("otlp-endpoint", Some("otlp_endpoint"), collector);
        let context = traces.trace_context.unwrap_or_default();
        self.line("trace-context", Some("trace_context"), word(&context));
    }

    fn log(&mut self, log: &LogArgs) {
        self.open("[log]", "log.");
        self.line("level", Some("log"), quote(log.level()));
        let form = log.format.unwrap_or_default();
        self.line("format", Some("log_format"), word(&form));
    }
}
