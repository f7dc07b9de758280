//! Words of loops that come from standard input.

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::Query;
use ftsh_machine::{Config, Effect, Event, Machine, Outcome, Time};
use ftsh_sim::Simulated;

use super::world;

/// World that counts reads of single words.
struct Counting {
    world: Simulated,
    words: usize,
    parts: usize,
}

impl Driver for Counting {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        if let Effect::Query { query, .. } = &effect {
            self.words += usize::from(matches!(query, Query::InputWord(..)));
            self.parts += usize::from(matches!(query, Query::InputPart(_)));
        }
        self.world.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.world.wait(until)
    }
}

/// Runs a script. Returns its output, and the numbers of reads of single words and of parts.
fn run(script: &str, input: &str) -> (String, usize, usize) {
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let (args, config) = (vec!["script".into()], Config::default());
    let mut machine = Machine::new(&parsed, args, Vec::new(), config, 7);
    let world = world().simulated.stdin(input).file("/dev/null", "");
    let mut counting = Counting { world, words: 0, parts: 0 };
    let outcome = driver::run(&mut machine, &mut counting);
    assert_eq!(outcome, Outcome::Succeeded, "{}", counting.world.trace());
    (counting.world.stdout(), counting.words, counting.parts)
}

/// `cat` reads what the loop has left.
#[test]
fn a_loop_that_may_end_early_reads_word_by_word() {
    let script = "for x from input; if $x == b; break; end; echo \"<$x>\"; end; cat";
    assert_eq!(run(script, "a\nb\nc\nd\n"), ("<a>\nc\nd\n".into(), 2, 0));
    // Empty lines are no words, and the last line needs no end.
    assert_eq!(run(script, "\n\na\n\nb").0, "<a>\n");
    assert_eq!(run(script, "a").0, "<a>\n");
    assert_eq!(run(script, "").0, "");
    let script = "for x from input by \"--\"; if $x == b; break; end; echo \"<$x>\"; end; cat";
    assert_eq!(run(script, "a\nz--b--c--d").0, "<a\nz>\nc--d");
    let script = "function f; for x from input; return $x; end; end; y=f(); echo $y; cat";
    assert_eq!(run(script, "a\nb\n").0, "a\nb\n");
}

#[test]
fn a_loop_without_a_way_out_reads_what_is_there() {
    let (output, words, parts) = run("for x from input; echo \"<$x>\"; end; cat", "a\nb\nc\n");
    assert_eq!((output.as_str(), words), ("<a>\n<b>\n<c>\n", 0));
    assert!(parts > 0);
    let script = "forall x from input at most 1; echo \"<$x>\"; end";
    let (output, words, _) = run(script, "a\nb\n");
    assert_eq!((output.as_str(), words), ("<a>\n<b>\n", 0));
}
