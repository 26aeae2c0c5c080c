import test from 'ava';
import { pickPairwise } from '../support/pairwise.ts';
import { allWays, expectWays, type Way } from './packets/hybrid-ways.ts';
import { type HybridNodeSpec, openHybridWorld } from './packets/hybrid-world.ts';

/** What a way is told by; a GlobalRoute Pod stays as it was wired, so one node has both. */
function factorsOf({ from, to, protocol }: Way) {
  return {
    ...{ from: from.kind, to: to.kind, protocol },
    place: from.node === to.node ? 'same node' : 'other node',
    ruleMode: from.ruleMode === '' ? to.ruleMode : from.ruleMode,
  };
}

/** Two of each kind on a node. */
function podsOf(node: number): HybridNodeSpec['pods'] {
  const kinds = ['bridge', 'routed', 'eni', 'exclusive'] as const;
  return Object.fromEntries(kinds.flatMap((kind) => ['a', 'b'].map((at) => [`${kind}-${node}${at}`, kind])));
}

test.serial(
  'hybrid: every pair of asker, asked, place, layout and protocol is answered, with the source that is documented',
  async (t) => {
    const world = await openHybridWorld({
      n1: { ruleMode: 'compact', wiring: 'bridge', pods: podsOf(1) },
      n2: { ruleMode: 'per-pod', wiring: 'routed', pods: podsOf(2) },
    });
    try {
      const ways = allWays(world).map((way) => ({ ...factorsOf(way), way }));
      const sample = pickPairwise(ways.map(({ way: _, ...factors }) => factors));
      const chosen = sample.map((factors) => ways.find(({ way }) => isSame(factorsOf(way), factors))?.way);
      await expectWays(
        t,
        world,
        chosen.filter((way) => way !== undefined),
      );
      t.log(`figure: ${chosen.length} of ${ways.length} ways`);
    } finally {
      await world.close();
    }
  },
);

function isSame(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
