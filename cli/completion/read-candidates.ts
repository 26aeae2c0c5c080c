import { readdirSync } from 'node:fs';
import { findEnis } from '../../inspection/node/find-enis.ts';
import { ifKnown } from '../../inspection/node/known.ts';
import type { NodeFacts } from '../../inspection/node/node-facts.ts';
import { readNodeFacts } from '../../inspection/node/read-node-facts.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import type { CommandContext } from '../command/command.ts';

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
  const facts = await readNodeFacts({ global }, { insides: 'none', nft: false, sysctls: false });
  return safeCandidates(candidates(kind, facts));
}

/**
 * Returns only words that no shell expands, splits or quotes, sorted and without duplicates: names come from other
 * sources and are not trusted.
 */
export function safeCandidates(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].filter((text) => SAFE.test(text)).sort();
}

const SAFE = /^[A-Za-z0-9_][A-Za-z0-9_./:@+-]*$/;

function candidates(kind: 'pod' | 'eni' | 'table', { host, agent, pods }: NodeFacts): readonly string[] {
  switch (kind) {
    case 'pod':
      return pods.map(({ key, lease }) => {
        const { podNamespace = '', podName = '' } = ifKnown(lease) ?? {};
        return podName === '' ? key.slice(0, SHOWN_ID_LENGTH) : `${podNamespace}/${podName}`;
      });
    case 'eni':
      return findEnis(host, agent).flatMap(({ eniId, ifname }) => eniId ?? ifname ?? []);
    case 'table':
      return [...new Set(host.routes.map(({ table }) => table))].map(
        (table) => host.tableNames.get(table) ?? String(table),
      );
  }
}

/** Number of characters of a container id, as crictl prints it. */
const SHOWN_ID_LENGTH = 13;
