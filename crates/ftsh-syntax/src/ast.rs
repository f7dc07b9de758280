//! Syntax tree of a script.
//!
//! The tree keeps quoting, comments and blank lines for the printer. Every node with a possible
//! failure at run time keeps its span.

mod arguments;
mod case;
mod modifier;
mod word;

use std::sync::Arc;

pub use super::clauses::ForKind;
use super::clauses::{ChannelClauses, TryClauses};
use super::size::Size;
use super::span::{Source, Span};
use crate::backoff::{Clauses, PolicyKind};
pub use crate::duration::Unit;
pub use arguments::{ArgumentKind, ArgumentsDeclaration, DeclaredArgument};
pub use case::{Case, CaseArm};
pub use modifier::{AcceptedStatuses, Modifier, ModifierKind};
pub use word::{
    Index, Parameter, Quoted, Substitute, VariableUse, Word, WordPart, add_calls, calls,
};

/// Name of a variable or a function.
pub type Name = Arc<str>;

/// Whole script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Source text of the script.
    pub source: Arc<Source>,
    /// Commands in order, function definitions included.
    pub body: Block,
    /// For each `use` in order, the file that it uses. `None` if an earlier `use` of the script or
    /// of its files uses the same file, or if the files were not read.
    pub used: Vec<Option<Arc<Script>>>,
}

impl Script {
    /// Creates a script that uses no files.
    pub fn new(source: Arc<Source>, body: Block) -> Self {
        Self { source, body, used: Vec::new() }
    }

    /// Iterates over the `use` commands, with their spans.
    pub fn uses(&self) -> impl Iterator<Item = (Span, &Use)> {
        self.body.commands.iter().filter_map(|command| match &command.kind {
            CommandKind::Use(used) => Some((command.span, &**used)),
            _ => None,
        })
    }

    /// Returns this script and the files that it uses, each once, in the order of their `use`.
    pub fn all_files(&self) -> Vec<&Self> {
        let mut files = vec![self];
        for used in self.used.iter().flatten() {
            files.extend(used.all_files());
        }
        files
    }

    /// Returns the declaration of the script's arguments.
    pub fn arguments(&self) -> Option<&Arc<ArgumentsDeclaration>> {
        let mut commands = self.body.commands.iter();
        match &commands.find(|it| !matches!(it.kind, CommandKind::Comment { .. }))?.kind {
            CommandKind::Args(declaration) => Some(declaration),
            _ => None,
        }
    }
}

/// List of commands: the body of a script or of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Commands in order.
    pub commands: Vec<Command>,
}

/// Command with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Range from the first word to the end of the command; of a structure, the head line only.
    pub span: Span,
    /// True if a blank line precedes the command.
    pub gap: bool,
    /// Kind of the command, with its parts.
    pub kind: CommandKind,
    /// Redirections after the `end` of a structure.
    pub redirects: Vec<Redirect>,
    /// True for a structure on one line, `try 3 times -- command`, with one command in its body.
    pub one_line: bool,
}

impl Command {
    /// Creates a command without redirections and layout.
    pub fn plain(span: Span, kind: CommandKind) -> Self {
        Self { span, gap: false, kind, redirects: Vec::new(), one_line: false }
    }

    /// Returns the blocks directly inside of the command. A pipeline has one for each stage that is
    /// a structure.
    pub fn blocks(&self) -> Vec<&Block> {
        match &self.kind {
            CommandKind::If { arms, otherwise } => {
                arms.iter().map(|(_, body)| body).chain(otherwise).collect()
            }
            CommandKind::Case(case) => case.blocks().collect(),
            CommandKind::While { body, .. }
            | CommandKind::In { body, .. }
            | CommandKind::Function { body, .. } => vec![body],
            CommandKind::With { companion, body } => vec![companion, body],
            CommandKind::For(details) => vec![&details.body],
            CommandKind::Try(details) => {
                let after = details.catch.iter().chain(&details.finally).map(|(_, block)| block);
                std::iter::once(&details.body).chain(after).collect()
            }
            CommandKind::Pipeline(pipeline) => {
                pipeline.stages.iter().filter_map(Stage::block).collect()
            }
            CommandKind::Comment { .. }
            | CommandKind::Assign { .. }
            | CommandKind::Return(_)
            | CommandKind::Shift(_)
            | CommandKind::List { .. }
            | CommandKind::Jump(_)
            | CommandKind::Channel(_)
            | CommandKind::Use(_)
            | CommandKind::Args(_) => Vec::new(),
        }
    }
}

