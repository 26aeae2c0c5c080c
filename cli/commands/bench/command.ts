import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { OPTIONS } from './arguments.ts';

/** `tke-eni bench` */
export const BENCH = defineCommand({
  name: 'bench',
  summary: 'measure ADD, DEL and netlink on this node',
  description: `Makes sandboxes of its own, one after the other: a network namespace, ADD by the agent's socket, DEL, away with the
namespace; the CNI network is tke-eni-bench. Prints how long ADD and DEL took and what they cost the agent in CPU time.
Then writes, reads and removes routes in another namespace of its own.

Each sandbox uses up one address for the time of the cooldown (two minutes); so it is refused when fewer than count and
reserve together are free. Pods are not touched. Whatever happens, Ctrl-C included, sandboxes are given back; the
namespaces have no names and go with this program. What a killed run left at the agent, the next one gives back.`,
  positionals: NO_ARGUMENTS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni bench', does: 'measures ten sandboxes and a thousand routes' },
    { line: 'tke-eni bench -n 50 --force', does: 'measures fifty, even if the pool runs dry' },
  ],
  needs: 'root, the agent, and CAP_SYS_ADMIN to make network namespaces',
  load: () => import('./run-bench.ts'),
});
