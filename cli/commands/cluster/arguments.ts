import { CLOUD_OPTIONS } from '../../command/cloud-options.ts';
import type { ArgsOf } from '../../command/command.ts';
import { OUTPUT_OPTION } from '../pool/output-option.ts';

/** Options of `cluster`. */
export const OPTIONS = {
  ...OUTPUT_OPTION,
  cloud: { type: 'boolean', summary: 'ask the cloud too: what ENIs and subnets really hold; needs credentials' },
  sample: {
    type: 'number',
    summary: 'look twice, so many seconds apart; default 30 for leaks, one look for the others',
    metavar: 'SECONDS',
  },
  grace: {
    type: 'number',
    summary: 'what is younger than this is work under way: no leak, no problem',
    metavar: 'SECONDS',
    default: 600,
  },
  'cluster-id': {
    type: 'string',
    summary: 'cluster id in the tags of ENIs; default: what the ENIs of the NodeENIConfigs carry',
    metavar: 'ID',
  },
  ...CLOUD_OPTIONS,
  zone: { type: 'string', summary: 'zone of the view capacity; default: each zone', metavar: 'ZONE' },
  nodes: {
    type: 'number',
    summary: 'how many more nodes the view capacity answers for; default 1',
    metavar: 'NUMBER',
  },
  type: {
    type: 'string',
    summary: 'instance type of new nodes in the view capacity; default: what most nodes of the zone are',
    metavar: 'TYPE',
  },
} as const;

/** Positional arguments of `cluster`. */
export const POSITIONALS = {
  view: {
    summary: 'what to show: nodes (default), subnets, capacity, enis, kept or leaks',
    isOptional: true,
    choices: ['nodes', 'subnets', 'capacity', 'enis', 'kept', 'leaks'],
  },
} as const;

/** Arguments of `cluster`. */
export type ClusterArgs = ArgsOf<typeof OPTIONS, typeof POSITIONALS>;
