import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';
import { OUTPUT_OPTION } from '../pool/output-option.ts';

/** Options of `status`. */
export const OPTIONS = {
  ...OUTPUT_OPTION,
  'all-addresses': { type: 'boolean', summary: 'list every address with what it does and who has it' },
} as const;

/** Arguments of `status`. */
export type StatusArgs = ArgsOf<typeof OPTIONS, typeof NO_ARGUMENTS>;
