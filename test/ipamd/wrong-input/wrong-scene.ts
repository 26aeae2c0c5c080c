import type { ExecutionContext } from 'ava';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import type { RunningIpamd } from '../../../ipamd/ipamd.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { CONFIG_MAPS, NODE_ENI_CONFIGS, NODES, PODS } from '../../../kube/resource-types.ts';
import { AddressPool } from '../../../sim/vpc/api/model/address-pool.ts';
import type { CloudSpec } from '../../../sim/vpc/api/model/state.ts';
import type { ModelSubnet } from '../../../sim/vpc/api/model/types.ts';
import { openShell } from '../shell/shell-scene.ts';

/** The object of a node as it is stored. */
export type StoredNec = KubeObject & { readonly spec?: NodeEniConfigSpec; readonly status?: NodeEniConfigStatus };

/** Where everything is, and what is elsewhere. */
export const VPC = 'vpc-00000001';
export const OTHER_VPC = 'vpc-other001';
export const PODS_SUBNET = 'subnet-pods0001';
export const ZONE4_SUBNET = 'subnet-zone4001';
export const FOREIGN_SUBNET = 'subnet-foreign1';
const NODE_SUBNET = 'subnet-node0001';
const CLOUD: CloudSpec = {
  vpcId: VPC,
  subnets: [
    { subnetId: PODS_SUBNET, zone: 'ap-guangzhou-3', cidr: '10.1.0.0/20' },
    { subnetId: ZONE4_SUBNET, zone: 'ap-guangzhou-4', cidr: '10.2.0.0/20' },
    { subnetId: NODE_SUBNET, zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
  ],
  securityGroupIds: ['sg-default0', 'sg-more0001'],
};
const CONFIG_MAP = { namespace: 'kube-system', name: 'tke-eni-ipamd' } as const;

/** Subnets of the ConfigMap that is good. */
export const GOOD = { TKE_ENI_IPAMD_SUBNET_ID: PODS_SUBNET, TKE_ENI_IPAMD_VPC_ID: VPC } as const;

/** How a Node of the scene differs from an ordinary one. */
type JoinOptions = {
  /** Default: one of its own, which exists. Empty: none is named. */
  readonly instanceId?: string;
  readonly providerId?: string;
  readonly instanceType?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** What names a problem; each of the three is looked for. */
type Naming = {
  /** Reason of condition and event, and kind of the metric. */
  readonly reason: string;
  /** What the message says, in all of them. */
  readonly says: RegExp;
  /** `name` of the metric. */
  readonly name: string;
  /** The node whose NodeENIConfig bears the condition; absent where there is none to bear it. */
  readonly on?: string;
};

/** A whole ipamd on a virtual clock, with a cloud and an API server of this process. */
export class WrongScene {
  readonly #shell = openShell(CLOUD);
  readonly clock = this.#shell.clock;
  readonly host = this.#shell.host;
  readonly server = this.#shell.server;
  readonly kube = this.server.client({ userAgent: 'people' });
  ipamd: RunningIpamd | undefined;
  #joined = 0;

  constructor() {
    const cidr = '172.16.0.0/20';
    const foreign = {
      subnetId: FOREIGN_SUBNET,
      zone: 'ap-guangzhou-3',
      cidr,
      vpcId: OTHER_VPC,
      pool: new AddressPool(cidr),
    };
    // The model has one VPC; a subnet of another is put in by hand.
    (this.host.model.state.subnets as Map<string, ModelSubnet>).set(FOREIGN_SUBNET, foreign);
  }

  /** Starts ipamd; it leads when this returns, unless told not to wait. */
  async start(flags: readonly string[] = [], waits = true): Promise<void> {
    this.ipamd = await this.#shell.start({ flags });
    if (waits) await this.until('ipamd leads', () => this.ipamd?.isLeading === true);
  }

  /** Takes a right from ipamd; returns what gives it back. */
  forbid(verb: string, resource: string): () => void {
    const action = { kind: 'status', code: 403, reason: 'Forbidden' } as const;
    return this.server.api.faults.add({ verbs: [verb], resources: [resource], userAgent: 'ipamd', action });
  }

  /** Writes the ConfigMap's data; undefined deletes it. */
  async configure(data: Readonly<Record<string, string>> | undefined): Promise<void> {
    const { kube, clock } = this;
    const before = await clock.run(kube.get(CONFIG_MAPS, CONFIG_MAP));
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: CONFIG_MAP, ...(data && { data }) };
    if (data === undefined) await clock.run(kube.delete(CONFIG_MAPS, CONFIG_MAP));
    else await clock.run(before === undefined ? kube.create(CONFIG_MAPS, object) : kube.update(CONFIG_MAPS, object));
    await clock.advance(1_000);
  }

  /** Registers a Node. */
  async join(name: string, options: JoinOptions = {}): Promise<void> {
    const instanceId = options.instanceId ?? `ins-wrong${name}`;
    const { state } = this.host.model;
    if (options.instanceId === undefined) {
      const type = options.instanceType === undefined ? {} : { instanceType: options.instanceType };
      state.addInstance({ instanceId, cores: 8, subnetId: NODE_SUBNET, ...type });
    }
    const { labels = {}, annotations = {} } = options;
    const providerID = options.providerId ?? `qcloud:///100003/${instanceId}`;
    const metadata = { name, labels, annotations };
    await this.clock.run(this.kube.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata, spec: { providerID } }));
    await this.clock.advance(1_000);
  }

  /** Runs a Pod with an address on a node. */
  async runPod(name: string, nodeName: string, ip: string): Promise<void> {
    const metadata = { name, namespace: 'default' };
    const spec = { nodeName, containers: [{ name: 'main', image: 'none' }] };
    await this.clock.run(this.kube.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec }));
    const body = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } };
    await this.clock.run(this.kube.patch(PODS, metadata, { kind: 'merge', body, subresource: 'status' }));
    await this.clock.advance(500);
  }

  /** Changes a Node or a NodeENIConfig as a person with kubectl does. */
  async patch(kind: 'node' | 'nec', name: string, body: object): Promise<void> {
    await this.clock.run(
      this.kube.patch(kind === 'node' ? NODES : NODE_ENI_CONFIGS, { name }, { kind: 'merge', body }),
    );
    await this.clock.advance(1_000);
  }

  /** Answers the supply as an agent does: offers count only once it has. */
  async answer(name: string): Promise<void> {
    const { spec, status } = this.nec(name) ?? {};
    const [seen, has] = [spec?.observedSupplyEpoch ?? 0, status?.supplyEpoch ?? 0];
    if (has > seen) await this.patch('nec', name, { spec: { observedSupplyEpoch: has } });
  }

  nec(name: string): StoredNec | undefined {
    const found = this.server
      .objects(NODE_ENI_CONFIGS.plural, NODE_ENI_CONFIGS.group)
      .find(({ metadata }) => metadata['name'] === name);
    // The store's objects are those of the API, checked by the schema.
    return found as StoredNec | undefined;
  }

  /** Addresses that a node has to give. */
  assigned(name: string): readonly { readonly ip: string; readonly assignmentID: string }[] {
    const enis = (this.nec(name)?.status?.eniInfos ?? []).filter((eni) => eni.state === 'Attached');
    return enis.flatMap((eni) => eni.addresses ?? []).filter(({ state }) => state === 'Assigned');
  }

  /** What differs between a node's object and the cloud; empty when nothing does and nothing is under way. */
  differences(name: string): readonly string[] {
    const { eniInfos = [], intents = [] } = this.nec(name)?.status ?? {};
    const held = eniInfos.map(({ eniID, state, mac, deviceIndex, addresses = [] }) =>
      describe(
        eniID,
        `${state} ${mac} ${deviceIndex}`,
        addresses.map(({ ip, state: one }) => `${ip} ${one}`),
      ),
    );
    const mine = [...this.host.model.state.enis.values()].filter((eni) => eni.tags['tke-node'] === name);
    const there = mine.map((eni) => {
      const ips = [...eni.ips.values()].filter((ip) => !ip.isPrimary);
      const state = eni.attachment === undefined ? 'Detached' : 'Attached';
      const assigned = ips.map(({ ip, state: one }) => `${ip} ${one === 'AVAILABLE' ? 'Assigned' : one}`);
      return describe(eni.eniId, `${state} ${eni.mac} ${eni.attachment?.deviceIndex}`, assigned);
    });
    return [
      ...held.filter((line) => !there.includes(line)).map((line) => `object: ${line}`),
      ...there.filter((line) => !held.includes(line)).map((line) => `cloud: ${line}`),
      ...intents.map(({ id, action, phase }) => `intent ${id}: ${action} is ${phase}`),
    ];
  }

  async awaitWarm(name: string): Promise<void> {
    await this.until(`${name} is warm`, () => this.assigned(name).length >= 5);
  }

  /** All events, as `reason Kind/name: message`. */
  events(): readonly string[] {
    return this.server.objects('events').map((event) => {
      const { kind, name } = event['involvedObject'] as { kind: string; name: string };
      return `${event['reason']} ${kind}/${name}: ${event['message']}`;
    });
  }

  /** Series of the metric of problems, as `kind name`. */
  async problems(): Promise<readonly string[]> {
    const text = (await this.ipamd?.metrics.registry.metrics()) ?? '';
    return [...text.matchAll(/^tke_eni_ipamd_problem\{kind="([^"]*)",name="([^"]*)"\} \d+$/gm)].map(
      ([, kind, name]) => `${kind} ${name}`,
    );
  }

  /** Conditions that are not as they should be, as `type reason: message`. */
  wrongs(name: string): readonly string[] {
    const conditions = this.nec(name)?.status?.conditions ?? [];
    return conditions
      .filter(({ status }) => status === 'False')
      .map(({ type, reason, message = '' }) => `${type} ${reason}: ${message}`);
  }

  /** Asserts that condition, event and metric name a problem; waits for it. */
  async assertNamed(t: ExecutionContext, { reason, says, name, on }: Naming): Promise<void> {
    const isTold = (line: string): boolean => line.startsWith(`${reason} `) && says.test(line);
    const isHeld = (line: string): boolean => line.includes(` ${reason}: `) && says.test(line);
    const isEvent = (): boolean => this.events().some(isTold);
    const isMetric = async (): Promise<boolean> => (await this.problems()).includes(`${reason} ${name}`);
    const isCondition = (): boolean => on === undefined || this.wrongs(on).some(isHeld);
    for (let waited = 0; waited < NAMED_WITHIN_MS; waited += STEP_MS) {
      if (isEvent() && isCondition() && (await isMetric())) break;
      await this.clock.advance(STEP_MS);
    }
    t.true(isEvent(), `event ${reason} ${says}; there are:\n${this.events().join('\n')}`);
    t.true(await isMetric(), `metric ${reason} ${name}; there are:\n${(await this.problems()).join('\n')}`);
    if (on !== undefined)
      t.true(isCondition(), `condition ${reason} ${says} of ${on}; there are:\n${this.wrongs(on).join('\n')}`);
  }

  /** Asserts that nothing is wrong any more: no condition, no metric. */
  async assertOver(t: ExecutionContext, name: string): Promise<void> {
    const isOver = async (): Promise<boolean> => this.wrongs(name).length + (await this.problems()).length === 0;
    for (let waited = 0; waited < NAMED_WITHIN_MS && !(await isOver()); waited += STEP_MS)
      await this.clock.advance(STEP_MS);
    t.deepEqual([...this.wrongs(name), ...(await this.problems())], []);
  }

  /** Asserts that a node that joins now gets its addresses. */
  async assertOthersGoOn(t: ExecutionContext, options: JoinOptions = {}): Promise<void> {
    const name = `other${++this.#joined}`;
    await this.join(name, options);
    await this.awaitWarm(name);
    t.true(this.assigned(name).length >= 5);
  }

  /** Goes on until it holds. @throws Error when it does not within ten minutes of the clock */
  async until(what: string, holds: () => boolean): Promise<void> {
    for (let waited = 0; !holds(); waited += STEP_MS) {
      if (waited > LIMIT_MS)
        throw new Error(`never: ${what}\n${this.events().join('\n')}\n${(await this.problems()).join('\n')}`);
      await this.clock.advance(STEP_MS);
    }
  }

  /** Waits, bounded, until a problem is in the metrics no more. */
  async untilGone(problem: string): Promise<void> {
    const isThere = async (): Promise<boolean> => (await this.problems()).includes(problem);
    for (let waited = 0; waited < NAMED_WITHIN_MS && (await isThere()); waited += STEP_MS)
      await this.clock.advance(STEP_MS);
  }

  async close(): Promise<void> {
    if (this.ipamd !== undefined) await this.clock.run(this.ipamd.close());
  }
}

/** Runs a scene to its end, come what may. */
export async function inScene(
  config: Readonly<Record<string, string>> | undefined,
  run: (scene: WrongScene) => Promise<void>,
  flags: readonly string[] = [],
): Promise<void> {
  const scene = new WrongScene();
  if (config !== undefined) await scene.configure(config);
  await scene.start(flags);
  try {
    await run(scene);
  } finally {
    await scene.close();
  }
}

function describe(eniId: string, state: string, ips: readonly string[]): string {
  return `${eniId} ${state}: ${[...ips].sort().join(', ')}`;
}

const STEP_MS = 250;
const LIMIT_MS = 600_000;
const NAMED_WITHIN_MS = 180_000;
