//! Memory limits of control groups, as in containers. Commands are killed before the shell, output
//! to a variable uses no memory, and the report names the reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::statfs::{TMPFS_MAGIC, statfs};

use crate::support::Ftsh;
use crate::support::skipped::skipped;

const MIB: u64 = 1 << 20;

/// Control group with little memory, removed at the end.
struct Group(PathBuf);

impl Group {
    /// Creates a group; none without control groups or permission.
    fn new(name: &str, limit: u64) -> Option<Self> {
        let mounts =
            [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];
        for (mount, file) in mounts {
            let path = Path::new(mount).join(format!("ftsh-test-{}-{name}", std::process::id()));
            if fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Self(path);
            let limits = |name: &str, limit: String| {
                group.0.join(name).exists() && fs::write(group.0.join(name), limit).is_ok()
            };
            if limits(file, limit.to_string()) {
                // With swap, no process would be killed.
                limits("memory.swap.max", "0".into());
                return Some(group);
            }
        }
        skipped("control groups with limits of memory");
        None
    }

    /// Returns a run of a script in the group, with its variables on disk.
    fn run(&self, script: &str) -> Ftsh {
        let join = "echo 0 > \"$0/cgroup.procs\" && exec \"$@\"";
        let wrapper = ["sh", "-c", join, self.0.to_str().expect("text")];
        Ftsh::script(script).through(wrapper).limit(Duration::from_secs(60))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A killed process belongs to the group until it has ended.
        let start = Instant::now();
        while fs::remove_dir(&self.0).is_err() && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn commands_are_killed_before_the_shell() {
    let own = fs::read_to_string("/proc/self/oom_score_adj").expect("Linux");
    let own: i32 = own.trim().parse().expect("a number");
    let more = (own + 100).min(1000);
    let script = "cat /proc/self/oom_score_adj; cat /proc/$$/oom_score_adj";
    Ftsh::command(script).stdout(format!("{more}\n{own}\n")).success();
    // An inner shell is a command of this one.
    let most = (own + 200).min(1000);
    let nested = "ftsh -c 'cat /proc/self/oom_score_adj'";
    Ftsh::command(nested).stdout(format!("{most}\n")).success();
    let highest = "echo 1000 > /proc/self/oom_score_adj && exec \"$@\"";
    let script = "cat /proc/self/oom_score_adj";
    Ftsh::command(script).through(["sh", "-c", highest, "sh"]).stdout("1000\n").success();
}

#[test]
fn output_to_a_variable_uses_no_memory() {
    if statfs("/var/tmp").is_ok_and(|it| it.filesystem_type() == TMPFS_MAGIC) {
        return skipped("a disk at /var/tmp");
    }
    let Some(group) = Group::new("capture", 48 * MIB) else { return };
    let script = "
forall word in a b
    try 1 time
        head -c 150M /dev/zero -> v
        wc -c -< v
    end
end";
    group.run(script).stdout("157286400\n157286400\n").success().nothing_left();
}

#[test]
fn a_command_killed_for_its_memory_is_reported() {
    let Some(group) = Group::new("command", 48 * MIB) else { return };
    let script = "
try 1 time
    tail /dev/zero
catch
    echo $error_kind $error_code $error
end
echo alive
tail /dev/zero";
    let message = "`tail /dev/zero` was killed by SIGKILL: the system had too little memory";
    let finished = group.run(script).stderr(message).failure(137);
    assert_eq!(finished.text(), format!("signal 137 {message}\nalive\n"));
    finished.nothing_left();
    // Another kill is not attributed to lack of memory.
    let other = group.run("sh -c 'kill -KILL $$'").stderr("was killed by SIGKILL\n").failure(137);
    assert!(!other.errors().contains("memory"));
}

/// The interpreter uses most of the memory here, so killing a command does not help.
#[test]
fn a_shell_killed_for_its_memory_leaves_nothing_and_is_reported() {
    let Some(group) = Group::new("shell", 48 * MIB) else { return };
    let script = "
forall word in a b
    if $word .eq. a
        /bin/sleep 1000
    end
    head -c 30M /dev/zero -> v
    w=\"$v\"
    x=\"$v.\"
    y=\"$v..\"
end";
    let finished = group.run(script).stderr("the system had too little memory").run();
    finished.nothing_left();
}
