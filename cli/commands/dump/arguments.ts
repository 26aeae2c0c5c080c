import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';

const FILTERS = {
  table: {
    type: 'string',
    summary: 'only this routing table, by number or name',
    metavar: 'TABLE',
    completes: 'table',
  },
  pod: {
    type: 'string',
    summary: 'only what is of this Pod, on the node and inside of it',
    metavar: 'POD',
    completes: 'pod',
  },
  eni: {
    type: 'string',
    summary: 'only what is of this ENI: id, interface, table or address',
    metavar: 'ENI',
    completes: 'eni',
  },
  family: { type: 'string', summary: 'only IPv4 or only IPv6', choices: ['4', '6'] },
} as const;

const VIEW = {
  output: {
    type: 'string',
    alias: 'o',
    summary: 'how to print it; ip is a script that makes the same again',
    metavar: 'FORMAT',
    choices: ['table', 'wide', 'json', 'yaml', 'ip'],
    default: 'table',
  },
  details: { type: 'boolean', alias: 'd', summary: 'in json and yaml: what ip -d adds' },
  owners: { type: 'boolean', summary: 'in json and yaml: add whose it is, and the family' },
  all: { type: 'boolean', alias: 'a', summary: 'show what the kernel makes by itself, too' },
} as const;

const STAND_INS = {
  'stand-ins': {
    type: 'boolean',
    summary: 'in the script: make each interface as a veth pair, to try the state in an empty namespace',
  },
} as const;

/** Options of each of the five list commands. */
export const LIST_OPTIONS = { ...FILTERS, ...VIEW, ...STAND_INS } as const;

/** Options of `dump`. */
export const DUMP_OPTIONS = {
  pod: { ...FILTERS.pod, summary: 'the inside of this Pod in place of the node' },
  output: { ...VIEW.output, choices: ['ip', 'json', 'yaml'], default: 'ip' },
  details: VIEW.details,
  ...STAND_INS,
  nft: {
    type: 'string',
    summary: 'which nftables tables go into it',
    choices: ['ours', 'all', 'none'],
    default: 'ours',
  },
} as const;

/** Arguments of each of the five list commands. */
export type ListArgs = ArgsOf<typeof LIST_OPTIONS, typeof NO_ARGUMENTS>;

/** Arguments of `dump`. */
export type DumpArgs = ArgsOf<typeof DUMP_OPTIONS, typeof NO_ARGUMENTS>;
