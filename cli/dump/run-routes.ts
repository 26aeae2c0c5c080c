import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import type { ListArgs } from './arguments.ts';

/** Lists routes. JSON for a program takes the fast path, unless owners are requested. @throws CliError */
export async function run(args: ListArgs, context: CommandContext): Promise<ExitCode> {
  const { output, pod, eni, owners } = args;
  const isPlain = output === 'json' && pod === undefined && eni === undefined && !owners;
  if (isPlain && !context.stdout.isTerminal) {
    const { printRoutesJson } = await import('./print-routes-json.ts');
    if (printRoutesJson(args, context)) return EXIT.ok;
  }
  const { printList } = await import('./print-list.ts');
  return printList('routes', args, context);
}
