// Starts `ftsh --lsp` for the editor, and ends it.
const { window, workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

exports.activate = async () => {
  const command = workspace.getConfiguration('ftsh').get('path');
  const selector = [{ language: 'ftsh' }];
  client = new LanguageClient('ftsh', { command, args: ['--lsp'] }, { documentSelector: selector });
  try {
    await client.start();
  } catch {
    window.showErrorMessage(`"${command} --lsp" doesn't start: see the setting ftsh.path`);
  }
};

exports.deactivate = () => client?.isRunning() && client.stop();
