//! Edits an editor's settings: JSON with comments and trailing commas, of which nothing but our
//! entry changes.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::editors::{Editor, Entry};
use crate::cli::bounded;
use crate::cli::replace_file::replace_file;

/// Largest settings file that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The byte order mark, which some editors write.
const MARK: char = '\u{feff}';

/// Why settings are left as they are, as text for the user.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::cli) enum SettingsError {
    /// It is not known where the file is.
    #[error("{0}")]
    NoHome(String),
    /// The file cannot be read.
    #[error("{0} cannot be read ({1}); `--print` prints the entry, to be pasted")]
    Unreadable(String, String),
    /// The file cannot be written.
    #[error("{0} cannot be written ({1}); nothing was changed. `--print` prints the entry")]
    Unwritable(String, String),
    /// The file has another form than its editor gives it.
    #[error("{0}: {1}; nothing was changed. Correct it, or paste what `--print` prints")]
    Unclear(String, String),
    /// The name belongs to an entry that starts another program.
    #[error("{0} has another agent called \"{1}\"; choose a name with --name")]
    Taken(String, String),
    /// The entry starts acp-relay with other arguments than `install` writes.
    #[error(
        "{0} has an entry \"{1}\" that was written or changed by hand; choose another name with \
         --name, or remove it"
    )]
    Edited(String, String),
    /// There is no entry of the name.
    #[error("{0} has no agent called \"{1}\"; `acp-relay install --list` lists those of acp-relay")]
    Absent(String, String),
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Changed,
    /// It was there already.
    None,
}

/// How an entry was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// The file is what it was before, to the byte.
    Undone,
    /// The rest of the file is as it was.
    Removed,
}

/// A settings file, as it was read.
pub(super) struct Settings {
    editor: Editor,
    /// The member that holds the agents.
    member: &'static str,
    /// The file itself: a link's target, so that a link stays one.
    path: PathBuf,
    /// Its text; `None` if there is no file yet.
    before: Option<String>,
}

impl Settings {
    /// Reads the file.
    ///
    /// # Errors
    /// It exists and cannot be read, or is not text.
    pub(super) fn read(
        editor: Editor,
        path: &Path,
        member: &'static str,
    ) -> Result<Self, SettingsError> {
        let read = || -> io::Result<(PathBuf, Option<String>)> {
            let path = match fs::canonicalize(path) {
                Err(_) if path.is_symlink() && !path.exists() => {
                    return Err(io::Error::other("it is a link to nothing"));
                }
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                    return Ok((path.to_owned(), None));
                }
                path => path?,
            };
            let text = bounded::read_file(&path, MAX_BYTES)?;
            Ok((path, Some(text)))
        };
        let (path, before) = read().map_err(|fault| {
            SettingsError::Unreadable(path.display().to_string(), fault.to_string())
        })?;
        Ok(Self {
            editor,
            member,
            path,
            before,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The entry alone, as a file that has nothing else.
    ///
    /// # Errors
    /// None: there is nothing that may not be understood.
    pub(super) fn alone(
        editor: Editor,
        member: &'static str,
        entry: &Entry,
    ) -> Result<String, SettingsError> {
        let none = Self {
            editor,
            member,
            path: PathBuf::new(),
            before: None,
        };
        Ok(none.with(none.text(), entry)?.0)
    }

    /// The entries that start an acp-relay.
    ///
    /// # Errors
    /// The file is not understood.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, SettingsError> {
        let agents = self.agents(&self.parse(self.text())?)?;
        let agents = agents.map_or_else(Vec::new, |agents| agents.properties());
        Ok(agents.iter().filter_map(read_entry).collect())
    }

    /// Adds the entry. One of ours with this name gets its command.
    ///
    /// # Errors
    /// The file is not understood or cannot be written, or the name belongs to another program.
    pub(super) fn add(&self, entry: &Entry) -> Result<Change, SettingsError> {
        let (text, change) = self.with(self.text(), entry)?;
        if change != Change::None {
            self.write(&text)?;
        }
        Ok(change)
    }

    /// Removes the entry. If nothing else has changed since it was added, the file becomes what it
    /// was, to the byte.
    ///
    /// # Errors
    /// The file is not understood or cannot be written, or has no such entry, or it is another
    /// program's.
    pub(super) fn remove(&self, name: &str) -> Result<Removal, SettingsError> {
        let root = self.parse(self.text())?;
        let agents = self.agents(&root)?;
        let found = agents.map(|agents| self.only(&agents, name)).transpose()?;
        let Some(found) = found.flatten() else {
            return Err(SettingsError::Absent(self.shown(), name.to_owned()));
        };
        let entry = read_entry(&found).ok_or_else(|| self.taken(name))?;
        let earlier = fs::read_to_string(self.backup()).ok();
        let is_all = |before: &str| {
            let again = self.with(before, &entry);
            again.is_ok_and(|(text, change)| change != Change::None && text == self.text())
        };
        let undone = match earlier {
            Some(text) if is_all(&text) => {
                let restored = self.replace(&self.path, &text);
                restored.and_then(|()| fs::remove_file(self.backup()))
            }
            // There was no file.
            _ if is_all("") => fs::remove_file(&self.path),
            _ => {
                found.remove();
                self.write(&self.print(&root, self.text()))?;
                return Ok(Removal::Removed);
            }
        };
        undone.map_err(|fault| self.unwritable(&fault))?;
        Ok(Removal::Undone)
    }

    /// The file with the text from before, if there was any.
    pub(super) fn kept(&self) -> Option<PathBuf> {
        self.before.as_ref()?;
        Some(self.backup()).filter(|backup| backup.exists())
    }

    /// Where the text is kept that the file had before it had an entry of ours.
    fn backup(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".before-acp-relay");
        name.into()
    }

