//! Memory and load of the machine, the memory limit of a control group, and kills by the
//! out-of-memory killer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ftsh_machine::event::CommandStatus;
use ftsh_machine::event::FreeResources;

/// A hierarchy of control groups that bounds memory.
struct Hierarchy {
    mount: &'static str,
    /// File with the memory limit of a group.
    limit: &'static str,
    /// File with the counter of out-of-memory kills.
    kills: &'static str,
}

/// Version 2: one hierarchy has all controllers.
const UNIFIED: Hierarchy =
    Hierarchy { mount: "/sys/fs/cgroup", limit: "memory.max", kills: "memory.events" };

/// Version 1: memory has a hierarchy of its own.
const MEMORY: Hierarchy = Hierarchy {
    mount: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    kills: "memory.oom_control",
};

/// Version 1 writes the largest number of pages where no limit is set. Values from here on count as
/// unlimited.
const NO_LIMIT: u64 = 1 << 60;

/// Control group of this process.
struct ControlGroup {
    hierarchy: Hierarchy,
    directory: PathBuf,
}

/// True if a control group around this process limits its memory. The result is cached.
pub(crate) fn limits_memory() -> bool {
    static LIMITS: OnceLock<bool> = OnceLock::new();
    *LIMITS.get_or_init(|| own().is_some_and(|group| group.is_limited()))
}

/// Returns the number of processes of this control group killed for lack of memory. Returns none
/// where the system does not count them.
fn out_of_memory_kills() -> Option<u64> {
    static OWN: OnceLock<Option<ControlGroup>> = OnceLock::new();
    OWN.get_or_init(own).as_ref()?.kills()
}

/// Attributes SIGKILLs to lack of memory, by the counter of the control group.
#[derive(Default)]
pub(crate) struct KillCount {
    /// Set after the counter was read for the first time.
    is_begun: bool,
    /// Counter at the first reading, plus the kills attributed since.
    explained: Option<u64>,
}

impl KillCount {
    /// Reads the counter, on the first call only.
    pub(crate) fn begin(&mut self) {
        if !self.is_begun {
            *self = Self { is_begun: true, explained: out_of_memory_kills() };
        }
    }

    /// Replaces the status of a process that ftsh has not killed by `OutOfMemory` if the counter
    /// shows another kill.
    pub(crate) fn explain(&mut self, status: CommandStatus) -> CommandStatus {
        let is_killed = status == CommandStatus::Signaled(libc::SIGKILL);
        // A shell exits with this status when its own command was killed.
        let has_killed = status == CommandStatus::Exited(128 + libc::SIGKILL);
        if (is_killed || has_killed)
            && let Some(explained) = &mut self.explained
            && out_of_memory_kills().is_some_and(|kills| kills > *explained)
        {
            *explained += 1;
            return if is_killed { CommandStatus::OutOfMemory } else { status };
        }
        status
    }
}

fn own() -> Option<ControlGroup> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    // Where both versions are mounted, one of them has the memory controller.
    text.lines()
        .filter_map(group)
        .find(|group| group.directory.join(group.hierarchy.kills).exists())
}

/// Parses a line of `/proc/self/cgroup`, such as `4:memory:/path` or `0::/path`.
fn group(line: &str) -> Option<ControlGroup> {
    let (_, line) = line.split_once(':')?;
    let (controllers, path) = line.split_once(':')?;
    let hierarchy = match controllers {
        "" => UNIFIED,
        _ if controllers.split(',').any(|it| it == "memory") => MEMORY,
        _ => return None,
    };
    let mount = Path::new(hierarchy.mount);
    let directory = mount.join(path.trim_start_matches('/'));
    // In a container, the path may be the host's while the container's group is mounted at the
    // root.
    let directory = if directory.is_dir() { directory } else { mount.into() };
    Some(ControlGroup { hierarchy, directory })
}

impl ControlGroup {
    fn is_limited(&self) -> bool {
        let above = self.directory.ancestors();
        let mut groups = above.take_while(|it| it.starts_with(self.hierarchy.mount));
        groups.any(|group| {
            let text = fs::read_to_string(group.join(self.hierarchy.limit)).unwrap_or_default();
            text.trim().parse().is_ok_and(|limit: u64| limit < NO_LIMIT)
        })
    }

    fn kills(&self) -> Option<u64> {
        let text = fs::read_to_string(self.directory.join(self.hierarchy.kills)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
    }
}

/// Returns the sum of lines in kB of a file of `/proc`, in bytes; `None` if a line is missing.
pub(crate) fn kilobytes(text: &str, names: &[&str]) -> Option<u64> {
    let values: BTreeMap<&str, u64> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            Some((words.next()?, words.next()?.parse().ok()?))
        })
        .collect();
    names.iter().try_fold(0_u64, |sum, name| {
        Some(sum.saturating_add(values.get(name)?.saturating_mul(1024)))
    })
}

/// Returns the memory available and the load of the machine.
pub(crate) fn free_resources() -> FreeResources {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    FreeResources {
        memory: kilobytes(&memory, &["MemAvailable:"]),
        load: load.split(' ').next().and_then(|load| load.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_group() {
        let found = |line: &str| group(line).map(|it| (it.hierarchy.limit, it.directory));
        for (line, limit, mount) in [
            ("0::/", UNIFIED.limit, UNIFIED.mount),
            ("0::/no such group", UNIFIED.limit, UNIFIED.mount),
            ("4:memory:/no such group", MEMORY.limit, MEMORY.mount),
            ("4:cpu,memory:/", MEMORY.limit, MEMORY.mount),
        ] {
            let (file, directory) = found(line).expect("a group");
            assert_eq!((file, directory.join("")), (limit, Path::new(mount).join("")), "{line}");
        }
        for line in ["", "4", "5:devices:/", "9:name=systemd:/"] {
            assert!(found(line).is_none(), "{line}");
        }
    }

    #[test]
    fn limits_of_groups_above_count() {
        let place = tempfile::tempdir().expect("a directory");
        let mount: &'static str = place.path().to_str().expect("text").to_owned().leak();
        let directory = place.path().join("a/b");
        fs::create_dir_all(&directory).expect("directories");
        let group = ControlGroup { hierarchy: Hierarchy { mount, ..UNIFIED }, directory };
        assert!(!group.is_limited() && group.kills().is_none());
        let write = |name: &str, text: &str| {
            fs::write(place.path().join(name), text).expect("a file");
        };
        write("a/b/memory.max", "max\n");
        write("a/memory.max", "9223372036854771712\n");
        assert!(!group.is_limited());
        write("memory.max", "67108864\n");
        write("a/b/memory.events", "low 0\noom 2\noom_kill 3\noom_group_kill 0\n");
        assert!(group.is_limited());
        assert_eq!(group.kills(), Some(3));
    }

    #[test]
    fn memory_and_load_are_numbers() {
        let FreeResources { memory, load } = free_resources();
        assert!(memory.is_some_and(|bytes| bytes > 0) && load.is_some());
    }
}
