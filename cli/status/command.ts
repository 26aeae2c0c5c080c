import { type ArgsOf, defineCommand } from '../command.ts';
import { OUTPUT_OPTION } from '../pool/output-option.ts';

const OPTIONS = {
  ...OUTPUT_OPTION,
  'all-addresses': { type: 'boolean', summary: 'list every address with what it does and who has it' },
} as const;
const NONE = {} as const;

/** Is what `status` gets. */
export type StatusArgs = ArgsOf<typeof OPTIONS, typeof NONE>;

/** `tke-eni status` */
export const STATUS = defineCommand({
  name: 'status',
  summary: 'show on one page how the agent and its pool are',
  description: `Shows the agent's release, whether it would serve an ADD now and if not why, what it remembers, how its
addresses stand, how long ADDs take, what it had to repair, who fights it and what of others is in its way.

Without an agent tells what its journal says.`,
  positionals: NONE,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni status', does: 'shows this node on one page' },
    { line: 'tke-eni status --all-addresses', does: 'adds every address with its owner or cooldown' },
  ],
  wrongMeans: 'the agent does not answer, or would refuse an ADD, or something is in its way',
  needs: 'root: the agent’s socket and its state folder are for root only',
  load: () => import('./run-status.ts'),
});
