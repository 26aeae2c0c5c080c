import { release } from '../../runtime/release.ts';
import type { Command, CommandBody } from '../command.ts';
import { EXIT } from '../exit-code.ts';
import { renderMan } from './render-man.ts';

/** Makes the body of `man`. */
export function manBody(commands: readonly Command[]): CommandBody {
  return {
    run: async (_args, { stdout }) => {
      stdout.write(renderMan(commands, release));
      return EXIT.ok;
    },
  };
}
