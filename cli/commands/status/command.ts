import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { OPTIONS } from './arguments.ts';

/** `tke-eni status` */
export const STATUS = defineCommand({
  name: 'status',
  summary: 'show on one page how the agent and its pool are',
  description: `Shows the agent's release, whether the node can take another Pod now and if not why, what its journal
holds, the state of its addresses, how long ADDs take, what it repaired, which repairs another program undoes, and which
foreign objects occupy the place of its own.

Without an agent it shows the content of its journal.`,
  positionals: NO_ARGUMENTS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni status', does: 'shows this node on one page' },
    { line: 'tke-eni status --all-addresses', does: 'adds every address with its owner or cooldown' },
  ],
  wrongMeans: 'the agent does not answer, or would refuse an ADD, or something is in its way',
  needs: 'root: the agent’s socket and its state folder are for root only',
  load: () => import('./run-status.ts'),
});
