//! Documentation of the policies, rendered from their descriptions.

use super::clause::Clause;
use super::policies::PolicyKind;
use super::policy::Policy;

/// Returns the table of `docs/reference/trying.md`, in Markdown.
pub fn reference_table() -> String {
    let mut table =
        String::from("| name | delay | T, M, F, P if not given | takes |\n|---|---|---|---|\n");
    for kind in PolicyKind::ALL {
        let names: Vec<String> =
            kind.clauses().iter().map(|clause| format!("`{}`", clause.name())).collect();
        let cells = [title(kind), formula(kind), defaults(kind), names.join(" ")];
        table += &row(&cells);
    }
    table
}

/// Returns the description of a policy for `help` and hovers: a line for each paragraph.
pub fn help(kind: PolicyKind) -> String {
    let description = kind.description();
    let policy = Policy::new(kind);
    let defaults: Vec<String> = kind
        .clauses()
        .iter()
        .map(|clause| format!("{} is {}", letter(*clause), spaced(&policy, *clause)))
        .collect();
    let mut help = description.help.to_owned();
    if !defaults.is_empty() {
        help += &format!(" {}.", defaults.join(", "));
    }
    help.push('\n');
    if !description.source.is_empty() {
        help += &format!("\nSource: {}\n", description.source);
    }
    help
}

fn row(cells: &[String]) -> String {
    let cells: String = cells
        .iter()
        .map(|cell| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") })
        .collect();
    format!("|{cells}\n")
}

fn title(kind: PolicyKind) -> String {
    let is_default = kind == Policy::default().kind;
    format!("`{}`{}", kind.name(), if is_default { ", the default" } else { "" })
}

fn formula(kind: PolicyKind) -> String {
    kind.description().formula.to_owned()
}

fn defaults(kind: PolicyKind) -> String {
    let policy = Policy::new(kind);
    let values: Vec<String> =
        kind.clauses().iter().map(|clause| spaced(&policy, *clause)).collect();
    values.join(", ")
}

/// Returns the value of a parameter as prose writes it, with a blank before the percent sign.
fn spaced(policy: &Policy, clause: Clause) -> String {
    policy.value(clause).replace('%', " %")
}

/// Returns the parameter's letter in formulas.
fn letter(clause: Clause) -> char {
    match clause {
        Clause::From => 'T',
        Clause::To => 'M',
        Clause::By => 'F',
        Clause::Jitter => 'P',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_show_formula_defaults_and_clauses() {
        let table = reference_table();
        for row in [
            "| `ethernet`, the default | min(U(1, 2)·T·Fⁿ, M) | 1 s, 1 min, 2 | `from` `to` `by` |",
            "| `fixed` | T | 1 s | `from` |",
            "| `none` | 0 | | |",
        ] {
            assert!(table.lines().any(|line| line == row), "{table}");
        }
        assert!(table.contains("| 100 ms, 1 min, 2, 10 % |"), "{table}");
    }

    #[test]
    fn help_ends_with_defaults_and_source() {
        assert_eq!(help(PolicyKind::Fixed), "Always T. T is 1 s.\n");
        let help = help(PolicyKind::Normal);
        assert!(
            help.contains(" T is 100 ms, M is 1 min, F is 2, P is 10 %.\n\nSource: "),
            "{help}"
        );
    }
}
