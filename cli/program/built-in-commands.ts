import { type Command, defineCommand } from '../command/command.ts';

/** Declares the commands about the program itself; `all` returns every command, these included. */
export function builtInCommands(all: () => readonly Command[]): readonly Command[] {
  return [COMPLETION, manCommand(all), helpCommand(all), VERSION];
}

const VERSION = defineCommand({
  name: 'version',
  summary: 'print the release',
  description: 'Prints the release of this executable: version and commit, as the agent logs its own.',
  positionals: {},
  options: {},
  examples: [{ line: 'tke-eni version', does: 'prints 0.1.0+<commit>' }],
  load: () => import('./run-version.ts'),
});

function helpCommand(all: () => readonly Command[]): Command {
  return defineCommand({
    name: 'help',
    summary: 'print help of everything or of one command',
    description: 'The same as --help.',
    positionals: {
      command: { summary: 'command to describe', isOptional: true, completes: 'command' },
      word: { summary: 'its second word, if it has one', isOptional: true },
    },
    options: {},
    examples: [{ line: 'tke-eni help explain', does: 'shows how to find out why a packet does not arrive' }],
    load: async () => (await import('./run-help.ts')).helpBody(all()),
  });
}

/**
 * The command that completion scripts call; it is in no list. With `--` and the words of a line it is not parsed as others are: what
 * follows is not its own. With a kind it serves scripts of 0.1.0, which ask for names of this node alone.
 */
export const COMPLETE = defineCommand({
  name: '__complete',
  summary: 'print the words of a kind',
  description: 'For the scripts of tke-eni completion.',
  positionals: { kind: { summary: 'pod, eni, table or netns' } },
  options: {},
  examples: [],
  load: () => import('../completion/run-complete.ts'),
});

const COMPLETION = defineCommand({
  name: 'completion',
  summary: 'print what makes a shell complete commands, options and names',
  description: `Prints a script for the shell; it completes commands, options and their values, and, by asking tke-eni
itself, the Pods, ENIs, tables and network namespaces of this node. It needs no other package.

bash: put it into /usr/share/bash-completion/completions/tke-eni, or source it in ~/.bashrc. zsh: put it into a file _tke-eni
in a folder of $fpath, or source it behind compinit. fish: put it into ~/.config/fish/completions/tke-eni.fish.`,
  positionals: { shell: { summary: 'which shell', choices: ['bash', 'zsh', 'fish'] } },
  options: {},
  examples: [
    { line: 'source <(tke-eni completion bash)', does: 'completes in this shell' },
    {
      line: 'tke-eni completion bash > /usr/share/bash-completion/completions/tke-eni',
      does: 'completes in every bash',
    },
  ],
  load: () => import('../completion/run-completion.ts'),
});

function manCommand(all: () => readonly Command[]): Command {
  return defineCommand({
    name: 'man',
    summary: 'print the man page',
    description: 'Prints tke-eni(8) as roff, made of what the commands declare: the page of exactly this release.',
    positionals: {},
    options: {},
    examples: [
      { line: 'tke-eni man | man -l -', does: 'reads it' },
      { line: 'tke-eni man > /usr/local/share/man/man8/tke-eni.8', does: 'installs it' },
    ],
    load: async () => (await import('../man/run-man.ts')).manBody(all()),
  });
}
