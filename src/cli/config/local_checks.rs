//! Checks what a file needs of this machine: programs, certificates, tokens, tables, folders.
//!
//! Only `config check` does this, to report everything at once; `serve` finds the same faults at
//! its start. Nothing is created or changed.

use std::path::Path;

use rustix::fs::{Access, access};

use super::model::{AgentPart, Source};
use super::reader::TableReader;
use crate::cli::dialect::Tables;
use crate::cli::endpoints;
use crate::cli::remote::RemoteArgs;
use crate::cli::state::StateError;
use crate::cli::token::Store;
use transport::{Endpoint, OpenError, Setup, Tls, registry};
use transport::{check_authorities, check_certificates};

/// The tokens: the user's own, which is in `file` if that is given, and all others. Those that do
/// not exist yet are created when needed, or not needed.
pub(super) fn tokens(reader: &TableReader<'_>, key: &'static str, file: Option<&Path>) {
    let store = Store::find(file.map(Path::to_owned));
    let read = store.and_then(|store| store.own_token().and_then(|_| store.keyring()));
    match read {
        Err(StateError::Unavailable(_)) if file.is_none() => {}
        Err(fault) => reader.fault_of(key, fault),
        Ok(_) => {}
    }
}

/// The mapping tables.
pub(super) fn tables(reader: &TableReader<'_>, tables: &Tables) {
    if let Err(trouble) = tables.library() {
        let mut folders = tables.clone();
        folders.files.clear();
        let key = match folders.library() {
            Err(_) => "folders",
            Ok(_) => "tables",
        };
        reader.fault_of(key, trouble);
    }
}

/// The address of a listener. The port may be in use by the relay that the file is for.
pub(super) fn address(reader: &TableReader<'_>, key: &'static str, at: &Endpoint) {
    match registry::is_free(at) {
        Ok(true) => {}
        Ok(false) => {
            let remedy = "unless the relay of this file uses it, `serve` will not start";
            reader.note(key, "the port is in use now", remedy);
        }
        Err(error) => open_fault(reader, key, error),
    }
}

/// The certificate and key of a listener with TLS, if it has both.
pub(super) fn certificate(reader: &TableReader<'_>, at: &Endpoint, tls: &Tls) {
    if at.is_tls() && tls.cert.is_some() && tls.key.is_some() {
        for (key, error) in check_certificates(at, tls) {
            open_fault(reader, key, error);
        }
    }
}

/// An agent's program and folder, or the secrets that are sent to it.
pub(super) fn agent(reader: &TableReader<'_>, part: &AgentPart) {
    match part.source() {
        Source::Program(program) => {
            let mut launch = program.launch;
            if let Some(dir) = launch.dir.take_if(|dir| !dir.is_dir()) {
                reader.fault_of("cwd", format!("there is no folder {}", dir.display()));
            }
            let setup = Setup {
                launch,
                ..endpoints::setup()
            };
            let to = Endpoint::Exec(program.argv);
            let found = endpoints::check_agent_available(&to, &setup, program.install.as_deref());
            if let Err(error) = found {
                let key = reader.has("command").map_or("profile", |_| "command");
                open_fault(reader, key, error);
            }
        }
        Source::Endpoint(to, remote) => {
            secrets(reader, remote);
            if let Some(path) = &remote.tls_ca
                && let Err(error) = check_authorities(to, path)
            {
                open_fault(reader, "tls-ca", error);
            }
            if let Err(error) = endpoints::check_agent_available(to, &endpoints::setup(), None) {
                open_fault(reader, "endpoint", error);
            }
        }
    }
}

/// The files with secrets for an agent.
fn secrets(reader: &TableReader<'_>, remote: &RemoteArgs) {
    let mut remote = RemoteArgs {
        headers: Vec::new(),
        ..remote.clone()
    };
    while let Err(what) = remote.set_up(&mut Setup::default()) {
        // The text begins with the flag, which has the same name as the key.
        let (key, file) = match what.starts_with("--header-file") {
            true => ("header-file", &mut remote.header_file),
            false => ("bearer-file", &mut remote.bearer_file),
        };
        if file.take().is_none() {
            return;
        }
        reader.fault_of(key, what.split_once(": ").map_or(&*what, |(_, what)| what));
    }
}

/// A folder for new files. It is created later if it does not exist and can be created.
pub(super) fn folder(reader: &TableReader<'_>, key: &'static str, folder: &Path) {
    let there = folder.ancestors().find(|path| path.exists());
    let there = there.unwrap_or_else(|| Path::new("/"));
    if !there.is_dir() {
        reader.fault_of(key, format!("{} is not a folder", there.display()));
    } else if let Err(fault) = access(there, Access::WRITE_OK | Access::EXEC_OK) {
        let there = there.display();
        reader.fault_of(key, format!("nothing can be written to {there} ({fault})"));
    }
}

/// A new file in a folder that must exist.
pub(super) fn file(reader: &TableReader<'_>, key: &'static str, file: &Path) {
    let parent = file.parent().unwrap_or_else(|| Path::new("/"));
    if parent.is_dir() {
        folder(reader, key, parent);
    } else {
        reader.fault_of(key, format!("there is no folder {}", parent.display()));
    }
}

/// Reports that the value of a key cannot be used.
fn open_fault(reader: &TableReader<'_>, key: &'static str, error: OpenError) {
    // A sentence turned into a clause after a semicolon.
    let mut remedy = error.remedy.unwrap_or_default();
    if let Some(first) = remedy.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    reader.fault(reader.at(key), error.what, &remedy);
}