/// Kind of a command, with its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// `# text`: a comment, which has no effect.
    Comment {
        /// Text after the `#`.
        text: String,
        /// True if a command precedes the comment on its line.
        trailing: bool,
    },
    /// `a | b`, or a single command `a`.
    Pipeline(Pipeline),
    /// `name=expr` assigns; `name=` without an expression unsets.
    Assign {
        /// Name of the variable.
        name: Name,
        /// New value.
        value: Option<Expr>,
        /// True for `local name=expr`, which lasts until the call ends.
        local: bool,
        /// True for `export name=expr` with a calculated value. With a word, `export` is a command.
        exported: bool,
    },
    /// `if … else if … else … end`.
    If {
        /// Conditions with their bodies.
        arms: Vec<(Expr, Block)>,
        /// Body of the last `else`.
        otherwise: Option<Block>,
    },
    /// `case value … when patterns … else … end`.
    Case(Box<Case>),
    /// `while expr … end`.
    While {
        /// Condition, evaluated before each pass.
        condition: Expr,
        /// Body of the loop.
        body: Block,
    },
    /// `for`, `forany` or `forall`.
    For(Box<For>),
    /// `try`.
    Try(Box<Try>),
    /// `in directory … end`.
    In {
        /// Directory of the body.
        directory: Expr,
        /// Body, after which the directory is the one before.
        body: Block,
    },
    /// `with command … end`.
    With {
        /// Pipeline beside the body.
        companion: Block,
        /// Body, at whose end the companion is ended.
        body: Block,
    },
    /// `function name … end`.
    Function {
        /// Name of the function.
        name: Name,
        /// Span of the name.
        name_span: Span,
        /// Body of the function.
        body: Block,
    },
    /// `return [expr]`.
    Return(Option<Expr>),
    /// `shift [n]`.
    Shift(Option<Expr>),
    /// `break` or `continue`.
    Jump(Jump),
    /// `list name in words…` makes a list; `list add name words…` extends one.
    List {
        /// Name of the variable.
        name: Name,
        /// Words, as in the list of a loop.
        words: Vec<Expr>,
        /// True for `list add`.
        adds: bool,
    },
    /// `channel NAME rules…`.
    Channel(Box<ChannelDeclaration>),
    /// `use FILE`, before the other statements of a script.
    Use(Box<Use>),
    /// `args "summary" arguments…`, the first statement of a script; first in the body of a
    /// function, the parameters in its head.
    Args(Arc<ArgumentsDeclaration>),
}

/// Use of another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Path as written.
    pub file: Word,
    /// Path, relative to the directory of the file with the `use`.
    pub path: String,
}

/// Jump out of the body of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// `break`: ends the loop, which succeeds.
    Break,
    /// `continue`: continues the loop with the next pass.
    Continue,
}

impl Jump {
    /// Returns the keyword.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Break => "break",
            Self::Continue => "continue",
        }
    }
}

/// Stages, each of which reads the standard output of the stage before; at least one stage.
///
/// A pipeline of one stage is a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Stages from left to right.
    pub stages: Vec<Stage>,
}

/// Stage of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Command or structure.
    pub kind: StageKind,
    /// True if `|&` follows, which connects standard error as well.
    pub pipe_errors: bool,
}

/// Content of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageKind {
    /// A command.
    Simple(Simple),
    /// Structure in a block of its own, so that a walk over blocks reaches the structure.
    Structure(Block),
}

impl Stage {
    /// Returns the command, unless the stage is a structure.
    pub fn simple(&self) -> Option<&Simple> {
        match &self.kind {
            StageKind::Simple(simple) => Some(simple),
            StageKind::Structure(_) => None,
        }
    }

