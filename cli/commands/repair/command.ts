import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { OPTIONS } from './arguments.ts';

/** `tke-eni repair` */
export const REPAIR = defineCommand({
  name: 'repair',
  summary: 'repair what is ours on this node',
  description: `Makes the kernel what the agent recorded, and prints each change as the line that does it by hand. What is not ours is named and left alone.

One writer at a time: a running agent repairs the host's network itself on request. Without an agent the CLI does it, and holds the agent's journal meanwhile, so that no agent starts in between. The inside of Pods whose lease is active, and host interfaces that no lease and no living sandbox has, are repaired by the CLI in both cases: no agent writes there.`,
  positionals: NO_ARGUMENTS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni repair --dry-run', does: 'says what it would do' },
    { line: 'tke-eni repair', does: 'does it, and compares again' },
  ],
  wrongMeans: 'something is still wrong: not ours to repair, refused by the kernel, or, with --dry-run, to be repaired',
  needs: 'root: to change the network of the node and of its Pods',
  load: () => import('./run-repair.ts'),
});
