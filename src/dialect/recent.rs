//! A map of bounded size that evicts its oldest entries.

use hashlink::LinkedHashMap;

/// Maximum size of one entry, in bytes.
const LONGEST: usize = 256 << 10;

/// At most so many entries with so many bytes; the one that was written first is evicted.
#[derive(Debug)]
pub(super) struct Recent<V, const ENTRIES: usize, const BYTES: usize> {
    all: LinkedHashMap<Box<str>, V>,
    bytes: usize,
}

impl<V, const ENTRIES: usize, const BYTES: usize> Default for Recent<V, ENTRIES, BYTES> {
    fn default() -> Self {
        Self {
            all: LinkedHashMap::new(),
            bytes: 0,
        }
    }
}

impl<V: AsRef<[u8]>, const ENTRIES: usize, const BYTES: usize> Recent<V, ENTRIES, BYTES> {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&V> {
        self.all.get(key)
    }

    /// Remembers a value. Returns whether it was remembered: one that is too long only removes the
    /// previous one.
    pub(super) fn insert(&mut self, key: &str, value: V) -> bool {
        let size = |key: &str, value: &V| key.len() + value.as_ref().len();
        if let Some(old) = self.all.remove(key) {
            self.bytes -= size(key, &old);
        }
        if size(key, &value) > LONGEST {
            return false;
        }
        self.bytes += size(key, &value);
        self.all.insert(key.into(), value);
        while self.all.len() > ENTRIES || self.bytes > BYTES {
            let Some((key, value)) = self.all.pop_front() else {
                break;
            };
            self.bytes -= size(&key, &value);
        }
        true
    }
}
