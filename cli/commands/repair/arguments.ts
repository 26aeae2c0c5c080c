import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';

/** Options of `repair`. */
export const OPTIONS = {
  output: {
    type: 'string',
    alias: 'o',
    summary: 'how to print',
    choices: ['table', 'wide', 'json', 'yaml', 'ip'],
    default: 'table',
  },
  'dry-run': { type: 'boolean', alias: 'n', summary: 'print what would be done and change nothing' },
} as const;

/** Arguments of `repair`. */
export type RepairArgs = ArgsOf<typeof OPTIONS, typeof NO_ARGUMENTS>;
