import test from 'ava';
import { allWays, expectWays } from './packets/hybrid-ways.ts';
import { type HybridNodeSpec, openHybridWorld } from './packets/hybrid-world.ts';
import { RULE_MODES } from './support/scene.ts';

// Nodes whose GlobalRoute Pods are all wired alike; those with both kinds are in the short file.
for (const ruleMode of RULE_MODES) {
  for (const wiring of ['bridge', 'routed'] as const) {
    test.serial(`hybrid: everybody reaches everybody, ${ruleMode}, ${wiring}`, async (t) => {
      const podsOf = (node: number, letters: string): HybridNodeSpec['pods'] =>
        Object.fromEntries(
          [wiring, 'eni' as const, 'exclusive' as const].flatMap((kind) =>
            [...letters].map((letter) => [`${kind}-${node}${letter}`, kind]),
          ),
        );
      const world = await openHybridWorld({
        n1: { ruleMode, wiring, pods: podsOf(1, 'ab') },
        n2: { ruleMode, wiring, pods: podsOf(2, 'a') },
      });
      try {
        const ways = allWays(world);
        await expectWays(t, world, ways);
        t.log(`figure: ${ways.length} ways`);
      } finally {
        await world.close();
      }
    });
  }
}

// What rule 1024 is for, and that the checks above would find its absence.
for (const ruleMode of RULE_MODES) {
  const what = ruleMode === 'compact' ? 'make a detour through the VPC' : 'run in a circle';
  test.serial(`hybrid: without rule 1024 packets from an ENI to a GlobalRoute Pod ${what}, ${ruleMode}`, async (t) => {
    const pods = { gr: 'bridge', eni: 'eni' } as const;
    const world = await openHybridWorld({ n1: { ruleMode, wiring: 'bridge', pods } });
    world.vpc.allowRepeatedPackets();
    try {
      const [gr, eni] = [world.party('gr'), world.party('eni')];
      await world.node('n1').netns.ip('rule', 'del', 'pref', '1024');
      await world.vpc.resetPacketLog();
      const isAnswered = await eni.netns.ping(gr.ip, { waitMs: 1_000 });
      const passed = (await world.vpc.packetLog()).filter(({ src, dst }) => src === eni.ip && dst === gr.ip);
      const repeated = await world.vpc.repeatedPackets();
      t.true(passed.length > 0, 'by the VPC');
      t.deepEqual([isAnswered, repeated.length > 0], ruleMode === 'compact' ? [true, false] : [false, true]);
      await world.node('n1').reach();
      await world.vpc.resetPacketLog();
      t.true(await eni.netns.ping(gr.ip));
      t.deepEqual(await world.vpc.packetLog(), [], 'on the node alone');
    } finally {
      await world.close();
    }
  });
}
