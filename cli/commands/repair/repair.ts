import type { NodeDifferences } from '../../../inspection/judge/difference.ts';

/** Result of a repair: what was changed, by which process, and what is still wrong. */
export type Repair = {
  readonly isDryRun: boolean;
  /** Process that changed the host's network: a running agent, or this one. */
  readonly writer: 'agent' | 'cli';
  /** Changes as command lines, in order: those that were made; in a dry run, those that would be. */
  readonly changes: readonly string[];
  readonly failed: readonly FailedChange[];
  /** Changes that a running agent skips, because another program keeps undoing them. */
  readonly held: readonly string[];
  /** Comparison after the repair; in a dry run, the present one. */
  readonly left: NodeDifferences;
};

/** A change that was not made, and why. */
export type FailedChange = { readonly line: string; readonly error: string };
