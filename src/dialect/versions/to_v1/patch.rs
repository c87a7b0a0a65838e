//! Patches in the format of git, as far as texts can be taken from them.

/// How lines begin that name a file.
const NAMES: [&str; 6] = [
    "--- ",
    "+++ ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
];

/// The changes of one file.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Its names, as the patch spells them.
    names: Vec<String>,
    pub(super) hunks: Vec<Hunk>,
}

/// One hunk: the lines before and after.
#[derive(Debug, Default)]
pub(super) struct Hunk {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) old_start: u64,
    pub(super) new_start: u64,
}

impl Section {
    /// How well the section fits the file with that path: 0 not at all.
    pub(super) fn fits(&self, path: &str) -> u8 {
        let grade = |name: &String| {
            let stripped = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/"));
            let plain = stripped.unwrap_or(name);
            match () {
                () if name == path || stripped == Some(path) => 3,
                () if plain == path.trim_start_matches('/') => 2,
                () if path.ends_with(&format!("/{plain}")) => 1,
                () => 0,
            }
        };
        self.names.iter().map(grade).max().unwrap_or(0)
    }
}

/// The sections of a patch; `None` if it is not one.
pub(super) fn parse(patch: &str) -> Option<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut lines = patch.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let text = line.trim_end_matches(['\n', '\r']);
        if text.starts_with("diff --git ") {
            sections.push(Section::default());
            continue;
        }
        let mut words = NAMES.iter();
        let name = words.find_map(|word| text.strip_prefix(word));
        if let Some(name) = name {
            let is_bare = sections.last().is_none_or(|last| !last.hunks.is_empty());
            if is_bare && text.starts_with("--- ") {
                sections.push(Section::default());
            }
            let name = unquoted(name);
            if name != "/dev/null" {
                sections.last_mut()?.names.push(name);
            }
        } else if text.starts_with("@@ ") {
            let hunk = hunk(text, &mut lines)?;
            sections.last_mut()?.hunks.push(hunk);
        } else if sections.is_empty() && !text.trim().is_empty() {
            return None;
        }
    }
    let has_names = |section: &Section| section.hunks.is_empty() || !section.names.is_empty();
    (!sections.is_empty() && sections.iter().all(has_names)).then_some(sections)
}

/// The hunk whose head was read.
fn hunk<'p>(
    head: &str,
    lines: &mut std::iter::Peekable<impl Iterator<Item = &'p str>>,
) -> Option<Hunk> {
    let ranges = head.strip_prefix("@@ -")?.split(" @@").next()?;
    let (old, new) = ranges.split_once(" +")?;
    let ((old_start, mut old_left), (new_start, mut new_left)) = (range(old)?, range(new)?);
    let mut hunk = Hunk {
        old_start,
        new_start,
        ..Hunk::default()
    };
    let (mut in_old, mut in_new) = (false, false);
    let says_no_end = |line: &&str| line.starts_with('\\');
    while old_left > 0 || new_left > 0 || lines.peek().is_some_and(says_no_end) {
        let line = lines.next()?;
        let (sign, rest) = match line.chars().next()? {
            // Some programs remove white space at the end of lines.
            '\n' | '\r' => (' ', line),
            sign => (sign, line.get(1..)?),
        };
        (in_old, in_new) = match sign {
            ' ' => (true, true),
            '-' => (true, false),
            '+' => (false, true),
            // The line before has no end.
            '\\' => (in_old, in_new),
            _ => return None,
        };
        let old = (in_old, &mut old_left, &mut hunk.old);
        let new = (in_new, &mut new_left, &mut hunk.new);
        for (_, left, text) in [old, new].into_iter().filter(|(is_in, ..)| *is_in) {
            if sign == '\\' {
                let end = text.strip_suffix('\n').map(str::len);
                text.truncate(end.unwrap_or(text.len()));
            } else {
                *left = left.checked_sub(1)?;
                // The last line of the patch may lack its end.
                text.push_str(rest.strip_suffix('\n').unwrap_or(rest));
                text.push('\n');
            }
        }
    }
    Some(hunk)
}

/// `start,count`, where the count may be left out.
fn range(text: &str) -> Option<(u64, u64)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.trim_end().parse().ok()?))
}

/// A name without the quotes and escapes that git writes around unusual ones, and without a time.
fn unquoted(name: &str) -> String {
    let Some(quoted) = name.strip_prefix('"') else {
        return name.split('\t').next().unwrap_or(name).to_owned();
    };
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => break,
            b'\\' => match rest.next() {
                Some(digit @ b'0'..=b'3') => {
                    let digits = [Some(digit), rest.next(), rest.next()];
                    let value = digits.iter().flatten().fold(0_u32, |value, digit| {
                        (value << 3) | u32::from(digit.wrapping_sub(b'0') & 7)
                    });
                    bytes.push(u8::try_from(value).unwrap_or(b'?'));
                }
                Some(b'n') => bytes.push(b'\n'),
                Some(b't') => bytes.push(b'\t'),
                Some(b'r') => bytes.push(b'\r'),
                Some(other) => bytes.push(other),
                None => break,
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
