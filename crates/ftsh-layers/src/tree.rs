//! Covered directory of an attempt, with its layers.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ftsh_sys::Overlay;

use crate::directories::CoveredDirectory;
use crate::entry::{FileId, c_string};
use crate::layers::{Layers, Start};

/// Options of overlays of an administrator. The overlay records renamed directories, and keeps hard
/// links together.
const PRIVILEGED: &str = "redirect_dir=on,index=on,metacopy=off";

/// Options of an administrator's overlay over another one. The changes of renamed directories cannot
/// be copied to the outer attempt.
const PRIVILEGED_NESTED: &str = "redirect_dir=off,index=off,metacopy=off";

/// Options of overlays of other users.
const UNPRIVILEGED: &str = "userxattr";

/// Covered directory with its layers.
pub(crate) struct CoveredTree {
    pub(crate) path: PathBuf,
    /// Path by which the shell reaches the directory.
    pub(crate) reached: PathBuf,
    /// Directory that an outer attempt covers, if that directory is this one or above.
    pub(crate) outer: Option<PathBuf>,
    pub(crate) directory: File,
    pub(crate) id: FileId,
    pub(crate) layers: Layers,
    pub(crate) start: Start,
}

impl CoveredTree {
    pub(crate) fn create(
        place: &CoveredDirectory,
        path: &Path,
        primary: Option<&Path>,
    ) -> io::Result<Self> {
        let directory = place.directory.try_clone()?;
        let layers = Layers::create(path)?;
        match layers.fill(place, primary) {
            Ok(start) => Ok(Self {
                path: place.path.clone(),
                reached: place.reached().to_owned(),
                outer: place.nested.as_ref().map(|nested| nested.outer.clone()),
                directory,
                id: place.id,
                layers,
                start,
            }),
            Err(error) => {
                let _ = layers.remove();
                Err(error)
            }
        }
    }

    pub(crate) fn overlay(&self, is_privileged: bool) -> io::Result<Overlay> {
        let own = match (is_privileged, &self.outer) {
            (false, _) => UNPRIVILEGED,
            (true, None) => PRIVILEGED,
            (true, Some(_)) => PRIVILEGED_NESTED,
        };
        // Without `volatile`, the kernel writes all of the file system to disk at the end of each
        // attempt.
        let options = format!("lowerdir=lower,upperdir=upper,workdir=work,volatile,{own}");
        Ok(Overlay {
            target: c_string(&self.path)?,
            layers: c_string(&self.layers.path)?,
            options: CString::new(options.as_bytes())?,
            outer: self.outer.as_deref().map(c_string).transpose()?,
        })
    }

    /// Returns the path of an entry of the directory.
    pub(crate) fn full(&self, path: &[u8]) -> PathBuf {
        self.path.join(std::ffi::OsStr::from_bytes(path))
    }
}
