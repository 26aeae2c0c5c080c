// Long: worlds of all kinds of Pods, with every question and with streams that last for seconds.
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import type { Flow } from '../../dataplane/fast-path/flow-layout.ts';
import { type ProxiedService, serviceRules } from '../support/kube-proxy/service-rules.ts';
import { startTcpStream, type TcpStream } from '../support/tcp-stream.ts';
import { waitUntil } from '../support/wait-until.ts';
import { endOf, flowsOf, withWorld } from './packets/fast-world.ts';
import { expectServices, hybridServices, PROXY_NODE } from './packets/hybrid-services.ts';
import { allWays, expectWays } from './packets/hybrid-ways.ts';
import { type HybridNodeSpec, type HybridWorld, openHybridWorld, type Party } from './packets/hybrid-world.ts';
import { WHO_PORT } from './packets/world.ts';
import { awaitLearned } from './support/learned-flows.ts';
import { type LiveWay, startLiveFlows } from './support/live-flows.ts';
import { RULE_MODES } from './support/scene.ts';

// Each kind of Pod on nodes with the fast path: all are answered with the source that is documented, nothing is lost, and what
// the node translates is not learned.

const KINDS = ['bridge', 'routed', 'eni', 'exclusive'] as const;

/** One of each kind, and a second one that is not forwarded past the ENI. */
function podsOf(node: number): HybridNodeSpec['pods'] {
  return Object.fromEntries([...KINDS, 'eni' as const].map((kind, at) => [`${kind}-${node}${at}`, kind]));
}

async function withHybrid(ruleMode: HybridNodeSpec['ruleMode'], run: (world: HybridWorld) => Promise<void>) {
  const world = await openHybridWorld(
    {
      n1: { ruleMode, wiring: 'bridge', pods: podsOf(1) },
      n2: { ruleMode, wiring: 'routed', pods: podsOf(2) },
    },
    { fastPath: 'bpf' },
  );
  try {
    await run(world);
  } finally {
    await world.close();
  }
}

function learnedBy(world: HybridWorld): readonly Flow[] {
  return world.node(PROXY_NODE).kernel.flows?.flows() ?? [];
}

async function learnedOnce(world: HybridWorld, isWanted: (flow: Flow) => boolean): Promise<void> {
  await waitUntil(() => learnedBy(world).some(isWanted), { what: 'a flow to be learned', everyMs: 50 });
}

for (const ruleMode of RULE_MODES) {
  test.serial(`fast path: every kind of Pod reaches every other one, and no packet is lost, ${ruleMode}`, async (t) => {
    t.timeout(300_000);
    await withHybrid(ruleMode, async (world) => {
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
      await withHybrid(ruleMode, async (world) => {
        const port = 9000;
        const backends = world.parties.filter(({ kind }) => kind === 'eni');
        const streamed = backends.flatMap(({ name, ip, node }, at) =>
          (['Cluster', 'Local'] as const).map(
            (policy, index): ProxiedService => ({
              ...{ name: `default/stream-${name}-${policy}`, clusterIp: `10.96.1.${2 * at + index + 1}`, port: 81 },
              ...{ protocol: 'tcp', policy, nodePort: 31_000 + 2 * at + index },
              endpoints: [{ ip, port: port + 2 * at + index, isLocal: node === PROXY_NODE }],
            }),
          ),
        );
        const services = hybridServices(world);
        const { netns } = world.node(PROXY_NODE);
        await netns.run(['iptables-restore', '--noflush'], { input: serviceRules([...services, ...streamed]) });
        t.log(`figure: ${await expectServices(t, world, services)} questions by Services`);
        const streams: TcpStream[] = [];
        try {
          for (const { clusterIp, nodePort = 0, policy, endpoints } of streamed) {
            const [{ ip, port: to, isLocal } = { ip: '', port: 0, isLocal: false }] = endpoints;
            const backend = backends.find((each) => each.ip === ip);
            const client = world.parties.find((each) => each.kind === 'eni' && each.node === 'n1' && each !== backend);
            if (backend === undefined || client === undefined) return t.fail();
            const start = async (from: Party, by: { ip: string; port: number }, more: number) =>
              streams.push(await startTcpStream(from, backend, to + more, { by }));
            await start(client, { ip: clusterIp, port: 81 }, 0);
            if (policy === 'Local' && !isLocal) continue;
            await streams
              .pop()
              ?.finish()
              .then((problems) => t.deepEqual(problems, []));
            await start(world.party('outside'), { ip: world.party('n1').ip, port: nodePort }, 0);
          }
          const direct = await startTcpStream(world.party('outside'), backends[0] ?? world.party('n1'), 7400);
          streams.push(direct);
          await sleep(3_000);
          // The same without a Service is learned.
          await learnedOnce(world, ({ dport }) => dport === 7400);
          const learned = learnedBy(world);
          t.deepEqual(
            learned.filter(({ sport, dport }) => [sport, dport].some((p) => p >= port && p < port + 100)),
            [],
          );
          for (const stream of streams) t.deepEqual(await stream.finish(), []);
        } finally {
          await Promise.all(streams.map((each) => each.close()));
        }
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
