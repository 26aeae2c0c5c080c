import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';

/** Options of `top`. */
export const OPTIONS = {
  interval: { type: 'number', summary: 'seconds between two looks', metavar: 'SECONDS', default: 2 },
  once: { type: 'boolean', summary: 'print one plain frame and end; needs no terminal' },
} as const;

/** Arguments of `top`. */
export type TopArgs = ArgsOf<typeof OPTIONS, typeof NO_ARGUMENTS>;