    /// Writes the file, and a copy of the text from before beside it, unless an older copy is from
    /// before the first of our entries.
    fn write(&self, text: &str) -> Result<(), SettingsError> {
        let has_ours = !self.entries()?.is_empty();
        let write = || -> io::Result<()> {
            if let Some(before) = &self.before {
                if !has_ours || !self.backup().exists() {
                    self.replace(&self.backup(), before)?;
                }
            } else if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            self.replace(&self.path, text)
        };
        write().map_err(|fault| self.unwritable(&fault))
    }

    /// Replaces a file atomically, with the mode that the settings have.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let mode = match &self.before {
            Some(_) => Some(self.own_mode()?),
            None => None,
        };
        replace_file(path, text.as_bytes(), mode)
    }

    /// The mode of the file, if the user may change it: a new file would be the user's own.
    fn own_mode(&self) -> io::Result<Permissions> {
        let about = fs::metadata(&self.path)?;
        if about.uid() != geteuid().as_raw() {
            return Err(io::Error::other("it belongs to another user"));
        }
        access(&self.path, Access::WRITE_OK)?;
        Ok(about.permissions())
    }

    /// The text with the entry, and what that changes.
    fn with(&self, text: &str, entry: &Entry) -> Result<(String, Change), SettingsError> {
        let root = self.parse(text)?;
        let name = entry.name.as_str();
        let members = self.editor.members(entry);
        let mut change = Change::Added;
        match self.agents(&root)? {
            None => {
                let one = vec![(name.to_owned(), CstInputValue::Object(members))];
                let root = root.object_value_or_set();
                root.append(self.member, CstInputValue::Object(one));
            }
            Some(agents) => match self.only(&agents, name)? {
                None => drop(agents.append(name, CstInputValue::Object(members))),
                Some(found) => match (read_entry(&found), found.object_value()) {
                    (Some(same), _) if same == *entry => change = Change::None,
                    (Some(same), Some(_)) if same.agent().is_none() => {
                        return Err(SettingsError::Edited(self.shown(), name.to_owned()));
                    }
                    (Some(_), Some(found)) => {
                        change = Change::Changed;
                        for (name, value) in members {
                            match found.get(&name) {
                                Some(member) => member.set_value(value),
                                None => drop(found.append(&name, value)),
                            }
                        }
                    }
                    _ => return Err(self.taken(name)),
                },
            },
        }
        Ok((self.print(&root, text), change))
    }

    fn parse(&self, text: &str) -> Result<CstRootNode, SettingsError> {
        let strict = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let root = CstRootNode::parse(text.strip_prefix(MARK).unwrap_or(text), &strict);
        let root = root.map_err(|fault| self.unclear(&format!("it is not JSON ({fault})")))?;
        match root.value() {
            Some(value) if value.as_object().is_none() => {
                Err(self.unclear("it is not a JSON object"))
            }
            _ => Ok(root),
        }
    }

    /// The text of a tree, with the byte order mark of the text that it was read from.
    fn print(&self, root: &CstRootNode, from: &str) -> String {
        let mark = from.starts_with(MARK).then_some(MARK);
        mark.into_iter().chain(root.to_string().chars()).collect()
    }

    /// The agents in the file, if it has any.
    fn agents(&self, root: &CstRootNode) -> Result<Option<CstObject>, SettingsError> {
        let Some(root) = root.object_value() else {
            return Ok(None);
        };
        let Some(member) = self.only(&root, self.member)? else {
            return Ok(None);
        };
        let agents = member.object_value();
        let fault = || self.unclear(&format!("\"{}\" is not an object", self.member));
        agents.ok_or_else(fault).map(Some)
    }

    /// The member of that name; editors differ in which of two they take.
    fn only(&self, of: &CstObject, name: &str) -> Result<Option<CstObjectProp>, SettingsError> {
        let of = of.properties().into_iter();
        let mut named = of.filter(|one| one.decoded_name().is_some_and(|own| own == name));
        match (named.next(), named.next()) {
            (_, Some(_)) => Err(self.unclear(&format!("\"{name}\" is in it twice"))),
            (one, None) => Ok(one),
        }
    }

    fn text(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    fn unwritable(&self, fault: &io::Error) -> SettingsError {
        SettingsError::Unwritable(self.shown(), fault.to_string())
    }

    fn unclear(&self, fault: &str) -> SettingsError {
        SettingsError::Unclear(self.shown(), fault.to_owned())
    }

    fn taken(&self, name: &str) -> SettingsError {
        SettingsError::Taken(self.shown(), name.to_owned())
    }
}

/// An entry of the file, if it starts a program called acp-relay, whatever follows in its name.
fn read_entry(property: &CstObjectProp) -> Option<Entry> {
    let text = |value: CstNode| value.as_string_lit()?.decoded_value().ok();
    let members = property.object_value()?;
    let program = text(members.get("command")?.value()?)?;
    let file = Path::new(&program).file_name()?.to_str()?;
    let args = match members.get("args") {
        Some(args) => args.array_value()?.elements(),
        None => Vec::new(),
    };
    file.starts_with("acp-relay").then_some(Entry {
        name: property.decoded_name()?,
        args: args.into_iter().map(text).collect::<Option<_>>()?,
        program,
    })
}
