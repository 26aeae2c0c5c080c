import { type Command, defineCommand } from '../command.ts';

/** Makes the commands that are about the program itself; `all` tells every command, these included. */
export function ownCommands(all: () => readonly Command[]): readonly Command[] {
  return [helpCommand(all), VERSION];
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
      command: { summary: 'command to tell about', isOptional: true, completes: 'command' },
      word: { summary: 'its second word, if it has one', isOptional: true },
    },
    options: {},
    examples: [{ line: 'tke-eni help explain', does: 'tells how to ask why a packet does not arrive' }],
    load: async () => (await import('./run-help.ts')).helpBody(all()),
  });
}
