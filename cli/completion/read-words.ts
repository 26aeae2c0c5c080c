import { readdirSync } from 'node:fs';
import { resolveHostPath } from '../../runtime/host-path.ts';
import type { CommandContext } from '../command.ts';
import { readNodeFacts } from '../node/read-node-facts.ts';
import { findWords, safeWords } from './find-words.ts';

/**
 * Reads the words of a kind that a shell may offer; [] for an unknown kind. Rejects where node or folder cannot be
 * read.
 */
export async function readWords(kind: string, { global }: Pick<CommandContext, 'global'>): Promise<readonly string[]> {
  if (kind === 'netns') return safeWords(readdirSync(resolveHostPath(global.hostRoot, '/run/netns')));
  if (kind !== 'pod' && kind !== 'eni' && kind !== 'table') return [];
  return findWords(kind, await readNodeFacts({ global }, { insides: 'none', nft: false, sysctls: false }));
}
