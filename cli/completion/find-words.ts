import { findEnis } from '../node/find-enis.ts';
import { ifKnown } from '../node/known.ts';
import type { NodeFacts } from '../node/node-facts.ts';

/** Finds the words of a kind that a shell may offer, sorted, each once, none that a shell would have to quote. Pure. */
export function findWords(kind: 'pod' | 'eni' | 'table', facts: NodeFacts): readonly string[] {
  return safeWords(candidates(kind, facts));
}

/** Leaves only words that no shell expands, splits or quotes; names are written by others. Pure. */
export function safeWords(words: readonly string[]): readonly string[] {
  return [...new Set(words)].filter((word) => SAFE.test(word)).sort();
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

/** As crictl shows the ids of containers. */
const SHOWN_ID_LENGTH = 13;
