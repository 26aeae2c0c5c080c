import { CliError } from '../cli-error.ts';
import type { GlobalArgs } from '../command.ts';
import { findingOf, isDifferent } from '../diff/difference.ts';
import { diffNode } from '../diff/find-differences.ts';
import { lookAtNode } from '../diff/look-at-node.ts';
import type { Finding } from '../finding.ts';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';

/** Compares the node with what its agent wrote down, as `tke-eni diff` does. Never rejects for what cannot be read. */
export async function readDifferences(global: GlobalArgs): Promise<Known<readonly Finding[]>> {
  try {
    const { differences } = diffNode(await lookAtNode({ global }));
    return known(differences.filter(isDifferent).map(findingOf));
  } catch (error) {
    if (error instanceof CliError) return unknown(error.message, error.next);
    throw error;
  }
}
