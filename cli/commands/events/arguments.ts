import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';
import { OUTPUT_OPTION } from '../pool/output-option.ts';

/** Options of `events`. */
export const OPTIONS = {
  ...OUTPUT_OPTION,
  pod: {
    type: 'string',
    summary: 'only what concerns Pods with this in namespace/name, this address or container id',
    metavar: 'POD',
    completes: 'pod',
  },
  last: { type: 'number', summary: 'as many as this, the newest', metavar: 'COUNT', default: 100 },
  follow: { type: 'boolean', alias: 'f', summary: 'go on with what comes, until Ctrl-C; lines, or JSON lines' },
} as const;

/** Arguments of `events`. */
export type EventsArgs = ArgsOf<typeof OPTIONS, typeof NO_ARGUMENTS>;
