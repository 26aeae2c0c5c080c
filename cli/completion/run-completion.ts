import type { Command, CommandBody } from '../command.ts';
import { EXIT } from '../exit-code.ts';
import { buildGrammar } from './build-grammar.ts';
import { renderBash } from './render-bash.ts';
import { renderFish } from './render-fish.ts';
import { renderZsh } from './render-zsh.ts';

/** Builds the body of the command `completion`. */
export function completionBody(commands: readonly Command[]): CommandBody {
  return {
    run: async (args, { stdout }) => {
      const render = { bash: renderBash, zsh: renderZsh, fish: renderFish }[String(args['shell'])] ?? renderBash;
      stdout.write(render(buildGrammar(commands)));
      return EXIT.ok;
    },
  };
}
