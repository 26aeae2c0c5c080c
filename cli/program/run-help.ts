import { UserError } from '../../runtime/user-error.ts';
import type { Command, CommandBody, CommandContext } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { renderCommandHelp, renderHelp } from '../output/render-help.ts';
import { unknownCommand } from './parse-arguments.ts';

/** Builds the body of `help`. */
export function helpBody(commands: readonly Command[]): CommandBody {
  return {
    run: async (args, context) => {
      const words = Object.values(args).filter((word) => typeof word === 'string');
      printHelp(words, commands, context.stdout);
      return EXIT.ok;
    },
  };
}

/** Prints help for the command that the words name; without words for all commands. @throws UserError USAGE */
export function printHelp(
  words: readonly string[],
  commands: readonly Command[],
  stdout: Pick<CommandContext['stdout'], 'columns' | 'isColored' | 'write'>,
): void {
  const options = { width: Math.min(stdout.columns(), MAX_WIDTH), isColored: stdout.isColored };
  const name = words.join(' ');
  if (name === '') {
    stdout.write(renderHelp(commands, options));
    return;
  }
  const members = commands.filter((command) => command.name === name || command.name.startsWith(`${name} `));
  if (members.length === 0) {
    const names = commands.map((command) => command.name);
    throw new UserError('USAGE', unknownCommand(name, names), 'see tke-eni help');
  }
  stdout.write(members.map((command) => renderCommandHelp(command, options)).join('\n'));
}

/** Widest line of help: longer lines are hard to read on any terminal. */
const MAX_WIDTH = 160;
