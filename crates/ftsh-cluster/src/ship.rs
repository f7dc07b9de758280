//! The program sent along: a node needs nothing of it, and nothing of it stays there.
//!
//! A shell on the node takes it from its standard input, into a file that has lost its name before anything
//! is in it. So however that ends, nothing is left to be removed; what asks it to end before that waits.

use bstr::BString;

/// How all begins that is wrong with it there.
const COMPLAINT: &str = "ftsh was sent and ";

/// The command that takes a program of so many bytes from its standard input, and becomes `ftsh --branch`.
/// It is quoted for whatever shell a user has at the other end: without single quotes and ends of lines.
pub fn command(size: usize) -> [BString; 3] {
    let take = format!(
        "trap \"\" HUP INT QUIT PIPE TERM; \
         f=$(mktemp \"${{TMPDIR:-/tmp}}/ftsh.XXXXXX\") || f=$(mktemp /tmp/ftsh.XXXXXX) || \
         {{ echo \"{COMPLAINT}finds no place in ${{TMPDIR:-/tmp}}\" >&2; exit 126; }}; \
         exec 3>\"$f\" 4<\"$f\"; rm -f \"$f\"; \
         trap - HUP INT QUIT PIPE TERM; \
         head -c {size} >&3; exec 3>&-; \
         test $(wc -c <&4) -eq {size} || \
         {{ echo \"{COMPLAINT}did not arrive whole in ${{f%/*}}\" >&2; exit 126; }}; \
         chmod 700 /proc/self/fd/4; \
         /proc/self/fd/4 -V </dev/null >/dev/null || \
         {{ echo \"{COMPLAINT}cannot be executed in ${{f%/*}} on this $(uname -sm)\" >&2; exit 126; }}; \
         exec /proc/self/fd/4 --branch"
    );
    ["/bin/sh".into(), "-c".into(), take.into()]
}

/// Whether that was said there.
pub fn complains(said: &str) -> bool {
    said.contains(COMPLAINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_quoted_for_any_shell() {
        let [.., line] = command(1);
        assert!(!line.iter().any(|byte| b"'\n!".contains(byte)), "{line}");
    }
}
