// Writes to $LETTERS, of each script named in $SCRIPTS, its path and a letter for each of its bytes, by the TextMate
// grammar in $GRAMMAR and VS Code's own tokenizer, which NODE_PATH has.
const fs = require('fs');
const path = require('path');
const oniguruma = require('vscode-oniguruma');
const textmate = require('vscode-textmate');

const LETTERS = [
  ['keyword.operator.redirection', '.'], ['keyword.operator.pipe', '.'], ['support.function', '.'],
  ['keyword.operator', 'O'], ['keyword.control', 'K'], ['storage.modifier.clause', 'L'],
  ['string', 'S'], ['variable', 'V'], ['comment', 'C'], ['meta.embedded', '.'],
];

function letter(scopes) {
  for (const scope of scopes.slice().reverse()) {
    const found = LETTERS.find(([prefix]) => scope.startsWith(prefix));
    if (found) return found[1];
  }
  return '.';
}

function letters(grammar, text) {
  let rules = textmate.INITIAL;
  return text.split('\n').map((line) => {
    const tokens = grammar.tokenizeLine(line, rules);
    rules = tokens.ruleStack;
    return tokens.tokens
      .map(({ startIndex, endIndex, scopes }) =>
        letter(scopes).repeat(Buffer.byteLength(line.slice(startIndex, Math.min(endIndex, line.length)))))
      .join('');
  }).join(' ');
}

async function main() {
  const wasm = path.join(path.dirname(require.resolve('vscode-oniguruma')), 'onig.wasm');
  await oniguruma.loadWASM(fs.readFileSync(wasm).buffer);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () =>
      textmate.parseRawGrammar(fs.readFileSync(process.env.GRAMMAR, 'utf8'), 'ftsh.json'),
  });
  const grammar = await registry.loadGrammar('source.ftsh');
  const names = fs.readFileSync(process.env.SCRIPTS, 'utf8').split('\n').filter(Boolean);
  const told = names.flatMap((name) => [name, letters(grammar, fs.readFileSync(name, 'utf8'))]);
  fs.writeFileSync(process.env.LETTERS, told.join('\n') + '\n');
}

main();
