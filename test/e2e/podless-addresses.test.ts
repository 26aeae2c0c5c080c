import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { PRIORITY, TABLE_PODLESS } from '../../dataplane/numbers.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial, type TrialSpec, UNLIMITED_ICMP } from './support/trial.ts';

// An address of the node that no Pod has: the VPC leads it here, so what the node sends on comes back. The router counts how
// often a packet passes it, and what it refuses for a source that the port may not use.

/** Addresses cool longer than a test takes. */
const FLAGS = { 'ip-cooldown': '600s' } as const;
const GR = '172.31.0.64/26';

const LAYOUTS: Readonly<Record<string, TrialSpec>> = {
  compact: { ruleMode: 'compact', isDual: true, ipsPerEni: 3, flags: FLAGS },
  'per-pod': { ruleMode: 'per-pod', isDual: true, ipsPerEni: 3, flags: FLAGS },
  'compact, GlobalRoute on the bridge': { ruleMode: 'compact', gr: { cidr: GR, wiring: 'bridge' }, flags: FLAGS },
  'per-pod, GlobalRoute on the bridge': { ruleMode: 'per-pod', gr: { cidr: GR, wiring: 'bridge' }, flags: FLAGS },
  'compact, GlobalRoute by routes': { ruleMode: 'compact', gr: { cidr: GR, wiring: 'routed' }, flags: FLAGS },
  'per-pod, GlobalRoute by routes': { ruleMode: 'per-pod', gr: { cidr: GR, wiring: 'routed' }, flags: FLAGS },
};

const isShort = ([name]: readonly [string, TrialSpec]): boolean => !name.includes('GlobalRoute');

for (const [name, spec] of partOf(Object.entries(LAYOUTS), isShort)) {
  test.serial(`an address without a Pod is refused at once, ${name}`, async (t) => {
    t.timeout(240_000);
    const trial = await openTrial(spec);
    try {
      await trial.node.netns.sysctl(UNLIMITED_ICMP);
      if (spec.gr !== undefined) await leadBlock(trial);
      const refusals = new Refusals();
      const [stays, ended] = [await trial.addPod(), await trial.addPod()];
      for (const ip of ended.ips) t.true(await stays.netns.ping(ip), `${ip} answers while its Pod lives`);
      await trial.delete(ended);
      // On one bridge a Pod sends to the hardware address that it knows until it asks again, within 45 s.
      if (spec.gr?.wiring === 'bridge') await stays.netns.ip('neigh', 'flush', 'dev', 'eth0');
      const targets = [...ended.ips, ...spareOf(trial, stays)];
      await refusesAll(t, trial, refusals, stays, targets);
      if (spec.gr === undefined) await podOfTheAddressLives(t, trial, stays, targets);
      if (spec.gr === undefined) await sandboxDies(t, trial, refusals, stays);
      await comesBack(t, trial);
      await refusesAll(t, trial, refusals, stays, targets);
      t.deepEqual(await trial.vpc.repeatedPackets(), []);
    } finally {
      trial.vpc.allowRepeatedPackets();
      await trial.close();
    }
  });
}

/**
 * Waits until the node answers one more refused packet of a sender: `ip_error()` answers five at once and then one a second.
 * Its limits, `net.ipv4.route.error_burst` and `error_cost`, belong to the initial network namespace.
 */
class Refusals {
  static readonly BURST = 5;
  readonly #of = new Map<NetnsView, { left: number; sinceMs: number }>();

  async next(sender: NetnsView): Promise<void> {
    const last = this.#of.get(sender) ?? { left: Refusals.BURST, sinceMs: performance.now() };
    const left = Math.min(Refusals.BURST, last.left + (performance.now() - last.sinceMs) / 1_000);
    if (left < 1) await sleep(Math.ceil((1 - left) * 1_000) + 10);
    this.#of.set(sender, { left: Math.max(0, left - 1), sinceMs: performance.now() });
  }
}

/** One spare address of each ENI and family. */
function spareOf({ vpc, enis }: Trial, pod: AttachedPod): readonly string[] {
  return enis.flatMap(({ eniId }) => {
    const free = vpc.assignedIps(eniId).filter(({ ip }) => !pod.ips.includes(ip));
    return [4, 6].flatMap((family) => free.findLast((address) => address.family === family)?.ip ?? []);
  });
}

async function refusesAll(
  t: ExecutionContext,
  trial: Trial,
  refusals: Refusals,
  pod: AttachedPod,
  targets: readonly string[],
): Promise<void> {
  const { vpc, node } = trial;
  const senders: readonly (readonly [string, NetnsView, number])[] = [
    ['a Pod of the node', pod.netns, 0],
    ['the node itself', node.netns, 0],
    ['a host outside', vpc.outside.netns, 1],
  ];
  for (const ip of targets) {
    for (const [who, netns, passes] of senders) {
      // Nothing of a Pod without IPv6 can be for an IPv6 address.
      if (netns === pod.netns && ip.includes(':') && !pod.ips.some((own) => own.includes(':'))) continue;
      await vpc.resetPacketLog();
      await refusals.next(netns);
      const { stdout, stderr } = await netns.tryRun(['ping', '-n', '-c', '1', '-W', '5', ip]);
      t.regex(stdout + stderr, /unreachable|No route to host/i, `${who} is told at once that ${ip} is nobody's`);
      const passed = (await vpc.packetLog()).filter(({ dst }) => dst === ip);
      t.is(
        passed.reduce((sum, { packets }) => sum + packets, 0),
        passes,
        `${who} to ${ip}: ${JSON.stringify(passed)}`,
      );
      t.deepEqual(
        (await vpc.droppedPackets()).filter(({ dst }) => dst === ip),
        [],
        `${who} to ${ip}: none by a wrong port`,
      );
    }
  }
}

