//! The folders of each session, and the check whether a path is inside of them.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use hashlink::LinkedHashMap;

use jsonrpc::{Id, PendingRequests};

/// Most sessions, and requests for new ones, that are remembered. Beyond it the oldest is dropped
/// and has no access to files any more.
const SESSIONS: usize = 4096;

/// Resolves paths on a disk.
pub trait Disk: fmt::Debug + Send {
    /// The same path without symbolic links; `None` when nothing exists there.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;
    /// Whether anything has this name, a dangling link included.
    fn exists(&self, path: &Path) -> bool;
}

/// The folders of all sessions.
#[derive(Debug)]
pub(super) struct SessionRoots {
    disk: Box<dyn Disk>,
    /// For all sessions.
    common: Vec<PathBuf>,
    /// By id, the newest last.
    sessions: LinkedHashMap<String, Vec<String>>,
    /// Session requests that were not answered yet.
    pending: PendingRequests<Vec<String>>,
}

impl SessionRoots {
    pub(super) fn new(disk: Box<dyn Disk>, common: Vec<PathBuf>) -> Self {
        Self {
            disk,
            common,
            sessions: LinkedHashMap::new(),
            pending: PendingRequests::new(SESSIONS),
        }
    }

    /// Records a request for a session.
    pub(super) fn add_pending(&mut self, id: Id<'_>, folders: Vec<String>) {
        // Without a place it is forgotten, and its session has no folders.
        let _ = self.pending.insert(id, folders);
    }

    /// Records the answer to such a request, with the session if it has one.
    pub(super) fn answer_pending(&mut self, id: Id<'_>, session: Option<String>) {
        if let (Some((_, folders)), Some(session)) = (self.pending.remove(id), session) {
            self.set(session, folders);
        }
    }

    /// Sets the folders of a session.
    pub(super) fn set(&mut self, session: String, folders: Vec<String>) {
        self.sessions.insert(session, folders);
        if self.sessions.len() > SESSIONS {
            self.sessions.pop_front();
        }
    }

    /// Checks whether `session` may access the file at `path`.
    ///
    /// # Errors
    /// The reason if not.
    pub(super) fn check(&self, session: &str, path: &str) -> Result<(), String> {
        let path = Path::new(path);
        if !path.is_absolute() || path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err("the path is not absolute".to_owned());
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err("the path has `..` in it".to_owned());
        }
        let target = self
            .target(path)
            .ok_or("the path leads through a broken link")?;
        let own = self.sessions.get(session).into_iter().flatten();
        let own = own.filter_map(|root| self.resolve(Path::new(root)));
        // Editors that are started without a folder open their sessions at `/`, which must not give
        // access to the whole disk.
        let own = own.filter(|root| root.parent().is_some());
        let common = self.common.iter().filter_map(|root| self.resolve(root));
        if own.chain(common).any(|root| target.starts_with(root)) {
            return Ok(());
        }
        Err("the path leads out of the session's folders".to_owned())
    }

    fn resolve(&self, root: &Path) -> Option<PathBuf> {
        root.is_absolute().then(|| self.disk.resolve(root))?
    }

    /// The target of a path; what does not exist yet is appended to what does.
    fn target(&self, path: &Path) -> Option<PathBuf> {
        let mut existing = path;
        let mut rest = Vec::new();
        loop {
            if let Some(mut target) = self.disk.resolve(existing) {
                target.extend(rest.iter().rev());
                return Some(target);
            }
            if self.disk.exists(existing) {
                return None;
            }
            rest.push(existing.file_name()?);
            existing = existing.parent()?;
        }
    }
}
