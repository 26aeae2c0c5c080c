import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';

/** Options of `bundle`. */
export const OPTIONS = {
  output: {
    type: 'string',
    alias: 'o',
    summary: 'file to write, - for standard output; default tke-eni-bundle-HOST-TIME.tar.gz in the current folder',
    metavar: 'FILE',
    completes: 'file',
  },
} as const;

/** Arguments of `bundle`. */
export type BundleArgs = ArgsOf<typeof OPTIONS, typeof NO_ARGUMENTS>;
