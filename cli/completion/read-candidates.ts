import { readdirSync } from 'node:fs';
import { readNodeFacts } from '../../inspection/node/read-node-facts.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import type { CommandContext } from '../command/command.ts';
import { buildCandidates, safeCandidates } from './build-candidates.ts';

/**
 * Reads the words of a kind that a shell may offer; [] for an unknown kind. Rejects where node or folder cannot be
 * read.
 */
export async function readCandidates(
  kind: string,
  { global }: Pick<CommandContext, 'global'>,
): Promise<readonly string[]> {
  if (kind === 'netns') return safeCandidates(readdirSync(resolveHostPath(global.hostRoot, '/run/netns')));
  if (kind !== 'pod' && kind !== 'eni' && kind !== 'table') return [];
  return buildCandidates(kind, await readNodeFacts({ global }, { insides: 'none', nft: false, sysctls: false }));
}
