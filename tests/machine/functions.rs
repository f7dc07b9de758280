//! Functions of the language.

use ftsh_machine::Machine;
use ftsh_syntax::vocabulary::FUNCTIONS;

#[test]
fn every_function_of_the_language_does_something() {
    let values = ["7", "9", "8"].map(|text| format!("'{text}'"));
    for function in &FUNCTIONS {
        let arguments = values[..function.parameters.len()].join(", ");
        let text = format!("for x in {}({arguments}); y=\"$x\"; end", function.name);
        let script = ftsh_syntax::parse("t", &text).expect("a right script");
        let mut world = ftsh_sim::Simulated::new(1);
        let (words, variables) = (vec!["t".into()], Vec::new());
        let mut machine =
            Machine::new(&script, words, variables, ftsh_machine::Config::default(), 1);
        let outcome = ftsh_machine::driver::run(&mut machine, &mut world);
        let fails = matches!(&outcome, ftsh_machine::Outcome::Failed(failure)
            if failure.message.starts_with("nothing matches"));
        assert!(
            outcome.exit_code() == 0 || function.name == "match" && fails,
            "{text}: {outcome:?}"
        );
    }
}
