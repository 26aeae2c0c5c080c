import type { TencentApi } from '../../../cloud/tencent/requests.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { decodeNec } from '../../../ipamd/cache/decode-nec.ts';
import type { NodeMemories } from '../../../ipamd/calls/node-memory.ts';
import type { NodeFactValues } from '../../../ipamd/decide/node-view.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import type { Logger } from '../../../runtime/log.ts';
import { type InProcessApi, startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { installKinds } from '../../../sim/kube-api/install-kinds.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import type { CloudSpec } from '../../../sim/vpc/api/model/state.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { factValuesOf, leadNodes, runAgent, type StoredNec } from './lead-nodes.ts';

/** The node of the scene, and its instance of two cores: three ENIs of nine addresses. */
export const NODE = 'node-a';
export const INSTANCE = 'ins-0000node';

/** Two subnets for Pods in the node's zone, and one for nodes. */
export const CLOUD: CloudSpec = {
  vpcId: 'vpc-0000test',
  subnets: [
    { subnetId: 'subnet-podsa000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/24' },
    { subnetId: 'subnet-podsb000', zone: 'ap-guangzhou-3', cidr: '10.2.0.0/24' },
    { subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
  ],
};

/** A time in office, until it is ended. */
type Life = {
  readonly epoch: number;
  readonly memory: NodeMemories;
  /** Events of the NodeENIConfig. */
  readonly events: string[];
  /** Events of the Node. */
  readonly nodeEvents: string[];
  /** Its metrics, as they are scraped. */
  metricsText(): Promise<string>;
  crash(): void;
};

/** One node, its cloud, its API server, an agent that offers what it does not need, and one leader after the other. */
export type NodeScene = {
  readonly clock: VirtualClock;
  readonly host: CloudHost;
  readonly api: InProcessApi;
  readonly kube: KubeClient;
  /** May be changed while it runs. */
  readonly facts: { parts: Partial<NodeFactValues> };
  /** What must never happen, and did: an address in use that is taken away, a call that is not on record. */
  readonly violations: string[];
  nec(): StoredNec | undefined;
  /** What the agent wants from now on. */
  want(count: number): void;
  /** Addresses that the agent never offers. */
  readonly inUse: Set<string>;
  lead(options?: { readonly log?: Logger }): Life;
  edit(change: (object: StoredNec) => unknown): Promise<void>;
  pass(ms: number): Promise<void>;
  /** Goes on until it holds; says after half an hour of the clock that it does not. */
  until(holds: () => boolean, limitMs?: number): Promise<boolean>;
};

/** Opens the scene with an object without a status. Nobody leads yet. */
export async function openNodeScene(spec: CloudSpec = CLOUD, cores = 2): Promise<NodeScene> {
  const clock = new VirtualClock();
  const host = new CloudHost(spec, clock, { seed: 3, latencyMs: [10, 30], taskMs: [300, 900] });
  host.model.state.addInstance({ instanceId: INSTANCE, cores, subnetId: 'subnet-nodes000' });
  const api = startInProcessApi({ clock, latencyMs: 4 });
  const kube = api.client({ userAgent: 'test' });
  await clock.run(installKinds(kube));
  await clock.run(
    kube.create(NODE_ENI_CONFIGS, {
      apiVersion: 'networking.tke.cloud.tencent.com/v1',
      kind: 'NodeENIConfig',
      metadata: { name: NODE },
    }),
  );
  const world = new World(clock, host, api, cores);
  void runAgent(clock, kube, NODE, (status) => world.decide(status));
  return {
    clock,
    host,
    api,
    kube,
    facts: world.facts,
    violations: world.violations,
    inUse: world.inUse,
    nec: () => world.nec(),
    want: (count) => {
      world.wanted = count;
    },
    lead: ({ log } = {}) => world.lead(log),
    edit: async (change) => {
      await clock.run(
        updateGuarded(kube, NODE_ENI_CONFIGS, { name: NODE }, (object) => change(object as StoredNec) as KubeObject),
      );
    },
    pass: (ms) => clock.advance(ms),
    until: (holds, limitMs = 1_800_000) => clock.until(holds, limitMs),
  };
}

class World {
  readonly facts: { parts: Partial<NodeFactValues> } = { parts: {} };
  readonly violations: string[] = [];
  readonly inUse = new Set<string>();
  wanted = 0;
  #clock: VirtualClock;
  #host: CloudHost;
  #api: InProcessApi;
  #cores: number;
  #epoch = 0;
  #ids = 0;

  constructor(clock: VirtualClock, host: CloudHost, api: InProcessApi, cores: number) {
    this.#clock = clock;
    this.#host = host;
    this.#api = api;
    this.#cores = cores;
  }

  nec(): StoredNec | undefined {
    return this.#api.objects('nodeeniconfigs', 'networking.tke.cloud.tencent.com')[0] as unknown as
      | StoredNec
      | undefined;
  }

  /** What an agent decides that keeps as many addresses as it wants and offers the rest, of the emptiest ENI first. */
  decide({ eniInfos = [] }: NodeEniConfigStatus): Pick<NodeEniConfigSpec, 'desiredRouteENIIP' | 'releasableIPs'> {
    const enis = eniInfos.filter((eni) => eni.state === 'Attached');
    const serving = enis.filter((eni) => eni.draining !== true);
    const free = (eni: (typeof enis)[number]) =>
      (eni.addresses ?? []).filter((address) => address.state === 'Assigned' && !this.inUse.has(address.ip));
    const have = serving.flatMap((eni) =>
      (eni.addresses ?? []).filter((address) => address.state === 'Assigned'),
    ).length;
    const emptiest = [...serving].sort((one, other) => (one.addresses ?? []).length - (other.addresses ?? []).length);
    const surplus = emptiest.flatMap(free).slice(0, Math.max(0, have - this.wanted));
    const drained = enis.filter((eni) => eni.draining === true).flatMap(free);
    const releasableIPs = [...drained, ...surplus].map(({ ip, assignmentID }) => ({ ip, assignmentID }));
    return { desiredRouteENIIP: this.wanted, releasableIPs };
  }

  lead(log?: Logger): Life {
    this.#epoch += 1;
    const controller = new AbortController();
    const { signal } = controller;
    const events: string[] = [];
    const nodeEvents: string[] = [];
    const metrics = createIpamdMetrics(this.#clock, { release: 'test' });
    const die = (): void => controller.abort(new Error('the leader is dead'));
    const { memory } = leadNodes({
      clock: this.#clock,
      api: this.#api,
      epoch: this.#epoch,
      kube: this.#watchedKube(),
      cloudApi: this.#watched(),
      nextId: () => (++this.#ids).toString(16).padStart(16, '0'),
      facts: {
        viewOf: () => ({ kind: 'known', values: this.#factValues() }),
        subnetUsed: () => undefined,
        subnetFull: () => undefined,
      },
      nodes: [NODE],
      signal,
      ...(log === undefined ? {} : { log }),
      beside: {
        events: {
          record: ({ involved, type, reason, message }) => {
            (involved.kind === 'Node' ? nodeEvents : events).push(`${type} ${reason}: ${message}`);
          },
        },
        nodes: { get: () => ({ uid: 'uid-of-node' }) },
        metrics,
      },
    });
    return {
      epoch: this.#epoch,
      memory,
      events,
      nodeEvents,
      metricsText: () => metrics.registry.metrics(),
      crash: die,
    };
  }

  #factValues(): NodeFactValues {
    const limits = LIMITS[this.#cores] ?? LIMITS_OF_TWO;
    return { ...factValuesOf(this.#host.model.state, INSTANCE, limits), ...this.facts.parts };
  }

  /** Between a leader and the cloud: judges each mutation by the object. */
  #watched(): TencentApi {
    const inner = createInProcessApi(this.#host);
    return {
      ...inner,
      call: async (action, request, signal) => {
        signal.throwIfAborted();
        if (!action.startsWith('Describe')) this.#judge(action, request as Readonly<Record<string, unknown>>);
        return await inner.call(action, request, signal);
      },
    };
  }

  #watchedKube(): KubeClient {
    const inner = this.#api.client({ userAgent: 'ipamd' });
    return {
      ...inner,
      update: async (type, object, signal) => {
        signal?.throwIfAborted();
        const answer = await inner.update(type, object, signal);
        this.#judgeSupply(answer as StoredNec);
        signal?.throwIfAborted();
        return answer;
      },
    };
  }

  /** What may serve Pods is in the cloud, on the instance. */
  #judgeSupply({ status }: StoredNec): void {
    for (const eni of status?.eniInfos ?? []) {
      if (eni.state !== 'Attached') continue;
      const real = this.#host.model.state.enis.get(eni.eniID);
      if (real?.attachment?.instanceId !== INSTANCE) this.violations.push(`${eni.eniID} serves and is on no instance`);
      for (const { ip, state } of eni.addresses ?? []) {
        const held = real?.ips.get(ip)?.state;
        if (state === 'Assigned' && held !== 'AVAILABLE') this.violations.push(`${ip} serves and is ${held ?? 'gone'}`);
      }
    }
  }

  #judge(action: string, request: Readonly<Record<string, unknown>>): void {
    const status = this.nec()?.status ?? {};
    const eniId = request['NetworkInterfaceId'] ?? [request['NetworkInterfaceIds']].flat()[0];
    // Groups are taken away by a call of another name than the one that sets them.
    const recorded = action.endsWith('NetworkInterfaceSecurityGroups') ? 'ModifyNetworkInterfaceAttribute' : action;
    const isOnRecord = status.intents?.some(
      (intent) => intent.action === recorded && (eniId === undefined || intent.eniID === eniId),
    );
    if (isOnRecord !== true) this.violations.push(`${action} ${String(eniId)} is not on record`);
    const eni = status.eniInfos?.find((one) => one.eniID === eniId);
    const assigned = new Set(
      (eni?.addresses ?? []).filter((address) => address.state === 'Assigned').map((address) => address.ip),
    );
    const addresses = request['PrivateIpAddresses'];
    const taken: readonly unknown[] = Array.isArray(addresses) ? addresses : [];
    if (action === 'UnassignPrivateIpAddresses') {
      for (const one of taken as readonly { readonly PrivateIpAddress: string }[]) {
        if (assigned.has(one.PrivateIpAddress)) this.violations.push(`${one.PrivateIpAddress} is unassigned in use`);
      }
    }
    const isRemoval = action === 'DetachNetworkInterface' || action === 'DeleteNetworkInterface';
    if (isRemoval && (eni?.state !== 'Detaching' || assigned.size > 0)) {
      this.violations.push(`${action} ${String(eniId)} while ${eni?.state}, ${assigned.size} addresses assigned`);
    }
  }
}

const LIMITS_OF_TWO = { secondaryEnis: 3, secondaryIpsPerEni: 9 };
const LIMITS: Readonly<Record<number, typeof LIMITS_OF_TWO>> = {
  1: { secondaryEnis: 1, secondaryIpsPerEni: 5 },
  2: LIMITS_OF_TWO,
  8: { secondaryEnis: 5, secondaryIpsPerEni: 19 },
};

/** Lists the differences between cloud and object when nothing is under way any more; empty when all is well. */
export function auditNode(scene: NodeScene): readonly string[] {
  const faults: string[] = [...scene.violations];
  const nec = scene.nec();
  const status = nec?.status ?? {};
  const object = nec === undefined ? undefined : decodeNec(nec);
  for (const fault of object?.faults ?? []) faults.push(`${fault.path}: ${fault.expected}, got ${fault.got}`);
  for (const intent of status.intents ?? [])
    faults.push(`intent ${intent.id} ${intent.action} ${intent.phase} is left`);
  const enis = [...scene.host.model.state.enis.values()].filter((eni) => !eni.isPrimary);
  const known = new Map((status.eniInfos ?? []).map((eni) => [eni.eniID, eni]));
  for (const eni of enis) {
    const entry = known.get(eni.eniId);
    if (entry === undefined) {
      faults.push(`${eni.eniId} is in the cloud and not in the object`);
      continue;
    }
    const there = [...eni.ips.values()].filter((ip) => !ip.isPrimary);
    const isOn = eni.attachment?.instanceId === INSTANCE && eni.state === 'AVAILABLE';
    if (entry.state !== 'Attached' || !isOn) faults.push(`${eni.eniId}: object ${entry.state}, cloud ${eni.state}`);
    if (entry.deviceIndex !== eni.attachment?.deviceIndex)
      faults.push(`${eni.eniId}: device index ${entry.deviceIndex}`);
    const mine = (entry.addresses ?? []).map(({ ip, state }) => `${ip} ${state === 'Assigned' ? 'AVAILABLE' : state}`);
    const theirs = there.map(({ ip, state }) => `${ip} ${state}`);
    if (mine.sort().join() !== theirs.sort().join()) faults.push(`${eni.eniId}: object ${mine}, cloud ${theirs}`);
  }
  const there = new Set(enis.map((eni) => eni.eniId));
  for (const eniID of known.keys())
    if (!there.has(eniID)) faults.push(`${eniID} is in the object and not in the cloud`);
  return faults;
}

/** Counts the addresses that serve. */
export function supplyOf(scene: NodeScene): number {
  const enis = (scene.nec()?.status?.eniInfos ?? []).filter((eni) => eni.state === 'Attached' && eni.draining !== true);
  return enis.flatMap((eni) => eni.addresses ?? []).filter((address) => address.state === 'Assigned').length;
}
