import { createTencentCloud, type TencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { NODE_CILIUM_IPAM_LABEL } from '../../crd/names.ts';
import { readIpamdConfig } from '../../ipamd/config/ipamd-config.ts';
import { type RunningIpamd, startIpamd } from '../../ipamd/ipamd.ts';
import { openInformer } from '../../kube/informer.ts';
import type { KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { CONFIG_MAPS, NODE_ENI_CONFIGS, NODES } from '../../kube/resource-types.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type InProcessApi, startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import type { FaultRule } from '../../sim/vpc/api/faults.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../../test/support/virtual-clock.ts';
import { SimulatedAgent } from './simulated-agent.ts';

/** What a simulated cluster is. */
type WorldSpec = {
  readonly nodes: number;
  /** Cores of each instance: its limits follow. */
  readonly cores: number;
  readonly cooldownMs: number;
  /** Agents give back all surplus at a time. */
  readonly isQuick: boolean;
  /** What goes wrong in the cloud, by chance. */
  readonly faults?: readonly FaultRule[];
  /** How long agents gather demand, milliseconds; default the product's. */
  readonly gatherMs?: number;
  /** Called when a Pod gets its addresses. */
  readonly onAddress?: (podId: string) => void;
  /** Nodes have the label of Cilium's, and no agents. Default: they have agents. */
  readonly isCilium?: true;
};

/** A cluster in this process on a virtual clock: the product's ipamd and decisions of its agents, a simulated cloud and API server. */
export type World = {
  readonly clock: VirtualClock;
  readonly host: CloudHost;
  readonly api: InProcessApi;
  readonly cloud: TencentCloud;
  readonly ipamd: RunningIpamd;
  readonly agents: readonly SimulatedAgent[];
  /** The Nodes that join. */
  readonly nodes: readonly KubeObject[];
  /** Writes that ipamd made of NodeENIConfigs and whatever else, or of one resource. */
  readonly ipamdWrites: (plural?: string) => number;
  /** Ends ipamd and the agents, on the virtual clock. */
  close(): Promise<void>;
};

const VPC_ID = 'vpc-0000bench';
const ZONE = 'ap-guangzhou-3';
/** Four subnets of 65,533 addresses each. */
const SUBNETS = [0, 1, 2, 3].map((index) => ({
  subnetId: `subnet-bench00${index}`,
  zone: ZONE,
  cidr: `10.${index}.0.0/16`,
}));
const NODE_SUBNET = { subnetId: 'subnet-nodes000', zone: ZONE, cidr: '10.8.0.0/16' };

/** Builds the cluster with its instances and configuration; no Node yet, and ipamd leads. */
export async function createWorld(spec: WorldSpec): Promise<World> {
  const clock = new VirtualClock();
  const host = new CloudHost(
    { vpcId: VPC_ID, subnets: [...SUBNETS, NODE_SUBNET], vpcEnis: 1_000_000, keepsPast: false },
    clock,
    { latencyMs: [50, 200], taskMs: [1_000, 3_000], seed: 11 },
  );
  for (const rule of spec.faults ?? []) host.faults.add(rule);
  const cloud = createTencentCloud({ api: createInProcessApi(host), clock, random: seededRandom(12) });
  const api = startInProcessApi({ clock, isLight: true, latencyMs: 5 });
  const admin = api.client();
  await clock.run(
    admin.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'tke-eni-ipamd', namespace: 'kube-system' },
      data: {
        TKE_ENI_IPAMD_SUBNET_ID: SUBNETS.map(({ subnetId }) => subnetId).join(':'),
        TKE_ENI_IPAMD_VPC_ID: VPC_ID,
      },
    }),
  );
  const stop = new AbortController();
  const agents = spawnAgents(spec, api, clock, stop.signal);
  const { kube, writes } = countWrites(api);
  const random = seededRandom(13);
  let serial = 0;
  const ipamd = await startIpamd(configOf(), {
    clock,
    log: silentLogger,
    random,
    ids: {
      next: () => {
        serial += 1;
        return serial.toString(16).padStart(16, '0');
      },
      now: () => new Date(clock.nowMs()).toISOString(),
    },
    kube,
    cloud,
    release: 'bench',
    identity: 'bench',
  });
  await clock.run(until(clock, () => ipamd.isLeading));
  for (let index = 0; index < spec.nodes; index++) {
    host.model.state.addInstance({
      instanceId: instanceOf(index),
      instanceType: `S5.${spec.cores}XLARGE`,
      cores: spec.cores,
      subnetId: NODE_SUBNET.subnetId,
    });
  }
  return {
    ...{ clock, host, api, cloud, ipamd },
    agents: agents.list,
    nodes: Array.from({ length: spec.nodes }, (_, index) => nodeOf(index, spec.isCilium === true)),
    ipamdWrites: writes,
    close: async () => {
      stop.abort(new Error('the world ends'));
      await clock.run(ipamd.close());
    },
  };
}

