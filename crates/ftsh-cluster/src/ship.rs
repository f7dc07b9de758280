//! Transfer of this program to a node, which needs no installation and keeps no file.
//!
//! A shell on the node writes the program from its standard input to a file. The shell unlinks the
//! file before the first byte, so that any end leaves no file behind. Until then, the shell ignores
//! the signals that would end the shell.

use bstr::BString;

/// Prefix of the messages about a failed transfer.
const TRANSFER_ERROR: &str = "ftsh was sent and ";

/// Returns the command that reads a program of `size` bytes from its standard input and becomes
/// `ftsh --branch`. The command has no single quotes and no line breaks, so that any login shell
/// accepts the quoted text.
pub(crate) fn command(size: usize) -> [BString; 3] {
    let take = format!(
        "trap \"\" HUP INT QUIT PIPE TERM; \
         f=$(mktemp \"${{TMPDIR:-/tmp}}/ftsh.XXXXXX\") || f=$(mktemp /tmp/ftsh.XXXXXX) || \
         {{ echo \"{TRANSFER_ERROR}finds no place in ${{TMPDIR:-/tmp}}\" >&2; exit 126; }}; \
         exec 3>\"$f\" 4<\"$f\"; rm -f \"$f\"; \
         trap - HUP INT QUIT PIPE TERM; \
         head -c {size} >&3; exec 3>&-; \
         test $(wc -c <&4) -eq {size} || \
         {{ echo \"{TRANSFER_ERROR}did not arrive whole in ${{f%/*}}\" >&2; exit 126; }}; \
         chmod 700 /proc/self/fd/4; \
         /proc/self/fd/4 -V </dev/null >/dev/null || \
         {{ echo \"{TRANSFER_ERROR}cannot be executed in ${{f%/*}} on this $(uname -sm)\" >&2; exit 126; }}; \
         exec /proc/self/fd/4 --branch"
    );
    ["/bin/sh".into(), "-c".into(), take.into()]
}

/// True if the messages report a failed transfer.
pub(crate) fn is_transfer_error(messages: &str) -> bool {
    messages.contains(TRANSFER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_quoted_for_any_shell() {
        let [.., line] = command(1);
        assert!(!line.iter().any(|byte| b"'\n!".contains(byte)), "{line}");
    }
}
