import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';

/** Options of `bench`. */
export const OPTIONS = {
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

/** Arguments of `bench`. */
export type BenchArgs = ArgsOf<typeof OPTIONS, typeof NO_ARGUMENTS>;