    /// Returns the block of the structure, if the stage is a structure.
    pub fn block(&self) -> Option<&Block> {
        match &self.kind {
            StageKind::Simple(_) => None,
            StageKind::Structure(block) => Some(block),
        }
    }
}

/// Simple command: `NAME=word… modifiers… words… redirections…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simple {
    /// Span of the whole command.
    pub span: Span,
    /// Variables for this command only.
    pub assignments: Vec<(Name, Word)>,
    /// Words before the command that change the meaning of its end, outermost first.
    pub modifiers: Vec<Modifier>,
    /// Name of the command and its arguments; at least one word.
    pub words: Vec<Word>,
    /// Redirections from left to right.
    pub redirects: Vec<Redirect>,
}

/// Redirection of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Span of the redirection.
    pub span: Span,
    /// Redirected descriptor, from 0 to 9.
    pub descriptor: u8,
    /// Mode in which the target is opened.
    pub mode: Mode,
    /// True if descriptor 2 becomes a copy of descriptor 1 (`>& file`, `&>> file`, `->& v`).
    pub with_errors: bool,
    /// Target of the redirection.
    pub target: RedirectionTarget,
}

/// Mode in which a redirection opens its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>>`
    Append,
}

/// Target of a redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedirectionTarget {
    /// Path of a file.
    File(Word),
    /// Name of a variable used as a file.
    Variable(Word),
    /// Another descriptor, as in `2>&1`, or as in `<&3` with [`Mode::Read`].
    Descriptor(u8),
    /// `<<WORD`, or `<<-WORD` with indentation: the lines before the line `WORD`.
    HereDocument {
        /// Text of the line after the document.
        delimiter: String,
        /// Indentation of `<<-WORD`, which is no part of the text; `None` for `<<WORD`.
        indent: Option<String>,
        /// Text as one part: [`WordPart::Double`] with variables, or [`WordPart::Single`] after a quoted
        /// delimiter.
        body: Word,
    },
    /// `<<< word`: the word and a newline.
    HereString(Word),
}

/// Expression with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// Span of the expression.
    pub span: Span,
    /// Operation with its operands.
    pub kind: ExprKind,
}

/// Operation of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// Word as an operand, which is never split.
    Word(Word),
    /// `( expr )`
    Group(Box<Expr>),
    /// `name(args)`
    Call {
        /// Name of the function.
        name: Name,
        /// Arguments of the call.
        args: Vec<Expr>,
    },
    /// `.not. x`, `! x`, `.exists. x`, …
    Unary {
        /// Operator.
        operator: UnaryOperator,
        /// True if written as a symbol: `! x`.
        is_symbol: bool,
        /// Operand.
        operand: Box<Expr>,
    },
    /// `a .add. b`, `a + b`, …
    Binary {
        /// Operator.
        operator: BinaryOperator,
        /// True if written as a symbol: `a + b`.
        is_symbol: bool,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `from .to. to [.step. step]`
    Range {
        /// First number.
        from: Box<Expr>,
        /// Last number.
        to: Box<Expr>,
        /// Difference between numbers.
        step: Option<Box<Expr>>,
    },
    /// `$(commands)`: the text that a group prints, without its last end of line.
    Collected(Block),
    /// `.succeeds. ( command )`, …
    Asked {
        /// Question to the command.
        question: Question,
        /// The command.
        pipeline: Box<Pipeline>,
    },
}

/// Question to a command in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// A command as it is, in the head of `if`, `else if` and `while`: answers as `.succeeds.`.
    Bare,
    /// `.succeeds.`: `true` for the status 0, `false` for any other.
    Succeeds,
    /// `.yes.`: `true` for the status 0, `false` for 1. Any other status is a failure.
    Yes,
    /// `.output.`: the text that the command prints.
    Output,
}

/// Operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `.not.`
    Not,
    /// `.exists.`, `.isfile.`, …
    Test(FileTest),
}

/// Test of a file.
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

/// Operator between its operands.
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

