//! The syntax tree.
//!
//! It keeps what the printer needs to say a script again (quoting, comments, blank lines), and
//! every node that can fail at run time keeps its place.

use std::sync::Arc;

use smallvec::SmallVec;

pub use super::clauses::ForKind;
use super::clauses::{ChannelClauses, TryClauses};
use super::span::{Source, Span};
use crate::backoff::{Clauses, Kind};
pub use crate::duration::Unit;

/// A variable's or a function's name.
pub type Name = Arc<str>;

/// A whole script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The text it was parsed from.
    pub source: Arc<Source>,
    /// Its commands, in order; functions included.
    pub body: Block,
}

/// A list of commands: the body of a script or of a structure.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The commands, in order.
    pub commands: Vec<Command>,
}

/// A command and its place.
#[derive(Clone, Debug)]
pub struct Command {
    /// From its first word to its end; for structures, of the head line only.
    pub span: Span,
    /// Whether a blank line stands before it.
    pub gap: bool,
    /// What it does.
    pub kind: CommandKind,
    /// Redirections after a structure's `end`.
    pub redirects: Vec<Redirect>,
}

/// What a command does.
#[derive(Clone, Debug)]
pub enum CommandKind {
    /// `# text`, the text without the `#`; nothing happens.
    Comment {
        /// What follows the `#`.
        text: String,
        /// Whether it shares its line with what comes before it.
        trailing: bool,
    },
    /// `a | b`, or just `a`.
    Pipeline(Pipeline),
    /// `name=expr`; without an expression, `name=` unsets.
    Assign {
        /// The variable.
        name: Name,
        /// The value.
        value: Option<Expr>,
        /// `local name=expr`: until the call ends.
        local: bool,
    },
    /// `if … else if … else … end`.
    If {
        /// Conditions with their bodies.
        arms: Vec<(Expr, Block)>,
        /// The last `else`.
        otherwise: Option<Block>,
    },
    /// `while expr … end`.
    While {
        /// The condition.
        condition: Expr,
        /// The body.
        body: Block,
    },
    /// `for`, `forany`, `forall`.
    For(Box<For>),
    /// `try`.
    Try(Box<Try>),
    /// `function name … end`.
    Function {
        /// The name.
        name: Name,
        /// Where the name stands.
        name_span: Span,
        /// The body.
        body: Block,
    },
    /// `return [expr]`.
    Return(Option<Expr>),
    /// `shift [n]`.
    Shift(Option<Expr>),
    /// `break`, `continue`.
    Jump(Jump),
    /// `channel`.
    Channel(Box<Channel>),
}

/// What leaves the body of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// `break`: the loop is over, and has succeeded.
    Break,
    /// `continue`: it goes on with what comes next.
    Continue,
}

impl Jump {
    /// Its keyword.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Break => "break",
            Self::Continue => "continue",
        }
    }
}

/// Stages whose standard outputs feed the next one's standard input; at least one, and a single one is a
/// command.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The stages, left to right.
    pub stages: Vec<Stage>,
}

/// One stage of a pipeline.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What runs in it.
    pub kind: StageKind,
    /// Whether `|&` follows: standard error goes into the pipe too.
    pub pipe_errors: bool,
}

/// What runs in a stage of a pipeline.
#[derive(Clone, Debug)]
pub enum StageKind {
    /// A command.
    Simple(Simple),
    /// A structure, in a block of its own: whoever goes through blocks gets to it.
    Structure(Block),
}

impl Stage {
    /// Its command, unless it is a structure.
    pub fn simple(&self) -> Option<&Simple> {
        match &self.kind {
            StageKind::Simple(simple) => Some(simple),
            StageKind::Structure(_) => None,
        }
    }

    /// The block of its structure, if it is one.
    pub fn block(&self) -> Option<&Block> {
        match &self.kind {
            StageKind::Simple(_) => None,
            StageKind::Structure(block) => Some(block),
        }
    }
}

/// `NAME=word… words… redirections…`.
#[derive(Clone, Debug)]
pub struct Simple {
    /// The whole command.
    pub span: Span,
    /// Variables for this command only.
    pub assignments: Vec<(Name, Word)>,
    /// The command and its arguments; at least one.
    pub words: Vec<Word>,
    /// Its redirections, left to right.
    pub redirects: Vec<Redirect>,
}

/// One redirection.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// Where.
    pub span: Span,
    /// The descriptor it sets, 0 to 9.
    pub descriptor: u8,
    /// How the target is opened.
    pub mode: Mode,
    /// Whether descriptor 2 follows descriptor 1 there (`>& file`, `&>> file`, `->& v`).
    pub with_errors: bool,
    /// To what.
    pub target: Target,
}

/// How a redirection opens its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>>`
    Append,
}

/// What a redirection leads to.
#[derive(Clone, Debug)]
pub enum Target {
    /// A file.
    File(Word),
    /// A variable used as a file; the word gives its name.
    Variable(Word),
    /// Another descriptor, as in `2>&1`, or in `<&3` with [`Mode::Read`].
    Descriptor(u8),
    /// `<<WORD`: the lines up to `WORD`.
    HereDocument {
        /// The word that ends it.
        delimiter: String,
        /// The text: one word of [`Part::Double`] when substituted, of [`Part::Single`] when
        /// the delimiter was quoted.
        body: Word,
    },
    /// `<<< word`: the word and a newline.
    HereString(Word),
}

/// A word: parts without white space between them.
#[derive(Clone, Debug)]
pub struct Word {
    /// Where.
    pub span: Span,
    /// At least one part; one is by far the most common, and needs no memory of its own.
    pub parts: SmallVec<[Part; 1]>,
}

