//! Manual pages from the documents, and completions from the definition of the command line.

#[path = "heads.rs"]
mod heads;
#[path = "manual.rs"]
mod manual;

use std::fs;
use std::io;
use std::path::Path;

use clap_complete::Shell;
use ftsh::cli::options::flags;

use self::manual::Page;

/// Returns the name and the content of each file.
pub(crate) fn all() -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    Ok(vec![
        ("ftsh.1", command_line()?.into_bytes()),
        ("ftsh-language.7", language()?.into_bytes()),
        ("ftsh-cookbook.7", cookbook()?.into_bytes()),
        ("ftsh.bash", completions(Shell::Bash).into_bytes()),
        ("_ftsh", completions(Shell::Zsh).into_bytes()),
        ("ftsh.fish", completions(Shell::Fish).into_bytes()),
    ])
}

fn completions(shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut flags::command(), "ftsh", &mut text);
    heads::add(shell, &String::from_utf8_lossy(&text))
}

/// Returns the text of a document in `docs/`.
fn document(name: &str) -> io::Result<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name))
}

fn command_line() -> io::Result<String> {
    let page = Page {
        name: "ftsh",
        section: 1,
        manual: "User Commands",
        purpose: "fault-tolerant shell: scripts around commands that fail",
        description: "",
        top: 2,
    };
    let environment = "\n## Environment\n";
    let heads = demoted(&document("reference/prefix.md")?);
    let text = document("reference/command-line.md")?;
    Ok(page.render(&text.replacen(environment, &format!("\n{heads}{environment}"), 1)))
}

/// Pages that follow `reference/language.md`, each as a section.
const FURTHER: [&str; 8] =
    ["words", "commands", "loops", "trying", "canceling", "functions", "variables", "kinds"];

fn language() -> io::Result<String> {
    let page = Page {
        name: "ftsh-language",
        section: 7,
        manual: "Miscellaneous Information",
        purpose: "the language of ftsh",
        description: "Everything that a script of ftsh(1) can contain. In the examples, #> marks a line of \
                      the script's standard output, and #2> a line of its standard error.",
        top: 2,
    };
    let mut text = document("reference/language.md")?;
    for name in FURTHER {
        text.push_str(&demoted(&document(&format!("reference/{name}.md"))?));
    }
    Ok(page.render(&text))
}

fn cookbook() -> io::Result<String> {
    let page = Page {
        name: "ftsh-cookbook",
        section: 7,
        manual: "Miscellaneous Information",
        purpose: "scripts of ftsh for common tasks",
        description: "Tasks, each with a script of ftsh(1) and the reasons for its form.",
        top: 1,
    };
    let summary = document("SUMMARY.md")?;
    let names = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let recipes = names.filter(|name| name.starts_with("cookbook/") && !name.ends_with("index.md"));
    let text: io::Result<String> = recipes.map(document).collect();
    Ok(page.render(&text?))
}

/// Returns the text with each heading one level lower.
fn demoted(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().map(|line| {
        is_code ^= line.starts_with("```");
        let mark = if line.starts_with('#') && !is_code { "#" } else { "" };
        format!("{mark}{line}\n")
    });
    lines.collect()
}
