//! Replaces a file as a whole.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes a file at once as a whole, also over one that is there. Without permissions, only its owner
/// may read it.
pub(super) fn replace_file(
    path: &Path,
    content: &[u8],
    permissions: Option<Permissions>,
) -> io::Result<()> {
    let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new(".")))?;
    file.write_all(content)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
