//! Directories of users for one test.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, chown};

use super::run::NOBODY;

/// Gives this thread, and the processes and threads that it starts, directories in memory in place
/// of those that all shells of a user share. Done once in a thread.
///
/// Each shell cleans up after killed ones. A test that kills shells, and then looks at what they
/// left or leaves what cannot be cleaned up, would meet the shells of other tests.
///
/// Returns false without the right to mount.
pub(crate) fn live_apart() -> bool {
    thread_local!(static IS_APART: bool = mount_directories().is_ok());
    IS_APART.with(|it| *it)
}

fn mount_directories() -> io::Result<()> {
    let unprivileged = format!("/tmp/ftsh-{NOBODY}");
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
    for (path, user) in [(Path::new("/run/ftsh"), 0), (Path::new(&unprivileged), NOBODY)] {
        // The place to mount at stays for the next test.
        if !path.is_dir() {
            fs::create_dir_all(path)?;
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
            chown(path, Some(Uid::from_raw(user)), None)?;
        }
        let options = format!("mode=700,uid={user}");
        mount(none, path, Some("tmpfs"), MsFlags::empty(), Some(&*options))?;
    }
    Ok(())
}

#[test]
fn shells_of_other_tests_share_no_directory() {
    let list = || {
        let is_apart = live_apart();
        if is_apart {
            let script = "touch /run/ftsh/of-$$; ls /run/ftsh | grep -c of-";
            super::Ftsh::new().args(["-c", "sh -c \"$1\"", "name", script]).stdout("1\n").success();
        }
        is_apart
    };
    for _ in 0..2 {
        if !std::thread::spawn(list).join().expect("a directory") {
            return super::skipped::skipped("the right to mount");
        }
    }
}
