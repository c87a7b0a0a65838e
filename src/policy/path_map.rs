//! Maps the folders of one machine to those of another.

use std::fmt;
use std::str::FromStr;

use super::path::Path;

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

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// To the agent's machine.
    ToAgent,
    /// To the client's machine.
    ToClient,
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

    /// The path on the other machine; `None` when it is the same.
    pub(super) fn map(&self, direction: Direction, text: &str) -> Option<String> {
        let path = Path::of(text)?;
        let (from, to) = self
            .0
            .iter()
            .filter_map(|pair| {
                let (from, to) = match direction {
                    Direction::ToAgent => (&pair.local, &pair.remote),
                    Direction::ToClient => (&pair.remote, &pair.local),
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

    fn map(pairs: &[&str]) -> PathMap {
        PathMap::new(pairs.iter().map(|pair| pair.parse().unwrap()).collect())
    }

    #[track_caller]
    fn check_both_ways(map: &PathMap, local: &str, remote: &str) {
        assert_eq!(map.map(Direction::ToAgent, local).as_deref(), Some(remote));
        assert_eq!(map.map(Direction::ToClient, remote).as_deref(), Some(local));
    }

    #[test]
    fn posix_folders_match_whole_names() {
        let map = map(&["/home/me/app=/srv/app", "/home/me/app/vendor=/opt/vendor"]);
        check_both_ways(&map, "/home/me/app", "/srv/app");
        check_both_ways(&map, "/home/me/app/", "/srv/app/");
        check_both_ways(&map, "/home/me/app/src/x y.rs", "/srv/app/src/x y.rs");
        check_both_ways(&map, "/home/me/app/vendor/z", "/opt/vendor/z");
        for other in ["/home/me/apple", "/home/me", "relative", "", "npx"] {
            assert_eq!(map.map(Direction::ToAgent, other), None, "{other}");
        }
        assert_eq!(map.map(Direction::ToAgent, "/home/me/app/../x"), None);
        let inside = map.map(Direction::ToAgent, "/home/me/app/a/../b");
        assert_eq!(inside.as_deref(), Some("/srv/app/a/../b"));
        for dotted in ["/home/./me/app/x", "/./home/me/app/./x", "/home//me/app/x"] {
            let moved = map.map(Direction::ToAgent, dotted);
            assert_eq!(moved.as_deref(), Some("/srv/app/x"), "{dotted}");
        }
    }

    #[test]
    fn windows_drives_and_shares_are_folders() {
        let drive = map(&[r"C:\Users\me\app=/srv/app"]);
        check_both_ways(&drive, r"C:\Users\me\app\src\x.rs", "/srv/app/src/x.rs");
        let other = drive.map(Direction::ToAgent, "c:/users/ME/app/src/x.rs");
        assert_eq!(other.as_deref(), Some("/srv/app/src/x.rs"));
        let long = drive.map(Direction::ToAgent, r"\\?\C:\Users\me\app\x");
        assert_eq!(long.as_deref(), Some("/srv/app/x"));
        assert_eq!(drive.map(Direction::ToClient, r"/srv/app/a\b"), None);
        let share = map(&[r"\\files\team\app=/srv/app"]);
        check_both_ways(&share, r"\\files\team\app\x", "/srv/app/x");
        for long in [r"\\?\UNC\files\team\app\x", r"\\?\unc\FILES\team\app\x"] {
            let moved = share.map(Direction::ToAgent, long);
            assert_eq!(moved.as_deref(), Some("/srv/app/x"), "{long}");
        }
        let root = map(&[r"D:\=/mnt/d"]);
        check_both_ways(&root, r"D:\x\y", "/mnt/d/x/y");
        check_both_ways(&root, r"D:\", "/mnt/d/");
    }

    #[test]
    fn file_uris_keep_their_encoding() {
        let posix = map(&["/home/m e/app=/srv/app"]);
        check_both_ways(
            &posix,
            "file:///home/m%20e/app/x%20y.rs#L3",
            "file:///srv/app/x%20y.rs#L3",
        );
        for short in [
            "file:/home/m%20e/app/./x",
            "FILE://localhost/home/m%20e/app/x",
        ] {
            let moved = posix.map(Direction::ToAgent, short);
            assert_eq!(moved.as_deref(), Some("file:///srv/app/x"), "{short}");
        }
        let drive = map(&[r"C:\app=/srv/ä"]);
        check_both_ways(&drive, "file:///C:/app/x", "file:///srv/%C3%A4/x");
        let lower = drive.map(Direction::ToAgent, "file:///c%3A/app/x");
        assert_eq!(lower.as_deref(), Some("file:///srv/%C3%A4/x"));
        let share = map(&[r"\\files\team=/srv"]);
        check_both_ways(&share, "file://files/team/x", "file:///srv/x");
        for other in [
            "https://x/srv/y",
            "file://srv",
            "file:///srv%2Fx",
            "file:///srv/%zz",
            "file:///srv/x%2F..",
            "file:///srv/%2E/../x",
            "file:srv/x",
        ] {
            assert_eq!(share.map(Direction::ToClient, other), None, "{other}");
        }
    }

    #[test]
    fn invalid_folder_pair_is_refused() {
        for bad in ["", "/a", "/a=b", "a=/b", "/a=file:///b", "/a/..=/b", "=/b"] {
            assert!(bad.parse::<FolderPair>().is_err(), "{bad}");
        }
    }
}
