import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';
import { AGENT_KINDS, KERNEL_KINDS } from './watch-event.ts';

/** Options of `watch`. */
export const OPTIONS = {
  pod: {
    type: 'string',
    summary: 'only what concerns Pods with this in namespace/name, this address or container id',
    metavar: 'POD',
    completes: 'pod',
  },
  eni: {
    type: 'string',
    summary: 'only what concerns this ENI (id, interface or table) and Pods on it',
    metavar: 'ENI',
    completes: 'eni',
  },
  kind: {
    type: 'strings',
    summary: 'only events of this kind',
    metavar: 'KIND',
    choices: [...KERNEL_KINDS, ...AGENT_KINDS],
  },
  all: { type: 'boolean', summary: 'neighbour states and the kernel’s own routes too' },
  output: {
    type: 'string',
    alias: 'o',
    summary: 'lines for people, or one JSON document a line',
    metavar: 'FORMAT',
    choices: ['text', 'json'],
    default: 'text',
  },
} as const;

/** Arguments of `watch`. */
export type WatchArgs = ArgsOf<typeof OPTIONS, typeof NO_ARGUMENTS>;
