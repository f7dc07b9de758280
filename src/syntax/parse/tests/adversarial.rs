//! Text made to overflow, hang or confuse.

use super::*;

/// Parses, prints and drops on a small stack.
fn on_a_small_stack(text: String) -> std::result::Result<String, String> {
    let parse = move || match parse("t", &text) {
        Ok(script) => Ok(print(&script)),
        Err(errors) => Err(diagnostic::render_all(&errors)),
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(parse);
    thread.expect("a thread").join().expect("no panic")
}

#[test]
fn times() {
    let n: usize = std::env::var("N").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let shapes: Vec<(&str, String)> = vec![
        ("(", "(".repeat(n)),
        ("if (", format!("if {}", "(".repeat(n))),
        ("f(", format!("if {}", "f(".repeat(n / 2))),
        ("f(a b", format!("for x in {}", "f(a ".repeat(n / 4))),
        ("$((", format!("echo \"{}", "$((".repeat(n / 3))),
        ("a=b=", "a=b=c=".repeat(n / 6)),
        ("a= a=", "a= ".repeat(n / 3)),
        ("${${", format!("echo {}", "${".repeat(n / 2))),
        ("${a:-", format!("echo {}", "${a:-".repeat(n / 5))),
        ("\"${a:-", format!("echo \"{}", "${a:-".repeat(n / 5))),
        ("${a:-}}", format!("echo {}{}", "${a:-".repeat(n / 10), "}".repeat(n / 10))),
        ("|", "|".repeat(n)),
        ("a|a", "a|".repeat(n / 2)),
        ("a|\\n", "a|\n".repeat(n / 3)),
        ("a ", "a ".repeat(n / 2)),
        ("aaa", "a".repeat(n)),
        (";", ";".repeat(n)),
        ("a;", "a;".repeat(n / 2)),
        ("\\n", "\n".repeat(n)),
        ("a\\n", "a\n".repeat(n / 2)),
        (";\\n", ";\n".repeat(n / 2)),
        ("|\\n", "|\n".repeat(n / 2)),
        ("|;", "|;".repeat(n / 2)),
        ("a <<X\\n", "a <<X\n".repeat(n / 6)),
        ("a <<X;", "a <<X;".repeat(n / 6)),
        ("a <<X;X", format!("{}\n{}", "a <<X;".repeat(n / 8), "X\n".repeat(n / 8))),
        ("| <<X\\n", "| <<X\n".repeat(n / 6)),
        ("\"", "\"".repeat(n + 1)),
        ("'\\n", "'\n".repeat(n / 2 + 1)),
        ("\"'\\n", "\"'\n".repeat(n / 3)),
        ("`", "`".repeat(n)),
        ("\"`", format!("\"{}", "`a".repeat(n / 2))),
        ("\\\\n", "\\\n".repeat(n / 2)),
        ("a\\\\n", "a\\\n".repeat(n / 3)),
        ("\\r", "\r".repeat(n)),
        ("\\\\r", format!("a\\{}", "\r".repeat(n))),
        ("\"\\r", format!("a \"{}\"", "\r".repeat(n))),
        (".not.", format!("if {}a\nend", ".not. ".repeat(n / 6))),
        (".add.", format!("a=1{}", " .add. 1".repeat(n / 8))),
        (".add. fails", format!("a=1{}", " .add. 1".repeat(n / 8) + " )")),
        (".eq.", format!("if a{}\nend", " .eq. b".repeat(n / 7))),
        ("try", "try\n".repeat(n / 4)),
        ("try;end", format!("{}{}", "try\n".repeat(n / 8), "end\n".repeat(n / 8))),
        ("try 5 times", format!("try {}\nend", "5 times ".repeat(n / 8))),
        ("in order", format!("forany x in {}\nend", "in order ".repeat(n / 9))),
        ("at most", format!("forall x in {}\nend", "at most ".repeat(n / 8))),
        ("at most (", format!("forall x in {}\nend", "at most (".repeat(n / 9))),
        ("else if", format!("if a\n{}end", "else if b\n".repeat(n / 10))),
        ("function", format!("{}", "function f\nend\n".repeat(n / 15))),
        ("#", "#".repeat(n)),
        ("<", "<".repeat(n)),
        ("a<b", "a<b".repeat(n / 3)),
        (".succeeds.", format!("if {}a", ".succeeds. (".repeat(n / 12))),
        ("comment", "echo # c\n".repeat(n / 9)),
        ("é", "é".repeat(n / 2)),
        ("end", "end\n".repeat(n / 4)),
        ("A=1", format!("{} x", "A=1 ".repeat(n / 4))),
        ("A=1 (", "A=1 (".repeat(n / 5)),
    ];
    for (name, text) in shapes {
        let bytes = text.len();
        let start = std::time::Instant::now();
        let result = on_a_small_stack(text);
        let took = start.elapsed();
        let what = match &result {
            Ok(_) => "ok".to_owned(),
            Err(message) => message.lines().next().unwrap_or_default().chars().take(70).collect(),
        };
        println!("{:>10.1?} {bytes:>8} {name:<14} {what}", took);
    }
}