/** Lets all nodes join at once. */
export async function joinNodes({ api, clock, nodes }: World): Promise<void> {
  const admin = api.client();
  await clock.run(Promise.all(nodes.map((node) => admin.create(NODES, node))));
}

/** Resolves when `isTrue`, looking every half second of virtual time. */
export async function until(clock: VirtualClock, isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await clock.sleep(500);
}

function spawnAgents(spec: WorldSpec, api: InProcessApi, clock: VirtualClock, signal: AbortSignal) {
  const kube = api.client({ userAgent: 'agent' });
  const list = Array.from(
    { length: spec.isCilium === true ? 0 : spec.nodes },
    (_, index) =>
      new SimulatedAgent({
        nodeName: nameOf(index),
        kube,
        clock,
        cooldownMs: spec.cooldownMs,
        isQuick: spec.isQuick,
        ...(spec.gatherMs === undefined ? {} : { gatherMs: spec.gatherMs }),
        ...(spec.onAddress === undefined ? {} : { onAddress: spec.onAddress }),
      }),
  );
  const byName = new Map(list.map((agent, index) => [nameOf(index), agent]));
  const informer = openInformer<KubeObject>({
    client: kube,
    type: NODE_ENI_CONFIGS,
    decode: (object) => object,
    clock,
    log: silentLogger,
    random: seededRandom(14),
  });
  informer.subscribe(({ key, after }) => {
    if (after !== undefined) byName.get(key)?.observe(after);
  });
  void informer.start(signal);
  // A signal of its own for each: a thousand listeners on one are searched through by each that comes.
  const own = list.map((agent) => {
    const stop = new AbortController();
    void agent.run(stop.signal);
    return stop;
  });
  signal.addEventListener('abort', () => {
    for (const stop of own) stop.abort(signal.reason);
  });
  return { list };
}

function configOf() {
  const outcome = readIpamdConfig({
    argv: ['--clusterid=cls-bench000', '--region=ap-guangzhou', '--metrics-address=', '--record-pods=false'],
    env: {},
    readFile: () => '',
  });
  if (outcome.kind !== 'run') throw new Error('the settings of the benchmark are no settings to run with');
  return outcome.config;
}

const WRITES = ['create', 'update', 'patch', 'delete'] as const;

/** ipamd's client, and how often it wrote. */
function countWrites(api: InProcessApi) {
  const client = api.client({ userAgent: 'ipamd' });
  const counts = new Map<string, number>();
  const counting = Object.fromEntries(
    WRITES.map((verb) => [
      verb,
      (type: ResourceType, ...rest: readonly unknown[]) => {
        const args = [type, ...rest];
        counts.set(type.plural, (counts.get(type.plural) ?? 0) + 1);
        return Reflect.apply(client[verb], client, args);
      },
    ]),
  );
  const total = (): number => [...counts.values()].reduce((sum, one) => sum + one, 0);
  const writes = (plural?: string): number => (plural === undefined ? total() : (counts.get(plural) ?? 0));
  return { kube: { ...client, ...counting }, writes };
}

function nodeOf(index: number, isCilium: boolean): KubeObject {
  const labels = isCilium ? { [NODE_CILIUM_IPAM_LABEL]: 'crd' } : {};
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: nameOf(index), labels: { 'cloud.tencent.com/node-instance-id': instanceOf(index), ...labels } },
    spec: { providerID: `tencentcloud:///${ZONE}/${instanceOf(index)}` },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

function nameOf(index: number): string {
  return `node-${index}`;
}

function instanceOf(index: number): string {
  return `ins-${index.toString(36).padStart(8, '0')}`;
}
