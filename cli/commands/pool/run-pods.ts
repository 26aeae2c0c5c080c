import { readAgentFacts } from '../../../inspection/node/read-agent-facts.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { renderWarning } from '../../output/render-error.ts';
import type { PodsArgs } from './arguments.ts';
import { buildPodRows, matchesPod, type PodRow, renderPods } from './build-pod-rows.ts';
import { printView } from './print-view.ts';

/** Shows the Pods of the node. @throws UserError FORBIDDEN, KERNEL */
export async function run({ output, pod }: PodsArgs, context: CommandContext): Promise<ExitCode> {
  const rows = await readRows(context);
  const selected = pod === undefined ? rows : rows.filter((row) => matchesPod(row, pod));
  await printView(output, context, selected, (options) => renderPods(selected, options));
  return EXIT.ok;
}

/**
 * Reads the rows from the journal, which names every Pod and is the same whether the agent runs or not; without a journal
 * from the kernel.
 */
async function readRows(context: CommandContext): Promise<readonly PodRow[]> {
  const agent = readAgentFacts(context.global.stateDir);
  if (agent.kind === 'known') return buildPodRows(agent.value.journal.leases, context.clock.bootMs());
  const notice = `from the kernel alone, without names: ${agent.why}`;
  context.stderr.write(renderWarning(notice, context.stderr.isColored));
  // Imported where it is needed: the code that reads the kernel takes half of the time of a start.
  const { readKernelPods } = await import('./read-kernel-pods.ts');
  return await readKernelPods(context);
}
