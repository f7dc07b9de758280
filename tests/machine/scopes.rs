//! Open scopes at the end of a script.

use ftsh_machine::{Config, Machine, driver};
use ftsh_sim::Simulated;

/// Returns the number of open scopes at the end of a script.
fn left(script: &str) -> usize {
    let script = ftsh_syntax::parse("script", script).expect("a script");
    let mut machine = Machine::new(&script, Vec::new(), Vec::new(), Config::default(), 1);
    driver::run(&mut machine, &mut Simulated::new(1));
    machine.in_progress().scopes
}

#[test]
fn canceled_work_leaves_no_scope() {
    for script in [
        "try for 1 second or 1 time\ntry 2 times\nsleep 9\nend\ncatch # late\nend\n",
        "try for 1 second or 1 time\nforall x in a b\ntry\nsleep 9\nend\nend\ncatch # late\nend\n",
        "try for 1 second or 1 time\nkeep sleep 9\ncatch # late\nend\n",
        "try 1 time\nforall x in 1 2\nkeep ok\nkeep fail $x\nend\ncatch # one\nend\n",
        "try 1 time\nforall x in 1 2\ntry 1 time\nsleep $x\nfailure\nend\nend\ncatch # one\nend\n",
    ] {
        assert_eq!(left(script), left(&script.repeat(20)), "{script}");
    }
}
