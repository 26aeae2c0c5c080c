import { CLOUD_OPTIONS } from '../../command/cloud-options.ts';
import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';

const OUTPUTS = ['table', 'wide', 'json', 'yaml'] as const;

/** Options of `diff`. */
export const DIFF_OPTIONS = {
  output: { type: 'string', alias: 'o', summary: 'how to print', choices: [...OUTPUTS, 'ip'], default: 'table' },
  nec: { type: 'boolean', summary: "compare with the cluster's NodeENIConfig too; needs a kubeconfig" },
  cloud: { type: 'boolean', summary: 'compare with the ENIs as the cloud describes them too; needs credentials' },
  ...CLOUD_OPTIONS,
} as const;

/** Options of `check`. */
export const CHECK_OPTIONS = {
  output: { type: 'string', alias: 'o', summary: 'how to print', choices: OUTPUTS, default: 'table' },
  quiet: { type: 'boolean', alias: 'q', summary: 'print nothing; the exit code is the answer' },
} as const;

/** Positional arguments of `check`. */
export const CHECK_POSITIONALS = {
  pod: {
    summary: 'Pod by namespace/name, name, address, container id or host interface',
    isOptional: true,
    completes: 'pod',
  },
} as const;

/** Arguments of `diff`. */
export type DiffArgs = ArgsOf<typeof DIFF_OPTIONS, typeof NO_ARGUMENTS>;

/** Arguments of `check`. */
export type CheckArgs = ArgsOf<typeof CHECK_OPTIONS, typeof CHECK_POSITIONALS>;
