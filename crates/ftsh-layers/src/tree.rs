//! Covered directory of an attempt, with its layers.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ftsh_sys::Overlay;

use crate::directories::{CoveredDirectory, NestedPlace};
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
    /// Place in an outer attempt, if an outer attempt covers the directory.
    pub(crate) nested: Option<NestedPlace>,
    /// Directory that an outer attempt covers and that hides the layers.
    hiding: Option<PathBuf>,
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
                nested: place.nested.clone(),
                hiding: place.hiding().map(Path::to_owned),
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
        let own = match (is_privileged, &self.nested) {
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
            outer: self.hiding.as_deref().map(c_string).transpose()?,
        })
    }

    /// True if a directory with this path was there before the outer attempt, which then has no
    /// other directory in its place.
    pub(crate) fn is_copied(&self, path: &[u8]) -> bool {
        let Some(nested) = &self.nested else { return false };
        let full = self.full(path);
        let (Some(outer_layers), Ok(below)) =
            (self.layers.path.parent(), full.strip_prefix(&nested.outer))
        else {
            return false;
        };
        let upper = outer_layers.join("upper");
        let is_opaque = |below: &Path| {
            let path = upper.join(below);
            [c"user.overlay.opaque", c"trusted.overlay.opaque"]
                .iter()
                .any(|name| ftsh_sys::attribute(&path, name).is_ok_and(|value| value == b"y"))
        };
        full.symlink_metadata().is_ok_and(|found| found.is_dir())
            && !below.ancestors().any(is_opaque)
    }

    /// Returns the path of an entry of the directory.
    pub(crate) fn full(&self, path: &[u8]) -> PathBuf {
        self.path.join(std::ffi::OsStr::from_bytes(path))
    }
}
