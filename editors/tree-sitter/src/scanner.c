// What takes more than one look at a line: words with other signs than small letters, whether pieces are joined,
// assignments, and here-documents.
#include "tree_sitter/parser.h"

#include <stdlib.h>
#include <string.h>

// As in `externals` of grammar.js.
enum Token {
  COMMAND_TEXT, INNER_TEXT, OPERAND_TEXT,
  COMMAND_GLUE, INNER_GLUE, OPERAND_GLUE,
  ASSIGNED, ENVIRONMENT_NAME, EQUALS, EQUALS_NOTHING,
  FINALLY, JUMP,
  CALL_START, CALL_END,
  DOCUMENT_START, DOCUMENT_WORD, DOCUMENT_BEGIN, DOCUMENT_TEXT, DOCUMENT_END,
  ERROR,
};

// How many documents can begin on a line, and how long their words can be.
enum { DOCUMENTS = 4, LENGTH = 64 };

// What came right before.
enum { NOTHING, GLUE, EQUAL_SIGN };

typedef struct {
  // How many calls in braces are open, whose words end at `}`.
  unsigned char calls;
  unsigned char before, is_inside, count;
  unsigned char is_quoted[DOCUMENTS];
  // After `<<-`, blanks may stand before the last line's word.
  unsigned char is_indented[DOCUMENTS];
  char words[DOCUMENTS][LENGTH];
} Scanner;

