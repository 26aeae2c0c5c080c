import type { CommandContext } from '../../command/command.ts';
import type { ExitCode } from '../../command/exit-code.ts';
import type { ListArgs } from './arguments.ts';
import { printList } from './print-list.ts';

/** Lists routes. @throws UserError */
export function run(args: ListArgs, context: CommandContext): Promise<ExitCode> {
  return printList('routes', args, context);
}
