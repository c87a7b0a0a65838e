//! The recordings that a viewer shows: one, or those of a folder.
//!
//! The page names them by their index in a list, so no path comes from a client.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::open_recording::OpenRecording;
use crate::recording::{Parsed, Recording, open, recordings};

/// Maximum number of recordings kept open.
const MAX_OPEN: usize = 4;

/// The recordings of a viewer.
#[derive(Debug)]
pub(super) struct RecordingLibrary {
    folder: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Only grows: an index in it is a name.
    recordings: Vec<Recording>,
    /// The agents that their headers name, where known.
    agents: HashMap<usize, String>,
    /// The most recently used is last.
    open: Vec<(usize, Arc<OpenRecording>)>,
}

impl RecordingLibrary {
    /// The recording that the file at `path` belongs to, or all in the folder `path`.
    ///
    /// # Errors
    /// There is no readable recording.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let is_folder = fs::metadata(path)?.is_dir();
        let recordings = if is_folder {
            recordings(path)?
        } else {
            let recording = Recording::of(path)?;
            // A faulty file is reported now and not on the page.
            open(path)?;
            vec![recording]
        };
        Ok(Self {
            folder: is_folder.then(|| path.to_owned()),
            state: Mutex::new(State {
                recordings,
                ..State::default()
            }),
        })
    }

    /// All recordings, the newest last.
    ///
    /// # Errors
    /// The folder cannot be read any more.
    pub(super) fn list(&self) -> io::Result<Value> {
        let mut state = self.state.lock();
        if let Some(folder) = &self.folder {
            for recording in recordings(folder)? {
                let same = |known: &Recording| known.name == recording.name;
                if !state.recordings.iter().any(same) {
                    state.recordings.push(recording);
                }
            }
        }
        let State {
            recordings, agents, ..
        } = &mut *state;
        let list = recordings.iter().enumerate().map(|(at, recording)| {
            let size = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
            let bytes: u64 = recording.segments.iter().map(size).sum();
            if !agents.contains_key(&at)
                && let Some(agent) = agent(recording)
            {
                agents.insert(at, agent);
            }
            json!({"name": recording.name, "bytes": bytes, "agent": agents.get(&at)})
        });
        Ok(list.collect())
    }

    /// The recording at an index of the list.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub(super) fn get(&self, at: usize) -> io::Result<Arc<OpenRecording>> {
        let mut state = self.state.lock();
        let recording = state.recordings.get(at).cloned();
        let recording = recording.ok_or(io::ErrorKind::NotFound)?;
        let opened = match state.open.iter().position(|(known, _)| *known == at) {
            Some(at) => state.open.remove(at).1,
            None => OpenRecording::open(recording)?,
        };
        if state.open.len() >= MAX_OPEN {
            state.open.remove(0);
        }
        state.open.push((at, Arc::clone(&opened)));
        Ok(opened)
    }
}

/// The agent that a recording's header names.
fn agent(recording: &Recording) -> Option<String> {
    let mut reader = open(recording.segments.first()?).ok()?;
    match reader.next()?.ok()?.parsed {
        Parsed::Header(header) => Some(header.agent.name),
        _ => None,
    }
}
