//! Scopes that are emptied.

use super::*;

const SCOPE: ScopeId = ScopeId(1);
const BELOW: ScopeId = ScopeId(2);
const OTHER: ScopeId = ScopeId(3);

fn open(world: &mut World) {
    for (scope, parent) in [(SCOPE, ScopeId::SCRIPT), (BELOW, SCOPE), (OTHER, ScopeId::SCRIPT)] {
        world.driver.perform(Effect::OpenScope { scope, parent });
    }
}

each_alone! {
    fn an_empty_scope_is_emptied_at_once(world) {
        open(world);
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
    }

    fn a_scope_and_those_below_it_end_and_others_live_on(world) {
        open(world);
        let pids = [SCOPE, BELOW, OTHER].map(|scope| {
            let process = world.start_in(scope, program(&["sleep", "1000"]));
            world.pid_of(process)
        });
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
        assert_eq!(pids.map(lives), [false, false, true]);
        assert!(world.is_quiet());
    }

    fn a_command_that_ignores_sigterm_is_killed(world) {
        open(world);
        let buffer = BufferId(world.id());
        world.with(&[(1, Port::BufferCreate(buffer, "".into()))]);
        let process = world.start_in(SCOPE, shell("trap '' TERM; echo; while :; do sleep 1; done"));
        let pid = world.pid_of(process);
        until("the trap isn't set", || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
            let line = status.lines().find(|line| line.starts_with("SigIgn:")).expect("a line");
            let ignored = u64::from_str_radix(&line[8..], 16).expect("a number");
            ignored & 1 << (libc::SIGTERM - 1) != 0
        });
        world.driver.perform(Effect::Terminate(SCOPE));
        assert!(world.is_quiet());
        assert!(lives(pid));
        world.driver.perform(Effect::Kill { scope: SCOPE, strong: true });
        world.emptied(SCOPE);
        assert!(!lives(pid));
    }

    fn a_stopped_command_ends_all_the_same(world) {
        open(world);
        let process = world.start_in(SCOPE, shell("kill -STOP $$; exit 1"));
        let pid = world.pid_of(process);
        until("it doesn't stop", || std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| stat.contains(") T ")));
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
    }

    fn what_a_command_left_behind_ends_with_its_scope(world) {
        open(world);
        let (end, output) = {
            let buffer = BufferId(world.id());
            world.with(&[(1, Port::BufferCreate(buffer, "".into()))]);
            let process = world.start_in(SCOPE, shell("sleep 1000 & echo $!"));
            (world.end_of(process), world.content(buffer))
        };
        assert_eq!(end, "exit 0"); // although its output is still open
        let pid: i32 = output.to_string().trim().parse().expect("a number");
        assert!(lives(pid));
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
        until("it lives on", || !lives(pid)); // init takes a moment to reap it
    }

    fn what_was_handed_over_lives_until_the_outer_scope_ends(world) {
        open(world);
        let buffer = BufferId(world.id());
        world.with(&[(1, Port::BufferCreate(buffer, "".into()))]);
        let process = world.start_in(BELOW, shell("sleep 1000 & echo $!"));
        world.end_of(process);
        let pid: i32 = world.content(buffer).to_string().trim().parse().expect("a number");
        world.driver.perform(Effect::HandOver { scope: BELOW, into: SCOPE });
        world.driver.perform(Effect::HandOver { scope: SCOPE, into: ScopeId::SCRIPT });
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
        assert!(lives(pid));
        world.driver.perform(Effect::Terminate(ScopeId::SCRIPT));
        world.emptied(ScopeId::SCRIPT);
        until("it lives on", || !lives(pid));
    }
}
