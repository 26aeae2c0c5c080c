import type { NodeDifferences } from '../diff/difference.ts';

/** What was done, by whom, and what is still wrong. */
export type Repair = {
  readonly isDryRun: boolean;
  /** Who changed the host's network: a running agent, or this process. */
  readonly writer: 'agent' | 'cli';
  /** Lines, in order: done, or with a dry run what would be. */
  readonly changes: readonly string[];
  readonly failed: readonly FailedChange[];
  /** Lines that a running agent leaves out because somebody keeps undoing them. */
  readonly held: readonly string[];
  /** The comparison afterwards; with a dry run, of now. */
  readonly left: NodeDifferences;
};

/** A change that was not made, and why. */
export type FailedChange = { readonly line: string; readonly error: string };
