//! Builtins.

use ftsh_machine::builtins;
use ftsh_sim::Model;

use super::world;

#[test]
fn examples_of_builtins_print_the_documented_output() {
    for builtin in builtins::all() {
        assert!(!builtin.examples.is_empty(), "{} has no example", builtin.name);
        for (script, printed) in builtin.examples {
            assert!(script.split_whitespace().any(|word| word == builtin.name), "{script}");
            let world = world().model(|world| world.command("true", |_, _| Model::succeeds()));
            world.run(script).succeeds().prints(printed);
        }
    }
}

#[test]
fn each_form_of_a_builtin_begins_with_its_name() {
    for builtin in builtins::all() {
        assert!(!builtin.usage.is_empty(), "{}", builtin.name);
        for form in builtin.usage {
            assert_eq!(form.split(' ').next(), Some(builtin.name), "{form}");
        }
    }
}
