import { CLOUD_OPTIONS } from '../../command/cloud-options.ts';
import type { ArgsOf } from '../../command/command.ts';
import { OPTIONS as LB_OPTIONS } from '../lb/arguments.ts';

/** Positional arguments of `explain`. */
export const POSITIONALS = {
  subject: {
    summary:
      'Pod by namespace/name, name, address, container id or host interface; an ENI; any address; or ADDRESS:PORT of a load balancer',
    completes: 'pod',
  },
} as const;

/** Options of `explain`. */
export const OPTIONS = {
  to: { type: 'string', summary: 'where the Pod sends to; the answer is walked as well', metavar: 'ADDR' },
  from: {
    type: 'string',
    summary: 'who sends to the Pod, or connects to the load balancer; with --to: the source address that the Pod uses',
    metavar: 'ADDR',
  },
  output: {
    type: 'string',
    alias: 'o',
    summary: 'how to print it',
    metavar: 'FORMAT',
    choices: ['table', 'json', 'yaml'],
    default: 'table',
  },
  'cluster-id': LB_OPTIONS['cluster-id'],
  ...CLOUD_OPTIONS,
} as const;

/** Arguments of `explain`. */
export type ExplainArgs = ArgsOf<typeof OPTIONS, typeof POSITIONALS>;
