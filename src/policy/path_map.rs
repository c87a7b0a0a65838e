//! Maps the folders of one machine to those of another.

use std::fmt;
use std::str::FromStr;

use super::path::Path;
use jsonrpc::Side;

/// Pairs of folders on two machines with the same content.
#[derive(Clone, Debug, Default)]
pub struct PathMap(Vec<FolderPair>);

/// One folder, with its path on both machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderPair {
    /// Its path on the client's machine.
    local: String,
    /// Its path on the agent's machine.
    remote: String,
}

impl PathMap {
    /// A map of these folders. When several contain a path, the innermost counts.
    #[must_use]
    pub const fn new(pairs: Vec<FolderPair>) -> Self {
        Self(pairs)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The path on the machine of `to`; `None` when it is the same.
    pub(super) fn map(&self, to: Side, text: &str) -> Option<String> {
        let path = Path::of(text)?;
        let (from, to) = self
            .0
            .iter()
            .filter_map(|pair| {
                let (from, to) = match to {
                    Side::Agent => (&pair.local, &pair.remote),
                    Side::Client => (&pair.remote, &pair.local),
                };
                Some((Path::of(from)?, Path::of(to)?))
            })
            .filter(|(from, _)| path.is_within(from))
            .max_by_key(|(from, _)| from.names.len())?;
        let depth = from.names.len();
        if path.escapes(depth) {
            return None;
        }
        path.relocated(depth, &to).filter(|moved| moved != text)
    }
}

impl FromStr for FolderPair {
    type Err = String;

    /// Reads `LOCAL=REMOTE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (local, remote) = text
            .split_once('=')
            .ok_or("expected LOCAL=REMOTE, two absolute folders")?;
        for side in [local, remote] {
            let is_uri = side.starts_with("file:");
            match Path::of(side).filter(|_| !is_uri) {
                None => return Err(format!("`{side}` is no absolute path")),
                Some(path) if path.names.iter().any(|name| name.plain == "..") => {
                    return Err(format!("`{side}` has `..` in it"));
                }
                Some(_) => {}
            }
        }
        Ok(Self {
            local: local.to_owned(),
            remote: remote.to_owned(),
        })
    }
}

impl fmt::Display for FolderPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.local, self.remote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_folder_pair_is_refused() {
        for bad in ["", "/a", "/a=b", "a=/b", "/a=file:///b", "/a/..=/b", "=/b"] {
            assert!(bad.parse::<FolderPair>().is_err(), "{bad}");
        }
    }
}
