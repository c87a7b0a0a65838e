//! The directory of recordings: the names of its files, which tell a recorder's files from others, and
//! its marks.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::packer::pack_later;
use super::segment::SegmentStore;
use super::segment_file::{Durability, SegmentFile, create};
use recording::{PACKED, PLAIN, rfc3339};

/// Maximum length of a peer's name in a file name.
const MAX_NAME: usize = 24;

/// A recording in a directory.
#[derive(Debug)]
pub struct Folder {
    folder: PathBuf,
    name: String,
    /// The current segment.
    segment: PathBuf,
    durability: Durability,
}

impl Folder {
    /// The recording `id` that began at `began` (microseconds since 1970), in `folder`.
    ///
    /// # Errors
    /// When the directory cannot be created, or other users can write to it.
    pub fn new(folder: &Path, id: &str, began: u64) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let mode = fs::metadata(folder)?.mode();
        if mode & 0o022 != 0 {
            let what = "other users can write to this directory; recordings need a private one (chmod 700)";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        let date = rfc3339(began).replace(['-', ':'], "");
        let short = id.get(..8).unwrap_or(id);
        let name = format!("{date}-{short}");
        Ok(Self {
            segment: folder.join(&name),
            folder: folder.to_owned(),
            name,
            durability: Durability::default(),
        })
    }

    /// Sets when the segments are synced to the disk.
    #[must_use]
    pub const fn with_durability(mut self, how: Durability) -> Self {
        self.durability = how;
        self
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder
            .join(format!("{}.{number:03}{PLAIN}", self.name))
    }
}

impl SegmentStore for Folder {
    fn name_peers(&mut self, peers: [&str; 2]) {
        if let Some((date, id)) = self.name.split_once('-') {
            let peers = peers.map(|name| file_name_part(name, MAX_NAME));
            let peers = peers.iter().filter(|part| !part.is_empty());
            let parts = [date]
                .into_iter()
                .chain(peers.map(String::as_str))
                .chain([id]);
            self.name = parts.collect::<Vec<_>>().join("-");
            self.segment = self.folder.join(&self.name);
        }
    }

    fn create(&mut self, number: u64) -> io::Result<Box<dyn Write + Send>> {
        self.segment = self.path(number);
        let file = create(&self.segment)?;
        // The lock shows other programs that the file is in use; nothing depends on it.
        let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Box::new(SegmentFile::new(file, self.durability)))
    }

    fn finish(&mut self, number: u64) {
        pack_later(self.path(number));
    }

    fn marks(&mut self) -> Vec<String> {
        let path = marks_path(&self.segment);
        let taken = path.with_extension("taken");
        if fs::rename(&path, &taken).is_err() {
            return Vec::new();
        }
        let texts = fs::read_to_string(&taken).unwrap_or_default();
        // It was renamed by us just before.
        let _ = fs::remove_file(&taken);
        texts.lines().map(str::to_owned).collect()
    }

    fn name(&self) -> String {
        self.segment.display().to_string()
    }
}

/// The file for marks that are added to the segment at `path` while it is being written, one per
/// line.
#[must_use]
pub fn marks_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".marks");
    PathBuf::from(name)
}

/// A name as a part of a file name: lower-case letters and digits, joined by dashes, `max` at most.
#[must_use]
pub fn file_name_part(name: &str, max: usize) -> String {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut part = words.join("-").to_ascii_lowercase();
    part.truncate(max);
    part.trim_end_matches('-').to_owned()
}

/// The recording that a file of this name belongs to: `20261120T155900Z-goose-zed-8f1c22ab`, of
/// which the middle may be missing, a segment's number, and an ending.
pub(super) fn recording_of(file: &str) -> Option<&str> {
    let (name, rest) = file.split_once('.')?;
    let (date, peers) = name.split_once('-')?;
    let (peers, id) = peers.rsplit_once('-').unwrap_or(("", peers));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (day, time) = date.strip_suffix('Z')?.split_once('T')?;
    let dated = day.len() == 8 && time.len() == 6 && digits(day) && digits(time);
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let named = peers.bytes().all(plain)
        && id.len() == 8
        && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (number, _) = rest.split_once('.')?;
    let ending = &rest[number.len()..];
    let part = ending.strip_suffix(".part").unwrap_or(ending);
    let known = ending == PLAIN || part == PACKED;
    (dated && named && number.len() >= 3 && digits(number) && known).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_peer_is_no_path_and_has_a_bound() {
        for (name, part) in [
            ("Zed", "zed"),
            (
                "@zed-industries/claude-code-acp",
                "zed-industries-claude-co",
            ),
            ("../../etc/passwd\0\n", "etc-passwd"),
            ("‹redacted:ab12›", "redacted-ab12"),
            ("Ünï日本 \u{202e}.acpr.zst", "n-acpr-zst"),
            ("…", ""),
        ] {
            assert_eq!(file_name_part(name, MAX_NAME), part);
        }
    }
}
