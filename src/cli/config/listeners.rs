//! `[[listeners]]`: where clients connect. `cli::listeners` has the options that are also flags.

use super::fault::CheckLevel;
use super::local_checks;
use super::model::ListenerPart;
use super::reader::TableReader;
use crate::cli::admission::{AdmissionArgs, check_exposure};
use crate::cli::endpoints;
use crate::cli::listeners::unsuited;
use transport::Endpoint;

/// All listeners of the file.
pub(super) fn listeners(
    root: &TableReader<'_>,
    level: CheckLevel,
    auth: &AdmissionArgs,
) -> Vec<ListenerPart> {
    let mut all: Vec<ListenerPart> = Vec::new();
    for reader in root.table_array("listeners") {
        let Some(part) = listener(&reader, level, auth) else {
            continue;
        };
        let others = all.iter().map(|one| &one.endpoint);
        if let Some(what) = endpoints::conflict(others, &part.endpoint) {
            reader.fault(reader.at("endpoint"), what, "");
        }
        all.push(part);
    }
    all
}

fn listener(
    reader: &TableReader<'_>,
    level: CheckLevel,
    auth: &AdmissionArgs,
) -> Option<ListenerPart> {
    if reader.has("endpoint").is_none() {
        let remedy = "such as endpoint = \"http://127.0.0.1:9000\"";
        reader.fault(reader.at.clone(), "a listener has no `endpoint`", remedy);
    }
    let part = ListenerPart::of(reader.keys.clone()).ok()?;
    let at = &part.endpoint;
    if let Err(what) = endpoints::check_listener(at) {
        reader.fault_of("endpoint", what);
        return None;
    }
    if let (Some(served), Some(name)) = (&part.agents, &part.default_agent)
        && !served.contains(name)
    {
        let what = format!("`{name}` is not among the `agents` of this listener");
        reader.fault(reader.at("default-agent"), what, "");
    }
    reader.check_suited(|key| unsuited(key, at));
    let missing = ["tls-cert", "tls-key"].into_iter();
    for key in missing.filter(|key| at.is_tls() && reader.has(key).is_none()) {
        let what = format!("{at}: a listener with TLS needs `{key}`");
        reader.fault(reader.at("endpoint"), what, "");
    }
    if level >= CheckLevel::Complete {
        check_guarded(reader, at, auth);
    }
    if level == CheckLevel::Machine {
        local_checks::address(reader, "endpoint", at);
        local_checks::certificate(reader, at, &part.options.tls());
    }
    Some(part)
}

/// Reports a listener that is too exposed.
fn check_guarded(reader: &TableReader<'_>, endpoint: &Endpoint, auth: &AdmissionArgs) {
    let Err(error) = check_exposure(endpoint, auth) else {
        return;
    };
    let remedy = match endpoint {
        at if at.is_loopback() => "use ws:// or http://",
        Endpoint::Http(_) => {
            "use wss:// or https:// with `tls-cert` and `tls-key`, or 127.0.0.1 behind a proxy or \
             ssh; or accept the risk with `dangerously-plaintext` in [auth]"
        }
        _ => {
            "use wss://, or 127.0.0.1 or a Unix socket behind ssh; or accept the risk with \
             `dangerously-no-auth` in [auth]"
        }
    };
    reader.fault(reader.at("endpoint"), error.what, remedy);
}
