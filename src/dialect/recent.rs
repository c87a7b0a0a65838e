//! A map of bounded size that evicts its oldest entries.

use hashlink::LinkedHashMap;

use super::memory::ENTRY;

/// Maximum size of one entry that is inserted, in bytes.
const LONGEST: usize = 256 << 10;

/// At most so many entries with about so many bytes; the one that was written first is evicted.
#[derive(Debug, Default)]
pub(super) struct Recent<V, const ENTRIES: usize, const BYTES: usize> {
    /// The values with their sizes.
    all: LinkedHashMap<Box<str>, (V, usize)>,
    /// The memory that they take.
    pub(super) bytes: usize,
}

impl<V, const ENTRIES: usize, const BYTES: usize> Recent<V, ENTRIES, BYTES> {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&V> {
        self.all.get(key).map(|(value, _)| value)
    }

    /// The keys and values, the oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &V)> {
        self.all.iter().map(|(key, (value, _))| (&**key, value))
    }

    /// Remembers a value with so many bytes behind it. Returns whether it was remembered: one that is too
    /// long only removes the previous one.
    pub(super) fn insert(&mut self, key: &str, value: V, size: usize) -> bool {
        self.remove(key);
        if key.len() + size > LONGEST {
            return false;
        }
        self.all.insert(key.into(), (value, 0));
        self.weigh(key, size);
        true
    }

    /// The value of a key, to be changed; [`Recent::weigh`] follows.
    pub(super) fn of(&mut self, key: &str) -> &mut V
    where
        V: Default,
    {
        let fresh = || (V::default(), 0);
        &mut self.all.entry(key.into()).or_insert_with(fresh).0
    }

    /// Notes how many bytes are behind a value. Others are evicted if all are too large.
    pub(super) fn weigh(&mut self, key: &str, size: usize) {
        let Some((_, known)) = self.all.get_mut(key) else {
            return;
        };
        let size = ENTRY + size_of::<V>() + key.len() + size;
        self.bytes = self.bytes + size - std::mem::replace(known, size);
        while self.all.len() > ENTRIES || self.bytes > BYTES {
            let Some((oldest, (_, size))) = self.all.iter().find(|(other, _)| &***other != key)
            else {
                break;
            };
            let (oldest, size) = (oldest.clone(), *size);
            self.all.remove(&oldest);
            self.bytes -= size;
        }
    }

    /// Forgets a key.
    pub(super) fn remove(&mut self, key: &str) -> Option<V> {
        let (value, size) = self.all.remove(key)?;
        self.bytes -= size;
        Some(value)
    }
}
