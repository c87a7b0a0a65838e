//! What has been read of a recording so far: its index, its files, and the progress of reading.

use std::io::{self, Read as _, Seek as _, SeekFrom};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::index::{Index, Item};
use analysis::lint::Finding;
use recording::{SegmentReader, SegmentSource};

/// Bytes that are read at a time when a whole recording is searched.
const BLOCK: u64 = 1 << 20;

/// The content of one recording.
#[derive(Debug, Default)]
pub(super) struct Content {
    index: Mutex<Index>,
    /// The segments so far, for random access.
    pub(super) files: Mutex<Vec<SegmentReader<SegmentSource>>>,
    pub(super) progress: watch::Sender<Progress>,
}

/// How far a recording has been read.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Incremented with every change.
    pub(super) revision: u64,
    /// Bytes that were read.
    pub(super) bytes: u64,
    /// Bytes in total.
    pub(super) total: u64,
    /// It has been read to its end, and no process writes it.
    pub(super) complete: bool,
    /// Why reading stopped.
    pub(super) error: Option<String>,
}

impl Content {
    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock()
    }

    /// Adds findings of the linter among the first `checked` items, and those that hold if there
    /// are no more items; wakes waiting requests.
    pub(super) fn add_findings(
        &self,
        found: Vec<Finding>,
        provisional: Vec<Finding>,
        checked: usize,
    ) {
        let mut index = self.index();
        index.set_findings(found, provisional, checked);
        self.progress.send_modify(|progress| progress.revision += 1);
    }

    /// Some items from the `from`th on, with their lines; none if there are no more.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn block(&self, from: usize) -> io::Result<Vec<(Item, Bytes)>> {
        let items: Vec<Item> = {
            let index = self.index();
            let rest = index.items.get(from..).unwrap_or_default();
            let Some(first) = rest.first() else {
                return Ok(Vec::new());
            };
            let in_block = |item: &&Item| {
                item.segment == first.segment
                    && item.at + u64::from(item.length) - first.at <= BLOCK
            };
            let count = rest.iter().take_while(in_block).count().max(1);
            rest.iter().take(count).copied().collect()
        };
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            return Ok(Vec::new());
        };
        let (begin, bytes) = (first.at, self.span(first, last)?);
        let with_line = |item: Item| {
            let start = usize::try_from(item.at - begin).unwrap_or(usize::MAX);
            let end = start.saturating_add(item.length as usize);
            let end = end.min(bytes.len());
            (item, bytes.slice(start.min(end)..end))
        };
        Ok(items.into_iter().map(with_line).collect())
    }

    /// The bytes from the beginning of `first` to the end of `last`, of the same segment.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn span(&self, first: &Item, last: &Item) -> io::Result<Bytes> {
        let mut files = self.files.lock();
        let file = files
            .get_mut(usize::from(first.segment))
            .ok_or(io::ErrorKind::NotFound)?
            .source();
        file.seek(SeekFrom::Start(first.at))?;
        let length = last.at + u64::from(last.length) - first.at;
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(64 << 20));
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}
