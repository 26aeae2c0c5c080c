import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';
import type { OUTPUT_OPTION } from './output-option.ts';

/** Positionals of `pods`. */
export const PODS_POSITIONALS = {
  pod: {
    summary: 'part of namespace/name, an address, a veth, or the beginning of a container id',
    isOptional: true,
    completes: 'pod',
  },
} as const;

/** Arguments of `pool` and `enis`. */
export type ViewArgs = ArgsOf<typeof OUTPUT_OPTION, typeof NO_ARGUMENTS>;

/** Arguments of `pods`. */
export type PodsArgs = ArgsOf<typeof OUTPUT_OPTION, typeof PODS_POSITIONALS>;
