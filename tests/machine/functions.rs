//! Functions of the language.

use ftsh_machine::functions;

use super::world;

#[test]
fn examples_of_functions_have_the_documented_values() {
    for function in functions::all() {
        let name = function.signature.name;
        assert!(!function.examples.is_empty(), "{name} has no example");
        for (expression, words) in function.examples {
            assert!(expression.starts_with(&format!("{name}(")), "{expression}");
            let script = format!("for word in {expression}\necho \"<$word>\"\nend");
            let expected: Vec<String> = words.iter().map(|word| format!("<{word}>\n")).collect();
            world().run(&script).succeeds().prints(&expected.concat());
        }
    }
}

#[test]
fn rows_stand_in_the_order_of_the_vocabulary() {
    let rows: Vec<_> = functions::all().map(|function| function.signature.name).collect();
    let vocabulary = ftsh_syntax::vocabulary::FUNCTIONS.iter().map(|signature| signature.name);
    assert_eq!(rows, vocabulary.collect::<Vec<_>>());
}