/** The address of a living Pod is refused to nobody, whichever it is. */
async function podOfTheAddressLives(
  t: ExecutionContext,
  trial: Trial,
  stays: AttachedPod,
  targets: readonly string[],
): Promise<void> {
  const pods: AttachedPod[] = [];
  const spare = new Set(targets.slice(stays.ips.length));
  while (spare.size > 0) {
    const pod = await trial.addPod();
    pods.push(pod);
    for (const ip of pod.ips) {
      t.true(await stays.netns.ping(ip), `${ip} answers its neighbour`);
      t.true(await trial.vpc.outside.netns.ping(ip), `${ip} answers from outside`);
      spare.delete(ip);
    }
  }
  for (const pod of pods) await trial.delete(pod);
}

/** A sandbox that goes without a DEL takes its link with it, and no agent is there to see it. */
async function sandboxDies(t: ExecutionContext, trial: Trial, refusals: Refusals, stays: AttachedPod): Promise<void> {
  const dies = await trial.addPod();
  await trial.killAgent();
  await dies.netns.close();
  await refusesAll(t, trial, refusals, stays, dies.ips);
  await trial.startAgent();
  await refusesAll(t, trial, refusals, stays, dies.ips);
}

/** What somebody deletes of it is put back. */
async function comesBack(t: ExecutionContext, { node }: Trial): Promise<void> {
  const table = String(TABLE_PODLESS);
  const count = async () =>
    (await node.netns.ipJson('route', 'show', 'table', table)).length +
    (await node.netns.ipJson('-6', 'route', 'show', 'table', table)).length;
  const before = await count();
  t.true(before > 0);
  await node.netns.ip('route', 'flush', 'table', table);
  await node.netns.tryRun(['ip', '-6', 'route', 'flush', 'table', table]);
  await node.netns.ip('rule', 'del', 'pref', String(PRIORITY.podless), 'lookup', table);
  const hasRule = async () => (await node.netns.ip('rule')).includes(`lookup ${table}`);
  await waitUntil(async () => (await count()) === before && (await hasRule()), { what: 'the routes are back' });
}

/** The VPC leads the block of GlobalRoute Pods to the node. */
async function leadBlock({ vpc }: Trial): Promise<void> {
  const { primary } = vpc.node('n1');
  await vpc.addGlobalRoute({ cidr: GR, nodeIp: primary.primaryIp });
}

for (const ruleMode of partOf(['compact', 'per-pod'] as const, (mode) => mode === 'compact')) {
  test.serial(`an address is not refused once the supply has it no more, and does not loop, ${ruleMode}`, async (t) => {
    t.timeout(120_000);
    const trial = await openTrial({ ruleMode, isDual: true, ipsPerEni: 3, flags: FLAGS });
    try {
      const pod = await trial.addPod();
      await leavesTheSupply(t, trial, pod);
    } finally {
      await trial.close();
    }
  });
}

/** The VPC leads a pair of addresses here that the supply has not: before ipamd took them away, or assigned by somebody else. */
async function leavesTheSupply(t: ExecutionContext, trial: Trial, pod: AttachedPod): Promise<void> {
  const { vpc, node } = trial;
  const { eniId = '' } = trial.enis[0] ?? {};
  const free = vpc.assignedIps(eniId).filter(({ ip }) => !pod.ips.includes(ip));
  const pair = ([4, 6] as const).flatMap((family) => free.findLast((address) => address.family === family) ?? []);
  t.is(pair.length, 2);
  for (const { ip } of pair) {
    t.false(await pod.netns.ping(ip, { waitMs: 500 }));
    await vpc.unassignIp(eniId, ip);
  }
  trial.writeSupply();
  for (const { ip, family } of pair) {
    const refuses = async () => (await node.netns.tryRun(['ip', 'route', 'get', ip])).code !== 0;
    await waitUntil(async () => !(await refuses()), { what: `${ip} is somebody else's` });

    await vpc.assignIp(eniId, family, ip);
    await vpc.resetPacketLog();
    const from = family === 4 ? vpc.outside.ip : vpc.outside.ipv6;
    t.false(await pod.netns.ping(ip, { waitMs: 500 }));
    t.false(await vpc.outside.netns.ping(ip, { waitMs: 500 }));
    const passed = (await vpc.packetLog()).filter(({ dst }) => dst === ip);
    t.true(passed.some(({ src }) => src === from) && passed.length > 1, 'the router saw both questions');
    t.true(
      passed.every(({ packets }) => packets === 1),
      `each went by once: ${JSON.stringify(passed)}`,
    );
    await vpc.unassignIp(eniId, ip);

    const address = `${ip}/${family === 4 ? 32 : 128}`;
    await vpc.outside.netns.ip('address', 'add', address, 'dev', 'lo');
    await vpc.router.ip(...(family === 4 ? [] : ['-6']), 'route', 'add', address, 'via', from);
    t.true(await pod.netns.ping(ip), 'a Pod of the node reaches the new owner');
  }
}
