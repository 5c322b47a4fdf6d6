//! Finds a module's debug information if it is in a separate file.

use object::read::ReadCache;
use object::Object;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Folder in which debuggers search by default.
const SYSTEM: &str = "/usr/lib/debug";

/// Folders with debug files in the layout of gdb: `.build-id/12/34.debug`, or below the paths of the modules.
#[derive(Clone, Debug, Default)]
pub struct DebugFolders {
    pub folders: Vec<PathBuf>,
}

impl DebugFolders {
    /// Returns the given folders, followed by the system's.
    pub fn with_system(folders: &[PathBuf]) -> DebugFolders {
        DebugFolders { folders: folders.iter().cloned().chain([PathBuf::from(SYSTEM)]).collect() }
    }

    /// Returns the paths at which a module may be: its own path, its path below each folder, its file name in
    /// each folder, and the paths by build id.
    pub fn modules(&self, path: &Path, build_id: Option<&str>) -> Vec<PathBuf> {
        let below = path.strip_prefix("/").unwrap_or(path);
        let own = path.is_absolute().then(|| path.to_path_buf());
        let by_name = self.folders.iter().flat_map(|folder| {
            [Some(folder.join(below)), path.file_name().map(|name| folder.join(name))].into_iter().flatten()
        });
        let by_id = build_id.and_then(|id| id.split_at_checked(2)).into_iter().flat_map(|(first, rest)| {
            self.folders.iter().map(move |folder| folder.join(".build-id").join(first).join(rest))
        });
        own.into_iter().chain(by_name).chain(by_id).collect()
    }

    /// Returns the file with the debug information of a module.
    pub(crate) fn find<'data>(
        &self,
        module: &Path,
        parsed: &object::File<'data, &'data ReadCache<File>>,
    ) -> Option<PathBuf> {
        let build_id = parsed.build_id().ok().flatten();
        let candidates = build_id.into_iter().flat_map(|id| self.by_build_id(id));
        let link = parsed.gnu_debuglink().ok().flatten();
        let linked = link.into_iter().flat_map(|(name, _)| self.by_link(module, name));
        // Debug information of another build would give wrong lines.
        let fits = |path: &PathBuf| path != module && is_of(path, build_id);
        candidates.chain(linked).find(fits)
    }

    fn by_build_id(&self, id: &[u8]) -> Vec<PathBuf> {
        let name: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let Some((folder, rest)) = name.split_at_checked(2) else { return Vec::new() };
        let below = format!(".build-id/{folder}/{rest}.debug");
        self.folders.iter().map(|folder| folder.join(&below)).collect()
    }

    fn by_link(&self, module: &Path, name: &[u8]) -> Vec<PathBuf> {
        let Ok(name) = std::str::from_utf8(name) else { return Vec::new() };
        let folder = module.parent().unwrap_or(Path::new("/"));
        let below = folder.strip_prefix("/").unwrap_or(folder);
        let beside = [folder.join(name), folder.join(".debug").join(name)];
        let elsewhere = self.folders.iter().flat_map(|one| [one.join(below).join(name), one.join(name)]);
        beside.into_iter().chain(elsewhere).collect()
    }
}

fn is_of(path: &Path, build_id: Option<&[u8]>) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(file);
    let Ok(parsed) = object::File::parse(&cache) else { return false };
    parsed.build_id().ok().flatten() == build_id && build_id.is_some()
}