impl Word {
    /// Its text, if that stands for itself, whatever there is: one piece without quotes, no pattern, and no
    /// home directory.
    pub fn itself(&self) -> Option<&str> {
        let is_active = |byte: &u8| matches!(byte, b'*' | b'?' | b'[');
        match &self.parts[..] {
            [Part::Bare(text)]
                if !text.starts_with('~') && !text.as_bytes().iter().any(is_active) =>
            {
                Some(text)
            }
            _ => None,
        }
    }
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Unquoted text; `*`, `?` and `[…]` in it are patterns, a leading `~` is a home directory. Two
    /// in a row come from lines that were joined inside a word, and mean the same as one.
    Bare(String),
    /// `\c`
    Escaped(char),
    /// `'…'`, the text it stands for.
    Single(String),
    /// `"…"`.
    Double(Vec<Quoted>),
    /// `$name`, unquoted.
    Variable(Box<Variable>),
}

/// A piece of a double-quoted string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quoted {
    /// The text it stands for.
    Text(String),
    /// `$name`.
    Variable(Box<Variable>),
}

/// A variable's use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Where.
    pub span: Span,
    /// Which.
    pub parameter: Parameter,
    /// `${name:-word}` or `${name:+word}`. Inside double quotes the word's [`Part::Bare`] is plain
    /// text, as is a `'` in it.
    pub substitute: Option<(Substitute, Vec<Part>)>,
}

/// What a `$` refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// `$name`
    Named(Name),
    /// `$0`, `$1`, …
    Positional(u32),
    /// `$#`
    Count,
    /// `$*`
    Star,
    /// `$@`
    At,
    /// `$$`
    Pid,
}

/// When a substitute is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substitute {
    /// `:-`: if the variable is unset or empty.
    Default,
    /// `:+`: if it is not.
    Alternative,
}

/// An expression and its place.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Where.
    pub span: Span,
    /// What it computes.
    pub kind: ExprKind,
}

/// What an expression computes.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A word, as an operand: never split.
    Word(Word),
    /// `( expr )`
    Group(Box<Expr>),
    /// `name(args)`
    Call {
        /// The function.
        name: Name,
        /// Its arguments.
        args: Vec<Expr>,
    },
    /// `.not. x`, `.exists. x`, …
    Unary {
        /// The operator.
        operator: UnaryOperator,
        /// Its operand.
        operand: Box<Expr>,
    },
    /// `a .add. b`, …
    Binary {
        /// The operator.
        operator: BinaryOperator,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `from .to. to [.step. step]`
    Range {
        /// One end.
        from: Box<Expr>,
        /// The other end.
        to: Box<Expr>,
        /// The step.
        step: Option<Box<Expr>>,
    },
    /// `.succeeds. ( command )`
    Succeeds(Box<Pipeline>),
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `.not.`
    Not,
    /// `.exists.`, `.isfile.`, …
    Test(FileTest),
}

/// A question about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named like their operators")]
pub enum FileTest {
    Exists,
    Readable,
    Writable,
    Executable,
    File,
    Directory,
    Link,
    Pipe,
    Socket,
    Block,
    Character,
}

/// An operator between its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named like their operators")]
pub enum BinaryOperator {
    Or,
    And,
    Eq,
    Ne,
    Eql,
    Neql,
    Lt,
    Le,
    Gt,
    Ge,
    Contains,
    Matches,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
}

/// `for`, `forany`, `forall`.
#[derive(Clone, Debug)]
pub struct For {
    /// Which of the three.
    pub kind: ForKind<Duration, Expr>,
    /// The loop variable.
    pub variable: Name,
    /// The list: bare words split and expand, other expressions give one value.
    pub list: Vec<Expr>,
    /// The body.
    pub body: Block,
}

/// `try [limits] [clauses] … [catch …] end`.
#[derive(Clone, Debug)]
pub struct Try {
    /// Its limits and clauses, but for `while`.
    pub clauses: TryClauses<Duration, Expr, BackoffClause>,
    /// `while expr`
    pub condition: Option<Expr>,
    /// `through NAME`, and where the name stands.
    pub through: Option<(Span, Name)>,
    /// The body.
    pub body: Block,
    /// The `catch` block, and where `catch` stands.
    pub catch: Option<(Span, Block)>,
    /// The `finally` block, and where `finally` stands.
    pub finally: Option<(Span, Block)>,
}

/// `channel NAME rules…`: what attempts through it obey from there on.
#[derive(Clone, Debug)]
pub struct Channel {
    /// What it is called.
    pub name: Name,
    /// Where the name stands.
    pub name_span: Span,
    /// Its rules, at least one; the budget as a percentage, without the `%`.
    pub rules: ChannelClauses<Duration, Expr>,
}

/// A length of time.
#[derive(Clone, Debug)]
pub enum Duration {
    /// `5 minutes`, `$n seconds`, `1.5 hours`: the amount's value may have a fraction.
    Amount {
        /// How many.
        amount: Expr,
        /// Of what.
        unit: Unit,
    },
    /// `1h30m`, `500ms`, or a word whose value is written like that.
    Joined(Word),
}

/// `backoff NAME [from D] [to D] [by F] [jitter P%]`.
#[derive(Clone, Debug)]
pub struct BackoffClause {
    /// Where.
    pub span: Span,
    /// The policy.
    pub kind: Kind,
    /// Its parameters; the jitter as a percentage, without the `%`.
    pub clauses: Clauses<Duration, Expr>,
}
