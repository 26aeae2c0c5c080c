import { type ArgsOf, defineCommand } from '../command.ts';

const OPTIONS = {
  count: {
    type: 'number',
    alias: 'n',
    summary: 'sandboxes to make, one after the other',
    metavar: 'COUNT',
    default: 10,
  },
  reserve: {
    type: 'number',
    summary: 'free addresses that must remain besides',
    metavar: 'COUNT',
    default: 5,
  },
  force: { type: 'boolean', summary: 'go on though Pods may find no address meanwhile' },
  routes: {
    type: 'number',
    summary: 'routes to write and read in a namespace of its own',
    metavar: 'COUNT',
    default: 1_000,
  },
  output: {
    type: 'string',
    alias: 'o',
    summary: 'how to print it',
    metavar: 'FORMAT',
    choices: ['table', 'json', 'yaml'],
    default: 'table',
  },
} as const;
const NONE = {} as const;

/** Is what `bench` gets. */
export type BenchArgs = ArgsOf<typeof OPTIONS, typeof NONE>;

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
  positionals: NONE,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni bench', does: 'measures ten sandboxes and a thousand routes' },
    { line: 'tke-eni bench -n 50 --force', does: 'measures fifty, even if the pool runs dry' },
  ],
  needs: 'root, the agent, and CAP_SYS_ADMIN to make network namespaces',
  load: () => import('./run-bench.ts'),
});