/// Loop over words: `for`, `forany` or `forall`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct For {
    /// Kind of loop, with its clauses.
    pub kind: ForKind<Duration, Expr>,
    /// Loop variable.
    pub variable: Name,
    /// List of words. Bare words are split and expanded; other expressions yield one word each.
    pub list: Vec<Expr>,
    /// `from input`, instead of a list.
    pub input: Option<Box<Input>>,
    /// Span of `or D` after `hedge after usual`. Without `usual`, `None`.
    pub usual: Option<Span>,
    /// Directories of `atomic in`, whose words are expanded like those of a list; empty without the
    /// clause. Each word of the loop is an atomic attempt.
    pub atomic_in: Vec<Expr>,
    /// Files of each branch by `takes`, expanded in the branch; empty without the clause.
    pub takes: Vec<Expr>,
    /// Files of each branch by `gives`.
    pub gives: Vec<Expr>,
    /// Body of the loop.
    pub body: Block,
}

/// `from input [by TEXT]`: a loop's words are read from standard input as they arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Place of the clause.
    pub span: Span,
    /// Text that ends each word. Without it words are lines, and empty lines are skipped.
    pub by: Option<Expr>,
}

/// `try [limits] [clauses] … [catch …] end`, or `limit D [signal NAME] … [catch …] end`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Try {
    /// True for `limit D`, and around another structure: one attempt, which is no `try` for
    /// `$attempt`, `giveup` and `defer`.
    pub is_limit: bool,
    /// Structure whose `catch` and `finally` the `try` stands for.
    pub around: Option<Around>,
    /// Limits and clauses, except `while`.
    pub clauses: TryClauses<Duration, Expr, Size<Expr>, BackoffClause, Expr>,
    /// Span of `or D` after `each usual`. Without `usual`, `None`.
    pub usual: Option<Span>,
    /// Condition of `while expr`.
    pub condition: Option<Expr>,
    /// Directories of `atomic in`, whose words are expanded like those of a list; empty without the
    /// clause.
    pub atomic_in: Vec<Expr>,
    /// Name after `through`, with its span.
    pub through: Option<(Span, Name)>,
    /// Body, executed by each attempt.
    pub body: Block,
    /// Block after `catch`, with the span of the keyword.
    pub catch: Option<(Span, Block)>,
    /// Block after `finally`, with the span of the keyword.
    pub finally: Option<(Span, Block)>,
}

impl Try {
    /// Creates a `try` of one attempt, as for `limit`, whose head ends at an offset.
    pub(crate) fn once(end: usize) -> Self {
        let span = Span::new(end, end);
        let part = WordPart::Bare("1".to_owned());
        let once = Word { span, parts: std::iter::once(part).collect() };
        let times = Some(Expr { span, kind: ExprKind::Word(once) });
        let clauses = TryClauses { times, ..TryClauses::default() };
        Self { is_limit: true, clauses, ..Self::default() }
    }
}

/// Structure with `catch` or `finally`, other than `try` and `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// The only command of the body: a loop or an `in`.
    Structure,
    /// The function whose only command the `try` is.
    Function,
}

/// `channel NAME rules…`: a declaration of rules for attempts through a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelDeclaration {
    /// Name of the channel.
    pub name: Name,
    /// Span of the name.
    pub name_span: Span,
    /// Rules, at least one. The budget is a percentage, without the `%`.
    pub rules: ChannelClauses<Duration, Expr>,
}

/// Length of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Duration {
    /// `5 minutes`, `$n seconds`, `1.5 hours`. The value of the amount may have a fraction.
    Amount {
        /// Number of units.
        amount: Expr,
        /// Unit of the amount.
        unit: Unit,
    },
    /// `1h30m`, `500ms`, or a word whose value is a number and a unit, as in `5 minutes`.
    Whole(Word),
}

/// `backoff NAME [from D] [to D] [by F] [jitter P%]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackoffClause {
    /// Span of the clause.
    pub span: Span,
    /// Policy.
    pub kind: PolicyKind,
    /// Parameters of the policy. The jitter is a percentage, without the `%`.
    pub clauses: Clauses<Duration, Expr>,
}
