// Long: worlds of all kinds of Pods, with every question and with streams that last for seconds.
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { serviceRules } from '../support/kube-proxy/service-rules.ts';
import { startTcpStream, type TcpStream } from '../support/tcp-stream.ts';
import {
  expectServiceStreams,
  KINDS,
  learnedBy,
  learnedOnce,
  streamedServices,
  withFastHybrid,
} from './packets/fast-services.ts';
import { endOf, flowsOf, withWorld } from './packets/fast-world.ts';
import { expectServices, hybridServices, PROXY_NODE } from './packets/hybrid-services.ts';
import { allWays, expectWays } from './packets/hybrid-ways.ts';
import type { Party } from './packets/hybrid-world.ts';
import { WHO_PORT } from './packets/world.ts';
import { awaitLearned } from './support/learned-flows.ts';
import { type LiveWay, startLiveFlows } from './support/live-flows.ts';
import { RULE_MODES } from './support/scene.ts';

// Each kind of Pod on nodes with the fast path: all are answered with the source that is documented, nothing is lost, and what
// the node translates is not learned.

for (const ruleMode of RULE_MODES) {
  test.serial(`fast path: every kind of Pod reaches every other one, and no packet is lost, ${ruleMode}`, async (t) => {
    t.timeout(300_000);
    await withFastHybrid(ruleMode, async (world) => {
      await expectWays(t, world, allWays(world));
      const one = (kind: string, node: string): Party => {
        const party = world.parties.find((each) => each.kind === kind && each.node === node);
        if (party === undefined) throw new Error(`no ${kind} on ${node}`);
        return party;
      };
      const wayOf = (a: Party, b: Party): LiveWay => ({ name: `${a.name} to ${b.name}`, a, b });
      const eni = one('eni', 'n1');
      // An answer to a masqueraded packet has no place in these: GlobalRoute Pods speak to the outside by TCP, below.
      const ways = [
        ...KINDS.filter((kind) => kind !== 'eni').map((kind) => wayOf(eni, one(kind, 'n1'))),
        ...KINDS.map((kind) => wayOf(one(kind, 'n2'), eni)),
        wayOf(eni, world.party('outside')),
        wayOf(one('exclusive', 'n1'), world.party('outside')),
      ];
      const flows = await startLiveFlows(ways);
      const streams: TcpStream[] = [];
      try {
        for (const [at, kind] of (['bridge', 'routed'] as const).entries())
          streams.push(await startTcpStream(one(kind, 'n1'), world.party('outside'), 7300 + at));
        await sleep(6_000);
        await learnedOnce(world, ({ src, dst }) => src === eni.ip && dst === world.party('outside').ip);
        const learned = learnedBy(world);
        const own = world.party('n1').ip;
        const translated = learned.filter(
          ({ src, dst, dport, sport }) =>
            [src, dst].includes(own) || [7300, 7301].some((p) => p === dport || p === sport),
        );
        t.deepEqual(translated, []);
        t.deepEqual(await flows.finish(), []);
        for (const stream of streams) t.deepEqual(await stream.finish(), []);
        t.deepEqual(await world.vpc.droppedPackets(), []);
      } finally {
        await Promise.all([flows, ...streams].map((each) => each.close()));
      }
    });
  });

  test.serial(
    `fast path: Services of both policies lead to their Pods, and are not learned, ${ruleMode}`,
    async (t) => {
      t.timeout(600_000);
      await withFastHybrid(ruleMode, async (world) => {
        const streamed = streamedServices(world);
        const services = hybridServices(world);
        const { netns } = world.node(PROXY_NODE);
        await netns.run(['iptables-restore', '--noflush'], { input: serviceRules([...services, ...streamed]) });
        t.log(`figure: ${await expectServices(t, world, services)} questions by Services`);
        await expectServiceStreams(t, world, streamed);
      });
    },
  );

  test.serial(
    `fast path: with egress by the node what it translates is not learned, all else is, ${ruleMode}`,
    async (t) => {
      await withWorld(
        async (world) => {
          const [a1, c1] = [endOf(world, 'a1', 4), endOf(world, 'c1', 4)];
          const outside = { netns: world.vpc.outside.netns, ip: world.outside(4) };
          await world.serve(outside.netns, 'outside');
          const flows = await startLiveFlows([{ name: 'within the VPC', a: a1, b: c1 }]);
          const out = await startTcpStream(a1, outside, 7300);
          const back = await startTcpStream(outside, a1, 7301);
          try {
            await flows.learned(flowsOf(world));
            await awaitLearned(flowsOf(world), { src: outside.ip, dst: a1.ip, dport: 7301 });
            t.is(
              await world.ask(a1.netns, 'tcp', outside.ip, WHO_PORT),
              `outside ${world.node('n1').primary[4]}`,
              'with the address of the node',
            );
            const translated = flowsOf(world)
              .flows()
              .filter(({ sport, dport }) => sport === 7300 || dport === 7300);
            t.deepEqual(translated, []);
            t.deepEqual([...(await flows.finish()), ...(await out.finish()), ...(await back.finish())], []);
            t.deepEqual(await world.vpc.droppedPackets(), []);
          } finally {
            await Promise.all([flows, out, back].map((each) => each.close()));
          }
        },
        { ruleMode, egress: 'node' },
      );
    },
  );
}
