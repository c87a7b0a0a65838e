//! Where recordings are when no folder is named, and the names by which a command line gives one:
//! a path, `@last` or `@-2`, or the beginning of its file's name or of its id.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::exit;
use super::state::{StateDir, StateError};
use jsonrpc::printable;
use recording::{Recording, recordings};

/// The name of the newest recording.
pub(super) const LAST: &str = "@last";

/// Least characters of an id, so that a short word is none.
const MIN_ID: usize = 4;

/// Maximum candidates that are listed for an ambiguous name.
const MAX_CANDIDATES: usize = 10;

/// The folder for recordings in the state directory; it need not exist.
pub(super) fn home() -> Result<PathBuf, StateError> {
    Ok(StateDir::find()?.file("recordings"))
}

/// The path of the recording that a word of the command line names; another path is returned as it
/// is. Errors are printed, and the exit code is returned.
pub(super) fn locate(word: &Path) -> Result<PathBuf, ExitCode> {
    let found = find(word).map_err(|why| exit::fail(exit::NO_INPUT, &why))?;
    Ok(found.unwrap_or_else(|| word.to_owned()))
}

/// Whether a word is the name of a recording, or of several, and no path.
pub(super) fn is_name(word: &Path) -> bool {
    !matches!(find(word), Ok(None))
}

/// A segment of the recording of that name in the home; `None` if the word is no name.
///
/// # Errors
/// There is no such recording, or there are several.
pub(super) fn find(word: &Path) -> Result<Option<PathBuf>, String> {
    let text = match word.to_str() {
        Some(text) if !text.is_empty() && !text.contains('/') && !word.exists() => text,
        _ => return Ok(None),
    };
    let numbered = text.starts_with('@');
    let home = match home() {
        Ok(home) => home,
        Err(fault) if numbered => return Err(fault.to_string()),
        Err(_) => return Ok(None),
    };
    // The home need not exist.
    let mut known = recordings(&home).unwrap_or_default();
    let first = |recording: &Recording| recording.segments.first().cloned();
    if numbered {
        let back = match text.strip_prefix("@-").map(str::parse) {
            _ if text == LAST => 1,
            Some(Ok(back @ 1_usize..)) => back,
            _ => {
                return Err(format!(
                    "{}: the newest recording is {LAST} or @-1, the one before it @-2",
                    printable(text.as_bytes())
                ));
            }
        };
        let count = known.len();
        known.sort_by_cached_key(|recording| Reverse(recording.header().map(|head| head.began)));
        return match known.get(back - 1).and_then(first) {
            Some(path) => Ok(Some(path)),
            None if count == 0 => Err(format!(
                "{text}: there is no recording in {}; `acp-relay connect --record` makes one",
                home.display()
            )),
            None => Err(format!("{text}: {} has {count} recordings", home.display())),
        };
    }
    let is_id = text.len() >= MIN_ID && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    known.retain(|recording| {
        let begins = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(text))
        };
        let id = || recording.header().map(|head| head.id);
        recording.segments.iter().any(begins)
            || is_id && id().is_some_and(|id| id.starts_with(text))
    });
    match known.as_slice() {
        [] => Ok(None),
        [only] => Ok(first(only)),
        several => {
            let names = several.iter().take(MAX_CANDIDATES);
            let names = names.map(|recording| printable(recording.name.as_bytes()));
            let more = (several.len() > MAX_CANDIDATES).then(|| "…".to_owned());
            Err(format!(
                "`{text}` is the beginning of {} recordings, give more of it: {}",
                several.len(),
                names.chain(more).collect::<Vec<_>>().join(", ")
            ))
        }
    }
}
