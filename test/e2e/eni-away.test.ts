import test, { type ExecutionContext } from 'ava';
import type { AttachedEni } from '../../sim/vpc/nic.ts';
import { partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial, type TrialSpec, UNLIMITED_ICMP } from './support/trial.ts';

// The routes of an ENI go with its link. What its Pods send then must not leave by the primary interface with their
// addresses: the router counts what passes it, and what it refuses there.

const LAYOUTS: Readonly<Record<string, Pick<TrialSpec, 'ruleMode'>>> = {
  compact: { ruleMode: 'compact' },
  'per-pod': { ruleMode: 'per-pod' },
};

type Away = {
  readonly takeAway: (trial: Trial, eni: AttachedEni) => Promise<void>;
  readonly bringBack: (trial: Trial, eni: AttachedEni) => Promise<void>;
};

const replug = async (trial: Trial, { eniId }: AttachedEni): Promise<void> => {
  await trial.vpc.replug(eniId);
};

const WAYS: Readonly<Record<string, Away>> = {
  'in another namespace': {
    takeAway: async (trial, { ifname }) => {
      const { name } = await trial.node.newNetns();
      await trial.node.netns.ip('link', 'set', ifname, 'netns', name);
    },
    bringBack: replug,
  },
  deleted: {
    takeAway: async ({ node }, { ifname }) => void (await node.netns.ip('link', 'del', ifname)),
    bringBack: replug,
  },
  down: {
    takeAway: async ({ node }, { ifname }) => void (await node.netns.ip('link', 'set', ifname, 'down')),
    bringBack: async ({ node }, { ifname }) => void (await node.netns.ip('link', 'set', ifname, 'up')),
  },
  'without its addresses': {
    takeAway: async ({ node }, { ifname }) => {
      await node.netns.ip('address', 'flush', 'dev', ifname);
      // Routes of IPv6 stay when the last address goes.
      await node.netns.sysctl({ [`net/ipv6/conf/${ifname}/disable_ipv6`]: 1 });
    },
    bringBack: async () => {},
  },
};

const cases = Object.entries(LAYOUTS).flatMap(([layout, spec]) =>
  Object.entries(WAYS).map(([way, away]) => ({ name: `${layout}, ${way}`, spec, way, ...away })),
);
const isShort = ({ name }: { readonly name: string }): boolean =>
  name === 'compact, in another namespace' || name === 'per-pod, down';

for (const { name, spec, way, takeAway, bringBack } of partOf(cases, isShort)) {
  test.serial(`Pods of an ENI that is away send nothing by the primary interface, ${name}`, async (t) => {
    t.timeout(240_000);
    const trial = await openTrial({ ...spec, isDual: true });
    try {
      await trial.node.netns.sysctl(UNLIMITED_ICMP);
      const pod = await trial.addPod();
      const eni = await eniOf(trial, pod);
      await reachesOutside(t, trial, pod, `before it is ${way}`);
      // Without an agent nothing is put back: what the kernel keeps by itself is what counts.
      await trial.killAgent();
      await takeAway(trial, eni);
      await nothingLeaves(t, trial, pod, `${way}, no agent`);
      await trial.startAgent({ until: 'listening' });
      if (bringBack === replug) await nothingLeaves(t, trial, pod, `${way}, an agent`);
      await bringBack(trial, eni);
      await waitUntil(() => pod.netns.ping(trial.vpc.outside.ip, { waitMs: 500 }), { what: 'the ENI serves again' });
    } finally {
      await trial.close();
    }
  });
}

async function eniOf({ vpc }: Trial, pod: AttachedPod): Promise<AttachedEni> {
  return await vpc.eni(vpc.eniOf(pod.ip) ?? '');
}

async function reachesOutside(t: ExecutionContext, { vpc }: Trial, pod: AttachedPod, when: string): Promise<void> {
  for (const ip of [vpc.outside.ip, vpc.outside.ipv6]) t.true(await pod.netns.ping(ip), `${ip}, ${when}`);
}

async function nothingLeaves(t: ExecutionContext, { vpc }: Trial, pod: AttachedPod, when: string): Promise<void> {
  await vpc.resetPacketLog();
  for (const ip of [vpc.outside.ip, vpc.outside.ipv6]) {
    const { stdout } = await pod.netns.tryRun(['ping', '-n', '-c', '3', '-i', '0.2', '-W', '1', ip]);
    t.regex(stdout, /unreachable/i, `the Pod is told that it cannot reach ${ip}, ${when}`);
  }
  const isPods = ({ src }: { readonly src: string }): boolean => pod.ips.includes(src);
  t.deepEqual((await vpc.packetLog()).filter(isPods), [], when);
  t.deepEqual((await vpc.droppedPackets()).filter(isPods), [], when);
}