static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\r'; }
static bool is_alpha(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static bool is_plain(int32_t c) { return (c >= 'a' && c <= 'z') || c == '.' || c == '%'; }
static bool is_quote(int32_t c) { return c == '"' || c == '\'' || c == '`'; }
static bool is_one_of(int32_t c, const char *signs) { return c > 0 && c < 128 && strchr(signs, (int)c); }

// After a `$`, what makes it a variable.
static bool begins_variable(int32_t c) { return is_alpha(c) || is_digit(c) || is_one_of(c, "{(#*@$?!-"); }

static void advance(TSLexer *lexer) { lexer->advance(lexer, false); }
static void skip(TSLexer *lexer) { lexer->advance(lexer, true); }

// Whether words end at a sign, where `( ) ,` may be tokens.
static bool ends(TSLexer *lexer, bool at_parentheses, bool at_comma) {
  int32_t c = lexer->lookahead;
  return lexer->eof(lexer) || is_blank(c) || is_one_of(c, "\n;|&<>") ||
         (at_parentheses && is_one_of(c, "()")) || (at_comma && c == ',');
}

// Behind a backslash: whether it joins the line with the next; then that one begins.
static bool joins(TSLexer *lexer, void (*step)(TSLexer *)) {
  while (lexer->lookahead == '\r') step(lexer);
  if (lexer->lookahead != '\n') return false;
  step(lexer);
  return true;
}

static void pass_blanks(TSLexer *lexer) {
  for (;;) {
    if (lexer->lookahead == '\\') {
      advance(lexer);
      if (!joins(lexer, advance)) return;
    } else if (is_blank(lexer->lookahead)) {
      advance(lexer);
    } else {
      return;
    }
  }
}

static void pass_until(TSLexer *lexer, int32_t end) {
  while (!lexer->eof(lexer) && lexer->lookahead != end) {
    if (lexer->lookahead == '\\') advance(lexer);
    advance(lexer);
  }
  advance(lexer);
}

// Where a `.` is: whether an operator is; passes what is like it.
static bool is_operator(TSLexer *lexer) {
  do advance(lexer); while (lexer->lookahead >= 'a' && lexer->lookahead <= 'z');
  if (lexer->lookahead != '.') return false;
  advance(lexer);
  return ends(lexer, true, true);
}

// Where a sign is: whether an operator, which has a blank behind it; passes the sign.
static bool is_calculator(TSLexer *lexer) {
  if (!is_one_of(lexer->lookahead, "+-*/%")) return false;
  advance(lexer);
  return is_blank(lexer->lookahead);
}

// Behind `name=`: whether a value is all that follows, and not a command that has it in its environment.
static bool is_assignment(TSLexer *lexer) {
  pass_blanks(lexer);
  if (lexer->lookahead == '(' || (lexer->lookahead == '.' && is_operator(lexer))) return true;
  while (!ends(lexer, true, false)) {
    int32_t c = lexer->lookahead;
    advance(lexer);
    if (c == '\\') {
      advance(lexer);
    } else if (c == '"' || c == '\'') {
      pass_until(lexer, c);
    } else if (c == '$' && lexer->lookahead == '{') {
      pass_until(lexer, '}');
    } else if (c == '$' && lexer->lookahead == '(') {
      pass_until(lexer, ')');
    }
  }
  pass_blanks(lexer);
  if (lexer->eof(lexer) || is_one_of(lexer->lookahead, "\n;#(")) return true;
  return is_calculator(lexer) || (lexer->lookahead == '.' && is_operator(lexer));
}

// ---- Here-documents

static bool document_word(Scanner *scanner, TSLexer *lexer) {
  if (scanner->count == DOCUMENTS) return false;
  char *word = scanner->words[scanner->count];
  unsigned length = 0, all = 0;
  bool is_quoted = false;
  int32_t quote = 0;
  for (; !lexer->eof(lexer) && lexer->lookahead != '\n' && (quote || !ends(lexer, false, false)); all++) {
    int32_t c = lexer->lookahead;
    advance(lexer);
    if (c == quote) {
      quote = 0;
    } else if (!quote && (c == '"' || c == '\'')) {
      quote = c;
      is_quoted = true;
    } else if (c == '\\') {
      is_quoted = true;
    } else {
      // Longer ones, and other than ASCII, are told apart by what fits.
      if (length < LENGTH - 1) word[length++] = (char)c;
    }
  }
  if (!all) return false;
  word[length] = 0;
  scanner->is_quoted[scanner->count++] = is_quoted;
  lexer->mark_end(lexer);
  lexer->result_symbol = DOCUMENT_WORD;
  return true;
}

// At the start of a line: whether it is the last one; passes what is like it.
static bool is_last_line(Scanner *scanner, TSLexer *lexer) {
  const char *word = scanner->words[0];
  unsigned length = 0;
  while (scanner->is_indented[0] && is_one_of(lexer->lookahead, " \t")) advance(lexer);
  while (word[length] && (char)lexer->lookahead == word[length] && length < LENGTH) {
    advance(lexer);
    length++;
  }
  if (word[length]) return false;
  while (lexer->lookahead == '\r') advance(lexer);
  return lexer->eof(lexer) || lexer->lookahead == '\n';
}

static bool document_end(Scanner *scanner, TSLexer *lexer) {
  lexer->mark_end(lexer);
  scanner->count--;
  memmove(scanner->words[0], scanner->words[1], sizeof scanner->words - LENGTH);
  memmove(scanner->is_quoted, scanner->is_quoted + 1, DOCUMENTS - 1);
  memmove(scanner->is_indented, scanner->is_indented + 1, DOCUMENTS - 1);
  scanner->is_inside = false;
  lexer->result_symbol = DOCUMENT_END;
  return true;
}

static bool document(Scanner *scanner, TSLexer *lexer) {
  bool is_some = false;
  lexer->result_symbol = DOCUMENT_TEXT;
  // The line end before the first line is part of the command.
  if (lexer->get_column(lexer) == 0) {
    lexer->mark_end(lexer);
    if (is_last_line(scanner, lexer)) return document_end(scanner, lexer);
    is_some = lexer->get_column(lexer) > 0;
  }
  for (;;) {
    int32_t c = lexer->lookahead;
    if (lexer->eof(lexer)) {
      if (!is_some) return document_end(scanner, lexer);
      lexer->mark_end(lexer);
      return true;
    }
    if (c == '$' && !scanner->is_quoted[0]) {
      lexer->mark_end(lexer);
      advance(lexer);
      if (begins_variable(lexer->lookahead)) return is_some;
    } else if (c == '\\' && !scanner->is_quoted[0]) {
      advance(lexer);
      if (lexer->lookahead != '\n') advance(lexer);
    } else {
      advance(lexer);
      if (c == '\n') {
        lexer->mark_end(lexer);
        if (is_last_line(scanner, lexer)) return true;
      }
    }
    is_some = true;
  }
}

// ---- Words

// Where a redirection may begin: whether one does. A here-document is a token of its own.
static bool redirection(Scanner *scanner, TSLexer *lexer, const bool *valid, bool *is_redirection) {
  *is_redirection = true;
  if (lexer->lookahead == '<') {
    advance(lexer);
    if (!valid[DOCUMENT_START] || lexer->lookahead != '<') return false;
    advance(lexer);
    if (lexer->lookahead == '<') return false;
    bool is_indented = lexer->lookahead == '-';
    if (is_indented) advance(lexer);
    if (scanner->count < DOCUMENTS) scanner->is_indented[scanner->count] = is_indented;
    lexer->mark_end(lexer);
    lexer->result_symbol = DOCUMENT_START;
    return true;
  }
  if (lexer->lookahead == '-') {
    advance(lexer);
    *is_redirection = is_one_of(lexer->lookahead, "<>");
    return false;
  }
  *is_redirection = is_one_of(lexer->lookahead, ">&");
  return false;
}

static bool is_word(const char *word, const char *const *words) {
  for (; *words; words++) {
    if (!strcmp(word, *words)) return true;
  }
  return false;
}

static const char *const KEYWORDS[] = {"try", "if", "while", "return", "shift", NULL};
static const char *const JUMPS[] = {"break", "continue", NULL};

static const char *const QUESTIONS[] = {"not", "exists", "succeeds", "yes", "output", NULL};

// Behind a `!` and blanks: whether it is an operator, and not a value that is compared or stands alone.
static bool is_negation(TSLexer *lexer) {
  if (lexer->lookahead == '(') return true;
  if (!is_blank(lexer->lookahead)) return false;
  pass_blanks(lexer);
  if (lexer->eof(lexer) || is_one_of(lexer->lookahead, "\n;#),")) return false;
  if (is_one_of(lexer->lookahead, "=<>&|")) return false;
  if (lexer->lookahead != '.') return true;
  char name[16] = "";
  unsigned length = 0;
  for (advance(lexer); lexer->lookahead >= 'a' && lexer->lookahead <= 'z' && length < sizeof name - 1; length++) {
    name[length] = (char)lexer->lookahead;
    advance(lexer);
  }
  if (lexer->lookahead != '.') return true;
  return is_word(name, QUESTIONS) || !strncmp(name, "is", 2);
}

static bool word(Scanner *scanner, TSLexer *lexer, const bool *valid) {
  // Where more than a piece may stand, what came before was something else, which isn't told here.
  bool is_piece = !valid[ASSIGNED] && !valid[ENVIRONMENT_NAME] && !valid[DOCUMENT_START];
  bool is_joined = is_piece && scanner->before == GLUE, follows_equals = is_piece && scanner->before == EQUAL_SIGN;
  while (is_blank(lexer->lookahead)) {
    skip(lexer);
    is_joined = follows_equals = false;
  }
  bool is_operand = valid[OPERAND_TEXT], is_inner = valid[INNER_TEXT];
  bool names = valid[ASSIGNED] || valid[ENVIRONMENT_NAME];
  if (valid[DOCUMENT_WORD]) return document_word(scanner, lexer);
  if (lexer->lookahead == '#' && !is_joined && !follows_equals) return false;

  char text[16] = "";
  unsigned length = 0;
  bool is_plainly = !is_joined, is_name = !is_joined;
  bool takes_redirections = !is_joined && (valid[COMMAND_TEXT] || valid[DOCUMENT_START] || is_inner);

  if (takes_redirections) {
    bool is_redirection = false;
    if (is_digit(lexer->lookahead)) {
      advance(lexer);
      is_plainly = is_name = false;
      length++;
    }
    int32_t c = lexer->lookahead;
    if (is_one_of(c, "<>&-")) {
      if (redirection(scanner, lexer, valid, &is_redirection)) return true;
      if (is_redirection) return false;
      if (c == '-') {
        length++;
        is_plainly = is_name = false;
      }
    }
  }
  if (length) lexer->mark_end(lexer);

  for (;; length++) {
    int32_t c = lexer->lookahead;
    if (ends(lexer, is_operand || is_inner, is_operand) || is_quote(c)) break;
    if (c == '}' && is_operand && scanner->calls) break;
    if (c == '$' || c == '\\') {
      lexer->mark_end(lexer);
      advance(lexer);
      if (c == '$' && begins_variable(lexer->lookahead)) goto done;
      if (c == '\\') {
        // The line ends: so does the word, if it was begun, or it is yet to begin.
        if (lexer->lookahead == '\n' || lexer->lookahead == '\r') {
          if (length) goto done;
          joins(lexer, skip);
          length--;
          is_joined = false;
          while (is_blank(lexer->lookahead)) skip(lexer);
          if (lexer->lookahead == '#') return false;
          continue;
        }
        if (!lexer->eof(lexer)) advance(lexer);
      }
      is_plainly = is_name = false;
      continue;
    }
    if (c == '=' && is_name && length && names) {
      lexer->mark_end(lexer);
      advance(lexer);
      bool assigns = valid[ASSIGNED] && (!valid[ENVIRONMENT_NAME] || is_assignment(lexer));
      lexer->result_symbol = assigns ? ASSIGNED : ENVIRONMENT_NAME;
      scanner->before = NOTHING;
      return true;
    }
    if (is_one_of(c, "(") && is_plainly && valid[ASSIGNED] && length < sizeof text) {
      text[length] = 0;
      if (is_word(text, KEYWORDS)) return false;
    }
    if (!is_plain(c)) is_plainly = false;
    if (!is_alpha(c) && !(length && is_digit(c))) is_name = false;
    if (length < sizeof text - 1) text[length] = (char)c, text[length + 1] = 0;
    advance(lexer);
  }
  lexer->mark_end(lexer);
  if (!length) return false;
  if (is_operand && !is_joined && !strcmp(text, "!") && is_negation(lexer)) return false;
  if (is_plainly && !is_quote(lexer->lookahead)) {
    if (!valid[ASSIGNED] || length >= sizeof text) return false;
    // Alone on its line?
    bool ends_try = !strcmp(text, "finally") && valid[FINALLY];
    if (!ends_try && !is_word(text, JUMPS)) return false;
    while (is_blank(lexer->lookahead)) advance(lexer);
    if (!lexer->eof(lexer) && !is_one_of(lexer->lookahead, "\n;#")) return false;
    lexer->result_symbol = ends_try ? FINALLY : JUMP;
    scanner->before = NOTHING;
    return true;
  }
done:
  if (!length) return false;
  lexer->result_symbol = is_operand ? OPERAND_TEXT : is_inner ? INNER_TEXT : COMMAND_TEXT;
  scanner->before = NOTHING;
  return is_operand || is_inner || valid[COMMAND_TEXT];
}

// Whether the word goes on where one of its pieces ended.
static bool glue(Scanner *scanner, TSLexer *lexer, const bool *valid) {
  bool is_inner = valid[INNER_GLUE], is_operand = valid[OPERAND_GLUE];
  lexer->mark_end(lexer);
  bool is_joint = false;
  while (lexer->lookahead == '\\') {
    advance(lexer);
    if (!joins(lexer, skip)) goto found;
    is_joint = true;
    lexer->mark_end(lexer);
  }
  if (ends(lexer, is_inner || is_operand, is_operand) || lexer->lookahead == '`') return false;
  if (lexer->lookahead == '}' && is_operand && scanner->calls) return false;
  if (is_joint && lexer->lookahead == '#') return false;
found:
  scanner->before = GLUE;
  lexer->result_symbol = is_operand ? OPERAND_GLUE : is_inner ? INNER_GLUE : COMMAND_GLUE;
  return true;
}

// Behind `${`: the name of a function and a parenthesis.
static bool call_start(Scanner *scanner, TSLexer *lexer) {
  while (is_blank(lexer->lookahead)) advance(lexer);
  if (is_one_of(lexer->lookahead, "(")) return false;
  while (!ends(lexer, true, false) && !is_quote(lexer->lookahead) && !is_one_of(lexer->lookahead, "${}:[]")) advance(lexer);
  while (is_blank(lexer->lookahead)) advance(lexer);
  if (lexer->lookahead != '(') return false;
  advance(lexer);
  lexer->mark_end(lexer);
  scanner->calls++;
  scanner->before = NOTHING;
  lexer->result_symbol = CALL_START;
  return true;
}

static bool call_end(Scanner *scanner, TSLexer *lexer) {
  while (is_blank(lexer->lookahead)) skip(lexer);
  if (lexer->lookahead != '}') return false;
  advance(lexer);
  lexer->mark_end(lexer);
  if (scanner->calls) scanner->calls--;
  lexer->result_symbol = CALL_END;
  return true;
}

bool tree_sitter_ftsh_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  Scanner *scanner = payload;
  if (valid[ERROR]) return false;
  if (valid[CALL_START]) return call_start(scanner, lexer);
  if (valid[CALL_END] && call_end(scanner, lexer)) return true;
  if (scanner->is_inside && valid[DOCUMENT_TEXT]) return document(scanner, lexer);
  if (valid[DOCUMENT_BEGIN] && scanner->count) {
    lexer->mark_end(lexer);
    scanner->is_inside = true;
    lexer->result_symbol = DOCUMENT_BEGIN;
    return true;
  }
  if ((valid[EQUALS] || valid[EQUALS_NOTHING]) && lexer->lookahead == '=') {
    advance(lexer);
    lexer->mark_end(lexer);
    bool is_nothing = ends(lexer, false, false);
    scanner->before = EQUAL_SIGN;
    lexer->result_symbol = is_nothing ? EQUALS_NOTHING : EQUALS;
    return true;
  }
  if ((valid[COMMAND_GLUE] || valid[INNER_GLUE] || valid[OPERAND_GLUE]) && glue(scanner, lexer, valid)) {
    return true;
  }
  bool takes_words = valid[COMMAND_TEXT] || valid[INNER_TEXT] || valid[OPERAND_TEXT] || valid[ASSIGNED];
  return (takes_words || valid[DOCUMENT_START] || valid[DOCUMENT_WORD]) && word(scanner, lexer, valid);
}

void *tree_sitter_ftsh_external_scanner_create(void) { return calloc(1, sizeof(Scanner)); }

void tree_sitter_ftsh_external_scanner_destroy(void *payload) { free(payload); }

unsigned tree_sitter_ftsh_external_scanner_serialize(void *payload, char *buffer) {
  memcpy(buffer, payload, sizeof(Scanner));
  return sizeof(Scanner);
}

void tree_sitter_ftsh_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  memset(payload, 0, sizeof(Scanner));
  if (length == sizeof(Scanner)) memcpy(payload, buffer, length);
}
