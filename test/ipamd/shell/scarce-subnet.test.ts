import { isDeepStrictEqual } from 'node:util';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { CONFIG_MAPS, NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import type { CloudSpec } from '../../../sim/vpc/api/model/state.ts';
import { longTest, shortTest } from '../../support/suite-part.ts';
import { CLOUD, type ShellScene, shellScene } from './shell-scene.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** Five ENIs of nineteen addresses. */
const QUOTA = 95;

/** As the cloud of the other scenes, with fewer addresses for Pods, and a further subnet that the ConfigMap does not name. */
function cloudOf(cidr: string, vpcEnis = 10_000): CloudSpec {
  const spare = { subnetId: 'subnet-pods0002', zone: 'ap-guangzhou-3', cidr: '10.2.0.0/19' };
  const nodes = { subnetId: 'subnet-node0001', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/20' };
  return { ...CLOUD, vpcEnis, subnets: [{ subnetId: 'subnet-pods0001', zone: 'ap-guangzhou-3', cidr }, spare, nodes] };
}

function statusOf(scene: ShellScene, name: string): NodeEniConfigStatus {
  // Checked against its schema by the server.
  return (scene.nec(name)?.['status'] ?? {}) as NodeEniConfigStatus;
}

function toldOf(scene: ShellScene, name: string): number | undefined {
  return statusOf(scene, name).allocatableRouteENIIPs;
}

function hasOf(scene: ShellScene, name: string): number {
  const enis = statusOf(scene, name).eniInfos ?? [];
  return enis.flatMap(({ addresses }) => addresses ?? []).filter(({ state }) => state === 'Assigned').length;
}

function readyOf(scene: ShellScene, name: string): string | undefined {
  return statusOf(scene, name).conditions?.find(({ type }) => type === 'Ready')?.reason;
}

async function want(scene: ShellScene, name: string, count: number): Promise<void> {
  const body = { spec: { desiredRouteENIIP: count } };
  await scene.clock.run(scene.kube.patch(NODE_ENI_CONFIGS, { name }, { kind: 'merge', body }));
}

/** The agent of a node gives back so many addresses. */
async function giveBack(scene: ShellScene, name: string, count: number): Promise<void> {
  const addresses = (statusOf(scene, name).eniInfos ?? []).flatMap((eni) => eni.addresses ?? []);
  const releasableIPs = addresses.slice(-count).map(({ ip, assignmentID }) => ({ ip, assignmentID }));
  const observedSupplyEpoch = statusOf(scene, name).supplyEpoch;
  const body = { spec: { desiredRouteENIIP: hasOf(scene, name) - count, releasableIPs, observedSupplyEpoch } };
  await scene.clock.run(scene.kube.patch(NODE_ENI_CONFIGS, { name }, { kind: 'merge', body }));
}

async function useSubnets(scene: ShellScene, ids: string): Promise<void> {
  const ref = { name: 'tke-eni-ipamd', namespace: 'kube-system' };
  const body = { data: { TKE_ENI_IPAMD_SUBNET_ID: ids } };
  await scene.clock.run(scene.kube.patch(CONFIG_MAPS, ref, { kind: 'merge', body }));
}

/** Nodes with an ENI and five addresses each, at rest. */
async function restedScene(names: readonly string[], cloud: CloudSpec) {
  const scene = await shellScene(cloud);
  const ipamd = await scene.start();
  await scene.until(() => ipamd.isLeading);
  for (const name of names) await scene.join(name);
  await scene.until(() => names.every((name) => hasOf(scene, name) === 5));
  await scene.clock.advance(MINUTE_MS);
  return { scene, ipamd };
}

shortTest(
  'startIpamd: tells all nodes that there is nothing more to give, also those that want nothing, and that there is again',
  async (t) => {
    // 61 addresses: two ENIs with five each leave 49.
    const { scene, ipamd } = await restedScene(['a', 'b'], cloudOf('10.1.0.0/26'));
    t.deepEqual([toldOf(scene, 'a'), toldOf(scene, 'b')], [5 + 47, 5 + 47]);
    await want(scene, 'a', QUOTA);
    await scene.until(() => readyOf(scene, 'a') === 'SubnetExhausted');
    t.is(toldOf(scene, 'a'), hasOf(scene, 'a'));
    t.true(hasOf(scene, 'a') >= 50);
    await scene.clock.advance(31 * SECOND_MS);
    t.deepEqual([toldOf(scene, 'b'), readyOf(scene, 'b')], [5, 'SupplyMet']);
    await giveBack(scene, 'a', 7);
    await scene.clock.advance(40 * SECOND_MS);
    const free = scene.host.model.state.subnet('subnet-pods0001').pool.free;
    t.true(free >= 7);
    t.is(toldOf(scene, 'b'), 5 + free);
    await useSubnets(scene, 'subnet-pods0001:subnet-pods0002');
    await scene.clock.advance(35 * SECOND_MS);
    // On the ENI that b has in the full subnet there is room for no more than before.
    t.is(toldOf(scene, 'b'), 5 + free + 4 * 19);
    await scene.clock.run(ipamd.close());
  },
);

shortTest(
  'startIpamd: a node that joins an exhausted subnet is told that it can have nothing, and what there is once there is some',
  async (t) => {
    const { scene, ipamd } = await restedScene(['a'], cloudOf('10.1.0.0/27'));
    await want(scene, 'a', QUOTA);
    await scene.until(() => readyOf(scene, 'a') === 'SubnetExhausted');
    await scene.join('b');
    await scene.until(() => readyOf(scene, 'b') === 'SubnetExhausted');
    t.is(toldOf(scene, 'b'), 0);
    await useSubnets(scene, 'subnet-pods0001:subnet-pods0002');
    await scene.until(() => hasOf(scene, 'b') === 5);
    t.is(toldOf(scene, 'b'), undefined);
    await scene.clock.run(ipamd.close());
  },
);

shortTest(
  'startIpamd: tells what the quota of ENIs of the VPC lets a node have, and takes it back once the quota grows',
  async (t) => {
    const { scene, ipamd } = await restedScene(['a', 'b'], cloudOf('10.1.0.0/20', 2));
    await want(scene, 'a', QUOTA);
    await scene.until(() => readyOf(scene, 'a') === 'ENILimit' && hasOf(scene, 'a') === 19);
    t.is(toldOf(scene, 'a'), 19);
    scene.host.model.state.vpcEniQuota = 20;
    await scene.until(() => hasOf(scene, 'a') === QUOTA);
    t.is(toldOf(scene, 'a'), undefined);
    await scene.clock.run(ipamd.close());
  },
);

/** Shorter than the pause between two writes for the number alone. */
const LOOK_MS = 5 * SECOND_MS;

/** Counts writes of NodeENIConfigs, and those in which nothing but the number is another. */
class WriteLog {
  readonly #scene: ShellScene;
  #before = new Map<string, { readonly version: string; readonly rest: unknown }>();
  all = 0;
  alone = 0;

  constructor(scene: ShellScene) {
    this.#scene = scene;
    this.look();
  }

  look(): void {
    const necs = this.#scene.server.objects('nodeeniconfigs', 'networking.tke.cloud.tencent.com');
    for (const { metadata, spec, status } of necs) {
      const name = String(metadata['name']);
      const version = String(metadata['resourceVersion']);
      const before = this.#before.get(name);
      if (before?.version === version) continue;
      const { allocatableRouteENIIPs: _told, ...others } = status as NodeEniConfigStatus;
      const rest = structuredClone({ spec, others });
      if (before !== undefined) this.all += 1;
      if (before !== undefined && isDeepStrictEqual(before.rest, rest)) this.alone += 1;
      this.#before.set(name, { version, rest });
    }
  }

  async over(ms: number): Promise<{ readonly all: number; readonly alone: number }> {
    const [all, alone] = [this.all, this.alone];
    for (let passed = 0; passed < ms; passed += LOOK_MS) {
      await this.#scene.clock.advance(LOOK_MS);
      this.look();
    }
    return { all: this.all - all, alone: this.alone - alone };
  }
}

longTest('startIpamd: writes of 500 nodes stay few while their subnet is exhausted, and around that', async (t) => {
  t.timeout(300_000);
  const names = Array.from({ length: 500 }, (_, index) => `m${index}`);
  // 4,093 addresses: 3,000 are taken at rest, and nobody is limited while more than 475 are free.
  const { scene, ipamd } = await restedScene(names, cloudOf('10.1.0.0/20'));
  t.deepEqual(new Set(names.map((name) => toldOf(scene, name))), new Set([undefined]));
  const log = new WriteLog(scene);
  for (const name of names.slice(0, 50)) await want(scene, name, 40);
  const exhausting = await log.over(3 * MINUTE_MS);
  const without = names.slice(50);
  t.deepEqual(new Set(without.map((name) => toldOf(scene, name))), new Set([5]));
  // Those that want nothing: far less once or twice, then nothing more.
  t.true(exhausting.alone <= 3 * names.length, `${exhausting.alone} writes for the number alone`);
  const exhausted = await log.over(10 * MINUTE_MS);
  t.true(exhausted.alone <= 50, `${exhausted.alone} writes in ten minutes of nothing`);
  // Nobody wants more, or each address that is given back would be gone at once.
  for (const name of names.slice(0, 50)) await want(scene, name, hasOf(scene, name));
  let churn = 0;
  for (let round = 0; round < 40; round++) {
    if (round % 2 === 0) await giveBack(scene, 'm60', 1);
    else await want(scene, 'm60', 5);
    churn += (await log.over(45 * SECOND_MS)).alone;
  }
  t.log({ exhausting, exhausted, churn });
  t.true(churn <= 8 * names.length, `${churn} writes in half an hour around nothing`);
  await useSubnets(scene, 'subnet-pods0001:subnet-pods0002');
  const rising = await log.over(45 * SECOND_MS);
  // Up to four new ENIs in the other subnet.
  for (const name of names) t.true((toldOf(scene, name) ?? QUOTA) >= 80, `${name}: ${toldOf(scene, name)}`);
  t.log({ rising });
  t.true(rising.alone <= names.length);
  await scene.clock.run(ipamd.close());
});
