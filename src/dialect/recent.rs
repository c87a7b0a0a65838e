//! A map of bounded size that evicts its oldest entries.

use hashlink::LinkedHashMap;

/// Maximum size of one entry, in bytes.
const LONGEST: usize = 256 << 10;

/// At most so many entries with so many bytes. The oldest is the one that was written first, or, of
/// those from [`Recent::get_or_default`], requested first.
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

impl<V, const ENTRIES: usize, const BYTES: usize> Recent<V, ENTRIES, BYTES> {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&V> {
        self.all.get(key)
    }

    /// The keys and values, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = (&str, &V)> {
        self.all.iter().rev().map(|(key, value)| (&**key, value))
    }

    /// The key, if there is exactly one.
    pub(super) fn only(&self) -> Option<&str> {
        let (key, _) = self.all.front().filter(|_| self.all.len() == 1)?;
        Some(key)
    }
}

impl<V: AsRef<[u8]>, const ENTRIES: usize, const BYTES: usize> Recent<V, ENTRIES, BYTES> {
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

impl<V: Default, const ENTRIES: usize, const BYTES: usize> Recent<V, ENTRIES, BYTES> {
    /// The value of a key, which becomes the newest; a new one is inserted.
    pub(super) fn get_or_default(&mut self, key: &str) -> &mut V {
        if self.all.to_back(key).is_none() {
            if self.all.len() >= ENTRIES {
                self.all.pop_front();
            }
            self.all.insert(key.into(), V::default());
        }
        self.all.get_mut(key).expect("it was inserted above")
    }
}
