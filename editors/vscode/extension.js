// Starts `ftsh --lsp` for the editor, and ends it.
const { workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

exports.activate = () => {
  const command = workspace.getConfiguration('ftsh').get('path');
  const selector = [{ language: 'ftsh' }];
  client = new LanguageClient('ftsh', { command, args: ['--lsp'] }, { documentSelector: selector });
  return client.start();
};

exports.deactivate = () => client?.stop();
