//! Options of traces, and variables of OpenTelemetry. The library itself reads
//! some of those variables (headers, the resource, the sampler).

use std::env;
use std::time::Duration;

use clap::{Args, ValueEnum};

use transport::{Endpoint, HttpEndpoint, HttpProtocol};

/// The options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Traces")]
pub(in crate::cli) struct TracesArgs {
    /// Send traces to the OTLP/HTTP collector at this address, such as http://127.0.0.1:4318;
    /// OTEL_EXPORTER_OTLP_ENDPOINT and the other OTEL_* variables are honoured
    #[arg(id = "traces.otlp-endpoint", long = "otlp-endpoint")]
    #[arg(value_name = "URL", value_parser = collector)]
    otlp_endpoint: Option<String>,
    /// What to do with requests that name no trace (`_meta.traceparent`)
    #[arg(id = "traces.trace-context", long = "trace-context")]
    #[arg(value_name = "WHAT", value_enum, default_value_t)]
    trace_context: TraceContext,
}

/// What to do with requests that name no trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum TraceContext {
    /// Forward them unchanged
    #[default]
    Pass,
    /// Insert the context of their span; an existing one is kept
    Insert,
}

/// The effective options.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TraceConfig {
    /// The address of the collector; that of the environment if `None`.
    pub(super) endpoint: Option<String>,
    /// Whether spans are encoded as JSON; otherwise as protobuf, the specification's default.
    pub(super) json: bool,
    pub(super) insert: bool,
    /// Most spans that may wait.
    pub(super) max_queued: usize,
    /// Most spans that are sent at a time.
    pub(super) batch: usize,
    /// How long a span may wait for others.
    pub(super) delay: Duration,
    /// How long the collector may take to respond.
    pub(super) timeout: Duration,
}

/// Parses the address of a collector.
///
/// # Errors
/// It is not such an address.
fn collector(text: &str) -> Result<String, String> {
    match text.parse() {
        Ok(Endpoint::Http(HttpEndpoint {
            protocol: HttpProtocol::StreamableHttp,
            ..
        })) => Ok(text.to_owned()),
        _ => Err("expected http://HOST:PORT or https://HOST:PORT".to_owned()),
    }
}

impl TracesArgs {
    /// The effective options; `None` if no traces are made.
    ///
    /// # Errors
    /// The options or variables are invalid.
    pub(super) fn resolve(&self) -> Result<Option<TraceConfig>, String> {
        let var = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let either = |what: &str| {
            var(&format!("OTEL_EXPORTER_OTLP_TRACES_{what}"))
                .or_else(|| var(&format!("OTEL_EXPORTER_OTLP_{what}")))
        };
        let var_is = |name, word: &str| var(name).is_some_and(|own| own.eq_ignore_ascii_case(word));
        let insert = self.trace_context == TraceContext::Insert;
        let named = self.otlp_endpoint.is_some()
            || either("ENDPOINT").is_some()
            || var_is("OTEL_TRACES_EXPORTER", "otlp");
        let off = var_is("OTEL_SDK_DISABLED", "true") || var_is("OTEL_TRACES_EXPORTER", "none");
        if !named || off {
            if insert && !off {
                return Err(
                    "--trace-context insert inserts spans, and there are none without \
                            --otlp-endpoint"
                        .to_owned(),
                );
            }
            return Ok(None);
        }
        let json = match either("PROTOCOL").as_deref() {
            None | Some("http/protobuf") => false,
            Some("http/json") => true,
            Some(protocol) => {
                return Err(format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}, and traces are sent only as \
                     http/protobuf or http/json; a collector accepts those at port 4318"
                ));
            }
        };
        let number = |name, usual| -> Result<u64, String> {
            let Some(text) = var(name) else {
                return Ok(usual);
            };
            let read = text.trim().parse().ok().filter(|number| *number > 0);
            read.ok_or_else(|| format!("{name} is `{text}`; expected a number"))
        };
        let count = |name, usual| {
            number(name, usual).map(|count| usize::try_from(count).unwrap_or(usize::MAX))
        };
        let timeout = match var("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT") {
            Some(_) => number("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", 10_000)?,
            None => number("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)?,
        };
        let endpoint = self.otlp_endpoint.as_ref().map(|url| {
            let base = url.trim_end_matches('/');
            match base.ends_with("/v1/traces") {
                true => base.to_owned(),
                false => format!("{base}/v1/traces"),
            }
        });
        Ok(Some(TraceConfig {
            endpoint,
            json,
            insert,
            max_queued: count("OTEL_BSP_MAX_QUEUE_SIZE", 2048)?.min(1 << 16),
            batch: count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)?.min(1 << 16),
            delay: Duration::from_millis(number("OTEL_BSP_SCHEDULE_DELAY", 5000)?),
            timeout: Duration::from_millis(timeout),
        }))
    }
}
