import type { CommandContext } from '../command.ts';
import type { ExitCode } from '../exit-code.ts';
import type { ListArgs } from './arguments.ts';
import { printList } from './print-list.ts';

/** Lists routes. @throws CliError */
export function run(args: ListArgs, context: CommandContext): Promise<ExitCode> {
  return printList('routes', args, context);
}
