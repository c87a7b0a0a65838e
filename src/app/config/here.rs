//! What a file needs of this machine: programs, certificates, tokens, tables, folders.
//!
//! Looked at by `config check` alone, so that one run tells all; `serve` comes across the same when
//! it begins. Nothing is made or changed. Not here: what is wrong with the words (see `read`).

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::plan::Source;
use super::sheet::Sheet;
use crate::app::dialect::Tables;
use crate::app::endpoints;
use crate::app::token::Store;
use crate::transport::{Endpoint, Setup, Tls, check_certificates};

/// The user's own token.
pub(super) fn token(sheet: &Sheet<'_>, key: &'static str, file: &Path) {
    let own = Store::find(Some(file.to_owned())).and_then(|store| store.own());
    if let Err(fault) = own {
        missing(sheet, key, &fault.to_string());
    }
}

/// Mapping tables.
pub(super) fn tables(sheet: &Sheet<'_>, tables: &[PathBuf], folders: &[PathBuf]) {
    let read = Tables::default().over(tables, folders).library();
    if let Err(trouble) = read {
        let key = if tables.is_empty() {
            "folders"
        } else {
            "tables"
        };
        missing(sheet, key, &trouble.to_string());
    }
}

/// What a listener with TLS shows.
pub(super) fn certificate(sheet: &Sheet<'_>, at: &Endpoint, tls: &Tls) {
    if let Err(error) = check_certificates(at, tls) {
        let at = sheet.has("tls-cert").unwrap_or_else(|| sheet.at.clone());
        match error.remedy {
            Some(remedy) => sheet.fault_with(&at, error.what, remedy),
            None => sheet.fault(&at, error.what),
        }
    }
}

/// An agent's program, or the secrets that are shown to it.
pub(super) fn agent(sheet: &Sheet<'_>, source: &Source) {
    let (endpoint, install, setup) = match source {
        Source::Program(program) => {
            let setup = Setup {
                launch: program.launch.clone(),
                ..Setup::default()
            };
            let endpoint = Endpoint::Exec(program.argv.clone());
            (endpoint, program.install.as_deref(), setup)
        }
        Source::Endpoint(endpoint, remote) => {
            let mut setup = Setup::default();
            if let Err(what) = remote.set_up(&mut setup) {
                // Called as the flag is called.
                return sheet.fault(&sheet.at, what.trim_start_matches("--"));
            }
            (endpoint.clone(), None, setup)
        }
    };
    if let Err(error) = endpoints::check_agent_here(&endpoint, &setup, install) {
        let key = ["command", "profile", "endpoint"];
        let at = key.into_iter().find_map(|key| sheet.has(key));
        let at = at.unwrap_or_else(|| sheet.at.clone());
        match error.remedy {
            Some(remedy) => sheet.fault_with(&at, error.what, remedy),
            None => sheet.fault(&at, error.what),
        }
    }
}

/// A folder that files are put into. It is made when it is not there, if that can be done.
pub(super) fn folder(sheet: &Sheet<'_>, key: &'static str, folder: &Path) {
    let there = folder.ancestors().find(|path| path.exists());
    let there = there.unwrap_or_else(|| Path::new("/"));
    if !there.is_dir() {
        let what = format!("{} is no folder", there.display());
        missing(sheet, key, &what);
    } else if let Err(fault) = access(there, Access::WRITE_OK | Access::EXEC_OK) {
        let what = format!("nothing can be written to {} ({fault})", there.display());
        missing(sheet, key, &what);
    }
}

/// A file that is made in a folder which has to be there.
pub(super) fn file(sheet: &Sheet<'_>, key: &'static str, file: &Path) {
    let parent = file.parent().unwrap_or_else(|| Path::new("/"));
    if parent.is_dir() {
        folder(sheet, key, parent);
    } else {
        missing(
            sheet,
            key,
            &format!("there is no folder {}", parent.display()),
        );
    }
}

fn missing(sheet: &Sheet<'_>, key: &'static str, what: &str) {
    let at = sheet.has(key).unwrap_or_else(|| sheet.at.clone());
    sheet.fault(&at, format!("{}: {what}", sheet.path(key)));
}
