//! The files that store tokens.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::cli::random::random;
use crate::cli::state::{self, StateDir, StateError};
use auth::{Keyring, Token};

/// The user's own token.
const OWN: &str = "token";
/// All other tokens, as digests.
const OTHERS: &str = "tokens";

/// The token store of a user.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Store {
    state: StateDir,
    /// The file of the user's own token, if it is not in the state directory.
    own: Option<PathBuf>,
}

/// Identifies the versions of the files.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Stamp([Option<FileStamp>; 2]);

/// Of one file: modification time, length, inode, owner and mode.
type FileStamp = (SystemTime, u64, u64, u32, u32);

impl Store {
    /// The store of this user; `own` is the file of the user's own token, if it is elsewhere.
    pub(in crate::cli) fn find(own: Option<PathBuf>) -> Result<Self, StateError> {
        let state = StateDir::find()?;
        Ok(Self { state, own })
    }

    /// The user's own token, if there is one.
    pub(in crate::cli) fn own_token(&self) -> Result<Option<Token>, StateError> {
        let path = self.own_path();
        let invalid = |why| StateError::Unsafe(format!("{}: {why}", path.display()));
        match state::read(&path)? {
            Some(text) => Token::read(&text).map(Some).map_err(invalid),
            None if self.own.is_some() => Err(invalid("it does not exist")),
            None => Ok(None),
        }
    }

    /// The user's own token, which is created if there is none.
    pub(in crate::cli) fn own_or_new(&self) -> Result<Token, StateError> {
        if let Some(token) = self.own_token()? {
            return Ok(token);
        }
        let _lock = self.state.lock()?;
        // Another relay may have created it meanwhile.
        if let Some(token) = self.own_token()? {
            return Ok(token);
        }
        let token = new_token()?;
        state::write(&self.own_path(), &format!("{}\n", token.reveal()))?;
        Ok(token)
    }

    /// All other tokens.
    pub(in crate::cli) fn keyring(&self) -> Result<Keyring, StateError> {
        let path = self.state.file(OTHERS);
        let text = state::read(&path)?.unwrap_or_default();
        Keyring::read(&text).map_err(|fault| {
            let path = path.display();
            StateError::Unsafe(format!("{path}, {fault}; fix or remove the line"))
        })
    }

    /// Changes the other tokens. An error of `change` is the user's.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Keyring) -> Result<T, String>,
    ) -> Result<Result<T, String>, StateError> {
        let _lock = self.state.lock()?;
        let mut ring = self.keyring()?;
        let changed = change(&mut ring);
        if changed.is_ok() {
            state::write(&self.state.file(OTHERS), &ring.write())?;
        }
        Ok(changed)
    }

    /// The current versions of the files.
    pub(in crate::cli) fn stamp(&self) -> Stamp {
        Stamp([self.own_path(), self.state.file(OTHERS)].map(|path| stamp(&path)))
    }

    fn own_path(&self) -> PathBuf {
        let own = self.own.clone();
        own.unwrap_or_else(|| self.state.file(OWN))
    }
}

/// A new token.
pub(super) fn new_token() -> Result<Token, StateError> {
    let token = || -> io::Result<Token> { Ok(Token::new(random()?, random()?)) };
    token().map_err(|error| StateError::Unavailable(error.to_string()))
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let about = fs::symlink_metadata(path).ok()?;
    let written = about.modified().ok()?;
    Some((written, about.len(), about.ino(), about.uid(), about.mode()))
}
